/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An agent: it is given new messages and answers with one.
 *
 * Messages and events are JSON in the form of section 13 of the
 * specification, made and checked by chat.h; a type that is not known is
 * passed on unchanged. An agent keeps its own history; a turn that failed or
 * was cancelled leaves it as it was.
 *
 * A turn ends with exactly one of turn_done(), turn_fail(), turn_suspend().
 */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "loop/cancel.h"
#include "loop/fault.h"
#include "loop/loop.h"
#include "model/model.h"
#include "tool/tool.h"

struct agent;
struct screen;
struct tracer;
struct turn;

struct agent_ops {
	/* Ends with turn_done(), turn_fail() or turn_suspend(), later. */
	void (*begin)(struct agent *a, struct turn *t);
	/* Takes up a turn that was suspended; NULL: it never is. */
	void (*resume)(struct agent *a, struct turn *t, const json_t *suspended,
		       const json_t *answer);
	/*
	 * The turn was cancelled, and what it waits for did not end in time:
	 * puts the history back and never touches the turn again.
	 */
	void (*abandon)(struct agent *a, struct turn *t);
	void (*reset)(struct agent *a);
	/* For what it has that could start something by itself. */
	void (*pause)(struct agent *a, bool is_paused);
	json_t *(*save)(struct agent *a);
	int (*load)(struct agent *a, const json_t *state, struct err *err);
	json_t *(*dump)(struct agent *a); /* as a component's config */
	void (*free)(struct agent *a);
};

struct agent {
	const struct agent_ops *ops;
	struct loop *loop;
	char *name; /* [A-Za-z_][A-Za-z0-9_]* */
	char *description;
	bool is_paused;    /* starts no model or tool call while it is */
	struct task *held; /* what it starts when it goes on */
	struct turn *turn; /* the one that goes on, or NULL */
	/* The policy's filters on its calls and their results; NULL: none. */
	struct screen *screen;
	struct tracer *tracer; /* of turns, thoughts, calls; NULL: none */
	unsigned int depth;    /* of agents among its tools; 0: none */
	/* What summarises its history; NULL: its own model. */
	struct model *summariser;
};

/* agent.c; NULL everywhere: what the agent has none of. */
/* Hold a reference from now on; the first: runtime/filter-policy.h. */
void agent_set_screen(struct agent *a, struct screen *s);
void agent_set_summariser(struct agent *a, struct model *m);
void agent_pause(struct agent *a);
void agent_unpause(struct agent *a);
/* A turn that goes on ends as cancelled. */
void agent_reset(struct agent *a);
/* In the middle of a turn: as it was before it. */
json_t *agent_save(struct agent *a);
/* -EBUSY: it has a turn that goes on. */
int agent_load(struct agent *a, const json_t *state, struct err *err);
json_t *agent_dump(struct agent *a);
/* A turn that goes on is dropped: its asker hears nothing more. */
void agent_free(struct agent *a);

/*
 * turn.c; whoever asks an agent to speak makes one.
 *
 * Nothing is called from within turn_begin(). Events come while the agent
 * works, all of them before the end; the end comes once, from the loop, and
 * the turn is gone after it. An agent has one turn at a time; a second one
 * fails with `rejected`.
 *
 * When the token fires the agent has a second and a half to end what it waits
 * for; then the turn ends with the token's fault whatever the agent does, and
 * the agent can be asked again.
 */
struct turn_events {
	void (*event)(void *arg, json_t *event); /* borrowed */
	/* chat: the answer, or NULL; why: the fault, or NULL; pending: what
	 * has to be answered first, or NULL. Borrowed; one is not NULL. */
	void (*over)(void *arg, json_t *chat, const struct fault *why,
		     json_t *pending);
};
/* Who asks, and in what; the events and their arg stay, the rest is copied. */
struct turn_asker {
	const char *team, *run;
	struct cancel *cancel;
	const struct turn_events *events;
	void *arg;
};
/* NULL: no memory. */
struct turn *turn_begin(struct agent *a, json_t *messages,
			const struct turn_asker *who);
/* `suspended` is what was pending, `answer` what a person said to it. */
struct turn *turn_resume(struct agent *a, json_t *suspended, json_t *answer,
			 const struct turn_asker *who);
/* The asker goes: it hears nothing more; the agent is cancelled. */
void turn_drop(struct turn *t);
/* Right after turn_begin(): what the turn belongs to (runtime/trace.h). */
void turn_set_trace(struct turn *t, const char *traceparent);
/* For the agent. */
const char *turn_traceparent(const struct turn *t); /* NULL: none */
const json_t *turn_messages(const struct turn *t);
struct cancel *turn_cancel(const struct turn *t);
const char *turn_team(const struct turn *t);
const char *turn_run(const struct turn *t);
/*
 * Each takes over what it is given; NULL is what there was no memory for, and
 * makes the turn fail.
 */
void turn_event(struct turn *t, json_t *event);
void turn_done(struct turn *t, json_t *chat);
void turn_fail(struct turn *t, const struct fault *why);
/* {"kind":"approval"|"input", "id", ..., "state": the agent's own} */
void turn_suspend(struct turn *t, json_t *pending);

/*
 * chat.c: making messages and events; each has id, source, created_at. Takes
 * over `fields`, which win; NULL there: no memory, and so is the answer.
 */
json_t *chat_text(const char *source, const char *content);
json_t *chat_new(const char *type, const char *source, json_t *fields);
void chat_set_usage(json_t *chat, const struct model_usage *u);
bool chat_is_message(const json_t *chat); /* else an event */
/* A piece of what comes as a whole later; no part of a result. */
bool chat_is_chunk(const json_t *chat);
const char *chat_type(const json_t *chat);
const char *chat_source(const json_t *chat);
/* What a model or a person reads; the caller frees it. */
char *chat_to_text(const json_t *chat);
/* In the neutral form of model/model.h; NULL: nothing to say to a model. */
json_t *chat_to_model(const json_t *chat);
int chat_check(const json_t *chat, struct err *err);

/* context.c: what of the history a model sees. */
struct context;
/*
 * {"kind":"unbounded"|"last"|"head_tail"|"tokens", "n","head","tail","max"} or
 * {"kind":"summary","messages","tokens","keep","prompt"}: see parts.h
 */
int context_new(const json_t *config, const struct model *m,
		struct context **ret, struct err *err);
void context_free(struct context *c);
void context_add(struct context *c, json_t *message); /* takes it over */
json_t *context_messages(const struct context *c);    /* a new list */
/* What was added since; a new list, or NULL. */
json_t *context_since(const struct context *c, size_t mark);
/* A turn begins: to here it can be taken back. */
size_t context_mark(struct context *c);
void context_rewind(struct context *c, size_t mark);
void context_clear(struct context *c);
json_t *context_save(const struct context *c);
/* As it was at the last mark. */
json_t *context_save_before(const struct context *c, size_t mark);
int context_load(struct context *c, const json_t *state, struct err *err);

/*
 * --- kinds; `config` is the component's ---
 *
 * Each has its own reference to the model. The toolset is taken over where
 * the agent was made, and freed with it. A setting that is not known is an
 * error, and says where it stands: "/max_tool_iterations: ...".
 */
int agent_assistant(struct loop *l, const char *name, const json_t *config,
		    struct model *m, struct toolset *tools, struct agent **ret,
		    struct err *err);
/* `executor` is a tool that takes {"blocks":[...]}: tool_code("run_code"). */
int agent_executor(struct loop *l, const char *name, const json_t *config,
		   struct model *m, struct toolset *tools, struct agent **ret,
		   struct err *err);
/*
 * Asks a person: by `ask` where given, else it suspends. `ask` calls `done`
 * exactly once, now or later; with NULL when there is no answer, because the
 * token has fired or the person left.
 */
typedef void user_answer_fn(void *arg, const char *answer);
struct user_prompt {
	void (*ask)(void *arg, const char *prompt, struct cancel *cancel,
		    user_answer_fn *done, void *done_arg);
	void *arg;
};
int agent_user(struct loop *l, const char *name, const json_t *config,
	       const struct user_prompt *prompt, struct agent **ret,
	       struct err *err);

/*
 * --- agent-tool.c: an agent as a tool of another ---
 *
 * {"task"}: the agent hears it from who calls, and its answer is the result.
 * It is under the policy, and in the records, by its own name; what it uses
 * counts where its caller's does; what it asks people suspends its caller. It
 * remembers earlier calls, until its caller is reset. Takes it over where the
 * tool was made. -E2BIG: more than AGENT_DEPTH_MAX agents within each other.
 */
#define AGENT_DEPTH_MAX 4
int tool_agent(struct agent *inner, struct tool **ret, struct err *err);
