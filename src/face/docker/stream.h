/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Output on its way to a client: in frames, or as it is.
 *
 * A frame is one byte stream (1 or 2), three zeroes, the length of the payload
 * as a big-endian u32, then the payload: never empty, at most 64 KiB. It goes
 * to a pipe (an upgraded connection) whole, or to an answer, where what the
 * answer does not take at once waits here: one frame, not more.
 */

#include "face/docker/internal.h"

#define FRAME_HEAD 8
#define FRAME_MAX  65536

struct out {
	struct http_request *r; /* one of these */
	struct http_pipe *p;
	bool is_framed;
	char *rest; /* of a frame that has begun */
	size_t rest_at, rest_len;
};

void frame_make(unsigned char ret[FRAME_HEAD], int stream, size_t len);
/* How many bytes of the payload were taken. */
size_t out_write(struct out *o, int stream, const char *data, size_t len);
/* True when nothing waits here any more. */
bool out_flush(struct out *o);
void out_end(struct out *o);
void out_done(struct out *o);

/* The content type of a stream. */
const char *stream_type(unsigned int version, bool is_framed);

/* ---- keys that end a stream and leave the program running ---- */

#define KEYS_MAX 16

struct keys {
	char sequence[KEYS_MAX];
	size_t n;
	size_t at; /* so many of them came */
};

/* "ctrl-p,ctrl-q", "a,b"; "" is the default. -1: no such keys. */
int keys_parse(const char *text, struct keys *ret);
/*
 * Copies input without the keys to `ret`, which has room for len + KEYS_MAX;
 * returns how many bytes, and in *ret_detach whether all keys came.
 */
size_t keys_filter(struct keys *k, const char *data, size_t len, char *ret,
		   bool *ret_detach);

/* ---- a client on a program ---- */

struct wire {
	struct docker *d;
	struct out out;
	struct feed *feed;
	struct call *call;
	bool has[3]; /* which streams it wants; 0: input */
	bool has_ended;
	bool has_keys;
	struct keys keys;
	char held[4096 + KEYS_MAX]; /* input that was not taken yet */
	size_t held_at, held_len;
	bool input_ended;
	char id[65]; /* of the exec */
};

struct wire *wire_new(struct docker *d);
struct sink wire_sink(struct wire *w);
/*
 * Answers the request: 101 or 200. From now on the wire belongs to the
 * connection. `w->feed` may come before or after.
 */
void wire_open(struct wire *w, struct http_request *r, bool is_framed);
/* Nothing more comes, and its feed is gone: ends when the client has all. */
void wire_end(struct wire *w);
void wire_free(struct wire *w); /* only before wire_open() */
