/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The store of requests and their answers: approvals.sqlite in the state
 * directory.
 *
 * Several processes use it at the same time: one asks, others list and answer.
 * A request is `waiting` until one answer, or its end, takes that away, in one
 * UPDATE that names the state and the seal it saw: of two answers one finds
 * the row changed and is told by whom. An answer `once` is taken by the asker
 * in the same way, so it is used once.
 *
 * Each row has a seal, the hash of all its fields. A row that was damaged is
 * not believed: a flipped bit can lose an answer, it cannot make one. (It is
 * no defence against the owner of the file, whose answers these are.)
 *
 * One that was withdrawn, denied or not answered in time is of no use but to be
 * looked at: when the next comes its document is cut (request_cut()), and of a
 * daemon's user the oldest go. The ledger has the record.
 *
 * Nothing here is an answer on failure: every function returns -errno then.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "desk/state.h"

#define STORE_ID      6    /* characters of an id */
#define STORE_WAITING 256  /* requests that may wait at once */
#define STORE_PEER    32   /* ... of one user of a daemon */
#define STORE_ENDED   1000 /* of those that ended so many are kept of it */
#define STORE_SMALL   8192 /* bytes of the document of one that ended */
#define STORE_REASON  1000 /* bytes of a reason */
#define GRANT_MAX     (1U << 20)

enum entry_state {
	ENTRY_WAITING,
	ENTRY_ALLOWED,
	ENTRY_DENIED,
	ENTRY_EXPIRED,
	ENTRY_WITHDRAWN, /* who asked wants no answer any more */
};

enum scope {
	SCOPE_ONCE,
	SCOPE_SESSION,
	SCOPE_ALWAYS,
};

/* A request in the store. Times are milliseconds of the real clock. */
struct entry {
	char id[STORE_ID + 1];
	char content[65]; /* request_content() */
	char *document;   /* request_format() */
	char *session;    /* "" where the asker has none */
	char *user;
	char *program; /* that asks */
	int64_t pid;
	int64_t waiter;  /* the desk that waits for it */
	int64_t started; /* when that did, in ticks since boot */
	int64_t made;
	int64_t expires;
	enum entry_state state;
	enum scope scope;
	char *reason;
	char *by; /* who answered */
	int64_t answered;
	int64_t taken; /* 1: the asker has it */
};

struct store_answer {
	bool is_allowed;
	enum scope scope;
	const char *reason;
	const char *by;
	/* Done before the answer holds; if it fails the request waits on. */
	int (*also)(const struct entry *e, void *arg, struct err *err);
	void *arg;
};

struct sqlite3;

struct store {
	struct sqlite3 *db;
	struct state state;
};

/* Opens, makes where there is none, and checks the whole of it. */
int store_open(struct store *s, struct err *err);
void store_close(struct store *s);
int64_t store_now(void);
/* An id that nobody has; for rules too. */
int store_new_id(char ret[STORE_ID + 1], struct err *err);

void entry_done(struct entry *e);
const char *entry_state_name(enum entry_state state);
const char *scope_name(enum scope scope);
/* 0, or -EINVAL. */
int scope_parse(const char *name, enum scope *ret);
/* Waiting, and its time is over: as good as expired. */
bool entry_is_over(const struct entry *e, int64_t now);

/*
 * Records a request; its id is filled in. -EBUSY: too many wait, in all or,
 * where most_of_user is not 0, of this one's user.
 */
int store_add(struct store *s, struct entry *e, int most_of_user,
	      struct err *err);

/*
 * Takes up a request of the same content that waits or was allowed, and that
 * nobody waits for any more: its asker was restarted. It then is this one's,
 * and one that waits has its whole time again. -ENOENT: there is none.
 */
int store_adopt(struct store *s, struct entry *e, struct err *err);
/* This process waits for it now. */
int store_attend(struct store *s, const char *id, struct err *err);

/* -ENOENT: no such. entry_done() releases it. */
int store_get(struct store *s, const char *id, struct entry *ret,
	      struct err *err);

/*
 * The one id that begins so: among those that wait if any does, else among
 * all. -ENOENT: none; -ENOTUNIQ: several.
 */
int store_find(struct store *s, const char *prefix, char ret[STORE_ID + 1],
	       struct err *err);

/*
 * Answers. 0: this answer holds. -EALREADY: another came first; -ETIME: it
 * had expired; *ret is the entry as it now is in all three.
 */
int store_answer(struct store *s, const char *id, const struct store_answer *a,
		 struct entry *ret, struct err *err);

/*
 * Nobody wants the answer any more, also one that was given and not used yet.
 * -EALREADY: it has ended otherwise. *ret and `also` as with store_answer().
 */
int store_withdraw(struct store *s, const char *id,
		   const struct store_answer *a, struct entry *ret,
		   struct err *err);

/* The time is over: -EALREADY if an answer came first. */
int store_expire(struct store *s, const char *id, struct err *err);

/* Takes an answer to be used; -EALREADY: it was taken; -ETIME: too old. */
int store_take(struct store *s, const char *id, struct err *err);

/* Newest first; all, or those that wait. `each` returns < 0 to stop. */
int store_list(struct store *s, bool all,
	       int (*each)(const struct entry *e, void *arg), void *arg,
	       struct err *err);

/*
 * grants.c: a session's answers, as rules (rules.h). They end with it, and
 * after a day. grant_add() belongs into `also` of an answer.
 */
struct rule;
struct rules;
int grant_add(struct store *s, const char *session, const struct rule *rule,
	      int64_t made, struct err *err);
/* Of one session, or with NULL of all. rules_done() releases them. */
int grants_load(struct store *s, const char *session, struct rules *ret,
		struct err *err);
int grant_remove(struct store *s, const char *id, struct err *err);

/* How often a rule or a session's answer was used, by its id. */
int uses_add(struct store *s, const char *id, struct err *err);
int uses_get(struct store *s, const char *id, int64_t *ret, struct err *err);
int uses_remove(struct store *s, const char *id, struct err *err);
