/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What lasts as long as a turn of an agent that thinks or calls: the place
 * in its history to go back to, the model's call, the tools' calls.
 *
 * It is the first member of the kind's own record, which the agent has one of
 * at a time. It ends by work_finish(), work_fail(), work_suspend() or
 * work_drop(), and is gone after that: callers return at once. Only the first
 * of them leaves in the history what the turn has added.
 */

#include "agent/batch.h"
#include "agent/parts.h"
#include "agent/think.h"

struct work {
	struct agent *agent;
	struct context *context;
	struct turn *turn;
	size_t mark; /* of the context, before the turn */
	struct think think;
	struct batch *batch;
	struct toolset *tools; /* of work_tools(), or NULL */
	json_t *tools_were;    /* what a turn that fails puts back */
	struct work **place;   /* where the agent has it */
	/* Releases what the kind has beside this, not the memory. */
	void (*release)(struct work *w);
};

/*
 * `size` is that of the kind's record; settings of the config are those of
 * struct think. model may be NULL. NULL: no memory.
 */
struct work *work_new(size_t size, struct work **place, struct agent *a,
		      struct context *c, struct model *m, struct turn *t);
void work_limits(struct work *w, const json_t *config);
/* Before anything else: the tools are started. false: the turn has failed. */
bool work_tools(struct work *w, struct toolset *set);
void work_finish(struct work *w, json_t *chat); /* takes it over */
void work_fail(struct work *w, const struct fault *why);
/* What failed for want of memory. */
void work_fail_short(struct work *w);
/* The token has fired. */
void work_fail_cancelled(struct work *w);
/* The turn is forgotten, the history as it was. */
void work_drop(struct work *w);
/* As the agent's next word, under the id that the chunks had where there is
 * usage: then it is what the model said. Takes over `fields`. */
json_t *work_chat(struct work *w, const char *type, json_t *fields,
		  const struct model_usage *u);
/* What the model thought, if anything. */
void work_thought(struct work *w, const struct model_result *r);
/* In the history: the model's text. */
void work_keep(struct work *w, const struct model_result *r);
/* The model gave neither text nor calls. */
void work_fail_empty(struct work *w, const struct model_result *r);
/* Adds a message of others, and what a handoff brings. */
void work_hear(struct work *w, const json_t *chat);

/*
 * The context without what a turn that goes on has added: it counts when it
 * is done. w may be NULL. A new document, or NULL.
 */
json_t *work_save(const struct work *w, const struct context *c);

/* The settings `approval` and `parallel`. */
void work_calls(struct work *w, const json_t *config);

/*
 * work-suspend.c: the turn waits for a person. Takes over `state`, the kind's
 * own; added to it are the turn's part of the history, the calls, and what
 * was used.
 */
void work_suspend(struct work *w, json_t *state);
/* The other way; false: it is no such state, and the turn has failed. */
bool work_resume(struct work *w, const char *type, int version,
		 const json_t *suspended, const json_t *answer);
/* A list of the state into a list of the work; -EINVAL: it is none. */
int work_list(json_t *to, const json_t *state, const char *name);
