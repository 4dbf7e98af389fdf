/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation
 *
 * libuv waits; what happens when is ours. Tasks are one list, drained by an
 * idle handle that is active only while there are some, so an idle process
 * sleeps in the kernel. A round takes up to TASKS_A_ROUND of them, those that
 * they add included: a message and its answer need no system call between
 * them, and descriptors and timers still get their turn.
 *
 * All timers are in one heap behind one libuv timer. Most are stopped before
 * they fire (deadlines of what went well), so libuv's is left as it is when
 * the first one goes, fires for nothing once, and is set anew then. It is
 * referenced only while the heap has something: it alone keeps nothing alive.
 */

#include "loop/loop.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <uv.h>

#include "base/clock.h"
#include "base/util.h"

enum { TASKS_A_ROUND = 512, HEAP_AT_FIRST = 64 };

struct loop {
	uv_loop_t uv;
	uv_idle_t idle;
	uv_timer_t clock;
	struct task *first, *last;
	struct timer **heap;
	uint32_t n_timers, room;
	uint64_t n_set;  /* timers that were ever set: their order */
	int64_t armed;   /* when libuv's timer fires; INT64_MAX: it does not */
	struct task due; /* for what is due already */
	bool is_running; /* within loop_run() */
	bool is_draining;
	int64_t now; /* while it is draining */
	bool (*is_over)(void *arg);
	void *arg;
};

/* --- tasks --- */

static bool is_over(struct loop *l)
{
	return l->is_over && l->is_over(l->arg);
}

static void unlink_task(struct loop *l, struct task *t)
{
	if (t->prev)
		t->prev->next = t->next;
	else
		l->first = t->next;
	if (t->next)
		t->next->prev = t->prev;
	else
		l->last = t->prev;
	t->next = NULL;
	t->prev = NULL;
	t->loop = NULL;
}

static void run_tasks(uv_idle_t *idle)
{
	struct loop *l = idle->data;

	l->is_draining = true;
	l->now = clock_us();
	for (int i = 0; l->first && i < TASKS_A_ROUND; i++) {
		struct task *t = l->first;

		unlink_task(l, t);
		t->run(t);
		if (is_over(l))
			break;
	}
	l->is_draining = false;
	if (!l->first)
		(void)uv_idle_stop(idle);
}

void loop_soon(struct loop *l, struct task *t)
{
	if (t->loop)
		return;
	t->loop = l;
	t->next = NULL;
	t->prev = l->last;
	if (l->last)
		l->last->next = t;
	else
		l->first = t;
	l->last = t;
	if (!l->is_draining)
		(void)uv_idle_start(&l->idle, run_tasks);
}

void task_drop(struct task *t)
{
	if (t->loop)
		unlink_task(t->loop, t);
}

/* --- timers --- */

static bool is_sooner(const struct timer *a, const struct timer *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void put(struct loop *l, uint32_t place, struct timer *t)
{
	l->heap[place] = t;
	t->place = place;
}

static void sift_up(struct loop *l, struct timer *t)
{
	uint32_t i = t->place;

	while (i > 0 && is_sooner(t, l->heap[(i - 1) / 2])) {
		put(l, i, l->heap[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	put(l, i, t);
}

static void sift_down(struct loop *l, struct timer *t)
{
	uint32_t i = t->place;

	for (;;) {
		uint32_t child = 2 * i + 1;

		if (child + 1 < l->n_timers &&
		    is_sooner(l->heap[child + 1], l->heap[child]))
			child++;
		if (child >= l->n_timers || !is_sooner(l->heap[child], t))
			break;
		put(l, i, l->heap[child]);
		i = child;
	}
	put(l, i, t);
}

static void clock_fires(uv_timer_t *clock);

/* libuv's timer fires when the first of the heap is due, or earlier. */
static void arm(struct loop *l)
{
	int64_t wait;

	if (l->n_timers == 0) {
		uv_unref((uv_handle_t *)&l->clock);
		task_drop(&l->due);
		return;
	}
	uv_ref((uv_handle_t *)&l->clock);
	if (l->armed <= l->heap[0]->at)
		return;
	wait = l->heap[0]->at - clock_us();
	if (wait <= 0) {
		loop_soon(l, &l->due);
		return;
	}
	l->armed = l->heap[0]->at;
	uv_update_time(&l->uv);
	(void)uv_timer_start(&l->clock, clock_fires,
			     (uint64_t)(wait + 999) / 1000, 0);
}

static void take_out(struct loop *l, struct timer *t)
{
	struct timer *last = l->heap[--l->n_timers];

	if (last != t) {
		put(l, t->place, last);
		sift_up(l, last);
		sift_down(l, last);
	}
	t->loop = NULL;
}

/* Those that are due; what they set comes with the next round. */
static void fire_due(struct loop *l)
{
	uint64_t before = l->n_set;
	int64_t now = clock_us();

	while (l->n_timers > 0 && l->heap[0]->at <= now &&
	       l->heap[0]->order < before) {
		struct timer *t = l->heap[0];

		take_out(l, t);
		t->fire(t);
	}
	arm(l);
}

static void clock_fires(uv_timer_t *clock)
{
	struct loop *l = clock->data;

	l->armed = INT64_MAX;
	fire_due(l);
}

static void run_due(struct task *t)
{
	fire_due((struct loop *)((char *)t - offsetof(struct loop, due)));
}

static int make_room(struct loop *l)
{
	uint32_t room = l->room ? 2 * l->room : HEAP_AT_FIRST;
	struct timer **heap;

	if (l->n_timers < l->room)
		return 0;
	heap = reallocarray(l->heap, room, sizeof(struct timer *));
	if (!heap)
		return -ENOMEM;
	l->heap = heap;
	l->room = room;
	return 0;
}

int timer_set(struct loop *l, struct timer *t, int64_t at_us)
{
	if (t->loop)
		take_out(l, t);
	if (make_room(l) < 0)
		return -ENOMEM;
	t->loop = l;
	t->at = at_us;
	t->order = l->n_set++;
	t->place = l->n_timers++;
	sift_up(l, t);
	arm(l);
	return 0;
}

void timer_stop(struct timer *t)
{
	struct loop *l = t->loop;

	if (!l)
		return;
	take_out(l, t);
	if (l->n_timers == 0)
		arm(l);
}

/* --- descriptors --- */

static void can_read(uv_poll_t *poll, int status, int events)
{
	struct watch *w = poll->data;

	(void)status; /* whoever reads finds out */
	(void)events;
	w->ready(w);
}

static void free_handle(uv_handle_t *h)
{
	free(h);
}

int watch_start(struct loop *l, struct watch *w, int fd)
{
	_cleanup_free_ uv_poll_t *poll = calloc(1, sizeof(*poll));
	int r;

	if (!poll)
		return -ENOMEM;
	r = uv_poll_init(&l->uv, poll, fd);
	if (r < 0)
		return r;
	poll->data = w;
	r = uv_poll_start(poll, UV_READABLE | UV_DISCONNECT, can_read);
	if (r < 0) {
		uv_close((uv_handle_t *)take_ptr(poll), free_handle);
		return r;
	}
	w->handle = take_ptr(poll);
	return 0;
}

void watch_stop(struct watch *w)
{
	if (w->handle)
		uv_close(w->handle, free_handle);
	w->handle = NULL;
}

/* --- the loop --- */

int loop_new(struct loop **ret, struct err *err)
{
	struct loop *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return err_set(err, ENOMEM, "out of memory");
	r = uv_loop_init(&l->uv);
	if (r < 0) {
		free(l);
		return err_errno(err, -r, "make an event loop");
	}
	(void)uv_idle_init(&l->uv, &l->idle);
	(void)uv_timer_init(&l->uv, &l->clock);
	uv_unref((uv_handle_t *)&l->clock);
	l->idle.data = l;
	l->clock.data = l;
	l->armed = INT64_MAX;
	l->due.run = run_due;
	*ret = l;
	return 0;
}

void loop_free(struct loop *l)
{
	if (!l)
		return;
	uv_close((uv_handle_t *)&l->idle, NULL);
	uv_close((uv_handle_t *)&l->clock, NULL);
	/* What was closed before is told so now. */
	(void)uv_run(&l->uv, UV_RUN_NOWAIT);
	/* A handle that somebody left open still points here. */
	if (uv_loop_close(&l->uv) < 0)
		return;
	free(l->heap);
	free(l);
}

int64_t loop_now(const struct loop *l)
{
	return l->is_draining ? l->now : clock_us();
}

struct uv_loop_s *loop_uv(struct loop *l)
{
	return &l->uv;
}

bool loop_run(struct loop *l, bool (*over)(void *arg), void *arg)
{
	if (l->is_running)
		return false;
	l->is_running = true;
	l->is_over = over;
	l->arg = arg;
	while (!is_over(l) && uv_loop_alive(&l->uv))
		(void)uv_run(&l->uv, UV_RUN_ONCE);
	l->is_running = false;
	l->is_over = NULL;
	return over && over(arg);
}
