/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The server: a listener, its connections, one timer for all of them.
 *
 * The parser is http-parser; the connections are our own, since what is asked
 * of them is more than a server library gives: input after an answer that is
 * no 101 (a stream until the end, both ways), word at once when the client of
 * a request that waits has left, a barrier behind the headers (pipe.c).
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/util.h"
#include "face/conn.h"

#define EVENTS  64
#define ACCEPTS 64
/* Above the limit of a peer so many are still told why; more are just closed.
 */
#define EXCESS  64
#define REST_MS 100

static void step_marked(struct http *h)
{
	struct conn *c;

	/* Those marked meanwhile have their turn in the next round. */
	for (int round = 0; round < 4 && !TAILQ_EMPTY(&h->marked); round++) {
		struct conn *last = TAILQ_LAST(&h->marked, conn_list);
		bool is_last = false;

		while (!is_last && (c = TAILQ_FIRST(&h->marked))) {
			is_last = c == last;
			TAILQ_REMOVE(&h->marked, c, marked);
			c->is_marked = false;
			conn_step(c);
		}
	}
	if (TAILQ_EMPTY(&h->marked))
		(void)uv_idle_stop(&h->idle);
}

static void on_idle(uv_idle_t *idle)
{
	(void)idle; /* keeps the loop from sleeping */
}

static void on_prepare(uv_prepare_t *prepare)
{
	struct http *h = prepare->data;

	step_marked(h);
	if (!TAILQ_EMPTY(&h->marked))
		(void)uv_idle_start(&h->idle, on_idle);
}

/* time */

static void on_deadline(struct conn *c)
{
	struct http_request *r = c->request;

	c->deadline = 0;
	if (c->state == CONN_LINGER) {
		conn_drop(c);
		return;
	}
	if (c->state == CONN_HEAD && r && !r->has_head)
		request_fail(c, 408, "the headers did not come in time");
	conn_mark(c);
}

static void listen_again(struct http *h)
{
	struct epoll_event ev = { .events = EPOLLIN };

	h->accept_again = 0;
	if (h->listener >= 0 && !h->is_accepting)
		h->is_accepting = epoll_ctl(h->epoll, EPOLL_CTL_ADD,
					    h->listener, &ev) == 0;
}

static void on_timer(uv_timer_t *timer)
{
	struct http *h = timer->data;
	uint64_t now = uv_now(h->loop);
	struct conn *c = TAILQ_FIRST(&h->conns);

	h->timer_at = 0;
	while (c) {
		struct conn *next = TAILQ_NEXT(c, all);

		if (c->deadline && c->deadline <= now)
			on_deadline(c);
		else if (c->deadline)
			http_arm(h, c->deadline);
		c = next;
	}
	if (h->accept_again && h->accept_again <= now)
		listen_again(h);
	else if (h->accept_again)
		http_arm(h, h->accept_again);
}

void http_arm(struct http *h, uint64_t when)
{
	uint64_t now = uv_now(h->loop);

	if (h->timer_at && h->timer_at <= when)
		return;
	h->timer_at = when;
	(void)uv_timer_start(&h->timer, on_timer, when > now ? when - now : 0,
			     0);
}

/* connections */

static unsigned int count_of(const struct http *h, uid_t uid)
{
	unsigned int n = 0;
	const struct conn *c;

	TAILQ_FOREACH(c, &h->conns, all)
	n += c->peer.uid == uid;
	return n;
}

size_t http_bodies(const struct http *h, uid_t uid)
{
	const struct conn *c;
	size_t n = 0;

	TAILQ_FOREACH(c, &h->conns, all)
	n += c->peer.uid == uid && c->request ? c->request->body.len : 0;
	return n;
}

static void take_conn(struct http *h, int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	struct peer peer;
	unsigned int n;
	struct conn *c;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0) {
		(void)close(fd);
		return;
	}
	peer = (struct peer){ .uid = cred.uid,
			      .gid = cred.gid,
			      .pid = cred.pid };
	n = count_of(h, cred.uid);
	c = n < HTTP_MAX_PEER + EXCESS ? conn_new(h, fd, &peer) : NULL;
	if (!c) {
		(void)close(fd);
		return;
	}
	if (n >= HTTP_MAX_PEER)
		request_fail(c, 503, "too many connections of one user");
	conn_mark(c);
}

static void accept_some(struct http *h)
{
	for (int i = 0; i < ACCEPTS && h->listener >= 0; i++) {
		int fd = accept4(h->listener, NULL, NULL,
				 SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0) {
			take_conn(h, fd);
			continue;
		}
		if (errno == EINTR || errno == ECONNABORTED)
			continue;
		if (errno == EAGAIN)
			return;
		/* Out of descriptors or memory: those we have go on. */
		(void)epoll_ctl(h->epoll, EPOLL_CTL_DEL, h->listener, NULL);
		h->is_accepting = false;
		h->accept_again = uv_now(h->loop) + REST_MS;
		http_arm(h, h->accept_again);
		return;
	}
}

static void on_event(struct conn *c, uint32_t events)
{
	if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		c->may_read = true;
	if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		c->is_shut = true;
	if (events & (EPOLLHUP | EPOLLERR))
		c->is_hup = true;
	conn_mark(c);
}

static void on_poll(uv_poll_t *poll, int status, int what)
{
	struct http *h = poll->data;
	struct epoll_event ev[EVENTS];
	int n;

	(void)status;
	(void)what;
	n = epoll_wait(h->epoll, ev, EVENTS, 0);
	for (int i = 0; i < n; i++)
		if (ev[i].data.ptr)
			on_event(ev[i].data.ptr, ev[i].events);
		else
			accept_some(h);
	step_marked(h);
}

/* beginning and end */

static void start_handles(struct http *h)
{
	(void)uv_prepare_init(h->loop, &h->prepare);
	(void)uv_idle_init(h->loop, &h->idle);
	(void)uv_timer_init(h->loop, &h->timer);
	h->poll.data = h;
	h->prepare.data = h;
	h->idle.data = h;
	h->timer.data = h;
	h->open_handles = 4;
	(void)uv_prepare_start(&h->prepare, on_prepare);
	uv_unref((uv_handle_t *)&h->prepare);
}

struct http *http_new(uv_loop_t *loop, int listener,
		      const struct http_face *face, struct err *err)
{
	struct http *h = calloc(1, sizeof(*h));
	int barrier[2] = { NO_FD, NO_FD };
	int r;

	if (!h) {
		(void)err_set(err, ENOMEM, "out of memory");
		return NULL;
	}
	http_parser_set_max_header_size(HTTP_MAX_HEAD);
	h->loop = loop;
	h->face = face;
	h->listener = listener;
	TAILQ_INIT(&h->conns);
	TAILQ_INIT(&h->marked);
	h->epoll = epoll_create1(EPOLL_CLOEXEC);
	r = h->epoll < 0 || pipe2(barrier, O_CLOEXEC) < 0
		    ? -errno
		    : uv_poll_init(loop, &h->poll, h->epoll);
	h->barrier = barrier[0];
	fd_close(&barrier[1]);
	if (r == 0)
		listen_again(h);
	if (r < 0 || !h->is_accepting) {
		(void)err_errno(err, r < 0 ? -r : errno, "watch a socket");
		fd_close(&h->epoll);
		fd_close(&h->barrier);
		free(h);
		return NULL;
	}
	start_handles(h);
	(void)uv_poll_start(&h->poll, UV_READABLE, on_poll);
	return h;
}

void http_stop_listening(struct http *h)
{
	if (h->is_accepting)
		(void)epoll_ctl(h->epoll, EPOLL_CTL_DEL, h->listener, NULL);
	h->is_accepting = false;
	h->accept_again = 0;
	fd_close(&h->listener);
}

static void on_closed(uv_handle_t *handle)
{
	struct http *h = handle->data;

	if (--h->open_handles > 0)
		return;
	fd_close(&h->epoll);
	fd_close(&h->barrier);
	free(h);
}

void http_free(struct http *h)
{
	struct conn *c;

	if (!h)
		return;
	http_stop_listening(h);
	while ((c = TAILQ_FIRST(&h->conns)))
		conn_drop(c);
	uv_close((uv_handle_t *)&h->poll, on_closed);
	uv_close((uv_handle_t *)&h->prepare, on_closed);
	uv_close((uv_handle_t *)&h->idle, on_closed);
	uv_close((uv_handle_t *)&h->timer, on_closed);
}
