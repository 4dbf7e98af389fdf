/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An answer, with the rule that goes with "session" and "always", and the
 * record of one that nobody waits for.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "desk/approvals.h"
#include "desk/asker.h"
#include "desk/pattern.h"

struct answering {
	struct store *store;
	const struct answer_rule *with; /* NULL: for exactly the same */
	char *pattern;                  /* as text; NULL: none */
	bool is_rule;                   /* there is one to be kept */
	bool is_written;                /* to the file of rules */
};

/* patterns */

struct rule_subject approvals_subject(const struct request *req,
				      const char *content, int64_t now,
				      struct request_frames *frames)
{
	struct rule_subject s = { .content = content, .now = now };

	if (req->kind != REQUEST_TOOL || req->is_cut)
		return s;
	request_frame(req, false, frames->narrow);
	request_frame(req, true, frames->wide);
	s.wide = frames->wide;
	s.arguments = req->arguments;
	/* Code is named by its hash, unless the policy lets a class be. */
	if (req->code.n == 0 || req->class)
		s.frame = frames->narrow;
	return s;
}

static int check_pattern(const struct entry *e, const struct request *req,
			 const json_t *pattern, struct err *err)
{
	bool is_allow = e->state == ENTRY_ALLOWED;

	if (req->kind != REQUEST_TOOL)
		return err_set(err, EINVAL,
			       "a pattern is for the calls of a tool; this "
			       "answer can be for exactly the same alone");
	if (is_allow && req->code.n > 0 && !req->class)
		return err_set(
			err, EPERM,
			"this runs code: a yes is for exactly that code, "
			"unless the policy has a class of it in "
			"approvals.code_patterns");
	if (!req->arguments)
		return err_set(err, E2BIG,
			       "the arguments are too large for a pattern");
	if (is_allow ? !pattern_allows(pattern, req->arguments)
		     : !pattern_denies(pattern, req->arguments))
		return err_set(err, EINVAL,
			       "the pattern does not fit this very request%s",
			       is_allow ? "; each of its arguments must be "
					  "told of"
					: "");
	return 0;
}

/* rules */

static int keep_rule(struct answering *a, const struct entry *e,
		     const struct rule *rule, struct err *err)
{
	int r;

	if (e->scope == SCOPE_SESSION)
		return grant_add(a->store, e->session, rule, e->answered, err);
	r = rules_add(&a->store->state, rule, err);
	a->is_written = r == 0;
	return r;
}

static int write_rule(struct answering *a, const struct entry *e,
		      const struct request *req, struct err *err)
{
	bool is_deny = e->state == ENTRY_DENIED;
	struct buf what;
	char when[32];
	char expires[32];
	char frame[65];
	struct rule rule;
	int r;

	buf_init(&what, SHOW_MAX);
	request_summary(req, &what);
	approvals_time(e->answered, when);
	request_frame(req, is_deny, frame);
	rule = (struct rule){
		.id = (char *)e->id,
		.content = (char *)e->content,
		.kind = (char *)request_kind_name(req->kind),
		.what = what.data,
		.rule = req->rule,
		.by = e->by,
		.when = when,
		.reason = e->reason,
		.decision = is_deny ? (char *)"deny" : NULL,
		.user = e->user,
		.agent = req->agent,
		.frame = a->pattern ? frame : NULL,
		.arguments = a->pattern,
	};
	if (a->with && a->with->expires) {
		approvals_time(a->with->expires, expires);
		rule.expires = expires;
	}
	r = what.error ? err_set(err, E2BIG, "the request is too long")
		       : keep_rule(a, e, &rule, err);
	buf_done(&what);
	return r;
}

/*
 * Who waits for an answer records it with the run that it is for. Where
 * nobody does any more, this is the only one who can.
 */
static int record(const struct answering *a, const struct entry *e,
		  const struct request *req, struct err *err)
{
	/* What a daemon asks is recorded when it is asked. */
	unsigned int what = req->has_peer ? RECORD_ANSWER
					  : RECORD_REQUEST | RECORD_ANSWER;
	struct answer_record also = {
		.pattern = a->pattern,
		.expires = a->with ? a->with->expires : 0,
	};

	if (e->started >= 0 && process_start((pid_t)e->waiter) == e->started)
		return 0;
	return approvals_record(e, req, what, &also, err);
}

/* Done while the store's write lock is held: if it fails, nothing holds. */
static int do_also(const struct entry *e, void *arg, struct err *err)
{
	struct answering *a = arg;
	struct request req;
	int r = approvals_request(e, &req, err);

	if (r < 0)
		return r;
	if (a->pattern)
		r = check_pattern(e, &req, a->with->pattern, err);
	if (r == 0 && a->is_rule)
		r = write_rule(a, e, &req, err);
	if (r == 0)
		r = record(a, e, &req, err);
	request_done(&req);
	return r;
}

static int check_rule(const struct store_answer *a,
		      const struct answer_rule *with, struct err *err)
{
	if (with && a->scope == SCOPE_ONCE)
		return err_set(err, EINVAL,
			       "a pattern or an expiry is for an answer with "
			       "--scope session or always");
	if (with && with->expires && with->expires <= store_now())
		return err_set(err, EINVAL, "that time is over already");
	return 0;
}

int approvals_answer(struct store *s, const char *id,
		     const struct store_answer *a,
		     const struct answer_rule *with, struct entry *ret,
		     struct err *err)
{
	struct answering all = { .store = s,
				 .with = with,
				 .is_rule = a->scope != SCOPE_ONCE };
	struct store_answer whole = *a;
	struct err ignored = { 0 };
	int r = check_rule(a, with, err);

	*ret = (struct entry){ 0 };
	if (r == 0 && with && with->pattern) {
		all.pattern = json_dumps(with->pattern, JSON_COMPACT);
		if (!all.pattern)
			r = err_set(err, ENOMEM, "out of memory");
		else if (strlen(all.pattern) > PATTERN_MAX)
			r = err_set(err, E2BIG, "the pattern is too long");
	}
	whole.also = do_also;
	whole.arg = &all;
	if (r == 0)
		r = store_answer(s, id, &whole, ret, err);
	if (r < 0 && all.is_written)
		(void)rules_remove(&s->state, id, &ignored);
	free(all.pattern);
	return r;
}

int approvals_withdraw(struct store *s, const char *id, const char *reason,
		       const char *by, struct entry *ret, struct err *err)
{
	struct answering all = { .store = s };
	const struct store_answer no = {
		.reason = reason, .by = by, .also = do_also, .arg = &all
	};

	*ret = (struct entry){ 0 };
	if (strlen(reason) > STORE_REASON)
		return err_set(err, E2BIG, "a reason has at most %d bytes",
			       STORE_REASON);
	return store_withdraw(s, id, &no, ret, err);
}
