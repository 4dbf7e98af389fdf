/* SPDX-License-Identifier: Apache-2.0 */

/* Boxes: making, listing, looking, removing. */

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"
#include "box/result.h"
#include "face/own/internal.h"

static const char *const states[] = {
	[BOX_CREATED] = "created", [BOX_RUNNING] = "running",
	[BOX_PAUSED] = "paused",   [BOX_EXITED] = "exited",
	[BOX_GONE] = "removed",
};

void own_put_time(struct json *j, const char *name, int64_t ns)
{
	if (ns)
		json_int(j, name, ns / 1000000);
	else
		json_none(j, name);
}

static void put_raw_or(struct json *j, const char *name, const char *json,
		       const char *other)
{
	json_raw(j, name, json ? json : other);
}

static void put_entry(struct json *j, const struct box_view *v)
{
	_cleanup_free_ char *image = own_doc_member(v->spec, "image");
	_cleanup_free_ char *command = own_doc_member(v->spec, "command");
	bool has_ended = v->state == BOX_EXITED;

	json_str(j, "id", v->id);
	json_str(j, "name", v->name);
	json_str(j, "state", states[v->state]);
	json_int(j, "owner", v->owner);
	json_str(j, "face", v->face);
	put_raw_or(j, "image", image, "\"host\"");
	put_raw_or(j, "command", command, "[]");
	own_put_time(j, "created_ms", v->created_ns);
	own_put_time(j, "started_ms", v->started_ns);
	own_put_time(j, "finished_ms", v->finished_ns);
	if (has_ended)
		json_int(j, "exit_code", v->exit_code);
	else
		json_none(j, "exit_code");
	json_str(j, "cause", has_ended ? v->cause : NULL);
}

static void put_rest(struct json *j, const struct box *b,
		     const struct box_view *v)
{
	const char *const *ids;
	size_t n = box_execs(b, &ids);

	json_str(j, "error", v->error);
	json_bool(j, "oom_killed", v->oom_killed);
	if (v->pid)
		json_int(j, "pid", v->pid);
	else
		json_none(j, "pid");
	json_int(j, "restarts", v->restarts);
	json_bool(j, "tty", v->tty);
	json_bool(j, "stdin", v->open_stdin);
	json_bool(j, "auto_remove", v->auto_remove);
	json_int(j, "stop_signal", v->stop_signal);
	json_int(j, "stop_timeout", v->stop_timeout_s);
	json_open(j, "execs", '[');
	for (size_t i = 0; i < n; i++)
		json_str(j, NULL, ids[i]);
	json_close(j, ']');
	put_raw_or(j, "warnings", v->warnings, "[]");
	json_open(j, "denials", '[');
	if (v->net)
		result_put_refused(j, v->net);
	json_close(j, ']');
	put_raw_or(j, "clamped", v->clamped, "[]");
	put_raw_or(j, "settings", v->settings, "{}");
	put_raw_or(j, "spec", v->spec, "{}");
	put_raw_or(j, "extra", v->extra, "null");
}

void own_send_box(struct http_request *r, int status, const struct box *b)
{
	struct box_view v;
	struct buf out;
	struct json j = { .out = &out };

	box_look(b, &v);
	buf_init(&out, OWN_MAX);
	json_open(&j, NULL, '{');
	put_entry(&j, &v);
	put_rest(&j, b, &v);
	json_close(&j, '}');
	own_send(r, status, &out);
}

OWN_HANDLER(own_boxes)
{
	bool all = own_flag(r, "all", false);
	_cleanup_free_ struct box **v = NULL;
	size_t n = box_list(ctx, http_peer(r), &v);
	struct buf out;
	struct json j = { .out = &out };

	buf_init(&out, OWN_MAX);
	json_open(&j, NULL, '{');
	json_open(&j, "boxes", '[');
	for (size_t i = 0; i < n; i++) {
		struct box_view view;

		box_look(v[i], &view);
		if (!all && view.state != BOX_RUNNING &&
		    view.state != BOX_PAUSED)
			continue;
		json_open(&j, NULL, '{');
		put_entry(&j, &view);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_close(&j, '}');
	own_send(r, 200, &out);
}

OWN_HANDLER(own_box_inspect)
{
	const struct box *b = own_box(r, ctx);

	if (b)
		own_send_box(r, 200, b);
}

OWN_HANDLER(own_box_remove)
{
	struct box *b = own_box(r, ctx);
	struct act *a = b ? act_new(r, ctx) : NULL;

	if (a)
		act_wait(a, box_remove(b, own_flag(r, "force", false), act_done,
				       a));
}

/* making */

struct want {
	const char *name, *settings, *extra, *stop_signal;
	const char *const *command;
	bool main, start, tty, stdin_, auto_remove, clamp;
	bool kill_exec_rest, kill_on_disconnect;
	int64_t stop_timeout;
	uint64_t idle_us, life_us, exec_us;
};

#define AT(member) offsetof(struct want, member)

static const struct body_member members[] = {
	{ "name", BODY_TEXT, AT(name), 0 },
	{ "settings", BODY_JSON, AT(settings), '{' },
	{ "command", BODY_LIST, AT(command), 0 },
	{ "main", BODY_BOOL, AT(main), 0 },
	{ "start", BODY_BOOL, AT(start), 0 },
	{ "tty", BODY_BOOL, AT(tty), 0 },
	{ "stdin", BODY_BOOL, AT(stdin_), 0 },
	{ "auto_remove", BODY_BOOL, AT(auto_remove), 0 },
	{ "clamp", BODY_BOOL, AT(clamp), 0 },
	{ "kill_exec_rest", BODY_BOOL, AT(kill_exec_rest), 0 },
	{ "kill_on_disconnect", BODY_BOOL, AT(kill_on_disconnect), 0 },
	{ "stop_signal", BODY_TEXT, AT(stop_signal), 0 },
	{ "stop_timeout", BODY_INT, AT(stop_timeout), 0 },
	{ "idle_timeout", BODY_TIME, AT(idle_us), 0 },
	{ "life_timeout", BODY_TIME, AT(life_us), 0 },
	{ "exec_timeout", BODY_TIME, AT(exec_us), 0 },
	{ "extra", BODY_JSON, AT(extra), '{' },
};

struct making {
	struct act act; /* first: its gone frees it */
	bool start;
	struct box *box;
};

static void making_gone(void *data)
{
	struct making *m = data;

	call_drop(m->act.call);
	if (m->box)
		box_unref(m->box);
	free(m);
}

static void started(void *arg, const struct err *err)
{
	struct making *m = arg;

	m->act.call = NULL;
	if (err)
		own_error(m->act.r, err);
	else
		own_send_box(m->act.r, 201, m->box);
}

static void made(void *arg, struct box *b, const struct err *err)
{
	struct making *m = arg;

	m->act.call = NULL;
	if (err) {
		own_error(m->act.r, err);
	} else if (m->start) {
		m->box = box_ref(b);
		act_wait(&m->act, box_start(b, started, m));
	} else {
		own_send_box(m->act.r, 201, b);
	}
}

static bool has_image(const char *settings)
{
	_cleanup_free_ char *image = own_doc_member(settings, "image");

	return image && strcmp(image, "null") != 0 &&
	       strcmp(image, "\"host\"") != 0;
}

static int fill(struct box_want *to, const struct want *w, struct err *err)
{
	*to = (struct box_want){
		.face = "cordon",
		.settings = w->settings ? w->settings : "{}",
		.name = w->name,
		.command = w->command,
		.extra = w->extra,
		.has_no_main = !w->main,
		.clamp = w->clamp,
		.tty = w->tty,
		.open_stdin = w->stdin_,
		.auto_remove = w->auto_remove,
		.kill_exec_rest = w->kill_exec_rest,
		.kill_on_disconnect = w->kill_on_disconnect,
		.stop_timeout_s = (int)MIN(w->stop_timeout, INT_MAX),
		.idle_us = w->idle_us,
		.life_us = w->life_us,
		.exec_timeout_us = w->exec_us,
	};
	if (w->stop_signal) {
		to->stop_signal = own_signal_of(w->stop_signal);
		if (!to->stop_signal)
			return err_set(err, MGR_INVALID,
				       "'stop_signal' takes a signal, such as "
				       "TERM");
	}
	return 0;
}

OWN_HANDLER(own_box_create)
{
	struct want w = { .stop_timeout = -1 };
	struct box_want want;
	struct making *m;
	struct err err = { 0 };
	struct body body;

	w.main = true;
	if (body_read(r, members, ARRAY_SIZE(members), &w, &body, &err) < 0 ||
	    fill(&want, &w, &err) < 0) {
		own_error(r, &err);
		body_done(&body);
		return;
	}
	if (!w.command && !has_image(w.settings))
		want.has_no_main = true;
	m = calloc(1, sizeof(*m));
	if (!m) {
		own_fail(r, 500, "out of memory");
		body_done(&body);
		return;
	}
	m->act = (struct act){ .m = ctx, .r = r };
	m->start = w.start;
	http_set_data(r, m, making_gone);
	act_wait(&m->act, box_create(ctx, http_peer(r), &want, made, m));
	body_done(&body);
}
