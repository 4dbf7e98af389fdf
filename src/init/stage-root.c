/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The box's root: a tmpfs of its own with a few directories, links and small
 * files, into which everything else is mounted. It is made at /root of the
 * keeper's empty mount namespace and becomes the root while it is still
 * empty; the procfs waits in it at /.proc until its place is ready.
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
	_cleanup_fd_ int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (proc < 0)
		return err_errno(&in->err, errno, "open /proc");
	in->root = mnt_tmpfs(&opt, &in->err);
	if (in->root < 0 ||
	    mnt_attach_at(in->root, AT_FDCWD, "/root", &in->err) < 0)
		return -in->err.code;
	if (mkdirat(in->root, ".proc", 0755) < 0)
		return err_errno(&in->err, errno, "make a place for /proc");
	return mnt_attach_at(proc, in->root, ".proc", &in->err);
}

int stage_enter(struct init *in)
{
	if (make_root(in) < 0)
		return -in->err.code;
	/* The old root ends up below the new one, and is let go at once. */
	if (fchdir(in->root) < 0 || sys_pivot_root(".", ".") < 0)
		return err_errno(&in->err, errno, "change the root");
	if (umount2(".", MNT_DETACH) < 0)
		return err_errno(&in->err, errno, "let go of the old root");
	if (chdir("/") < 0)
		return err_errno(&in->err, errno, "enter the new root");
	return 0;
}

int stage_root(struct init *in)
{
	return records_lay(in, &in->box->blob, in->box->records, true);
}

/*
 * Over what is mounted at `target`, a layer that takes changes: in the root,
 * whose size is limited, and which goes with the box.
 */
static int add_layer(struct init *in, uint32_t i, const char *target)
{
	char upper[32];
	char work[32];
	const char *const options[][2] = {
		{ "lowerdir", target },
		{ "upperdir", upper },
		{ "workdir", work },
	};
	_cleanup_fd_ int mnt = NO_FD;

	(void)snprintf(upper, sizeof(upper), "/.layer/%u/upper", i);
	(void)snprintf(work, sizeof(work), "/.layer/%u/work", i);
	if (place_make(in, upper, false) < 0 || place_make(in, work, false) < 0)
		return err_set(&in->err, EIO, "make a layer for '%s'", target);
	mnt = mnt_new("overlay", options, ARRAY_SIZE(options), MNT_SAFE,
		      &in->err);
	if (mnt < 0)
		return -in->err.code;
	return mnt_attach_at(mnt, in->root, target, &in->err);
}

static int mount_one(struct init *in, uint32_t i)
{
	const struct wire_mount *m = &in->box->mounts[i];
	const char *target = wire_str(&in->box->blob, m->target);
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
	if (r == 0 && (m->flags & WIRE_MNT_OVERLAY))
		r = add_layer(in, i, target);
	return r;
}

/* Covers an entry of the new procfs with our own file of that name. */
static int stand_in(struct init *in, const char *name)
{
	char ours[64];
	char theirs[64];
	_cleanup_fd_ int mnt = NO_FD;

	(void)snprintf(ours, sizeof(ours), "proc/%s", name);
	(void)snprintf(theirs, sizeof(theirs), ".proc/%s", name);
	mnt = mnt_clone(in->root, ours, &in->err);
	if (mnt < 0 || mnt_restrict(mnt, UAPI_MOUNT_ATTR_RDONLY, &in->err) < 0)
		return -in->err.code;
	return mnt_attach_at(mnt, in->root, theirs, &in->err);
}

int stage_mounts(struct init *in)
{
	_cleanup_fd_ int proc = NO_FD;

	for (uint32_t i = 0; i < in->box->n_mounts; i++)
		if (mount_one(in, i) < 0)
			return -in->err.code;
	for (size_t i = 0; i < ARRAY_SIZE(instead); i++)
		if (stand_in(in, instead[i]) < 0)
			return -in->err.code;
	proc = mnt_open_in(in->root, ".proc", &in->err);
	if (proc < 0 || mnt_attach_at(proc, in->root, "proc", &in->err) < 0)
		return -in->err.code;
	if (unlinkat(in->root, ".proc", AT_REMOVEDIR) < 0)
		return err_errno(&in->err, errno, "tidy up the root");
	return 0;
}

int stage_freeze(struct init *in)
{
	struct uapi_mount_attr ro = { .attr_set = UAPI_MOUNT_ATTR_RDONLY };
	char size[40];

	if (in->box->blob.flags & WIRE_ROOT_RW) {
		(void)snprintf(size, sizeof(size), "size=%llu",
			       (unsigned long long)in->box->limits.disk);
		if (mount(NULL, "/", NULL, MS_REMOUNT | MS_NOSUID | MS_NODEV,
			  size) < 0)
			return err_errno(&in->err, errno, "resize the root");
		return 0;
	}
	if (sys_mount_setattr(in->root, "", AT_EMPTY_PATH, &ro) < 0)
		return err_errno(&in->err, errno, "make the root read-only");
	return 0;
}
