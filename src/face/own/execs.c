/* SPDX-License-Identifier: Apache-2.0 */

/* Programs in a box. */

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"
#include "face/own/internal.h"

void own_put_exec(struct json *j, const struct exec *e)
{
	struct exec_view v;
	bool has_ended;

	exec_look(e, &v);
	has_ended = v.is_started && !v.is_running;
	json_open(j, NULL, '{');
	json_str(j, "id", v.id);
	json_str(j, "box", v.box);
	json_bool(j, "running", v.is_running);
	if (has_ended)
		json_int(j, "exit_code", v.exit_code);
	else
		json_none(j, "exit_code");
	json_str(j, "cause", has_ended ? v.cause : NULL);
	if (v.pid)
		json_int(j, "pid", v.pid);
	else
		json_none(j, "pid");
	json_open(j, "command", '[');
	for (size_t i = 0; v.command && v.command[i]; i++)
		json_str(j, NULL, v.command[i]);
	json_close(j, ']');
	json_str(j, "user", v.user ? v.user : "");
	json_bool(j, "tty", v.tty);
	own_put_time(j, "started_ms", v.started_ns);
	own_put_time(j, "finished_ms", v.finished_ns);
	json_int(j, "stdout_bytes", (int64_t)v.out_bytes);
	json_int(j, "stderr_bytes", (int64_t)v.err_bytes);
	json_int(j, "dropped_bytes", (int64_t)v.dropped_bytes);
	json_close(j, '}');
}

void own_send_exec(struct http_request *r, int status, const struct exec *e)
{
	struct buf b;
	struct json j = { .out = &b };

	buf_init(&b, OWN_MAX);
	own_put_exec(&j, e);
	own_send(r, status, &b);
}

OWN_HANDLER(own_exec_inspect)
{
	const struct exec *e = own_exec(r, ctx);

	if (e)
		own_send_exec(r, 200, e);
}

OWN_HANDLER(own_execs)
{
	const struct box *box = own_box(r, ctx);
	const char *const *ids;
	struct buf b;
	struct json j = { .out = &b };
	size_t n;

	if (!box)
		return;
	n = box_execs(box, &ids);
	buf_init(&b, OWN_MAX);
	json_open(&j, NULL, '{');
	json_open(&j, "execs", '[');
	for (size_t i = 0; i < n; i++) {
		const struct exec *e = exec_find(ctx, http_peer(r), ids[i],
						 NULL);

		if (e)
			own_put_exec(&j, e);
	}
	json_close(&j, ']');
	json_close(&j, '}');
	own_send(r, 200, &b);
}

OWN_HANDLER(own_exec_attach)
{
	struct exec *e = own_exec(r, ctx);
	struct err err = { 0 };
	struct exec_view v;
	struct pump *p;
	struct sink sink;

	if (!e)
		return;
	exec_look(e, &v);
	p = pump_new(v.tty);
	if (!p) {
		own_fail(r, 500, "out of memory");
		return;
	}
	sink = pump_sink(p);
	pump_join(p, r, exec_attach(e, &sink, &err), &err);
}

/* starting one */

struct want {
	const char *const *command, *const *env;
	const char *code, *workdir, *user;
	bool tty, stdin_, detach;
	int64_t rows, cols;
	uint64_t timeout_us;
};

#define AT(member) offsetof(struct want, member)

static const struct body_member members[] = {
	{ "command", BODY_LIST, AT(command), 0 },
	{ "code", BODY_JSON, AT(code), '[' },
	{ "env", BODY_LIST, AT(env), 0 },
	{ "workdir", BODY_TEXT, AT(workdir), 0 },
	{ "user", BODY_TEXT, AT(user), 0 },
	{ "tty", BODY_BOOL, AT(tty), 0 },
	{ "stdin", BODY_BOOL, AT(stdin_), 0 },
	{ "detach", BODY_BOOL, AT(detach), 0 },
	{ "rows", BODY_INT, AT(rows), 0 },
	{ "cols", BODY_INT, AT(cols), 0 },
	{ "timeout", BODY_TIME, AT(timeout_us), 0 },
};

struct starting {
	struct manager *m;
	struct http_request *r;
	struct call *call;
	struct pump *pump; /* NULL: detached */
	char id[65];
};

static void starting_gone(void *data)
{
	struct starting *s = data;

	call_drop(s->call);
	if (s->pump)
		pump_free(s->pump);
	free(s);
}

static void exec_started(void *arg, const struct err *err)
{
	struct starting *s = arg;
	struct http_request *r = s->r;
	struct pump *p = take_ptr(s->pump);
	const struct exec *e;

	s->call = NULL;
	if (err) {
		s->pump = p;
		own_error(r, err);
		return;
	}
	e = exec_find(s->m, http_peer(r), s->id, NULL);
	if (p) {
		http_add_header(r, "Cordon-Exec", s->id);
		pump_open(p, r);
		free(s); /* the upgrade has no use for it */
	} else if (e) {
		own_send_exec(r, 201, e);
	} else {
		own_fail(r, 404, "its box was removed");
	}
}

static void exec_was_made(void *arg, struct exec *e, const struct err *err)
{
	struct starting *s = arg;
	struct feed *feed = NULL;
	struct exec_view v;
	struct sink sink;

	s->call = NULL;
	if (err) {
		own_error(s->r, err);
		return;
	}
	exec_look(e, &v);
	(void)memccpy(s->id, v.id, 0, sizeof(s->id));
	if (s->pump)
		sink = pump_sink(s->pump);
	s->call = exec_start(e, s->pump ? &sink : NULL, &feed, exec_started, s);
	if (s->pump)
		pump_set_feed(s->pump, feed);
	if (!s->call)
		own_fail(s->r, 500, "out of memory");
}

static struct call *create(struct box *b, const struct want *w,
			   struct starting *s)
{
	struct exec_want want = {
		.command = w->command,
		.code = w->code,
		.env = w->env,
		.workdir = w->workdir,
		.user = w->user,
		.tty = w->tty,
		.stdin_ = w->stdin_,
		.stdout_ = true,
		.stderr_ = true,
		.rows = (unsigned int)MIN(MAX(w->rows, 0), 65535),
		.cols = (unsigned int)MIN(MAX(w->cols, 0), 65535),
		.timeout_us = w->timeout_us,
	};

	return exec_create(b, &want, exec_was_made, s);
}

OWN_HANDLER(own_exec_create)
{
	struct box *b = own_box(r, ctx);
	struct want w = { 0 };
	struct err err = { 0 };
	struct starting *s;
	struct body body;

	if (!b)
		return;
	if (body_read(r, members, ARRAY_SIZE(members), &w, &body, &err) < 0 ||
	    (!(w.command && w.command[0]) && !w.code &&
	     err_set(&err, MGR_INVALID, "'command' or 'code' is missing"))) {
		own_error(r, &err);
		body_done(&body);
		return;
	}
	s = calloc(1, sizeof(*s));
	if (s && !w.detach)
		s->pump = pump_new(w.tty);
	if (!s || (!w.detach && !s->pump)) {
		free(s);
		own_fail(r, 500, "out of memory");
	} else {
		s->m = ctx;
		s->r = r;
		http_set_data(r, s, starting_gone);
		s->call = create(b, &w, s);
		if (!s->call)
			own_fail(r, 500, "out of memory");
	}
	body_done(&body);
}
