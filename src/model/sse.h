/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Server-sent events, from bytes in pieces of any size. Pure.
 *
 * A line ends with LF, CR or CRLF; an empty line ends an event. Lines with a
 * colon first are comments (keep-alives). Several `data` lines of one event
 * are joined with LF. An event without data is none.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct sse {
	struct buf line; /* what has come of an unfinished line */
	struct buf data;
	char name[32];  /* `event:`, cut to fit */
	bool has_data;  /* of the event that is being read */
	bool skip_lf;   /* the last byte was a CR */
	bool has_begun; /* a byte order mark may be left out no more */
	/* `data` is followed by a NUL. May call sse_stop(). */
	void (*event)(void *arg, const char *name, const char *data,
		      size_t len);
	void *arg;
	bool is_stopped;
};

/* No line and no event is longer than max. */
void sse_init(struct sse *s, size_t max,
	      void (*event)(void *arg, const char *name, const char *data,
			    size_t len),
	      void *arg);
void sse_done(struct sse *s);

/* 0, or -E2BIG or -ENOMEM; after that nothing more may be fed. */
int sse_feed(struct sse *s, const char *data, size_t len);
/* The stream has ended by itself: what no empty line ended is told too. */
int sse_end(struct sse *s);
/* No more events; what is fed is passed over. */
void sse_stop(struct sse *s);
