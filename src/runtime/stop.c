/* SPDX-License-Identifier: Apache-2.0 */

/* Waiting until nothing is left to do, and stopping. */

#include <errno.h>
#include <stddef.h>

#include "base/clock.h"
#include "runtime/cell.h"

bool runtime_is_idle(const struct runtime *rt)
{
	return rt->n_deliveries == 0 && rt->pending.n == 0 &&
	       rt->n_tickets == 0;
}

struct waiting {
	struct timer timer; /* first */
	bool is_late;
	struct runtime *rt;
	bool (*over)(void *rt);
};

static void too_late(struct timer *t)
{
	((struct waiting *)t)->is_late = true;
}

static bool is_over(void *arg)
{
	struct waiting *w = arg;

	return w->is_late || w->over(w->rt);
}

int run_until(struct runtime *rt, bool (*over)(void *rt), int64_t deadline)
{
	struct waiting w = { .timer.fire = too_late, .rt = rt, .over = over };
	bool is_done;

	if (over(rt))
		return 0;
	if (deadline && timer_set(rt->loop, &w.timer, deadline) < 0)
		return -ENOMEM;
	is_done = loop_run(rt->loop, is_over, &w);
	timer_stop(&w.timer);
	if (over(rt))
		return 0;
	/* Nothing can happen any more, or it runs already. */
	return is_done ? -ETIMEDOUT : -EDEADLK;
}

static bool is_idle(void *rt)
{
	return runtime_is_idle(rt);
}

static void not_idle(struct runtime *rt, int r, struct fault *why)
{
	if (r == -ENOMEM)
		fault_set(why, FAULT_INTERNAL, "out of memory");
	else if (r == -ETIMEDOUT)
		fault_set(why, FAULT_DEADLINE,
			  "%zu messages are being handled, %zu wait",
			  rt->n_in[IN_HANDLER],
			  rt->n_in[IN_MAILBOX] + rt->n_in[IN_WAITING]);
	else
		fault_set(why, FAULT_INTERNAL,
			  "%zu messages are being handled and nothing is left "
			  "that could end them",
			  rt->n_in[IN_HANDLER]);
}

static int outcome(struct runtime *rt, int r, struct fault *why)
{
	struct fault unheard = { 0 };

	why = why ? why : &unheard;
	if (rt->has_failed) {
		fault_copy(why, &rt->first);
		r = -EIO;
	} else if (r < 0) {
		not_idle(rt, r, why);
	}
	fault_done(&unheard);
	return r;
}

int runtime_wait_idle(struct runtime *rt, int64_t deadline, struct fault *why)
{
	return outcome(rt, run_until(rt, is_idle, deadline), why);
}

/* --- stopping --- */

static void cancel_waiting(struct cell *c, enum where where, const char *reason)
{
	struct fault why = { 0 };

	fault_set(&why, FAULT_CANCELLED, "%s", reason);
	while (c->lists[where].first) {
		struct delivery *d = c->lists[where].first;

		cancel_fire(delivery_cancel(d), reason);
		/* Its hook has ended it, unless there was no token. */
		if (c->lists[where].first == d)
			delivery_end(d, NULL, &why);
	}
	fault_done(&why);
}

/* A handler may end others when its token fires: look again from the start. */
static void cancel_active(struct cell *c, const char *reason)
{
	struct delivery *d = c->lists[IN_HANDLER].first;

	while (d) {
		struct cancel *token = delivery_cancel(d);

		if (!token || cancel_is_fired(token)) {
			d = d->next;
			continue;
		}
		cancel_fire(token, reason);
		d = c->lists[IN_HANDLER].first;
	}
}

/* A hook may unregister actors; then it is begun anew. */
static void cancel_cells(struct runtime *rt, const char *reason)
{
	struct cell *c = rt->first_cell;
	size_t n = rt->n_cells;

	while (c) {
		cancel_waiting(c, IN_WAITING, reason);
		cancel_waiting(c, IN_MAILBOX, reason);
		cancel_active(c, reason);
		c = rt->n_cells == n ? c->later : rt->first_cell;
		n = rt->n_cells;
	}
}

static void cancel_all(struct runtime *rt, const char *reason)
{
	rt->phase = STOPPED;
	cancel_cells(rt, reason);
	/* They go from the list in the loop only. */
	for (struct pending *q = rt->first_pending; q; q = q->next)
		if (!q->is_over && q->post)
			cancel_fire(q->post->cancel, reason);
}

void stop_for_failure(struct task *t)
{
	struct runtime *rt = (struct runtime *)((char *)t -
						offsetof(struct runtime, fail));

	cancel_all(rt, "an event's handler failed");
}

/* Whoever has asked has waited long enough. */
static void give_up(struct runtime *rt)
{
	struct fault why = { 0 };

	fault_set(&why, FAULT_CANCELLED, "the runtime was stopped");
	for (struct pending *q = rt->first_pending; q; q = q->next)
		pending_finish(q, NULL, &why);
	fault_done(&why);
}

static bool is_told(void *arg)
{
	struct runtime *rt = arg;

	return rt->pending.n == 0 && rt->n_tickets == 0;
}

int runtime_stop(struct runtime *rt, enum stop_mode mode, struct fault *why)
{
	int64_t limit = rt->options.stop_limit;
	int r = 0;

	if (mode == STOP_DRAIN && rt->phase == RUNNING) {
		rt->phase = DRAINING;
		r = run_until(rt, is_idle, clock_us() + limit);
	}
	if (mode == STOP_NOW || r < 0) {
		cancel_all(rt, "the runtime is stopped");
		r = run_until(rt, is_idle, clock_us() + limit);
	}
	if (r < 0) {
		give_up(rt);
		(void)run_until(rt, is_told, clock_us() + limit);
	}
	rt->phase = STOPPED;
	return outcome(rt, r, why);
}

void runtime_start(struct runtime *rt)
{
	rt->phase = RUNNING;
	rt->has_failed = false;
	fault_done(&rt->first);
}
