/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the commands of `cordon approvals` share. */

#include "base/buf.h"
#include "base/err.h"
#include "desk/request.h"
#include "desk/store.h"

/* Texts are shown up to here, unless all of it is wanted. */
#define SHOW_TEXT (16U << 10)
#define SHOW_MAX  (64U << 20)

enum {
	EXIT_ALLOWED = 0,
	EXIT_DENIED = 1,
};

/* ask.c: cordon-desk approvals ask [--resume ID] */
int approvals_ask(int argc, char **argv);

/* approvals-answer.c */

/*
 * Answers a request, for approvals and for the terminal: with scope always
 * the rule is written in the same step. As store_answer().
 */
int approvals_answer(struct store *s, const char *id,
		     const struct store_answer *a, struct entry *ret,
		     struct err *err);

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
