/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Private to termination*.c: a tree of conditions. A kind of condition is a
 * row of a table: its arguments, the counters it keeps, and one function that
 * looks at what is new. Everything else is the same for all of them.
 */

#include "agent/team.h"
#include "base/buf.h"

enum arg_type {
	ARG_COUNT,  /* a whole number, at least 1 */
	ARG_NUMBER, /* above 0 */
	ARG_TEXT,
	ARG_TEXTS, /* a list of texts */
	ARG_BOOL,
};

struct termination_arg {
	const char *name;
	enum arg_type type;
	bool is_needed;
};

#define TERMINATION_ARGS   3
#define TERMINATION_COUNTS 3

struct termination_kind {
	const char *name;
	/* The first is what a bare value stands for: {"timeout":30}. */
	struct termination_arg args[TERMINATION_ARGS];
	bool wants_one;                         /* at least one argument */
	const char *counts[TERMINATION_COUNTS]; /* their names in the state */
	/* Whether it fires, and why; or *bad. */
	bool (*look)(struct termination *t, const struct stop_facts *f,
		     struct buf *why, struct fault *bad);
};

struct termination {
	const struct termination_kind *kind; /* NULL: a group */
	json_t *args;                        /* as they are dumped */
	int64_t counts[TERMINATION_COUNTS];
	json_t *seen; /* of `loop`: {source: {"digest","count"}} */
	char *reason; /* of one that has fired */

	bool is_all; /* of a group: all, else any */
	struct termination **parts;
	size_t n_parts;
};

static inline const json_t *arg(const struct termination *t, const char *name)
{
	return json_object_get(t->args, name);
}

static inline const char *text_arg(const struct termination *t,
				   const char *name)
{
	return json_string_value(arg(t, name));
}

static inline int64_t count_arg(const struct termination *t, const char *name)
{
	return json_integer_value(arg(t, name));
}

static inline const char *source_of(const json_t *m)
{
	const char *s = chat_source(m);

	return s ? s : "";
}

/* termination-kinds.c; NULL: no such. */
const struct termination_kind *termination_kind_find(const char *name);

/* termination-own.c */
typedef bool termination_look(struct termination *t, const struct stop_facts *f,
			      struct buf *why, struct fault *bad);
termination_look termination_loop, termination_cost, termination_errors,
	termination_tool_calls, termination_resource, termination_function;
