/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Places in the root to be. A path is walked one component at a time with
 * openat2, so that it stays inside the root whatever links it holds, and what
 * is missing is made where the file system is ours.
 */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/util.h"
#include "init/init.h"
#include "os/uapi.h"

/* Length of the path up to and including the component at `from`. */
static size_t next_component(const char *path, size_t len, size_t from)
{
	while (from < len && path[from] == '/')
		from++;
	while (from < len && path[from] != '/')
		from++;
	return from;
}

static int open_at(int dir, const char *path, size_t len)
{
	static char name[4096];
	const struct uapi_open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve = UAPI_RESOLVE_IN_ROOT | UAPI_RESOLVE_NO_MAGICLINKS,
	};
	int fd;

	if (len >= sizeof(name))
		return -ENAMETOOLONG;
	memcpy(name, path, len);
	name[len] = '\0';
	fd = sys_openat2(dir, len ? name : "/", &how);
	return fd < 0 ? -errno : fd;
}

int place_open_dir(struct init *in, const char *path, size_t len)
{
	_cleanup_fd_ int dir = open_at(in->root, path, len);
	size_t done = 0;

	if (dir != -ENOENT)
		return take_fd(&dir);
	dir = open_at(in->root, "/", 1);
	while (dir >= 0 && done < len) {
		size_t end = next_component(path, len, done);
		int next = open_at(in->root, path, end);

		if (next == -ENOENT) {
			char name[256];
			size_t start = done;

			while (path[start] == '/')
				start++;
			if (end - start >= sizeof(name))
				return -ENAMETOOLONG;
			memcpy(name, path + start, end - start);
			name[end - start] = '\0';
			if (mkdirat(dir, name, 0755) < 0)
				return -errno;
			next = open_at(in->root, path, end);
		}
		fd_close(&dir);
		dir = next;
		done = end;
	}
	return take_fd(&dir);
}

int place_make(struct init *in, const char *path, bool is_file)
{
	size_t len = strlen(path);
	_cleanup_fd_ int dir = NO_FD;
	_cleanup_fd_ int file = NO_FD;
	const char *name;

	if (!is_file) {
		dir = place_open_dir(in, path, len);
		return dir < 0 ? dir : 0;
	}
	name = strrchr(path, '/');
	name = name ? name + 1 : path;
	dir = place_open_dir(in, path, (size_t)(name - path));
	if (dir < 0)
		return dir;
	if (faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	file = openat(dir, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0444);
	return file < 0 ? -errno : 0;
}
