/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A connection after its upgrade.
 *
 * A client may read the headers through a buffer and then go on with the socket
 * underneath, as docker-py does: what one recv() brings together with the
 * headers is lost in that buffer. Waiting until the headers were read (SIOCOUTQ
 * is 0 again) is not enough: the kernel counts them as read while the client's
 * recv() still looks for more. So they carry a descriptor: "ancillary data
 * forms a barrier for the received data" (unix(7)), no recv() brings what is
 * behind it. Whoever does not ask for descriptors never gets it; it is the end
 * of a pipe that nobody writes to.
 */

#include "face/conn.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/util.h"

#define STEPS 8

static struct conn *conn_of(const struct http_pipe *p)
{
	return (struct conn *)((char *)(uintptr_t)p -
			       offsetof(struct conn, pipe));
}

/* Sends the headers; 0 or -errno. */
static int send_headers(struct conn *c)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec v = { c->out.data + c->out.at, bytes_left(&c->out) };
	struct msghdr m = { .msg_iov = &v,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);
	ssize_t n;

	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(h), &c->http->barrier, sizeof(int));
	do
		n = sendmsg(c->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	bytes_take(&c->out, (size_t)n);
	return bytes_left(&c->out) ? -EAGAIN : 0;
}

/* The headers first; what was written meanwhile waits. 1: they are out. */
static int begin(struct conn *c)
{
	struct http_pipe *p = &c->pipe;
	int r;

	if (p->is_begun)
		return 1;
	r = send_headers(c);
	if (r == -EAGAIN) {
		conn_want_out(c, true);
		return 0;
	}
	if (r < 0)
		return r;
	p->is_begun = true;
	c->out = p->early;
	memset(&p->early, 0, sizeof(p->early));
	return 1;
}

/* false: the consumer has to take what there is first. */
static bool give_input(struct conn *c)
{
	struct http_pipe *p = &c->pipe;

	while (bytes_left(&c->in)) {
		size_t n;

		if (p->input_waits)
			return false;
		n = p->events->input(p->data, c->in.data + c->in.at,
				     bytes_left(&c->in));
		if (n < bytes_left(&c->in))
			p->input_waits = true;
		bytes_take(&c->in, n);
	}
	return true;
}

static void read_input(struct conn *c)
{
	struct http_pipe *p = &c->pipe;

	for (int i = 0; i < STEPS; i++) {
		ssize_t n;

		if (p->input_is_over || !give_input(c))
			return;
		n = conn_fill(c);
		if (n == -EAGAIN)
			return;
		if (n <= 0) {
			p->input_is_over = true;
			if (!c->is_hup)
				p->events->input_end(p->data);
			return;
		}
	}
	conn_mark(c);
}

static void call_ready(struct conn *c)
{
	struct http_pipe *p = &c->pipe;

	if (!p->wants_ready || !p->is_begun ||
	    bytes_left(&c->out) > HTTP_MAX_WAITING / 2)
		return;
	p->wants_ready = false;
	p->events->ready(p->data);
}

/*
 * Only our direction is closed, until the client has closed its own: libuv (and
 * with it node) takes a hang-up together with a short read, such as that of the
 * headers alone, for the end, and never looks at what came behind them.
 */
static void end(struct conn *c)
{
	c->pipe.events->gone(c->pipe.data);
	c->lingers = true;
	conn_say_goodbye(c);
}

/* Frees the connection where it is over. */
void pipe_step(struct conn *c)
{
	struct http_pipe *p = &c->pipe;
	int r = begin(c);

	if (r > 0)
		r = conn_flush(c);
	if (r == 0 && !p->is_ended)
		read_input(c);
	if (r == 0 && !p->is_ended)
		call_ready(c);
	if (r < 0 || (c->is_hup && (p->input_is_over || p->input_waits)))
		conn_drop(c);
	else if (p->is_ended && p->is_begun && !bytes_left(&c->out))
		end(c);
}

static struct bytes *queue_of(const struct http_pipe *p)
{
	struct conn *c = conn_of(p);

	return p->is_begun ? &c->out : &c->pipe.early;
}

size_t pipe_room(struct http_pipe *p)
{
	size_t waiting = bytes_left(queue_of(p));

	if (waiting > HTTP_MAX_WAITING / 2)
		p->wants_ready = true;
	return HTTP_MAX_WAITING - MIN(waiting, HTTP_MAX_WAITING);
}

size_t pipe_write(struct http_pipe *p, const struct iovec *v, int n)
{
	struct conn *c = conn_of(p);
	size_t taken = 0;

	if (p->is_ended)
		return 0;
	for (int i = 0; i < n; i++) {
		size_t len = MIN(v[i].iov_len, pipe_room(p));

		if (len && bytes_add(queue_of(p), v[i].iov_base, len) < 0)
			len = 0;
		taken += len;
		if (len < v[i].iov_len) {
			p->wants_ready = true;
			break;
		}
	}
	conn_mark(c);
	return taken;
}

void pipe_input_ready(struct http_pipe *p)
{
	p->input_waits = false;
	conn_mark(conn_of(p));
}

void pipe_end(struct http_pipe *p)
{
	p->is_ended = true;
	conn_mark(conn_of(p));
}
