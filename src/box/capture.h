/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A stream, kept within a limit: its first half and its last half.
 *
 * What comes is counted without end, kept up to `limit` bytes. The head takes
 * the first limit/2 bytes, the tail is a ring over the rest.
 */

#include <stddef.h>
#include <stdint.h>

struct capture {
	uint64_t total; /* all that came */
	uint64_t limit;
	char *head;
	size_t head_len;
	size_t head_cap;
	char *tail;
	size_t tail_cap; /* grows up to limit - limit/2 */
	uint64_t tail_total;
	int error;
};

void capture_init(struct capture *c, uint64_t limit);
void capture_done(struct capture *c);
void capture_add(struct capture *c, const char *data, size_t len);

/* How many bytes were not kept. */
uint64_t capture_missing(const struct capture *c);

/*
 * All that was kept, as one NUL-terminated string that the caller frees;
 * *ret_cut is where bytes are missing, if any are. NULL without memory.
 */
char *capture_take(struct capture *c, size_t *ret_len, size_t *ret_cut);
