/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A procfs of the box's own pid namespace, with everything at its top covered
 * but what programs need. The list says what stays, so an entry that a later
 * kernel adds is covered too.
 *
 * The keeper's mount namespace, of which ours is a copy, holds for this:
 *	/proc	the host's, which the kernel wants to see before it lets a
 *		user namespace mount another
 *	/empty	a file without content
 *	/void	a directory without content
 */

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/util.h"
#include "init/init.h"
#include "os/mnt.h"
#include "os/uapi.h"

static const char *const kept[] = {
	"self", "thread-self", "mounts", "net", "filesystems", "version", "sys",
};

struct dirent64 {
	uint64_t ino;
	int64_t off;
	uint16_t len;
	uint8_t type;
	char name[];
};

enum { TYPE_DIR = 4, TYPE_REG = 8 };

static bool is_kept(const char *name)
{
	if (name[0] == '.' || (name[0] >= '0' && name[0] <= '9'))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		if (strcmp(name, kept[i]) == 0)
			return true;
	return false;
}

static int cover(struct init *in, const struct dirent64 *d)
{
	char path[280];
	const char *with = d->type == TYPE_DIR ? "/void" : "/empty";

	if (d->type != TYPE_DIR && d->type != TYPE_REG)
		return err_set(&in->err, EINVAL,
			       "/proc/%s is of an unknown kind", d->name);
	(void)snprintf(path, sizeof(path), "/proc/%s", d->name);
	if (mount(with, path, NULL, MS_BIND, NULL) < 0)
		return err_errno(&in->err, errno, "cover %s", path);
	return 0;
}

static int cover_all(struct init *in)
{
	static char buf[16384] __attribute__((aligned(8)));
	_cleanup_fd_ int dir = open("/proc", O_RDONLY | O_DIRECTORY |
						     O_CLOEXEC);

	if (dir < 0)
		return err_errno(&in->err, errno, "open /proc");
	for (;;) {
		long n = syscall(SYS_getdents64, dir, buf, sizeof(buf));

		if (n < 0)
			return err_errno(&in->err, errno, "list /proc");
		if (n == 0)
			return 0;
		for (long at = 0; at < n;) {
			const struct dirent64 *d = (const void *)(buf + at);

			if (!is_kept(d->name) && cover(in, d) < 0)
				return -in->err.code;
			at += d->len;
		}
	}
}

/* /proc/sys stays readable, for programs that ask it for limits. */
static int freeze_sys(struct init *in)
{
	_cleanup_fd_ int sys = mnt_clone(AT_FDCWD, "/proc/sys", &in->err);

	if (sys < 0 ||
	    mnt_restrict(sys, UAPI_MOUNT_ATTR_RDONLY, &in->err) < 0)
		return -in->err.code;
	return mnt_attach_at(sys, AT_FDCWD, "/proc/sys", &in->err);
}

int stage_proc(struct init *in)
{
	_cleanup_fd_ int proc =
		mnt_new("proc", NULL, 0,
			MNT_SAFE | UAPI_MOUNT_ATTR_NOEXEC, &in->err);

	if (proc == -EPERM)
		return err_set(&in->err, EPERM,
			       "mount a procfs: the kernel refuses it where "
			       "parts of the host's own /proc are covered, as "
			       "in a container; run Cordon outside, or start "
			       "the container with an uncovered /proc (docker: "
			       "--security-opt systempaths=unconfined)");
	if (proc < 0 || mnt_attach_at(proc, AT_FDCWD, "/proc", &in->err) < 0)
		return -in->err.code;
	if (cover_all(in) < 0)
		return -in->err.code;
	return freeze_sys(in);
}
