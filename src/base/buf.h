/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A byte buffer with a ceiling that is named at its birth.
 *
 *	struct buf b;
 *
 *	buf_init(&b, 1 << 20);
 *	buf_puts(&b, "text");
 *	...
 *	buf_done(&b);
 *
 * An append that would pass the ceiling, or that finds no memory, adds
 * nothing, returns -E2BIG or -ENOMEM and is remembered in b->error, so a
 * caller may append many times and look once. `data` is always followed by a
 * NUL that does not count, once something was appended.
 */

#include <stddef.h>

#include "base/err.h"

struct buf {
	char *data;
	size_t len;
	size_t cap;
	size_t max;
	int error;
};

void buf_init(struct buf *b, size_t max);
void buf_done(struct buf *b);

int buf_add(struct buf *b, const void *data, size_t len);
int buf_puts(struct buf *b, const char *text);
int buf_printf(struct buf *b, const char *fmt, ...) PRINTF(2, 3);

/* Moves the bytes out; the caller frees them. NULL if nothing was added. */
char *buf_take(struct buf *b);
