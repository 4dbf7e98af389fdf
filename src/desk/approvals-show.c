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
#include "base/visible.h"

int approvals_request(const struct entry *e, struct request *ret,
		      struct err *err)
{
	char content[65];
	int r = request_parse(e->document, strlen(e->document), ret, err);

	if (r < 0)
		return err_wrap(err, "request '%s' cannot be read", e->id);
	/* One that is cut is over: it is shown, and allows nothing. */
	if (ret->is_cut && e->state != ENTRY_WAITING)
		return 0;
	request_content(ret, content);
	if (!ret->is_cut && strcmp(content, e->content) == 0)
		return 0;
	request_done(ret);
	return err_set(err, EBADMSG,
		       "request '%s' cannot be read: it is not what was "
		       "recorded",
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

static bool is_answered(const struct entry *e)
{
	return e->state == ENTRY_ALLOWED || e->state == ENTRY_DENIED ||
	       e->state == ENTRY_WITHDRAWN;
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
	else
		buf_printf(out, "%-10s %s\n", "expires", text);
	buf_printf(out, "%-10s %s\n", "state", state_now(e));
	if (!is_answered(e))
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
	field(out, "asked of",
	      !req.may_store      ? "terminal"
	      : !req.may_terminal ? "store"
				  : "terminal, store");
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

/* The document is JSON already, unless it cannot be read. */
static void put_document(struct json *j, const struct entry *e)
{
	struct err err = { 0 };
	struct request req;

	if (approvals_request(e, &req, &err) < 0) {
		put(j, "cannot_be_read", err.text);
		return;
	}
	request_done(&req);
	buf_puts(j->out, ",\"request\":");
	buf_puts(j->out, e->document);
}

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
	if (is_answered(e)) {
		json_str(j, "scope", scope_name(e->scope));
		put(j, "reason", e->reason);
		put(j, "by", e->by);
		json_int(j, "answered_ms", e->answered);
		json_bool(j, "used", e->taken != 0);
	}
	put_document(j, e);
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

/* One that cannot be read (NULL) must not hide the others. */
static void put_what(const struct request *req, struct buf *what,
		     struct buf *who, struct buf *rule)
{
	if (!req) {
		buf_puts(what, "cannot be read");
		return;
	}
	if (req->agent && *req->agent) {
		visible_text(who, req->agent, strlen(req->agent), 64);
		buf_puts(who, ", ");
	}
	request_summary(req, what);
	visible_text(rule, req->rule, strlen(req->rule), 200);
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
	put_what(req, &what, &who, &rule);
	visible_text(&who, e->user, strlen(e->user), 64);
	head(t, t->with_state ? "STATE" : "EXPIRES");
	row(t, (const char *const[]){
		       e->id, age, t->with_state ? state_now(e) : left,
		       who.data ? who.data : "", what.data ? what.data : "",
		       rule.data ? rule.data : "" });
	buf_done(&what);
	buf_done(&who);
	buf_done(&rule);
}

/* Many large ones are more than is held at once. */
static int flush(struct buf *out)
{
	size_t len = out->len;

	if (out->error || len < (1U << 20))
		return out->error;
	out->len = 0;
	return io_write_all(1, out->data, len);
}

static int list_one(const struct entry *e, void *arg)
{
	struct table *t = arg;
	struct request req;
	struct err err = { 0 };

	if (t->is_json) {
		put_entry(&t->j, e);
		return flush(&t->out);
	}
	if (approvals_request(e, &req, &err) < 0) {
		say("%s", err.text);
		put_row(t, e, NULL);
		return flush(&t->out);
	}
	put_row(t, e, &req);
	request_done(&req);
	return flush(&t->out);
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
