/* SPDX-License-Identifier: Apache-2.0 */
#include "front/confine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "base/util.h"
#include "os/landlock.h"

/* What an event loop, HTTP, JSON, tar and files of its own take. */
static const int allowed[] = {
	/* bytes */
	SCMP_SYS(read),
	SCMP_SYS(write),
	SCMP_SYS(readv),
	SCMP_SYS(writev),
	SCMP_SYS(pread64),
	SCMP_SYS(pwrite64),
	SCMP_SYS(preadv),
	SCMP_SYS(pwritev),
	SCMP_SYS(lseek),
	SCMP_SYS(close),
	SCMP_SYS(close_range),
	SCMP_SYS(splice),
	SCMP_SYS(tee),
	SCMP_SYS(sendfile),
	SCMP_SYS(copy_file_range),
	SCMP_SYS(fadvise64),
	/* files, below what Landlock leaves */
	SCMP_SYS(openat),
	SCMP_SYS(open),
	SCMP_SYS(fstat),
	SCMP_SYS(stat),
	SCMP_SYS(lstat),
	SCMP_SYS(newfstatat),
	SCMP_SYS(statx),
	SCMP_SYS(fstatfs),
	SCMP_SYS(access),
	SCMP_SYS(faccessat),
	SCMP_SYS(faccessat2),
	SCMP_SYS(readlink),
	SCMP_SYS(readlinkat),
	SCMP_SYS(getdents64),
	SCMP_SYS(fcntl),
	SCMP_SYS(flock),
	SCMP_SYS(fsync),
	SCMP_SYS(fdatasync),
	SCMP_SYS(ftruncate),
	SCMP_SYS(fallocate),
	SCMP_SYS(mkdirat),
	SCMP_SYS(unlinkat),
	SCMP_SYS(renameat),
	SCMP_SYS(renameat2),
	SCMP_SYS(linkat),
	SCMP_SYS(fchmod),
	SCMP_SYS(utimensat),
	SCMP_SYS(umask),
	SCMP_SYS(getcwd),
	/* descriptors of memory, and events */
	SCMP_SYS(dup),
	SCMP_SYS(dup2),
	SCMP_SYS(dup3),
	SCMP_SYS(pipe2),
	SCMP_SYS(memfd_create),
	SCMP_SYS(eventfd2),
	SCMP_SYS(timerfd_create),
	SCMP_SYS(timerfd_settime),
	SCMP_SYS(timerfd_gettime),
	SCMP_SYS(epoll_create1),
	SCMP_SYS(epoll_ctl),
	SCMP_SYS(epoll_wait),
	SCMP_SYS(epoll_pwait),
	SCMP_SYS(poll),
	SCMP_SYS(ppoll),
	SCMP_SYS(select),
	SCMP_SYS(pselect6),
	/* sockets that it has */
	SCMP_SYS(accept),
	SCMP_SYS(accept4),
	SCMP_SYS(sendmsg),
	SCMP_SYS(recvmsg),
	SCMP_SYS(sendto),
	SCMP_SYS(recvfrom),
	SCMP_SYS(sendmmsg),
	SCMP_SYS(recvmmsg),
	SCMP_SYS(shutdown),
	SCMP_SYS(getsockopt),
	SCMP_SYS(setsockopt),
	SCMP_SYS(getsockname),
	SCMP_SYS(getpeername),
	/* memory, threads, signals, time */
	SCMP_SYS(mmap),
	SCMP_SYS(munmap),
	SCMP_SYS(mremap),
	SCMP_SYS(mprotect),
	SCMP_SYS(madvise),
	SCMP_SYS(brk),
	SCMP_SYS(futex),
	SCMP_SYS(set_robust_list),
	SCMP_SYS(rseq),
	SCMP_SYS(membarrier),
	SCMP_SYS(sched_yield),
	SCMP_SYS(sched_getaffinity),
	SCMP_SYS(set_tid_address),
	SCMP_SYS(rt_sigaction),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(rt_sigtimedwait),
	SCMP_SYS(signalfd4),
	SCMP_SYS(sigaltstack),
	SCMP_SYS(restart_syscall),
	SCMP_SYS(clock_gettime),
	SCMP_SYS(clock_getres),
	SCMP_SYS(clock_nanosleep),
	SCMP_SYS(nanosleep),
	SCMP_SYS(gettimeofday),
	SCMP_SYS(time),
	SCMP_SYS(getrandom),
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
	/* who and where it is */
	SCMP_SYS(getpid),
	SCMP_SYS(getppid),
	SCMP_SYS(gettid),
	SCMP_SYS(getuid),
	SCMP_SYS(geteuid),
	SCMP_SYS(getgid),
	SCMP_SYS(getegid),
	SCMP_SYS(getrlimit),
	SCMP_SYS(getrusage),
	SCMP_SYS(sysinfo),
	SCMP_SYS(uname),
};

/* No library of ours makes these: somebody else does. */
static const int deadly[] = {
	SCMP_SYS(execve),
	SCMP_SYS(execveat),
	SCMP_SYS(ptrace),
	SCMP_SYS(process_vm_readv),
	SCMP_SYS(process_vm_writev),
	SCMP_SYS(socket),
	SCMP_SYS(bpf),
	SCMP_SYS(perf_event_open),
	SCMP_SYS(userfaultfd),
	SCMP_SYS(unshare),
	SCMP_SYS(setns),
	SCMP_SYS(mount),
	SCMP_SYS(umount2),
	SCMP_SYS(move_mount),
	SCMP_SYS(open_tree),
	SCMP_SYS(fsopen),
	SCMP_SYS(mount_setattr),
	SCMP_SYS(pivot_root),
	SCMP_SYS(chroot),
	SCMP_SYS(setuid),
	SCMP_SYS(setgid),
	SCMP_SYS(setreuid),
	SCMP_SYS(setregid),
	SCMP_SYS(setresuid),
	SCMP_SYS(setresgid),
	SCMP_SYS(setgroups),
	SCMP_SYS(setfsuid),
	SCMP_SYS(setfsgid),
	SCMP_SYS(capset),
	SCMP_SYS(keyctl),
	SCMP_SYS(add_key),
	SCMP_SYS(init_module),
	SCMP_SYS(finit_module),
	SCMP_SYS(kexec_load),
	SCMP_SYS(name_to_handle_at),
	SCMP_SYS(open_by_handle_at),
	SCMP_SYS(fork),
	SCMP_SYS(vfork),
};

static const unsigned long ioctls[] = { FIONREAD,   FIONBIO,    FIOCLEX, TCGETS,
					TIOCGWINSZ, TIOCSWINSZ, TIOCOUTQ };

#define NAMESPACES                                                             \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |         \
	 CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)

/* A thread may be made, another process not; namespaces are deadly. */
static int add_clone(scmp_filter_ctx f)
{
	int r = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
				 SCMP_A0(SCMP_CMP_MASKED_EQ,
					 NAMESPACES | CLONE_THREAD,
					 CLONE_THREAD));

	for (unsigned long bit = 1; r == 0 && bit <= NAMESPACES; bit <<= 1)
		if (NAMESPACES & bit)
			r = seccomp_rule_add(f, SCMP_ACT_KILL_PROCESS,
					     SCMP_SYS(clone), 1,
					     SCMP_A0(SCMP_CMP_MASKED_EQ, bit,
						     bit));
	/* Its flags cannot be seen; glibc goes on with the other one. */
	if (r == 0)
		r = seccomp_rule_add(f, SCMP_ACT_ERRNO(ENOSYS),
				     SCMP_SYS(clone3), 0);
	return r;
}

/* Those that are allowed with some arguments. */
static int add_special(scmp_filter_ctx f)
{
	int r = add_clone(f);

	if (r == 0)
		r = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(socketpair), 1,
				     SCMP_A0(SCMP_CMP_EQ, AF_UNIX));
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(ioctls); i++)
		r = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1,
				     SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffffU,
					     ioctls[i]));
	/* abort(3), and signals from one thread to another. */
	if (r == 0)
		r = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
				     SCMP_A0(SCMP_CMP_EQ,
					     (scmp_datum_t)getpid()));
	if (r == 0)
		r = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(prctl), 1,
				     SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME));
	/* Its own limits may be read. */
	if (r == 0)
		r = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 2,
				     SCMP_A0(SCMP_CMP_EQ, 0),
				     SCMP_A2(SCMP_CMP_EQ, 0));
	return r;
}

static int enter_filter(struct err *err)
{
	scmp_filter_ctx f = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int r = f ? 0 : -ENOMEM;

	for (size_t i = 0; i < ARRAY_SIZE(allowed) && r == 0; i++)
		r = seccomp_rule_add(f, SCMP_ACT_ALLOW, allowed[i], 0);
	/* A call that this architecture does not have cannot be made. */
	for (size_t i = 0; i < ARRAY_SIZE(deadly) && r == 0; i++) {
		r = seccomp_rule_add(f, SCMP_ACT_KILL_PROCESS, deadly[i], 0);
		if (r == -EDOM || r == -EOPNOTSUPP)
			r = 0;
	}
	if (r == 0)
		r = add_special(f);
	if (r == 0)
		r = seccomp_load(f);
	seccomp_release(f);
	return r < 0 ? err_errno(err, -r, "install the system call filter") : 0;
}

/* Read-only: what a library may look for later. */
static const char *const readable[] = { "/usr/lib", "/usr/share/zoneinfo",
					"/sys/devices/system/cpu" };

static int enter_landlock(int state, struct err *err)
{
	struct landlock l;
	int r;

	if (landlock_open(&l, err) < 0)
		return -err->code;
	r = landlock_allow(&l, state, true, LANDLOCK_WRITE, err);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(readable); i++) {
		_cleanup_fd_ int fd = open(readable[i], O_PATH | O_CLOEXEC);

		if (fd >= 0)
			r = landlock_allow(&l, fd, true, 0, err);
	}
	if (r == 0)
		return landlock_enter(&l, err);
	fd_close(&l.fd);
	return r;
}

/* Landlock is entered by a thread: one made before would stay outside. */
static int check_alone(struct err *err)
{
	DIR *tasks = opendir("/proc/self/task");
	int n = 0;

	if (!tasks)
		return err_errno(err, errno, "count threads");
	for (const struct dirent *e; (e = readdir(tasks));)
		n += e->d_name[0] != '.';
	(void)closedir(tasks);
	return n == 1 ? 0
		      : err_set(err, EBUSY,
				"the front has %d threads before it is shut in",
				n);
}

int front_confine(int state, struct err *err)
{
	const struct rlimit no_core = { 0, 0 };

	if (check_alone(err) < 0)
		return -err->code;
	(void)setrlimit(RLIMIT_CORE, &no_core);
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_errno(err, errno, "give up new privileges");
	if (enter_landlock(state, err) < 0)
		return -err->code;
	return enter_filter(err);
}
