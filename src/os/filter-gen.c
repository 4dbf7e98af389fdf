/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Writes the system call filter of a box as a C table, at build time.
 *
 *	another architecture, x32, 32-bit calls   the process is killed
 *	a call that has rules for its arguments   they are looked at
 *	any other call                            its number alone decides
 *
 * The numbers are an allow-list. Known calls that a box may never make answer
 * EPERM; numbers that are on no list, also those of later kernels, answer
 * ENOSYS, so that libraries fall back.
 *
 * Arguments are compared by their lower half: the kernel ignores the upper one
 * of a 32-bit argument, and so must we (CVE-2019-10063). A value that has bits
 * in the upper half only is none of those refused here.
 *
 * The numbers are searched in halves, by ranges that have one answer: the
 * kernel translates the whole program for every box, and walks through it once
 * for each call that exists to learn which are always allowed. So each
 * instruction costs each box something. libseccomp knows the numbers; what it
 * writes itself is twice as long.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define X32_BIT       0x40000000U

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

enum test {
	BITS,   /* refused when one of these bits is set */
	EQUAL,  /* refused when it is this value */
	DIFFER, /* refused when it is not this value */
	UNLESS, /* none of these bits: the rules that follow do not matter */
};

struct arg_rule {
	const char *call;
	unsigned int arg;
	enum test test;
	uint32_t value;
	int error;
};

#define NEW_NAMESPACES 0x7e020000 /* CLONE_NEW*, but NEWTIME */
#define NEW_TIME       0x00000080 /* in clone(2) part of the signal */
#define SET_ID         (S_ISUID | S_ISGID)
/* O_TMPFILE without O_DIRECTORY, which it includes */
#define CREATING (O_CREAT | 020000000)

/* The rules of one call stand together; the calls made most come first. */
static const struct arg_rule arg_rules[] = {
	/* huge pages are the host's, and no limit of a box counts them */
	{ "mmap", 3, BITS, 0x40000 /* MAP_HUGETLB */, ENOMEM },
	/* files that change who runs them */
	{ "openat", 2, UNLESS, CREATING, 0 },
	{ "openat", 3, BITS, SET_ID, EPERM },
	{ "open", 1, UNLESS, CREATING, 0 },
	{ "open", 2, BITS, SET_ID, EPERM },
	/* a lease makes writers on the host wait; both watch shared files */
	{ "fcntl", 1, EQUAL, 1024 /* F_SETLEASE */, EPERM },
	{ "fcntl", 1, EQUAL, 1026 /* F_NOTIFY */, EPERM },
	/* input pushed into a terminal, line disciplines, console ioctls */
	{ "ioctl", 1, EQUAL, 0x5412 /* TIOCSTI */, EPERM },
	{ "ioctl", 1, EQUAL, 0x541c /* TIOCLINUX */, EPERM },
	{ "ioctl", 1, EQUAL, 0x5423 /* TIOCSETD */, EPERM },
	{ "clone", 0, BITS, NEW_NAMESPACES, EPERM },
	{ "unshare", 0, BITS, NEW_NAMESPACES | NEW_TIME, EPERM },
	{ "shmget", 2, BITS, 04000 /* SHM_HUGETLB */, ENOMEM },
	{ "memfd_create", 1, BITS, 4 /* MFD_HUGETLB */, ENOMEM },
	{ "chmod", 1, BITS, SET_ID, EPERM },
	{ "fchmod", 1, BITS, SET_ID, EPERM },
	{ "fchmodat", 2, BITS, SET_ID, EPERM },
	{ "creat", 1, BITS, SET_ID, EPERM },
	{ "mknod", 1, BITS, SET_ID, EPERM },
	{ "mknodat", 2, BITS, SET_ID, EPERM },
	{ "socketpair", 0, DIFFER, AF_UNIX, EAFNOSUPPORT },
	/* only asked, never changed */
	{ "personality", 0, DIFFER, 0xffffffff, EPERM },
};

static void die(const char *what, const char *name)
{
	(void)fprintf(stderr, "filter-gen: %s '%s'\n", what, name);
	exit(1);
}

/* -1 for a name that this architecture does not have. */
static int number(const char *name)
{
	int nr = seccomp_syscall_resolve_name(name);

	if (nr == __NR_SCMP_ERROR)
		die("unknown call", name);
	return nr < 0 ? -1 : nr;
}

/* The program. */

#define MOST 2048

static struct sock_filter table[MOST];
static unsigned int n_table;

#define DATA(field) ((uint32_t)offsetof(struct seccomp_data, field))
#define ERROR(e)    (SECCOMP_RET_ERRNO | (uint32_t)(e))

static unsigned int emit(uint16_t code, uint32_t k, unsigned int jt,
			 unsigned int jf)
{
	if (n_table == MOST || jt > 255 || jf > 255)
		die("a jump or the program is too long at", "emit");
	table[n_table] = (struct sock_filter){
		.code = code, .jt = (uint8_t)jt, .jf = (uint8_t)jf, .k = k
	};
	return n_table++;
}

static void load(uint32_t offset)
{
	(void)emit(BPF_LD | BPF_W | BPF_ABS, offset, 0, 0);
}

static void ret(uint32_t what)
{
	(void)emit(BPF_RET | BPF_K, what, 0, 0);
}

static void check_architecture(void)
{
	load(DATA(arch));
	(void)emit(BPF_JMP | BPF_JEQ | BPF_K, seccomp_arch_native(), 1, 0);
	ret(SECCOMP_RET_KILL_PROCESS);
	load(DATA(nr));
#ifdef __x86_64__
	/* x32; and -1, which a tracer leaves where it took a call away */
	(void)emit(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 3);
	(void)emit(BPF_JMP | BPF_JEQ | BPF_K, 0xffffffff, 0, 1);
	ret(ERROR(ENOSYS));
	ret(SECCOMP_RET_KILL_PROCESS);
#endif
}

/* The argument's lower half; every architecture here is little-endian. */
static void check_argument(const struct arg_rule *r)
{
	load(DATA(args) + r->arg * sizeof(uint64_t));
	switch (r->test) {
	case BITS:
		(void)emit(BPF_JMP | BPF_JSET | BPF_K, r->value, 0, 1);
		break;
	case EQUAL:
		(void)emit(BPF_JMP | BPF_JEQ | BPF_K, r->value, 0, 1);
		break;
	case DIFFER:
		(void)emit(BPF_JMP | BPF_JEQ | BPF_K, r->value, 1, 0);
		break;
	case UNLESS:
		(void)emit(BPF_JMP | BPF_JSET | BPF_K, r->value, 1, 0);
		ret(SECCOMP_RET_ALLOW);
		return;
	}
	ret(ERROR(r->error));
}

static void check_arguments(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(arg_rules);) {
		const char *call = arg_rules[i].call;
		int nr = number(call);
		unsigned int start = n_table;

		if (nr >= 0)
			(void)emit(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0,
				   0);
		for (; i < ARRAY_SIZE(arg_rules) &&
		       strcmp(arg_rules[i].call, call) == 0;
		     i++)
			if (nr >= 0)
				check_argument(&arg_rules[i]);
		if (nr < 0)
			continue;
		ret(SECCOMP_RET_ALLOW);
		table[start].jf = (uint8_t)(n_table - start - 1);
	}
}

/* The numbers, as ranges with one answer. */

#define NUMBERS 1024

struct range {
	uint32_t from;
	uint32_t answer;
};

static uint32_t answers[NUMBERS];
static struct range ranges[NUMBERS];

static void answer(const char *name, uint32_t what)
{
	int nr = number(name);

	if (nr >= NUMBERS)
		die("a number is too high:", name);
	if (nr >= 0)
		answers[nr] = what;
}

/*
 * `may_bear`: for an init that lets programs be born into groups, by a call
 * whose flags a filter cannot see. Each of its children gets the ordinary
 * filter on top, before it is anything else.
 */
static size_t find_ranges(uint32_t socket_answer, bool may_bear)
{
	size_t n = 0;

	for (size_t i = 0; i < NUMBERS; i++)
		answers[i] = ERROR(ENOSYS);
	for (size_t i = 0; i < ARRAY_SIZE(allowed); i++)
		answer(allowed[i], SECCOMP_RET_ALLOW);
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		answer(refused[i], ERROR(EPERM));
	answer("socket", socket_answer);
	if (may_bear)
		answer("clone3", SECCOMP_RET_ALLOW);
	for (uint32_t i = 0; i < NUMBERS; i++)
		if (i == 0 || answers[i] != answers[i - 1])
			ranges[n++] = (struct range){ i, answers[i] };
	return n;
}

/* Below the middle goes on with the next instruction, the rest jumps. */
static void search(const struct range *r, size_t n)
{
	size_t half = n / 2;
	unsigned int at;

	if (n == 1) {
		ret(r->answer);
		return;
	}
	(void)emit(BPF_JMP | BPF_JGE | BPF_K, r[half].from, 0, 1);
	at = emit(BPF_JMP | BPF_JA, 0, 0, 0);
	search(r, half);
	table[at].k = n_table - at - 1;
	/* Near enough for the comparison to jump by itself? */
	if (table[at].k <= 254) {
		memmove(&table[at], &table[at + 1],
			(n_table - at - 1) * sizeof(*table));
		n_table--;
		table[at - 1].jt = (uint8_t)(n_table - at);
		table[at - 1].jf = 0;
	}
	search(r + half, n - half);
}

/*
 * Where only listed programs may run: a file in memory would be executed
 * past every rule about places. It stands beside the other one, which sees
 * to architectures.
 */
static void forbid_memfd(void)
{
	load(DATA(nr));
	(void)emit(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number("memfd_create"),
		   0, 1);
	ret(ERROR(EPERM));
	ret(SECCOMP_RET_ALLOW);
}

static void print(const char *name)
{
	printf("\nstatic const struct uapi_filter %s[] = {\n", name);
	for (unsigned int i = 0; i < n_table; i++)
		printf("\t{ 0x%02x, %u, %u, 0x%08x },\n", table[i].code,
		       table[i].jt, table[i].jf, table[i].k);
	printf("};\n");
	n_table = 0;
}

/* The whole filter; what differs is who answers to socket(2). */
static void make(const char *name, uint32_t socket_answer, bool may_bear)
{
	check_architecture();
	check_arguments();
	search(ranges, find_ranges(socket_answer, may_bear));
	print(name);
}

int main(void)
{
	printf("/* Made by filter-gen.c; do not edit. */\n");
	make("filter", ERROR(EAFNOSUPPORT), false);
	/* init answers the same, and counts (src/init/witness.c). */
	make("filter_witness", SECCOMP_RET_USER_NOTIF, false);
	make("filter_stays", ERROR(EAFNOSUPPORT), true);
	forbid_memfd();
	print("filter_commands");
	return 0;
}
