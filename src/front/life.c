/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The life of a box's main program.
 *
 * A start asks for the wall and for the record at the same time; when both are
 * there the program is sent:
 *
 *	box_begin -> (wall, record) -> start_step -> started -> RUNNING
 *
 * Every end goes one way, whatever caused it, and is told only when nothing is
 * left of the box and the end is on the disk (docker-api.md 8.3):
 *
 *	main ended, killed, lost, or never begun -> is_ending -> the wall is
 *	closed -> output is read to its end -> volumes are swept -> run.end ->
 *	box_finish
 *
 * From box_begin() to box_finish() the box holds a reference to itself.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/say.h"
#include "base/util.h"
#include "box/result.h"
#include "front/doc.h"
#include "front/front.h"
#include "front/gate.h"

#define DRAIN_US 2000000 /* pipes of a box of which nothing is left */

static void end_step(struct box *b);
static void end_early(struct box *b);

/* ---- its output, into the log ---- */

static void hold_over(void *arg)
{
	struct box *b = arg;

	spout_go(b->out, true);
	spout_go(b->err, true);
}

/* A reader that is still busy is not to lose what would be pushed out. */
static bool hold(struct box *b)
{
	if (!box_has_laggard(b))
		return false;
	spout_go(b->out, false);
	spout_go(b->err, false);
	alarm_set(b->m, &b->hold_alarm, 20000, hold_over, b);
	return true;
}

static void read_stream(struct box *b, struct spout **s, int stream)
{
	for (int i = 0; i < 8 && *s; i++) {
		char *data = b->m->scratch;
		ssize_t n;

		if (hold(b))
			break;
		n = read(spout_fd(*s), data,
			 box_log(b) ? log_room(b->log) : FRONT_SCRATCH);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (n <= 0) { /* a terminal says EIO at its end */
			spout_close(s);
			break;
		}
		*(stream == 1 ? &b->out_bytes : &b->err_bytes) += (uint64_t)n;
		if (b->keep_output)
			capture_add(&b->kept[stream - 1], data, (size_t)n);
		if (box_log(b))
			(void)log_add(b->log, stream, day_ns(), data,
				      (size_t)n);
	}
}

void box_main_readable(void *arg)
{
	struct box *b = arg;

	(void)box_ref(b);
	read_stream(b, &b->out, 1);
	read_stream(b, &b->err, 2);
	feed_kick(b->feeds);
	if (b->is_ending && !b->out && !b->err)
		end_step(b);
	box_unref(b);
}

static void input_room(void *arg)
{
	struct box *b = arg;

	feed_input_ready(b->feeds);
}

static int open_streams(struct box *b, int stdio[3], struct err *err)
{
	int ours[3] = { NO_FD, NO_FD, NO_FD };
	int pair[2];
	int r = 0;

	for (int i = 0; i < 3 && r == 0; i++) {
		if (i == 0 && !b->open_stdin) {
			stdio[0] = fcntl(b->m->null_fd, F_DUPFD_CLOEXEC, 3);
			r = stdio[0] < 0 ? -errno : 0;
			continue;
		}
		r = pipe_make(pair, i == 0);
		if (r == 0) {
			ours[i] = pair[0];
			stdio[i] = pair[1];
		}
	}
	if (r == 0) {
		b->out = spout_new(b->m, take_fd(&ours[1]), box_main_readable,
				   b);
		b->err = spout_new(b->m, take_fd(&ours[2]), box_main_readable,
				   b);
		if (ours[0] >= 0)
			b->in = inlet_new(b->m, take_fd(&ours[0]), input_room,
					  b);
		if (b->out && b->err && (b->in || !b->open_stdin))
			return 0;
		r = -ENOMEM;
	}
	for (int i = 0; i < 3; i++) {
		fd_close(&ours[i]);
		fd_close(&stdio[i]);
	}
	spout_close(&b->out);
	spout_close(&b->err);
	inlet_close(&b->in);
	return err_errno(err, -r, "make pipes");
}

/* Its terminal: one descriptor to read, one to write, one to size. */
static void open_tty(struct box *b, int tty)
{
	int in = fcntl(tty, F_DUPFD_CLOEXEC, 3);
	int out = fcntl(tty, F_DUPFD_CLOEXEC, 3);

	(void)fcntl(tty, F_SETFL, O_NONBLOCK);
	b->tty_fd = tty;
	if (out >= 0)
		b->out = spout_new(b->m, out, box_main_readable, b);
	if (in >= 0)
		b->in = inlet_new(b->m, in, input_room, b);
	if (b->rows && b->cols)
		tty_resize(tty, b->rows, b->cols);
}

/* ---- start ---- */

static void start_step(struct box *b);

static void start_is_bad(struct box *b, const struct err *err)
{
	if (!b->start_err.code)
		b->start_err = *err;
}

/* Its end is on the ledger, or it never began. */
static void forget_run(struct box *b)
{
	runs_drop(b->m, b->slot);
	b->slot = -1;
}

static void is_running(struct box *b)
{
	b->is_starting = false;
	b->state = BOX_RUNNING;
	b->started_ns = day_ns();
	b->finished_ns = 0;
	box_touch(b);
	(void)notes_store(b);
	events_box(b, "start", NULL, NULL);
	box_watch_time(b);
	calls_end(&b->start_calls, NULL);
	if (b->is_in_closed && !b->tty)
		inlet_close(&b->in);
	feed_input_ready(b->feeds);
}

static void main_started(void *arg, int tty)
{
	struct box *b = arg;

	if (tty >= 0)
		open_tty(b, tty);
	if (b->is_starting && !b->is_ending)
		is_running(b);
}

/* Why there is no program, in Docker's words: clients look for them. */
static void why_not_started(struct box *b, int code)
{
	json_t *spec = b->spec ? json_loads(b->spec, 0, NULL) : NULL;
	const char *name = json_string_value(
		json_array_get(json_object_get(spec, "command"), 0));

	if (!name)
		name = "?";
	switch (code) {
	case ENOENT:
	case ENOTDIR:
		(void)err_set(&b->start_err, MGR_NO_PROGRAM,
			      "exec: \"%.200s\": executable file not found in "
			      "$PATH",
			      name);
		break;
	case EISDIR:
		(void)err_set(&b->start_err, MGR_NOT_EXECUTABLE,
			      "exec: \"%.200s\": is a directory", name);
		break;
	case EACCES:
	case ENOEXEC:
	case EPERM:
		(void)err_set(&b->start_err, MGR_NOT_EXECUTABLE,
			      "exec: \"%.200s\": permission denied", name);
		break;
	default:
		(void)err_errno(&b->start_err, code, "exec '%.200s'", name);
		b->start_err.code = MGR_SETUP;
	}
	json_decref(spec);
}

static void main_ended(void *arg, const struct wire_outcome *o)
{
	struct box *b = arg;

	b->has_main = false;
	b->outcome = *o;
	b->has_outcome = true;
	inlet_close(&b->in);
	if (b->is_starting && !b->is_killed) {
		if (o->err.code) {
			b->start_err = o->err;
			b->start_err.code = session_error(&o->err);
		} else if (o->exec_errno) {
			why_not_started(b, o->exec_errno);
		}
	}
	b->is_ending = true;
	gate_unrouted(b, o->net_refused);
	gate_close(b, o->end != WIRE_BY_ITSELF);
	box_close_wall(b);
	if (!b->session)
		end_step(b);
	else
		end_early(b);
}

static int send_main(struct box *b, struct err *err)
{
	static const struct session_exec_events events = { main_started,
							   main_ended };
	struct session_exec x = {
		.work = b->work_fd,
		.stdio = { NO_FD, NO_FD, NO_FD },
		.tty = b->tty,
		.rows = (uint16_t)b->rows,
		.cols = (uint16_t)b->cols,
		.is_last = true,
	};

	if (!b->tty && open_streams(b, x.stdio, err) < 0)
		return -err->code;
	b->number = b->parked;
	if (session_let(b->session, b->parked, x.stdio, &events, b) < 0 &&
	    session_exec(b->session, &x, &events, b, &b->number, err) < 0) {
		for (int i = 0; i < 3; i++)
			fd_close(&x.stdio[i]);
		return -err->code;
	}
	b->parked = 0;
	b->has_main = true;
	b->is_shelved = true; /* the box may end before we say otherwise */
	b->is_spent = b->was_asked;
	return 0;
}

/*
 * Its start will be asked for soon: all that comes before the program itself is
 * done now. That it begins is recorded before it is let.
 */
void box_hold_main(struct box *b)
{
	b->parked = 0;
	if (b->has_no_main || b->tty || b->work_fd < 0 ||
	    (b->state != BOX_CREATED && !b->is_starting) ||
	    session_hold(b->session, b->work_fd, true, &b->parked) < 0)
		b->parked = 0;
}

static void start_failed(struct box *b)
{
	b->is_ending = true;
	box_close_wall(b);
	if (!b->session)
		end_step(b);
}

static void start_step(struct box *b)
{
	struct err err = { 0 };

	if (b->is_ending || !b->has_wall_answer || !b->has_record_answer)
		return;
	if (b->is_removing || b->is_killed)
		(void)err_set(&b->start_err, MGR_REMOVING,
			      "it was ended before it had started");
	else if (!b->start_err.code &&
		 (!b->session || !b->is_ready || b->is_closing))
		(void)err_set(&b->start_err, MGR_SETUP,
			      "the box ended before it was used");
	else if (!b->start_err.code && box_is_stale(b))
		(void)err_set(&b->start_err, MGR_DENIED,
			      "it must be judged again before it starts, and "
			      "could not be; start it once more");
	if (b->start_err.code) {
		start_failed(b);
	} else if (b->has_no_main) {
		is_running(b);
	} else if (send_main(b, &err) < 0) {
		err.code = MGR_SETUP;
		start_is_bad(b, &err);
		start_failed(b);
	}
}

static void start_recorded(void *arg, const struct order_answer *a, int *fds,
			   int n)
{
	struct box *b = arg;
	struct err err = a->err;

	(void)fds;
	(void)n;
	b->has_record_answer = true;
	b->is_recorded = !err.code;
	if (!err.code) {
		runs_began(b->m, b->slot, b->run);
	} else {
		/* Without an answer it may be on the disk all the same. */
		if (err.code != EPIPE)
			forget_run(b);
		err.code = err.code == EPIPE ? MGR_LOST : MGR_SETUP;
		(void)err_wrap(&err, "record the run, which therefore does "
				     "not start");
		start_is_bad(b, &err);
	}
	start_step(b);
	box_unref(b);
}

static void send_start(struct box *b)
{
	_cleanup_free_ char *members = NULL;
	struct err err = { 0 };

	if (b->is_record_sent || b->has_record_answer)
		return;
	b->is_record_sent = b->is_run_used = true;
	members = record_start(b->start, b->run);
	/* Before: who comes after us must tell its end, whatever happens. */
	b->slot = runs_add(b->m, b->run, &err);
	(void)box_ref(b);
	if (b->slot >= 0 && orders_record(b->m->clerk, "run.start", members,
					  start_recorded, b, &err) == 0)
		return;
	forget_run(b);
	start_is_bad(b, &err);
	b->has_record_answer = true;
	box_unref(b);
}

static void wall_answer(struct need *n, const struct err *err)
{
	struct box *b = task_of(n, struct box, start_need);

	b->has_wall_answer = true;
	if (err) {
		start_is_bad(b, err);
		if (!b->is_record_sent)
			b->has_record_answer = true; /* nothing to record */
	} else {
		send_start(b);
	}
	start_step(b);
}

void box_begin(struct box *b)
{
	(void)box_ref(b); /* until box_finish() */
	b->is_starting = true;
	b->start_err = (struct err){ 0 };
	b->has_wall_answer = b->is_record_sent = b->is_recorded = false;
	b->has_record_answer = b->has_no_main;
	b->is_killed = b->has_outcome = b->is_lost = false;
	b->oom_killed = b->is_main_oom = false;
	b->out_bytes = b->err_bytes = 0;
	capture_done(&b->kept[0]);
	capture_done(&b->kept[1]);
	free(take_ptr(b->error));
	if (b->is_run_used)
		id_make(b->run, 32);
	box_renew_start(b);
	/* Without blobs the record, too, is yet to be prepared. */
	if (b->box_fd >= 0)
		send_start(b);
	box_need(b, &b->start_need, wall_answer);
}

struct call *box_start(struct box *b, mgr_done_fn *done, void *arg)
{
	struct call *c = call_new_done(b->m, done, arg);

	if (!c)
		return NULL;
	if (b->state == BOX_GONE || b->is_removing) {
		call_end_text(c, MGR_REMOVING, "it is being removed");
	} else if (b->m->is_draining) {
		call_end_text(c, MGR_BUSY, "the daemon is stopping");
	} else if (b->is_starting || b->is_ending || b->state == BOX_RUNNING ||
		   b->state == BOX_PAUSED) {
		call_end_text(c, MGR_IS_RUNNING, "it is running");
	} else {
		calls_add(&b->start_calls, c);
		box_begin(b);
	}
	return c;
}

/* ---- end ---- */

void box_end_now(struct box *b)
{
	b->is_killed = true;
	room_leave(b);
	if (b->session) {
		if (b->has_no_main && b->state != BOX_CREATED &&
		    b->state != BOX_EXITED)
			b->is_ending = true;
		box_close_wall(b);
	}
}

/* It had a wall for its files alone. */
static void files_swept(struct box *b)
{
	if (b->is_removing && !b->is_starting && !b->session)
		box_remove_now(b);
}

void box_wall_gone(struct box *b, const struct wire_outcome *o)
{
	if (b->has_main || (b->has_no_main && b->state != BOX_CREATED &&
			    b->state != BOX_EXITED)) {
		b->has_main = false;
		b->outcome = *o;
		b->has_outcome = true;
		b->is_ending = true;
		inlet_close(&b->in);
	}
	if (b->is_ending)
		end_step(b);
	else if (!b->is_starting)
		box_sweep(b, files_swept);
}

static struct verdict judge(const struct box *b)
{
	struct verdict v = { CAUSE_SETUP, 128, 0 };

	if (b->is_lost)
		return (struct verdict){ CAUSE_LOST, 125, 0 };
	if (!b->has_outcome)
		return v;
	if (b->has_no_main && b->is_killed)
		return (struct verdict){ CAUSE_CANCELLED, 0, 0 };
	if (b->is_killed && (b->outcome.end == WIRE_BY_CANCEL ||
			     b->outcome.end == WIRE_BY_LOSS))
		return (struct verdict){ CAUSE_CANCELLED, 137, SIGKILL };
	v = verdict_of(&b->outcome);
	if (v.cause == CAUSE_CANCELLED)
		v.exit_code = 137;
	if (b->start_err.code && v.cause == CAUSE_SETUP)
		v.exit_code = 128;
	return v;
}

/* It had ended, and only the news of it were lost. */
static void was_not_lost(struct box *b, const struct order_answer *a)
{
	b->is_lost = false;
	box_record_violations(b);
	b->exit_code = a->exit_code;
	b->cause = cause_name_find(a->cause);
	b->is_main_oom = b->cause && strcmp(b->cause, "memory") == 0;
	b->oom_killed = b->oom_killed || b->is_main_oom;
	free(take_ptr(b->error));
}

static void end_recorded(void *arg, const struct order_answer *a, int *fds,
			 int n)
{
	struct box *b = arg;

	(void)fds;
	(void)n;
	b->m->n_records--;
	if (!a->err.code)
		forget_run(b);
	/* Without a clerk we end too, and the next front finds out. */
	if (a->err.code == EPIPE) {
		box_unref(b);
		return;
	}
	if (a->settled == SETTLED_BEFORE)
		was_not_lost(b, a);
	if (a->err.code && !b->error) {
		say("the end of box %.12s is not on the ledger: %s", b->id,
		    a->err.text);
		if (asprintf(&b->error, "its end could not be recorded: %s",
			     a->err.text) < 0)
			b->error = NULL;
	}
	b->is_end_known = true;
	if (!b->session)
		box_finish(b);
	box_unref(b);
}

static void record_and_finish(struct box *b, const struct verdict *v)
{
	struct end_facts facts = {
		.run = b->run,
		.cause = cause_name(v->cause),
		.status = verdict_status(v),
		.message = b->error,
		.box = b,
		.exit_code = v->exit_code,
		.signal = v->signal,
		.outcome = b->has_outcome ? &b->outcome : NULL,
		.out_bytes = b->out_bytes,
		.err_bytes = b->err_bytes,
		.violations = b->violations,
		.net = b->net,
		.kept = b->keep_output ? b->kept : NULL,
	};
	_cleanup_free_ char *members = NULL;
	struct order_answer failed = { 0 };

	if (!b->is_recorded) {
		box_finish(b);
		return;
	}
	/* Without a keeper we end too, and the next front tells what is lost.
	 */
	if (sessions_are_lost(b->m->sessions))
		return;
	(void)box_ref(b);
	b->m->n_records++;
	if (b->is_lost) {
		if (runs_settle(b->m, b->slot, &facts, end_recorded, b,
				&failed.err) < 0)
			end_recorded(b, &failed, NULL, 0);
		return;
	}
	members = record_end(&facts);
	runs_ending(b->m, b->slot, b->run);
	if (orders_record(b->m->clerk, "run.end", members, end_recorded, b,
			  &failed.err) < 0)
		end_recorded(b, &failed, NULL, 0);
}

static void drained_enough(void *arg)
{
	struct box *b = arg;

	spout_close(&b->out);
	spout_close(&b->err);
	end_step(b);
}

static void end_swept(struct box *b)
{
	struct verdict v = judge(b);

	b->exit_code = v.exit_code;
	b->cause = cause_name(v.cause);
	b->is_main_oom = b->has_outcome && b->outcome.oom_kills > 0;
	b->oom_killed = b->oom_killed || b->is_main_oom;
	if (b->start_err.code && !b->error)
		b->error = strdup(b->start_err.text);
	record_and_finish(b, &v);
}

/* What it refused belongs to the end, and is known now. */
void box_gate_over(struct box *b)
{
	if (!b->is_ending)
		return;
	if (b->session)
		end_early(b);
	else
		end_step(b);
}

static void end_step(struct box *b)
{
	if (b->session || !b->is_ending || gate_is_open(b))
		return;
	if (b->out || b->err) {
		alarm_set(b->m, &b->drain_alarm, DRAIN_US, drained_enough, b);
		return;
	}
	alarm_clear(&b->drain_alarm);
	alarm_clear(&b->hold_alarm);
	inlet_close(&b->in);
	fd_close(&b->tty_fd);
	if (b->is_end_known) {
		box_finish(b);
		return;
	}
	if (b->is_end_sent)
		return;
	b->is_end_sent = true;
	box_sweep(b, end_swept);
}

/*
 * Its end is told when nothing of the box is left; what is known already, with
 * all that it wrote, is recorded while the wall is closed.
 */
static void end_early(struct box *b)
{
	if (b->out || b->err || b->is_end_sent || !b->is_recorded ||
	    gate_is_open(b) || b->start_err.code || box_has_watches(b))
		return;
	b->is_end_sent = true;
	end_swept(b);
}

/* What keeps it from being started is told to all who wait for its start. */
static void tell_starters(struct box *b)
{
	if (!b->start_err.code)
		(void)err_set(&b->start_err, MGR_SETUP,
			      "it ended before it "
			      "had started");
	calls_end(&b->start_calls, &b->start_err);
}

static void go_on(struct box *b)
{
	struct call *c = take_ptr(b->restart_call);

	if (b->is_removing || (b->auto_remove && !c)) {
		call_end_text(c, MGR_REMOVING, "it is being removed");
		box_remove_now(b);
		return;
	}
	if (!c)
		return;
	b->restarts++;
	calls_add(&b->start_calls, c);
	box_begin(b);
}

void box_finish(struct box *b)
{
	bool was_starting = b->is_starting;
	char code[16];

	alarm_clear(&b->stop_alarm);
	alarm_clear(&b->life_alarm);
	alarm_clear(&b->idle_alarm);
	box_feeds_over(b);
	b->is_starting = b->is_ending = b->is_recorded = false;
	b->is_end_sent = b->is_end_known = false;
	b->is_in_closed = false;
	b->stop_sent = 0;
	b->finished_ns = day_ns();
	b->state = BOX_EXITED;
	questions_look(b->m);
	(void)notes_store(b);
	(void)snprintf(code, sizeof(code), "%d", b->exit_code);
	if (b->is_main_oom)
		events_box(b, "oom", NULL, NULL);
	if (b->cause && strcmp(b->cause, "timeout") == 0)
		events_cordon(b, "timeout",
			      "it was ended at its deadline "
			      "(sandbox.timeout)");
	events_box(b, "die", "exitCode", code);
	box_tell_waiters(b, false);
	if (was_starting)
		tell_starters(b);
	if (b->stop_calls)
		events_box(b, "stop", NULL, NULL);
	calls_end(&b->stop_calls, NULL);
	go_on(b);
	box_unref(b); /* of box_begin() */
}

static void lost_swept(struct box *b)
{
	struct verdict v = { CAUSE_LOST, 125, 0 };

	record_and_finish(b, &v);
}

void box_lost(struct box *b)
{
	(void)box_ref(b);
	b->is_recorded = !b->has_no_main; /* that is no run */
	b->exit_code = 125;
	b->cause = cause_name(CAUSE_LOST);
	free(b->error);
	b->error = strdup("lost: the daemon ended");
	box_sweep_late(b, lost_swept);
}
