/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Foreign text on the console: made visible, with tabs and lines kept. */

#include "agentcmd/console.h"

enum paint {
	PAINT_NONE,
	PAINT_HEAD,
	PAINT_DIM,
	PAINT_CALL,
	PAINT_GOOD,
	PAINT_WARN,
	PAINT_BAD,
	PAINTS
};

void paint(struct console *c, enum paint p);
/* On one line. */
void put_word(struct console *c, const char *text);
/* Several lines, each behind `gutter`; ends with a newline. */
void put_lines(struct console *c, const char *text, const char *gutter);
/* A piece of running text, which may end anywhere. */
void put_running(struct console *c, const char *text);
/* Arguments of a call: code as lines, the rest as JSON. */
void put_arguments(struct console *c, const char *json);
