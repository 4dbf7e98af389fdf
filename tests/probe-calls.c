/* SPDX-License-Identifier: Apache-2.0 */

/*
 * System calls that a box must not have, with arguments that do no harm
 * where they are allowed; see probe.h.
 */

#include "probe.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define BAD           (-1L) /* a pointer or descriptor that is none */
#define HIGH          (1L << 32)

struct call {
	const char *name;
	long nr;
	long arg[6];
};

static const struct call calls[] = {
	{ "acct", SYS_acct, { BAD } },
	{ "add_key", SYS_add_key, { BAD, BAD, BAD, 0, 0 } },
	{ "bpf", SYS_bpf, { 0, BAD, 8 } },
	{ "chroot", SYS_chroot, { BAD } },
	{ "clock_settime", SYS_clock_settime, { BAD, BAD } },
	{ "clone3", SYS_clone3, { BAD, 64 } },
	{ "delete_module", SYS_delete_module, { BAD, 0 } },
	{ "fanotify_init", SYS_fanotify_init, { BAD, 0 } },
	{ "fchmodat2", 452, { BAD, BAD, 04777, 0 } },
	{ "finit_module", SYS_finit_module, { BAD, BAD, BAD } },
	{ "fsconfig", SYS_fsconfig, { BAD, BAD, BAD, BAD, BAD } },
	{ "fsmount", SYS_fsmount, { BAD, 0, 0 } },
	{ "fsopen", SYS_fsopen, { BAD, 0 } },
	{ "fspick", SYS_fspick, { BAD, BAD, 0 } },
	{ "init_module", SYS_init_module, { BAD, 1, BAD } },
	{ "io_uring_enter", SYS_io_uring_enter, { BAD, 0, 0, 0, 0, 0 } },
	{ "io_uring_register", SYS_io_uring_register, { BAD, 0, 0, 0 } },
	{ "io_uring_setup", SYS_io_uring_setup, { 1, BAD } },
	{ "ioperm", SYS_ioperm, { BAD, BAD, 0 } },
	{ "iopl", SYS_iopl, { BAD } },
	{ "kcmp", SYS_kcmp, { BAD, BAD, BAD, 0, 0 } },
	{ "kexec_load", SYS_kexec_load, { 0, BAD, BAD, BAD } },
	{ "keyctl", SYS_keyctl, { BAD } },
	{ "keyctl_session", SYS_keyctl, { 0, -3, 0 } },
	{ "mbind", SYS_mbind, { BAD, 1, BAD, BAD, 0, BAD } },
	{ "modify_ldt", SYS_modify_ldt, { 0, 0, 0 } },
	{ "mount", SYS_mount, { BAD, BAD, BAD, 0, BAD } },
	{ "mount_setattr", SYS_mount_setattr, { BAD, BAD, 0, BAD, 32 } },
	{ "move_mount", SYS_move_mount, { BAD, BAD, BAD, BAD, 0 } },
	{ "move_pages", SYS_move_pages, { 0, 0, 0, 0, 0, BAD } },
	{ "name_to_handle_at",
	  SYS_name_to_handle_at,
	  { BAD, BAD, BAD, BAD, 0 } },
	{ "open_by_handle_at", SYS_open_by_handle_at, { BAD, BAD, 0 } },
	{ "open_tree", SYS_open_tree, { BAD, BAD, 0 } },
	{ "openat2", SYS_openat2, { BAD, BAD, BAD, 24 } },
	{ "perf_event_open", SYS_perf_event_open, { BAD, 0, -1, -1, 0 } },
	{ "personality", SYS_personality, { 0x0040000 } },
	{ "pidfd_getfd", SYS_pidfd_getfd, { BAD, 0, 0 } },
	{ "pivot_root", SYS_pivot_root, { BAD, BAD } },
	{ "process_madvise", SYS_process_madvise, { BAD, 0, 0, 0, 0 } },
	{ "process_vm_readv", SYS_process_vm_readv, { 1, 0, 0, 0, 0, 0 } },
	{ "process_vm_writev", SYS_process_vm_writev, { 1, 0, 0, 0, 0, 0 } },
	{ "ptrace", SYS_ptrace, { 0x4206, BAD, 0, 0 } },
	{ "quotactl", SYS_quotactl, { BAD, BAD, 0, BAD } },
	{ "reboot", SYS_reboot, { 0, 0, 0, 0 } },
	{ "request_key", SYS_request_key, { BAD, BAD, BAD, 0 } },
	{ "sethostname", SYS_sethostname, { BAD, 4 } },
	{ "setns", SYS_setns, { BAD, 0 } },
	{ "settimeofday", SYS_settimeofday, { BAD, 0 } },
	{ "swapon", SYS_swapon, { BAD, 0 } },
	{ "sysfs", SYS_sysfs, { BAD, 0 } },
	{ "syslog", SYS_syslog, { BAD, 0, 0 } },
	{ "umount2", SYS_umount2, { BAD, 0 } },
	{ "userfaultfd", SYS_userfaultfd, { BAD } },
	{ "userfaultfd_user", SYS_userfaultfd, { 1 } },
	{ "uselib", SYS_uselib, { BAD } },
	{ "ustat", SYS_ustat, { BAD, BAD } },
	{ "vhangup", SYS_vhangup, { 0 } },
	{ "vmsplice", SYS_vmsplice, { BAD, 0, 0, 0 } },
};

static long make(long nr, const long *a)
{
	return syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static int do_calls(int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		const struct call *c = NULL;

		for (size_t k = 0; k < ARRAY_SIZE(calls) && !c; k++)
			if (strcmp(calls[k].name, argv[i]) == 0)
				c = &calls[k];
		if (!c)
			return 2;
		probe_say(c->name, make(c->nr, c->arg));
	}
	return 0;
}

/* In a child: its result as 0 or an errno, or -signal. */
static int in_child(long (*fn)(const void *), const void *arg)
{
	int *shared = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status = 0;
	int r;
	pid_t pid;

	if (shared == MAP_FAILED)
		return ENOMEM;
	*shared = -1;
	pid = fork();
	if (pid == 0) {
		errno = 0;
		*shared = fn(arg) < 0 ? errno : 0;
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		*shared = errno;
	r = WIFSIGNALED(status) ? -WTERMSIG(status) : *shared;
	(void)munmap(shared, sizeof(int));
	return r;
}

static void say_child(const char *what, int r)
{
	errno = r;
	if (r < 0)
		printf("%s SIG%s\n", what, sigabbrev_np(-r));
	else
		probe_say(what, r ? -1 : 0);
}

static const struct {
	const char *name;
	long flag;
} spaces[] = {
	{ "time", 0x00000080 },        { "mnt", CLONE_NEWNS },
	{ "cgroup", CLONE_NEWCGROUP }, { "uts", CLONE_NEWUTS },
	{ "ipc", CLONE_NEWIPC },       { "user", CLONE_NEWUSER },
	{ "pid", CLONE_NEWPID },       { "net", CLONE_NEWNET },
};

static long try_unshare(const void *arg)
{
	return syscall(SYS_unshare, *(const long *)arg);
}

static long try_clone(const void *arg)
{
	long flags = *(const long *)arg | SIGCHLD;
	long pid = syscall(SYS_clone, flags, 0, 0, 0, 0);

	if (pid == 0)
		_exit(0);
	if (pid > 0)
		(void)waitpid((pid_t)pid, NULL, 0);
	return pid;
}

/* New namespaces by both calls; "high" sets bits that the kernel drops. */
static int do_namespaces(int argc, char **argv)
{
	bool high = argc > 0 && strcmp(argv[0], "high") == 0;

	for (size_t i = 0; i < ARRAY_SIZE(spaces); i++) {
		long flag = spaces[i].flag | (high ? HIGH : 0);
		char what[32];

		(void)snprintf(what, sizeof(what), "unshare-%s",
			       spaces[i].name);
		say_child(what, in_child(try_unshare, &flag));
		if (i == 0)
			continue; /* clone has other bits there */
		(void)snprintf(what, sizeof(what), "clone-%s", spaces[i].name);
		say_child(what, in_child(try_clone, &flag));
	}
	return 0;
}

/* A thread and a process are not namespaces: they must work. */
static int do_forks(int argc, char **argv)
{
	long plain = 0;
	long high = HIGH;

	(void)argc;
	(void)argv;
	say_child("fork", in_child(try_clone, &plain));
	say_child("fork-high", in_child(try_clone, &high));
	return 0;
}

static const char *family(long f, bool pair)
{
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_RAW,
				     SOCK_SEQPACKET };
	int pairs[2];
	int first = 0;

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		long r = pair ? syscall(SYS_socketpair, f, types[i], 0, pairs)
			      : syscall(SYS_socket, f, types[i], 0);

		if (r >= 0) {
			if (pair) {
				(void)close(pairs[0]);
				(void)close(pairs[1]);
			} else {
				(void)close((int)r);
			}
			return "OK";
		}
		if (!first)
			first = errno;
	}
	errno = first;
	return probe_word(-1);
}

/* socket() and socketpair() for each family, and for what looks like one. */
static int do_families(int argc, char **argv)
{
	static const long more[] = { 1000002, 1000001, 0x10001, 0x80000001,
				     -1,      255,     0x100,   0x102 };

	(void)argc;
	(void)argv;
	for (long f = 0; f <= 46; f++)
		printf("socket-%ld %s\npair-%ld %s\n", f, family(f, false), f,
		       family(f, true));
	for (long f = 0; f <= 46; f++)
		printf("socket-high-%ld %s\npair-high-%ld %s\n", f,
		       family(f | HIGH, false), f, family(f | HIGH, true));
	for (size_t i = 0; i < ARRAY_SIZE(more); i++)
		printf("socket-odd-%ld %s\npair-odd-%ld %s\n", more[i],
		       family(more[i], false), more[i], family(more[i], true));
	return 0;
}

#ifdef __x86_64__
static long int80(long nr, long a, long b)
{
	long r;

	__asm__ volatile("int $0x80"
			 : "=a"(r)
			 : "a"(nr), "b"(a), "c"(b)
			 : "memory", "r8", "r9", "r10", "r11");
	return r;
}

static long try_int80(const void *arg)
{
	long r = int80(*(const long *)arg, 1, 0);

	errno = (int)-r;
	return r < 0 ? -1 : 0;
}

static long try_x32(const void *arg)
{
	return syscall(0x40000000L | *(const long *)arg, 0, 0, 0);
}

/* The two other ABIs of this processor, each in a child. */
static int do_abi(int argc, char **argv)
{
	static const long getpid_32 = 20;
	static const long socketcall_32 = 102;
	static const long getpid_64 = SYS_getpid;
	static const long socket_64 = SYS_socket;

	(void)argc;
	(void)argv;
	say_child("int80", in_child(try_int80, &getpid_32));
	say_child("socketcall", in_child(try_int80, &socketcall_32));
	say_child("x32", in_child(try_x32, &getpid_64));
	say_child("x32-socket", in_child(try_x32, &socket_64));
	return 0;
}
#else
static int do_abi(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return 2;
}
#endif

static int do_tty(int argc, char **argv)
{
	static const struct {
		const char *name;
		long request;
	} requests[] = {
		{ "TIOCSTI", 0x5412 },
		{ "TIOCLINUX", 0x541c },
		{ "TIOCSETD", 0x5423 },
		{ "TIOCSTI-high", 0x5412 | HIGH },
		{ "TIOCLINUX-high", 0x541c | HIGH },
		{ "TIOCSETD-high", 0x5423 | HIGH },
		{ "TIOCSTI-top", 0x5412 | (long)0xffffffff00000000 },
	};
	int fd = argc > 0 ? atoi(argv[0]) : -1;
	char c = 'x';

	for (size_t i = 0; i < ARRAY_SIZE(requests); i++)
		probe_say(requests[i].name,
			  syscall(SYS_ioctl, fd, requests[i].request, &c));
	return 0;
}

/* All ways to make a set-id file, in the directory given. */
static int do_setid(int argc, char **argv)
{
	static const long modes[] = { 04755, 02755, 06755, 04755 | HIGH,
				      02755 | (long)0xffffffff00000000 };
	int fd;

	if (argc < 1 || chdir(argv[0]) < 0)
		return 1;
	fd = open("plain", O_CREAT | O_WRONLY | O_CLOEXEC, 0755);
	probe_say("plain", fd);
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		long m = modes[i];
		long tmp = O_TMPFILE | O_WRONLY;

		probe_say("chmod", syscall(SYS_chmod, "plain", m));
		probe_say("fchmod", syscall(SYS_fchmod, fd, m));
		probe_say("fchmodat",
			  syscall(SYS_fchmodat, AT_FDCWD, "plain", m));
		probe_say("fchmodat2", syscall(452, AT_FDCWD, "plain", m, 0));
		probe_say("creat", syscall(SYS_creat, "a", m));
		probe_say("open",
			  syscall(SYS_open, "b", O_CREAT | O_WRONLY, m));
		probe_say("open-high",
			  syscall(SYS_open, "c", O_CREAT | O_WRONLY | HIGH, m));
		probe_say("openat", syscall(SYS_openat, AT_FDCWD, "d",
					    O_CREAT | O_WRONLY, m));
		probe_say("tmpfile",
			  syscall(SYS_openat, AT_FDCWD, ".", tmp, m));
		probe_say("mknod", syscall(SYS_mknod, "e", S_IFREG | m, 0));
		probe_say("mknodat",
			  syscall(SYS_mknodat, AT_FDCWD, "f", S_IFREG | m, 0));
	}
	return 0;
}

/* personality() with anything but the question. */
static int do_personality(int argc, char **argv)
{
	static const long odd[] = { 0x0040000, 0x0040000 | HIGH, 0x0400000,
				    8,         8 | HIGH,         0x0020000 };

	(void)argc;
	(void)argv;
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
		char what[32];

		(void)snprintf(what, sizeof(what), "0x%lx",
			       (unsigned long)odd[i]);
		probe_say(what, syscall(SYS_personality, odd[i]));
	}
	return 0;
}

/* connect: "path" or "@name", or an address of the machine by TCP. */
static int do_connect(int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		struct sockaddr_un un = { .sun_family = AF_UNIX };
		size_t len = strlen(argv[i]);
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (fd < 0 || len >= sizeof(un.sun_path)) {
			probe_say(argv[i], -1);
			continue;
		}
		memcpy(un.sun_path, argv[i], len);
		if (argv[i][0] == '@')
			un.sun_path[0] = '\0';
		len += offsetof(struct sockaddr_un, sun_path);
		probe_say(argv[i],
			  connect(fd, (struct sockaddr *)&un, (socklen_t)len));
		(void)close(fd);
	}
	return 0;
}

/* A TCP connection and a UDP packet to 192.0.2.1, which is nobody's. */
static int do_net(int argc, char **argv)
{
	/* family 2, port 9, address, padding */
	static const unsigned char to[16] = { 2, 0, 0, 9, 192, 0, 2, 1 };
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM };

	(void)argc;
	(void)argv;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		const char *what = i ? "udp" : "tcp";
		int fd = socket(AF_INET,
				types[i] | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

		if (fd < 0)
			probe_say(what, -1);
		else
			probe_say(what,
				  connect(fd, (const void *)to, sizeof(to)));
	}
	return 0;
}

/* How many Landlock domains can still be nested; the kernel allows 16. */
static int do_landlock(int argc, char **argv)
{
	const uint64_t rights = 1; /* execute */
	int fd = (int)syscall(SYS_landlock_create_ruleset, &rights,
			      sizeof(rights), 0);
	int n = 0;

	(void)argc;
	(void)argv;
	if (fd < 0) {
		probe_say("left", -1);
		return 0;
	}
	while (n < 32 && syscall(SYS_landlock_restrict_self, fd, 0) == 0)
		n++;
	printf("left %d\n", n);
	return 0;
}

/* Real mounts, with arguments that would work for someone with the right. */
static int do_mount(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	probe_say("tmpfs", syscall(SYS_mount, "none", "/tmp", "tmpfs", 0, 0));
	probe_say("bind", syscall(SYS_mount, "/usr", "/tmp", 0, 4096, 0));
	probe_say("remount",
		  syscall(SYS_mount, "none", "/usr", 0, 32 | 4096, 0));
	probe_say("cgroup",
		  syscall(SYS_mount, "none", "/tmp", "cgroup2", 0, 0));
	probe_say("proc", syscall(SYS_mount, "none", "/tmp", "proc", 0, 0));
	probe_say("umount", syscall(SYS_umount2, "/proc/sys", 2));
	probe_say("chroot", syscall(SYS_chroot, "/tmp"));
	return 0;
}

/* A key of the host's session, looked for by name. */
static int do_key(int argc, char **argv)
{
	if (argc < 1)
		return 2;
	probe_say("search", syscall(SYS_keyctl, 10, -3, "user", argv[0], 0));
	return 0;
}

/*
 * The answer of the filter to each number. Calls whose arguments the filter
 * looks at get harmless ones. Not made, because they would end or hold the
 * child that makes them: rt_sigreturn (takes the stack for a signal frame),
 * pause (waits), exit and exit_group (are how the child ends), vfork (shares
 * the stack that it returns on); fork, which is how each child is made; and
 * uretprobe and uprobe (Linux 6.11, 6.18), which the kernel takes past every
 * filter and which kill a caller that no probe sent there.
 */
static const struct {
	long nr;
	const char *why;
} left_out[] = {
	{ SYS_rt_sigreturn, "takes-the-stack" },
	{ SYS_pause, "waits" },
	{ SYS_fork, "makes-the-child" },
	{ SYS_vfork, "shares-the-stack" },
	{ SYS_exit, "ends-the-child" },
	{ SYS_exit_group, "ends-the-child" },
	{ 335, "uretprobe-passes-filters" },
	{ 336, "uprobe-passes-filters" },
};

static const struct call harmless[] = {
	{ "clone", SYS_clone, { 0x800 } }, /* SIGHAND without VM */
	{ "unshare", SYS_unshare, { 1 } }, /* no such flag */
	{ "ioctl", SYS_ioctl, { BAD, 0x5401, BAD } },
	{ "chmod", SYS_chmod, { BAD, 0644 } },
	{ "fchmod", SYS_fchmod, { BAD, 0644 } },
	{ "fchmodat", SYS_fchmodat, { BAD, BAD, 0644 } },
	{ "creat", SYS_creat, { BAD, 0644 } },
	{ "open", SYS_open, { BAD, 0, 0 } },
	{ "openat", SYS_openat, { BAD, BAD, 0, 0 } },
	{ "mknod", SYS_mknod, { BAD, S_IFREG | 0644, 0 } },
	{ "mknodat", SYS_mknodat, { BAD, BAD, S_IFREG | 0644, 0 } },
	{ "socketpair", SYS_socketpair, { AF_UNIX, BAD, 0, BAD } },
	{ "futex", SYS_futex, { 1, 0, 0, 0, 0, 0 } }, /* odd address */
};

static long try_call(const void *arg)
{
	const struct call *c = arg;

	return make(c->nr, c->arg);
}

static const char *verdict(int r)
{
	if (r < 0)
		return "killed";
	if (r == EPERM || r == ENOSYS || r == EAFNOSUPPORT)
		return strerrorname_np(r);
	return "pass";
}

static int do_verdicts(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	for (long nr = 0; nr <= 520; nr++) {
		struct call c = { NULL, nr, { BAD, BAD, BAD, BAD, BAD, BAD } };
		const char *why = NULL;

		for (size_t i = 0; i < ARRAY_SIZE(left_out); i++)
			if (left_out[i].nr == nr)
				why = left_out[i].why;
		for (size_t i = 0; i < ARRAY_SIZE(harmless); i++)
			if (harmless[i].nr == nr)
				c = harmless[i];
		if (why)
			printf("%ld left-out:%s\n", nr, why);
		else
			printf("%ld %s\n", nr, verdict(in_child(try_call, &c)));
	}
	return 0;
}

const struct probe probe_calls[] = {
	{ "calls", do_calls },
	{ "namespaces", do_namespaces },
	{ "forks", do_forks },
	{ "families", do_families },
	{ "abi", do_abi },
	{ "tty", do_tty },
	{ "setid", do_setid },
	{ "personality", do_personality },
	{ "connect", do_connect },
	{ "net", do_net },
	{ "landlock", do_landlock },
	{ "mount", do_mount },
	{ "key", do_key },
	{ "verdicts", do_verdicts },
	{ NULL, NULL },
};
