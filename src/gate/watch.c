/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/watch.h"

#include "base/util.h"

struct watch {
	uv_poll_t poll;
	watch_fn *fn;
	void *arg;
	int fd;
};

struct tick {
	uv_timer_t timer;
	tick_fn *fn;
	void *arg;
};

static void on_closed(uv_handle_t *h)
{
	free(h->data);
}

/* A broken one is told as well: the next call on it says how. */
static void on_poll(uv_poll_t *h, int status, int events)
{
	struct watch *w = h->data;

	(void)status;
	(void)events;
	w->fn(w->arg, w->fd);
}

struct watch *watch_new(uv_loop_t *loop, int fd, int events, watch_fn *fn,
			void *arg)
{
	struct watch *w = calloc(1, sizeof(*w));

	if (!w || uv_poll_init(loop, &w->poll, fd) != 0) {
		free(w);
		fd_close(&fd);
		return NULL;
	}
	w->poll.data = w;
	w->arg = arg;
	w->fd = fd;
	if (watch_turn(w, events, fn) < 0) {
		watch_free(w);
		return NULL;
	}
	return w;
}

int watch_turn(struct watch *w, int events, watch_fn *fn)
{
	w->fn = fn;
	return uv_poll_start(&w->poll, events, on_poll) == 0 ? 0 : -1;
}

int watch_take(struct watch *w)
{
	int fd = take_fd(&w->fd);

	(void)uv_poll_stop(&w->poll);
	uv_close((uv_handle_t *)&w->poll, on_closed);
	return fd;
}

void watch_free(struct watch *w)
{
	int fd;

	if (!w)
		return;
	fd = watch_take(w);
	fd_close(&fd);
}

struct tick *tick_new(uv_loop_t *loop, tick_fn *fn, void *arg)
{
	struct tick *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	(void)uv_timer_init(loop, &t->timer); /* cannot fail */
	t->timer.data = t;
	t->fn = fn;
	t->arg = arg;
	return t;
}

static void on_time(uv_timer_t *h)
{
	struct tick *t = h->data;

	t->fn(t->arg);
}

void tick_set(struct tick *t, uint64_t ms)
{
	(void)uv_timer_start(&t->timer, on_time, ms, 0);
}

void tick_stop(struct tick *t)
{
	(void)uv_timer_stop(&t->timer);
}

void tick_free(struct tick *t)
{
	if (t)
		uv_close((uv_handle_t *)&t->timer, on_closed);
}
