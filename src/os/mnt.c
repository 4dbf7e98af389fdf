/* SPDX-License-Identifier: Apache-2.0 */
#include "os/mnt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/util.h"
#include "os/uapi.h"

int mnt_new(const char *type, const char *const (*opt)[2], int n, uint64_t attr,
	    struct err *err)
{
	_cleanup_fd_ int fs = sys_fsopen(type);
	int mnt;

	if (fs < 0)
		return err_errno(err, errno, "open file system type '%s'",
				 type);
	for (int i = 0; i < n; i++)
		if (sys_fsconfig(fs,
				 opt[i][1] ? UAPI_FSCONFIG_SET_STRING
					   : UAPI_FSCONFIG_SET_FLAG,
				 opt[i][0], opt[i][1]) < 0)
			return err_errno(err, errno, "set '%s=%s' of %s",
					 opt[i][0],
					 opt[i][1] ? opt[i][1] : "yes", type);
	if (sys_fsconfig(fs, UAPI_FSCONFIG_CMD_CREATE, NULL, NULL) < 0)
		return err_errno(err, errno, "create a %s", type);
	mnt = sys_fsmount(fs, (unsigned int)attr);
	if (mnt < 0)
		return err_errno(err, errno, "mount a %s", type);
	return mnt;
}

int mnt_tmpfs(const struct mnt_tmpfs *opt, struct err *err)
{
	char size[24];
	char inodes[24];
	char mode[12];
	char uid[12];
	char gid[12];
	const char *const pairs[][2] = {
		{ "size", size }, { "nr_inodes", inodes }, { "mode", mode },
		{ "uid", uid },   { "gid", gid },
	};

	/* To tmpfs(5), 0 is no bound at all. */
	if (opt->size == 0 || opt->inodes == 0)
		return err_set(err, EINVAL, "a tmpfs without a size");
	(void)snprintf(size, sizeof(size), "%llu",
		       (unsigned long long)opt->size);
	(void)snprintf(inodes, sizeof(inodes), "%llu",
		       (unsigned long long)opt->inodes);
	(void)snprintf(mode, sizeof(mode), "%o", opt->mode);
	(void)snprintf(uid, sizeof(uid), "%u", opt->uid);
	(void)snprintf(gid, sizeof(gid), "%u", opt->gid);
	return mnt_new("tmpfs", pairs, ARRAY_SIZE(pairs), opt->attr, err);
}

int mnt_clone(int dirfd, const char *path, struct err *err)
{
	int mnt = sys_open_tree(dirfd, path,
				UAPI_OPEN_TREE_CLONE | UAPI_OPEN_TREE_CLOEXEC |
					UAPI_AT_RECURSIVE | AT_EMPTY_PATH |
					AT_SYMLINK_NOFOLLOW);

	if (mnt < 0)
		return err_errno(err, errno, "copy mount '%s'", path);
	return mnt;
}

int mnt_restrict(int mnt, uint64_t attr, struct err *err)
{
	struct uapi_mount_attr set = { .attr_set = attr };

	if (sys_mount_setattr(mnt, "", AT_EMPTY_PATH | UAPI_AT_RECURSIVE,
			      &set) < 0)
		return err_errno(err, errno, "set mount attributes");
	return 0;
}

int mnt_attach(int mnt, int target, struct err *err)
{
	if (sys_move_mount(mnt, "", target, "",
			   UAPI_MOVE_MOUNT_F_EMPTY_PATH |
				   UAPI_MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return err_errno(err, errno, "attach a mount");
	return 0;
}

int mnt_open_in(int root, const char *path, struct err *err)
{
	const struct uapi_open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = UAPI_RESOLVE_IN_ROOT | UAPI_RESOLVE_NO_MAGICLINKS,
	};
	int fd = sys_openat2(root, path, &how);

	if (fd < 0)
		return err_errno(err, errno, "open '%s' in the box's root",
				 path);
	return fd;
}

int mnt_attach_at(int mnt, int dirfd, const char *path, struct err *err)
{
	_cleanup_fd_ int target = mnt_open_in(dirfd, path, err);

	if (target < 0)
		return target;
	if (mnt_attach(mnt, target, err) < 0)
		return err_wrap(err, "on '%s'", path);
	return 0;
}
