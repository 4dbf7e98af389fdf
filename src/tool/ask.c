/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A person is asked about a call.
 *
 * Theory of operation
 *
 * The request goes to the store first, without waiting (cordon-desk approvals
 * ask --suspend): a standing answer ends it there, else it has an id, is
 * durable, and ApprovalRequestedEvent tells it. Who is interactive then waits
 * for that id; who is not suspends, saves the record, and comes back with the
 * id in another call, perhaps of another process. In all three cases the desk
 * compares what is asked now with what was asked then, to the last byte: tool,
 * arguments, limits, agent, rule. An answer is taken once.
 *
 * Whatever fails on this way is a denial.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/hex.h"
#include "base/sha256.h"
#include "base/util.h"
#include "tool/call.h"

#define CALL_OF(ptr, member)                                                   \
	((struct call *)((char *)(ptr)-offsetof(struct call, member)))

/* what is asked */

/* The arguments in one form, whatever form the model gave them. */
static char *show_arguments(const struct call *c)
{
	if (c->judged.text)
		return strdup(c->judged.text);
	return json_dumps(c->args, JSON_INDENT(2) | JSON_SORT_KEYS);
}

static const char *string_of(const json_t *o, const char *name)
{
	const char *text = json_string_value(json_object_get(o, name));

	return text ? text : "";
}

static void add_text(struct sha256 *s, const char *text)
{
	sha256_add(s, text, strlen(text) + 1);
}

/* Of the tool, the arguments and the limits. */
static void digest(const struct call *c, const char *text, char ret[65])
{
	unsigned char sum[SHA256_SIZE];
	struct sha256 s;

	sha256_init(&s);
	add_text(&s, c->name);
	add_text(&s, text);
	for (size_t i = 0; i < c->judged.changes.n; i++)
		add_text(&s, c->judged.changes.v[i]);
	sha256_end(&s, sum);
	hex_format(sum, sizeof(sum), ret);
}

/* Of each block one line: "python, 24 bytes, sha256 ...". */
static int list_code(const json_t *blocks, struct strv *ret)
{
	for (size_t i = 0; i < json_array_size(blocks); i++) {
		const json_t *one = json_array_get(blocks, i);
		const char *file = string_of(one, "filename");
		char line[700];

		(void)snprintf(line, sizeof(line),
			       "%.100s, %lld bytes, sha256 %s%s%.300s",
			       string_of(one, "language"),
			       (long long)json_integer_value(
				       json_object_get(one, "bytes")),
			       string_of(one, "sha256"), *file ? ", file " : "",
			       file);
		if (strv_add(ret, line) < 0)
			return -ENOMEM;
	}
	return 0;
}

static void who_is_asked(const struct policy *p, struct approve_request *req)
{
	bool any = !p->ask.is_stated;

	req->may_terminal = any || policy_list_has(&p->ask, "terminal");
	req->may_store = any || policy_list_has(&p->ask, "store");
	req->expire_ms = p->expire_us ? p->expire_us / 1000 : CALL_EXPIRE_MS;
}

/* The strings of a request, while it is made. */
struct asked {
	char *text;      /* what is shown */
	char *arguments; /* as one JSON text */
	struct strv code;
	char digest[65];
};

static void asked_done(struct asked *a)
{
	free(a->text);
	free(a->arguments);
	strv_done(&a->code);
}

static int asked_init(const struct call *c, struct asked *ret)
{
	*ret = (struct asked){ .text = show_arguments(c) };
	ret->arguments = json_dumps(c->args, JSON_COMPACT | JSON_SORT_KEYS);
	if (!ret->text || !ret->arguments ||
	    list_code(c->judged.blocks, &ret->code) < 0) {
		asked_done(ret);
		return -ENOMEM;
	}
	digest(c, ret->text, ret->digest);
	return 0;
}

/* The class of code that the policy lets a pattern hold for. */
static const char *class_of(const struct call *c)
{
	const struct policy *p = c->set->policy;

	return c->judged.blocks && c->judged.is_contained &&
			       policy_list_has(&p->code_patterns, "contained")
		       ? "contained"
		       : NULL;
}

static void fill_request(struct call *c, const struct asked *a,
			 struct approve_request *req)
{
	const struct policy *p = c->set->policy;
	const struct policy_tool *rule = c->rule;

	*req = (struct approve_request){
		.kind = "tool",
		.text = a->text,
		.text_len = strlen(a->text),
		.target = c->name,
		.agent = c->agent,
		.why = c->why,
		.rule = c->rule_text,
		.file = rule && rule->at.file ? rule->at.file
			: p->flat.n_sources   ? p->flat.sources[0].name
					      : NULL,
		.line = rule ? rule->at.line : 0,
		.changes = (const char *const *)c->judged.changes.v,
		.run = c->run,
		.arguments = a->arguments,
		.code = (const char *const *)a->code.v,
		.class = class_of(c),
		.n_told = c->judged.n_told,
		.team = c->team,
		.context = c->context,
		.digest = a->digest,
		.hide_text = p->keep_text.is_stated &&
			     !policy_list_has(&p->keep_text, "commands"),
		.cancel = NO_FD,
	};
	who_is_asked(p, req);
}

/* the record */

static json_t *utc(int64_t ms)
{
	time_t t = (time_t)(ms / 1000);
	struct tm tm;
	char text[40];
	size_t n;

	if (!gmtime_r(&t, &tm))
		return json_null();
	n = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(text + n, sizeof(text) - n, ".%03dZ", (int)(ms % 1000));
	return json_string(text);
}

static json_t *strings(const struct strv *list)
{
	json_t *ret = json_array();

	for (size_t i = 0; i < list->n; i++)
		(void)json_array_append_new(ret, json_string(list->v[i]));
	return ret;
}

static json_t *asked_of(const struct approve_request *req)
{
	json_t *ret = json_array();

	if (req->may_terminal)
		(void)json_array_append_new(ret, json_string("terminal"));
	if (req->may_store)
		(void)json_array_append_new(ret, json_string("store"));
	return ret;
}

static json_t *make_record(struct call *c, const struct approve_request *req)
{
	struct timespec now;
	int64_t ms;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
	return json_pack(
		"{s:s, s:s?, s:s?, s:s?, s:s, s:s, s:s, s:s, s:O?, s:o, s:s, "
		"s:s?, s:s, s:o, s:o, s:o}",
		"kind", "approval", "agent", c->agent, "team", c->team, "run",
		c->run, "tool", c->name, "call_id", c->id, "arguments",
		c->arguments, "shown", req->text, "code_blocks",
		c->judged.blocks, "limits", strings(&c->judged.changes), "why",
		c->why, "context", c->context, "digest", req->digest,
		"requested_at", utc(ms), "expires_at",
		utc(ms + (int64_t)req->expire_ms), "asked_of", asked_of(req));
}

static void tell_request(struct call *c)
{
	(void)json_object_set_new(c->record, "id", json_string(c->answer.id));
	call_event(c, json_pack("{s:s, s:O}", "type", "ApprovalRequestedEvent",
				"content", c->record));
}

/* One that is unknown was approved, then and not now. */
static void tell_answer(struct call *c)
{
	const struct approve_answer *a = &c->answer;
	json_t *content = json_pack("{s:s, s:s, s:s, s:b, s:s, s:s, s:s}", "id",
				    a->id, "tool", c->name, "call_id", c->id,
				    "approved",
				    (int)(a->is_allowed || c->is_unknown),
				    "reason", a->reason, "scope", a->scope,
				    "by", a->by);

	if (c->is_unknown)
		(void)json_object_set_new(content, "outcome",
					  json_string("unknown"));
	call_event(c, json_pack("{s:s, s:o}", "type", "ApprovalDecidedEvent",
				"content", content));
}

/* the asking */

static int ask(struct call *c, bool suspends, const char *resume,
	       struct err *err);

static void deny(struct call *c, const char *why)
{
	c->decision = DECISION_DENY;
	(void)snprintf(c->why, sizeof(c->why), "not approved: %.500s", why);
	call_refuse(c, "Tool call was not approved. Reason: %s", why);
}

/*
 * Who comes back for an answer that was taken was ended between that and the
 * record of the call: it may have been made. The words are the desk's own.
 */
static bool was_used(const struct call *c)
{
	char used[80];

	(void)snprintf(used, sizeof(used),
		       "the answer to '%s' was used already", c->answer.id);
	return c->approval && !c->answer.is_allowed &&
	       strcmp(c->answer.by, "cordon") == 0 &&
	       strcmp(c->answer.reason, used) == 0;
}

static void end_unknown(struct call *c)
{
	(void)snprintf(c->why, sizeof(c->why),
		       "%.400s; the outcome of that call is unknown",
		       c->answer.reason);
	call_refuse(c, TOOL_UNKNOWN " It was approved, and %s", c->why);
}

static void on_waiting(struct call *c)
{
	struct err err = { 0 };
	char id[sizeof(c->answer.id)];

	(void)strcpy(id, c->answer.id);
	tell_request(c);
	if (!c->set->is_interactive)
		call_suspend(c);
	else if (ask(c, false, id, &err) < 0)
		deny(c, err.text);
}

/* A person may take hours: what is judged now must be what was asked. */
static bool is_same(struct call *c)
{
	const char *was = json_string_value(
		json_object_get(c->record, "digest"));
	_cleanup_free_ char *text = NULL;
	struct err err = { 0 };
	char now[65];

	if (call_judge(c, &err) < 0 || c->decision == DECISION_DENY)
		return false;
	text = show_arguments(c);
	if (!text)
		return false;
	digest(c, text, now);
	/* It was asked about, though by now it would not be. */
	c->decision = DECISION_ASK;
	return was && strcmp(was, now) == 0;
}

static void on_answer(struct call *c, int r, const struct err *err)
{
	/* Cancelled meanwhile: the outcome is told, only this was awaited. */
	if (c->has_outcome) {
		if (c->is_told)
			call_soon(c, call_free);
		return;
	}
	if (r == -ETIME) {
		on_waiting(c);
		return;
	}
	if (r < 0) {
		deny(c, err->text);
		return;
	}
	c->was_asked = true;
	c->is_unknown = was_used(c);
	tell_answer(c);
	if (c->is_unknown)
		end_unknown(c);
	else if (!c->answer.is_allowed)
		deny(c, c->answer.reason);
	else if (!is_same(c))
		deny(c, "it is no longer what was asked about");
	else
		call_run(c);
}

static void on_ready(struct watch *w)
{
	struct call *c = CALL_OF(w, watch);
	struct err err = { 0 };
	int r = 0;

	if (approve_step(c->asking, &r, &c->answer, &err) == 0)
		return;
	call_ask_end(c);
	on_answer(c, r, &err);
}

void call_ask_end(struct call *c)
{
	if (c->is_watching)
		watch_stop(&c->watch);
	c->is_watching = false;
	approve_free(c->asking);
	c->asking = NULL;
}

void call_ask_cancel(struct call *c)
{
	approve_withdraw(c->asking);
}

static int start_asking(struct call *c, const struct approve_request *req,
			struct err *err)
{
	if (!req->may_store && !c->set->is_interactive)
		return err_set(err, EPERM,
			       "the policy asks on a terminal alone, and "
			       "nobody waits at one");
	if (!c->record)
		c->record = make_record(c, req);
	if (!c->record)
		return err_set(err, ENOMEM, "out of memory");
	if (approve_start(req, &c->asking, err) < 0)
		return -err->code;
	c->watch.ready = on_ready;
	if (watch_start(c->set->loop, &c->watch, approve_fd(c->asking)) < 0) {
		call_ask_end(c);
		return err_set(err, EIO, "cordon-desk cannot be watched");
	}
	c->is_watching = true;
	return 0;
}

static int ask(struct call *c, bool suspends, const char *resume,
	       struct err *err)
{
	struct approve_request req;
	struct asked a;
	int r;

	if (asked_init(c, &a) < 0)
		return err_set(err, ENOMEM, "out of memory");
	fill_request(c, &a, &req);
	req.suspends = suspends && req.may_store;
	req.resume = resume;
	r = start_asking(c, &req, err);
	asked_done(&a);
	return r;
}

void call_ask(struct call *c)
{
	struct err err = { 0 };

	if (c->judged.changes.n > APPROVE_CHANGES)
		deny(c, "more would be changed than can be shown to a person");
	else if (record_decision(c, &err) < 0 ||
		 ask(c, true, c->approval, &err) < 0)
		deny(c, err.text);
}
