/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The assistant, for its own files.
 *
 *	assistant.c		the agent: settings, state
 *	assistant-turn.c	a turn: messages in, model, what comes next
 *	assistant-tools.c	one round of calls, handoffs
 *	assistant-answer.c	the answer: text, structured, repaired; the
 *summary
 */

#include "agent/agent.h"
#include "agent/memory.h"
#include "agent/work.h"

struct assistant {
	struct agent agent;
	json_t *config;
	struct model *model;
	struct belt belt;
	struct context *context;
	struct memory **memories;
	size_t n_memories;
	const char *system;
	json_t *handoffs; /* [{"name","target","description","message"}] */
	json_t *schema;   /* {"name","schema"} or NULL */
	bool is_reflecting;
	int64_t max_rounds;
	struct work *work; /* of the turn that goes on */
	json_t *loaded;
};

/* A turn. */
struct speech {
	struct work w;
	struct assistant *a;
	json_t *calls, *results; /* of all rounds */
	int64_t round;
	bool is_last;   /* asked to reflect: no more calls */
	json_t *repair; /* what is shown behind the history; NULL: nothing */
};

/* assistant-turn.c */
void assistant_begin(struct agent *agent, struct turn *t);
void assistant_resume(struct agent *agent, struct turn *t,
		      const json_t *suspended, const json_t *answer);
void assistant_abandon(struct agent *agent, struct turn *t);
void assistant_ask(struct speech *s);
void assistant_suspend(struct speech *s);

/* assistant-tools.c */
json_t *assistant_tools(const struct assistant *a);
void assistant_call(struct speech *s, const struct model_result *r);
/* The batch of this round, not started; NULL: no memory. */
struct batch *assistant_batch(struct speech *s, json_t *calls);
/* Those that have not ended are told as cancelled. */
void assistant_give_up(struct speech *s);
bool assistant_is_handoff(const struct assistant *a, const char *name);

/* assistant-answer.c */
void assistant_answer(struct speech *s, const struct model_result *r);
void assistant_summary(struct speech *s);
