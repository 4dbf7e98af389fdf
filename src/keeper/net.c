/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The first network namespace, made ahead.
 *
 * Making one takes the kernel longer than all the others together. So as root
 * a child makes the first while the keeper gets ready; it says so and stays
 * until the keeper has opened it. The keeper enters the namespace for the
 * moment of a clone, and the box is born in it; it belongs to the keeper's
 * user namespace, and the box has no right in it. Later boxes of a keeper are
 * made while another one runs and get theirs from the clone; so does an
 * ordinary user's, whose keeper could not come back to the host's.
 */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "keeper/keeper.h"

static void make(int sock) __attribute__((noreturn));
static void make(int sock)
{
	char c = 1;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (unshare(CLONE_NEWNET) < 0 || write(sock, &c, 1) != 1)
		_exit(1); /* the clone will try, and say what is wrong */
	/* The end of the socket: opened, or the keeper is gone. */
	(void)!read(sock, &c, 1);
	_exit(0);
}

void net_ahead(struct keeper *k)
{
	int pair[2];

	k->net.own = NO_FD;
	if (!k->world.is_root ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return;
	k->net.pid = fork();
	if (k->net.pid == 0) {
		(void)close(pair[0]);
		make(pair[1]);
	}
	(void)close(pair[1]);
	k->net.sock = pair[0];
}

int net_enter(struct keeper *k)
{
	_cleanup_fd_ int fd = NO_FD;
	char path[64];
	char c;

	if (k->net.pid <= 0 || k->net.is_used)
		return -ENOENT;
	k->net.is_used = true;
	(void)snprintf(path, sizeof(path), "%d/ns/net", (int)k->net.pid);
	if (read(k->net.sock, &c, 1) == 1)
		fd = openat(k->world.proc, path, O_RDONLY | O_CLOEXEC);
	k->net.own = openat(k->world.proc, "self/ns/net", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || k->net.own < 0 || setns(fd, CLONE_NEWNET) < 0)
		fd_close(&k->net.own);
	return k->net.own < 0 ? -ENOENT : 0;
}

int net_leave(struct keeper *k)
{
	int r = setns(k->net.own, CLONE_NEWNET) < 0 ? -errno : 0;

	fd_close(&k->net.own);
	return r;
}

void net_done(struct keeper *k)
{
	if (k->net.pid <= 0)
		return;
	(void)close(k->net.sock);
	(void)kill(k->net.pid, SIGKILL);
	(void)waitpid(k->net.pid, NULL, 0);
	k->net.pid = 0;
}
