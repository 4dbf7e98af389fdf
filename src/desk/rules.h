/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Answers that hold for later requests too. Those for ever are in rules.json
 * in the state directory, apart from the user's policy and from the store:
 *
 *	{"version": 1, "rules": [{"id": ..., "content": ..., "kind": ...,
 *	  "what": ..., "rule": ..., "by": ..., "when": ..., "reason": ...}]}
 *
 * Those of a session are in the store (store.h), each as the same object.
 * There may be also
 *
 *	decision   "deny"; else it is a yes
 *	expires    2026-11-15T12:00:00Z
 *	user, agent  whose request it was
 *	frame, arguments  a pattern of arguments (pattern.h), and what it is
 *	           bound to (request_frame())
 *
 * Without a pattern only `content`, the identity of a request (request.h),
 * decides; with one, the frame and the arguments. The rest is for people. A
 * deny wins over an allow. A use is counted in the store.
 *
 * The file is replaced as a whole, under a lock. One that cannot be read
 * entirely allows nothing and is not written over.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
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
	/* NULL where they are not said */
	char *decision;
	char *expires;
	char *user;
	char *agent;
	char *frame;
	char *arguments;
};

/* A request, as rules see it. */
struct rule_subject {
	const char *content;
	const char *frame, *wide; /* NULL: no pattern holds for it */
	const char *arguments;
	int64_t now; /* ms of the real clock */
};

struct rules {
	struct rule *v;
	size_t n;
};

/* A missing file is an empty list. rules_done() releases it. */
int rules_load(const struct state *s, struct rules *ret, struct err *err);
void rules_done(struct rules *r);

bool rule_is_deny(const struct rule *r);
bool rule_is_over(const struct rule *r, int64_t now);
/* The first that holds for it: a deny, else an allow. NULL: none. */
const struct rule *rules_find(const struct rules *r,
			      const struct rule_subject *s, bool is_deny);

/* One rule as text, and back; rule_done() releases it. */
void rule_format(const struct rule *r, struct buf *out);
int rule_parse(const char *text, size_t len, struct rule *ret, struct err *err);
void rule_done(struct rule *r);
/* A time as `when` has it; -EINVAL: it is none. */
int rule_time_parse(const char *text, int64_t *ret_ms);

int rules_add(const struct state *s, const struct rule *add, struct err *err);
/* By its whole id; -ENOENT: none has it. */
int rules_remove(const struct state *s, const char *id, struct err *err);
