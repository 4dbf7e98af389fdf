/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The gates of boxes. A preparer wants one, with two sockets of its own making;
 * the parent starts it, since a preparer ends with its answer, and so that a
 * gate of root's is no user whom anybody else could be. What is said over these
 * sockets the parent never sees: not the table, nor a secret in it.
 *
 * A gate ends by itself when the front's end of its socket is closed. One that
 * does not is killed when the front says that its box is gone; all are when the
 * front is.
 */

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/util.h"
#include "box/egress.h"
#include "os/uapi.h"
#include "serve/daemon.h"

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

static void reap(struct gate_child *g, int flags)
{
	if (waitpid(g->pid, NULL, flags) == 0)
		return;
	fd_close(&g->pidfd);
	*g = (struct gate_child){ .pidfd = NO_FD };
}

static int watch(struct daemon *d, const struct gate_child *g)
{
	struct epoll_event ev = { .events = EPOLLIN };

	if (d->gate_ends < 0)
		d->gate_ends = epoll_create1(EPOLL_CLOEXEC);
	return d->gate_ends < 0 || epoll_ctl(d->gate_ends, EPOLL_CTL_ADD,
					     g->pidfd, &ev) < 0
		       ? -errno
		       : 0;
}

static int start(struct daemon *d, const struct errand *e, const int *fds,
		 int n, struct err *err)
{
	struct gate_child *g = find_place(d, e->uid);
	int r;

	if (n != 2)
		return err_set(err, EPROTO, "a gate has two sockets");
	if (!g || d->is_stopping)
		return err_set(err, EAGAIN, "busy: too many boxes have a gate");
	*g = (struct gate_child){ .pidfd = NO_FD,
				  .uid = e->uid,
				  .number = e->number };
	r = egress_spawn(fds[0], fds[1], &g->pid, &g->pidfd, err);
	if (r == 0 && watch(d, g) < 0)
		r = err_errno(err, errno, "watch a gate");
	if (r < 0 && g->pid > 0) {
		(void)sys_pidfd_kill(g->pidfd, SIGKILL);
		reap(g, 0);
	}
	return r;
}

void gate_start(struct daemon *d, struct errand *e, const int *fds, int n)
{
	struct ask_end end = { 0 };

	(void)start(d, e, fds, n, &end.err);
	(void)io_send_now(e->sock, &end, sizeof(end), NULL, 0);
}

void gate_end(struct daemon *d, uint32_t number)
{
	for (int i = 0; i < MAX_GATES; i++)
		if (d->gates[i].pid > 0 && d->gates[i].number == number)
			(void)sys_pidfd_kill(d->gates[i].pidfd, SIGKILL);
}

void gates_reap(struct daemon *d)
{
	for (int i = 0; i < MAX_GATES; i++)
		if (d->gates[i].pid > 0)
			reap(&d->gates[i], WNOHANG);
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
			reap(&d->gates[i], 0);
}
