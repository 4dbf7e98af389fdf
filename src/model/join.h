/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Text that comes in pieces, where a piece may end within a character.
 *
 * The text is valid UTF-8 at every moment and has no NUL: an unfinished
 * character waits for the next piece, and what can be none is U+FFFD.
 *
 * A server that cuts a character in two sends JSON that is no UTF-8.
 * join_hold() makes it readable: bytes that belong to no character become
 * characters of a private range, which join_add() turns back into bytes.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct join {
	struct buf text;
	char tail[4];
	size_t n_tail;
	size_t told; /* how much of the text join_more() has given out */
};

void join_init(struct join *j, size_t max);
void join_done(struct join *j);
/* is_held: it went through join_hold(). 0, -E2BIG or -ENOMEM. */
int join_add(struct join *j, const char *data, size_t len, bool is_held);
/* No more comes: an unfinished character is U+FFFD. */
int join_end(struct join *j);
/* What was added since the last time. */
const char *join_more(struct join *j, size_t *ret_len);

/* True: it was no UTF-8, and *out has it in the form above. */
bool join_hold(struct buf *out, const char *data, size_t len);
