/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A conversation for people: who speaks, what tools were called with, what
 * became of it, and at the end how it ended and what it cost.
 *
 * Pure: text goes into `out`, and the caller writes it where it likes
 * (console_flush()). All text of models, tools and files goes through
 * base/visible.h: none of it can steer the terminal.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct console {
	struct buf out;
	bool is_colour, is_stats;
	/* The message and the thought whose chunks are being shown. */
	char chunks_of[64], thoughts_of[64];
	bool is_mid_line;
	/* Counted for the summary. */
	int64_t started; /* us */
	int64_t turns, messages, tool_calls, denials, unknown;
	int64_t prompt, completion; /* tokens */
	double cost;
};

void console_init(struct console *c, bool is_colour, bool is_stats);
void console_done(struct console *c);
/* A message or an event of section 13 of the specification. */
void console_event(struct console *c, const json_t *event);
/* The TaskResult; `now` on the monotonic clock, in us. */
void console_result(struct console *c, const json_t *result, int64_t now);
/* 0 or -errno; what was written is gone from `out`. */
int console_flush(struct console *c, int fd);

/* Whether a result of a tool tells of a denial. */
bool console_is_denied(const json_t *result);
/* Of a call that was approved and may have been made, nobody knows how. */
bool console_is_unknown(const json_t *result);
