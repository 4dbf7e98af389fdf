/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A question on the controlling terminal.
 *
 * One at a time on each terminal: a lock in the state directory, or an answer
 * could reach a question other than the one on the screen. What was typed
 * before the question is thrown away. A process in the background does not
 * ask; the terminal's settings are as before after terminal_close().
 */

#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

#include "desk/state.h"

enum reply {
	REPLY_NONE, /* nothing yet */
	REPLY_ONCE,
	REPLY_SESSION,
	REPLY_ALWAYS,
	REPLY_DENY, /* with a reason, maybe empty */
	REPLY_VIEW, /* all of the text is wanted */
	REPLY_GONE, /* it can no longer be read */
};

struct terminal {
	int fd;
	int lock;
	bool is_asking;
	bool is_changed; /* settings */
	bool wants_reason;
	int tries;
	char reason[400];
	char name[32]; /* "pts/3" */
	struct termios before;
};

/* 0, or -ENXIO where there is none, or it is not ours to read. */
int terminal_open(struct terminal *t, const struct state *s);
void terminal_close(struct terminal *t);

/* Shows the text and asks; false: another question is on the screen. */
bool terminal_ask(struct terminal *t, const char *text, size_t len,
		  bool has_session);
/* The question again, without the text. */
void terminal_prompt(struct terminal *t, const char *note, bool has_session);
/* When it can be read. */
enum reply terminal_read(struct terminal *t);
