/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The gates of boxes. A preparer wants one, with two sockets of its own making;
 * the parent starts it, since a preparer ends with its answer, and so that a
 * gate of root's is no user whom anybody else could be. What is said over these
 * sockets the parent never sees: not the table, nor a secret in it. A gate with
 * rules that ask has a third one, of the parent's making (gate-ask.h).
 *
 * A gate ends by itself when the front's end of its socket is closed. One that
 * does not is killed when the front says that its box is gone; all are when the
 * front is.
 */

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "box/egress.h"
#include "os/uapi.h"
#include "serve/daemon.h"
#include "serve/gate-ask.h"

/* A place for one more of this user, or NULL. */
static struct gate_child *find_place(struct daemon *d, uid_t uid)
{
	struct gate_child *place = NULL;
	int of_user = 0;

	for (int i = 0; i < MAX_GATES; i++) {
		struct gate_child *g = &d->gates[i];

		if (g->pid == 0)
			place = g;
		else
			of_user += g->uid == uid;
	}
	return of_user < GATES_PEER ? place : NULL;
}

/* ---- what is watched: its end, and what it asks ---- */

enum { EVENT_END, EVENT_ASK, EVENTS };

static int watch(struct daemon *d, const struct gate_child *g, int fd, int what)
{
	struct epoll_event ev = {
		.events = EPOLLIN,
		.data.u32 = (uint32_t)((g - d->gates) * EVENTS + what)
	};

	if (d->gate_events < 0)
		d->gate_events = epoll_create1(EPOLL_CLOEXEC);
	return d->gate_events < 0 || epoll_ctl(d->gate_events, EPOLL_CTL_ADD,
					       fd, &ev) < 0
		       ? -errno
		       : 0;
}

/* Closing is not enough while a child that was just forked has it too. */
static void unwatch(struct daemon *d, int *fd)
{
	if (*fd >= 0)
		(void)epoll_ctl(d->gate_events, EPOLL_CTL_DEL, *fd, NULL);
	fd_close(fd);
}

static void reap(struct daemon *d, struct gate_child *g, int flags)
{
	if (waitpid(g->pid, NULL, flags) == 0)
		return;
	gate_ask_drop(d, g);
	unwatch(d, &g->pidfd);
	unwatch(d, &g->sock);
	*g = (struct gate_child){ .pidfd = NO_FD, .sock = NO_FD };
}

/* ---- starting ---- */

static void take_texts(struct gate_child *g, const struct gate_want *want)
{
	memcpy(g->run, want->run, sizeof(g->run) - 1);
	memcpy(g->box, want->box, sizeof(g->box) - 1);
	memcpy(g->face, want->face, sizeof(g->face) - 1);
	memcpy(g->policy, want->policy, sizeof(g->policy) - 1);
}

/* The socket on which it asks: one end is ours alone, the other the gate's. */
static int make_desk(struct gate_child *g, int *ret_theirs, struct err *err)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(err, errno, "make a socket for the gate");
	g->sock = pair[0];
	*ret_theirs = pair[1];
	return 0;
}

static int spawn(struct daemon *d, struct gate_child *g, bool asks,
		 const int *fds, struct err *err)
{
	_cleanup_fd_ int desk = NO_FD;

	if (asks && make_desk(g, &desk, err) < 0)
		return -err->code;
	if (egress_spawn(fds[0], fds[1], desk, &g->pid, &g->pidfd, err) < 0)
		return -err->code;
	if (watch(d, g, g->pidfd, EVENT_END) < 0 ||
	    (asks && watch(d, g, g->sock, EVENT_ASK) < 0))
		return err_errno(err, errno, "watch a gate");
	return 0;
}

static int start(struct daemon *d, const struct errand *e,
		 const struct gate_want *want, const int *fds, int n,
		 struct err *err)
{
	struct gate_child *g = find_place(d, e->uid);
	int r;

	if (n != 2)
		return err_set(err, EPROTO, "a gate has two sockets");
	if (!g || d->is_stopping)
		return err_set(err, EAGAIN, "busy: too many boxes have a gate");
	*g = (struct gate_child){ .pidfd = NO_FD,
				  .uid = e->uid,
				  .number = e->number,
				  .sock = NO_FD };
	take_texts(g, want);
	r = spawn(d, g, want->asks, fds, err);
	if (r < 0 && g->pid > 0) {
		(void)sys_pidfd_kill(g->pidfd, SIGKILL);
		reap(d, g, 0);
	} else if (r < 0) {
		fd_close(&g->sock);
	}
	return r;
}

void gate_start(struct daemon *d, struct errand *e,
		const struct gate_want *want, const int *fds, int n)
{
	struct ask_end end = { 0 };

	(void)start(d, e, want, fds, n, &end.err);
	(void)io_send_now(e->sock, &end, sizeof(end), NULL, 0);
}

/* ---- its life ---- */

void gate_end(struct daemon *d, uint32_t number)
{
	for (int i = 0; i < MAX_GATES; i++)
		if (d->gates[i].pid > 0 && d->gates[i].number == number)
			(void)sys_pidfd_kill(d->gates[i].pidfd, SIGKILL);
}

/* What it asks next; without a word more it is not listened to. */
static void hear(struct daemon *d, struct gate_child *g)
{
	int r = g->sock < 0 ? -EAGAIN : gate_ask_hear(d, g);

	if (r == 0 || r == -EAGAIN)
		return;
	if (r == -EPROTO)
		(void)sys_pidfd_kill(g->pidfd, SIGKILL);
	gate_ask_drop(d, g);
	unwatch(d, &g->sock);
}

void gates_look(struct daemon *d)
{
	struct epoll_event ev[32];
	int n = epoll_wait(d->gate_events, ev, ARRAY_SIZE(ev), 0);

	for (int i = 0; i < n; i++) {
		struct gate_child *g = &d->gates[ev[i].data.u32 / EVENTS];

		if (g->pid == 0)
			continue;
		if (ev[i].data.u32 % EVENTS == EVENT_ASK)
			hear(d, g);
		else
			reap(d, g, WNOHANG);
	}
}

bool gates_have(const struct daemon *d, pid_t pid)
{
	for (int i = 0; i < MAX_GATES; i++)
		if (d->gates[i].pid == pid)
			return true;
	return false;
}

void gates_kill(struct daemon *d)
{
	for (int i = 0; i < MAX_GATES; i++)
		if (d->gates[i].pid > 0)
			(void)sys_pidfd_kill(d->gates[i].pidfd, SIGKILL);
	for (int i = 0; i < MAX_GATES; i++)
		if (d->gates[i].pid > 0)
			reap(d, &d->gates[i], 0);
}
