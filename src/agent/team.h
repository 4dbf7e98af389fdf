/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A team: agents that take turns at a task until a condition says stop.
 *
 * The manager and each participant are actors of the runtime, on the topics
 * "<team>.group", "<team>.<participant>" and "<team>.output" (participant.c,
 * manager.c): a team does not know on which bus it is. Who speaks next is the
 * one thing kinds of teams differ in (struct team_kind).
 */

#include "agent/agent.h"
#include "runtime/runtime.h"

struct team;
struct termination;
struct setting;
struct checkpoints;

/* Who is next; names are those of participants. */
struct speaker_choice {
	void (*done)(void *arg, json_t *names, const struct fault *why);
	void *arg;
};
struct team_kind {
	const char *name;               /* "round_robin", "selector" */
	const struct setting *settings; /* parts.h: what its config may have */
	size_t n_settings;
	int (*make)(struct team *t, const json_t *config, void **ret,
		    struct err *err);
	/* `thread` is all there is to know; ends with choice.done(), later. */
	void (*next)(void *own, const json_t *thread, struct cancel *cancel,
		     struct speaker_choice choice);
	void (*reset)(void *own);
	json_t *(*save)(void *own);
	int (*load)(void *own, const json_t *state, struct err *err);
	void (*free)(void *own);
};
extern const struct team_kind team_round_robin, team_selector;
/*
 * For the selector's selector_func and candidate_func, one table of the
 * process: a new list of names, or NULL for nobody.
 */
typedef json_t *speaker_fn(void *arg, const json_t *thread, struct fault *why);
int selector_register(const char *name, speaker_fn *fn, void *arg,
		      struct err *err);
bool selector_has_function(const char *name);

struct team_options {
	struct runtime *runtime;
	const char *name, *description;
	const struct team_kind *kind;
	/*
	 * max_turns, budget {tokens, cost, wall_seconds, tool_calls},
	 * on_agent_error (stop, skip, retry), max_retries (2),
	 * emit_team_events, output_task_messages (true), and the kind's own.
	 */
	const json_t *config;
	struct agent **agents; /* taken over */
	size_t n_agents;
	struct termination *stop; /* taken over; NULL: none */
	struct model *model;      /* of the selector, taken over; NULL: none */
};
int team_new(const struct team_options *o, struct team **ret, struct err *err);
/* Before its runtime. A run that goes on ends unheard. */
void team_free(struct team *t);
struct agent *team_agent(struct team *t, const char *name);
size_t team_size(const struct team *t);
const char *team_member(const struct team *t, size_t i);

/* Of the run that goes on or was the last; NULL: there was none. */
const char *team_run_id(const struct team *t);

struct team_events {
	void (*event)(void *arg, json_t *event); /* in order, borrowed */
	void (*over)(void *arg, json_t *result); /* the TaskResult, borrowed */
};
/* `task`: a list of chat messages; NULL: go on. -EBUSY: it runs already. */
int team_run(struct team *t, json_t *task, struct cancel *cancel,
	     const struct team_events *e, void *arg, struct err *err);
/*
 * Goes on where it was suspended or where its checkpoint was written;
 * `answers`: {pending id: answer}, NULL: none. A run that had ended goes on
 * as by team_run() without a task.
 */
int team_resume(struct team *t, json_t *answers, struct cancel *cancel,
		const struct team_events *e, void *arg, struct err *err);
void team_pause(struct team *t);
void team_unpause(struct team *t);
/* -EBUSY: it runs. */
int team_reset(struct team *t, struct err *err);
/* At any time; a turn that goes on has not happened then. */
json_t *team_save(struct team *t);
/* Into a team made the same way. On failure it is as it was. */
int team_load(struct team *t, const json_t *state, struct err *err);
/*
 * Writes a checkpoint after every turn and at the end of each run; `c` and
 * `about` (the caller's, kept in each of them) are borrowed and referenced.
 */
void team_keep(struct team *t, struct checkpoints *c, json_t *about);
/* The one it was loaded from, so that the next one is its child. */
void team_set_checkpoint(struct team *t, const char *id);

/* Whether a run waits for people, or was cut and can go on. */
bool team_is_open(const struct team *t);
const char *team_name(const struct team *t);
const char *team_description(const struct team *t);

/*
 * team-tool.c: a team as a tool of an agent, as tool_agent(); each call is a
 * run. Takes it over where the tool was made.
 */
int tool_team(struct team *inner, struct tool **ret, struct err *err);

/* termination.c */
struct stop_facts {
	const json_t *fresh; /* messages and events of the turn */
	bool is_task;        /* ... or the start messages of a run */
	int64_t started;     /* of the run, monotonic us */
	int64_t now;
	double cost; /* of the run so far */
	int64_t tool_calls, errors;
	int64_t box_cpu_ms, box_memory; /* of sandboxes; peak */
};
/*
 * {"max_messages":{"n":10}}, {"any":[...]}, {"all":[...]} ... A bare value is
 * the condition's first argument: {"max_messages":10}.
 */
int termination_new(const json_t *config, struct termination **ret,
		    struct err *err);
void termination_free(struct termination *t);
/* NULL: go on; else the reason, the caller's. -> *ret_fault when misused */
char *termination_check(struct termination *t, const struct stop_facts *f,
			struct fault *ret_fault);
/* When it will fire by time alone; 0: never. */
int64_t termination_deadline(const struct termination *t, int64_t started);
void termination_set(struct termination *t); /* the external ones */
void termination_reset(struct termination *t);
json_t *termination_save(const struct termination *t);
int termination_load(struct termination *t, const json_t *state,
		     struct err *err);
json_t *termination_dump(const struct termination *t);
/* For the condition {"function":{"name":...}}; one of the process. */
typedef bool termination_fn(void *arg, const json_t *fresh, struct fault *why);
int termination_register(const char *name, termination_fn *fn, void *arg,
			 struct err *err);
bool termination_has_function(const char *name);
