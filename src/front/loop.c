/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Tasks, alarms and calls: how something is done later, and told once.
 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/util.h"
#include "front/front.h"

int64_t day_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Those that are there now; what they add is done in the next turn. */
static void run_tasks(uv_idle_t *idle)
{
	struct manager *m = idle->data;
	struct task *t = m->tasks;

	m->tasks = NULL;
	m->tasks_end = &m->tasks;
	while (t) {
		struct task *next = t->next;

		t->is_queued = false;
		t->run(t);
		t = next;
	}
	if (!m->tasks)
		(void)uv_idle_stop(idle);
}

void soon(struct manager *m, struct task *t, void (*run)(struct task *t))
{
	if (t->is_queued)
		return;
	t->run = run;
	t->next = NULL;
	t->is_queued = true;
	*m->tasks_end = t;
	m->tasks_end = &t->next;
	(void)uv_idle_start(m->idle, run_tasks);
}

struct alarm {
	uv_timer_t timer; /* first: it is what is closed */
	struct alarm **owner;
	void (*fn)(void *arg);
	void *arg;
};

static void free_handle(uv_handle_t *h)
{
	free(h);
}

void alarm_clear(struct alarm **a)
{
	if (*a)
		uv_close((uv_handle_t *)&(*a)->timer, free_handle);
	*a = NULL;
}

static void rings(uv_timer_t *timer)
{
	struct alarm *a = timer->data;
	void (*fn)(void *arg) = a->fn;
	void *arg = a->arg;

	alarm_clear(a->owner);
	fn(arg);
}

void alarm_set(struct manager *m, struct alarm **a, uint64_t us,
	       void (*fn)(void *arg), void *arg)
{
	if (!*a) {
		*a = calloc(1, sizeof(**a));
		/* A clock that cannot be set must not leave a box for ever. */
		if (!*a)
			abort();
		(void)uv_timer_init(m->loop, &(*a)->timer);
		(*a)->timer.data = *a;
	}
	(*a)->owner = a;
	(*a)->fn = fn;
	(*a)->arg = arg;
	uv_update_time(m->loop);
	(void)uv_timer_start(&(*a)->timer, rings, (us + 999) / 1000, 0);
}

static void deliver_done(struct call *c)
{
	c->fn.done(c->arg, c->err.code ? &c->err : NULL);
}

struct call *call_new(struct manager *m, void *arg)
{
	struct call *c = calloc(1, sizeof(*c));

	if (c) {
		c->m = m;
		c->arg = arg;
		c->deliver = deliver_done;
	}
	return c;
}

struct call *call_new_done(struct manager *m, mgr_done_fn *fn, void *arg)
{
	struct call *c = call_new(m, arg);

	if (c)
		c->fn.done = fn;
	return c;
}

void call_free(struct call *c)
{
	if (!c)
		return;
	if (c->exec)
		exec_unref(c->exec);
	if (c->box)
		box_unref(c->box);
	free(c->error);
	free(c);
}

static void call_run(struct task *t)
{
	struct call *c = task_of(t, struct call, task);

	if (!c->is_dropped)
		c->deliver(c);
	call_free(c);
}

void call_end(struct call *c, const struct err *err)
{
	if (!c)
		return;
	if (err)
		c->err = *err;
	soon(c->m, &c->task, call_run);
}

void call_end_text(struct call *c, int code, const char *fmt, ...)
{
	va_list ap;

	if (!c)
		return;
	c->err.code = code;
	va_start(ap, fmt);
	(void)vsnprintf(c->err.text, sizeof(c->err.text), fmt, ap);
	va_end(ap);
	soon(c->m, &c->task, call_run);
}

void call_drop(struct call *c)
{
	if (!c)
		return;
	c->is_dropped = true;
	if (c->has_question)
		questions_look(c->m);
}

void calls_add(struct call **list, struct call *c)
{
	while (*list) {
		struct call *old = *list;

		if (old->is_dropped) { /* or they would pile up */
			*list = old->next;
			call_free(old);
		} else {
			list = &old->next;
		}
	}
	c->next = NULL;
	*list = c;
}

void calls_end(struct call **list, const struct err *err)
{
	struct call *c = take_ptr(*list);

	while (c) {
		struct call *next = c->next;

		call_end(c, err);
		c = next;
	}
}
