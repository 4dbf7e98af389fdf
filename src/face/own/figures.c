/* SPDX-License-Identifier: Apache-2.0 */

/* What a box uses, what runs in it, what happens. */

#include <stdlib.h>

#include "base/json.h"
#include "base/util.h"
#include "face/own/internal.h"

#define EACH_MS 1000

/* A line of a stream; false: the client does not read, it was not sent. */
static bool put_line(struct http_request *r, struct buf *b)
{
	bool has_room;

	(void)buf_puts(b, "\n");
	has_room = b->error || http_room(r) >= b->len + 32;
	if (!b->error && has_room)
		(void)http_write(r, b->data, b->len);
	buf_done(b);
	return has_room;
}

/* usage */

struct stats {
	struct http_request *r;
	struct box *box;
	struct call *call;
	uv_timer_t timer;
	bool follows;
};

static void put_usage(struct buf *b, const struct box_usage *u)
{
	struct json j = { .out = b };

	json_open(&j, NULL, '{');
	json_int(&j, "time_ms", u->time_ns / 1000000);
	json_int(&j, "memory", (int64_t)u->memory);
	json_int(&j, "memory_limit", (int64_t)u->memory_limit);
	json_int(&j, "memory_peak", (int64_t)u->memory_peak);
	json_int(&j, "inactive_file", (int64_t)u->inactive_file);
	json_int(&j, "cpu_us", (int64_t)u->cpu_us);
	json_int(&j, "cpu_user_us", (int64_t)u->cpu_user_us);
	json_int(&j, "cpu_system_us", (int64_t)u->cpu_system_us);
	json_int(&j, "cpus", (int64_t)u->cpus);
	json_int(&j, "throttled", (int64_t)u->throttled);
	json_int(&j, "throttled_us", (int64_t)u->throttled_us);
	json_int(&j, "periods", (int64_t)u->periods);
	json_int(&j, "pids", (int64_t)u->pids);
	json_int(&j, "pids_limit", (int64_t)u->pids_limit);
	json_close(&j, '}');
}

static void on_usage(void *arg, const struct box_usage *u,
		     const struct err *err)
{
	struct stats *s = arg;
	struct buf b;

	s->call = NULL;
	if (err && s->follows) {
		(void)uv_timer_stop(&s->timer);
		http_end(s->r);
		return;
	}
	if (err) {
		own_error(s->r, err);
		return;
	}
	buf_init(&b, 4096);
	put_usage(&b, u);
	if (s->follows)
		(void)put_line(s->r, &b); /* or one sample less */
	else
		own_send(s->r, 200, &b);
}

static void ask_usage(struct stats *s)
{
	if (!s->call)
		s->call = box_usage(s->box, on_usage, s);
}

static void on_tick(uv_timer_t *timer)
{
	ask_usage(timer->data);
}

static void stats_free(uv_handle_t *timer)
{
	free(timer->data);
}

static void stats_gone(void *data)
{
	struct stats *s = data;

	call_drop(s->call);
	box_unref(s->box);
	uv_close((uv_handle_t *)&s->timer, stats_free);
}

OWN_HANDLER(own_box_stats)
{
	struct box *b = own_box(r, ctx);
	struct stats *s = b ? calloc(1, sizeof(*s)) : NULL;
	struct box_view v;

	if (!b)
		return;
	if (!s) {
		own_fail(r, 500, "out of memory");
		return;
	}
	box_look(b, &v);
	s->r = r;
	s->box = box_ref(b);
	s->follows = own_flag(r, "follow", false) && v.state != BOX_EXITED &&
		     v.state != BOX_CREATED;
	(void)uv_timer_init(manager_loop(ctx), &s->timer);
	s->timer.data = s;
	http_set_data(r, s, stats_gone);
	if (s->follows) {
		http_begin(r, 200, OWN_JSON, false);
		(void)uv_timer_start(&s->timer, on_tick, EACH_MS, EACH_MS);
	}
	ask_usage(s);
	if (!s->call && !s->follows)
		own_fail(r, 500, "out of memory");
}

/* processes */

static void put_process(struct json *j, const struct box_process *p)
{
	const char state[2] = { p->state, 0 };

	json_open(j, NULL, '{');
	json_int(j, "pid", p->pid);
	json_int(j, "ppid", p->ppid);
	json_int(j, "uid", p->uid);
	json_str(j, "state", state);
	json_int(j, "start_s", (int64_t)p->start_s);
	json_int(j, "cpu_ms", (int64_t)p->cpu_ms);
	json_int(j, "rss", (int64_t)p->rss);
	json_str(j, "comm", p->comm);
	json_str(j, "args", p->args);
	json_close(j, '}');
}

static void on_top(void *arg, const struct box_process *v, size_t n,
		   const struct err *err)
{
	struct act *a = arg;
	struct buf b;
	struct json j = { .out = &b };

	if (!act_ended(a, err))
		return;
	buf_init(&b, OWN_MAX);
	json_open(&j, NULL, '{');
	json_open(&j, "processes", '[');
	for (size_t i = 0; i < n; i++)
		put_process(&j, &v[i]);
	json_close(&j, ']');
	json_close(&j, '}');
	own_send(a->r, 200, &b);
}

OWN_HANDLER(own_box_top)
{
	struct box *b = own_box(r, ctx);
	struct act *a = b ? act_new(r, ctx) : NULL;

	if (a)
		act_wait(a, box_top(b, on_top, a));
}

/* events */

struct watching {
	struct http_request *r;
	struct watch *watch;
	bool follows;
};

static bool on_event(void *arg, const struct event *e)
{
	struct watching *w = arg;
	struct buf b;
	struct json j = { .out = &b };

	buf_init(&b, 1 << 20);
	json_open(&j, NULL, '{');
	json_str(&j, "type", e->type);
	json_str(&j, "action", e->action);
	json_str(&j, "id", e->id);
	json_int(&j, "owner", e->owner);
	json_int(&j, "time_ms", e->time_ns / 1000000);
	json_raw(&j, "attributes", e->attributes ? e->attributes : "{}");
	json_close(&j, '}');
	return put_line(w->r, &b);
}

/* The reader sets the pace; who is a thousand events behind is cut off. */
static void go_on(void *data)
{
	struct watching *w = data;
	int r = w->watch ? events_resume(w->watch) : 1;

	if (r < 0)
		http_cut(w->r);
	else if (r > 0 && !w->follows)
		http_end(w->r);
}

static void watching_gone(void *data)
{
	struct watching *w = data;

	if (w->watch)
		events_unwatch(w->watch);
	free(w);
}

OWN_HANDLER(own_events)
{
	struct watching *w;
	int64_t since;

	/* 0 of the manager's is none, ours is all. */
	if (!own_number(r, "since_ms", -1, &since))
		return;
	w = calloc(1, sizeof(*w));
	if (!w) {
		own_fail(r, 500, "out of memory");
		return;
	}
	w->r = r;
	w->follows = own_flag(r, "follow", true);
	http_set_data(r, w, watching_gone);
	http_on_ready(r, go_on);
	http_begin(r, 200, OWN_JSON, false);
	w->watch = events_watch(
		ctx, http_peer(r),
		since < 0 ? 0 : MIN(since, INT64_MAX / 1000000) * 1000000 + 1,
		on_event, w);
	if (!w->follows)
		go_on(w);
}
