/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A run on the ledger: that it will start, before it does, and how it ended,
 * before anyone is told. Whoever cannot record a run does not start it.
 */

#include "base/err.h"
#include "box/approve.h"
#include "box/guard.h"
#include "box/result.h"
#include "policy/policy.h"
#include "box/spec.h"
#include "gate/wire.h"

struct recorder {
	struct ledger *ledger; /* NULL: closed, or not wanted */
	bool keep_output;      /* its text, as the policy says */
};

/* Who decided that it may run, or may not; NULL where nothing is known. */
struct record_decision {
	const char *decision; /* "allow", "ask", "deny" */
	const char *rule;     /* FILE:LINE */
	const char *reason;
	const struct policy *policy; /* NULL: none */
	const char *policy_file;
	const char *policy_sha256;
	const struct approve_answer *answer; /* of a person, NULL: not asked */
	char rule_text[300];
};

/* As a guard decided it; `why` is the text of a refusal. */
void record_decision_of(struct record_decision *ret, const struct guard *g,
			enum refusal refused, const struct err *why);

/* Whose run it is, where a daemon starts it; `box` may be NULL: none. */
struct record_of {
	const char *run;
	const char *box;
	const char *face;
	int64_t peer;
};

/* The members of run.start for ledger_append(); the caller frees them. */
char *recorder_start_members(const struct cordon_spec *s,
			     const struct record_of *of,
			     const struct record_decision *d, struct err *err);

/* On the disk when it returns 0. */
int recorder_start(struct recorder *r, const struct cordon_spec *s,
		   const struct cordon_result *result,
		   const struct record_decision *d, struct err *err);

/* One decision of the box's gate; not yet on the disk. */
struct record_connection {
	const char *run;
	const char *box; /* of a daemon; NULL: none */
	const char *agent;
	const struct gate_event *event;
	bool is_denied;
	const char *rule;
};
/* Its members for ledger_append(), the caller's; NULL: no memory. */
char *recorder_connection_members(const struct record_connection *c);
int recorder_connection(struct recorder *r, const struct record_connection *c,
			struct err *err);

/* The same; nothing is done where there was no start. */
int recorder_end(struct recorder *r, const struct cordon_result *result,
		 struct err *err);

void recorder_done(struct recorder *r);
