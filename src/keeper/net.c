/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The first network namespace, made ahead.
 *
 * Making one takes the kernel longer than all the others together. So as root
 * a child makes the first, on another CPU, while the keeper gets ready, opens
 * it and ends. The keeper enters the namespace for the moment of a clone, and
 * the box is born in it; it belongs to the keeper's user namespace, and the
 * box has no right in it. Later boxes of a keeper are made while another one
 * runs and get theirs from the clone; so does an ordinary user's, whose keeper
 * could not come back to the host's.
 *
 * The child shares the keeper's memory and descriptors, which is cheaper than
 * a copy, and must leave the library alone (os/clone.h). Who comes first, the
 * child to begin or the keeper to need it, decides who makes the namespace: on
 * a busy machine nobody waits for a child that has not even begun.
 *
 * It also looks which signals are ignored: that takes a call for each.
 */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"
#include "keeper/keeper.h"
#include "os/clone.h"

#define PATIENCE_US 1000

/* What the child works with; it has no other memory of its own. */
static struct {
	atomic_bool is_taken;
	atomic_bool is_done;
	int own; /* the keeper's namespace, to come back to */
	int new;
	bool is_used;
	atomic_bool has_looked;
	uint64_t ignored; /* signals */
	char stack[8192] __attribute__((aligned(64)));
} child;

static int open_own(void)
{
	static const char path[] = "/proc/thread-self/ns/net";

	return (int)clone_call(SYS_openat, AT_FDCWD, (long)path,
			       O_RDONLY | O_CLOEXEC, 0, 0);
}

/* What a child of the keeper ignores. */
static uint64_t find_ignored(void)
{
	struct uapi_sigaction now = { 0 };
	uint64_t ret = 0;

	for (int sig = 1; sig <= UAPI_NSIG; sig++)
		if (clone_call(SYS_rt_sigaction, sig, 0, (long)&now, 8, 0) ==
			    0 &&
		    now.handler == UAPI_SIG_IGN)
			ret |= 1ULL << (sig - 1);
	return ret;
}

static void make(void *unused)
{
	(void)unused;
	(void)clone_call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	/* Where it fails the clone will try, and say what is wrong. */
	if (!atomic_exchange(&child.is_taken, true)) {
		if (clone_call(SYS_unshare, CLONE_NEWNET, 0, 0, 0, 0) == 0)
			child.new = open_own();
		atomic_store(&child.is_done, true);
		child.ignored = find_ignored();
		atomic_store(&child.has_looked, true);
	}
	for (;;)
		(void)clone_call(SYS_exit_group, 0, 0, 0, 0, 0);
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
	struct uapi_clone_args args = { .flags = UAPI_CLONE_FILES,
					.exit_signal = SIGCHLD };
	cpu_set_t others;

	child.own = child.new = NO_FD;
	k->has_cpus = other_cpus(&others);
	if (geteuid() != 0 || !k->has_cpus)
		return;
	k->net = clone_beside(&args, make, NULL, child.stack,
			      sizeof(child.stack));
	if (k->net <= 0)
		return;
	(void)sched_setaffinity(k->net, sizeof(others), &others);
	child.own = open_own();
}

void net_done(struct keeper *k)
{
	if (k->net <= 0)
		return;
	atomic_store(&child.is_taken, true);
	(void)waitpid(k->net, NULL, 0);
	k->net = 0;
	fd_close(&child.own);
	fd_close(&child.new);
}

/*
 * It is on another CPU and soon done; to sleep until then would take longer
 * than the rest of its work.
 */
static void await_child(struct keeper *k)
{
	int64_t end = clock_us() + PATIENCE_US;

	while (!atomic_load(&child.is_done) && clock_us() < end)
		;
	if (!atomic_load(&child.is_done)) {
		(void)waitpid(k->net, NULL, 0);
		k->net = 0;
	}
}

int net_enter(struct keeper *k)
{
	if (k->net <= 0 || !k->world.is_root || child.is_used ||
	    !atomic_exchange(&child.is_taken, true))
		return -ENOENT;
	child.is_used = true;
	await_child(k);
	if (child.own < 0 || child.new < 0 ||
	    setns(child.new, CLONE_NEWNET) < 0)
		return -ENOENT;
	fd_close(&child.new);
	return 0;
}

int net_leave(void)
{
	int r = setns(child.own, CLONE_NEWNET) < 0 ? -errno : 0;

	fd_close(&child.own);
	return r;
}

uint64_t net_ignored(void)
{
	static bool is_known;
	static uint64_t ignored;

	if (!is_known)
		ignored = atomic_load(&child.has_looked) ? child.ignored
							 : find_ignored();
	is_known = true;
	return ignored;
}
