/* SPDX-License-Identifier: Apache-2.0 */

/*
 * DNS over TCP: two bytes of length before each message (RFC 1035, 4.2.2). A
 * few clients at the same time, each with a few seconds; who sends more than a
 * question's length, or does not read the answer, is let go.
 */

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/util.h"
#include "gate/dns.h"
#include "gate/listen.h"

#define CLIENTS 16
#define TIME_MS 5000

struct client {
	struct gate *gate;
	int fd; /* 0: this place is free */
	uv_poll_t poll;
	uv_timer_t timer;
	int n_handles;
	size_t n;
	uint8_t in[2 + DNS_MAX_QUERY];
};

struct dns_server {
	struct client all[CLIENTS];
};

struct dns_server *dns_server_new(struct gate *g)
{
	struct dns_server *d = calloc(1, sizeof(*d));

	for (size_t i = 0; d && i < CLIENTS; i++)
		d->all[i].gate = g;
	return d;
}

static void on_closed(uv_handle_t *h)
{
	struct client *c = h->data;

	if (--c->n_handles == 0)
		c->fd = 0;
}

static void let_go(struct client *c)
{
	if (uv_is_closing((uv_handle_t *)&c->timer))
		return;
	if (c->n_handles == 2)
		uv_close((uv_handle_t *)&c->poll, on_closed);
	uv_close((uv_handle_t *)&c->timer, on_closed);
	(void)close(c->fd);
}

static void on_late(uv_timer_t *t)
{
	let_go(t->data);
}

/* The first message in the buffer; false: it is not whole. */
static bool answer_one(struct client *c)
{
	size_t len = (size_t)c->in[0] << 8 | c->in[1];
	uint8_t out[2 + DNS_MAX_ANSWER];
	size_t n;

	if (c->n < 2 || (len <= DNS_MAX_QUERY && c->n < 2 + len))
		return false;
	n = len <= DNS_MAX_QUERY
		    ? listen_answer(c->gate, c->in + 2, len, out + 2)
		    : 0;
	out[0] = (uint8_t)(n >> 8);
	out[1] = (uint8_t)n;
	if (n == 0 || send(c->fd, out, n + 2, MSG_DONTWAIT | MSG_NOSIGNAL) !=
			      (ssize_t)n + 2) {
		let_go(c);
		return false;
	}
	c->n -= 2 + len;
	memmove(c->in, c->in + 2 + len, c->n);
	return true;
}

/* What is whole, up to a pause; then nothing is read until it is over. */
static void answer_all(struct client *c)
{
	while (!uv_is_closing((uv_handle_t *)&c->poll) &&
	       !listen_is_paused(c->gate) && answer_one(c))
		;
	if (listen_is_paused(c->gate) &&
	    !uv_is_closing((uv_handle_t *)&c->poll))
		(void)uv_poll_stop(&c->poll);
}

static void on_readable(uv_poll_t *p, int status, int events)
{
	struct client *c = p->data;
	ssize_t n = recv(c->fd, c->in + c->n, sizeof(c->in) - c->n,
			 MSG_DONTWAIT);

	(void)status, (void)events;
	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		let_go(c);
		return;
	}
	c->n += (size_t)n;
	answer_all(c);
}

void dns_server_go_on(struct gate *g)
{
	for (size_t i = 0; i < CLIENTS; i++) {
		struct client *c = &g->dns->all[i];

		if (c->fd == 0 || c->n_handles < 2 ||
		    uv_is_closing((uv_handle_t *)&c->poll))
			continue;
		(void)uv_poll_start(&c->poll, UV_READABLE, on_readable);
		answer_all(c);
	}
}

void dns_server_take(struct gate *g, int fd)
{
	struct client *c = NULL;

	for (size_t i = 0; i < CLIENTS && !c; i++)
		if (g->dns->all[i].fd == 0)
			c = &g->dns->all[i];
	if (!c) {
		(void)close(fd);
		return;
	}
	*c = (struct client){ .gate = g, .fd = fd, .n_handles = 1 };
	(void)uv_timer_init(&g->loop, &c->timer);
	c->timer.data = c;
	if (uv_poll_init(&g->loop, &c->poll, fd) < 0) {
		let_go(c);
		return;
	}
	c->poll.data = c;
	c->n_handles = 2;
	(void)uv_poll_start(&c->poll, UV_READABLE, on_readable);
	(void)uv_timer_start(&c->timer, on_late, TIME_MS, 0);
}
