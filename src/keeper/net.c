/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The first network namespace, made ahead.
 *
 * Making one takes the kernel longer than all the others together. So as root
 * a child makes the first, on another CPU, while the keeper gets ready; it
 * says so and stays until the keeper has opened it. The keeper enters the
 * namespace for the moment of a clone, and the box is born in it; it belongs
 * to the keeper's user namespace, and the box has no right in it. Later boxes
 * of a keeper are made while another one runs and get theirs from the clone;
 * so does an ordinary user's, whose keeper could not come back to the host's.
 *
 * The child shares the keeper's memory, which is cheaper than a copy, and
 * must leave the library alone (os/clone.h). Who comes first, the child to
 * begin or the keeper to need it, decides who makes the namespace: on a busy
 * machine nobody waits for a child that has not even begun.
 */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "keeper/keeper.h"
#include "os/clone.h"

/* What the child works with; it has no other memory of its own. */
static struct {
	int sock;
	int keepers; /* end of the socket, to be closed in the child */
	atomic_bool is_taken;
	char stack[8192] __attribute__((aligned(64)));
} child;

static void make(void *unused)
{
	char c = 1;

	(void)unused;
	(void)clone_call(SYS_close, child.keepers, 0, 0);
	(void)clone_call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0);
	/* Where it fails the clone will try, and say what is wrong. */
	if (!atomic_exchange(&child.is_taken, true) &&
	    clone_call(SYS_unshare, CLONE_NEWNET, 0, 0) == 0 &&
	    clone_call(SYS_write, child.sock, (long)&c, 1) == 1)
		/* The end of the socket: opened, or the keeper is gone. */
		(void)clone_call(SYS_read, child.sock, (long)&c, 1);
	for (;;)
		(void)clone_call(SYS_exit_group, 0, 0, 0);
}

/* A new process stays for long on its parent's CPU unless it is sent away. */
static bool other_cpus(cpu_set_t *ret)
{
	int here = sched_getcpu();

	if (here < 0 || sched_getaffinity(0, sizeof(*ret), ret) < 0)
		return false;
	CPU_CLR(here, ret);
	return CPU_COUNT(ret) > 0;
}

void net_ahead(struct keeper *k)
{
	struct uapi_clone_args args = { .exit_signal = SIGCHLD };
	cpu_set_t others;
	int pair[2];

	if (k->net.pid || geteuid() != 0 || !other_cpus(&others) ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return;
	child.keepers = pair[0];
	child.sock = pair[1];
	k->net.pid = clone_beside(&args, make, NULL, child.stack,
				  sizeof(child.stack));
	if (k->net.pid > 0)
		(void)sched_setaffinity(k->net.pid, sizeof(others), &others);
	(void)close(pair[1]);
	k->net.sock = pair[0];
}

int net_enter(struct keeper *k)
{
	_cleanup_fd_ int fd = NO_FD;
	char path[64];
	char c;

	if (k->net.pid <= 0 || k->net.is_used || !k->world.is_root)
		return -ENOENT;
	k->net.is_used = true;
	if (!atomic_exchange(&child.is_taken, true))
		return -ENOENT;
	(void)snprintf(path, sizeof(path), "%d/ns/net", (int)k->net.pid);
	if (read(k->net.sock, &c, 1) == 1)
		fd = openat(k->world.proc, path, O_RDONLY | O_CLOEXEC);
	/* It may go now; with it no unmapping has to reach another CPU. */
	fd_close(&k->net.sock);
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
	fd_close(&k->net.sock);
	(void)waitpid(k->net.pid, NULL, 0);
	k->net.pid = 0;
}
