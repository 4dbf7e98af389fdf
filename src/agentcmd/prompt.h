/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A line from the person at standard input, without blocking the loop. */

#include <stdbool.h>

#include "agent/agent.h"
#include "base/buf.h"

struct prompt {
	struct loop *loop;
	struct watch watch;
	struct task task; /* where standard input cannot be watched: a file */
	struct cancel_hook hook;
	bool is_watching, is_hooked, is_ended;
	struct buf line;
	user_answer_fn *done;
	void *arg;
};

void prompt_init(struct prompt *p, struct loop *l);
void prompt_done(struct prompt *p);
/*
 * Of struct user_prompt; `arg` is a struct prompt. One question at a time; the
 * answer is NULL where there is none: the end of the input, or a cancel.
 */
void prompt_ask(void *arg, const char *prompt, struct cancel *cancel,
		user_answer_fn *done, void *done_arg);
