/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The front's side of serve/orders.h.
 *
 * Each order that waits for its answer is in a list; one that the socket does
 * not take yet waits in front of it, with descriptors of its own. At most
 * ORDERS_MAX at once, above that -EAGAIN. When the other side is gone, all get
 * EPIPE.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/io.h"
#include "base/util.h"
#include "front/doc.h"
#include "front/front.h"

#define ORDERS_MAX     8192
#define ORDERS_MAX_FDS 5

struct asked {
	struct asked *next;
	struct order order;
	int fds[ORDERS_MAX_FDS]; /* not yet sent */
	int n_fds;
	order_done_fn *done;
	void (*asked)(void *arg);
	void *arg;
};

struct orders {
	uv_poll_t *poll;
	int sock;
	uint32_t last;
	unsigned int n;
	uint64_t position;                 /* that an answer named last */
	struct asked *sent;                /* wait for an answer */
	struct asked *waiting, **wait_end; /* wait to be sent */
	order_told_fn *told;
	void *arg;
};

static void close_fds(int *fds, int n)
{
	for (int i = 0; i < n; i++)
		fd_close(&fds[i]);
}

static void asked_end(struct orders *o, struct asked *a,
		      const struct order_answer *answer, int *fds, int n)
{
	o->n--;
	if (a->done)
		a->done(a->arg, answer, fds, n);
	close_fds(fds, n);
	close_fds(a->fds, a->n_fds);
	free(a);
}

static void free_handle(uv_handle_t *h)
{
	free(h);
}

/* The other side is gone: everybody hears it, nobody comes in again. */
static void orders_lose(struct orders *o)
{
	struct order_answer lost = { .type = ORDER_ANSWER };
	struct asked *lists[2] = { take_ptr(o->sent), take_ptr(o->waiting) };

	o->wait_end = &o->waiting;
	if (o->poll)
		uv_close((uv_handle_t *)take_ptr(o->poll), free_handle);
	fd_close(&o->sock);
	(void)err_set(&lost.err, EPIPE, "another part of the daemon is gone");
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		while (lists[i]) {
			struct asked *next = lists[i]->next;

			asked_end(o, lists[i], &lost, NULL, 0);
			lists[i] = next;
		}
}

static int send_one(struct orders *o, struct asked *a)
{
	int r = io_send(o->sock, &a->order, sizeof(a->order), a->fds, a->n_fds);

	if (r < 0)
		return r;
	close_fds(a->fds, a->n_fds);
	a->n_fds = 0;
	if (!a->done) {
		o->n--;
		free(a);
		return 0;
	}
	a->next = o->sent;
	o->sent = a;
	return 0;
}

static void watch_socket(struct orders *o);

static void send_waiting(struct orders *o)
{
	while (o->waiting) {
		struct asked *a = o->waiting;
		struct asked *next = a->next;
		int r = send_one(o, a);

		if (r == -EAGAIN || r == -ENOBUFS || r == -ETOOMANYREFS)
			break;
		if (r < 0) {
			/* The loop finds it ended, and tells all. */
			(void)shutdown(o->sock, SHUT_RDWR);
			break;
		}
		o->waiting = next;
		if (!next)
			o->wait_end = &o->waiting;
	}
	watch_socket(o);
}

static void answered(struct orders *o, const struct order_answer *answer,
		     int *fds, int n)
{
	struct asked **p = &o->sent;

	if (answer->position)
		o->position = answer->position;
	while (*p && (*p)->order.number != answer->number)
		p = &(*p)->next;
	if (*p) {
		struct asked *a = *p;

		*p = a->next;
		asked_end(o, a, answer, fds, n);
		return;
	}
	close_fds(fds, n);
}

/* A person is asked about one that waits for its answer. */
static void is_asked(struct orders *o, uint32_t number)
{
	for (struct asked *a = o->sent; a; a = a->next)
		if (a->order.number == number && a->asked) {
			a->asked(a->arg);
			return;
		}
}

/* One message; false when there is none, or nobody any more. */
static bool receive(struct orders *o)
{
	union {
		uint32_t type;
		struct order order;
		struct order_answer answer;
	} msg;
	int fds[IO_MAX_FDS];
	int n = 0;
	ssize_t len = io_recv(o->sock, &msg, sizeof(msg), MSG_DONTWAIT, fds,
			      &n);

	if (len == -EAGAIN)
		return false;
	if (len >= (ssize_t)sizeof(msg.answer) && msg.type == ORDER_ANSWER) {
		msg.answer.err.text[sizeof(msg.answer.err.text) - 1] = '\0';
		answered(o, &msg.answer, fds, n);
		return o->sock >= 0;
	}
	if (len == (ssize_t)sizeof(msg.order) && msg.type == ORDER_ASKED) {
		is_asked(o, msg.order.number);
		close_fds(fds, n);
		return o->sock >= 0;
	}
	if (len == (ssize_t)sizeof(msg.order)) {
		o->told(o->arg, msg.type, n > 0 ? fds[0] : NO_FD);
		close_fds(fds, n);
		return o->sock >= 0;
	}
	close_fds(fds, n);
	orders_lose(o);
	o->told(o->arg, 0, NO_FD);
	return false;
}

static void ready(uv_poll_t *poll, int status, int events)
{
	struct orders *o = poll->data;

	(void)status;
	if (events & UV_WRITABLE)
		send_waiting(o);
	for (int i = 0; i < 64 && o->sock >= 0; i++)
		if (!receive(o))
			return;
}

static void watch_socket(struct orders *o)
{
	if (o->poll)
		(void)uv_poll_start(o->poll,
				    UV_READABLE |
					    (o->waiting ? UV_WRITABLE : 0),
				    ready);
}

struct orders *orders_new(uv_loop_t *loop, int sock, order_told_fn *told,
			  void *arg, struct err *err)
{
	struct orders *o = calloc(1, sizeof(*o));

	if (o)
		o->poll = calloc(1, sizeof(*o->poll));
	if (!o || !o->poll || fcntl(sock, F_SETFL, O_NONBLOCK) < 0 ||
	    uv_poll_init(loop, o->poll, sock) < 0) {
		(void)err_set(err, EIO, "descriptor %d is no socket of ours",
			      sock);
		if (o)
			free(o->poll);
		free(o);
		return NULL;
	}
	o->poll->data = o;
	o->sock = sock;
	o->wait_end = &o->waiting;
	o->told = told;
	o->arg = arg;
	watch_socket(o);
	return o;
}

void orders_free(struct orders *o)
{
	if (!o)
		return;
	orders_lose(o);
	free(o);
}

static int keep_fds(struct asked *a, const int *fds, int n)
{
	if (n > ORDERS_MAX_FDS)
		return -E2BIG;
	for (int i = 0; i < n; i++) {
		a->fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
		if (a->fds[i] < 0)
			return -errno;
		a->n_fds++;
	}
	return 0;
}

int orders_ask(struct orders *o, const struct order_want *want,
	       order_done_fn *done, void *arg, struct err *err)
{
	struct asked *a;
	int r;

	if (!o || o->sock < 0)
		return err_set(err, MGR_LOST, "the daemon is being restarted");
	if (o->n >= ORDERS_MAX)
		return err_set(err, MGR_BUSY, "%u requests wait already", o->n);
	a = calloc(1, sizeof(*a));
	if (!a)
		return err_set(err, ENOMEM, "out of memory");
	a->order = (struct order){ .type = want->type,
				   .number = want->number ? want->number
							  : ++o->last };
	a->order.from = want->from;
	a->order.may_be_new = want->may_be_new;
	if (want->run)
		(void)snprintf(a->order.run, sizeof(a->order.run), "%s",
			       want->run);
	if (want->kind)
		(void)snprintf(a->order.kind, sizeof(a->order.kind), "%s",
			       want->kind);
	a->done = done;
	a->asked = want->asked;
	a->arg = arg;
	r = keep_fds(a, want->fds, want->n_fds);
	if (r < 0) {
		close_fds(a->fds, a->n_fds);
		free(a);
		return err_errno(err, -r, "hand over a descriptor");
	}
	o->n++;
	*o->wait_end = a;
	o->wait_end = &a->next;
	if (o->waiting == a)
		send_waiting(o);
	return 0;
}

void orders_cancel(struct orders *o, const void *arg)
{
	struct order_want want = { .type = ORDER_CANCEL };
	struct err unused;

	for (const struct asked *a = o->sent; a; a = a->next)
		if (a->arg == arg)
			want.number = a->order.number;
	if (want.number)
		(void)orders_ask(o, &want, NULL, NULL, &unused);
}

int orders_send_text(struct orders *o, const struct order_want *want,
		     const char *text, order_done_fn *done, void *arg,
		     struct err *err)
{
	_cleanup_fd_ int fd = NO_FD;
	struct order_want w = *want;

	if (!text)
		return err_set(err, ENOMEM, "out of memory");
	fd = doc_seal(text, strlen(text));
	if (fd < 0)
		return err_errno(err, -fd, "write a record");
	w.fds = &fd;
	w.n_fds = 1;
	return orders_ask(o, &w, done, arg, err);
}

int orders_record(struct orders *o, const char *kind, const char *members,
		  order_done_fn *done, void *arg, struct err *err)
{
	const struct order_want want = { .type = ORDER_RECORD, .kind = kind };

	return orders_send_text(o, &want, members, done, arg, err);
}

uint64_t orders_position(const struct orders *o)
{
	return o ? o->position : 0;
}
