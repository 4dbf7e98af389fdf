/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The kernel's interface where the C libraries' headers are too old or do
 * not agree with the kernel's own: system calls since Linux 5.2, their
 * structures and constants. Numbers from 424 on are the same on all
 * architectures. Nothing here does more than make the call; each returns what
 * the call returns and sets errno.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
#ifndef SYS_open_tree
#define SYS_open_tree  428
#define SYS_move_mount 429
#define SYS_fsopen     430
#define SYS_fsconfig   431
#define SYS_fsmount    432
#define SYS_fspick     433
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef SYS_faccessat2
#define SYS_faccessat2 439
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule       445
#define SYS_landlock_restrict_self  446
#endif

/* sched_setattr(2), as far as tasks without a deadline have it */
struct uapi_sched_attr {
	uint32_t size;
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime; /* the length of a slice, in nanoseconds */
	uint64_t deadline;
	uint64_t period;
};

static inline int sys_sched_getattr(pid_t pid, struct uapi_sched_attr *ret)
{
	return (int)syscall(SYS_sched_getattr, pid, ret, sizeof(*ret), 0);
}

static inline int sys_sched_setattr(pid_t pid,
				    const struct uapi_sched_attr *attr)
{
	return (int)syscall(SYS_sched_setattr, pid, attr, 0);
}

/* clone3(2) */
#define UAPI_CLONE_FILES          0x00000400ULL
#define UAPI_CLONE_VM             0x00000100ULL
#define UAPI_CLONE_PIDFD          0x00001000ULL
#define UAPI_CLONE_VFORK          0x00004000ULL
#define UAPI_CLONE_PARENT         0x00008000ULL
#define UAPI_CLONE_NEWNS          0x00020000ULL
#define UAPI_CLONE_PARENT_SETTID  0x00100000ULL
#define UAPI_CLONE_CHILD_CLEARTID 0x00200000ULL
#define UAPI_CLONE_NEWCGROUP      0x02000000ULL
#define UAPI_CLONE_NEWUTS         0x04000000ULL
#define UAPI_CLONE_NEWIPC         0x08000000ULL
#define UAPI_CLONE_NEWUSER        0x10000000ULL
#define UAPI_CLONE_NEWPID         0x20000000ULL
#define UAPI_CLONE_NEWNET         0x40000000ULL
#define UAPI_CLONE_CLEAR_SIGHAND  0x100000000ULL
#define UAPI_CLONE_INTO_CGROUP    0x200000000ULL

struct uapi_clone_args {
	uint64_t flags;
	uint64_t pidfd;
	uint64_t child_tid;
	uint64_t parent_tid;
	uint64_t exit_signal;
	uint64_t stack;
	uint64_t stack_size;
	uint64_t tls;
	uint64_t set_tid;
	uint64_t set_tid_size;
	uint64_t cgroup;
};

/* rt_sigaction(2); C libraries keep some numbers to themselves */
#define UAPI_NSIG    64
#define UAPI_SIG_IGN 1

struct uapi_sigaction {
	uint64_t handler;
	uint64_t flags;
	uint64_t restorer;
	uint64_t mask;
};

/* futex(2) */
#define UAPI_FUTEX_WAIT 0
#define UAPI_FUTEX_WAKE 1

/* openat2(2) */
#define UAPI_RESOLVE_NO_XDEV       0x01
#define UAPI_RESOLVE_NO_MAGICLINKS 0x02
#define UAPI_RESOLVE_NO_SYMLINKS   0x04
#define UAPI_RESOLVE_BENEATH       0x08
#define UAPI_RESOLVE_IN_ROOT       0x10

struct uapi_open_how {
	uint64_t flags;
	uint64_t mode;
	uint64_t resolve;
};

static inline int sys_openat2(int dirfd, const char *path,
			      const struct uapi_open_how *how)
{
	return (int)syscall(SYS_openat2, dirfd, path, how, sizeof(*how));
}

/* By system call: a library may ask with other ids than the fsuid. */
static inline int sys_faccessat2(int dirfd, const char *path, int mode,
				 int flags)
{
	return (int)syscall(SYS_faccessat2, dirfd, path, mode, flags);
}

/* The mount calls of Linux 5.2 and mount_setattr(2) of 5.12 */
#define UAPI_OPEN_TREE_CLONE          1U
#define UAPI_OPEN_TREE_CLOEXEC        02000000U
#define UAPI_AT_RECURSIVE             0x8000U
#define UAPI_MOVE_MOUNT_F_EMPTY_PATH  0x04U
#define UAPI_MOVE_MOUNT_T_EMPTY_PATH  0x40U
#define UAPI_FSOPEN_CLOEXEC           1U
#define UAPI_FSMOUNT_CLOEXEC          1U
#define UAPI_FSCONFIG_SET_FLAG        0U
#define UAPI_FSCONFIG_SET_STRING      1U
#define UAPI_FSCONFIG_CMD_CREATE      6U
#define UAPI_FSCONFIG_CMD_RECONFIGURE 7U
#define UAPI_MOUNT_ATTR_RDONLY        0x01ULL
#define UAPI_MOUNT_ATTR_NOSUID        0x02ULL
#define UAPI_MOUNT_ATTR_NODEV         0x04ULL
#define UAPI_MOUNT_ATTR_NOEXEC        0x08ULL
#define UAPI_MOUNT_ATTR_IDMAP         0x00100000ULL

struct uapi_mount_attr {
	uint64_t attr_set;
	uint64_t attr_clr;
	uint64_t propagation;
	uint64_t userns_fd;
};

static inline int sys_open_tree(int dirfd, const char *path, unsigned int flags)
{
	return (int)syscall(SYS_open_tree, dirfd, path, flags);
}

static inline int sys_move_mount(int from, const char *from_path, int to,
				 const char *to_path, unsigned int flags)
{
	return (int)syscall(SYS_move_mount, from, from_path, to, to_path,
			    flags);
}

static inline int sys_fsopen(const char *type)
{
	return (int)syscall(SYS_fsopen, type, UAPI_FSOPEN_CLOEXEC);
}

static inline int sys_fsconfig(int fd, unsigned int cmd, const char *key,
			       const char *value)
{
	return (int)syscall(SYS_fsconfig, fd, cmd, key, value, 0);
}

static inline int sys_fsmount(int fd, unsigned int attr)
{
	return (int)syscall(SYS_fsmount, fd, UAPI_FSMOUNT_CLOEXEC, attr);
}

static inline int sys_fspick(int dirfd, const char *path, unsigned int flags)
{
	return (int)syscall(SYS_fspick, dirfd, path, flags);
}

static inline int sys_mount_setattr(int dirfd, const char *path,
				    unsigned int flags,
				    struct uapi_mount_attr *attr)
{
	return (int)syscall(SYS_mount_setattr, dirfd, path, flags, attr,
			    sizeof(*attr));
}

static inline int sys_pivot_root(const char *new_root, const char *put_old)
{
	return (int)syscall(SYS_pivot_root, new_root, put_old);
}

/* Processes */
static inline int sys_pidfd_open(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

static inline int sys_pidfd_kill(int pidfd, int sig)
{
	return (int)syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0);
}

static inline int sys_close_range(unsigned int first, unsigned int last)
{
	return (int)syscall(SYS_close_range, first, last, 0);
}

/* seccomp(2): classic BPF */
struct uapi_filter {
	uint16_t code;
	uint8_t jt;
	uint8_t jf;
	uint32_t k;
};

struct uapi_fprog {
	unsigned short len;
	const struct uapi_filter *filter;
};

/* seccomp_unotify(2), Linux 5.0 */
#define UAPI_SECCOMP_SET_FILTER   1U
#define UAPI_SECCOMP_NEW_LISTENER (1UL << 3)

struct uapi_notif {
	uint64_t id;
	uint32_t pid;
	uint32_t flags;
	uint64_t data[8]; /* struct seccomp_data */
};

struct uapi_notif_answer {
	uint64_t id;
	int64_t val;
	int32_t error;
	uint32_t flags;
};

#define UAPI_NOTIF_RECV _IOWR('!', 0, struct uapi_notif)
#define UAPI_NOTIF_SEND _IOWR('!', 1, struct uapi_notif_answer)

/* landlock(7), ABI 7 */
#define UAPI_LANDLOCK_VERSION         1U
#define UAPI_LANDLOCK_PATH_BENEATH    1
#define UAPI_LANDLOCK_EXECUTE         (1ULL << 0)
#define UAPI_LANDLOCK_WRITE_FILE      (1ULL << 1)
#define UAPI_LANDLOCK_READ_FILE       (1ULL << 2)
#define UAPI_LANDLOCK_READ_DIR        (1ULL << 3)
#define UAPI_LANDLOCK_MAKE_CHAR       (1ULL << 6)
#define UAPI_LANDLOCK_MAKE_SOCK       (1ULL << 9)
#define UAPI_LANDLOCK_MAKE_FIFO       (1ULL << 10)
#define UAPI_LANDLOCK_MAKE_BLOCK      (1ULL << 11)
#define UAPI_LANDLOCK_MAKE_SYM        (1ULL << 12)
#define UAPI_LANDLOCK_REFER           (1ULL << 13)
#define UAPI_LANDLOCK_TRUNCATE        (1ULL << 14)
#define UAPI_LANDLOCK_IOCTL_DEV       (1ULL << 15)
#define UAPI_LANDLOCK_NET_BIND_TCP    (1ULL << 0)
#define UAPI_LANDLOCK_NET_CONNECT_TCP (1ULL << 1)
#define UAPI_LANDLOCK_SCOPE_ABSTRACT  (1ULL << 0)
#define UAPI_LANDLOCK_SCOPE_SIGNAL    (1ULL << 1)

struct uapi_landlock_ruleset {
	uint64_t fs;
	uint64_t net;
	uint64_t scoped;
};

struct uapi_landlock_beneath {
	uint64_t allowed;
	int32_t parent_fd;
} __attribute__((packed));
