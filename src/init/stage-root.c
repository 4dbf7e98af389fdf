/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The box's root: a tmpfs of its own with a few directories, links and small
 * files, into which everything else is mounted. It was made, empty but for a
 * procfs, in stage-proc.c. A root that can be written, or is an image, is made
 * beside it: stage-layers.c.
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
const char *const proc_instead[] = { "cpuinfo", "meminfo", "stat",
				     "uptime",  "loadavg", NULL };

int stage_enter(struct init *in)
{
	in->old = openat(AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (in->old < 0)
		return err_errno(&in->err, errno, "open the old root");
	/*
	 * The old root ends up on top of the new one. No path leads there but
	 * through "..", wherever that goes up to the root.
	 */
	if (fchdir(in->root) < 0 || sys_pivot_root(".", ".") < 0)
		return err_errno(&in->err, errno, "change the root");
	if (chdir("/") < 0)
		return err_errno(&in->err, errno, "enter the new root");
	return in->go.is_apart ? root_let_go(in) : 0;
}

int root_let_go(struct init *in)
{
	if (in->old < 0)
		return 0;
	if (fchdir(in->old) < 0 || umount2(".", MNT_DETACH) < 0)
		return err_errno(&in->err, errno, "let go of the old root");
	if (chdir("/") < 0)
		return err_errno(&in->err, errno, "enter the new root");
	fd_close(&in->old);
	return 0;
}

/*
 * In a single run not right after it was left: the kernel waits for all CPUs
 * here, and that takes far longer while the keeper is at work on another one.
 */
int stage_leave(struct init *in)
{
	if (root_let_go(in) < 0)
		return -in->err.code;
	return in->next < 0 ? 0 : layers_enter(in);
}

int stage_root(struct init *in)
{
	if (place_own(in, in->root) < 0)
		return err_set(&in->err, EIO, "look at the root");
	return records_lay(in, &in->box->blob, in->box->records, true);
}

/* In a root of layers, which may be foreign. */
static int mount_in_layers(struct init *in, uint32_t i, const char *target,
			   bool is_file)
{
	_cleanup_fd_ int place = layers_place(in, target, is_file);

	if (place < 0)
		return place;
	if (mnt_attach(in->mounts[i], place, &in->err) < 0)
		return err_wrap(&in->err, "mount on '%s'", target);
	if (in->box->mounts[i].kind == WIRE_TMPFS &&
	    place_own(in, in->mounts[i]) < 0)
		return err_set(&in->err, EIO, "look at '%s'", target);
	if ((in->box->mounts[i].flags & WIRE_MNT_OVERLAY) &&
	    layers_over_host(in, i, target) < 0)
		return -in->err.code;
	fd_close(&in->mounts[i]);
	return 0;
}

/*
 * What our own client puts into the root before anything of its caller: the
 * place is new and in the root itself, so nothing has to be looked at. 0 if
 * it is not that simple.
 */
static int mount_at_once(struct init *in, uint32_t i, const char *target,
			 bool is_file)
{
	int r;

	if (in->go.is_apart || i >= in->box->n_ours)
		return 0;
	r = is_file ? mknodat(in->root, target + 1, S_IFREG | 0444, 0)
		    : mkdirat(in->root, target + 1, 0755);
	return r == 0 && sys_move_mount(in->mounts[i], "", in->root, target + 1,
					UAPI_MOVE_MOUNT_F_EMPTY_PATH) == 0;
}

static int mount_in_place(struct init *in, uint32_t i, const char *target,
			  bool is_file)
{
	_cleanup_fd_ int place = place_open(in, target, is_file);

	if (place == -EROFS)
		return err_set(&in->err, EROFS,
			       "there is no '%s' to mount on, and nothing is "
			       "made in a directory of the host; make it there "
			       "first",
			       target);
	if (place < 0)
		return err_errno(&in->err, -place,
				 "make the mount point '%s' in the box",
				 target);
	if (mnt_attach(in->mounts[i], place, &in->err) < 0)
		return err_wrap(&in->err, "mount on '%s'", target);
	return 0;
}

static int mount_in_root(struct init *in, uint32_t i, const char *target,
			 bool is_file)
{
	int r = mount_at_once(in, i, target, is_file)
			? 0
			: mount_in_place(in, i, target, is_file);

	if (r == 0 && in->box->mounts[i].kind == WIRE_TMPFS &&
	    place_own(in, in->mounts[i]) < 0)
		r = err_set(&in->err, EIO, "look at '%s'", target);
	fd_close(&in->mounts[i]);
	return r;
}

/*
 * Where a program is to start. It may as well lie in a directory of the host,
 * where nothing is made: then the program says that it is not there.
 */
static int make_place(struct init *in, const char *target)
{
	int fd = place_open(in, target, false);

	fd_close(&fd);
	return 0;
}

static int mount_one(struct init *in, uint32_t i)
{
	const struct wire_mount *m = &in->box->mounts[i];
	const char *target = wire_str(&in->box->blob, m->target);
	bool is_file = m->kind == WIRE_DEV || (m->flags & WIRE_MNT_FILE);

	if (m->kind == WIRE_PLACE && in->next < 0)
		return make_place(in, target);
	if (wire_is_in_root(m->kind))
		return layers_part(in, m);
	if (in->mounts[i] < 0)
		return 0;
	if (in->next >= 0 && !layers_is_dev(target))
		return mount_in_layers(in, i, target, is_file);
	return mount_in_root(in, i, target, is_file);
}

/* Covers an entry of the new procfs with our own file of that name. */
static int stand_in(struct init *in, const char *name)
{
	char ours[64];
	char theirs[64];

	(void)snprintf(ours, sizeof(ours), "/proc/%s", name);
	(void)snprintf(theirs, sizeof(theirs), "/.proc/%s", name);
	return proc_cover(in, ours, theirs);
}

/*
 * Read-only with all that covers it: /proc/sys above all, whose own checks
 * look at the uid on the host, not at capabilities.
 */
static int freeze_proc(struct init *in)
{
	struct uapi_mount_attr ro = { .attr_set = UAPI_MOUNT_ATTR_RDONLY |
						  UAPI_MOUNT_ATTR_NOEXEC };

	if (sys_mount_setattr(AT_FDCWD, "/.proc", UAPI_AT_RECURSIVE, &ro) < 0)
		return err_errno(&in->err, errno, "make /proc read-only");
	if (sys_move_mount(AT_FDCWD, "/.proc", AT_FDCWD,
			   in->next < 0 ? "/proc" : LAYERS_ROOT "/proc", 0) < 0)
		return err_errno(&in->err, errno, "put /proc in its place");
	if (rmdir("/.proc") < 0)
		return err_errno(&in->err, errno, "tidy up the root");
	return 0;
}

int stage_mounts(struct init *in)
{
	if (wire_has_layers(in->box) && layers_make(in) < 0)
		return -in->err.code;
	for (uint32_t i = 0; i < in->box->n_mounts; i++)
		if (mount_one(in, i) < 0)
			return -in->err.code;
	if (in->box->image && (in->box->blob.flags & WIRE_COMMANDS) &&
	    layers_no_exec(in) < 0)
		return -in->err.code;
	for (size_t i = 0; proc_instead[i]; i++)
		if (stand_in(in, proc_instead[i]) < 0)
			return -in->err.code;
	return proc_hide(in) < 0 ? -in->err.code : freeze_proc(in);
}

int stage_freeze(struct init *in)
{
	struct uapi_mount_attr ro = { .attr_set = UAPI_MOUNT_ATTR_RDONLY };

	if (in->box->blob.flags & WIRE_ROOT_RW)
		return wire_has_layers(in->box)
			       ? 0 /* as large as the layer for changes */
			       : err_set(&in->err, EPROTO,
					 "the root has no layer for changes");
	if (sys_mount_setattr(in->root, "", AT_EMPTY_PATH, &ro) < 0)
		return err_errno(&in->err, errno, "make the root read-only");
	return 0;
}
