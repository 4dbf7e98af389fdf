/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Requests and answers on the ledger, where it is the desk that writes them:
 * the answer to one that nobody waits for any more, and all that a daemon asks
 * (of whose other parts one reads what clients send, and none has the store).
 */

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"
#include "desk/approvals.h"
#include "ledger/ledger.h"
#include "ledger/redact.h"

#define RECORD_TEXT (64U << 10)

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
	if (req->hide_text && req->n_programs > 0)
		buf_puts(&b, "a command");
	for (size_t i = 0; !req->hide_text && i < req->n_programs; i++) {
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
	if (req->target)
		(void)redact(&b, req->target, strlen(req->target));
	if (req->text && req->kind == REQUEST_TOOL)
		buf_printf(&b, ", arguments of %llu bytes",
			   (unsigned long long)req->text_bytes);
	else if (req->text)
		buf_printf(&b, "%s%s code, %llu bytes", b.len ? ": " : "",
			   req->language ? req->language : "",
			   (unsigned long long)req->text_bytes);
	/* What is too long is there by its hash. */
	json_bytes(j, "subject", b.data ? b.data : "", b.len);
	buf_done(&b);
}

/* Which request it is, whose, and for which run. */
static void open_record(struct json *j, const struct entry *e,
			const struct request *req)
{
	json_open(j, NULL, '{');
	json_str(j, "approval", e->id[0] ? e->id : "-");
	put_redacted(j, "run", req->run);
	put_redacted(j, "box", req->box);
	put_redacted(j, "face", req->face);
	if (req->has_peer)
		json_int(j, "peer", (int64_t)req->peer);
	put_redacted(j, "agent", req->agent);
}

static void put_time(struct json *j, const char *name, int64_t ms)
{
	char when[32];

	if (!ms)
		return;
	approvals_time(ms, when);
	json_str(j, name, when);
}

static void put_request(struct json *j, const struct entry *e,
			const struct request *req,
			const struct answer_record *also)
{
	(void)also;
	open_record(j, e, req);
	json_str(j, "what", request_kind_name(req->kind));
	put_subject(j, req);
	json_str(j, "sha256", e->content);
	put_redacted(j, "rule", req->rule);
	put_redacted(j, "reason", req->why);
	put_time(j, "expires", e->expires);
	json_close(j, '}');
}

static const char *decision_of(const struct entry *e)
{
	switch (e->state) {
	case ENTRY_ALLOWED:
		return "allow";
	case ENTRY_WITHDRAWN:
		return "withdraw";
	default:
		return "deny";
	}
}

static void put_answer(struct json *j, const struct entry *e,
		       const struct request *req,
		       const struct answer_record *also)
{
	open_record(j, e, req);
	json_str(j, "decision", decision_of(e));
	json_str(j, "scope", scope_name(e->scope));
	if (also) {
		put_redacted(j, "pattern", also->pattern);
		put_time(j, "expires", also->expires);
	}
	put_redacted(j, "reason", e->reason);
	json_str(j, "by", e->by);
	json_close(j, '}');
}

struct writing {
	const struct entry *e;
	const struct request *req;
	const struct answer_record *also;
};

static int append(struct ledger *l, const char *kind, const struct buf *doc,
		  struct err *err)
{
	return doc->error ? err_errno(err, -doc->error, "record '%s'", kind)
			  : ledger_append(l, kind, doc->data, NULL, err);
}

static int write_one(struct ledger *l, const char *kind,
		     void (*put)(struct json *j, const struct entry *e,
				 const struct request *req,
				 const struct answer_record *also),
		     const struct writing *w, struct err *err)
{
	struct buf out;
	struct json j = { .out = &out };
	int r;

	buf_init(&out, 8 * RECORD_TEXT);
	put(&j, w->e, w->req, w->also);
	r = append(l, kind, &out, err);
	buf_done(&out);
	return r;
}

int approvals_record(const struct entry *e, const struct request *req,
		     unsigned int what, const struct answer_record *also,
		     struct err *err)
{
	const struct writing w = { e, req, also };
	struct ledger *l = NULL;
	int r = ledger_open(NULL, &l, err);

	if (r == 0 && (what & RECORD_REQUEST))
		r = write_one(l, "approval.request", put_request, &w, err);
	if (r == 0 && (what & RECORD_ANSWER))
		r = write_one(l, "approval.answer", put_answer, &w, err);
	if (r == 0)
		r = ledger_sync(l, err);
	ledger_close(l);
	return r < 0 ? err_wrap(err, "record %s, which therefore does not hold",
				what & RECORD_ANSWER ? "the answer"
						     : "the request")
		     : 0;
}

int approvals_record_revoked(const struct rule *rule, const char *scope,
			     const char *by, struct err *err)
{
	struct ledger *l = NULL;
	struct buf out;
	struct json j = { .out = &out };
	int r = ledger_open(NULL, &l, err);

	if (r < 0)
		return r;
	buf_init(&out, 8 * RECORD_TEXT);
	json_open(&j, NULL, '{');
	json_str(&j, "approval", rule->id);
	put_redacted(&j, "agent", rule->agent);
	json_str(&j, "decision", "revoke");
	json_str(&j, "scope", scope);
	put_redacted(&j, "pattern", rule->arguments);
	json_str(&j, "by", by);
	json_close(&j, '}');
	r = append(l, "approval.answer", &out, err);
	buf_done(&out);
	if (r == 0)
		r = ledger_sync(l, err);
	ledger_close(l);
	return r < 0 ? err_wrap(err, "record that the rule is taken back") : 0;
}
