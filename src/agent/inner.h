/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Private to agent-tool.c and team-tool.c: what an agent and a team have in
 * common when they are tools (inner.c).
 *
 * One call goes on at a time, the others wait for it: there is one
 * conversation. Each call ends with one of inner_done() and inner_suspend().
 */

#include "agent/agent.h"

struct inner;

struct inner_call {
	struct inner *inner;
	struct tool_call *call;
	struct inner_call *next;
	struct cancel_hook hook; /* while it waits */
	const char *task;        /* of its arguments */
};

struct inner_ops {
	/* The task, or what was suspended; -errno: nothing has begun. */
	int (*begin)(struct inner *in, struct inner_call *c, struct err *err);
	/* The tool goes: nobody is to hear of the call that goes on. */
	void (*drop)(struct inner *in);
	void (*reset)(struct inner *in);
	void (*pause)(struct inner *in, bool is_paused);
	json_t *(*save)(struct inner *in);
	int (*load)(struct inner *in, const json_t *state, struct err *err);
	void (*free)(struct inner *in);
};

struct inner {
	struct tool tool;
	const struct inner_ops *ops;
	const char *what; /* "agent", "team" */
	const char *name; /* of it; the tool may have another */
	struct loop *loop;
	struct inner_call *calls; /* the first is the one that goes on */
	unsigned int n_calls;
	bool is_begun;
	struct task step;
	json_t *rewind; /* the state to take when that one has ended */
};

/* -E2BIG: too deep. On failure nothing is held. */
int inner_init(struct inner *in, const struct inner_ops *ops,
	       const char *description, unsigned int depth, struct err *err);

/* An event or a message of it; borrowed. */
void inner_tell(struct inner_call *c, json_t *event);
/* Takes over `content`, a list of parts; NULL: no memory. */
void inner_done(struct inner_call *c, bool is_error, json_t *content);
void inner_fail(struct inner_call *c, const char *fmt, ...) PRINTF(2, 3);
/* `what` is pending there, as of struct turn_events; borrowed. */
void inner_suspend(struct inner_call *c, json_t *what);
