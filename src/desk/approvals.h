/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the commands of `cordon approvals` share. */

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"
#include "desk/request.h"
#include "desk/rules.h"
#include "desk/store.h"

/* Texts are shown up to here, unless all of it is wanted. */
#define SHOW_TEXT (16U << 10)
#define SHOW_MAX  (64U << 20)

enum {
	EXIT_ALLOWED = 0,
	EXIT_DENIED = 1,
	/* To a daemon: too many wait; nobody has answered yet, and may. */
	EXIT_BUSY = 75,
	EXIT_WAITS = 76,
};

/* ask.c: cordon-desk approvals ask [--resume ID | --peer UID PID] */
int approvals_ask(int argc, char **argv);

/* approvals-answer.c */

/* What makes an answer a rule for more, or for less, than the same for ever. */
struct answer_rule {
	const json_t *pattern; /* pattern.h; NULL: exactly the same */
	int64_t expires;       /* ms of the real clock; 0: never */
};

/*
 * Answers a request, for approvals and for the terminal: with scope session
 * or always the rule is written in the same step. `with` may be NULL. As
 * store_answer().
 */
int approvals_answer(struct store *s, const char *id,
		     const struct store_answer *a,
		     const struct answer_rule *with, struct entry *ret,
		     struct err *err);
/* Nobody wants an answer any more. As store_withdraw(). */
int approvals_withdraw(struct store *s, const char *id, const char *reason,
		       const char *by, struct entry *ret, struct err *err);

/* The request as rules see it; `frames` must live as long. */
struct request_frames {
	char narrow[65], wide[65];
};
struct rule_subject approvals_subject(const struct request *req,
				      const char *content, int64_t now,
				      struct request_frames *frames);

/* approvals-record.c */

enum { RECORD_REQUEST = 1, RECORD_ANSWER = 2 };
struct answer_record {
	const char *pattern;
	int64_t expires;
};
/* On the disk when it returns 0. `also` may be NULL. */
int approvals_record(const struct entry *e, const struct request *req,
		     unsigned int what, const struct answer_record *also,
		     struct err *err);
/* That a rule is taken back. */
int approvals_record_revoked(const struct rule *rule, const char *scope,
			     const char *by, struct err *err);

/* approvals-show.c */

/* Everything a person needs to answer; `max` as request_show(). */
int approvals_describe(const struct entry *e, size_t max, struct buf *out,
		       struct err *err);
/* The request in an entry, if it is what the entry says it is. */
int approvals_request(const struct entry *e, struct request *ret,
		      struct err *err);
/* "4m", "2h" */
void approvals_age(int64_t ms, char ret[32]);
/* A time as 2026-11-15T12:00:00Z. */
void approvals_time(int64_t ms, char ret[32]);
int approvals_list(struct store *s, bool all, bool json);
int approvals_rules_list(struct store *s, bool json);
int approvals_show(struct store *s, const char *id, bool full, bool json);
