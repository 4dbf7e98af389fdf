/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Asking an agent's model within a turn: what it is shown, what it may cost,
 * and what it answers.
 *
 * A struct think is part of the agent's own record of the turn. Its limits
 * hold for the whole turn and are hard: a call whose prompt alone would pass
 * one is not made. No call starts while the agent is paused. A history that
 * is too long is summarised first, where its context does that.
 *
 * The ids of the answer and of the thought before it are made before the call,
 * so that the chunks can say to which of them they belong; whoever makes the
 * message gives it `id`, and the event `thought_id`.
 */

#include "agent/chat.h"
#include "agent/parts.h"

struct think {
	/* The owner's, before the first call. */
	struct agent *agent;
	struct turn *turn;
	struct model *model;
	struct context *context;
	json_t *reminders; /* shown before the history; owned; NULL: none */
	int64_t max_tokens;
	double max_cost; /* 0: no limit */
	bool is_stream;
	/* Exactly one of the two; from the loop. */
	void (*done)(struct think *k, const struct model_result *r,
		     const struct fault *why);

	struct model_usage used; /* in this turn so far */
	char id[CHAT_ID], thought_id[CHAT_ID];

	/* think.c's own */
	const char *system;
	json_t *after, *tools, *schema;
	const char *choice;
	struct span *span;
	struct model_call *call;
	struct task step;

	/* condense.c's own */
	size_t due; /* messages that are summarised now */
	bool cannot_condense;
};

struct think_about {
	const char *system;    /* NULL: none; stays until the end */
	json_t *after;         /* shown behind the history; NULL: nothing */
	json_t *tools;         /* NULL: none */
	const char *choice;    /* as of struct model_request */
	json_t *output_schema; /* {"name","schema"} or NULL */
};

/* Takes references of what it is given. One call at a time. */
void think_start(struct think *k, const struct think_about *q);
/* Nothing is called any more. */
void think_done(struct think *k);

/*
 * condense.c: has the history's beginning summarised where it is due; false:
 * nothing is asked. Then, or when that is over, it is the step's turn.
 */
bool think_condense(struct think *k);

/* think.c, for condense.c */
/* The call is over: its span, and what it used. */
void think_paid(struct think *k, const struct model_result *r,
		const struct fault *why);
/* Whether the prompt alone would pass a limit of the turn. */
bool think_is_too_much(const struct think *k, const struct model *m,
		       const struct model_request *q, struct fault *why);
