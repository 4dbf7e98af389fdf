/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The client's side of boxes that stay; see session.h.
 *
 * What cannot be sent at once waits in a queue with its descriptors, so that
 * no call blocks; the socket is then watched for room too. Messages are handed
 * out one by one, and each object is taken out of its list before its last
 * callback, which may call anything.
 */

#include "box/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"

/* The most messages that wait to be sent, and descriptors of one. */
#define QUEUE_MAX 8192
#define ASK_FDS   4

/* Messages that one step hands out, so that others get their turn. */
#define STEP_MOST 256

_Static_assert(sizeof(struct session_usage) == sizeof(struct wire_usage),
	       "the same numbers");

struct waiting {
	struct waiting *next;
	struct wire_ask ask;
	int fds[ASK_FDS];
	int n_fds;
};

struct exec {
	struct exec *next;
	uint32_t number;
	struct session_exec_events events;
	void *arg;
};

/* A question that was not answered yet. */
struct question {
	struct question *next;
	uint32_t token;
	void (*caught)(void *arg, uint64_t mask);
	void (*usage)(void *arg, const struct session_usage *u);
	void *arg;
};

struct session {
	struct sessions *all;
	struct session *next;
	uint32_t number;
	struct session_events events;
	void *arg;
	struct exec *execs;
	struct question *questions;
	bool is_ready;
	bool is_closed; /* by the caller */
	bool may_freeze;
};

struct sessions {
	int sock;
	int epoll;
	bool is_lost;
	bool wants_room;
	uint32_t next_number; /* of sessions, programs and questions */
	struct session *first;
	void (*swept)(void *arg, bool is_clean);
	void *swept_arg;
	struct waiting *queue;
	struct waiting **queue_end;
	unsigned int n_queue;
};

static uint32_t new_number(struct sessions *all)
{
	all->next_number = (all->next_number + 1) & 0x7fffffffU;
	if (!all->next_number)
		all->next_number = 1;
	return all->next_number;
}

static int watch(struct sessions *all, int op, bool wants_room)
{
	struct epoll_event ev = { .events = EPOLLIN |
					    (wants_room ? EPOLLOUT : 0) };

	all->wants_room = wants_room;
	return epoll_ctl(all->epoll, op, all->sock, &ev) < 0 ? -errno : 0;
}

struct sessions *sessions_new(int sock, struct err *err)
{
	struct sessions *all = calloc(1, sizeof(*all));

	if (!all) {
		(void)close(sock);
		(void)err_set(err, ENOMEM, "out of memory");
		return NULL;
	}
	all->sock = sock;
	all->queue_end = &all->queue;
	all->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (all->epoll < 0 || watch(all, EPOLL_CTL_ADD, false) < 0) {
		(void)err_errno(err, errno, "watch the keeper");
		sessions_free(all);
		return NULL;
	}
	return all;
}

int sessions_fd(const struct sessions *all)
{
	return all->epoll;
}

/* sending */

static void waiting_free(struct waiting *w)
{
	for (int i = 0; i < w->n_fds; i++)
		(void)close(w->fds[i]);
	free(w);
}

static int enqueue(struct sessions *all, const struct wire_ask *ask,
		   const int *fds, int n)
{
	struct waiting *w;

	if (all->n_queue >= QUEUE_MAX)
		return -EAGAIN;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->ask = *ask;
	for (; w->n_fds < n; w->n_fds++) {
		w->fds[w->n_fds] = fcntl(fds[w->n_fds], F_DUPFD_CLOEXEC, 3);
		if (w->fds[w->n_fds] < 0) {
			waiting_free(w);
			return -EMFILE;
		}
	}
	*all->queue_end = w;
	all->queue_end = &w->next;
	all->n_queue++;
	return all->wants_room ? 0 : watch(all, EPOLL_CTL_MOD, true);
}

static int send_ask(struct sessions *all, const struct wire_ask *ask,
		    const int *fds, int n)
{
	int r;

	if (all->is_lost)
		return -EPIPE;
	r = all->queue ? -EAGAIN
		       : io_send_now(all->sock, ask, sizeof(*ask), fds, n);
	return r == -EAGAIN ? enqueue(all, ask, fds, n) : r;
}

static void send_waiting(struct sessions *all)
{
	while (all->queue) {
		struct waiting *w = all->queue;
		int r = io_send_now(all->sock, &w->ask, sizeof(w->ask), w->fds,
				    w->n_fds);

		if (r == -EAGAIN)
			return;
		/* Any other error the socket's end will tell. */
		all->queue = w->next;
		if (!all->queue)
			all->queue_end = &all->queue;
		all->n_queue--;
		waiting_free(w);
	}
	(void)watch(all, EPOLL_CTL_MOD, false);
}

/* calls */

static struct session *find(struct sessions *all, uint32_t number)
{
	struct session *s = all->first;

	while (s && s->number != number)
		s = s->next;
	return s;
}

struct session *session_open(struct sessions *all,
			     const struct session_want *want,
			     const struct session_events *events, void *arg,
			     struct err *err)
{
	struct session *s = calloc(1, sizeof(*s));
	const int fds[] = { want->box, want->peer };
	struct wire_ask ask = { .type = WIRE_OPEN, .value = want->shelf };
	int r;

	if (!s) {
		(void)err_set(err, ENOMEM, "out of memory");
		return NULL;
	}
	do
		s->number = new_number(all);
	while (find(all, s->number));
	s->all = all;
	s->events = *events;
	s->arg = arg;
	ask.job = s->number;
	if (want->peer >= 0)
		ask.flags |= WIRE_ASK_PEER;
	r = send_ask(all, &ask, fds, want->peer >= 0 ? 2 : 1);
	if (r < 0) {
		(void)err_errno(err, -r, "talk to the keeper");
		free(s);
		return NULL;
	}
	s->next = all->first;
	all->first = s;
	return s;
}

int session_exec(struct session *s, const struct session_exec *exec,
		 const struct session_exec_events *events, void *arg,
		 uint32_t *ret_number, struct err *err)
{
	struct wire_ask ask = { .type = WIRE_EXEC,
				.job = s->number,
				.rows = exec->rows,
				.cols = exec->cols };
	const int fds[] = { exec->work, exec->stdio[0], exec->stdio[1],
			    exec->stdio[2] };
	struct exec *e;
	int r;

	if (s->is_closed)
		return err_set(err, ESHUTDOWN, "the box is being closed");
	e = calloc(1, sizeof(*e));
	if (!e)
		return err_set(err, ENOMEM, "out of memory");
	e->number = ask.exec = new_number(s->all);
	e->events = *events;
	e->arg = arg;
	if (exec->tty)
		ask.flags |= WIRE_ASK_TTY;
	if (exec->kill_rest)
		ask.flags |= WIRE_ASK_KILL_REST;
	if (exec->is_last)
		ask.flags |= WIRE_ASK_LAST;
	r = send_ask(s->all, &ask, fds, exec->tty ? 1 : 4);
	if (r < 0) {
		free(e);
		return err_errno(err, -r, "talk to the keeper");
	}
	for (int i = 0; i < 3 && !exec->tty; i++)
		(void)close(exec->stdio[i]);
	e->next = s->execs;
	s->execs = e;
	*ret_number = e->number;
	return 0;
}

static struct exec *find_exec(const struct session *s, uint32_t number)
{
	struct exec *e = s->execs;

	while (e && e->number != number)
		e = e->next;
	return e;
}

int session_hold(struct session *s, int work, bool is_last,
		 uint32_t *ret_number)
{
	struct wire_ask ask = { .type = WIRE_EXEC,
				.job = s->number,
				.flags = WIRE_ASK_HOLD |
					 (is_last ? WIRE_ASK_LAST : 0) };
	struct exec *e;
	int r;

	if (s->is_closed)
		return -ESHUTDOWN;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->number = ask.exec = new_number(s->all);
	r = send_ask(s->all, &ask, &work, 1);
	if (r < 0) {
		free(e);
		return r;
	}
	e->next = s->execs;
	s->execs = e;
	*ret_number = e->number;
	return 0;
}

int session_let(struct session *s, uint32_t number, const int stdio[3],
		const struct session_exec_events *events, void *arg)
{
	const struct wire_ask ask = { .type = WIRE_LET,
				      .job = s->number,
				      .exec = number };
	struct exec *e = s->is_closed ? NULL : find_exec(s, number);
	int r = e ? send_ask(s->all, &ask, stdio, 3) : -ESRCH;

	if (r < 0)
		return r;
	for (int i = 0; i < 3; i++)
		(void)close(stdio[i]);
	e->events = *events;
	e->arg = arg;
	return 0;
}

static int tell_number(struct session *s, uint32_t type, uint32_t exec,
		       uint32_t value)
{
	const struct wire_ask ask = {
		.type = type, .job = s->number, .exec = exec, .value = value
	};

	return send_ask(s->all, &ask, NULL, 0);
}

int session_signal(struct session *s, uint32_t number, int signal)
{
	if (signal < 1 || signal > 64)
		return -EINVAL;
	return tell_number(s, WIRE_SIGNAL, number, (uint32_t)signal);
}

int session_kill_exec(struct session *s, uint32_t number)
{
	return tell_number(s, WIRE_KILL, number, 0);
}

int session_freeze(struct session *s, bool is_frozen)
{
	if (!s->is_ready)
		return -EBUSY;
	if (!s->may_freeze)
		return -EOPNOTSUPP;
	return tell_number(s, WIRE_FROZEN, 0, is_frozen);
}

static int ask_question(struct session *s, uint32_t type, uint32_t exec,
			const struct question *q)
{
	struct wire_ask ask = { .type = type, .job = s->number, .exec = exec };
	struct question *copy = malloc(sizeof(*copy));
	int r;

	if (!copy)
		return -ENOMEM;
	*copy = *q;
	copy->token = ask.token = new_number(s->all);
	r = send_ask(s->all, &ask, NULL, 0);
	if (r < 0) {
		free(copy);
		return r;
	}
	copy->next = s->questions;
	s->questions = copy;
	return 0;
}

int session_ask_caught(struct session *s, uint32_t number,
		       void (*done)(void *arg, uint64_t mask), void *arg)
{
	const struct question q = { .caught = done, .arg = arg };

	return ask_question(s, WIRE_CAUGHT, number, &q);
}

int session_ask_usage(struct session *s,
		      void (*done)(void *arg, const struct session_usage *u),
		      void *arg)
{
	const struct question q = { .usage = done, .arg = arg };

	return ask_question(s, WIRE_USAGE, 0, &q);
}

static int send_socket(struct session *s, uint32_t type, int sock)
{
	const struct wire_ask ask = { .type = type, .job = s->number };
	int r = send_ask(s->all, &ask, &sock, 1);

	if (r == 0)
		(void)close(sock);
	return r;
}

int session_files(struct session *s, int sock)
{
	return send_socket(s, WIRE_FILES, sock);
}

int session_gate(struct session *s, int sock)
{
	return send_socket(s, WIRE_GATE, sock);
}

void session_close(struct session *s, bool keep)
{
	if (s->is_closed)
		return;
	s->is_closed = true;
	(void)tell_number(s, WIRE_CLOSE, 0, keep);
}

void sessions_forget(struct sessions *all, uint32_t shelf)
{
	const struct wire_ask ask = { .type = WIRE_FORGET, .value = shelf };

	(void)send_ask(all, &ask, NULL, 0);
}

int sessions_ask_swept(struct sessions *all,
		       void (*done)(void *arg, bool is_clean), void *arg)
{
	const struct wire_ask ask = { .type = WIRE_SWEPT };

	all->swept = done;
	all->swept_arg = arg;
	return send_ask(all, &ask, NULL, 0);
}

/* answers */

static void end_exec(struct session *s, struct exec *e,
		     const struct wire_outcome *o)
{
	struct exec **at = &s->execs;

	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	if (e->events.ended)
		e->events.ended(e->arg, o);
	free(e);
}

static void answer(struct session *s, struct question *q,
		   const struct wire_told *told)
{
	struct question **at = &s->questions;
	struct session_usage u = { 0 };

	while (*at != q)
		at = &(*at)->next;
	*at = q->next;
	if (q->caught) {
		q->caught(q->arg, told ? told->mask : 0);
	} else {
		if (told)
			memcpy(&u, &told->usage, sizeof(u));
		q->usage(q->arg, &u);
	}
	free(q);
}

/* The last of a session: whatever still waits is told first. */
static void end_session(struct session *s, const struct wire_outcome *o)
{
	struct wire_outcome lost = { .end = WIRE_BY_LOSS };
	struct session **at = &s->all->first;

	lost.wait_status = 9;
	s->is_closed = true;
	while (s->execs)
		end_exec(s, s->execs, &lost);
	while (s->questions)
		answer(s, s->questions, NULL);
	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	if (s->events.ended)
		s->events.ended(s->arg, o);
	free(s);
}

static void take(struct sessions *all, const struct wire_told *told, int *fds,
		 int n_fds)
{
	struct session *s = find(all, told->job);
	struct exec *e = s ? find_exec(s, told->exec) : NULL;
	struct question *q = s ? s->questions : NULL;

	if (told->type == WIRE_SWEPT && all->swept) {
		void (*done)(void *arg, bool is_clean) = take_ptr(all->swept);

		done(all->swept_arg, !(told->flags & WIRE_TOLD_LEFT));
	}
	if (!s)
		return;
	while (q && q->token != told->token)
		q = q->next;
	switch (told->type) {
	case WIRE_READY:
		s->is_ready = true;
		s->may_freeze = told->flags & WIRE_TOLD_MAY_FREEZE;
		if (s->events.ready)
			s->events.ready(s->arg);
		break;
	case WIRE_BEGUN:
		if (e && e->events.started)
			e->events.started(e->arg,
					  n_fds ? take_fd(&fds[0]) : NO_FD);
		break;
	case WIRE_DONE:
		if (e)
			end_exec(s, e, &told->outcome);
		break;
	case WIRE_CAUGHT:
	case WIRE_USAGE:
		if (q)
			answer(s, q, told);
		break;
	case WIRE_CLOSED:
		end_session(s, &told->outcome);
		break;
	default:
		break;
	}
}

bool sessions_are_lost(const struct sessions *all)
{
	return all->is_lost;
}

static void lose(struct sessions *all)
{
	const struct wire_outcome lost = { .end = WIRE_BY_LOSS };

	all->is_lost = true;
	while (all->first)
		end_session(all->first, &lost);
}

int sessions_step(struct sessions *all)
{
	for (int i = 0; i < STEP_MOST && !all->is_lost; i++) {
		struct wire_told told;
		int fds[IO_MAX_FDS];
		int n_fds = 0;
		ssize_t n;

		if (all->queue)
			send_waiting(all);
		n = io_recv(all->sock, &told, sizeof(told), MSG_DONTWAIT, fds,
			    &n_fds);
		if (n == -EAGAIN)
			return 0;
		if (n == sizeof(told))
			take(all, &told, fds, n_fds);
		for (int k = 0; k < n_fds; k++)
			fd_close(&fds[k]);
		if (n != sizeof(told))
			lose(all);
	}
	return all->is_lost ? -EPIPE : 0;
}

void sessions_free(struct sessions *all)
{
	struct session *next;

	if (!all)
		return;
	for (struct session *s = all->first; s; s = next) {
		next = s->next;
		while (s->execs) {
			struct exec *e = s->execs;

			s->execs = e->next;
			free(e);
		}
		while (s->questions) {
			struct question *q = s->questions;

			s->questions = q->next;
			free(q);
		}
		free(s);
	}
	while (all->queue) {
		struct waiting *w = all->queue;

		all->queue = w->next;
		waiting_free(w);
	}
	fd_close(&all->epoll);
	fd_close(&all->sock);
	free(all);
}
