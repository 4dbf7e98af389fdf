/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation: the first bytes are looked at in the socket (MSG_PEEK)
 * and stay there, so the relay moves them with the rest. Where they are too
 * few, SO_RCVLOWAT lets the loop wake us only when there are more.
 *
 * Bytes that are neither TLS nor HTTP yet, but could still become a request
 * ("hello" without a line's end) cannot be held for ever: after a silence they
 * go on, and a copy stays, so that the rest is judged with them. What is
 * certain to be TLS or HTTP goes on only as a whole.
 *
 * Where TLS is relayed, its server may ask for another hello: that one is
 * judged on its way (hellos.h).
 */

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/util.h"
#include "gate/conn.h"
#include "gate/usage.h"

/* One look at a time: shared. */
static uint8_t looked[PEEK_MAX];

static void look(struct conn *c, bool is_silent);

static void on_readable(uv_poll_t *p, int status, int events)
{
	struct conn *c = p->data;

	(void)events;
	if (status < 0)
		conn_over(c, GATE_R_RESET);
	else
		look(c, false);
}

static void on_silence(uv_timer_t *t)
{
	look(t->data, true);
}

static void on_late(uv_timer_t *t)
{
	conn_over(t->data, GATE_R_TIME);
}

static void set_lowat(const struct conn *c, size_t n)
{
	int low = (int)n;

	(void)setsockopt(c->box, SOL_SOCKET, SO_RCVLOWAT, &low, sizeof(low));
}

/* Until the time for all of it is over. */
static void wait_for_rest(struct conn *c)
{
	int64_t past = (clock_us() - c->first_since) / 1000;

	conn_timer(c, on_late,
		   past < CONN_FIRST_MS ? (uint64_t)(CONN_FIRST_MS - past) : 0);
}

/* Nothing is decided: a few bytes of text go on, and are remembered. */
static void pass_some(struct conn *c, size_t n)
{
	uint64_t left;
	ssize_t got;

	if (c->up < 0) {
		relay_dial(c);
		return;
	}
	if (n == 0)
		return;
	/* No more than the rule has left: the last of it ends this. */
	left = usage_left(c->gate->usage, c->gate->table, c->rule);
	if (left == 0) {
		conn_over(c, GATE_R_BYTES);
		return;
	}
	n = (size_t)MIN((uint64_t)n, left);
	if (!c->early)
		c->early = malloc(PEEK_MAX);
	got = c->early ? recv(c->box, c->early + c->n_early, n, MSG_DONTWAIT)
		       : -1;
	if (got > 0 && !conn_may_say(c, c->early + c->n_early, (size_t)got)) {
		conn_refuse_placeholder(c);
		return;
	}
	if (got <= 0 || send(c->up, c->early + c->n_early, (size_t)got,
			     MSG_NOSIGNAL | MSG_DONTWAIT) != got) {
		conn_over(c, GATE_R_RESET);
		return;
	}
	c->n_early += (size_t)got;
	c->n_seen = 0;
	c->sent += (size_t)got;
	set_lowat(c, 1);
	relay_idle(c);
	if (!usage_add(c->gate->usage, c->gate->table, c->rule, (size_t)got))
		conn_over(c, GATE_R_BYTES);
}

static enum gate_reason judge_tls(struct conn *c, const struct peek *p)
{
	if (c->is_address)
		return GATE_OK;
	(void)snprintf(c->detail, sizeof(c->detail), "%.127s", p->name);
	if (!p->name[0] || p->is_hidden)
		return GATE_R_NO_NAME;
	if (strcmp(p->name, c->host) != 0)
		return GATE_R_SERVER_NAME;
	c->detail[0] = '\0';
	return GATE_OK;
}

bool first_may_say(struct conn *c, const uint8_t *data, size_t len)
{
	struct peek p;

	switch (hellos_box(&c->hellos, data, len, &p)) {
	case HELLOS_PASS:
		return true;
	case HELLOS_JUDGE:
		c->again = judge_tls(c, &p);
		break;
	case HELLOS_BAD:
		c->again = GATE_R_NO_NAME;
		(void)snprintf(c->detail, sizeof(c->detail), "a second hello");
		break;
	}
	return c->again == GATE_OK;
}

/* From its first byte on, also if that went out already. */
static void watch_hellos(struct conn *c)
{
	if (c->is_address || conn_must_inspect(c))
		return;
	hellos_start(&c->hellos);
	if (c->n_early)
		(void)first_may_say(c, c->early, c->n_early);
}

static enum gate_reason judge_http(struct conn *c, const struct peek *p)
{
	/* One that is long is not relayed: the inspection judges its host. */
	if (c->is_address || p->is_long)
		return GATE_OK;
	if (strcmp(p->name, c->host) == 0 && (!p->port || p->port == c->port))
		return GATE_OK;
	(void)snprintf(c->detail, sizeof(c->detail), "%.120s:%u", p->name,
		       (unsigned int)(p->port ? p->port : c->port));
	return GATE_R_HTTP_HOST;
}

/* A record of TLS, of any type. */
static bool is_record(void)
{
	return looked[0] >= 0x14 && looked[0] <= 0x18;
}

static enum gate_reason judge(struct conn *c, enum peeked what,
			      const struct peek *p)
{
	enum gate_reason reason;

	switch (what) {
	case PEEK_TLS:
		reason = judge_tls(c, p);
		return reason == GATE_OK && !p->is_h1_offered &&
				       conn_must_inspect(c)
			       ? GATE_R_NO_HTTP1
			       : reason;
	case PEEK_HTTP:
		return judge_http(c, p);
	case PEEK_OTHER:
		return conn_must_inspect(c) ? GATE_R_HTTP : GATE_OK;
	case PEEK_BAD:
	case PEEK_MORE:
		break;
	}
	return is_record() ? GATE_R_NO_NAME : GATE_R_HTTP;
}

static void decide(struct conn *c, enum peeked what, const struct peek *p)
{
	enum gate_reason reason;

	/* No name has to agree: odd requests are for the inspection to judge.
	 */
	if (what == PEEK_BAD && c->is_address)
		what = is_record() ? PEEK_OTHER : PEEK_HTTP;
	reason = judge(c, what, p);
	/* Also an ambiguous request is answered in words. */
	c->first = what == PEEK_BAD && reason == GATE_R_HTTP ? PEEK_HTTP : what;
	if (reason != GATE_OK) {
		conn_over(c, reason);
		return;
	}
	if (what == PEEK_TLS)
		watch_hellos(c);
	c->is_judged = true;
	c->box_events = 0;
	(void)uv_timer_stop(&c->timer);
	(void)uv_poll_stop(&c->box_poll);
	set_lowat(c, 1);
	if (c->up < 0)
		relay_dial(c);
	else
		relay_judged(c);
}

/* Not enough yet; `n` are in the socket. */
static void wait_for_more(struct conn *c, const struct peek *p, size_t n,
			  bool is_silent)
{
	bool may_pass = !p->is_begun && !conn_must_inspect(c);

	if (n > 0 && c->first_since == 0)
		c->first_since = clock_us();
	if (is_silent && may_pass) {
		pass_some(c, n);
		return;
	}
	c->n_seen = n;
	set_lowat(c, n + 1);
	if (c->first_since && !may_pass)
		wait_for_rest(c);
	else if (c->first_since || c->up < 0)
		conn_timer(c, on_silence, CONN_SILENCE_MS);
}

/* The box has said its end: every byte of it is in the socket. */
static bool is_ended(const struct conn *c)
{
	struct pollfd p = { .fd = c->box, .events = POLLRDHUP };

	return poll(&p, 1, 0) == 1 && p.revents & (POLLRDHUP | POLLHUP);
}

/* Some of what follows cannot be looked at: nothing of it goes on. */
static void refuse_urgent(struct conn *c)
{
	(void)snprintf(c->detail, sizeof(c->detail), "urgent data");
	conn_over(c, GATE_R_HTTP);
}

/*
 * The box has ended without a byte, and nobody was dialled for it. Where it has
 * to say something first it has left; elsewhere it may still want to hear.
 */
static bool may_listen(struct conn *c)
{
	struct pollfd p = { .fd = c->box };

	if (conn_must_inspect(c) || (c->is_probed && poll(&p, 1, 0) != 0)) {
		conn_over(c, GATE_OK);
		return false;
	}
	if (c->is_probed)
		return true;
	c->is_probed = true;
	relay_probe(c->box);
	(void)uv_poll_stop(&c->box_poll);
	conn_timer(c, on_silence, CONN_SILENCE_MS);
	return false;
}

static void look(struct conn *c, bool is_silent)
{
	struct peek p;
	enum peeked what;
	/* Asked before the look, or more could come between the two. */
	bool is_end = is_ended(c);
	ssize_t n;

	if (c->n_early)
		memcpy(looked, c->early, c->n_early);
	n = recv(c->box, looked + c->n_early, PEEK_MAX - c->n_early,
		 MSG_PEEK | MSG_DONTWAIT);
	if (n < 0 && errno != EAGAIN) {
		conn_over(c, GATE_R_RESET);
		return;
	}
	if (relay_is_urgent(c->box)) {
		refuse_urgent(c);
		return;
	}
	/* Awake for nothing: the kernel has no memory to wait for more. */
	if (!is_silent && !is_end && n > 0 && (size_t)n <= c->n_seen) {
		conn_over(c, GATE_R_FULL);
		return;
	}
	n = MAX(n, 0);
	if (is_end && n == 0 && c->up < 0 && !may_listen(c))
		return;
	what = peek(looked, c->n_early + (size_t)n, &p);
	if (what == PEEK_MORE && is_end)
		what = p.is_begun ? PEEK_BAD : PEEK_OTHER;
	if (what == PEEK_MORE)
		wait_for_more(c, &p, (size_t)n, is_silent);
	else
		decide(c, what, &p);
}

void first_start(struct conn *c)
{
	/* An address has no name that could agree; secrets are looked for. */
	if (c->is_address && !conn_must_inspect(c) && !c->gate->has_secret) {
		c->is_judged = true;
		c->first = PEEK_OTHER;
		relay_dial(c);
		return;
	}
	c->state = CONN_FIRST;
	if (!conn_watch(c, &c->box_poll, c->box)) {
		conn_over(c, GATE_R_RESET);
		return;
	}
	(void)uv_poll_start(&c->box_poll, UV_READABLE, on_readable);
	conn_timer(c, conn_must_inspect(c) ? on_late : on_silence,
		   conn_must_inspect(c) ? CONN_FIRST_MS : CONN_SILENCE_MS);
}

void first_look(struct conn *c)
{
	look(c, false);
}
