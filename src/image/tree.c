/* SPDX-License-Identifier: Apache-2.0 */
#include "image/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "os/uapi.h"

/* A finished layer is as deep as entry.h allows, below a few of our own. */
#define DEPTH_MAX 256

int image_tree_open(int root, const char *path, int flags)
{
	struct uapi_open_how how = {
		.flags = (uint64_t)(flags | O_CLOEXEC),
		.resolve = UAPI_RESOLVE_BENEATH | UAPI_RESOLVE_NO_SYMLINKS |
			   UAPI_RESOLVE_NO_MAGICLINKS | UAPI_RESOLVE_NO_XDEV,
	};
	int fd = sys_openat2(root, *path ? path : ".", &how);

	return fd < 0 ? -errno : fd;
}

static int remove_at(int dir, const char *name, int depth);

static int remove_all_in(int fd, int depth)
{
	DIR *d = fdopendir(fd);
	struct dirent *e;
	int r = 0;

	if (!d) {
		(void)close(fd);
		return -errno;
	}
	while (r == 0 && (errno = 0, e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			r = remove_at(dirfd(d), e->d_name, depth + 1);
	if (r == 0 && errno)
		r = -errno;
	(void)closedir(d);
	return r;
}

static int remove_at(int dir, const char *name, int depth)
{
	struct stat st;
	int fd;
	int r;

	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR)
		return -errno;
	if (unlinkat(dir, name, AT_REMOVEDIR) == 0)
		return 0;
	if (depth > DEPTH_MAX)
		return -ELOOP;
	/* An image may have directories that their owner cannot enter. */
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode) && (st.st_mode & 0700) != 0700 &&
	    fchmodat(dir, name, 0700, 0) < 0)
		return -errno;
	fd = image_tree_open(dir, name, O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return fd;
	r = remove_all_in(fd, depth);
	if (r == 0 && unlinkat(dir, name, AT_REMOVEDIR) < 0)
		r = -errno;
	return r;
}

int image_tree_remove(int dir, const char *name)
{
	return remove_at(dir, name, 0);
}

int image_tree_dir(int dir, const char *name, struct err *err)
{
	int fd;

	if (mkdirat(dir, name, 0700) < 0 && errno != EEXIST)
		return err_errno(err, errno, "make '%s'", name);
	fd = image_tree_open(dir, name, O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return err_errno(err, -fd, "open '%s'", name);
	return fd;
}
