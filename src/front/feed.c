/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Feeds: one reader each, at its own speed.
 *
 * A pump passes on what there is until the sink takes no more. It is run from
 * tasks and events only; a sink may drop its feed from within its own
 * callbacks, so every pump looks at is_dead after each of them.
 */

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/util.h"
#include "front/front.h"

struct feed *feed_new(struct manager *m, const struct feed_ops *ops,
		      const struct sink *sink, struct err *err)
{
	struct feed *f = calloc(1, sizeof(*f));

	if (!f) {
		(void)err_set(err, ENOMEM, "out of memory");
		return NULL;
	}
	f->m = m;
	f->ops = ops;
	if (sink)
		f->sink = *sink;
	f->moved_us = clock_us();
	return f;
}

static void pump_task(struct task *t)
{
	struct feed *f = task_of(t, struct feed, task);

	if (!f->is_dead && !f->is_blocked)
		f->ops->pump(f);
}

void feed_soon(struct feed *f)
{
	if (!f->is_dead)
		soon(f->m, &f->task, pump_task);
}

static void free_task(struct task *t)
{
	struct feed *f = task_of(t, struct feed, end);

	if (f->task.is_queued) { /* it runs first, and does nothing */
		soon(f->m, &f->end, free_task);
		return;
	}
	f->ops->done(f);
	if (f->exec)
		exec_unref(f->exec);
	if (f->box)
		box_unref(f->box);
	free(f);
}

static void bury(struct feed *f)
{
	f->is_dead = true;
	soon(f->m, &f->end, free_task);
}

void feed_finish(struct feed *f)
{
	if (f->is_dead)
		return;
	bury(f);
	f->ops->gone(f);
	f->sink.end(f->sink.arg);
}

void feed_drop(struct feed *f)
{
	if (!f || f->is_dead)
		return;
	bury(f);
	f->ops->gone(f);
}

void feed_ready(struct feed *f)
{
	if (!f || f->is_dead)
		return;
	f->is_blocked = false;
	feed_soon(f);
}

void feed_kick(struct feed *list)
{
	for (struct feed *f = list; f; f = f->next)
		if (!f->is_blocked)
			feed_soon(f);
}

size_t feed_input(struct feed *f, const char *data, size_t len)
{
	size_t n;

	if (f->is_dead || !f->has_stdin || !f->ops->input)
		return len;
	n = f->ops->input(f, data, len);
	f->wants_in = n < len;
	return n;
}

void feed_on_input(struct feed *f, void (*ready)(void *arg))
{
	f->on_input = ready;
}

void feed_end_input(struct feed *f)
{
	if (!f->is_dead && f->has_stdin && f->ops->end_input)
		f->ops->end_input(f);
}

void feed_input_ready(struct feed *list)
{
	struct feed *next;

	for (struct feed *f = list; f; f = next) {
		next = f->next;
		if (!f->wants_in || !f->on_input || f->is_dead)
			continue;
		f->wants_in = false;
		f->on_input(f->sink.arg);
	}
}
