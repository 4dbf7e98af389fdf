/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Tools: what a model can call.
 *
 * A tool has a name, a description, a JSON schema of its arguments, and a
 * call. Tools are kept in a toolset, which is the only way to call one: it
 * parses and validates the arguments, asks the policy which agent may call
 * what, asks a person where that is said, records, bounds time and size, and
 * turns everything that can go wrong into an error result that the model can
 * read. Every call gets exactly one outcome.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strv.h"
#include "loop/cancel.h"
#include "loop/fault.h"
#include "loop/loop.h"
#include "policy/policy.h"

struct approve_answer;
struct tool;
struct tool_call;

enum tool_approval { APPROVAL_POLICY, APPROVAL_ALWAYS, APPROVAL_NEVER };

struct tool_result {
	/*
	 * A list of {"type":"text","text"}, {"type":"json","json"} and
	 * {"type":"image","mime","data"} (PNG, JPEG, GIF, WebP, in base64).
	 */
	json_t *content;
	bool is_error;
	json_t *detail; /* of a box: its result document; NULL */
};

/*
 * How the text begins of a call that may have been made: it was approved, and
 * whoever made it ended before it could tell. It is not made a second time.
 */
#define TOOL_UNKNOWN "Tool call was not made again."

/* What a tool says about one call before it is made. */
struct tool_judgement {
	enum decision decision; /* by the policy; deny: nobody is asked */
	const char *cause; /* of a denial, as a result has it; NULL: denied */
	bool crosses;      /* the wall: something of the host can change */
	char why[480];
	char *text;          /* instead of the arguments; NULL: those */
	struct strv changes; /* limits, mounts: an answer is bound to them */
	/* So many of them, the first, only repeat what the arguments say. */
	unsigned int n_told;
	/*
	 * Of a tool that runs code that the model wrote, each block:
	 * {"language","bytes","sha256","filename"?}. Such a call is remembered
	 * by its code alone, unless it is `contained` (no network, nothing of
	 * the host can be written) and the policy lets that class be.
	 */
	json_t *blocks;
	bool is_contained;
};

struct tool_ops {
	/*
	 * Ends with tool_done() or tool_suspend(), now or later; stops when the
	 * token fires.
	 */
	void (*call)(struct tool *t, struct tool_call *c);
	/*
	 * Whether this very call crosses the wall, and what a person is shown
	 * then. NULL: only is_boxed and is_read_only say it.
	 */
	int (*judge)(struct tool *t, const struct tool_call *c,
		     struct tool_judgement *ret, struct err *err);
	/* Forgets what earlier calls have left in it; NULL: they leave nothing.
	 */
	void (*reset)(struct tool *t);
	/* Its agent starts nothing while it is paused; nor does this. */
	void (*pause)(struct tool *t, bool is_paused);
	json_t *(*save)(struct tool *t);
	int (*load)(struct tool *t, const json_t *state, struct err *err);
	void (*free)(struct tool *t);
};

struct tool {
	const struct tool_ops *ops;
	char name[65]; /* [A-Za-z0-9_-]{1,64} */
	/*
	 * One of Cordon's own, such as "run_shell": the policy's rule for that
	 * holds whatever name it has for the model. NULL: somebody else's.
	 */
	const char *kind;
	char *description;
	json_t *schema; /* of the arguments */
	bool is_strict;
	enum tool_approval approval;
	bool is_boxed;     /* held by a box as a whole */
	bool is_read_only; /* said of one that is not boxed */
	bool is_idempotent;
	/*
	 * Its state is a conversation: a turn that fails puts it back, and a
	 * call may wait for people on its own account (tool_suspend()).
	 */
	bool has_history;
	unsigned int depth; /* of agents within agents; 0: none */
	/*
	 * Of a function or a program: what it gives is a JSON list of parts,
	 * as in struct tool_result, and not a text.
	 */
	bool gives_parts;
	int64_t timeout;   /* us; 0: that of its kind */
	size_t max_result; /* bytes of text; 0: 64 KiB */
};

/* A call that goes on; what ops->call() sees. */
struct tool_call {
	const char *id;
	const char *agent, *team, *run; /* who calls, in which run */
	const char *traceparent;        /* runtime/trace.h; or NULL */
	/* The "inner" of tool_suspend(), and what a person said; or NULL. */
	json_t *suspended, *reply;
	const json_t *args; /* valid by the schema */
	struct cancel *cancel;
	/* The policy's lower limits for this tool, POLICY_NUMBERS; or NULL. */
	const struct policy_value *narrow;
	/* The tool's own judgement was no: it only words that; or NULL. */
	const struct tool_judgement *denied;
	/* Where a person said yes: to what, by whom; or NULL. */
	const struct approve_answer *answer;
	void *own; /* the tool's, while the call goes on */
};
void tool_progress(struct tool_call *c, const char *text);
/* Takes over what the result holds. */
void tool_done(struct tool_call *c, struct tool_result *r);
void tool_done_text(struct tool_call *c, bool is_error, const char *fmt, ...)
	PRINTF(3, 4);
/*
 * Somebody within the call waits for a person. The record is what is pending,
 * {"kind","id",...}; in its "inner" is all that the tool needs to go on, which
 * it finds as `suspended` in a later call. Takes it over; NULL: no memory.
 */
void tool_suspend(struct tool_call *c, json_t *record);
/* For those who listen to the caller's turn. Takes it over; NULL is lost. */
void tool_event(struct tool_call *c, json_t *event);

void tool_result_done(struct tool_result *r);

/* --- kinds of tools; each returns 0 and a tool, or -errno --- */
struct cordon;

/* Settings as of cordon_spec_set_json(), under the policy. */
struct tool_box {
	struct loop *loop;
	struct cordon *cordon;  /* NULL: one of its own, when it is needed */
	struct keeper *keeper;  /* box.h: one that is shared; or NULL */
	const json_t *settings; /* timeout, memory, workspace ...; NULL */
	const char *policy;     /* NULL: as cordon run, else `strict` */
};
/*
 * run_python {code}, run_shell {command}, run_code {code, language} or
 * {blocks: [{language, code, filename}]}: `name` says which.
 */
int tool_code(const struct tool_box *box, const char *name, struct tool **ret,
	      struct err *err);
/* read_file, write_file, list_files below a workspace directory. */
int tool_files(struct loop *l, int workspace, const char *name,
	       struct tool **ret, struct err *err);
/* Any script or program; its schema is the file beside it, PATH.json. */
int tool_program(const struct tool_box *box, const char *path,
		 struct tool **ret, struct err *err);
/* A function; returns the result's text, or NULL with *err. */
typedef char *tool_fn(void *arg, const char *args_json, struct err *err);
int tool_function(const char *name, const char *description,
		  const json_t *schema, tool_fn *fn, void *arg,
		  struct tool **ret, struct err *err);

/*
 * --- workbench.c: tools that live together ---
 *
 * A workbench is what a configuration calls a toolset: some tools, and what
 * they need while they are used. The agent's life drives it: started before
 * the first turn (and tried again before the next one, where that failed),
 * reset with the agent, saved and loaded with it, stopped when it goes. Each
 * of its operations may be NULL.
 *
 * It is filled and its tools renamed first; toolset_add_workbench() takes it
 * over then. Rules of a policy for a tool of Cordon's own hold whatever it is
 * called.
 */
struct workbench;
struct workbench_ops {
	int (*start)(struct workbench *w, struct err *err);
	void (*stop)(struct workbench *w); /* of one that was started */
	int (*reset)(struct workbench *w, struct err *err);
	json_t *(*save)(struct workbench *w);
	int (*load)(struct workbench *w, const json_t *state, struct err *err);
	void (*free)(struct workbench *w); /* NULL: free(3) */
};

#define WORKBENCH_TOOLS 64

struct workbench {
	const struct workbench_ops *ops;
	char name[65];
	bool is_started;
	struct tool *tools[WORKBENCH_TOOLS]; /* until a toolset has them */
	size_t n_tools;
};
int workbench_init(struct workbench *w, const struct workbench_ops *ops,
		   const char *name, struct err *err);
void workbench_free(struct workbench *w);
/* Takes the tool over. -EEXIST: that name is taken. */
int workbench_add(struct workbench *w, struct tool *t, struct err *err);
int workbench_rename(struct workbench *w, const char *from, const char *to,
		     struct err *err);
/* Only those of the list of names; -ENOENT: it has no such tool. */
int workbench_keep(struct workbench *w, const json_t *names, struct err *err);
/* Nothing but tools. */
int workbench_static(const char *name, struct workbench **ret, struct err *err);
/*
 * run_python, run_shell and run_code with one set of settings and one keeper,
 * which is there from its start to its stop. Each call has a box of its own,
 * so there is nothing to save, and a reset is a new keeper.
 */
int workbench_sandbox(const char *name, const struct tool_box *box,
		      struct workbench **ret, struct err *err);

/* --- toolset.c --- */
struct toolset;

enum tool_end {
	TOOL_RESULT,    /* there is a result, good or bad */
	TOOL_SUSPENDED, /* a person must be asked first; `pending` says what */
};

struct tool_outcome {
	enum tool_end end;
	struct tool_result result;
	json_t *pending; /* the approval record */
};

struct tool_want {
	const char *id, *name;
	const char *arguments; /* raw text of the model */
	const char *agent, *team, *run;
	struct cancel *cancel;
	/* The hash of the conversation that led to the call; or NULL. */
	const char *context;
	/* The answer to an earlier suspension: its approval id, or NULL. */
	const char *approval;
	/* The agent's own `approval: always`: asks, whatever the policy says.
	 */
	bool must_ask;
	/* Of a call that tool_suspend() has ended; referenced; or NULL. */
	json_t *suspended, *reply;
	const char *traceparent; /* or NULL */
	/* What happens within the call, borrowed; until its outcome. */
	void (*event)(void *arg, json_t *event);
	void *event_arg;
};

struct toolset_options {
	struct loop *loop;
	const char *policy; /* NULL: as cordon run finds it, else `strict` */
	/*
	 * true: wait for the person (terminal, store) within the call.
	 * false: suspend at once, the caller saves and ends.
	 */
	bool is_interactive;
	/* What happens, for people and the stream of events; may be NULL. */
	void (*event)(void *arg, const json_t *event);
	void *arg;
};

/*
 * An agent always has a policy: the one that is given, the one that applies
 * here, or the shipped one. policy_free() releases it.
 */
int toolset_policy(const char *given, struct policy **ret, struct err *err);
int toolset_new(const struct toolset_options *o, struct toolset **ret,
		struct err *err);
void toolset_free(struct toolset *s);
/* Takes it over. -EEXIST: that name is taken. */
int toolset_add(struct toolset *s, struct tool *t, struct err *err);
/* Takes it over with all its tools, or none of them. */
int toolset_add_workbench(struct toolset *s, struct workbench *w,
			  struct err *err);
/* Those that are not started yet; the first failure ends it, and names it. */
int toolset_start(struct toolset *s, struct err *err);
/* The last that was started first; toolset_free() does it as well. */
void toolset_stop(struct toolset *s);
/* Tools and workbenches; what fails does not keep the others from it. */
int toolset_reset(struct toolset *s, struct err *err);
/* For the model: [{"name","description","parameters","strict"}]. */
json_t *toolset_list(const struct toolset *s);
/* The same without what the policy does not give to this agent. */
json_t *toolset_list_for(const struct toolset *s, const char *agent);
struct tool *toolset_find(const struct toolset *s, const char *name);
/* `done` is called once, from the loop; the outcome is the toolset's. */
void toolset_call(struct toolset *s, const struct tool_want *w,
		  void (*done)(void *arg, const struct tool_outcome *o),
		  void *arg);
json_t *toolset_save(const struct toolset *s);
int toolset_load(struct toolset *s, const json_t *state, struct err *err);
void toolset_pause(struct toolset *s, bool is_paused);
/* Of the deepest of its tools. */
unsigned int toolset_depth(const struct toolset *s);
/* The state of those that have a history; NULL: none has. And back. */
json_t *toolset_mark(const struct toolset *s);
void toolset_rewind(struct toolset *s, const json_t *mark);

/* --- schema.c: a small subset of JSON Schema 2020-12 --- */
/* Whether the schema itself is one that can be checked. */
int schema_check(const json_t *schema, struct err *err);
/* 0, or -EINVAL and where it is wrong: "/files/0/path: not a string". */
int schema_validate(const json_t *schema, const json_t *value, struct err *err);

/* --- fences.c: code blocks in the text of a model --- */
/*
 * {"blocks":[{"language","code","filename"?,"begin","end"}],
 *  "skipped":[{"language","begin","end","reason"}]}
 */
json_t *fences_find(const char *text, size_t len, const json_t *languages,
		    const char *untagged);
