/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Inside http.h: one connection, and the request on it.
 *
 * All connections of a face are in one epoll set, edge-triggered; that set's
 * descriptor is in the loop. An event, or a call from outside such as
 * http_write(), marks a connection (conn_mark), and conn_step() then does all
 * there is to do: write, read, parse, call back. Callbacks come only from
 * there, and only there is a connection or a request freed; so whatever a
 * callback calls cannot pull the ground from under it.
 *
 *	CONN_HEAD    waits for a request, or reads its headers
 *	CONN_BODY    its body is not read to the end
 *	CONN_BUSY    it was read; the answer is not complete
 *	CONN_PIPE    upgraded: bytes both ways
 *	CONN_LINGER  all was said; what still comes is thrown away, for a while
 */

#include <http_parser.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "face/http.h"
#include "face/route.h"

#define HTTP_MAX_HEAD    65536
#define HTTP_MAX_BODY    (4U << 20)
#define HTTP_HEAD_MS     10000
#define HTTP_LINGER_MS   2000
#define HTTP_MAX_PEER    256
#define HTTP_PEER_BODIES (64U << 20) /* of all its connections at once */
#define HTTP_MAX_WAITING (256U << 10)
#define HTTP_READ        65536

/* Bytes from `at` to `len`; memory is there only while there are some. */
struct bytes {
	char *data;
	size_t at, len, cap;
};

int bytes_add(struct bytes *b, const void *data, size_t len);
void bytes_take(struct bytes *b, size_t n);
void bytes_done(struct bytes *b);

static inline size_t bytes_left(const struct bytes *b)
{
	return b->len - b->at;
}

enum conn_state { CONN_HEAD, CONN_BODY, CONN_BUSY, CONN_PIPE, CONN_LINGER };

struct header {
	size_t name, value; /* offsets in `head` */
};

struct http_request {
	struct conn *conn;
	const struct http_route *route;
	struct buf url, head;
	struct header *headers;
	size_t n_headers;
	bool in_value; /* of the header that is being read */
	const char *path;
	struct route_params params;
	struct query query;
	struct buf body;   /* of HTTP_BODY_WHOLE */
	struct bytes flow; /* of HTTP_BODY_STREAM, not yet taken */
	http_body_fn *on_body;
	bool body_waits; /* took less than there was */
	bool has_head;   /* all headers were read */
	bool is_whole;   /* and the body */
	bool keeps_alive, wants_upgrade;
	bool is_begun, is_ended, is_chunked, is_silent, is_upgraded;
	bool wants_ready;
	void (*ready)(void *data);
	void *data;
	void (*gone)(void *data);
	unsigned int version;
	struct buf extra; /* headers of the answer */
};

struct http_pipe {
	const struct http_pipe_events *events;
	void *data;
	bool is_ended, wants_ready;
	bool input_waits, input_is_over;
	bool is_begun;      /* the headers are out */
	struct bytes early; /* what was written before that */
};

struct conn {
	struct http *http;
	TAILQ_ENTRY(conn) all;
	TAILQ_ENTRY(conn) marked;
	bool is_marked;
	int fd;
	struct peer peer;
	enum conn_state state;
	bool may_read;     /* until recv() said no */
	bool is_shut;      /* the client writes no more */
	bool is_hup;       /* nor reads */
	bool wants_out;    /* EPOLLOUT is asked for */
	bool ends;         /* after what is written */
	bool lingers;      /* it may still be sending */
	uint64_t deadline; /* ms of the loop, 0: none */
	struct bytes in, out;
	http_parser parser;
	struct http_request *request;
	struct http_pipe pipe;
};

TAILQ_HEAD(conn_list, conn);

struct http {
	uv_loop_t *loop;
	const struct http_face *face;
	int listener, epoll;
	int barrier; /* a descriptor, pipe.c */
	bool is_accepting;
	uint64_t accept_again; /* ms, after an error */
	struct conn_list conns, marked;
	uv_poll_t poll;
	uv_prepare_t prepare;
	uv_idle_t idle;
	uv_timer_t timer;
	uint64_t timer_at; /* 0: not set */
	int open_handles;
};

/* conn.c */
struct conn *conn_new(struct http *h, int fd, const struct peer *peer);
void conn_mark(struct conn *c);
/* Bytes of bodies that are read or worked on, of one user. */
size_t http_bodies(const struct http *h, uid_t uid);
void conn_step(struct conn *c);
/* The client is gone, or will be: tells the request or pipe, frees all. */
void conn_drop(struct conn *c);
/* All was written. Who may still be sending gets time to read our answer. */
void conn_say_goodbye(struct conn *c);
/* 0 or -errno; what could not be written waits for the next event. */
int conn_flush(struct conn *c);
/* Reads once: bytes, 0 at the end, -EAGAIN, or -errno. */
ssize_t conn_fill(struct conn *c);
void conn_want_out(struct conn *c, bool want);
void conn_set_deadline(struct conn *c, uint64_t ms_from_now); /* 0: none */

/* request.c */
struct http_request *request_new(struct conn *c);
void request_free(struct http_request *r);
/* Gives the parser what is in `in`; false: nothing more can be done now. */
bool request_advance(struct conn *c);
void request_fail(struct conn *c, int status, const char *text);

/* pipe.c */
void pipe_step(struct conn *c);

/* http.c */
void http_arm(struct http *h, uint64_t when);
