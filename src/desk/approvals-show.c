/* SPDX-License-Identifier: Apache-2.0 */

/* What is printed about requests and rules, for people and for programs. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/json.h"
#include "desk/approvals.h"
#include "desk/desk.h"
#include "desk/rules.h"
#include "base/visible.h"

int approvals_request(const struct entry *e, struct request *ret,
		      struct err *err)
{
	char content[65];
	int r = request_parse(e->document, strlen(e->document), ret, err);

	if (r < 0)
		return r;
	request_content(ret, content);
	if (strcmp(content, e->content) == 0)
		return 0;
	request_done(ret);
	return err_set(err, EBADMSG, "request '%s' is not what was recorded",
		       e->id);
}

void approvals_age(int64_t ms, char ret[32])
{
	static const struct {
		int64_t ms;
		const char *name;
	} units[] = { { 86400000, "d" }, { 3600000, "h" }, { 60000, "m" } };

	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (ms >= 2 * units[i].ms) {
			(void)snprintf(ret, 32, "%lld%s",
				       (long long)(ms / units[i].ms),
				       units[i].name);
			return;
		}
	(void)snprintf(ret, 32, "%llds", (long long)MAX(ms, 0) / 1000);
}

void approvals_time(int64_t ms, char ret[32])
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm tm;

	if (!gmtime_r(&seconds, &tm) ||
	    strftime(ret, 32, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
		(void)strcpy(ret, "?");
}

/* Its state, with the time that has passed. */
static const char *state_now(const struct entry *e)
{
	if (entry_is_over(e, store_now()))
		return entry_state_name(ENTRY_EXPIRED);
	return entry_state_name(e->state);
}

static void field(struct buf *out, const char *name, const char *text)
{
	if (!*text)
		return;
	buf_printf(out, "%-10s ", name);
	visible_text(out, text, strlen(text), STORE_REASON);
	buf_puts(out, "\n");
}

static void describe_state(const struct entry *e, struct buf *out)
{
	char text[32];
	char age[32];

	approvals_time(e->made, text);
	approvals_age(store_now() - e->made, age);
	buf_printf(out, "%-10s %s (%s ago)\n", "made", text, age);
	approvals_time(e->expires, text);
	approvals_age(e->expires - store_now(), age);
	if (strcmp(state_now(e), "waiting") == 0)
		buf_printf(out, "%-10s %s (in %s)\n", "expires", text, age);
	buf_printf(out, "%-10s %s\n", "state", state_now(e));
	if (e->state != ENTRY_ALLOWED && e->state != ENTRY_DENIED)
		return;
	approvals_time(e->answered, text);
	if (e->state == ENTRY_ALLOWED)
		field(out, "scope", scope_name(e->scope));
	field(out, "by", e->by);
	field(out, "answered", text);
	field(out, "reason", e->reason);
	if (e->state == ENTRY_ALLOWED)
		field(out, "used", e->taken ? "yes" : "not yet");
}

int approvals_describe(const struct entry *e, size_t max, struct buf *out,
		       struct err *err)
{
	struct request req;
	int r = approvals_request(e, &req, err);

	if (r < 0)
		return r;
	buf_printf(out, "%-10s %s\n", "request", e->id);
	request_show(&req, max, out);
	field(out, "agent", req.agent ? req.agent : "");
	field(out, "user", e->user);
	buf_printf(out, "%-10s %lld ", "process", (long long)e->pid);
	visible_text(out, e->program, strlen(e->program), 64);
	buf_puts(out, "\n");
	field(out, "session", e->session);
	describe_state(e, out);
	request_done(&req);
	return 0;
}

static void put(struct json *j, const char *name, const char *text)
{
	json_exact(j, name, text, strlen(text));
}

/* The request's document is JSON already. */
static void put_entry(struct json *j, const struct entry *e)
{
	json_open(j, NULL, '{');
	json_str(j, "id", e->id);
	json_str(j, "state", state_now(e));
	json_int(j, "made_ms", e->made);
	json_int(j, "expires_ms", e->expires);
	put(j, "user", e->user);
	json_int(j, "pid", e->pid);
	put(j, "program", e->program);
	put(j, "session", e->session);
	json_str(j, "content", e->content);
	if (e->state == ENTRY_ALLOWED || e->state == ENTRY_DENIED) {
		json_str(j, "scope", scope_name(e->scope));
		put(j, "reason", e->reason);
		put(j, "by", e->by);
		json_int(j, "answered_ms", e->answered);
		json_bool(j, "used", e->taken != 0);
	}
	buf_puts(j->out, ",\"request\":");
	buf_puts(j->out, e->document);
	json_close(j, '}');
}

static int print(struct buf *out)
{
	int r = out->error
			? out->error
			: io_write_all(1, out->data ? out->data : "", out->len);

	buf_done(out);
	if (r == 0)
		return 0;
	say("print: %s", strerror(-r));
	return EXIT_OURS;
}

int approvals_show(struct store *s, const char *id, bool full, bool json)
{
	struct entry e = { 0 };
	struct err err = { 0 };
	struct buf out;
	struct json j = { .out = &out };
	char whole[STORE_ID + 1];
	int r = store_find(s, id, whole, &err);

	buf_init(&out, SHOW_MAX);
	if (r == 0)
		r = store_get(s, whole, &e, &err);
	if (r == 0 && json) {
		put_entry(&j, &e);
		buf_puts(&out, "\n");
	} else if (r == 0) {
		r = approvals_describe(&e, full ? REQUEST_MAX : SHOW_TEXT, &out,
				       &err);
	}
	entry_done(&e);
	if (r < 0) {
		buf_done(&out);
		say("%s", err.text);
		return EXIT_OURS;
	}
	return print(&out);
}

/* tables */

struct table {
	struct buf out;
	struct json j;
	bool is_json;
	size_t width; /* of the terminal */
	size_t n;
	bool with_state;
};

/* Characters, not bytes. */
static size_t columns(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += (*text & 0xc0) != 0x80;
	return n;
}

/* Pads or cuts to `width` characters; 0: as it is. */
static void cell(struct buf *out, const char *text, size_t width)
{
	size_t have = columns(text);
	size_t n = 0;

	if (width == 0 || have <= width) {
		buf_puts(out, text);
		for (; have < width; have++)
			buf_puts(out, " ");
		return;
	}
	for (size_t seen = 0; text[n]; n++) {
		if ((text[n] & 0xc0) != 0x80 && ++seen > width - 3)
			break;
	}
	buf_add(out, text, n);
	buf_puts(out, "...");
}

static void table_init(struct table *t, bool json)
{
	struct winsize size;

	*t = (struct table){ .is_json = json };
	buf_init(&t->out, SHOW_MAX);
	t->j.out = &t->out;
	t->width = 120;
	if (ioctl(1, TIOCGWINSZ, &size) == 0 && size.ws_col >= 60)
		t->width = size.ws_col;
}

#define W_ID    7
#define W_AGE   8
#define W_STATE 9
#define W_WHO   16
#define W_RULE  28

static void row(struct table *t, const char *const cells[6])
{
	size_t fixed = W_ID + W_AGE + W_STATE + W_WHO + W_RULE + 5;
	size_t what = t->width > fixed + 20 ? t->width - fixed : 20;
	const size_t widths[] = { W_ID, W_AGE, W_STATE, W_WHO, what, W_RULE };

	for (size_t i = 0; i < ARRAY_SIZE(widths); i++) {
		cell(&t->out, cells[i],
		     i + 1 < ARRAY_SIZE(widths) ? widths[i] : 0);
		buf_puts(&t->out, i + 1 < ARRAY_SIZE(widths) ? " " : "\n");
	}
}

static void head(struct table *t, const char *third)
{
	const char *const cells[] = {
		"ID", "AGE", third, "WHO", "WHAT", "RULE"
	};
	bool colour = use_colour(1);

	if (t->n++ > 0)
		return;
	if (colour)
		buf_puts(&t->out, "\033[1m");
	row(t, cells);
	if (colour)
		buf_puts(&t->out, "\033[0m");
}

static void put_row(struct table *t, const struct entry *e,
		    const struct request *req)
{
	struct buf what;
	struct buf who;
	struct buf rule;
	char age[32];
	char left[32];

	buf_init(&what, SHOW_MAX);
	buf_init(&who, 1024);
	buf_init(&rule, 4096);
	approvals_age(store_now() - e->made, age);
	approvals_age(e->expires - store_now(), left);
	if (req->agent && *req->agent) {
		visible_text(&who, req->agent, strlen(req->agent), 64);
		buf_puts(&who, ", ");
	}
	visible_text(&who, e->user, strlen(e->user), 64);
	request_summary(req, &what);
	visible_text(&rule, req->rule, strlen(req->rule), 200);
	head(t, t->with_state ? "STATE" : "EXPIRES");
	row(t, (const char *const[]){
		       e->id, age, t->with_state ? state_now(e) : left,
		       who.data ? who.data : "", what.data ? what.data : "",
		       rule.data ? rule.data : "" });
	buf_done(&what);
	buf_done(&who);
	buf_done(&rule);
}

static int list_one(const struct entry *e, void *arg)
{
	struct table *t = arg;
	struct request req;
	struct err err = { 0 };

	if (t->is_json) {
		put_entry(&t->j, e);
		return t->out.error;
	}
	if (approvals_request(e, &req, &err) < 0) {
		say("%s: %s", e->id, err.text);
		return -EBADMSG;
	}
	put_row(t, e, &req);
	request_done(&req);
	return t->out.error;
}

int approvals_list(struct store *s, bool all, bool json)
{
	struct err err = { 0 };
	struct table t;

	table_init(&t, json);
	t.with_state = all;
	if (json)
		json_open(&t.j, NULL, '[');
	if (store_list(s, all, list_one, &t, &err) < 0) {
		buf_done(&t.out);
		say("%s", err.text);
		return EXIT_OURS;
	}
	if (json) {
		json_close(&t.j, ']');
		buf_puts(&t.out, "\n");
	} else if (t.n == 0) {
		buf_puts(&t.out, all ? "nothing was ever asked\n"
				     : "nothing waits for an answer\n");
	}
	return print(&t.out);
}

/* rules */

static void put_rule(struct table *t, const struct rule *r, const char *scope)
{
	struct buf what;
	struct buf who;
	struct buf reason;

	if (t->is_json) {
		json_open(&t->j, NULL, '{');
		put(&t->j, "id", r->id);
		json_str(&t->j, "scope", scope);
		put(&t->j, "content", r->content);
		put(&t->j, "what", r->what);
		put(&t->j, "by", r->by);
		put(&t->j, "when", r->when);
		put(&t->j, "reason", r->reason);
		json_close(&t->j, '}');
		return;
	}
	buf_init(&what, SHOW_MAX);
	buf_init(&who, 4096);
	buf_init(&reason, 65536);
	visible_text(&what, r->what, strlen(r->what), 4096);
	visible_text(&who, r->by, strlen(r->by), 64);
	visible_text(&reason, r->reason, strlen(r->reason), STORE_REASON);
	if (t->n++ == 0)
		buf_puts(&t->out, "ID      SCOPE    SINCE                 BY  "
				  "              WHAT\n");
	cell(&t->out, r->id, W_ID + 1);
	cell(&t->out, scope, W_AGE + 1);
	cell(&t->out, r->when, 22);
	cell(&t->out, who.data ? who.data : "", W_WHO);
	buf_puts(&t->out, "  ");
	buf_puts(&t->out, what.data ? what.data : "");
	if (reason.len > 0) {
		buf_puts(&t->out, "  (");
		buf_puts(&t->out, reason.data);
		buf_puts(&t->out, ")");
	}
	buf_puts(&t->out, "\n");
	buf_done(&what);
	buf_done(&who);
	buf_done(&reason);
}

static int list_grant(const struct grant *g, void *arg)
{
	struct table *t = arg;
	char when[32];
	struct rule r = { .id = (char *)g->id,
			  .content = (char *)g->content,
			  .what = g->what,
			  .by = g->by,
			  .when = when,
			  .reason = g->reason };

	approvals_time(g->made, when);
	put_rule(t, &r, "session");
	return t->out.error;
}

int approvals_rules_list(struct store *s, bool json)
{
	struct rules rules = { 0 };
	struct err err = { 0 };
	struct table t;
	int r;

	table_init(&t, json);
	if (json)
		json_open(&t.j, NULL, '[');
	r = grant_list(s, list_grant, &t, &err);
	if (r == 0)
		r = rules_load(&s->state, &rules, &err);
	if (r < 0) {
		buf_done(&t.out);
		say("%s; nothing is allowed by it", err.text);
		return EXIT_OURS;
	}
	for (size_t i = 0; i < rules.n; i++)
		put_rule(&t, &rules.v[i], "always");
	rules_done(&rules);
	if (json) {
		json_close(&t.j, ']');
		buf_puts(&t.out, "\n");
	} else if (t.n == 0) {
		buf_puts(&t.out, "no answer stands for later requests\n");
	}
	return print(&t.out);
}
