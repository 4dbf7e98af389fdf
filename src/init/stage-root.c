/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The box's root: a tmpfs of its own with a few directories, links and small
 * files, into which everything else is mounted. It is built at /root of the
 * keeper's empty mount namespace and then becomes the root.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "init/init.h"
#include "os/mnt.h"
#include "os/uapi.h"

/*
 * Files of the root's own that stand in for the kernel's. The spec puts them
 * into /proc of the root, where the procfs will hide them.
 */
static const char *const instead[] = {
	"cpuinfo", "meminfo", "stat", "uptime", "loadavg",
};

int stage_root(struct init *in)
{
	const struct mnt_tmpfs opt = {
		.size = in->spec->flags & WIRE_ROOT_RW ? in->spec->limits.fsize :
							 4 << 20,
		.inodes = 16384,
		.mode = 0755,
		.uid = in->spec->uid,
		.gid = in->spec->gid,
		.attr = MNT_SAFE,
	};

	in->root = mnt_tmpfs(&opt, &in->err);
	if (in->root < 0 ||
	    mnt_attach_at(in->root, AT_FDCWD, "/root", &in->err) < 0)
		return -in->err.code;
	return records_lay(in, false);
}

static int mount_one(struct init *in, uint32_t i)
{
	const struct wire_mount *m = &in->spec->mounts[i];
	const char *target = wire_str(in->spec, m->target);
	bool is_file = m->kind == WIRE_DEV || (m->flags & WIRE_MNT_FILE);
	int r;

	if (in->mounts[i] < 0)
		return 0;
	r = place_make(in, target, is_file);
	if (r < 0)
		return err_errno(&in->err, -r,
				 "make the mount point '%s' in the box",
				 target);
	r = mnt_attach_at(in->mounts[i], in->root, target, &in->err);
	fd_close(&in->mounts[i]);
	return r;
}

/* Covers an entry of the new procfs with our own file of that name. */
static int stand_in(struct init *in, const char *name)
{
	char ours[64];
	char theirs[64];
	_cleanup_fd_ int mnt = NO_FD;

	(void)snprintf(ours, sizeof(ours), "proc/%s", name);
	(void)snprintf(theirs, sizeof(theirs), "/proc/%s", name);
	mnt = mnt_clone(in->root, ours, &in->err);
	if (mnt < 0 || mnt_restrict(mnt, UAPI_MOUNT_ATTR_RDONLY, &in->err) < 0)
		return -in->err.code;
	return mnt_attach_at(mnt, AT_FDCWD, theirs, &in->err);
}

int stage_mounts(struct init *in)
{
	_cleanup_fd_ int proc = NO_FD;

	for (uint32_t i = 0; i < in->spec->n_mounts; i++)
		if (mount_one(in, i) < 0)
			return -in->err.code;
	for (size_t i = 0; i < ARRAY_SIZE(instead); i++)
		if (stand_in(in, instead[i]) < 0)
			return -in->err.code;
	proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc < 0)
		return err_errno(&in->err, errno, "open /proc");
	return mnt_attach_at(proc, in->root, "proc", &in->err);
}

int stage_files(struct init *in)
{
	return records_lay(in, true);
}

int stage_enter(struct init *in)
{
	struct uapi_mount_attr ro = { .attr_set = UAPI_MOUNT_ATTR_RDONLY };

	if (!(in->spec->flags & WIRE_ROOT_RW) &&
	    sys_mount_setattr(in->root, "", AT_EMPTY_PATH, &ro) < 0)
		return err_errno(&in->err, errno, "make the root read-only");
	/* The old root ends up below the new one, and is let go at once. */
	if (fchdir(in->root) < 0 || sys_pivot_root(".", ".") < 0)
		return err_errno(&in->err, errno, "change the root");
	if (umount2(".", MNT_DETACH) < 0)
		return err_errno(&in->err, errno, "let go of the old root");
	if (chdir("/") < 0)
		return err_errno(&in->err, errno, "enter the new root");
	return 0;
}
