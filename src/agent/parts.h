/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the kinds of agents share. */

#include "agent/agent.h"
#include "base/util.h"

/* agent.c */
bool agent_name_check(const char *name);
/* `config` may have a description. */
int agent_init(struct agent *a, const struct agent_ops *ops, struct loop *l,
	       const char *name, const json_t *config, struct err *err);
void agent_done(struct agent *a);
/*
 * Runs the task soon, or when the agent goes on. The task begins with
 * agent_is_held(): the agent may have been paused meanwhile.
 */
void agent_go(struct agent *a, struct task *t);
bool agent_is_held(struct agent *a, struct task *t);
void agent_let_go(struct agent *a, struct task *t);

/* The end of a turn, at once, as if its token had fired for this reason. */
void turn_stop(struct turn *t, const char *reason);
/* Whether something was lost for want of memory: the turn must not count. */
bool turn_is_short(const struct turn *t);
bool context_is_short(const struct context *c);

/*
 * A context of the kind `summary`. It never asks a model itself: whoever asks
 * one about the history looks first whether there is too much of it, has the
 * beginning of it summarised and says what came of that. Until then, and where
 * nothing came of it, older messages are left out, and a note says how many.
 */
/* How many messages at the beginning are due; 0: none, < 0: no memory. */
ssize_t context_due(const struct context *c);
/* The request that has them summarised, with what stands for the others
 * already: [system, user]; NULL: no memory. */
json_t *context_ask(const struct context *c, size_t upto);
/* From now on the text stands for them; it is cut where it is very long. */
int context_sum_up(struct context *c, size_t upto, const char *text);
/* What was summed up in the turn that goes on, for one that suspends; borrowed,
 * NULL: nothing. And the other way. */
const json_t *context_summed(const struct context *c);
int context_restore(struct context *c, const json_t *summed);

/* config.c: a component's settings, by a table. */
enum setting_kind {
	SETTING_ANY,
	SETTING_TEXT,
	SETTING_BOOL,
	SETTING_COUNT, /* an integer >= 0 */
	SETTING_POSITIVE,
	SETTING_MONEY, /* a number > 0 */
	SETTING_LIST,
	SETTING_OBJECT,
	SETTING_APPROVAL,
};

struct setting {
	const char *name;
	enum setting_kind kind;
};

/* NULL and null are an empty config. */
int settings_check(const json_t *config, const struct setting *table, size_t n,
		   struct err *err);
const char *setting_text(const json_t *config, const char *name,
			 const char *fallback);
int64_t setting_int(const json_t *config, const char *name, int64_t fallback);
bool setting_bool(const json_t *config, const char *name, bool fallback);

/*
 * Saved state: an object with its type and version. What a loader does not
 * know is kept: saved_new() begins with what was loaded.
 */
json_t *saved_new(const char *type, int version, const json_t *loaded);
int saved_check(const json_t *state, const char *type, int version,
		struct err *err);

/*
 * rest.c: the same for a state of many parts. What was loaded and is not
 * written again (NULL: nothing); what is written, and the rest, which takes
 * over `state`. Neither changes what it is given; NULL and -ENOMEM: no memory.
 */
int saved_rest(const json_t *loaded, const json_t *written, json_t **ret);
json_t *saved_join(json_t *state, const json_t *rest);
