/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The `filters` of a policy, applied to messages.
 *
 *	struct screen *s;
 *
 *	screen_new(&(struct screen_options){ .policy = p, .ledger = l }, &s,
 *		   &err);
 *	runtime_add_filter(rt, screen_filter(s));	// all that is sent
 *	...
 *	act = screen_apply(s, &view, data, &changed, reason);	// or by hand
 *	screen_unref(s);
 *
 * Rules apply in the order of the file, each to what the one before left.
 * They look at strings, at JSON within strings, at names of members where
 * these are free, and at text that is cut into parts; not at ids, names and
 * types of the messages of section 13 and of model/model.h. Each change and
 * each refusal is on the ledger before it counts, with the hashes of the
 * message before and after and never with what was found. Whatever goes wrong
 * refuses the message.
 *
 * By hand: what does not go through the runtime, such as a tool's result
 * before a model sees it.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "runtime/runtime.h"

struct ledger;
struct policy;
struct screen;

/* Whose message; bits, since a summary by an agent is also its tools'. */
enum {
	ROLE_USER = 1,
	ROLE_ASSISTANT = 2,
	ROLE_TOOL = 4,
	ROLE_SYSTEM = 8,
	ROLE_ALL = 15,
};

struct screen_options {
	const struct policy *policy; /* lives longer */
	struct ledger *ledger;       /* lives longer; NULL: nowhere */
	const char *run;             /* for the ledger; NULL: none */
	/* Or who knows it, since a screen outlives a run; NULL: nobody. */
	const char *(*run_of)(void *arg);
	void *arg;
	/* Sources that are people, besides "user"; ended by NULL; NULL. */
	const char *const *people;
};

/* Also where the policy has no filters; then everything passes. */
int screen_new(const struct screen_options *o, struct screen **ret,
	       struct err *err);
struct screen *screen_ref(struct screen *s);
void screen_unref(struct screen *s);

struct screen_view {
	const char *from, *to; /* for the ledger; NULL: not known */
	const char *type;      /* of the message; NULL: not known */
	/* ROLE_...; 0: as the message itself says, all where it does not. */
	unsigned int roles;
};

/*
 * FILTER_PASS; FILTER_REPLACE with a new reference in *ret; FILTER_REJECT.
 * The last two with a reason of 256 bytes.
 */
enum filter_act screen_apply(struct screen *s, const struct screen_view *v,
			     json_t *data, json_t **ret, char *reason);
/* The same for a text; the caller frees *ret. */
enum filter_act screen_text(struct screen *s, const struct screen_view *v,
			    const char *text, char **ret, char *reason);

/* For the runtime; holds a reference. NULL: no memory. */
struct filter *screen_filter(struct screen *s);
