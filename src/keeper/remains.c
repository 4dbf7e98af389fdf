/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is left of the one box that there is, taken down beside us.
 *
 * When init dies its mounts go with its namespace, and the kernel waits for
 * processors in between: most of the time of its death, for which everything
 * else has to wait, the removal of its groups above all. So while the program
 * runs and nobody needs us, a child is made that holds the namespace. It waits
 * for init's death, lets go of the mounts, and ends; meanwhile the end of the
 * run is recorded here, and then the groups are removed. Whoever is ready first
 * begins with those, and the other helps: each takes the next that nobody has.
 * Both leave them alone until the last figure was read (remains_offer). The run
 * is over when all is gone (keeper_close).
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
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "keeper/keeper.h"
#include "os/clone.h"

/* How often each looks what the other does; a look is a short call. */
#define LOOKS 1000

/* What the child works with; it has no other memory of its own. */
static struct {
	pid_t keeper;
	int mounts; /* the namespace; both are the child's to close */
	struct pollfd death;
	atomic_bool is_offered;
	char name[sizeof(((struct cg_box *)0)->name)]; /* of all groups ... */
	int parents[CG_ROLES]; /* ... in these directories */
	int n;
	atomic_int n_taken;
	atomic_int n_removed;
	atomic_bool is_over;
	char stack[4096] __attribute__((aligned(64)));
} child = { .mounts = NO_FD, .death.fd = NO_FD };

static bool unlink_group(int i)
{
	long r = clone_call(SYS_unlinkat, child.parents[i], (long)child.name,
			    AT_REMOVEDIR, 0, 0);

	return r == 0 || r == -ENOENT;
}

static bool are_removed(void)
{
	return atomic_load(&child.n_removed) == child.n;
}

/* Those that nobody else has taken, by one of two who run beside each other. */
static void remove_groups(void)
{
	int i;

	while ((i = atomic_fetch_add(&child.n_taken, 1)) < child.n)
		if (unlink_group(i))
			(void)atomic_fetch_add(&child.n_removed, 1);
}

static void look_until(const atomic_bool *is_so)
{
	for (int i = 0; i < LOOKS && !atomic_load(is_so); i++)
		(void)clone_call(SYS_sched_yield, 0, 0, 0, 0, 0);
}

static void await(void *unused)
{
	(void)unused;
	(void)clone_call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (clone_call(SYS_getppid, 0, 0, 0, 0, 0) == child.keeper)
		(void)clone_call(SYS_ppoll, (long)&child.death, 1, 0, 0, 0);
	(void)clone_call(SYS_close, child.mounts, 0, 0, 0, 0);
	(void)clone_call(SYS_close, child.death.fd, 0, 0, 0, 0);
	/* The keeper, on another CPU, may still have to read from them. */
	look_until(&child.is_offered);
	if (atomic_load(&child.is_offered))
		remove_groups();
	atomic_store(&child.is_over, true);
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
	child.is_offered = false;
	child.n_taken = 0;
	child.n_removed = 0;
	child.is_over = false;
	child.keeper = getpid();
	child.mounts = openat(k->world.proc, path, O_RDONLY | O_CLOEXEC);
	child.death.fd = fcntl(b->pidfd, F_DUPFD_CLOEXEC, KEEPER_FIRST_FD);
	child.death.events = POLLIN;
	if (child.mounts >= 0 && child.death.fd >= 0)
		k->remains = clone_beside(&args, await, NULL, child.stack,
					  sizeof(child.stack));
	if (k->remains > 0) {
		/* Where init dies, and not in our way when we are woken too. */
		if (cpus_other(k, &others))
			(void)sched_setaffinity(k->remains, sizeof(others),
						&others);
		return;
	}
	fd_close(&child.mounts);
	fd_close(&child.death.fd);
}

void remains_offer(const struct keeper *k, const struct box *b)
{
	if (k->remains <= 0)
		return;
	memcpy(child.name, b->cg.name, sizeof(child.name));
	child.n = cg_box_parents(&k->cg, &b->cg, child.parents);
	atomic_store(&child.is_offered, true);
}

bool remains_take(const struct keeper *k, struct box *b)
{
	if (!atomic_load(&child.is_offered) ||
	    strcmp(child.name, b->cg.name) != 0)
		return false;
	cg_box_close(&k->cg, &b->cg);
	return true;
}

/* What could not be removed a moment ago perhaps can be by now. */
bool remains_settle(void)
{
	bool ret = true;

	if (!atomic_load(&child.is_offered))
		return true;
	remove_groups();
	for (int i = 0; i < LOOKS && !are_removed(); i++)
		(void)sched_yield();
	if (are_removed())
		return true;
	for (int i = 0; i < child.n; i++)
		ret = unlink_group(i) && ret;
	return ret;
}

/* It is soon done, and to sleep until then would take longer. */
void remains_done(struct keeper *k)
{
	if (k->remains <= 0)
		return;
	look_until(&child.is_over);
	(void)waitpid(k->remains, NULL, 0);
	k->remains = 0;
}
