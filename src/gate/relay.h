/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Bytes from one socket to another without touching them: splice(2) through a
 * pipe, one flow for each direction. A flow has a pipe only while something is
 * on its way; idle connections have none. The end of one direction is passed
 * on as such, the other goes on.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pipes;

/* Pipes that are not in use are kept, a few of them. */
struct pipes *pipes_new(void);

struct flow {
	int from;
	int to;
	int pipe[2];
	size_t held;    /* in the pipe */
	bool is_barred; /* nothing may be read yet */
	bool is_ended;  /* the source said its end ... */
	bool is_shut;   /* ... and the sink was told */
	uint64_t moved; /* taken from the source */
};

enum flow_state {
	FLOW_ON,
	FLOW_QUOTA, /* there is more than `most` */
	FLOW_BROKEN,
};

void flow_init(struct flow *f, int from, int to);
void flow_done(struct flow *f, struct pipes *p);

/* Moves what can be moved now, at most `most` bytes more than before. */
enum flow_state flow_pump(struct flow *f, struct pipes *p, uint64_t most);

/*
 * Whether a TCP socket has urgent data that was not passed yet. At its mark
 * a look and splice(2) stop, though epoll goes on to say that there is more:
 * nobody can judge or move what follows, so such a connection is broken off.
 */
bool relay_is_urgent(int fd);

static inline bool flow_wants_read(const struct flow *f)
{
	return !f->is_barred && !f->is_ended && f->held == 0;
}

static inline bool flow_wants_write(const struct flow *f)
{
	return f->held > 0;
}
