/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Programs that are executed in a box that runs.
 *
 *	create: judged by the preparer           CREATED
 *	start: run.start, then sent to the box   STARTING, RUNNING
 *	its first process ends                   ENDING: output is read
 *	run.end                                  ENDED: its code can be asked
 *
 * From start to ENDED it holds references to itself and its box.
 */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/say.h"
#include "base/util.h"
#include "box/result.h"
#include "front/exec.h"

#define STALE_US 60000000 /* one that nobody started makes room */

/* ---- the table ---- */

static size_t hash_of(const char *id)
{
	size_t h = 0;

	for (int i = 0; i < 8 && id[i]; i++)
		h = h * 31 + (unsigned char)id[i];
	return h % FRONT_EXEC_HASH;
}

struct exec *exec_by_id(struct manager *m, const char *id)
{
	struct exec *e = m->hash[hash_of(id)];

	while (e && strcmp(e->id, id) != 0)
		e = e->hash_next;
	return e;
}

static void unlink_exec(struct exec *e)
{
	struct exec **p = &e->m->hash[hash_of(e->id)];
	struct exec **q = &e->box->execs;

	while (*p && *p != e)
		p = &(*p)->hash_next;
	if (*p)
		*p = e->hash_next;
	while (*q && *q != e)
		q = &(*q)->next;
	if (*q) {
		*q = e->next;
		e->box->n_execs--;
	}
}

struct exec *exec_ref(struct exec *e)
{
	e->refs++;
	return e;
}

void exec_unref(struct exec *e)
{
	if (--e->refs > 0)
		return;
	exec_let_go(e);
	capture_done(&e->noted[0]);
	capture_done(&e->noted[1]);
	exec_io_free(e);
	alarm_clear(&e->time_alarm);
	alarm_clear(&e->shim_alarm);
	alarm_clear(&e->gone_alarm);
	fd_close(&e->work_fd);
	strv_done(&e->command);
	strv_done(&e->env);
	free(e->workdir);
	free(e->user);
	free(e->code);
	free(e->input);
	free(e->start);
	free(e);
}

void execs_free(struct box *b)
{
	while (b->execs) {
		struct exec *e = b->execs;

		exec_past_add(e);
		unlink_exec(e);
		exec_unref(e);
	}
	exec_past_leave(b);
}

/* The oldest of those that are of no use any more; false if there is none. */
static bool make_place(struct box *b, bool is_open)
{
	struct exec *oldest = NULL;

	for (struct exec *e = b->execs; e; e = e->next) {
		bool is_stale = e->state == EXEC_CREATED &&
				e->made_us + STALE_US < clock_us();
		bool is_old = e->state == EXEC_ENDED && e->refs == 1;

		if (is_stale || (is_old && !is_open))
			oldest = e;
	}
	if (!oldest)
		return false;
	if (oldest->state == EXEC_CREATED)
		b->n_open--;
	exec_past_add(oldest);
	unlink_exec(oldest);
	exec_unref(oldest);
	return true;
}

/* ---- create ---- */

static int copy_words(struct strv *to, const char *const *v)
{
	for (size_t i = 0; v && v[i]; i++)
		if (strv_add(to, v[i]) < 0)
			return -ENOMEM;
	return 0;
}

static char *copy_text(const char *text)
{
	return text && *text ? strdup(text) : NULL;
}

static struct exec *exec_new(struct box *b, const struct exec_want *w)
{
	struct exec *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->m = b->m;
	e->box = b;
	e->owner = b->owner;
	e->refs = 1;
	e->work_fd = e->tty_fd = NO_FD;
	e->slot = -1;
	capture_init(&e->noted[0], FRONT_KEPT);
	capture_init(&e->noted[1], FRONT_KEPT);
	e->chunks_end = &e->chunks;
	e->tty = w->tty;
	e->has_stdin = w->stdin_;
	e->has_stdout = w->stdout_;
	e->has_stderr = w->stderr_;
	e->rows = w->rows;
	e->cols = w->cols;
	e->timeout_us = w->timeout_us ? w->timeout_us : b->exec_timeout_us;
	e->made_us = clock_us();
	e->workdir = copy_text(w->workdir);
	e->user = copy_text(w->user);
	e->code = copy_text(w->code);
	e->input = copy_text(w->input);
	id_make(e->id, 64);
	id_make(e->run, 32);
	if (copy_words(&e->command, w->command) < 0 ||
	    copy_words(&e->env, w->env) < 0) {
		exec_unref(e);
		return NULL;
	}
	return e;
}

static int check_box(const struct box *b, struct err *err)
{
	if (b->state == BOX_PAUSED)
		return err_set(err, MGR_PAUSED, "container %s is paused",
			       b->name);
	if (b->state != BOX_RUNNING || b->is_ending || !b->session ||
	    b->is_closing)
		return err_set(err, MGR_NOT_RUNNING,
			       "container %s is not "
			       "running",
			       b->id);
	return 0;
}

/* Ended programs of the same box make place for it, the oldest first. */
static int exec_fits(struct exec *e, struct err *err)
{
	int r;

	do {
		*err = (struct err){ 0 };
		r = exec_hold(e, err);
	} while (r < 0 && make_place(e->box, false));
	return r;
}

/* The keeper's table is one for all. */
static int check_peer(const struct box *b, struct err *err)
{
	size_t n = 0;

	for (const struct box *o = b->m->boxes; o; o = o->next)
		n += o->owner == b->owner ? o->n_open : 0;
	if (n < b->m->limits.execs_a_peer)
		return 0;
	return err_set(err, MGR_BUSY,
		       "%zu programs of this user are made or run, which is "
		       "the limit",
		       n);
}

static int check_limits(struct box *b, struct err *err)
{
	if (check_peer(b, err) < 0)
		return -err->code;
	if (b->n_open >= b->m->limits.execs && !make_place(b, true))
		return err_set(err, MGR_BUSY,
			       "%zu programs run in this box, which is the "
			       "limit",
			       b->n_open);
	if (b->n_execs >= FRONT_MAX_EXECS && !make_place(b, false))
		return err_set(err, MGR_BUSY,
			       "%zu programs of this box are "
			       "known, which is the limit",
			       b->n_execs);
	return 0;
}

static void tell(struct exec *e, const char *action)
{
	char text[640];
	size_t n = (size_t)snprintf(text, sizeof(text), "%s", action);

	for (size_t i = 0; i < e->command.n && n < 512; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%.100s",
				      i ? " " : ": ", e->command.v[i]);
	events_box(e->box, text, "execID", e->id);
}

static void deliver_made(struct call *c)
{
	bool is_bad = c->err.code;

	c->fn.exec_made(c->arg, is_bad ? NULL : c->exec,
			is_bad ? &c->err : NULL);
}

static void add_exec(struct exec *e)
{
	struct box *b = e->box;
	struct exec **head = &e->m->hash[hash_of(e->id)];

	e->hash_next = *head;
	*head = exec_ref(e); /* of the box */
	e->next = b->execs;
	b->execs = e;
	b->n_execs++;
	b->n_open++;
}

static void was_prepared(void *arg, struct exec_made *made,
			 const struct err *err)
{
	struct exec *e = arg;
	struct call *c = e->start_call;
	struct err gone = { 0 };

	if (err && made->no_program && shim_replace(e))
		return;
	if (err && made->no_program && e->shim == SHIM_PKILL) {
		e->has_no_program = true;
		err = NULL;
	}
	if (!err && check_box(e->box, &gone) < 0)
		err = &gone;
	e->start_call = NULL;
	if (!err) {
		e->work_fd = take_fd(&made->work);
		e->start = take_ptr(made->start);
		e->keep_output = made->keep_output;
		if (exec_fits(e, &gone) < 0)
			err = &gone;
	}
	if (!err) {
		add_exec(e);
		tell(e, "exec_create");
		c->exec = exec_ref(e);
	}
	call_end(c, err);
	exec_unref(e); /* of the making */
}

int exec_prepare_again(struct exec *e, struct err *err)
{
	return exec_prepare(e, was_prepared, e, err);
}

struct call *exec_create(struct box *b, const struct exec_want *want,
			 exec_made_fn *done, void *arg)
{
	struct call *c = call_new(b->m, arg);
	struct exec *e = NULL;
	struct err err = { 0 };

	if (!c)
		return NULL;
	c->fn.exec_made = done;
	c->deliver = deliver_made;
	box_touch(b);
	if (!want->code && (!want->command || !want->command[0]))
		(void)err_set(&err, MGR_INVALID, "No exec command specified");
	else if (check_box(b, &err) == 0 && check_limits(b, &err) == 0 &&
		 !(e = exec_new(b, want)))
		(void)err_set(&err, ENOMEM, "out of memory");
	if (e)
		(void)exec_fits(e, &err);
	if (err.code || !e) {
		if (e)
			exec_unref(e);
		call_end(c, &err);
		return c;
	}
	c->box = box_ref(b);
	e->start_call = c;
	if (b->shims)
		shim_look(e);
	if (exec_prepare(e, was_prepared, e, &err) < 0) {
		e->start_call = NULL;
		call_end(c, &err);
		exec_unref(e);
	}
	return c;
}

struct exec *exec_find(struct manager *m, const struct peer *peer,
		       const char *id, struct err *err)
{
	struct exec *e = exec_by_id(m, id);

	if (e && peer_may(peer, e->box)) {
		e->box->asker_fd = peer->fd;
		return e;
	}
	(void)err_set(err, MGR_NOT_FOUND, "No such exec instance: %.64s", id);
	return NULL;
}

/* ---- start ---- */

static void times_up(void *arg)
{
	struct exec *e = arg;

	e->is_timed_out = true;
	exec_kill_group(e);
}

static void started(void *arg, int tty)
{
	struct exec *e = arg;

	e->state = EXEC_RUNNING;
	e->started_ns = day_ns();
	exec_io_started(e, tty);
	if (e->timeout_us)
		alarm_set(e->m, &e->time_alarm, e->timeout_us, times_up, e);
	if (e->shim == SHIM_TIMEOUT)
		(void)shim_start(e);
	tell(e, "exec_start");
	call_end(take_ptr(e->start_call), NULL);
	feed_input_ready(e->feeds);
	feed_kick(e->feeds);
}

static void ended(void *arg, const struct wire_outcome *o)
{
	struct exec *e = arg;

	if (e->state >= EXEC_ENDING)
		return;
	if (e->state == EXEC_STARTING && o->exec_errno == ENOENT &&
	    shim_replace(e))
		return;
	e->outcome = *o;
	if (o->err.code)
		e->outcome.err.code = session_error(&o->err);
	e->state = EXEC_ENDING;
	alarm_clear(&e->time_alarm);
	exec_io_ended(e);
}

void execs_wall_gone(struct box *b, const struct wire_outcome *o)
{
	struct exec *next;

	for (struct exec *e = b->execs; e; e = next) {
		next = e->next;
		if (e->state == EXEC_STARTING || e->state == EXEC_RUNNING)
			ended(e, o);
		exec_io_close(e);
	}
}

static int send_exec(struct exec *e, struct err *err)
{
	static const struct session_exec_events events = { started, ended };
	struct session_exec x = {
		.work = e->work_fd,
		.stdio = { NO_FD, NO_FD, NO_FD },
		.tty = e->tty,
		.rows = (uint16_t)e->rows,
		.cols = (uint16_t)e->cols,
		.kill_rest = e->box->kill_exec_rest,
	};

	if (check_box(e->box, err) < 0)
		return -err->code;
	if (!e->tty && exec_io_open(e, x.stdio, err) < 0)
		return -err->code;
	if (session_exec(e->box->session, &x, &events, e, &e->number, err) <
	    0) {
		for (int i = 0; i < 3; i++)
			fd_close(&x.stdio[i]);
		return err_set(err, MGR_SETUP, "the box takes no program");
	}
	return 0;
}

/* It was recorded, or not even that; no process ever was there. */
void exec_begin_failed(struct exec *e, const struct err *err)
{
	if (e->state >= EXEC_ENDING)
		return;
	e->outcome = (struct wire_outcome){ .err = *err };
	e->state = EXEC_ENDING;
	exec_io_ended(e);
}

static void recorded(void *arg, const struct order_answer *a, int *fds, int n)
{
	struct exec *e = arg;
	struct err err = a->err;

	(void)fds;
	(void)n;
	if (err.code) {
		/* Without an answer it may be on the disk all the same. */
		if (err.code != EPIPE)
			runs_drop(e->m, e->slot);
		e->slot = -1;
		err.code = MGR_SETUP;
		(void)err_wrap(&err, "record the run, which therefore does "
				     "not start");
	} else {
		e->is_recorded = true;
		runs_began(e->m, e->slot, e->run);
	}
	if (e->state == EXEC_STARTING && (err.code || send_exec(e, &err) < 0))
		exec_begin_failed(e, &err);
	exec_unref(e);
}

void exec_begin(struct exec *e)
{
	_cleanup_free_ char *members = record_start(e->start, e->run);
	struct err err = { 0 };

	(void)exec_ref(e);
	/* Before: who comes after us must tell its end, whatever happens. */
	e->slot = runs_add(e->m, e->run, &err);
	if (e->slot < 0 || orders_record(e->m->clerk, "run.start", members,
					 recorded, e, &err) < 0) {
		runs_drop(e->m, e->slot);
		e->slot = -1;
		exec_begin_failed(e, &err);
		exec_unref(e);
	}
}

int exec_check_start(const struct exec *e, struct err *err)
{
	if (e->state != EXEC_CREATED)
		return err_set(err, MGR_HAS_RUN, "exec command %s %s", e->id,
			       e->state == EXEC_ENDED ? "has already run"
						      : "is already running");
	if (e->policy_age != e->m->policy_age)
		return err_set(err, MGR_DENIED,
			       "the policy was read again since this was "
			       "allowed; create it anew");
	return check_box(e->box, err);
}

struct call *exec_start(struct exec *e, const struct sink *sink,
			struct feed **ret_feed, mgr_done_fn *done, void *arg)
{
	struct call *c = call_new_done(e->m, done, arg);
	struct err err = { 0 };

	if (ret_feed)
		*ret_feed = NULL;
	if (!c)
		return NULL;
	box_touch(e->box);
	if (exec_check_start(e, &err) == 0 && sink && ret_feed)
		*ret_feed = exec_feed(e, sink, &err);
	if (err.code) {
		call_end(c, &err);
		return c;
	}
	e->is_detached = !sink;
	e->state = EXEC_STARTING;
	e->start_call = c;
	(void)exec_ref(e);
	(void)box_ref(e->box);
	if (e->shim != SHIM_PKILL || !shim_start(e))
		exec_begin(e);
	return c;
}

/* ---- end ---- */

static struct verdict judge(const struct exec *e)
{
	const struct wire_outcome *o = &e->outcome;
	struct verdict v = verdict_of(o);
	bool is_ours = o->end == WIRE_BY_CANCEL || o->end == WIRE_BY_LOSS;

	if (e->is_timed_out && (is_ours || e->is_replaced))
		return (struct verdict){ CAUSE_TIMEOUT, 124, 0 };
	if ((e->is_killed || e->box->is_killed) && is_ours)
		return (struct verdict){ CAUSE_CANCELLED, 137, SIGKILL };
	if (v.cause == CAUSE_CANCELLED)
		v.exit_code = 137;
	if (e->shim == SHIM_PKILL && v.cause == CAUSE_NOT_FOUND)
		v.exit_code = 1; /* nothing matched, as pkill would say */
	return v;
}

/* Those who wait for its start hear why it has none. */
static void tell_starter(struct exec *e)
{
	struct err err = e->outcome.err;
	int code = e->outcome.exec_errno;
	const char *name = e->command.n ? e->command.v[0] : "?";

	if (!e->start_call)
		return;
	if (code == ENOENT || code == ENOTDIR)
		(void)err_set(&err, MGR_NO_PROGRAM,
			      "exec: \"%.200s\": executable file not found in "
			      "$PATH",
			      name);
	else if (code == EISDIR)
		(void)err_set(&err, MGR_NOT_EXECUTABLE,
			      "exec: \"%.200s\": is a directory", name);
	else if (code)
		(void)err_set(&err, MGR_NOT_EXECUTABLE,
			      "exec: \"%.200s\": permission denied", name);
	else if (!err.code)
		(void)err_set(&err, MGR_SETUP,
			      "it ended before it had "
			      "started");
	call_end(take_ptr(e->start_call), &err);
}

/* It is the box whose memory was not enough; known until its next start. */
static void note_oom(const struct exec *e)
{
	struct box *b = e->box;

	if (e->outcome.oom_kills == 0 || b->oom_killed || !b->is_made)
		return;
	b->oom_killed = true;
	(void)notes_store(b);
}

void exec_told(struct exec *e)
{
	struct box *b = e->box;

	e->state = EXEC_ENDED;
	e->finished_ns = day_ns();
	b->n_open--;
	fd_close(&e->work_fd);
	free(take_ptr(e->start));
	free(take_ptr(e->code));
	strv_done(&e->env);
	(void)exec_hold(e, NULL);
	box_touch(b);
	note_oom(e);
	exec_note(e);
	events_exec_end(e);
	tell_starter(e);
	calls_end(&e->kill_calls, NULL);
	exec_feeds_end(e);
	exec_unref(e);
	box_unref(b);
}

static void end_recorded(void *arg, const struct order_answer *a, int *fds,
			 int n)
{
	struct exec *e = arg;
	struct box *b = box_ref(e->box);

	(void)fds;
	(void)n;
	e->m->n_records--;
	if (a->err.code)
		say("the end of a program in box %.12s is not on the ledger: "
		    "%s",
		    b->id, a->err.text);
	else
		runs_drop(e->m, e->slot);
	e->slot = -1;
	/* Without a clerk we end too, and the next front finds out. */
	if (a->err.code == EPIPE) {
		box_unref(b);
		return;
	}
	exec_told(e);
	/* The box may have waited for this. */
	shim_victim_ended(e);
	exec_unref(e);
	box_unref(b);
}

void exec_run_ended(struct exec *e)
{
	struct verdict v;
	_cleanup_free_ char *members = NULL;
	struct order_answer failed = { 0 };
	struct end_facts facts;

	if (e->is_end_sent)
		return;
	e->is_end_sent = true;
	v = judge(e);
	e->exit_code = v.exit_code;
	e->cause = cause_name(v.cause);
	facts = (struct end_facts){
		.run = e->run,
		.cause = e->cause,
		.status = verdict_status(&v),
		.message = e->shim == SHIM_TIMEOUT && e->is_timed_out
				   ? "ended at the deadline of 'timeout'"
				   : NULL,
		.box = e->box,
		.exit_code = v.exit_code,
		.signal = v.signal,
		.outcome = &e->outcome,
		.out_bytes = e->out_bytes,
		.err_bytes = e->err_bytes,
		.kept = e->keep_output ? e->noted : NULL,
	};
	/* Without a keeper we end too, and the next front tells what is lost.
	 */
	if (e->is_recorded && sessions_are_lost(e->m->sessions))
		return;
	(void)exec_ref(e);
	e->m->n_records++;
	if (!e->is_recorded) {
		end_recorded(e, &failed, NULL, 0);
		return;
	}
	members = record_end(&facts);
	runs_ending(e->m, e->slot, e->run);
	if (orders_record(e->m->clerk, "run.end", members, end_recorded, e,
			  &failed.err) < 0)
		end_recorded(e, &failed, NULL, 0);
}

/* ---- while it runs ---- */

void exec_kill_group(struct exec *e)
{
	struct box *b = e->box;

	if (!b->session || b->is_closing || e->state < EXEC_RUNNING)
		return;
	if (e->state == EXEC_RUNNING)
		e->is_killed = true;
	(void)session_kill_exec(b->session, e->number);
}

struct call *exec_kill(struct exec *e, int signal, mgr_done_fn *done, void *arg)
{
	struct call *c = call_new_done(e->m, done, arg);
	bool has_rest = e->state >= EXEC_ENDING && (e->out || e->err) &&
			e->box->session;

	if (!c)
		return NULL;
	box_touch(e->box);
	if (e->state != EXEC_RUNNING && !has_rest) {
		call_end_text(c, MGR_NOT_RUNNING, "it is not running");
	} else if (signal == SIGKILL || has_rest) {
		exec_kill_group(e);
		if (has_rest)
			call_end(c, NULL);
		else
			calls_add(&e->kill_calls, c);
	} else if (session_signal(e->box->session, e->number, signal) < 0) {
		call_end_text(c, MGR_LOST, "its signal could not be sent");
	} else {
		call_end(c, NULL);
	}
	return c;
}

int exec_resize(struct exec *e, unsigned int rows, unsigned int cols,
		struct err *err)
{
	if (e->state == EXEC_ENDED)
		return err_set(err, MGR_NOT_RUNNING, "it is not running");
	if (rows == 0 || cols == 0)
		return 0;
	e->rows = rows;
	e->cols = cols;
	if (e->tty_fd >= 0)
		tty_resize(e->tty_fd, rows, cols);
	return 0;
}

void exec_look(const struct exec *e, struct exec_view *ret)
{
	*ret = (struct exec_view){
		.id = e->id,
		.run = e->run,
		.box = e->box->id,
		.is_started = e->state >= EXEC_RUNNING,
		.is_running = e->state == EXEC_RUNNING ||
			      e->state == EXEC_ENDING,
		.exit_code = e->exit_code,
		.cause = e->state == EXEC_ENDED ? e->cause : NULL,
		.pid = e->state == EXEC_RUNNING ? 3 : 0,
		.tty = e->tty,
		.stdin_ = e->has_stdin,
		.stdout_ = e->has_stdout,
		.stderr_ = e->has_stderr,
		.command = (const char *const *)e->command.v,
		.user = e->user ? e->user : "",
		.started_ns = e->started_ns,
		.finished_ns = e->finished_ns,
		.out_bytes = e->out_bytes,
		.err_bytes = e->err_bytes,
		.dropped_bytes = e->dropped,
	};
}

const struct wire_outcome *exec_outcome(const struct exec *e)
{
	return e->state == EXEC_ENDED && e->is_recorded ? &e->outcome : NULL;
}
