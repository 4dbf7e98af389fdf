/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The box's root to be, and in it a procfs of its own pid namespace that shows
 * at its top only what programs need.
 *
 * The root is a tmpfs, mounted over "/" of the mount namespace that we were
 * born with, a copy of the keeper's. Until its place is ready the procfs waits
 * at /.proc; /proc of the root then hides the files that stand in for the
 * kernel's.
 *
 * What may be seen is held by mounting it on itself, or a file of the root on
 * it. Then the procfs is told to have no entries but processes (subset=pid):
 * a name that is held is still found, every other one does not exist any
 * more, also one that a later kernel adds. That costs ten mounts instead of
 * one for each of some fifty entries. Where it has no effect, those that are
 * still listed are covered one by one.
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

static const char *const held[] = { "mounts", "net", "filesystems", "version",
				    "sys" };

enum { TYPE_DIR = 4, TYPE_REG = 8 };

static bool is_kept(const char *name)
{
	if (name[0] == '.' || (name[0] >= '0' && name[0] <= '9') ||
	    strcmp(name, "self") == 0 || strcmp(name, "thread-self") == 0)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(held); i++)
		if (strcmp(name, held[i]) == 0)
			return true;
	for (size_t i = 0; proc_instead[i]; i++)
		if (strcmp(name, proc_instead[i]) == 0)
			return true;
	return false;
}

/* By mount(2) a link would be followed, and some are: of the procfs, or of
 * the spec, which may be forged. */
int proc_cover(struct init *in, const char *with, const char *path)
{
	_cleanup_fd_ int mnt = mnt_clone(AT_FDCWD, with, &in->err);

	if (mnt < 0)
		return mnt;
	if (sys_move_mount(mnt, "", AT_FDCWD, path,
			   UAPI_MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_errno(&in->err, errno, "cover %s", path);
	return 0;
}

static int cover(struct init *in, const struct dirent64 *d)
{
	char path[280];
	const char *with = d->type == TYPE_DIR ? "/proc/void" : "/proc/empty";

	if (d->type != TYPE_DIR && d->type != TYPE_REG)
		return err_set(&in->err, EINVAL,
			       "/proc/%s is of an unknown kind", d->name);
	if ((mkdir("/proc/void", 0555) < 0 && errno != EEXIST) ||
	    (mknod("/proc/empty", S_IFREG | 0444, 0) < 0 && errno != EEXIST))
		return err_errno(&in->err, errno, "make something empty");
	(void)snprintf(path, sizeof(path), "/.proc/%s", d->name);
	return proc_cover(in, with, path);
}

static int cover_all(struct init *in)
{
	static char buf[16384] __attribute__((aligned(8)));
	_cleanup_fd_ int dir = openat(AT_FDCWD, "/.proc",
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

int proc_hide(struct init *in)
{
	/* Whether it is obeyed is seen in what is listed. */
	(void)mount(NULL, "/.proc", NULL,
		    MS_REMOUNT | MS_NOSUID | MS_NODEV | MS_NOEXEC,
		    "subset=pid");
	return cover_all(in);
}

static int hold(struct init *in, const char *name)
{
	char path[32];

	(void)snprintf(path, sizeof(path), ".proc/%s", name);
	return proc_cover(in, path, path);
}

static int hold_all(struct init *in)
{
	for (size_t i = 0; i < ARRAY_SIZE(held); i++)
		if (hold(in, held[i]) < 0)
			return -in->err.code;
	return 0;
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

	in->root = mnt_tmpfs(&opt, &in->err);
	if (in->root < 0)
		return in->root;
	if (sys_move_mount(in->root, "", AT_FDCWD, "/",
			   UAPI_MOVE_MOUNT_F_EMPTY_PATH) < 0 ||
	    fchdir(in->root) < 0)
		return err_errno(&in->err, errno, "mount a root");
	if (mkdir(".proc", 0755) < 0 || mkdir("proc", 0755) < 0)
		return err_errno(&in->err, errno, "make directories");
	return 0;
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
	if (forbid_namespaces(in) < 0 || go_first(in) < 0 || hold_all(in) < 0)
		return -in->err.code;
	return 0;
}
