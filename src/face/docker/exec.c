/* SPDX-License-Identifier: Apache-2.0 */

/* Execs: create, start, inspect. */

#include <stdio.h>
#include <string.h>

#include "face/docker/fields.h"
#include "face/docker/routes.h"
#include "face/docker/stream.h"

/* ---- detach keys that a client chose, by exec ---- */

#define NOTES_MAX 1024

struct note {
	struct note *next;
	char id[65];
	struct keys keys;
};

static void note_keys(struct docker *d, const char *id, const struct keys *keys)
{
	struct note *n = calloc(1, sizeof(*n));
	struct note **last = &d->notes;

	if (!n)
		abort();
	(void)snprintf(n->id, sizeof(n->id), "%s", id);
	n->keys = *keys;
	n->next = d->notes;
	d->notes = n;
	if (++d->n_notes <= NOTES_MAX)
		return;
	/* The oldest goes; it has the usual keys then. */
	while ((*last)->next)
		last = &(*last)->next;
	free(*last);
	*last = NULL;
	d->n_notes--;
}

static const struct keys *find_keys(const struct docker *d, const char *id)
{
	for (const struct note *n = d->notes; n; n = n->next)
		if (strcmp(n->id, id) == 0)
			return &n->keys;
	return NULL;
}

/* ---- create ---- */

TAKE(take_workdir)
{
	return need_str(k, v, w, &k->exec.workdir);
}

TAKE(take_user)
{
	return need_user(k, v, w, "the container's", &k->exec.user);
}

TAKE(take_tty)
{
	return need_bool(k, v, w, &k->exec.tty);
}

TAKE(take_stdin)
{
	return need_bool(k, v, w, &k->exec.stdin_);
}

TAKE(take_stdout)
{
	return need_bool(k, v, w, &k->exec.stdout_);
}

TAKE(take_stderr)
{
	return need_bool(k, v, w, &k->exec.stderr_);
}

TAKE(take_console)
{
	int64_t h;
	int64_t width;

	if (!json_is_array(v) || json_array_size(v) != 2)
		return say_no(&k->said, 400, "%s: [height, width] is expected",
			      w);
	if (need_int(k, json_array_get(v, 0), w, 0, 65535, &h) < 0 ||
	    need_int(k, json_array_get(v, 1), w, 0, 65535, &width) < 0)
		return -1;
	if (h > 0 && width > 0) {
		k->exec.rows = (unsigned int)h;
		k->exec.cols = (unsigned int)width;
	}
	return 0;
}

TAKE(take_keys)
{
	return need_str(k, v, w, &k->detach_keys);
}

const struct field exec_fields[] = {
	{ "Cmd", FIELD_TAKEN, take_cmd, NULL },
	{ "Env", FIELD_TAKEN, take_env, NULL },
	{ "WorkingDir", FIELD_TAKEN, take_workdir, NULL },
	{ "User", FIELD_TAKEN, take_user, NULL },
	{ "Tty", FIELD_TAKEN, take_tty, NULL },
	{ "AttachStdin", FIELD_TAKEN, take_stdin, NULL },
	{ "AttachStdout", FIELD_TAKEN, take_stdout, NULL },
	{ "AttachStderr", FIELD_TAKEN, take_stderr, NULL },
	{ "ConsoleSize", FIELD_TAKEN, take_console, NULL },
	{ "DetachKeys", FIELD_TAKEN, take_keys, NULL },
	{ "Privileged", FIELD_REFUSED, NULL, "sandboxes are never privileged" },
	{ "Detach", FIELD_QUIET, NULL, NULL },
	{ "Container", FIELD_QUIET, NULL, NULL },
	{ NULL, 0, NULL, NULL },
};

int making_exec(struct making *k, json_t *body)
{
	size_t n;
	json_t *v;
	size_t i;

	k->keep = NULL;
	if (fields_take(exec_fields, "", body, k) < 0)
		return -1;
	n = json_array_size(k->cmd);
	if (n == 0)
		return say_no(&k->said, 400, "No exec command specified");
	k->argv = calloc(n + json_array_size(k->env) + 2, sizeof(*k->argv));
	if (!k->argv)
		abort();
	json_array_foreach(k->cmd, i, v) k->argv[i] = json_string_value(v);
	json_array_foreach(k->env, i, v)
	{
		const char *text = json_string_value(v);

		if (!*text || *text == '=')
			return say_no(&k->said, 400,
				      "Env: invalid environment variable: "
				      "%.60s",
				      text);
		k->argv[n + 1 + i] = text;
	}
	k->exec.command = k->argv;
	k->exec.env = k->argv + n + 1;
	if (k->exec.workdir && *k->exec.workdir != '/')
		return say_no(&k->said, 400,
			      "WorkingDir: '%.100s' is not an absolute path",
			      k->exec.workdir);
	return 0;
}

struct exec_ask {
	struct ask ask;
	json_t *warnings;
	bool has_keys;
	struct keys keys;
};

static void exec_ask_gone(struct ask *a)
{
	json_decref(((struct exec_ask *)a)->warnings);
}

static void exec_made(void *arg, struct exec *e, const struct err *err)
{
	struct exec_ask *a = arg;
	struct exec_view v;
	json_t *doc;

	a->ask.call = NULL;
	if (err) {
		answer_err(a->ask.r, err, a->ask.name);
		return;
	}
	exec_look(e, &v);
	if (a->has_keys)
		note_keys(a->ask.d, v.id, &a->keys);
	doc = json_pack("{s:s}", "Id", v.id);
	/* Docker has no such member; whoever looks finds it. */
	if (json_array_size(a->warnings) > 0)
		json_object_set(doc, "Warnings", a->warnings);
	answer_json(a->ask.r, 201, doc);
}

/* True when it was answered: only a container that runs has execs. */
static bool must_run(struct http_request *r, struct box *b)
{
	struct box_view v;

	box_look(b, &v);
	if (v.state == BOX_PAUSED)
		answer_fail(
			r, 409,
			"Container %s is paused, unpause the container before "
			"exec",
			v.id);
	else if (v.state != BOX_RUNNING)
		answer_fail(r, 409, "container %s is not running", v.id);
	return v.state != BOX_RUNNING;
}

HANDLER(post_exec)
{
	struct docker *d = docker_of(ctx);
	struct box *b = need_box(r, d);
	struct exec_ask *a;
	struct keys keys = { 0 };
	struct making k;
	json_t *body = b ? need_body(r) : NULL;

	if (!body)
		return;
	making_init(&k, d, http_peer(r));
	if (making_exec(&k, body) == 0 && k.detach_keys &&
	    keys_parse(k.detach_keys, &keys) < 0)
		(void)say_no(&k.said, 400,
			     "DetachKeys: '%.60s' is not a list of keys",
			     k.detach_keys);
	if (k.said.status) {
		struct box_view v;

		box_look(b, &v);
		making_denied(&k, v.id, v.name);
		answer_fail(r, k.said.status, "%s", k.said.text);
	} else if (!must_run(r, b)) {
		a = ask_new(r, d, sizeof(*a), exec_ask_gone);
		a->warnings = json_incref(k.warnings);
		a->has_keys = k.detach_keys != NULL;
		a->keys = keys;
		a->ask.call = exec_create(b, &k.exec, exec_made, a);
	}
	making_done(&k);
	json_decref(body);
}

/* ---- start ---- */

static void started_detached(void *arg, const struct err *err)
{
	struct ask *a = arg;

	a->call = NULL;
	if (err)
		answer_err(a->r, err, a->name);
	else
		answer_empty(a->r, 200);
}

/* The switch was made: the text is the stream's, its end follows. */
static void started(void *arg, const struct err *err)
{
	struct wire *w = arg;
	char text[1024];
	size_t len;

	w->call = NULL;
	/* Its end may have come before, by the keys. */
	if (!err || w->has_ended)
		return;
	(void)error_status(err, w->id, text, sizeof(text) - 2);
	len = strlen(text);
	memcpy(text + len, "\r\n", 3);
	(void)out_write(&w->out, w->out.is_framed ? 2 : 1, text, len + 2);
	/* Without a feed nobody else tells that nothing more comes. */
	if (!w->feed)
		wire_end(w);
}

static void start_attached(struct http_request *r, struct docker *d,
			   struct exec *e, const struct exec_view *v)
{
	const struct keys *keys = find_keys(d, v->id);
	struct wire *w = wire_new(d);
	struct sink sink = wire_sink(w);

	(void)snprintf(w->id, sizeof(w->id), "%s", v->id);
	w->has[0] = v->stdin_;
	w->has[1] = v->stdout_;
	w->has[2] = v->stderr_;
	w->has_keys = v->tty && v->stdin_;
	if (keys)
		w->keys = *keys;
	else
		(void)keys_parse("", &w->keys);
	w->call = exec_start(e, &sink, &w->feed, started, w);
	wire_open(w, r, !v->tty);
}

TAKE(take_detach)
{
	return need_bool(k, v, w, k->part);
}

static const struct field start_fields[] = {
	{ "Detach", FIELD_TAKEN, take_detach, NULL },
	/* What it was made with holds. */
	{ "Tty", FIELD_TAKEN, take_tty, NULL },
	{ "ConsoleSize", FIELD_TAKEN, take_console, NULL },
	{ NULL, 0, NULL, NULL },
};

/* False when it was answered; *ret_size has rows and columns, or zeroes. */
static bool start_asked(struct http_request *r, struct docker *d, json_t *body,
			bool *ret_detach, unsigned int ret_size[2])
{
	struct making k;
	bool is_good;

	*ret_detach = false;
	making_init(&k, d, http_peer(r));
	k.part = ret_detach;
	is_good = fields_take(start_fields, "", body, &k) == 0;
	if (!is_good)
		answer_fail(r, k.said.status, "%s", k.said.text);
	ret_size[0] = k.exec.rows;
	ret_size[1] = k.exec.cols;
	making_done(&k);
	return is_good;
}

static void start(struct http_request *r, struct docker *d, struct exec *e,
		  bool is_detached)
{
	struct exec_view v;
	struct ask *a;

	exec_look(e, &v);
	if (!is_detached) {
		start_attached(r, d, e, &v);
		return;
	}
	a = ask_new(r, d, sizeof(*a), NULL);
	a->call = exec_start(e, NULL, NULL, started_detached, a);
}

HANDLER(post_exec_start)
{
	struct docker *d = docker_of(ctx);
	const char *id = http_param(r, 0);
	struct err err = { 0 };
	struct exec *e = exec_find(d->m, http_peer(r), id, &err);
	json_t *body = e ? need_body(r) : NULL;
	unsigned int size[2];
	struct exec_view v;
	bool is_detached;

	if (!e) {
		answer_fail(r, 404, "No such exec instance: %.80s", id);
		return;
	}
	if (!body)
		return;
	exec_look(e, &v);
	/* Before the switch: after it there is no status to tell it with. */
	if (!start_asked(r, d, body, &is_detached, size)) {
		/* It was answered. */
	} else if (!box_find(d->m, http_peer(r), v.box, &err) ||
		   exec_check_start(e, &err) < 0) {
		answer_err(r, &err, v.box);
	} else {
		if (size[0] && size[1])
			(void)exec_resize(e, size[0], size[1], &err);
		start(r, d, e, is_detached);
	}
	json_decref(body);
}

/* ---- inspect ---- */

HANDLER(get_exec)
{
	struct docker *d = docker_of(ctx);
	const char *id = http_param(r, 0);
	struct err err = { 0 };
	struct exec *e = exec_find(d->m, http_peer(r), id, &err);
	struct exec_view v;
	json_t *args;
	bool has_ended;

	if (e) {
		exec_look(e, &v);
	} else if (!exec_look_past(d->m, http_peer(r), id, &v)) {
		answer_fail(r, 404, "No such exec instance: %.80s", id);
		return;
	}
	has_ended = v.is_started && !v.is_running;
	args = json_array();
	for (size_t i = 1; v.command && v.command[0] && v.command[i]; i++)
		json_array_append_new(args, json_string(v.command[i]));
	answer_json(
		r, 200,
		json_pack(
			"{s:s,s:b,s:o,s:I,s:s,s:b,s:b,s:b,s:b,s:s,s:{s:b,s:s,s:"
			"o,s:s,s:b}}",
			"ID", v.id, "Running", v.is_running, "ExitCode",
			has_ended ? json_integer(v.exit_code) : json_pack("n"),
			"Pid", (json_int_t)v.pid, "ContainerID", v.box,
			"OpenStdin", v.stdin_, "OpenStdout", v.stdout_,
			"OpenStderr", v.stderr_, "CanRemove", 0, "DetachKeys",
			"", "ProcessConfig", "tty", v.tty, "entrypoint",
			v.command && v.command[0] ? v.command[0] : "",
			"arguments", args, "user", v.user ? v.user : "",
			"privileged", 0));
}
