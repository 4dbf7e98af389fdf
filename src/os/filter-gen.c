/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Writes the system call filter of a box as a C table, at build time.
 *
 * It is two filters made by libseccomp, one behind the other: what the first
 * would allow goes on to the second.
 *
 *  - the numbers: an allow-list. Known calls that a box may never make answer
 *    EPERM; numbers that are on no list, also those of later kernels, answer
 *    ENOSYS, so that libraries fall back. Any other architecture, x32 and
 *    32-bit calls kill the process.
 *  - the arguments: calls that are allowed only with some arguments.
 *    Everything else passes this filter.
 *
 * A comparison of a 32-bit argument is masked to 32 bits: the kernel ignores
 * the upper half, and so must we (CVE-2019-10063).
 */

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define LOW32         0xffffffffULL

/* clang-format off: lists of words */
static const char *const allowed[] = {
	/* files */
	"access",
	"chdir",
	"chmod",
	"chown",
	"close",
	"close_range",
	"copy_file_range",
	"creat",
	"dup",
	"dup2",
	"dup3",
	"faccessat",
	"faccessat2",
	"fadvise64",
	"fallocate",
	"fchdir",
	"fchmod",
	"fchmodat",
	"fchown",
	"fchownat",
	"fcntl",
	"fdatasync",
	"fgetxattr",
	"flistxattr",
	"flock",
	"fremovexattr",
	"fsetxattr",
	"fstat",
	"fstatfs",
	"fsync",
	"ftruncate",
	"futimesat",
	"getcwd",
	"getdents",
	"getdents64",
	"getxattr",
	"inotify_add_watch",
	"inotify_init",
	"inotify_init1",
	"inotify_rm_watch",
	"ioctl",
	"lchown",
	"lgetxattr",
	"link",
	"linkat",
	"listxattr",
	"llistxattr",
	"lremovexattr",
	"lseek",
	"lsetxattr",
	"lstat",
	"mkdir",
	"mkdirat",
	"mknod",
	"mknodat",
	"newfstatat",
	"open",
	"openat",
	"pread64",
	"preadv",
	"preadv2",
	"pwrite64",
	"pwritev",
	"pwritev2",
	"read",
	"readahead",
	"readlink",
	"readlinkat",
	"readv",
	"removexattr",
	"rename",
	"renameat",
	"renameat2",
	"rmdir",
	"sendfile",
	"setxattr",
	"splice",
	"stat",
	"statfs",
	"statx",
	"symlink",
	"symlinkat",
	"sync_file_range",
	"tee",
	"truncate",
	"umask",
	"unlink",
	"unlinkat",
	"utime",
	"utimensat",
	"utimes",
	"write",
	"writev",
	/* waiting */
	"epoll_create",
	"epoll_create1",
	"epoll_ctl",
	"epoll_ctl_old",
	"epoll_pwait",
	"epoll_pwait2",
	"epoll_wait",
	"epoll_wait_old",
	"eventfd",
	"eventfd2",
	"pipe",
	"pipe2",
	"poll",
	"ppoll",
	"pselect6",
	"select",
	"signalfd",
	"signalfd4",
	"timerfd_create",
	"timerfd_gettime",
	"timerfd_settime",
	/* memory */
	"brk",
	"madvise",
	"membarrier",
	"memfd_create",
	"mincore",
	"mlock",
	"mlock2",
	"mlockall",
	"mmap",
	"mprotect",
	"mremap",
	"msync",
	"munlock",
	"munlockall",
	"munmap",
	"pkey_alloc",
	"pkey_free",
	"pkey_mprotect",
	"remap_file_pages",
	/* processes */
	"arch_prctl",
	"capget",
	"capset",
	"clone",
	"execve",
	"execveat",
	"exit",
	"exit_group",
	"fork",
	"futex",
	"futex_waitv",
	"get_robust_list",
	"get_thread_area",
	"getcpu",
	"getegid",
	"geteuid",
	"getgid",
	"getgroups",
	"getpgid",
	"getpgrp",
	"getpid",
	"getppid",
	"getpriority",
	"getresgid",
	"getresuid",
	"getrlimit",
	"getrusage",
	"getsid",
	"gettid",
	"getuid",
	"ioprio_get",
	"ioprio_set",
	"kill",
	"landlock_add_rule",
	"landlock_create_ruleset",
	"landlock_restrict_self",
	"pause",
	"personality",
	"pidfd_open",
	"pidfd_send_signal",
	"prctl",
	"prlimit64",
	"restart_syscall",
	"rseq",
	"rt_sigaction",
	"rt_sigpending",
	"rt_sigprocmask",
	"rt_sigqueueinfo",
	"rt_sigreturn",
	"rt_sigsuspend",
	"rt_sigtimedwait",
	"rt_tgsigqueueinfo",
	"sched_get_priority_max",
	"sched_get_priority_min",
	"sched_getaffinity",
	"sched_getattr",
	"sched_getparam",
	"sched_getscheduler",
	"sched_rr_get_interval",
	"sched_setaffinity",
	"sched_setattr",
	"sched_setparam",
	"sched_setscheduler",
	"sched_yield",
	"seccomp",
	"set_robust_list",
	"set_thread_area",
	"set_tid_address",
	"setfsgid",
	"setfsuid",
	"setgid",
	"setgroups",
	"setpgid",
	"setpriority",
	"setregid",
	"setresgid",
	"setresuid",
	"setreuid",
	"setrlimit",
	"setsid",
	"setuid",
	"sigaltstack",
	"tgkill",
	"tkill",
	"uname",
	"unshare",
	"vfork",
	"wait4",
	"waitid",
	/* time, randomness, the machine */
	"alarm",
	"clock_getres",
	"clock_gettime",
	"clock_nanosleep",
	"getitimer",
	"getrandom",
	"gettimeofday",
	"nanosleep",
	"setitimer",
	"sysinfo",
	"time",
	"timer_create",
	"timer_delete",
	"timer_getoverrun",
	"timer_gettime",
	"timer_settime",
	"times",
	/* between processes of one box */
	"mq_getsetattr",
	"mq_notify",
	"mq_open",
	"mq_timedreceive",
	"mq_timedsend",
	"mq_unlink",
	"msgctl",
	"msgget",
	"msgrcv",
	"msgsnd",
	"semctl",
	"semget",
	"semop",
	"semtimedop",
	"shmat",
	"shmctl",
	"shmdt",
	"shmget",
	/* on sockets that it has: socketpair, or with a network */
	"accept",
	"accept4",
	"bind",
	"connect",
	"getpeername",
	"getsockname",
	"getsockopt",
	"listen",
	"recvfrom",
	"recvmmsg",
	"recvmsg",
	"sendmmsg",
	"sendmsg",
	"sendto",
	"setsockopt",
	"shutdown",
	"socketpair",
};

/* Known, and refused with EPERM rather than as unknown. */
static const char *const refused[] = {
	"_sysctl",
	"acct",
	"add_key",
	"adjtimex",
	"afs_syscall",
	"bpf",
	"chroot",
	"clock_adjtime",
	"clock_settime",
	"create_module",
	"delete_module",
	"fanotify_init",
	"fanotify_mark",
	"finit_module",
	"fsconfig",
	"fsmount",
	"fsopen",
	"fspick",
	"get_kernel_syms",
	"get_mempolicy",
	"getpmsg",
	"init_module",
	"io_uring_enter",
	"io_uring_register",
	"io_uring_setup",
	"ioperm",
	"iopl",
	"kcmp",
	"kexec_file_load",
	"kexec_load",
	"keyctl",
	"lookup_dcookie",
	"mbind",
	"migrate_pages",
	"modify_ldt",
	"mount",
	"mount_setattr",
	"move_mount",
	"move_pages",
	"name_to_handle_at",
	"nfsservctl",
	"open_by_handle_at",
	"open_tree",
	"perf_event_open",
	"pidfd_getfd",
	"pivot_root",
	"process_madvise",
	"process_vm_readv",
	"process_vm_writev",
	"ptrace",
	"putpmsg",
	"query_module",
	"quotactl",
	"quotactl_fd",
	"reboot",
	"request_key",
	"security",
	"set_mempolicy",
	"set_mempolicy_home_node",
	"setdomainname",
	"sethostname",
	"setns",
	"settimeofday",
	"swapoff",
	"swapon",
	"sync",
	"syncfs",
	"sysfs",
	"syslog",
	"tuxcall",
	"umount2",
	"uselib",
	"userfaultfd",
	"ustat",
	"vhangup",
	"vmsplice",
	"vserver",
};

/* clang-format on */

struct arg_rule {
	const char *call;
	unsigned int arg;
	uint64_t mask;
	uint64_t value;
	int error;
};

/* Refused when (argument & mask) == value. */
static const struct arg_rule arg_rules[] = {
	/* new namespaces: CLONE_NEW* one by one (0x80 is NEWTIME) */
	{ "clone", 0, 0x00020000, 0x00020000, EPERM },
	{ "clone", 0, 0x02000000, 0x02000000, EPERM },
	{ "clone", 0, 0x04000000, 0x04000000, EPERM },
	{ "clone", 0, 0x08000000, 0x08000000, EPERM },
	{ "clone", 0, 0x10000000, 0x10000000, EPERM },
	{ "clone", 0, 0x20000000, 0x20000000, EPERM },
	{ "clone", 0, 0x40000000, 0x40000000, EPERM },
	{ "unshare", 0, 0x00000080, 0x00000080, EPERM },
	{ "unshare", 0, 0x00020000, 0x00020000, EPERM },
	{ "unshare", 0, 0x02000000, 0x02000000, EPERM },
	{ "unshare", 0, 0x04000000, 0x04000000, EPERM },
	{ "unshare", 0, 0x08000000, 0x08000000, EPERM },
	{ "unshare", 0, 0x10000000, 0x10000000, EPERM },
	{ "unshare", 0, 0x20000000, 0x20000000, EPERM },
	{ "unshare", 0, 0x40000000, 0x40000000, EPERM },
	/* huge pages are the host's, and no limit of a box counts them */
	{ "mmap", 3, 0x40000, 0x40000 /* MAP_HUGETLB */, ENOMEM },
	{ "shmget", 2, 04000, 04000 /* SHM_HUGETLB */, ENOMEM },
	{ "memfd_create", 1, 4, 4 /* MFD_HUGETLB */, ENOMEM },
	/* a lease makes writers on the host wait; both watch shared files */
	{ "fcntl", 1, LOW32, 1024 /* F_SETLEASE */, EPERM },
	{ "fcntl", 1, LOW32, 1026 /* F_NOTIFY */, EPERM },
	/* input pushed into a terminal, line disciplines, console ioctls */
	{ "ioctl", 1, LOW32, 0x5412 /* TIOCSTI */, EPERM },
	{ "ioctl", 1, LOW32, 0x541c /* TIOCLINUX */, EPERM },
	{ "ioctl", 1, LOW32, 0x5423 /* TIOCSETD */, EPERM },
	/* files that change who runs them */
	{ "chmod", 1, S_ISUID, S_ISUID, EPERM },
	{ "chmod", 1, S_ISGID, S_ISGID, EPERM },
	{ "fchmod", 1, S_ISUID, S_ISUID, EPERM },
	{ "fchmod", 1, S_ISGID, S_ISGID, EPERM },
	{ "fchmodat", 2, S_ISUID, S_ISUID, EPERM },
	{ "fchmodat", 2, S_ISGID, S_ISGID, EPERM },
	{ "creat", 1, S_ISUID, S_ISUID, EPERM },
	{ "creat", 1, S_ISGID, S_ISGID, EPERM },
	{ "mknod", 1, S_ISUID, S_ISUID, EPERM },
	{ "mknod", 1, S_ISGID, S_ISGID, EPERM },
	{ "mknodat", 2, S_ISUID, S_ISUID, EPERM },
	{ "mknodat", 2, S_ISGID, S_ISGID, EPERM },
};

/* open with a mode: only where a file is created does the mode count. */
static const struct {
	const char *call;
	unsigned int flags_arg;
} creating[] = {
	{ "open", 1 },
	{ "openat", 2 },
};

static void die(const char *what, const char *name, int r)
{
	(void)fprintf(stderr, "filter-gen: %s %s: %s\n", what, name,
		      strerror(-r));
	exit(1);
}

/* -1 for a name that this architecture does not have. */
static int number(const char *name)
{
	int nr = seccomp_syscall_resolve_name(name);

	if (nr == __NR_SCMP_ERROR)
		die("unknown call", name, -EINVAL);
	return nr < 0 ? -1 : nr;
}

static void rule(scmp_filter_ctx f, uint32_t action, const char *name,
		 unsigned int n, const struct scmp_arg_cmp *args)
{
	int nr = number(name);
	int r;

	if (nr < 0)
		return;
	r = seccomp_rule_add_array(f, action, nr, n, args);
	if (r < 0)
		die("add", name, r);
}

static scmp_filter_ctx filter_new(uint32_t otherwise)
{
	scmp_filter_ctx f = seccomp_init(otherwise);

	if (!f ||
	    seccomp_attr_set(f, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS))
		die("create", "filter", -ENOMEM);
	return f;
}

static scmp_filter_ctx numbers(void)
{
	scmp_filter_ctx f = filter_new(SCMP_ACT_ERRNO(ENOSYS));

	(void)seccomp_attr_set(f, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	for (size_t i = 0; i < ARRAY_SIZE(allowed); i++)
		rule(f, SCMP_ACT_ALLOW, allowed[i], 0, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		rule(f, SCMP_ACT_ERRNO(EPERM), refused[i], 0, NULL);
	rule(f, SCMP_ACT_ERRNO(EAFNOSUPPORT), "socket", 0, NULL);
	return f;
}

static void refuse_creating(scmp_filter_ctx f)
{
	static const uint64_t set_id[] = { S_ISUID, S_ISGID };
	/* O_TMPFILE without O_DIRECTORY, which it includes */
	static const uint64_t create[] = { O_CREAT, 020000000 };

	for (size_t i = 0; i < ARRAY_SIZE(creating); i++)
		for (int k = 0; k < 4; k++) {
			unsigned int at = creating[i].flags_arg;
			const struct scmp_arg_cmp args[] = {
				SCMP_CMP64(at, SCMP_CMP_MASKED_EQ,
					   create[k / 2], create[k / 2]),
				SCMP_CMP64(at + 1, SCMP_CMP_MASKED_EQ,
					   set_id[k % 2], set_id[k % 2]),
			};

			rule(f, SCMP_ACT_ERRNO(EPERM), creating[i].call, 2,
			     args);
		}
}

/* Refuses every value of a 32-bit argument but the ones listed. */
static void only(scmp_filter_ctx f, const char *call, int error,
		 const uint32_t *values, size_t n)
{
	for (uint32_t bit = 0; bit < 32; bit++) {
		/* Refuse what differs from all listed values in one bit. */
		uint64_t mask = 1ULL << bit;
		bool zero = true;
		bool one = true;

		for (size_t i = 0; i < n; i++) {
			zero = zero && !(values[i] & mask);
			one = one && (values[i] & mask);
		}
		if (!zero && !one)
			continue;
		rule(f, SCMP_ACT_ERRNO(error), call, 1,
		     &(struct scmp_arg_cmp){ .arg = 0,
					     .op = SCMP_CMP_MASKED_EQ,
					     .datum_a = mask,
					     .datum_b = zero ? mask : 0 });
	}
}

static scmp_filter_ctx arguments(void)
{
	static const uint32_t unix_only[] = { AF_UNIX };
	static const uint32_t query_only[] = { 0xffffffff };
	scmp_filter_ctx f = filter_new(SCMP_ACT_ALLOW);

	for (size_t i = 0; i < ARRAY_SIZE(arg_rules); i++) {
		const struct arg_rule *a = &arg_rules[i];
		const struct scmp_arg_cmp cmp = { .arg = a->arg,
						  .op = SCMP_CMP_MASKED_EQ,
						  .datum_a = a->mask,
						  .datum_b = a->value };

		rule(f, SCMP_ACT_ERRNO((unsigned int)a->error), a->call, 1,
		     &cmp);
	}
	refuse_creating(f);
	only(f, "socketpair", EAFNOSUPPORT, unix_only, 1);
	only(f, "personality", EPERM, query_only, 1);
	return f;
}

struct insn {
	uint16_t code;
	uint8_t jt;
	uint8_t jf;
	uint32_t k;
};

#define MOST        4096
#define RET_ALLOW   0x7fff0000U
#define RET_K       0x06
#define JUMP_ALWAYS 0x05

/* Appends the instructions of `f` at table[n]; the new number of them. */
static size_t export(scmp_filter_ctx f, struct insn *table, size_t n)
{
	FILE *tmp = tmpfile();

	if (!tmp || seccomp_export_bpf(f, fileno(tmp)) < 0)
		die("export", "filter", -errno);
	rewind(tmp);
	while (n < MOST && fread(&table[n], sizeof(*table), 1, tmp) == 1)
		n++;
	(void)fclose(tmp);
	seccomp_release(f);
	return n;
}

int main(void)
{
	static struct insn table[MOST];
	size_t first = export(arguments(), table, 0);
	size_t all = export(numbers(), table, first);

	for (size_t i = 0; i < first; i++)
		if (table[i].code == RET_K && table[i].k == RET_ALLOW) {
			table[i].code = JUMP_ALWAYS;
			table[i].k = (uint32_t)(first - i - 1);
		}
	printf("/* Made by filter-gen.c; do not edit. */\n\n"
	       "static const struct uapi_filter filter[] = {\n");
	for (size_t i = 0; i < all; i++)
		printf("\t{ 0x%02x, %u, %u, 0x%08x },\n", table[i].code,
		       table[i].jt, table[i].jf, table[i].k);
	printf("};\n");
	return 0;
}
