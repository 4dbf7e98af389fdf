/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/confine.h"

#include <errno.h>
#include <grp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/util.h"
#include "gate/conn.h"
#include "os/allow.h"
#include "os/caps.h"
#include "os/landlock.h"

/*
 * Who a gate of root's is, by its process's number: nobody else is that, since
 * boxes begin above, and no two gates are the same.
 */
#define UID_BASE 0x6f000000U

#define MAX_FDS  (GATE_MAX_CONNS * CONN_FDS + CONN_OTHER_FDS)
#define DATA_MAX (512UL << 20)

/* Those of the relay first: it makes the most. */
static const int calls[] = {
#ifdef SYS_epoll_wait
	SYS_epoll_wait,
	SYS_poll,
#endif
	SYS_epoll_pwait,
	SYS_epoll_ctl,
	SYS_recvfrom,
	SYS_sendto,
	SYS_read,
	SYS_write,
	SYS_readv,
	SYS_writev,
	SYS_recvmsg,
	SYS_sendmsg,
	SYS_close,
	SYS_accept4,
	SYS_connect,
	SYS_bind,
	SYS_shutdown,
	SYS_getsockopt,
	SYS_setsockopt,
	SYS_getsockname,
	SYS_getpeername,
	SYS_fcntl,
	SYS_dup,
	SYS_ppoll,
	/* a new table, from its memfd */
	SYS_fstat,
	SYS_newfstatat,
	SYS_pread64,
	SYS_lseek,
	/* memory, time, randomness, the end */
	SYS_mmap,
	SYS_munmap,
	SYS_mremap,
	SYS_mprotect,
	SYS_madvise,
	SYS_brk,
	SYS_futex,
	SYS_clock_gettime,
	SYS_gettimeofday,
	SYS_clock_nanosleep,
	SYS_getrandom,
	SYS_rt_sigaction,
	SYS_rt_sigprocmask,
	SYS_rt_sigreturn,
	SYS_sigaltstack,
	SYS_restart_syscall,
	SYS_sched_yield,
	SYS_getpid,
	SYS_gettid,
	SYS_getuid,
	SYS_geteuid,
	SYS_getgid,
	SYS_getegid,
	SYS_exit,
	SYS_exit_group,
};

static int limit(int which, rlim_t most, rlim_t *ret)
{
	struct rlimit l;

	if (getrlimit((__rlimit_resource_t)which, &l) < 0)
		return -errno;
	l.rlim_max = MIN(l.rlim_max, most);
	l.rlim_cur = l.rlim_max;
	if (ret)
		*ret = l.rlim_cur;
	return setrlimit((__rlimit_resource_t)which, &l) < 0 ? -errno : 0;
}

static int set_limits(unsigned long *ret_nofile, struct err *err)
{
	int r = limit(RLIMIT_NOFILE, MAX_FDS, ret_nofile);

	if (r == 0)
		r = limit(RLIMIT_CORE, 0, NULL);
#ifndef __SANITIZE_ADDRESS__
	if (r == 0)
		r = limit(RLIMIT_DATA, DATA_MAX, NULL);
#endif
	return r < 0 ? err_errno(err, -r, "set limits") : 0;
}

static int leave_root(struct err *err)
{
	uid_t id = UID_BASE + (uid_t)getpid();

	if (geteuid() != 0 && getuid() != 0)
		return 0;
	if (setgroups(0, NULL) < 0 || setresgid(id, id, id) < 0 ||
	    setresuid(id, id, id) < 0)
		return err_errno(err, errno, "become user %u", id);
	return 0;
}

static int enter_landlock(struct err *err)
{
	struct landlock l;

	/* An older kernel: the list of calls still opens no file. */
	if (landlock_abi() == 0)
		return 0;
	if (landlock_open_net(&l, err) < 0)
		return -err->code;
	return landlock_enter(&l, err);
}

int gate_confine(unsigned long *ret_nofile, struct err *err)
{
	static const unsigned int families[] = { AF_INET, AF_INET6 };
	/* libuv's; not those that reach into a device or a terminal */
	static const unsigned int ioctls[] = { FIONBIO, FIONREAD, FIOCLEX };
	/* abort() is a signal to oneself. */
	const unsigned int self = (unsigned int)getpid();
	/* Of its own pace only; more than an ordinary one takes rights. */
	const unsigned int own = 0;
	const struct allow_only only[] = {
		{ SYS_socket, 0, families, ARRAY_SIZE(families) },
		{ SYS_ioctl, 1, ioctls, ARRAY_SIZE(ioctls) },
		{ SYS_tgkill, 0, &self, 1 },
		{ SYS_sched_setscheduler, 0, &own, 1 },
	};

	if (set_limits(ret_nofile, err) < 0 || leave_root(err) < 0 ||
	    caps_drop_held(err) < 0)
		return -err->code;
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_errno(err, errno, "give up new privileges");
	if (enter_landlock(err) < 0)
		return -err->code;
	return allow_calls(calls, ARRAY_SIZE(calls), only, ARRAY_SIZE(only),
			   err);
}
