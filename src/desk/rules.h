/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Answers that hold for ever: rules.json in the state directory, apart from
 * the user's policy and from the store.
 *
 *	{"version": 1, "rules": [{"id": ..., "content": ..., "kind": ...,
 *	  "what": ..., "rule": ..., "by": ..., "when": ..., "reason": ...}]}
 *
 * Only `content`, the identity of a request (request.h), decides; the rest is
 * for people. The file is replaced as a whole, under a lock. One that cannot
 * be read entirely allows nothing and is not written over.
 */

#include <stddef.h>

#include "base/err.h"
#include "desk/state.h"

#define RULES_NAME "rules.json"
#define RULES_MAX  10000

struct rule {
	char *id;
	char *content;
	char *kind;
	char *what;
	char *rule; /* the policy's */
	char *by;
	char *when; /* 2026-11-15T12:00:00Z */
	char *reason;
};

struct rules {
	struct rule *v;
	size_t n;
};

/* A missing file is an empty list. rules_done() releases it. */
int rules_load(const struct state *s, struct rules *ret, struct err *err);
void rules_done(struct rules *r);

/* NULL: none. */
const struct rule *rules_find(const struct rules *r, const char *content);

int rules_add(const struct state *s, const struct rule *add, struct err *err);
/* By its whole id; -ENOENT: none has it. */
int rules_remove(const struct state *s, const char *id, struct err *err);
