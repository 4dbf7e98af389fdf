/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The mounts of the one box that there is, taken down beside us.
 *
 * When init dies its mounts go with its namespace, and the kernel waits for
 * processors in between: most of the time of its death, for which everything
 * else has to wait, the removal of its groups above all. So while the program
 * runs and nobody needs us, a child is made that holds the namespace. It waits
 * for init's death, lets go, and ends: mounts are taken down there, groups
 * here. The end of a run is told when both are gone (keeper_close).
 *
 * It shares our memory and descriptors and must leave the library alone
 * (os/clone.h). It ends with us, and with init, whatever happens: with any
 * answer to its one question it lets go. A keeper that serves many has better
 * things to do while a program runs, and tells an end before this.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "keeper/keeper.h"
#include "os/clone.h"

/* What the child works with; it has no other memory of its own. */
static struct {
	pid_t keeper;
	int mounts; /* the namespace; both are the child's to close */
	struct pollfd death;
	char stack[4096] __attribute__((aligned(64)));
} child = { .mounts = NO_FD, .death.fd = NO_FD };

static void await(void *unused)
{
	(void)unused;
	(void)clone_call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (clone_call(SYS_getppid, 0, 0, 0, 0, 0) == child.keeper)
		(void)clone_call(SYS_ppoll, (long)&child.death, 1, 0, 0, 0);
	(void)clone_call(SYS_close, child.mounts, 0, 0, 0, 0);
	(void)clone_call(SYS_close, child.death.fd, 0, 0, 0, 0);
	for (;;)
		(void)clone_call(SYS_exit_group, 0, 0, 0, 0, 0);
}

void remains_watch(struct keeper *k, const struct box *b)
{
	struct uapi_clone_args args = { .flags = UAPI_CLONE_FILES,
					.exit_signal = SIGCHLD };
	cpu_set_t others;
	char path[32];

	if (k->is_reused || !k->has_cpus || k->remains > 0)
		return;
	(void)snprintf(path, sizeof(path), "%d/ns/mnt", (int)b->pid);
	child.keeper = getpid();
	child.mounts = openat(k->world.proc, path, O_RDONLY | O_CLOEXEC);
	child.death.fd = fcntl(b->pidfd, F_DUPFD_CLOEXEC, KEEPER_FIRST_FD);
	child.death.events = POLLIN;
	if (child.mounts >= 0 && child.death.fd >= 0)
		k->remains = clone_beside(&args, await, NULL, child.stack,
					  sizeof(child.stack));
	if (k->remains > 0) {
		/* Where init dies, and not in our way when we are woken too. */
		if (net_other_cpus(&others))
			(void)sched_setaffinity(k->remains, sizeof(others),
						&others);
		return;
	}
	fd_close(&child.mounts);
	fd_close(&child.death.fd);
}

void remains_done(struct keeper *k)
{
	if (k->remains > 0)
		(void)waitpid(k->remains, NULL, 0);
	k->remains = 0;
}
