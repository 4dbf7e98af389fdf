/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Root's first box is born by a child of the keeper on another CPU.
 *
 * What takes the kernel longest of all is a network namespace, and next to it
 * the clone with all the others. So a child begins with that while the keeper
 * gets ready: it makes the namespace, waits for what it is to bear, takes the
 * box's uid, clones init (as a child of the keeper, not its own), maps its
 * ids, tells it to begin, and ends. The keeper goes on meanwhile and looks
 * before its first step what became of it (midwife_await).
 *
 * The namespace belongs to the keeper's user namespace, and the box has no
 * right in it. Where a way out is to be expected, which needs one, it comes
 * from the clone instead.
 *
 * The child shares the keeper's memory and descriptors, which is cheaper than
 * a copy, and must leave the library alone (os/clone.h). Who comes first, the
 * child to begin or the keeper to need it, decides who does the work: on a
 * busy machine nobody waits for a child that has not even begun. An ordinary
 * user has none: its keeper is not yet in its own user namespace by then.
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

/* linux/securebits.h clashes with the headers of musl */
#define SECBIT_NO_SETUID_FIXUP 4

#define PATIENCE_US 1000
#define LOOKS       2000 /* before the child sleeps; each is a short call */

#define SLEEP_S 1 /* and then ends: nobody seems to need a box */

enum order { ORDER_NONE, ORDER_BEAR, ORDER_END };

/* What the child works with; it has no other memory of its own. */
static struct {
	atomic_bool is_taken;
	atomic_int order;
	atomic_bool is_done;
	atomic_bool has_looked;
	bool makes_net;
	const cpu_set_t *cpus; /* that the keeper may use */
	uint64_t ignored;
	struct birth *birth;
	char stack[8192] __attribute__((aligned(64)));
} child;

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

/* The first to give one decides; false: there is one already. */
static bool give_order(int order)
{
	int none = ORDER_NONE;

	if (!atomic_compare_exchange_strong(&child.order, &none, order))
		return false;
	(void)clone_call(SYS_futex, (long)&child.order, UAPI_FUTEX_WAKE, 1, 0,
			 0);
	return true;
}

/* The keeper is busy on another CPU and soon here. */
static bool is_to_bear(void)
{
	const struct timespec rest = { .tv_sec = SLEEP_S };

	for (int i = 0; i < LOOKS && atomic_load(&child.order) == ORDER_NONE;
	     i++)
		(void)clone_call(SYS_sched_yield, 0, 0, 0, 0, 0);
	if (atomic_load(&child.order) == ORDER_NONE)
		(void)clone_call(SYS_futex, (long)&child.order, UAPI_FUTEX_WAIT,
				 ORDER_NONE, (long)&rest, 0);
	(void)give_order(ORDER_END);
	return atomic_load(&child.order) == ORDER_BEAR;
}

/* As the keeper has it by now; see spawn.c, wear(). */
static long take_uid(uint32_t uid)
{
	long r = clone_call(SYS_prctl, PR_SET_SECUREBITS,
			    SECBIT_NO_SETUID_FIXUP, 0, 0, 0);

	if (r == 0)
		r = clone_call(SYS_setgroups, 0, 0, 0, 0, 0);
	if (r == 0)
		r = clone_call(SYS_setresgid, uid, uid, uid, 0, 0);
	return r ? r : clone_call(SYS_setresuid, uid, uid, uid, 0, 0);
}

/* PID/NAME, into `ret`, which has room. */
static void name_file(char *ret, pid_t pid, const char *name)
{
	char digits[16];
	size_t n = 0;

	for (unsigned int left = (unsigned int)pid; left; left /= 10)
		digits[n++] = (char)('0' + left % 10);
	while (n > 0)
		*ret++ = digits[--n];
	*ret++ = '/';
	while ((*ret++ = *name++))
		;
}

static long write_file(const struct birth *b, const char *name,
		       const char *text)
{
	char path[48];
	long n = 0;
	long fd;
	long r;

	name_file(path, b->pid, name);
	fd = clone_call(SYS_openat, b->proc, (long)path, O_WRONLY | O_CLOEXEC,
			0, 0);
	if (fd < 0)
		return fd;
	while (text[n])
		n++;
	r = clone_call(SYS_write, fd, (long)text, n, 0, 0);
	(void)clone_call(SYS_close, fd, 0, 0, 0, 0);
	return r < 0 ? r : 0;
}

static long map_ids(struct birth *b)
{
	long r = 0;

	b->what = "map the box's ids";
	if (b->denies_groups)
		r = write_file(b, "setgroups", "deny");
	if (r == 0)
		r = write_file(b, "uid_map", b->uid_map);
	return r ? r : write_file(b, "gid_map", b->gid_map);
}

/*
 * The kernel says who it is before it runs: we may be killed before we could.
 * It runs where we do, and may leave from there; where it may not it is no
 * worse off than a box that the keeper bears.
 */
static long clone_init(struct birth *b)
{
	pid_t pid;

	b->what = "make namespaces for a box";
	b->args.flags |= UAPI_CLONE_PARENT | UAPI_CLONE_PARENT_SETTID;
	b->args.parent_tid = (uint64_t)(uintptr_t)&b->pid;
	b->args.exit_signal = 0; /* ours */
	pid = clone_beside(&b->args, b->run, NULL, b->stack, b->stack_size);
	if (pid < 0)
		return pid;
	(void)clone_call(SYS_sched_setaffinity, pid, sizeof(*child.cpus),
			 (long)child.cpus, 0, 0);
	return 0;
}

static long bear(struct birth *b, bool has_net)
{
	long r;

	b->what = "take the box's uid";
	r = b->has_uid ? take_uid(b->uid) : 0;
	if (!has_net)
		b->args.flags |= UAPI_CLONE_NEWNET;
	b->go.owns_net = !has_net;
	*b->ignored = child.ignored;
	if (r == 0)
		r = clone_init(b);
	if (r == 0)
		r = map_ids(b);
	if (r < 0)
		return r;
	b->what = "talk to init";
	r = clone_call(SYS_write, b->sock, (long)&b->go, sizeof(b->go), 0, 0);
	return r < 0 ? r : 0;
}

static void child_main(void *unused)
{
	bool has_net;

	(void)unused;
	(void)clone_call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (!atomic_exchange(&child.is_taken, true)) {
		/* Where it fails the clone will try, and say what is wrong. */
		has_net = child.makes_net &&
			  clone_call(SYS_unshare, CLONE_NEWNET, 0, 0, 0, 0) ==
				  0;
		child.ignored = find_ignored();
		atomic_store(&child.has_looked, true);
		if (is_to_bear())
			child.birth->error = (int)-bear(child.birth, has_net);
		atomic_store(&child.is_done, true);
	}
	for (;;)
		(void)clone_call(SYS_exit_group, 0, 0, 0, 0, 0);
}

/* A new process stays for long on its parent's CPU unless it is sent away. */
bool cpus_other(const struct keeper *k, cpu_set_t *ret)
{
	int here = sched_getcpu();

	*ret = k->cpus;
	if (here < 0)
		return false;
	CPU_CLR(here, ret);
	return CPU_COUNT(ret) > 0;
}

void cpus_leave(const struct keeper *k, int cpu)
{
	cpu_set_t rest = k->cpus;

	if (k->is_reused || cpu < 0)
		return;
	CPU_CLR(cpu, &rest);
	if (CPU_COUNT(&rest) > 0)
		(void)sched_setaffinity(0, sizeof(rest), &rest);
}

void midwife_call(struct keeper *k, bool has_way_out)
{
	struct uapi_clone_args args = { .flags = UAPI_CLONE_FILES,
					.exit_signal = SIGCHLD };
	cpu_set_t others;

	(void)sched_getaffinity(0, sizeof(k->cpus), &k->cpus);
	k->has_cpus = cpus_other(k, &others);
	if (geteuid() != 0 || !k->has_cpus)
		return;
	child.cpus = &k->cpus;
	child.makes_net = !has_way_out;
	k->midwife = clone_beside(&args, child_main, NULL, child.stack,
				  sizeof(child.stack));
	if (k->midwife > 0)
		(void)sched_setaffinity(k->midwife, sizeof(others), &others);
}

bool midwife_bear(struct keeper *k, struct birth *birth)
{
	if (k->midwife <= 0 || !k->world.is_root)
		return false;
	birth->error = ECHILD; /* unless it says otherwise */
	birth->what = "bear a box";
	child.birth = birth;
	/* One that has not begun by now never will. */
	return give_order(atomic_exchange(&child.is_taken, true) ? ORDER_BEAR
								 : ORDER_END) &&
	       atomic_load(&child.order) == ORDER_BEAR;
}

/*
 * It is on another CPU and soon done; to sleep until then would take longer
 * than the rest of its work.
 */
void midwife_await(struct keeper *k)
{
	int64_t end = clock_us() + PATIENCE_US;

	while (!atomic_load(&child.is_done) && clock_us() < end)
		;
	if (!atomic_load(&child.is_done)) {
		(void)waitpid(k->midwife, NULL, 0);
		k->midwife = 0;
	}
}

void midwife_done(struct keeper *k)
{
	if (k->midwife <= 0)
		return;
	atomic_store(&child.is_taken, true);
	(void)give_order(ORDER_END);
	(void)waitpid(k->midwife, NULL, 0);
	k->midwife = 0;
}

uint64_t signals_ignored(void)
{
	static bool is_known;
	static uint64_t ignored;

	if (!is_known)
		ignored = atomic_load(&child.has_looked) ? child.ignored
							 : find_ignored();
	is_known = true;
	return ignored;
}
