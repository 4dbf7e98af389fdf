/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The standard input that a block brings: a pipe, filled from the work while
 * the program runs, and closed at its end.
 *
 *	feed_open() -> read end for the program; poll feed.fd for POLLOUT,
 *	feed_more() each time; feed_close() when the program is over
 */

#include <stddef.h>

#include "box/wire.h"

struct feed {
	int fd; /* write end, NO_FD: nothing is left to write */
	const char *data;
	size_t left;
};

/* The read end, or -errno. */
int feed_open(struct feed *f, const struct wire_work *work,
	      const struct wire_step *step);
void feed_more(struct feed *f);
void feed_close(struct feed *f);
