/* SPDX-License-Identifier: Apache-2.0 */

/* Stop, kill, pause, remove: what others do to a box. */

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/util.h"
#include "front/exec.h"
#include "front/front.h"

#define DEAF_US 100000 /* for one that does not catch the signal */

static bool is_alive(const struct box *b)
{
	return b->state == BOX_RUNNING || b->state == BOX_PAUSED;
}

static void stop_over(void *arg)
{
	box_end_now(arg);
}

/* It does not catch it: waiting would be for nothing. */
static void caught(void *arg, uint64_t mask)
{
	struct box *b = arg;

	if (is_alive(b) && b->stop_alarm && b->stop_sent > 0 &&
	    !(mask & 1ULL << (b->stop_sent - 1)))
		alarm_set(b->m, &b->stop_alarm, DEAF_US, stop_over, b);
	box_unref(b);
}

static void thaw(struct box *b)
{
	if (b->state != BOX_PAUSED)
		return;
	(void)session_freeze(b->session, false);
	b->state = BOX_RUNNING;
	events_box(b, "unpause", NULL, NULL);
}

static void tell_signal(struct box *b, int signal)
{
	char text[16];

	(void)snprintf(text, sizeof(text), "%d", signal);
	events_box(b, "kill", "signal", text);
}

static void stop_now(struct box *b, int signal, int timeout_s)
{
	if (signal == 0)
		signal = b->stop_signal;
	if (timeout_s == -1)
		timeout_s = b->stop_timeout_s;
	thaw(b);
	if (!b->has_main || timeout_s == 0 || signal == SIGKILL) {
		tell_signal(b, b->has_main ? signal : SIGKILL);
		box_end_now(b);
		return;
	}
	tell_signal(b, signal);
	b->stop_sent = signal;
	if (session_signal(b->session, b->number, signal) < 0) {
		box_end_now(b);
		return;
	}
	if (timeout_s == INT_MAX)
		return;
	alarm_set(b->m, &b->stop_alarm, (uint64_t)timeout_s * 1000000,
		  stop_over, b);
	(void)box_ref(b);
	if (session_ask_caught(b->session, b->number, caught, b) < 0)
		box_unref(b);
}

/* One that is on its way: it ends, and that is enough. */
static void stop_early(struct box *b)
{
	b->is_killed = true;
	room_leave(b);
	questions_look(b->m);
	if (b->session)
		box_close_wall(b);
	else if (b->is_starting && !b->has_wall_answer)
		box_no_room(b);
}

struct call *box_stop(struct box *b, int signal, int timeout_s,
		      mgr_done_fn *done, void *arg)
{
	struct call *c = call_new_done(b->m, done, arg);

	if (!c)
		return NULL;
	if (!is_alive(b) && !b->is_starting && !b->is_ending) {
		call_end_text(c, MGR_NOT_RUNNING, "it is not running");
		return c;
	}
	calls_add(&b->stop_calls, c);
	if (b->is_starting)
		stop_early(b);
	else if (!b->is_ending)
		stop_now(b, signal, timeout_s);
	return c;
}

struct call *box_restart(struct box *b, int signal, int timeout_s,
			 mgr_done_fn *done, void *arg)
{
	struct call *c;

	if (b->restart_call) {
		c = call_new_done(b->m, done, arg);
		call_end_text(c, MGR_IS_RUNNING, "it is being restarted");
		return c;
	}
	if (!is_alive(b) || b->is_starting)
		return box_start(b, done, arg);
	c = call_new_done(b->m, done, arg);
	if (!c)
		return NULL;
	b->restart_call = c;
	if (!b->is_ending)
		stop_now(b, signal, timeout_s);
	return c;
}

struct call *box_kill(struct box *b, int signal, mgr_done_fn *done, void *arg)
{
	struct call *c = call_new_done(b->m, done, arg);

	if (!c)
		return NULL;
	if (!is_alive(b)) {
		call_end_text(c, MGR_NOT_RUNNING, "it is not running");
		return c;
	}
	tell_signal(b, signal);
	if (signal == SIGKILL) {
		calls_add(&b->stop_calls, c);
		thaw(b);
		if (!b->is_ending)
			box_end_now(b);
		return c;
	}
	if (b->has_main && session_signal(b->session, b->number, signal) < 0)
		call_end_text(c, MGR_LOST, "its signal could not be sent");
	else
		call_end(c, NULL);
	return c;
}

struct call *box_pause(struct box *b, bool is_paused, mgr_done_fn *done,
		       void *arg)
{
	struct call *c = call_new_done(b->m, done, arg);
	enum box_state from = is_paused ? BOX_RUNNING : BOX_PAUSED;
	int r;

	if (!c)
		return NULL;
	if (!is_alive(b) || b->is_ending || !b->session || b->is_closing) {
		call_end_text(c, MGR_NOT_RUNNING, "it is not running");
		return c;
	}
	if (b->state != from) {
		call_end_text(c, is_paused ? MGR_PAUSED : MGR_INVALID,
			      is_paused ? "it is paused already"
					: "it is not paused");
		return c;
	}
	r = session_freeze(b->session, is_paused);
	if (r < 0) {
		call_end_text(c, r == -EOPNOTSUPP ? MGR_UNSUPPORTED : MGR_LOST,
			      r == -EOPNOTSUPP
				      ? "this machine cannot freeze a box"
				      : "the box does not answer");
		return c;
	}
	b->state = is_paused ? BOX_PAUSED : BOX_RUNNING;
	events_box(b, is_paused ? "pause" : "unpause", NULL, NULL);
	call_end(c, NULL);
	return c;
}

/* ---- remove ---- */

void box_remove_now(struct box *b)
{
	struct err err;

	if (b->state == BOX_GONE)
		return;
	room_leave(b);
	box_feeds_over(b);
	if (b->is_shelved)
		sessions_forget(b->m->sessions, b->shelf);
	/* Who still reads it has it open: it lives as long as they do. */
	log_remove(b->m->logs_fd, b->id);
	notes_remove(b);
	box_unlink(b);
	ends_add(b);
	b->state = BOX_GONE;
	events_box(b, "destroy", NULL, NULL);
	questions_look(b->m);
	box_tell_waiters(b, true);
	(void)err_set(&err, MGR_REMOVING, "it was removed");
	calls_end(&b->start_calls, &err);
	calls_end(&b->stop_calls, NULL);
	calls_end(&b->remove_calls, NULL);
	box_forget_blobs(b);
	fd_close(&b->peer_fd);
	box_unref(b); /* of the list */
}

static void remove_task(struct box *b)
{
	b->is_removing = true;
	if (b->is_starting)
		stop_early(b);
	else if (is_alive(b))
		box_end_now(b);
	else if (b->session)
		box_close_wall(b);
	else
		box_remove_now(b);
}

struct call *box_remove(struct box *b, bool force, mgr_done_fn *done, void *arg)
{
	struct call *c = call_new_done(b->m, done, arg);

	if (!c)
		return NULL;
	if (b->state == BOX_GONE || b->is_removing ||
	    (b->auto_remove && b->is_ending && !b->restart_call)) {
		call_end_text(c, MGR_REMOVING,
			      "removal of container %s is already in progress",
			      b->name);
		return c;
	}
	if (!force && (is_alive(b) || b->is_starting)) {
		call_end_text(c, MGR_IS_RUNNING,
			      "it is running; stop it first "
			      "or force its removal");
		return c;
	}
	calls_add(&b->remove_calls, c);
	if (is_alive(b) && !b->is_ending) {
		thaw(b);
		tell_signal(b, SIGKILL);
	}
	remove_task(b);
	return c;
}

/* ---- time ---- */

static void life_over(void *arg)
{
	struct box *b = arg;

	if (!is_alive(b) || b->is_ending)
		return;
	events_cordon(b, "timeout", "it is stopped at the end of its life");
	stop_now(b, 0, -1);
}

static bool is_used(const struct box *b)
{
	return b->n_open > 0 || b->feeds || b->n_tars > 0;
}

static void idle_check(void *arg)
{
	struct box *b = arg;
	int64_t left;

	if (!is_alive(b) || b->is_ending)
		return;
	if (is_used(b))
		box_touch(b);
	left = b->touched_us + (int64_t)b->idle_us - clock_us();
	if (left > 0) {
		alarm_set(b->m, &b->idle_alarm, (uint64_t)left, idle_check, b);
		return;
	}
	events_cordon(b, "timeout",
		      "it is stopped: nothing was asked of it for its idle "
		      "time");
	stop_now(b, 0, -1);
}

void box_watch_time(struct box *b)
{
	if (b->life_us)
		alarm_set(b->m, &b->life_alarm, b->life_us, life_over, b);
	if (b->idle_us)
		alarm_set(b->m, &b->idle_alarm, b->idle_us, idle_check, b);
}

int box_set_life(struct box *b, uint64_t life_us, struct err *err)
{
	if (b->state == BOX_GONE || b->is_removing)
		return err_set(err, MGR_REMOVING, "it is being removed");
	b->life_us = life_us;
	alarm_clear(&b->life_alarm);
	if (life_us && is_alive(b) && !b->is_ending)
		alarm_set(b->m, &b->life_alarm, life_us, life_over, b);
	(void)notes_store(b);
	return 0;
}
