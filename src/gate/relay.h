/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Bytes from one socket to another, one flow for each direction. A flow has
 * memory only while its sink takes no more; idle connections have none. The
 * end of one direction is passed on as such, the other goes on.
 *
 * They are copied, in blocks that stay in a processor's cache. splice(2) would
 * spare the copy and cost as much elsewhere: what reaches the box are then
 * single pages that another processor wrote a while ago, and its program needs
 * a third more time for a byte (measured with curl, two processors, 6.18).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct flow {
	int from;
	int to;
	uint8_t *rest;  /* that the sink did not take, or NULL ... */
	size_t at;      /* ... from here on ... */
	size_t held;    /* ... so many */
	bool is_barred; /* nothing may be read yet */
	bool is_ended;  /* the source said its end ... */
	bool is_shut;   /* ... and the sink was told */
	uint64_t moved; /* taken from the source */
	/* Sees what was read before it goes on. NULL: nobody has to. It may
	 * put another in its place for what comes next. */
	bool (*may_pass)(void *arg, const uint8_t *data, size_t len);
	void *arg;
};

enum flow_state {
	FLOW_ON,
	FLOW_QUOTA, /* there is more than `most` */
	FLOW_BROKEN,
	FLOW_REFUSED, /* by may_pass(), which has the bytes; none were given */
};

void flow_init(struct flow *f, int from, int to);
void flow_done(struct flow *f);

/* Moves what can be moved now, at most `most` bytes more than before. */
enum flow_state flow_pump(struct flow *f, uint64_t most);

/*
 * Whether a TCP socket has urgent data that was not passed yet. A look stops
 * at its mark, though epoll goes on to say that there is more, and recv(2)
 * leaves out the marked byte: nobody can judge or move such a stream as it
 * was meant, so the connection is broken off.
 */
bool relay_is_urgent(int fd);

/*
 * To TCP, a peer that has closed and one that has only said all that it wanted
 * to look the same, until something is sent: the first answers with a reset, at
 * once. So an urgent byte is sent, which is no part of the stream, and which
 * nobody reads. At most once for a socket: a second one would make the first an
 * ordinary byte.
 */
void relay_probe(int fd);

static inline bool flow_wants_read(const struct flow *f)
{
	return !f->is_barred && !f->is_ended && f->held == 0;
}

static inline bool flow_wants_write(const struct flow *f)
{
	return f->held > 0;
}
