/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The wall of a box: built when the box is made, or when somebody needs it.
 *
 *	box_need() -> prepared? -> room? -> session_open() -> ready
 *
 * Whoever needs it is called once, when it stands or cannot be had. One that
 * was opened for files alone is closed again when nobody used it for a while;
 * its disks stay on their shelf.
 *
 * What the preparer made holds for the policy of its time. When that was read
 * again, a box in which nothing runs is prepared anew before it is used; one
 * that runs keeps its wall.
 */

#include <errno.h>

#include "base/util.h"
#include "box/result.h"
#include "front/front.h"
#include "front/gate.h"

#define CLOSE_AFTER_US 2000000

/*
 * A full table of the keeper's is a limit like ours; and where a file of the
 * request cannot be put where it says, that is refused (verdict_of()).
 */
int session_error(const struct err *err)
{
	const struct wire_outcome o = { .err = *err };

	if (err->code == EBUSY)
		return MGR_BUSY;
	return verdict_of(&o).cause == CAUSE_DENIED ? MGR_DENIED : MGR_SETUP;
}

static void need_run(struct task *t)
{
	struct need *n = task_of(t, struct need, task);

	n->fn(n, n->err.code ? &n->err : NULL);
}

static void tell_needs(struct box *b, const struct err *err)
{
	struct need *n = take_ptr(b->needs);

	while (n) {
		struct need *next = n->next;

		n->err = err ? *err : (struct err){ 0 };
		soon(b->m, &n->task, need_run);
		n = next;
	}
}

static void is_up(void *arg)
{
	struct box *b = arg;
	struct err err = { 0 };

	if (gate_begin(b, &err) < 0) {
		err.code = MGR_SETUP;
		tell_needs(b, &err);
		box_close_wall(b);
		return;
	}
	b->is_ready = true;
	box_hold_main(b);
	tell_needs(b, NULL);
}

static void need_step(struct box *b);

static void close_blobs(struct box *b)
{
	fd_close(&b->box_fd);
	fd_close(&b->work_fd);
}

void box_forget_blobs(struct box *b)
{
	close_blobs(b);
	if (!b->session)
		gate_drop(b);
}

static void is_down(void *arg, const struct wire_outcome *o)
{
	struct box *b = arg;
	bool was_ready = b->is_ready;
	struct err err = o->err;

	b->session = NULL;
	b->parked = 0;
	b->is_ready = b->is_closing = false;
	alarm_clear(&b->close_alarm);
	/* A gate is for one wall, and what knows its authority too. */
	if (b->net)
		close_blobs(b);
	gate_close(b, true);
	execs_wall_gone(b, o);
	room_give(b);
	if (!was_ready && err.code) {
		err.code = session_error(&err);
		tell_needs(b, &err);
	}
	box_wall_gone(b, o);
	/* Those who came while it was being closed. */
	if (b->needs)
		need_step(b);
	box_unref(b);
}

int box_open_wall(struct box *b, struct err *err)
{
	static const struct session_events events = { is_up, is_down };
	struct session_want want = {
		.box = b->box_fd,
		.peer = b->peer_fd,
		.shelf = b->shelf,
	};

	b->session = session_open(b->m->sessions, &want, &events, b, err);
	if (!b->session) {
		room_give(b);
		err->code = err->code == EPIPE ? MGR_LOST : MGR_SETUP;
		return -err->code;
	}
	(void)box_ref(b);
	b->is_ready = false;
	b->is_unswept = true;
	return 0;
}

void box_close_wall(struct box *b)
{
	bool is_last = b->auto_remove && b->is_ending && !b->restart_call;
	bool keep = !b->is_removing && !is_last;

	if (!b->session || b->is_closing)
		return;
	b->is_closing = true;
	b->is_shelved = b->is_shelved || keep;
	session_close(b->session, keep);
}

static void open_or_tell(struct box *b)
{
	struct err err = { 0 };

	if (box_open_wall(b, &err) < 0)
		tell_needs(b, &err);
}

static bool is_outdated(const struct box *b)
{
	return b->policy_age != b->m->policy_age;
}

void box_have_room(struct box *b)
{
	struct err err = { 0 };

	if (!is_outdated(b)) {
		open_or_tell(b);
		return;
	}
	room_give(b);
	(void)err_set(&err, MGR_DENIED,
		      "the policy was read again while it waited for room; "
		      "start it once more");
	tell_needs(b, &err);
}

/* The wall, too, if it stands and nothing runs behind it. */
static void forget(struct box *b)
{
	if (b->has_main || b->is_preparing || b->n_tars ||
	    b->state == BOX_RUNNING || b->state == BOX_PAUSED)
		return;
	box_forget_blobs(b);
	box_close_wall(b);
}

void box_renew(struct box *b)
{
	if (is_outdated(b))
		forget(b);
}

/* An answer of a person is good for one start of a program. */
bool box_is_stale(const struct box *b)
{
	return is_outdated(b) || (b->is_spent && !b->has_no_main);
}

void box_renew_start(struct box *b)
{
	if (box_is_stale(b))
		forget(b);
}

void box_no_room(struct box *b)
{
	struct err err;

	room_none(b, &err);
	(void)err_wrap(&err, "no room for another box within %llu ms",
		       (unsigned long long)(b->m->limits.wait_us / 1000));
	tell_needs(b, &err);
}

static void was_prepared(void *arg, const struct err *err)
{
	struct box *b = arg;

	b->is_preparing = false;
	/* It was let in; what it grew by is counted. */
	(void)box_hold(b, NULL);
	/* The policy was read again meanwhile: once more. */
	if (!err && is_outdated(b))
		box_forget_blobs(b);
	if (err)
		tell_needs(b, err);
	else if (b->needs)
		need_step(b);
	box_unref(b);
}

/* The next step towards a wall that stands. */
static void need_step(struct box *b)
{
	struct err err = { 0 };

	if (b->session || b->is_queued || b->is_preparing)
		return;
	if (b->state == BOX_GONE || b->is_removing ||
	    (b->is_starting && b->is_killed)) {
		(void)err_set(&err, MGR_REMOVING, "it is being removed");
		tell_needs(b, &err);
		return;
	}
	if (b->box_fd < 0) {
		b->is_preparing = true;
		(void)box_ref(b);
		if (box_prepare(b, was_prepared, b, &err) < 0)
			was_prepared(b, &err);
		return;
	}
	if (room_check_kept(b, &err) < 0)
		tell_needs(b, &err);
	else if (room_take(b))
		open_or_tell(b);
	else if (room_wait(b, &err) < 0)
		tell_needs(b, &err);
}

void box_need(struct box *b, struct need *n,
	      void (*fn)(struct need *n, const struct err *err))
{
	struct need **p = &b->needs;

	n->fn = fn;
	n->err = (struct err){ 0 };
	n->next = NULL;
	alarm_clear(&b->close_alarm);
	box_renew(b);
	if (b->session && b->is_ready && !b->is_closing) {
		soon(b->m, &n->task, need_run);
		return;
	}
	while (*p)
		p = &(*p)->next;
	*p = n;
	need_step(b);
}

static void not_used(void *arg)
{
	struct box *b = arg;

	if (b->state == BOX_EXITED && !b->is_starting && !b->n_tars &&
	    !b->needs)
		box_close_wall(b);
}

void box_wall_idle(struct box *b)
{
	if (b->session && b->state == BOX_EXITED && !b->is_starting)
		alarm_set(b->m, &b->close_alarm, CLOSE_AFTER_US, not_used, b);
}
