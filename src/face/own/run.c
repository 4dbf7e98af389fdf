/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One request, one run: in a box that is made for it and removed with it, or
 * as a program in a box that lives.
 *
 *	fresh:  box_create, box_attach, box_start, box_wait, box_remove
 *	other:  exec_create, exec_start, its end
 *
 * Output goes through the captures that `cordon run` has. A client that leaves
 * cancels, and so does DELETE /v1/runs/ID.
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/random.h>

#include "base/hex.h"
#include "base/sha256.h"
#include "base/json.h"
#include "base/util.h"
#include "box/capture.h"
#include "box/wire.h"
#include "face/own/internal.h"

#define RUN_TIMEOUT "30s"
#define MAX_KEPT    (64U << 20) /* of each stream */

struct running {
	TAILQ_ENTRY(running) all;
	struct manager *m;
	struct http_request *r;
	uid_t uid;
	char id[33];
	bool has_events, is_code, is_begun, was_cancelled;
	char reason[201];             /* of the cancelling */
	bool has_end, has_output_end; /* both: it is over */
	struct box *box;              /* a fresh one, referenced */
	char exec[65];                /* or this */
	char run[33];                 /* on the ledger, when it has begun */
	struct call *call;
	struct feed *feed;
	struct capture out, err, both;
	uint64_t hard_output; /* 0: none */
	bool has_flooded;
	char *input;
	size_t input_at, input_len;
	uint64_t timeout_us;
	bool is_blocked, has_finished;
	struct err refusal;
	char *document;
};

static TAILQ_HEAD(, running) all = TAILQ_HEAD_INITIALIZER(all);

static void ignore(void *arg, const struct err *err)
{
	(void)arg;
	(void)err;
}

/* lines of a stream of events */

static void send_line(struct running *n, struct buf *b)
{
	(void)buf_puts(b, "\n");
	if (!b->error)
		(void)http_write(n->r, b->data, b->len);
	buf_done(b);
}

static void begin_events(struct running *n)
{
	struct buf b;
	struct json j = { .out = &b };

	if (!n->has_events || n->is_begun)
		return;
	n->is_begun = true;
	http_begin(n->r, 200, OWN_JSON, false);
	buf_init(&b, 4096);
	json_open(&j, NULL, '{');
	json_str(&j, "event", "started");
	json_str(&j, "id", n->id);
	json_str(&j, "run", n->run);
	json_close(&j, '}');
	send_line(n, &b);
}

static void send_output(struct running *n, int stream, const char *data,
			size_t len)
{
	struct buf b;
	struct json j = { .out = &b };

	buf_init(&b, OWN_MAX);
	json_open(&j, NULL, '{');
	json_str(&j, "event", "output");
	json_str(&j, "stream", stream == 1 ? "stdout" : "stderr");
	if (utf8_check(data, len))
		json_bytes(&j, "text", data, len);
	else
		json_base64(&j, "b64", data, len);
	json_close(&j, '}');
	send_line(n, &b);
}

/* the end */

static void let_box_go(struct running *n)
{
	struct box *b = take_ptr(n->box);

	if (!b)
		return;
	call_drop(box_remove(b, true, ignore, NULL));
	box_unref(b);
}

/* Who ended it is known to the manager, or to us: it is said to the keeper
 * as any other kill. */
static void correct(const struct running *n, struct wire_outcome *o,
		    const char *cause)
{
	if (o->end != WIRE_BY_CANCEL)
		return;
	if (n->has_flooded)
		o->end = WIRE_BY_FLOOD;
	else if (cause && strcmp(cause, "timeout") == 0)
		o->end = WIRE_BY_TIMEOUT;
}

/* Its box, and what is known of its end; false: nothing is. */
static bool look(struct running *n, struct box_view *box,
		 struct wire_outcome *ret)
{
	const struct wire_outcome *o = NULL;
	const char *cause = NULL;
	struct exec_view v;
	struct box *b = n->box;

	if (n->exec[0]) {
		const struct exec *e = exec_find(n->m, http_peer(n->r), n->exec,
						 NULL);

		if (!e)
			return false;
		exec_look(e, &v);
		cause = v.cause;
		o = exec_outcome(e);
		b = box_find(n->m, http_peer(n->r), v.box, NULL);
	}
	if (b)
		box_look(b, box);
	if (n->box) {
		cause = box->cause;
		o = box_outcome(n->box);
	}
	if (!o)
		return false;
	*ret = *o;
	correct(n, ret, cause);
	return true;
}

static char *document(struct running *n)
{
	struct run_facts f = {
		.id = n->run[0] ? n->run : n->id,
		.is_code = n->is_code,
		.cancel_reason = n->was_cancelled ? n->reason : NULL,
		.out = &n->out,
		.err = &n->err,
		.both = &n->both,
		.timeout_us = n->timeout_us,
	};
	struct box_view v = { 0 };
	struct wire_outcome o;

	if (look(n, &v, &o))
		f.outcome = &o;
	else if (!n->refusal.code)
		(void)err_set(&n->refusal, MGR_LOST, "its end was not seen");
	f.spec = v.spec;
	f.warnings = n->box ? v.warnings : NULL;
	f.net = v.net;
	f.refusal = n->refusal.code ? &n->refusal : NULL;
	return own_result(&f);
}

static void send_result(struct running *n)
{
	char *text = n->document;

	if (!text && !n->is_begun) {
		own_fail(n->r, 500, "out of memory for the result document");
	} else if (!text) {
		http_cut(n->r);
	} else if (n->has_events) {
		struct buf b;
		struct json j = { .out = &b };

		/* What was refused has not started. */
		if (!n->is_begun)
			http_begin(n->r, 200, OWN_JSON, false);
		n->is_begun = true;
		buf_init(&b, strlen(text) + 4096);
		json_open(&j, NULL, '{');
		json_str(&j, "event", "result");
		json_raw(&j, "result", text);
		json_close(&j, '}');
		(void)buf_puts(&b, "\n");
		http_finish(n->r, b.data, b.len);
		buf_done(&b);
	} else {
		http_answer(n->r, 200, OWN_JSON, text, strlen(text));
	}
}

static void on_removed(void *arg, const struct err *err)
{
	struct running *n = arg;

	(void)err;
	n->call = NULL;
	send_result(n);
}

/* Nobody is told before nothing is left of the box. */
static void finish(struct running *n)
{
	struct box *b;

	if (n->has_finished)
		return;
	n->has_finished = true;
	n->document = document(n);
	b = take_ptr(n->box);
	if (b) {
		call_drop(n->call);
		n->call = box_remove(b, true, on_removed, n);
		box_unref(b);
		if (n->call)
			return;
	}
	send_result(n);
}

static void maybe_finish(struct running *n)
{
	if (n->has_end && n->has_output_end)
		finish(n);
}

/* It ended before it began; what is not a run's end is an HTTP error. */
static void refuse(struct running *n, const struct err *err)
{
	bool is_end = err->code == MGR_DENIED || err->code == MGR_ASKED ||
		      err->code == MGR_SETUP || err->code == MGR_NO_PROGRAM ||
		      err->code == MGR_NOT_EXECUTABLE || err->code == MGR_LOST;

	n->refusal = *err;
	if (is_end || n->is_begun) {
		finish(n);
		return;
	}
	own_error(n->r, err);
	let_box_go(n);
}

/* streams */

/* Ends all of it; how that is called is up to the caller. */
static void kill_it(struct running *n)
{
	struct exec *e = NULL;

	if (n->exec[0])
		e = exec_find(n->m, http_peer(n->r), n->exec, NULL);
	if (e)
		call_drop(exec_kill(e, SIGKILL, ignore, NULL));
	else if (n->box)
		call_drop(box_kill(n->box, SIGKILL, ignore, NULL));
}

static void keep_output(struct running *n, int stream, const char *data,
			size_t len)
{
	struct capture *c = stream == 1 ? &n->out : &n->err;

	capture_add(c, data, len);
	if (n->is_code)
		capture_add(&n->both, data, len);
	if (n->hard_output && c->total > n->hard_output && !n->has_flooded) {
		n->has_flooded = true;
		kill_it(n);
	}
}

/* What the box's settings say of output, before the first of it. */
static void take_output_limits(struct running *n, const struct box *b)
{
	struct box_view v;
	double kept;
	double hard;

	box_look(b, &v);
	kept = own_doc_number(v.spec, "output", 1 << 20);
	hard = own_doc_number(v.spec, "hard_output", 0);
	capture_init(&n->out, (size_t)MIN(MAX(kept, 0), MAX_KEPT));
	capture_init(&n->err, (size_t)MIN(MAX(kept, 0), MAX_KEPT));
	capture_init(&n->both, (size_t)MIN(MAX(kept, 0), MAX_KEPT));
	n->hard_output = hard > 0 ? (uint64_t)hard : 0;
}

/* As lines, as far as there is room: one may be six times as long. */
static size_t pass_output(struct running *n, int stream, const char *data,
			  size_t len)
{
	size_t taken = 0;

	while (taken < len && n->is_begun) {
		size_t some = MIN(len - taken, 8192);

		if (http_room(n->r) < 7 * some)
			break;
		send_output(n, stream, data + taken, some);
		taken += some;
	}
	n->is_blocked = taken < len;
	return taken;
}

static size_t on_output(void *arg, int stream, const char *data, size_t len)
{
	struct running *n = arg;

	if (n->has_events)
		len = pass_output(n, stream, data, len);
	keep_output(n, stream, data, len);
	return len;
}

static void on_output_end(void *arg)
{
	struct running *n = arg;

	n->feed = NULL;
	n->has_output_end = true;
	if (n->exec[0])
		n->has_end = true;
	if (!n->call || n->box)
		maybe_finish(n);
}

static void on_ready(void *data)
{
	struct running *n = data;

	if (n->feed && n->is_blocked) {
		n->is_blocked = false;
		feed_ready(n->feed);
	}
}

static void give_input(void *arg)
{
	struct running *n = arg;

	if (!n->feed)
		return;
	if (n->input_at < n->input_len)
		n->input_at += feed_input(n->feed, n->input + n->input_at,
					  n->input_len - n->input_at);
	if (n->input_at == n->input_len)
		feed_end_input(n->feed);
}

static struct sink sink_of(struct running *n)
{
	return (struct sink){ .write = on_output,
			      .end = on_output_end,
			      .arg = n };
}

static void keep_run(struct running *n, const char *run)
{
	(void)snprintf(n->run, sizeof(n->run), "%s", run ? run : "");
}

/* in a box of its own */

static void on_waited(void *arg, int exit_code, const char *error)
{
	struct running *n = arg;

	(void)exit_code;
	(void)error;
	n->call = NULL;
	n->has_end = true;
	maybe_finish(n);
}

static void on_box_started(void *arg, const struct err *err)
{
	struct running *n = arg;
	struct box_view v;

	n->call = NULL;
	if (err) {
		refuse(n, err);
		return;
	}
	begin_events(n);
	on_ready(n);
	give_input(n);
	/* Before it was there, nothing could be killed. */
	if (n->was_cancelled)
		kill_it(n);
	box_look(n->box, &v);
	n->call = box_wait(n->m, http_peer(n->r), v.id, WAIT_NOT_RUNNING,
			   on_waited, n, &n->refusal);
	if (!n->call)
		refuse(n, &n->refusal);
}

static void on_box_made(void *arg, struct box *b, const struct err *err)
{
	struct running *n = arg;
	const struct attach_want want = { .stdout_ = true,
					  .stderr_ = true,
					  .stdin_ = n->input != NULL,
					  .logs = true,
					  .stream = true };
	const struct sink sink = sink_of(n);
	struct box_view v;

	n->call = NULL;
	if (err) {
		refuse(n, err);
		return;
	}
	n->box = box_ref(b);
	take_output_limits(n, b);
	box_look(b, &v);
	keep_run(n, v.run);
	n->feed = box_attach(b, &want, &sink, &n->refusal);
	if (!n->feed) {
		refuse(n, &n->refusal);
		return;
	}
	feed_on_input(n->feed, give_input);
	n->call = box_start(b, on_box_started, n);
	if (!n->call)
		own_fail(n->r, 500, "out of memory");
}

/* in one that lives */

static void on_exec_started(void *arg, const struct err *err)
{
	struct running *n = arg;

	n->call = NULL;
	if (err) {
		refuse(n, err);
		return;
	}
	begin_events(n);
	on_ready(n);
	give_input(n);
	if (n->was_cancelled)
		kill_it(n);
	maybe_finish(n);
}

static void on_exec_made(void *arg, struct exec *e, const struct err *err)
{
	struct running *n = arg;
	const struct sink sink = sink_of(n);
	struct exec_view v;

	n->call = NULL;
	if (err) {
		refuse(n, err);
		return;
	}
	exec_look(e, &v);
	(void)snprintf(n->exec, sizeof(n->exec), "%s", v.id);
	keep_run(n, v.run);
	n->call = exec_start(e, &sink, &n->feed, on_exec_started, n);
	if (n->feed)
		feed_on_input(n->feed, give_input);
	if (!n->call)
		own_fail(n->r, 500, "out of memory");
}

/* the request */

struct want {
	const char *id, *box, *settings, *code, *stdin_, *stdin_b64, *workdir;
	const char *const *command, *const *env;
	uint64_t timeout_us;
	bool events;
};

#define AT(member) offsetof(struct want, member)

static const struct body_member members[] = {
	{ "id", BODY_TEXT, AT(id), 0 },
	{ "box", BODY_TEXT, AT(box), 0 },
	{ "settings", BODY_JSON, AT(settings), '{' },
	{ "command", BODY_LIST, AT(command), 0 },
	{ "code", BODY_JSON, AT(code), '[' },
	{ "stdin", BODY_TEXT, AT(stdin_), 0 },
	{ "stdin_b64", BODY_TEXT, AT(stdin_b64), 0 },
	{ "env", BODY_LIST, AT(env), 0 },
	{ "workdir", BODY_TEXT, AT(workdir), 0 },
	{ "timeout", BODY_TIME, AT(timeout_us), 0 },
	{ "events", BODY_BOOL, AT(events), 0 },
};

static bool is_id(const char *text)
{
	return strlen(text) == 32 && strspn(text, "0123456789abcdef") == 32;
}

static struct running *find(const char *id)
{
	struct running *n;

	TAILQ_FOREACH(n, &all, all)
	if (strcmp(n->id, id) == 0)
		return n;
	return NULL;
}

static int check(const struct want *w, struct err *err)
{
	if (w->id && (!is_id(w->id) || find(w->id)))
		return err_set(err, MGR_INVALID,
			       "'id' takes 32 hex digits that no run has");
	if ((w->command && w->command[0]) == (w->code != NULL))
		return err_set(err, MGR_INVALID,
			       "either 'command' or 'code' is wanted");
	if (w->box && w->settings)
		return err_set(err, MGR_INVALID,
			       "a box has its settings already: leave out "
			       "'settings' or 'box'");
	if (!w->box && (w->env || w->workdir || w->timeout_us))
		return err_set(err, MGR_INVALID,
			       "'env', 'workdir' and 'timeout' go with 'box'; "
			       "else they are settings");
	if (w->stdin_ && w->stdin_b64)
		return err_set(err, MGR_INVALID,
			       "either 'stdin' or 'stdin_b64' is wanted");
	return 0;
}

static int take_input(struct running *n, const struct want *w, struct err *err)
{
	if (w->stdin_) {
		n->input = strdup(w->stdin_);
		n->input_len = strlen(w->stdin_);
	} else if (w->stdin_b64) {
		n->input = own_base64(w->stdin_b64, &n->input_len);
		if (!n->input)
			return err_set(err, MGR_INVALID,
				       "'stdin_b64' takes base64");
	}
	return 0;
}

static void gone(void *data)
{
	struct running *n = data;

	TAILQ_REMOVE(&all, n, all);
	call_drop(n->call);
	if (n->feed)
		feed_drop(n->feed);
	if (n->exec[0] && !n->has_end)
		kill_it(n);
	let_box_go(n);
	capture_done(&n->out);
	capture_done(&n->err);
	capture_done(&n->both);
	free(n->input);
	free(n->document);
	free(n);
}

static struct running *running_new(struct http_request *r, struct manager *m,
				   const struct want *w)
{
	struct running *n = calloc(1, sizeof(*n));
	unsigned char raw[16] = { 0 };

	if (!n)
		return NULL;
	n->r = r;
	n->m = m;
	n->uid = http_peer(r)->uid;
	n->has_events = w->events;
	n->is_code = w->code != NULL;
	n->timeout_us = w->timeout_us;
	if (w->id)
		(void)snprintf(n->id, sizeof(n->id), "%s", w->id);
	(void)!getrandom(raw, sizeof(raw), 0);
	if (!w->id)
		hex_format(raw, sizeof(raw), n->id);
	TAILQ_INSERT_TAIL(&all, n, all);
	http_set_data(r, n, gone);
	http_on_ready(r, on_ready);
	return n;
}

/* As of orders.h; NULL: there is none. */
static const char *sum_input(const struct running *n, char *ret, size_t size)
{
	unsigned char sum[SHA256_SIZE];
	struct sha256 h;
	int at;

	if (!n->input)
		return NULL;
	sha256_init(&h);
	sha256_add(&h, n->input, n->input_len);
	sha256_end(&h, sum);
	at = snprintf(ret, size, "%zu ", n->input_len);
	hex_format(sum, sizeof(sum), ret + at);
	return ret;
}

static void begin(struct running *n, const struct want *w)
{
	struct err err = { 0 };
	char sum[96];
	const char *input = sum_input(n, sum, sizeof(sum));
	/* Boxes of the daemon have no end of their own; a run has. */
	_cleanup_free_ char *settings = own_doc_default(w->settings, "timeout",
							RUN_TIMEOUT);
	const struct box_want box = { .face = "cordon",
				      .settings = settings,
				      .command = w->command,
				      .code = w->code,
				      .input = input,
				      .open_stdin = n->input != NULL,
				      .stdin_once = true,
				      .stop_timeout_s = -1 };
	const struct exec_want exec = { .command = w->command,
					.code = w->code,
					.input = input,
					.env = w->env,
					.workdir = w->workdir,
					.stdin_ = n->input != NULL,
					.stdout_ = true,
					.stderr_ = true,
					.timeout_us = w->timeout_us };
	struct box *b;

	if (!w->box) {
		if (settings)
			n->call = box_create(n->m, http_peer(n->r), &box,
					     on_box_made, n);
	} else {
		b = box_find(n->m, http_peer(n->r), w->box, &err);
		if (!b) {
			own_error(n->r, &err);
			return;
		}
		take_output_limits(n, b);
		n->call = exec_create(b, &exec, on_exec_made, n);
	}
	if (!n->call)
		own_fail(n->r, 500, "out of memory");
}

OWN_HANDLER(own_run)
{
	struct want w = { 0 };
	struct err err = { 0 };
	struct running *n;
	struct body body;

	if (body_read(r, members, ARRAY_SIZE(members), &w, &body, &err) < 0 ||
	    check(&w, &err) < 0) {
		own_error(r, &err);
		body_done(&body);
		return;
	}
	n = running_new(r, ctx, &w);
	if (!n)
		own_fail(r, 500, "out of memory");
	else if (take_input(n, &w, &err) < 0)
		own_error(r, &err);
	else
		begin(n, &w);
	body_done(&body);
}

/* Whole characters of it. */
static void take_reason(struct running *n, const char *text)
{
	size_t len = text ? strnlen(text, sizeof(n->reason) - 1) : 0;

	while (len > 0 && !utf8_check(text, len))
		len--;
	if (n->was_cancelled)
		return;
	(void)snprintf(n->reason, sizeof(n->reason), "%.*s", (int)len,
		       len ? text : "");
	if (!len)
		(void)snprintf(n->reason, sizeof(n->reason),
			       "cancelled by a request");
}

OWN_HANDLER(own_run_cancel)
{
	struct running *n = find(http_param(r, 0));
	const struct peer *peer = http_peer(r);

	if (!n || (peer->uid != 0 && peer->uid != n->uid)) {
		own_fail(r, 404, "no such run");
		return;
	}
	(void)ctx;
	take_reason(n, http_query(r, "reason"));
	n->was_cancelled = true;
	kill_it(n);
	http_answer(r, 204, NULL, NULL, 0);
}
