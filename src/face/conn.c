/* SPDX-License-Identifier: Apache-2.0 */

#include "face/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/util.h"

/* How often one connection reads before others have their turn. */
#define STEPS 8

int bytes_add(struct bytes *b, const void *data, size_t len)
{
	if (b->at) {
		memmove(b->data, b->data + b->at, b->len - b->at);
		b->len -= b->at;
		b->at = 0;
	}
	if (b->len + len > b->cap) {
		size_t cap = b->len + len;
		char *data_now;

		if (cap < 2 * b->cap)
			cap = 2 * b->cap;
		data_now = realloc(b->data, cap);
		if (!data_now)
			return -ENOMEM;
		b->data = data_now;
		b->cap = cap;
	}
	if (len)
		memcpy(b->data + b->len, data, len);
	b->len += len;
	return 0;
}

void bytes_take(struct bytes *b, size_t n)
{
	b->at += n;
	if (b->at == b->len)
		bytes_done(b);
}

/*
 * Each read takes a large buffer for a moment. One is kept: to free it and to
 * have it again would make the allocator tidy up each time.
 */
static char *spare;

void bytes_done(struct bytes *b)
{
	if (b->cap == HTTP_READ && !spare)
		spare = b->data;
	else
		free(b->data);
	memset(b, 0, sizeof(*b));
}

struct conn *conn_new(struct http *h, int fd, const struct peer *peer)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLRDHUP | EPOLLET };
	struct conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	ev.data.ptr = c;
	if (epoll_ctl(h->epoll, EPOLL_CTL_ADD, fd, &ev) < 0) {
		free(c);
		return NULL;
	}
	c->http = h;
	c->fd = fd;
	c->peer = *peer;
	c->peer.fd = fd;
	c->may_read = true;
	TAILQ_INSERT_TAIL(&h->conns, c, all);
	return c;
}

void conn_mark(struct conn *c)
{
	if (c->is_marked)
		return;
	c->is_marked = true;
	TAILQ_INSERT_TAIL(&c->http->marked, c, marked);
}

void conn_set_deadline(struct conn *c, uint64_t ms_from_now)
{
	c->deadline = ms_from_now ? uv_now(c->http->loop) + ms_from_now : 0;
	if (c->deadline)
		http_arm(c->http, c->deadline);
}

/* Only while it is needed: else each answer that is read would wake us. */
void conn_want_out(struct conn *c, bool want)
{
	struct epoll_event ev = {
		.events = EPOLLIN | EPOLLRDHUP | EPOLLET |
			  (want ? EPOLLOUT : 0U),
		.data.ptr = c,
	};

	if (c->wants_out == want)
		return;
	c->wants_out = want;
	(void)epoll_ctl(c->http->epoll, EPOLL_CTL_MOD, c->fd, &ev);
}

int conn_flush(struct conn *c)
{
	while (bytes_left(&c->out)) {
		ssize_t n = send(c->fd, c->out.data + c->out.at,
				 bytes_left(&c->out),
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			conn_want_out(c, true);
			return 0;
		}
		if (n < 0)
			return -errno;
		bytes_take(&c->out, (size_t)n);
	}
	conn_want_out(c, false);
	return 0;
}

ssize_t conn_fill(struct conn *c)
{
	struct bytes *b = &c->in;
	ssize_t n;

	if (!c->may_read)
		return -EAGAIN;
	if (!b->data) {
		b->data = spare ? take_ptr(spare) : malloc(HTTP_READ);
		if (!b->data)
			return -ENOMEM;
		b->cap = HTTP_READ;
	}
	do
		n = recv(c->fd, b->data, b->cap, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n > 0)
		b->len = (size_t)n;
	else
		bytes_done(b);
	/* What comes after a short read makes a new edge. */
	if (n < HTTP_READ && !c->is_shut)
		c->may_read = false;
	return n < 0 ? -errno : n;
}

/*
 * Unread bytes would turn the client's end of file into an error (unix(7):
 * ECONNRESET), so they are taken first, and no more can follow.
 */
static void conn_close(struct conn *c)
{
	char rest[4096];

	/* Somebody may hold a copy of it (struct peer). */
	(void)epoll_ctl(c->http->epoll, EPOLL_CTL_DEL, c->fd, NULL);
	(void)shutdown(c->fd, SHUT_RDWR);
	for (int i = 0; i < 256; i++)
		if (recv(c->fd, rest, sizeof(rest), MSG_DONTWAIT) <= 0)
			break;
	(void)close(c->fd);
}

void conn_drop(struct conn *c)
{
	struct http_request *r = c->request;

	c->request = NULL;
	if (r) {
		if (r->gone && !r->is_upgraded)
			r->gone(r->data);
		request_free(r);
	}
	if (c->state == CONN_PIPE)
		c->pipe.events->gone(c->pipe.data);
	conn_close(c);
	if (c->is_marked)
		TAILQ_REMOVE(&c->http->marked, c, marked);
	TAILQ_REMOVE(&c->http->conns, c, all);
	bytes_done(&c->in);
	bytes_done(&c->out);
	bytes_done(&c->pipe.early);
	free(c);
}

void conn_say_goodbye(struct conn *c)
{
	if (!c->lingers) {
		conn_drop(c);
		return;
	}
	(void)shutdown(c->fd, SHUT_WR);
	c->state = CONN_LINGER;
	bytes_done(&c->in);
	conn_set_deadline(c, HTTP_LINGER_MS);
	conn_mark(c);
}

static void linger_step(struct conn *c)
{
	for (int i = 0; i < STEPS; i++) {
		ssize_t n = conn_fill(c);

		bytes_done(&c->in);
		if (n == -EAGAIN && !c->is_shut)
			return;
		if (n <= 0) {
			conn_drop(c);
			return;
		}
	}
	conn_mark(c);
}

static void call_ready(struct http_request *r)
{
	if (!r->wants_ready || !r->ready ||
	    bytes_left(&r->conn->out) > HTTP_MAX_WAITING / 2)
		return;
	r->wants_ready = false;
	r->ready(r->data);
}

/* An answer that is complete ends its request; the connection may go on. */
static void finish_request(struct conn *c)
{
	struct http_request *r = c->request;

	if (!r)
		return;
	c->request = NULL;
	c->ends |= !r->keeps_alive || !r->is_whole;
	c->lingers = !r->is_whole;
	if (r->gone)
		r->gone(r->data);
	request_free(r);
	c->state = CONN_HEAD;
	conn_set_deadline(c, 0);
}

/* One turn; false: nothing more to do for now, or the connection is gone. */
static bool step_once(struct conn *c)
{
	struct http_request *r = c->request;

	if (r && r->is_upgraded) {
		c->request = NULL;
		request_free(r);
	}
	if (c->state == CONN_PIPE) {
		pipe_step(c);
		return false;
	}
	if (conn_flush(c) < 0) {
		conn_drop(c);
		return false;
	}
	if (r)
		call_ready(r);
	if (r && r->is_ended) {
		finish_request(c);
		return true;
	}
	if (c->ends && !r) {
		if (!bytes_left(&c->out))
			conn_say_goodbye(c);
		else if (c->is_hup)
			conn_drop(c);
		return false;
	}
	return request_advance(c);
}

void conn_step(struct conn *c)
{
	if (c->state == CONN_LINGER) {
		linger_step(c);
		return;
	}
	for (int i = 0; i < STEPS; i++)
		if (!step_once(c))
			return;
	conn_mark(c);
}
