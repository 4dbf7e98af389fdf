/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The process that reads archives, with nothing else in its reach. Three walls,
 * each enough to keep a broken parser off the machine's other files: Landlock
 * (which files), no capabilities (root is then only the store's owner), and a
 * list of system calls.
 */

#include <linux/seccomp.h>
#include <seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/util.h"
#include "image/doc.h"
#include "image/store.h"
#include "image/stream.h"
#include "os/caps.h"
#include "os/landlock.h"

/* What reading, unpacking, writing and telling about it take. */
static const int calls[] = {
	SCMP_SYS(read),
	SCMP_SYS(write),
	SCMP_SYS(readv),
	SCMP_SYS(writev),
	SCMP_SYS(pread64),
	SCMP_SYS(pwrite64),
	SCMP_SYS(lseek),
	SCMP_SYS(close),
	SCMP_SYS(openat),
	SCMP_SYS(openat2),
	SCMP_SYS(fstat),
	SCMP_SYS(newfstatat),
	SCMP_SYS(statx),
	SCMP_SYS(getdents64),
	SCMP_SYS(fcntl),
	SCMP_SYS(flock),
	SCMP_SYS(fsync),
	SCMP_SYS(fdatasync),
	SCMP_SYS(syncfs),
	SCMP_SYS(ftruncate),
	SCMP_SYS(mkdirat),
	SCMP_SYS(mknodat),
	SCMP_SYS(unlinkat),
	SCMP_SYS(renameat),
	SCMP_SYS(renameat2),
	SCMP_SYS(linkat),
	SCMP_SYS(symlinkat),
	SCMP_SYS(fchmod),
	SCMP_SYS(fchmodat),
	SCMP_SYS(utimensat),
	SCMP_SYS(fsetxattr),
	SCMP_SYS(fadvise64),
	SCMP_SYS(mmap),
	SCMP_SYS(munmap),
	SCMP_SYS(mremap),
	SCMP_SYS(mprotect),
	SCMP_SYS(madvise),
	SCMP_SYS(brk),
	SCMP_SYS(futex),
	SCMP_SYS(getrandom),
	SCMP_SYS(clock_gettime),
	SCMP_SYS(gettimeofday),
	SCMP_SYS(rt_sigaction),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(sigaltstack),
	SCMP_SYS(restart_syscall),
	SCMP_SYS(sched_yield),
	SCMP_SYS(getpid),
	SCMP_SYS(gettid),
	SCMP_SYS(getuid),
	SCMP_SYS(geteuid),
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
};

static int enter_filter(struct err *err)
{
	scmp_filter_ctx f = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int r = f ? 0 : -ENOMEM;

	for (size_t i = 0; i < ARRAY_SIZE(calls) && r == 0; i++)
		r = seccomp_rule_add(f, SCMP_ACT_ALLOW, calls[i], 0);
	/* Whether standard output is a terminal. */
	if (r == 0)
		r = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1,
				     SCMP_A1(SCMP_CMP_EQ, 0x5401 /* TCGETS */));
	if (r == 0)
		r = seccomp_load(f);
	seccomp_release(f);
	return r < 0 ? err_errno(err, -r, "install the system call filter") : 0;
}

static int enter_landlock(struct image_store *s, int input, struct err *err)
{
	struct landlock l;
	int r;

	/* Before the second ABI (Linux 5.19) no file can change directory. */
	if (landlock_abi() == 1)
		return err_set(err, EOPNOTSUPP,
			       "this kernel's Landlock is too old; Linux 5.19 "
			       "has what is needed, or pass --best-effort "
			       "landlock");
	if (landlock_open(&l, err) < 0)
		return -err->code;
	r = landlock_allow(&l, s->dir, true, LANDLOCK_WRITE | LANDLOCK_MARKS,
			   err);
	if (r == 0 && input >= 0)
		r = landlock_allow(&l, input, true, 0, err);
	if (r == 0)
		return landlock_enter(&l, err);
	fd_close(&l.fd);
	return r;
}

int image_confine(struct image_store *s, int input, bool is_landlock_optional,
		  struct err *err)
{
	size_t seed = 0;

	/* What would later be read from files: letters, and a hash's seed. */
	(void)image_utf8_enter();
	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		return err_errno(err, errno, "get random bytes");
	json_object_seed(seed | 1);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_errno(err, errno, "give up new privileges");
	if (!is_landlock_optional || landlock_abi() > 1)
		if (enter_landlock(s, input, err) < 0)
			return -err->code;
	if (geteuid() == 0 && caps_drop_all(err) < 0)
		return -err->code;
	return enter_filter(err);
}
