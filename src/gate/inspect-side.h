/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One side of an inspected connection: a socket, TLS on it or not, bytes that
 * came and bytes to go, each with a fixed room. It never waits and never calls
 * back: who owns it asks it to work until nothing moves any more, and then to
 * watch for what it waits for.
 *
 * Where a secret's value was among the bytes to go, their room is wiped as soon
 * as they are gone.
 */

#include <openssl/ssl.h>
#include <uv.h>

#include "base/buf.h"
#include "gate/http.h"

#define SIDE_IN  HTTP_HEAD_MAX
#define SIDE_OUT (2 * HTTP_HEAD_MAX)

/* Whether who has ended can still hear. */
enum side_probe {
	PROBE_NONE,
	PROBE_WAITS, /* for the end of its TCP */
	PROBE_DONE,  /* if it has closed, a reset comes */
};

struct side {
	int fd;
	SSL *ssl; /* NULL: plain */
	uv_poll_t poll;
	bool has_poll;
	int watched;
	bool is_ready;    /* shaken hands */
	bool is_ended;    /* nothing comes any more, as announced */
	bool is_broken;   /* reset, or TLS that failed or was cut */
	bool is_unspoken; /* ... since it offers no protocol of ours */
	enum side_probe probe;
	bool needs_in;  /* goes on when there are bytes */
	bool needs_out; /* goes on when there is room */
	bool is_spent;  /* there is more than `most` allows */
	uint64_t most;  /* so many bytes of HTTP may move, either way */
	size_t n_tried; /* TLS has begun to send these, and must send them */
	uint8_t *early; /* came before us, and comes first */
	size_t n_early, at_early;
	char *in;
	size_t in_at, in_len;
	struct buf out;
	size_t out_at;
	char *wire; /* records that go together; NULL: none did yet */
	size_t wire_at, wire_len;
	bool gathers;
	bool has_secret;      /* among the bytes to go */
	uint64_t n_in, n_out; /* bytes of HTTP */
};

/* Takes `fd` and `ssl`, also on failure. `early` is copied. 0 or -errno. */
int side_init(struct side *s, uv_loop_t *loop, int fd, SSL *ssl);
int side_early(struct side *s, const uint8_t *early, size_t n);
/* Stops watching and closes; the poll handle is closed with `cb`. */
void side_close(struct side *s, uv_close_cb cb);
/* Frees what is left; after `cb`. */
void side_done(struct side *s);

/* Shakes hands, sends and receives what it can; true: something moved. */
bool side_work(struct side *s, bool may_read);
/* Says that nothing follows, to the peer. */
void side_shut(struct side *s);
/* Reads and forgets; true: there may be more later. */
bool side_drain(struct side *s, uint64_t *n);
/* It has ended: finds out whether it has left, which breaks it. */
void side_probe(struct side *s);
/* Watches for what it needs to go on. */
void side_watch(struct side *s, bool may_read, uv_poll_cb cb);
/* Watches for nothing, until the next side_watch(). */
void side_rest(struct side *s);

static inline const char *side_data(const struct side *s, size_t *ret_len)
{
	*ret_len = s->in_len - s->in_at;
	return s->in + s->in_at;
}

void side_take(struct side *s, size_t n);
/* Drops the bytes to go. */
void side_forget(struct side *s);

static inline size_t side_room(const struct side *s)
{
	return s->out.max - s->out.len;
}

static inline bool side_is_flushed(const struct side *s)
{
	return s->out_at == s->out.len && s->wire_at == s->wire_len;
}
