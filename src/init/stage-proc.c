/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The box's root to be, and in it a procfs of its own pid namespace with
 * everything at the top covered but what programs need. The list says what
 * stays, so an entry that a later kernel adds is covered too. What files of
 * the root stand in for is covered with them, in stage_mounts().
 *
 * The root is a tmpfs, mounted over "/" of the mount namespace that we were
 * born with, a copy of the keeper's. Until its place is ready the procfs waits
 * at /.proc; /proc of the root then hides what covers it: one empty file and
 * one empty directory, and later the files that stand in for the kernel's.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/io.h"
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
	for (size_t i = 0; proc_instead[i]; i++)
		if (strcmp(name, proc_instead[i]) == 0)
			return true;
	return false;
}

static int cover(struct init *in, const struct dirent64 *d)
{
	char path[280];
	const char *with = d->type == TYPE_DIR ? "proc/void" : "proc/empty";

	if (d->type != TYPE_DIR && d->type != TYPE_REG)
		return err_set(&in->err, EINVAL,
			       "/proc/%s is of an unknown kind", d->name);
	(void)snprintf(path, sizeof(path), ".proc/%s", d->name);
	if (mount(with, path, NULL, MS_BIND, NULL) < 0)
		return err_errno(&in->err, errno, "cover /proc/%s", d->name);
	return 0;
}

static int cover_all(struct init *in)
{
	static char buf[16384] __attribute__((aligned(8)));
	_cleanup_fd_ int dir = open(".proc",
				    O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return err_errno(&in->err, errno, "open the new procfs");
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

/* The root to be, over the old one, and our working directory. */
static int make_root(struct init *in)
{
	const struct mnt_tmpfs opt = {
		.size = 4 << 20,
		.inodes = 16384,
		.mode = 0755,
		.uid = in->go.uid,
		.gid = in->go.gid,
		.attr = MNT_SAFE,
	};
	_cleanup_fd_ int empty = NO_FD;

	in->root = mnt_tmpfs(&opt, &in->err);
	if (in->root < 0)
		return in->root;
	if (sys_move_mount(in->root, "", AT_FDCWD, "/",
			   UAPI_MOVE_MOUNT_F_EMPTY_PATH) < 0 ||
	    fchdir(in->root) < 0)
		return err_errno(&in->err, errno, "mount a root");
	if (mkdir(".proc", 0755) < 0 || mkdir("proc", 0755) < 0 ||
	    mkdir("proc/void", 0555) < 0)
		return err_errno(&in->err, errno, "make directories");
	empty = open("proc/empty", O_CREAT | O_WRONLY | O_CLOEXEC, 0444);
	return empty < 0 ? err_errno(&in->err, errno, "make a file") : 0;
}

/*
 * No user namespaces below this one, even if the filter were not there. The
 * count is of this namespace's descendants, so the box itself is in nobody's.
 */
static int forbid_namespaces(struct init *in)
{
	int r = io_write_file(AT_FDCWD, ".proc/sys/user/max_user_namespaces",
			      "0");

	if (r < 0)
		return err_errno(&in->err, -r, "forbid user namespaces");
	return 0;
}

/* When memory runs out on the host, boxes go before it. */
static int go_first(struct init *in)
{
	int r = io_write_file(AT_FDCWD, ".proc/self/oom_score_adj", "300");

	if (r < 0)
		return err_errno(&in->err, -r, "set oom_score_adj");
	return 0;
}

int stage_proc(struct init *in)
{
	_cleanup_fd_ int proc = NO_FD;

	if (make_root(in) < 0)
		return -in->err.code;
	proc = mnt_new("proc", NULL, 0, MNT_SAFE | UAPI_MOUNT_ATTR_NOEXEC,
		       &in->err);
	if (proc == -EPERM)
		return err_set(&in->err, EPERM,
			       "mount a procfs: the kernel refuses it where "
			       "parts of the host's own /proc are covered, as "
			       "in a container; run Cordon outside, or start "
			       "the container with an uncovered /proc (docker: "
			       "--security-opt systempaths=unconfined)");
	if (proc < 0)
		return proc;
	if (sys_move_mount(proc, "", AT_FDCWD, ".proc",
			   UAPI_MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_errno(&in->err, errno, "mount a procfs");
	if (forbid_namespaces(in) < 0 || go_first(in) < 0 || cover_all(in) < 0)
		return -in->err.code;
	return 0;
}
