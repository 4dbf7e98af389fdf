/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An answer, with the rule that goes with "always", and the record of one
 * that nobody waits for.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"
#include "base/visible.h"
#include "desk/approvals.h"
#include "desk/asker.h"
#include "desk/rules.h"
#include "ledger/ledger.h"
#include "ledger/redact.h"

#define RECORD_TEXT (64U << 10)

struct always {
	struct store *store;
	bool wants_rule;
	bool is_written;
};

static int write_rule(const struct entry *e, const struct request *req,
		      struct always *always, struct err *err)
{
	struct buf what;
	char when[32];
	struct rule rule;
	int r;

	buf_init(&what, SHOW_MAX);
	request_summary(req, &what);
	approvals_time(e->answered, when);
	rule = (struct rule){
		.id = (char *)e->id,
		.content = (char *)e->content,
		.kind = (char *)request_kind_name(req->kind),
		.what = what.data,
		.rule = req->rule,
		.by = e->by,
		.when = when,
		.reason = e->reason,
	};
	r = what.error ? err_set(err, E2BIG, "the request is too long")
		       : rules_add(&always->store->state, &rule, err);
	always->is_written = r == 0;
	buf_done(&what);
	return r;
}

/* the ledger */

static void put_redacted(struct json *j, const char *name, const char *text)
{
	struct buf b;

	if (!text || !*text)
		return;
	buf_init(&b, RECORD_TEXT);
	(void)redact(&b, text, strlen(text));
	json_bytes(j, name, b.data ? b.data : "", b.len);
	buf_done(&b);
}

/* The programs without their secrets, or in a few words what it is. */
static void put_subject(struct json *j, const struct request *req)
{
	struct buf b;

	buf_init(&b, RECORD_TEXT);
	for (size_t i = 0; i < req->n_programs; i++) {
		const struct request_program *p = &req->programs[i];

		if (i)
			buf_printf(&b, " %s ", p->join);
		for (size_t k = 0; k < p->argv.n; k++) {
			buf_puts(&b, k ? " " : "");
			(void)redact_argument(&b, k ? p->argv.v[k - 1] : NULL,
					      p->argv.v[k],
					      strlen(p->argv.v[k]));
		}
	}
	if (req->text)
		buf_printf(&b, "%s%s code, %llu bytes", b.len ? ": " : "",
			   req->language ? req->language : "",
			   (unsigned long long)req->text_bytes);
	if (req->target)
		(void)redact(&b, req->target, strlen(req->target));
	/* What is too long is there by its hash. */
	json_bytes(j, "subject", b.data ? b.data : "", b.len);
	buf_done(&b);
}

static void put_request(struct json *j, const struct entry *e,
			const struct request *req)
{
	char when[32];

	json_open(j, NULL, '{');
	json_str(j, "approval", e->id);
	put_redacted(j, "agent", req->agent);
	json_str(j, "what", request_kind_name(req->kind));
	put_subject(j, req);
	json_str(j, "sha256", e->content);
	put_redacted(j, "rule", req->rule);
	put_redacted(j, "reason", req->why);
	approvals_time(e->expires, when);
	json_str(j, "expires", when);
	json_close(j, '}');
}

static void put_answer(struct json *j, const struct entry *e,
		       const struct request *req)
{
	json_open(j, NULL, '{');
	json_str(j, "approval", e->id);
	put_redacted(j, "agent", req->agent);
	json_str(j, "decision", e->state == ENTRY_ALLOWED ? "allow" : "deny");
	json_str(j, "scope", scope_name(e->scope));
	put_redacted(j, "reason", e->reason);
	json_str(j, "by", e->by);
	json_close(j, '}');
}

static int append(struct ledger *l, const char *kind,
		  void (*put)(struct json *j, const struct entry *e,
			      const struct request *req),
		  const struct entry *e, const struct request *req,
		  struct err *err)
{
	struct buf out;
	struct json j = { .out = &out };
	int r;

	buf_init(&out, 8 * RECORD_TEXT);
	put(&j, e, req);
	r = out.error ? err_errno(err, -out.error, "record '%s'", kind)
		      : ledger_append(l, kind, out.data, NULL, err);
	buf_done(&out);
	return r;
}

/*
 * Who waits for an answer records it with the run that it is for. Where
 * nobody does any more, this is the only one who can.
 */
static int record(const struct entry *e, const struct request *req,
		  struct err *err)
{
	struct ledger *l = NULL;
	int r;

	if (e->started >= 0 && process_start((pid_t)e->waiter) == e->started)
		return 0;
	r = ledger_open(NULL, &l, err);
	if (r == 0)
		r = append(l, "approval.request", put_request, e, req, err);
	if (r == 0)
		r = append(l, "approval.answer", put_answer, e, req, err);
	if (r == 0)
		r = ledger_sync(l, err);
	ledger_close(l);
	return r < 0 ? err_wrap(err, "record the answer, which therefore does "
				     "not hold")
		     : 0;
}

/* Done while the store's write lock is held: if it fails, nothing holds. */
static int do_also(const struct entry *e, void *arg, struct err *err)
{
	struct always *always = arg;
	struct request req;
	int r = approvals_request(e, &req, err);

	if (r < 0)
		return r;
	if (always->wants_rule)
		r = write_rule(e, &req, always, err);
	if (r == 0)
		r = record(e, &req, err);
	request_done(&req);
	return r;
}

static int summarise(struct store *s, const char *id, struct buf *what,
		     struct err *err)
{
	struct entry e = { 0 };
	struct request req;
	int r = store_get(s, id, &e, err);

	if (r < 0)
		return r;
	r = approvals_request(&e, &req, err);
	entry_done(&e);
	if (r < 0)
		return r;
	request_summary(&req, what);
	request_done(&req);
	return what->error ? err_set(err, E2BIG, "the request is too long") : 0;
}

int approvals_answer(struct store *s, const char *id,
		     const struct store_answer *a, struct entry *ret,
		     struct err *err)
{
	struct always always = { .store = s,
				 .wants_rule = a->is_allowed &&
					       a->scope == SCOPE_ALWAYS };
	struct store_answer whole = *a;
	struct err ignored = { 0 };
	struct buf what;
	int r;

	*ret = (struct entry){ 0 };
	buf_init(&what, SHOW_MAX);
	r = summarise(s, id, &what, err);
	if (r == 0) {
		whole.what = what.data;
		whole.also = do_also;
		whole.arg = &always;
		r = store_answer(s, id, &whole, ret, err);
	}
	if (r < 0 && always.is_written)
		(void)rules_remove(&s->state, id, &ignored);
	buf_done(&what);
	return r;
}
