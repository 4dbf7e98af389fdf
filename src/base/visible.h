/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Text of a box, a model or a policy, made fit to be shown to a person.
 *
 * Whatever could steer a terminal, hide itself, or show text in another order
 * than it is read in by a machine is written out: controls, format and bidi
 * characters, letters that are written from right to left, blanks other than
 * the space, combining marks, private and unassigned ranges, bytes that are
 * no UTF-8. Pure; errors stay in the buffer.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Of one word or one line: what is longer is cut, and that is told. */
#define VISIBLE_WORD 512

/* Whether this character may stand as it is. A space may, a newline not. */
bool visible_check(uint32_t c);

/* On one line, strange characters as <U+202E>, bytes as <0xFF>. */
void visible_text(struct buf *out, const void *data, size_t len, size_t max);

/*
 * One word of a command, in a form from which a shell would read exactly this
 * word: bare, in quotes, or as $'...' with escapes.
 */
void visible_word(struct buf *out, const char *word, size_t max);

/*
 * Several lines, each with `gutter` before it, at most `max` bytes of them.
 * Tabs that indent are spaces, 8 a tab.
 */
void visible_lines(struct buf *out, const void *data, size_t len,
		   const char *gutter, size_t max);

/* SHA-256 as 64 hexadecimal digits and a NUL. */
void visible_sha256(const void *data, size_t len, char ret[65]);
