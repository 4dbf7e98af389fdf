/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The code executor agent, for its own files.
 *
 *	executor.c		the agent: settings, state
 *	executor-turn.c		a turn: what is asked, run, asked again
 *	executor-text.c		blocks out of text, and text out of results
 *
 * Without a model it runs the blocks of the messages it is given. With one,
 * the model writes them, sees what came of it, may try again, and answers.
 */

#include "agent/agent.h"
#include "agent/work.h"

struct executor {
	struct agent agent;
	json_t *config;
	struct model *model; /* NULL: it runs what others wrote */
	struct belt belt;
	struct context *context;
	const char *system;
	const char *tool; /* that runs code */
	json_t *languages;
	int64_t max_retries;
	struct work *work;
	json_t *loaded;
};

/* A turn. */
struct attempt {
	struct work w;
	struct executor *e;
	int64_t n; /* retries so far */
};

/* executor-turn.c */
void executor_begin(struct agent *agent, struct turn *t);
void executor_resume(struct agent *agent, struct turn *t,
		     const json_t *suspended, const json_t *answer);
void executor_abandon(struct agent *agent, struct turn *t);

/* executor-text.c */
bool executor_reads(const struct executor *e, const json_t *chat);
/* Adds the blocks of a text to the list; -ENOMEM. */
int executor_find(const struct executor *e, const char *text, json_t *list);
/* [{"id","name","arguments"}]: the one call that runs them all. */
json_t *executor_calls(const struct executor *e, const json_t *blocks);
/* The executor's result, made up where the call had none. */
json_t *executor_result(const json_t *detail, const json_t *result);
bool executor_is_good(const json_t *result);
/* What is said of it in a conversation; the caller frees it. */
char *executor_report(const json_t *result);
char *executor_no_code(const struct executor *e);
