/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One call of a tool, from its want to its outcome; what the files of the
 * toolset share.
 *
 *	toolset_call()  copies what is wanted, queues call_begin()
 *	call_begin()    finds the tool, asks the policy, reads the arguments
 *	call_ask()      where a person must be asked; may end as suspended
 *	call_run()      makes the call; the tool ends it with tool_done()
 *	call_end()      records, cuts, tells the caller; from the loop
 *
 * A call whose tool does not stop when it is told to has its outcome after
 * a moment nevertheless; it stays in the list until the tool is done with it.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "box/approve.h"
#include "tool/tool.h"

#define CALL_MAX_TOOLS     256
#define CALL_MAX_ARGUMENTS (1U << 20)
#define CALL_MAX_RESULT    (64U << 10) /* unless the tool says */
#define CALL_GRACE_US      2000000     /* for a tool that was cancelled */
#define CALL_TIMEOUT_US    600000000LL /* unless the tool says */
#define CALL_PROGRESS      (64U << 10) /* bytes told of one call */
#define CALL_EXPIRE_MS     86400000ULL /* of a request, unless the policy says */

struct ledger;

struct toolset {
	struct loop *loop;
	struct policy *policy;
	bool is_interactive;
	void (*event)(void *arg, const json_t *event);
	void *arg;
	struct tool *tools[CALL_MAX_TOOLS];
	size_t n_tools;
	struct workbench **benches;
	size_t n_benches, n_started;
	struct call *calls;
	struct ledger *ledger; /* opened with the first record */
	bool is_ending;
};

struct call {
	struct tool_call c; /* what the tool sees */
	struct toolset *set;
	struct call *next, **at; /* in the set's list */
	struct tool *tool;
	/* what was wanted */
	char *id, *name, *arguments, *agent, *team, *run, *approval, *context;
	char *traceparent;
	json_t *suspended, *reply;
	void (*event)(void *arg, json_t *event);
	void *event_arg;
	void (*done)(void *arg, const struct tool_outcome *o);
	void *arg;
	json_t *args;
	/* what was decided */
	const struct policy_tool *rule; /* NULL: none names it */
	struct policy_value narrow[POLICY_NUMBERS];
	bool always_asks, never_asks; /* by the policy */
	const char *rule_text;        /* which rule decided */
	enum decision decision;
	char why[600];
	struct tool_judgement judged;
	struct approve_answer answer;
	bool was_asked;
	bool is_unknown; /* it was approved before, and perhaps made */
	bool must_ask;   /* the agent's own word */
	json_t *record;  /* of the approval */
	/* what goes on */
	void (*step)(struct call *c);
	struct task task;
	struct cancel *parent;
	struct cancel *token;
	struct cancel_hook hook;
	struct timer grace;
	struct approval *asking;
	struct watch watch;
	bool is_watching;
	bool is_running;  /* the tool has it */
	bool has_outcome; /* the caller will be told, or was */
	bool is_told;
	int64_t begun;
	size_t told; /* bytes of progress */
	struct tool_outcome outcome;
};

/* Does `step` from the loop. */
void call_soon(struct call *c, void (*step)(struct call *c));
/* An error result, and the end. */
void call_refuse(struct call *c, const char *fmt, ...) PRINTF(2, 3);
/* Takes the result over; what comes second is thrown away. */
void call_take(struct call *c, struct tool_result *r);
void call_suspend(struct call *c);
/* What the tool says about it, and the rules; may be done again. */
int call_judge(struct call *c, struct err *err);
void call_run(struct call *c);
void call_free(struct call *c);
void call_event(struct call *c, json_t *event); /* takes it over */

/* rules.c: which agent may call which tool, and which calls ask */
int rules_find(struct call *c, struct err *err);
bool rules_give(const struct policy *p, const struct tool *t,
		const char *agent);
void rules_decide(struct call *c);

/* ask.c */
void call_ask(struct call *c);
/* The caller wants no answer any more: the request is withdrawn. */
void call_ask_cancel(struct call *c);
/* No process is left that asks; the request waits on. */
void call_ask_end(struct call *c);

/* toolset.c */
void tool_free(struct tool *t);
bool tool_name_check(const char *name);

/* record.c: on the ledger; 0, or -errno and it does not count */
int record_decision(struct call *c, struct err *err);
int record_call(struct call *c, const char *status, struct err *err);

/* result.c */
json_t *result_text(const char *text, size_t len);
/* Cuts the texts to so many bytes in all, and says so where it did. */
void result_cut(struct tool_result *r, size_t max);
void result_set(struct tool_result *r, bool is_error, const char *text);
/* All of its text, for the record; may be empty. */
char *result_all_text(const struct tool_result *r);

/* image.c */
#define IMAGE_MAX  (2U << 20) /* bytes of one, before base64 */
#define IMAGES_MAX 4          /* in one result */
/* By its first bytes; NULL: none that models see. */
const char *image_mime(const void *data, size_t len);
/* A part of a result; NULL: it is none, or no memory. */
json_t *image_part(const void *data, size_t len);
/* What an image part stands for; the caller has *ret to release, always. */
int image_bytes(const json_t *part, struct buf *ret);
/* Those that a model may not get become a text. */
void result_check_images(struct tool_result *r);
/* A JSON list of parts; NULL and *err. */
json_t *result_parts(const char *text, struct err *err);
