/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Network namespaces: the first is made ahead, the others are used again.
 *
 * Making one takes the kernel longer than all the others together. So as root
 * a child makes the first, on another CPU, while the keeper gets ready, opens
 * it and ends. The keeper enters the namespace for the moment of a clone, and
 * the box is born in it; it belongs to the keeper's user namespace, and the
 * box has no right in it. An ordinary user's comes from the clone, as its
 * keeper could not come back to the host's.
 *
 * A box without a network can make no socket but a pair of unnamed ones, and
 * has no right in its namespace or has given it up. So when all its processes
 * are dead the namespace is as new, and the next box of this keeper gets it. A
 * socket that is left (on its way in another one, until the kernel collects
 * both) is seen, and then the namespace goes.
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
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"
#include "keeper/keeper.h"
#include "os/clone.h"

#define PATIENCE_US 1000
#define KEPT        8

/* What the child works with; it has no other memory of its own. */
static struct {
	atomic_bool is_taken;
	atomic_bool is_done;
	int new;
	bool is_used;
	atomic_bool has_looked;
	uint64_t ignored; /* signals */
	char stack[8192] __attribute__((aligned(64)));
} child;

static int own = NO_FD; /* the keeper's namespace, to come back to */

/* Of boxes that have ended. */
static struct {
	int fds[KEPT];
	int n;
} kept;

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
bool net_other_cpus(cpu_set_t *ret)
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

	child.new = NO_FD;
	k->has_cpus = net_other_cpus(&others);
	if (geteuid() != 0 || !k->has_cpus)
		return;
	k->net = clone_beside(&args, make, NULL, child.stack,
			      sizeof(child.stack));
	if (k->net <= 0)
		return;
	(void)sched_setaffinity(k->net, sizeof(others), &others);
	own = open_own();
}

void net_done(struct keeper *k)
{
	if (k->net <= 0)
		return;
	atomic_store(&child.is_taken, true);
	(void)waitpid(k->net, NULL, 0);
	k->net = 0;
	fd_close(&child.new);
}

void net_close(struct keeper *k)
{
	net_done(k);
	while (kept.n > 0)
		fd_close(&kept.fds[--kept.n]);
	fd_close(&own);
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

/* Whether there is no socket in the one that we are in: only the heading. */
static bool is_empty(const struct keeper *k)
{
	_cleanup_fd_ int fd = openat(k->world.proc, "thread-self/net/unix",
				     O_RDONLY | O_CLOEXEC);
	char text[256];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));
	const char *end = n <= 0 ? NULL : memchr(text, '\n', (size_t)n);

	return end && end + 1 == text + n && read(fd, text, 1) == 0;
}

static int enter_kept(struct keeper *k, struct box *b)
{
	bool is_away = false;

	while (kept.n > 0) {
		int fd = kept.fds[--kept.n];

		if (setns(fd, CLONE_NEWNET) == 0) {
			is_away = true;
			if (is_empty(k)) {
				b->net = fd;
				return 0;
			}
		}
		(void)close(fd);
	}
	if (is_away && setns(own, CLONE_NEWNET) < 0)
		k->is_over = true;
	return -ENOENT;
}

static int enter_first(struct keeper *k, struct box *b)
{
	if (k->net <= 0 || !k->world.is_root || child.is_used ||
	    !atomic_exchange(&child.is_taken, true))
		return -ENOENT;
	child.is_used = true;
	await_child(k);
	if (own < 0 || child.new < 0 || setns(child.new, CLONE_NEWNET) < 0)
		return -ENOENT;
	b->net = take_fd(&child.new);
	return 0;
}

int net_enter(struct keeper *k, struct box *b)
{
	return enter_kept(k, b) == 0 ? 0 : enter_first(k, b);
}

int net_leave(void)
{
	return setns(own, CLONE_NEWNET) < 0 ? -errno : 0;
}

void net_hold(const struct keeper *k, struct box *b)
{
	char path[32];

	if (!k->is_reused || !k->world.is_root)
		return;
	if (own < 0)
		own = open_own();
	(void)snprintf(path, sizeof(path), "%d/ns/net", (int)b->pid);
	if (own >= 0)
		b->net = openat(k->world.proc, path, O_RDONLY | O_CLOEXEC);
}

void net_keep(const struct keeper *k, struct box *b)
{
	uint32_t flags = b->spec ? b->spec->blob.flags : 0;

	if (b->net >= 0 && k->is_reused && kept.n < KEPT &&
	    !(flags & (WIRE_EGRESS | WIRE_WITNESS)))
		kept.fds[kept.n++] = take_fd(&b->net);
	fd_close(&b->net);
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
