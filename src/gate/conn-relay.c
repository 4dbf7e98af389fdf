/* SPDX-License-Identifier: Apache-2.0 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/util.h"
#include "gate/conn.h"
#include "gate/events.h"
#include "gate/listen.h"
#include "gate/usage.h"

/* So much at once is a stream: a full record of TLS. */
#define STREAM (16 << 10)

static void on_box(uv_poll_t *p, int status, int events);
static void on_up(uv_poll_t *p, int status, int events);

static void watch_for(uv_poll_t *poll, int *had, int events, uv_poll_cb cb)
{
	if (*had == events)
		return;
	*had = events;
	if (events)
		(void)uv_poll_start(poll, events, cb);
	else
		(void)uv_poll_stop(poll);
}

/* Waits for exactly what each flow needs next. */
static void watch_both(struct conn *c)
{
	int box = 0;
	int up = 0;

	if (flow_wants_read(&c->out) || !c->is_judged)
		box |= UV_READABLE;
	if (flow_wants_write(&c->in))
		box |= UV_WRITABLE;
	if (flow_wants_read(&c->in))
		up |= UV_READABLE;
	if (flow_wants_write(&c->out))
		up |= UV_WRITABLE;
	watch_for(&c->box_poll, &c->box_events, box, on_box);
	watch_for(&c->up_poll, &c->up_events, up, on_up);
}

static void on_idle(uv_timer_t *t)
{
	struct conn *c = t->data;
	bool is_half = c->out.is_ended || c->in.is_ended;
	int64_t most = is_half ? CONN_HALF_MS : CONN_IDLE_MS;
	int64_t past = (clock_us() - c->active) / 1000;

	if (past >= most)
		conn_over(c, GATE_R_TIME);
	else
		conn_timer(c, on_idle,
			   (uint64_t)MIN(most - past, CONN_HALF_MS));
}

void relay_idle(struct conn *c)
{
	c->active = clock_us();
	conn_timer(c, on_idle, CONN_HALF_MS);
}

/*
 * With a stream, the gate that is woken pushes nobody out, though it takes an
 * idle processor at once: while server and program are at work, bytes gather,
 * and are moved many at a time. Otherwise each packet costs two changes of
 * process. Small pieces wait for nobody: on a busy machine that would be
 * milliseconds.
 */
static void set_pace(struct gate *g, uint64_t moved)
{
	const struct sched_param none = { 0 };
	bool is_stream = moved >= STREAM;

	if (moved == 0 || is_stream == g->is_streaming || !g->may_pace)
		return;
	g->is_streaming = is_stream;
	(void)sched_setscheduler(0, is_stream ? SCHED_BATCH : SCHED_OTHER,
				 &none);
}

/* One direction; false: the connection is over. */
static bool pump(struct conn *c, struct flow *f, uint64_t *total)
{
	struct gate *g = c->gate;
	uint64_t before = f->moved;
	size_t held = f->held;
	enum flow_state s = flow_pump(f,
				      usage_left(g->usage, g->table, c->rule));

	if (f->moved != before || f->held != held)
		c->active = clock_us();
	*total += f->moved - before;
	(void)usage_add(g->usage, g->table, c->rule, f->moved - before);
	set_pace(g, f->moved - before);
	if (s == FLOW_ON)
		return true;
	if (s == FLOW_REFUSED) {
		if (c->again == GATE_OK)
			conn_refuse_placeholder(c);
		else
			conn_over(c, c->again);
		return false;
	}
	conn_over(c, s == FLOW_QUOTA ? GATE_R_BYTES : GATE_R_RESET);
	return false;
}

/* Moves what can be moved, then waits for more or ends. */
static void move(struct conn *c, bool out, bool in)
{
	if (out && !pump(c, &c->out, &c->sent))
		return;
	if (in && !pump(c, &c->in, &c->received))
		return;
	/* Who is dead does not read. */
	if (c->out.is_shut && (c->in.is_shut || c->gate->is_ending))
		conn_over(c, GATE_OK);
	else
		watch_both(c);
}

/* A side is broken: what it had said before that still goes through. */
static void on_broken(struct conn *c)
{
	if (!c->is_judged || pump(c, &c->out, &c->sent))
		if (pump(c, &c->in, &c->received))
			conn_over(c, GATE_R_RESET);
}

static void on_box(uv_poll_t *p, int status, int events)
{
	struct conn *c = p->data;

	if (status < 0) {
		on_broken(c);
		return;
	}
	if (!c->is_judged && events & UV_READABLE) {
		first_look(c);
		if (c->state != CONN_RELAYING)
			return;
		events &= ~UV_READABLE;
	}
	move(c, events & UV_READABLE, events & UV_WRITABLE);
}

static void on_up(uv_poll_t *p, int status, int events)
{
	struct conn *c = p->data;

	if (status < 0)
		on_broken(c);
	else
		move(c, events & UV_WRITABLE, events & UV_READABLE);
}

static void on_request(void *arg, const struct gate_event *e)
{
	struct conn *c = arg;
	uint64_t ms;

	events_send(c->gate, e);
	/* What was let out, or left, was not refused; its client sets a pace.
	 */
	if (e->reason == GATE_OK || e->reason == GATE_R_RESET ||
	    e->reason == GATE_R_LEFT)
		return;
	ms = events_denial_pause(c->gate);
	listen_pause(c->gate, ms);
	/* What is left of a dead box goes on. */
	if (c->inspection && !c->gate->is_ending)
		inspect_pause(c->inspection, ms);
}

static void on_moved(void *arg, size_t n)
{
	struct conn *c = arg;

	(void)usage_add(c->gate->usage, c->gate->table, c->rule, n);
}

static uint64_t bytes_left(void *arg)
{
	const struct conn *c = arg;

	return usage_left(c->gate->usage, c->gate->table, c->rule);
}

static void on_inspected(void *arg, const struct gate_event *e)
{
	struct conn *c = arg;

	c->inspection = NULL;
	c->sent = e->sent;
	c->received = e->received;
	memcpy(c->detail, e->detail, sizeof(c->detail));
	c->is_told = e->flags & GATE_EVENT_AGAIN;
	conn_over(c, e->reason);
}

static void inspect(struct conn *c)
{
	const struct inspection_hooks hooks = { .event = on_request,
						.moved = on_moved,
						.left = bytes_left,
						.over = on_inspected,
						.arg = c };
	struct gate_event base;
	struct err err = { 0 };
	struct inspected what = { .loop = &c->gate->loop,
				  .table = c->gate->table,
				  .rule = c->rule,
				  .port = c->port,
				  .host = c->host,
				  .is_tls = c->first == PEEK_TLS,
				  .box = c->box,
				  .upstream = c->up,
				  .base = &base };

	conn_event(c, GATE_E_REQUEST, GATE_OK, &base);
	conn_unwatch(c, &c->box_poll);
	if (c->up_poll.data == c)
		conn_unwatch(c, &c->up_poll);
	(void)uv_timer_stop(&c->timer);
	c->box = c->up = NO_FD;
	c->state = CONN_INSPECTED;
	c->inspection = inspect_start(&what, &hooks, &err);
	if (!c->inspection && c->state == CONN_INSPECTED)
		conn_over(c, GATE_R_RESET);
}

static bool may_pass(void *arg, const uint8_t *data, size_t len)
{
	struct conn *c = arg;
	bool may = c->first == PEEK_TLS ? first_may_say(c, data, len)
					: conn_may_say(c, data, len);

	relay_watch(c);
	return may;
}

static bool may_answer(void *arg, const uint8_t *data, size_t len)
{
	struct conn *c = arg;

	hellos_up(&c->hellos, data, len);
	relay_watch(c);
	return true;
}

void relay_watch(struct conn *c)
{
	bool is_watched = c->first == PEEK_TLS ? hellos_want_box(&c->hellos)
					       : c->gate->has_secret;

	c->out.may_pass = is_watched ? may_pass : NULL;
	c->in.may_pass = hellos_want_up(&c->hellos) ? may_answer : NULL;
	c->out.arg = c->in.arg = c;
}

static void relay(struct conn *c)
{
	c->state = CONN_RELAYING;
	flow_init(&c->out, c->box, c->up);
	flow_init(&c->in, c->up, c->box);
	c->out.is_barred = !c->is_judged;
	relay_watch(c);
	if (!conn_watch(c, &c->up_poll, c->up) ||
	    (c->box_poll.data != c && !conn_watch(c, &c->box_poll, c->box))) {
		conn_over(c, GATE_R_RESET);
		return;
	}
	c->box_events = c->up_events = 0;
	relay_idle(c);
	set_pace(c->gate, 1);
	if (!c->is_judged) {
		c->n_seen = 0;
		first_look(c);
		if (c->state != CONN_RELAYING)
			return;
	}
	move(c, c->is_judged, false);
}

/*
 * Requests are judged one by one, also where no TLS has to be opened. Those to
 * an address are looked at only where the box has a secret (first_start()).
 */
static bool is_for_inspection(const struct conn *c)
{
	return c->is_judged && (conn_must_inspect(c) || c->first == PEEK_HTTP);
}

void relay_judged(struct conn *c)
{
	c->out.is_barred = false;
	relay_watch(c);
	if (!is_for_inspection(c)) {
		relay_idle(c);
		move(c, true, false);
	} else if (c->n_early || c->in.moved) {
		/* A part of the request is through, so nobody can judge it. */
		conn_over(c, GATE_R_HTTP);
	} else {
		inspect(c);
	}
}

static void on_dialled(void *arg, const struct dialled *d)
{
	struct conn *c = arg;
	const int one = 1;

	c->dial = NULL;
	memcpy(c->address, d->address, sizeof(c->address));
	if (d->fd < 0) {
		conn_over(c, d->reason);
		return;
	}
	c->up = d->fd;
	(void)setsockopt(c->up, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)setsockopt(c->up, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	conn_bound(c, c->up);
	/* Told when it ends: nobody is woken while a program waits. */
	c->is_open = true;
	if (is_for_inspection(c))
		inspect(c);
	else
		relay(c);
}

void relay_dial(struct conn *c)
{
	if (c->box_poll.data == c)
		(void)uv_poll_stop(&c->box_poll);
	(void)uv_timer_stop(&c->timer);
	c->state = CONN_DIALLING;
	c->dial = c->is_address
			  ? dial_address(c->address, c->port, on_dialled, c)
			  : dial_name(c->gate->table, c->host, c->port,
				      on_dialled, c);
	if (!c->dial)
		conn_over(c, GATE_R_FULL);
}
