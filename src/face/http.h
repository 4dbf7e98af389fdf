/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * HTTP/1.1 for all faces: http-parser in a libuv loop, over unix sockets.
 *
 * A face is a table of routes. A handler answers at once or later; nothing
 * blocks. What a peer sizes has a ceiling: 64 KiB of headers, 10 s for them,
 * 4 MiB of a JSON body, 256 connections of one uid (503 above), 256 KiB waiting
 * in a stream.
 *
 *	handler -> http_answer()                          whole
 *	        -> http_begin(), http_write() ..., http_end()   a stream
 *	        -> http_upgrade()                         a raw pipe, both ways
 *
 * A request is valid until it was answered in full or its `gone` callback came.
 * A body with HTTP_BODY_WHOLE is read before the handler is called; with
 * HTTP_BODY_STREAM the handler is called first and takes it by http_on_body().
 * A route with neither has its body read and thrown away (4 MiB at most).
 *
 * Callbacks come from the loop, never from inside a call of these. What is
 * answered or written goes out when control is back in the loop. A client that
 * closes its side of a connection that is not upgraded has left.
 */

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "base/err.h"
#include "front/manager.h"

struct http;
struct http_request;

enum {
	HTTP_BODY_WHOLE = 1 << 0,
	HTTP_BODY_STREAM = 1 << 1,
	HTTP_UPGRADES = 1 << 2, /* its handler may call http_upgrade() */
};

/*
 * `path` is matched part by part. "{}" takes one part, "{*}" one or more (a
 * name with slashes), as little as what follows allows. Parameters are
 * percent-decoded once, after the split.
 */
struct http_route {
	const char *method;
	const char *path;
	void (*handle)(struct http_request *r, void *ctx);
	unsigned int flags;
};

struct http_face {
	const struct http_route *routes;
	size_t n_routes;
	void *ctx; /* of every handler */
	/* Headers of every answer: name, value, name, value ..., NULL. */
	const char *const *headers;
	/*
	 * May take a prefix off the path (Docker: /v1.44) and say no: then it
	 * has answered itself and returns NULL. NULL: no prefix.
	 */
	const char *(*enter)(struct http_request *r, const char *path);
	/* Answers for no route (404), a bad form (400), too much (413, 503). */
	void (*fail)(struct http_request *r, int status, const char *text);
};

struct http *http_new(uv_loop_t *loop, int listener,
		      const struct http_face *face, struct err *err);
void http_stop_listening(struct http *h); /* open requests go on */
void http_free(struct http *h);

/* the request */
const struct peer *http_peer(const struct http_request *r);
const char *http_method(const struct http_request *r);
const char *http_path(const struct http_request *r);
const char *http_param(const struct http_request *r, unsigned int i);
/* Decoded; NULL: not there. http_query_next(): repeated ones, from i = 0. */
const char *http_query(const struct http_request *r, const char *name);
const char *http_query_next(const struct http_request *r, const char *name,
			    unsigned int *i);
const char *http_header(const struct http_request *r, const char *name);
/* Of HTTP_BODY_WHOLE; NUL-terminated, "" if there is none. */
const char *http_body(const struct http_request *r, size_t *ret_len);
/* For the handler's own data; `gone` comes once, when the client has left
 * before the end, or after the end: then `data` is let go. */
void http_set_data(struct http_request *r, void *data,
		   void (*gone)(void *data));
void *http_data(const struct http_request *r);
/* A number of the face's, such as the version in the prefix. */
void http_set_version(struct http_request *r, unsigned int v);
unsigned int http_version(const struct http_request *r);
bool http_wants_upgrade(const struct http_request *r);

/* Piece by piece: returns how many bytes it took; http_body_ready() for more.
 * (NULL, 0) is the end. */
typedef size_t http_body_fn(void *data, const char *bytes, size_t len);
void http_on_body(struct http_request *r, http_body_fn *fn);
void http_body_ready(struct http_request *r);

/* answers */
void http_add_header(struct http_request *r, const char *name,
		     const char *value);
/* `type` NULL: no body, no type. The bytes are copied. */
void http_answer(struct http_request *r, int status, const char *type,
		 const void *body, size_t len);
/* Headers go out at once. `raw`: not chunked, ended by closing. */
void http_begin(struct http_request *r, int status, const char *type, bool raw);
/* How many bytes were taken; less: wait for `ready`. */
size_t http_write(struct http_request *r, const void *data, size_t len);
/* Room for so many bytes now; `ready` comes when it was less than half. */
size_t http_room(struct http_request *r);
void http_on_ready(struct http_request *r, void (*ready)(void *data));
void http_end(struct http_request *r);
/* The same, with last bytes that no ceiling keeps back. */
void http_finish(struct http_request *r, const void *data, size_t len);
/* Ends a stream that failed: the client sees that it is not whole. */
void http_cut(struct http_request *r);

/*
 * 101 (or, where the client did not ask for an upgrade, 200 and a stream both
 * ways until the end), and the connection is ours: the request is over, its
 * data are handed on to `events`, and its own `gone` does not come. No
 * recv() of the client brings bytes of the pipe together with the headers
 * (docker-api.md 6.5; how: pipe.c).
 */
struct http_pipe;
struct http_pipe_events {
	/* Bytes from the client; how many were taken; pipe_input_ready(). */
	size_t (*input)(void *data, const char *bytes, size_t len);
	void (*input_end)(void *data); /* half-close: not a disconnect */
	void (*ready)(void *data);     /* pipe_write() takes more */
	void (*gone)(void *data); /* both directions, or after pipe_end() */
};
struct http_pipe *http_upgrade(struct http_request *r, const char *type,
			       const struct http_pipe_events *events,
			       void *data);
/* As one writev; 256 KiB wait at most, then it takes less. */
size_t pipe_write(struct http_pipe *p, const struct iovec *v, int n);
/* Room for so many bytes now; `ready` comes when it was less than half. */
size_t pipe_room(struct http_pipe *p);
void pipe_input_ready(struct http_pipe *p);
void pipe_end(struct http_pipe *p); /* when all is written, then `gone` */
