/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation.
 *
 * Two sides (inspect-side.c) and, between them, one exchange at a time: a
 * request is read whole, judged, and written anew to upstream
 * (inspect-request.c); its answer is written anew to the box
 * (inspect-answer.c). Each event of a socket leads to step(), which lets
 * everybody work until nothing moves, then waits for what they need.
 *
 * Both handshakes run at once. Nothing is sent upstream before its
 * certificate was verified, nor before a request was allowed.
 *
 * At the end the box gets what is left for it, then its side is shut and
 * drained for a while: closing a socket with unread bytes would take the
 * answer away that is still on its way. Handles close in the loop, and the
 * last one of them tells the hooks.
 */

#include "gate/inspect.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <openssl/crypto.h>

#include "base/clock.h"
#include "base/util.h"
#include "gate/authority.h"
#include "gate/inspect-parts.h"
#include "gate/refuse.h"
#include "gate/trust.h"

/* Rounds of one step, so that others get their turn. */
#define ROUNDS    16
#define DRAIN_MAX (8U << 20)

struct inspect_times inspect_times = {
	.head_ms = 30000,
	.idle_ms = 120000,
	.still_ms = 600000,
	.socket_ms = 3600000,
	.half_ms = 300000,
	.linger_ms = 2000,
	.tick_ms = 1000,
};

/* events */

/*
 * What was read for this request and put out as its answer: not what the box
 * has sent already for the next one, and what still waits for the box only as
 * long as it can get there.
 */
static void count_bytes(struct inspection *i)
{
	const struct side *s = &i->box;
	size_t unread = s->in_len - s->in_at;
	uint64_t in = s->n_in - unread;
	uint64_t out = s->n_out;

	/* A head that is refused is taken out of the way after it is told. */
	if (i->request == REQUEST_HEAD)
		in += MIN(unread, i->head.size);
	if (!i->is_over)
		out += s->out.len - s->out_at;
	i->event.sent = in - MIN(in, i->told_in);
	i->event.received = out - MIN(out, i->told_out);
	i->told_in = in;
	i->told_out = out;
}

void inspect_tell(struct inspection *i, unsigned int status)
{
	if (i->is_told)
		return;
	i->is_told = true;
	i->event.status = status;
	count_bytes(i);
	i->event.us = (uint64_t)(clock_us() - i->asked_at);
	if (i->hooks.event)
		i->hooks.event(i->hooks.arg, &i->event);
}

void inspect_wipe(struct inspection *i)
{
	secret_masks_done(&i->masks);
	inspect_forget_kept(i);
	i->accept[0] = '\0';
}

static void tell_moved(struct inspection *i)
{
	uint64_t n = i->box.n_in + i->box.n_out - i->n_moved;

	if (n == 0)
		return;
	i->n_moved += n;
	i->moved_at = clock_us();
	if (i->hooks.moved)
		i->hooks.moved(i->hooks.arg, (size_t)n);
}

/* the end */

static void on_closed(uv_handle_t *h)
{
	struct inspection *i = h->data;
	struct gate_event e = i->base;

	if (--i->n_handles > 0)
		return;
	e.kind = GATE_E_CLOSE;
	e.reason = (uint8_t)i->why;
	e.rule = i->rule;
	e.flags = i->is_refused ? GATE_EVENT_AGAIN : 0;
	e.sent = i->box.n_in;
	e.received = i->box.n_out;
	if (i->hooks.over)
		i->hooks.over(i->hooks.arg, &e);
	inspect_wipe(i);
	side_done(&i->box);
	side_done(&i->up);
	OPENSSL_clear_free(i, sizeof(*i));
}

/*
 * A request that is on its way when the connection ends. Once its head has gone
 * out, it was let out; before that nothing of it was, and a program that left
 * was not refused. Why an answer was cut is in the record of the connection.
 */
static void tell_end(struct inspection *i)
{
	bool is_out = i->event.flags & GATE_EVENT_OUT;

	if (i->is_told)
		return;
	if (i->answer != ANSWER_BODY && i->answer != ANSWER_WHOLE) {
		i->event.reason = (uint8_t)i->why;
		if (!is_out && i->why == GATE_R_RESET)
			i->event.reason = GATE_R_LEFT;
	}
	i->event.flags |= GATE_EVENT_AGAIN;
	inspect_tell(i, i->event.status);
}

void inspect_end(struct inspection *i, enum gate_reason reason)
{
	if (i->is_over)
		return;
	i->is_over = true;
	if (i->why == GATE_OK)
		i->why = reason;
	tell_moved(i);
	tell_end(i);
	side_close(&i->box, on_closed);
	side_close(&i->up, on_closed);
	uv_close((uv_handle_t *)&i->timer, on_closed);
	uv_close((uv_handle_t *)&i->idle, on_closed);
}

void inspect_close(struct inspection *i)
{
	i->is_closing = true;
	side_close(&i->up, on_closed);
}

void inspect_next(struct inspection *i)
{
	bool is_last = i->is_last || i->request != REQUEST_DONE;

	inspect_tell(i, i->event.status);
	inspect_wipe(i);
	i->answer = ANSWER_NONE;
	i->request = REQUEST_HEAD;
	i->head_at = 0;
	if (is_last)
		inspect_close(i);
}

/* refusals */

static void put_refusal(struct inspection *i, const struct inspect_no *no,
			bool is_last)
{
	struct refusal r = {
		.status = no->status,
		.reason = no->reason,
		.table = i->table,
		.rule = i->verdict.rule,
		.host = i->host,
		.port = i->port,
		.method = { i->event.method, strlen(i->event.method) },
		.path = { i->event.path, strlen(i->event.path) },
		.detail = no->detail,
		.is_bare = i->is_bare,
		.is_last = is_last,
	};

	refuse_put(&r, &i->box.out);
}

void inspect_refuse(struct inspection *i, const struct inspect_no *no)
{
	bool is_kept = no->is_kept && i->request == REQUEST_HEAD &&
		       i->head.framing == HTTP_NO_BODY && !i->head.is_close;
	bool is_answered = i->answer == ANSWER_BODY ||
			   i->answer == ANSWER_WHOLE ||
			   i->answer == ANSWER_SOCKET;

	i->event.reason = (uint8_t)no->reason;
	if (no->reason == GATE_R_PLACEHOLDER)
		i->event.kind = GATE_E_SECRET;
	if (no->detail)
		(void)snprintf(i->event.detail, sizeof(i->event.detail), "%s",
			       no->detail);
	if (!is_answered)
		put_refusal(i, no, !is_kept);
	/* One that has its answer already was answered as that says. */
	inspect_tell(i, is_answered && i->event.status ? i->event.status
						       : no->status);
	inspect_wipe(i);
	if (is_answered || i->box.out.error) {
		i->is_refused = true;
		inspect_end(i, no->reason);
		return;
	}
	i->answer = ANSWER_NONE;
	if (is_kept) {
		side_take(&i->box, i->head.size);
		i->head_at = 0;
		return;
	}
	inspect_close(i);
}

/* work */

/* The name in TLS is the one that was resolved; addresses have none. */
static bool is_server_name_right(struct inspection *i)
{
	const char *name;

	if (!i->box.ssl || !i->box.is_ready)
		return true;
	name = SSL_get_servername(i->box.ssl, TLSEXT_NAMETYPE_host_name);
	if (i->table->rules[i->rule].kind == GATE_ADDRESS
		    ? !name
		    : name && strcasecmp(name, i->host) == 0)
		return true;
	i->why = name ? GATE_R_SERVER_NAME : GATE_R_NO_NAME;
	return false;
}

/* Sends the rest, shuts, drains: true once it is over. */
static bool step_closing(struct inspection *i)
{
	if (!i->box.is_broken && !side_is_flushed(&i->box))
		return false;
	if (!i->is_shut) {
		side_shut(&i->box);
		i->is_shut = true;
		i->closed_at = clock_us();
		i->box.in_at = i->box.in_len = 0;
	}
	if (!i->box.is_broken && !i->box.is_ended && i->n_drained < DRAIN_MAX &&
	    side_drain(&i->box, &i->n_drained))
		return false;
	inspect_end(i, GATE_OK);
	return true;
}

/* The box will say nothing more, and that is too little. */
static bool is_box_gone(const struct inspection *i)
{
	bool is_body = i->request == REQUEST_BODY || i->request == REQUEST_KEPT;
	size_t len;

	(void)side_data(&i->box, &len);
	return i->box.is_broken ||
	       (i->box.is_ended && len == 0 && is_body && !i->sent.is_done);
}

/* It has said all that it wanted to. */
static bool is_box_done(const struct inspection *i)
{
	size_t len;

	(void)side_data(&i->box, &len);
	return i->request == REQUEST_HEAD && len == 0 && i->box.is_ended;
}

static void look_at_box(struct inspection *i)
{
	if (i->box.is_unspoken)
		inspect_end(i, GATE_R_NO_HTTP1);
	else if (is_box_gone(i))
		inspect_end(i, i->request == REQUEST_HEAD && i->is_told
				       ? GATE_OK
				       : GATE_R_RESET);
	else if (is_box_done(i))
		inspect_close(i);
	else if (i->box.is_ended)
		side_probe(&i->box);
}

/* What the quota has left for the box's side, either way. */
static uint64_t bytes_left(const struct inspection *i)
{
	uint64_t left = i->hooks.left ? i->hooks.left(i->hooks.arg)
				      : UINT64_MAX;
	uint64_t untold = i->box.n_in + i->box.n_out - i->n_moved;

	return left > untold ? left - untold : 0;
}

/* There is more than the quota allows; what it allowed still goes out. */
static bool end_if_spent(struct inspection *i)
{
	if (!i->box.is_spent)
		return false;
	(void)side_work(&i->up, false);
	inspect_end(i, GATE_R_BYTES);
	return true;
}

static bool round_of(struct inspection *i)
{
	bool was_ready = i->box.is_ready;
	bool moved;

	i->box.most = bytes_left(i);
	moved = side_work(&i->box, !i->is_closing);
	moved |= side_work(&i->up, true);
	if (i->is_closing)
		return !end_if_spent(i) && !step_closing(i) && moved;
	if (!was_ready && !is_server_name_right(i)) {
		inspect_end(i, i->why);
		return false;
	}
	moved |= inspect_request(i);
	if (!i->is_over && !i->is_closing)
		moved |= inspect_answer(i);
	if (!i->is_over && !i->is_closing)
		look_at_box(i);
	if (!i->is_over && end_if_spent(i))
		return false;
	return moved;
}

static void on_event(uv_poll_t *p, int status, int events);
static void on_idle(uv_idle_t *h);

/* Until on_tick() ends the pause. */
static void rest(struct inspection *i)
{
	(void)uv_idle_stop(&i->idle);
	side_rest(&i->box);
	side_rest(&i->up);
	tell_moved(i);
}

static void step(struct inspection *i)
{
	bool moved = true;

	for (int n = 0; moved && n < ROUNDS && !i->paused_to; n++) {
		moved = round_of(i);
		if (i->is_over)
			return;
	}
	if (i->paused_to) {
		rest(i);
		return;
	}
	if (moved)
		(void)uv_idle_start(&i->idle, on_idle);
	else
		(void)uv_idle_stop(&i->idle);
	side_watch(&i->box, !i->is_closing || i->is_shut, on_event);
	side_watch(&i->up, true, on_event);
	tell_moved(i);
}

static void on_event(uv_poll_t *p, int status, int events)
{
	struct inspection *i = p->data;
	struct side *s = p == &i->box.poll ? &i->box : &i->up;

	/* An error of the socket; libuv has stopped it. Nothing urgent comes
	 * after an end, so that is one too. */
	if (status < 0 || events & UV_PRIORITIZED) {
		s->watched = status < 0 ? 0 : s->watched;
		s->is_broken = true;
	}
	step(i);
}

static void on_idle(uv_idle_t *h)
{
	step(h->data);
}

/* time */

static bool is_late(int64_t since, int ms)
{
	return since > 0 && clock_us() - since > (int64_t)ms * 1000;
}

/* A head that does not end, or a server that does not shake hands. */
static void refuse_slow(struct inspection *i)
{
	static const struct inspect_no slow = { .status = 408,
						.reason = GATE_R_TIME };
	static const struct inspect_no mute = {
		.status = 502,
		.reason = GATE_R_UNREACHABLE,
		.detail = "the server does not begin with TLS",
	};

	i->event = i->base;
	i->event.kind = GATE_E_REQUEST;
	i->is_told = false;
	i->is_bare = false;
	i->asked_at = i->head_at;
	i->verdict.rule = i->rule;
	inspect_refuse(i, i->up.is_ready ? &slow : &mute);
	step(i);
}

static void check_time(struct inspection *i)
{
	const struct inspect_times *t = &inspect_times;
	bool is_idle = i->request == REQUEST_HEAD && i->head_at == 0;
	int still_ms = i->box.is_ended ? MIN(t->half_ms, t->still_ms)
				       : t->still_ms;

	if (i->is_closing) {
		if (is_late(i->is_shut ? i->closed_at : i->moved_at,
			    i->is_shut ? t->linger_ms : t->head_ms))
			inspect_end(i, GATE_OK);
	} else if (!i->box.is_ready && is_late(i->moved_at, t->head_ms)) {
		inspect_end(i, GATE_R_TIME);
	} else if (i->request == REQUEST_HEAD &&
		   is_late(i->head_at, t->head_ms)) {
		refuse_slow(i);
	} else if (i->answer == ANSWER_SOCKET) {
		if (is_late(i->moved_at,
			    i->is_up_shut ? t->half_ms : t->socket_ms))
			inspect_end(i, GATE_R_TIME);
	} else if (is_late(i->moved_at, is_idle ? t->idle_ms : still_ms)) {
		inspect_end(i, is_idle ? GATE_OK : GATE_R_TIME);
	}
}

static void on_tick(uv_timer_t *t)
{
	struct inspection *i = t->data;

	if (i->paused_to > clock_us())
		return;
	if (i->paused_to) {
		i->paused_to = 0;
		step(i);
	} else {
		check_time(i);
	}
}

void inspect_pause(struct inspection *i, uint64_t ms)
{
	if (ms > 0)
		i->paused_to = clock_us() + (int64_t)ms * 1000;
}

/* the beginning */

static int init_sides(struct inspection *i, const struct inspected *what)
{
	SSL *inner = what->is_tls && authority_ctx() ? SSL_new(authority_ctx())
						     : NULL;
	SSL *outer = what->is_tls ? trust_new(what->host) : NULL;
	int r;

	r = side_init(&i->box, i->loop, what->box, inner);
	i->n_handles += i->box.has_poll;
	if (r == 0)
		r = side_early(&i->box, what->early, what->n_early);
	if (side_init(&i->up, i->loop, what->upstream, outer) < 0)
		r = -ENOMEM;
	i->n_handles += i->up.has_poll;
	i->box.poll.data = i->up.poll.data = i;
	if (r < 0 || (what->is_tls && (!inner || !outer)))
		return -ENOMEM;
	if (!what->is_tls)
		return 0;
	SSL_set_accept_state(inner);
	SSL_set_connect_state(outer);
	return authority_dress(inner, i->host);
}

static void init_timers(struct inspection *i)
{
	(void)uv_timer_init(i->loop, &i->timer);
	(void)uv_idle_init(i->loop, &i->idle);
	i->timer.data = i->idle.data = i;
	i->n_handles += 2;
	(void)uv_timer_start(&i->timer, on_tick,
			     (uint64_t)inspect_times.tick_ms,
			     (uint64_t)inspect_times.tick_ms);
	/* The first step comes from the loop, never from inside. */
	(void)uv_idle_start(&i->idle, on_idle);
}

struct inspection *inspect_start(const struct inspected *what,
				 const struct inspection_hooks *hooks,
				 struct err *err)
{
	struct inspection *i = calloc(1, sizeof(*i));

	if (!i || strlen(what->host) >= sizeof(i->host)) {
		free(i);
		(void)close(what->box);
		(void)close(what->upstream);
		(void)err_set(err, ENOMEM, "look into a connection");
		return NULL;
	}
	i->base = *what->base;
	i->table = what->table;
	i->rule = what->rule;
	i->port = what->port;
	i->is_tls = what->is_tls;
	i->loop = what->loop;
	i->is_told = true;
	i->moved_at = clock_us();
	(void)snprintf(i->host, sizeof(i->host), "%s", what->host);
	if (init_sides(i, what) < 0) {
		(void)err_set(err, ENOMEM, "look into a connection");
		init_timers(i);
		inspect_end(i, GATE_R_FULL); /* no hooks: nobody hears of it */
		return NULL;
	}
	i->hooks = *hooks;
	init_timers(i);
	return i;
}

void inspect_table(struct inspection *i, const struct gate_table *t, int rule)
{
	struct http_to to;

	i->table = t;
	i->rule = rule;
	to = inspect_to(i);
	/* A body on its way goes on; which placeholders are its own is new. */
	if (i->request != REQUEST_HEAD)
		http_home(t, &to, i->verdict.applies);
	i->verdict.rule = rule;
	/* A WebSocket has no next request that could be judged by it. */
	if (i->accept[0])
		inspect_end(i, GATE_R_REPLACED);
}
