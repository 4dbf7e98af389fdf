/* SPDX-License-Identifier: Apache-2.0 */
#include "box/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/state.h"
#include "base/util.h"

static int make_parents(char *path)
{
	for (char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		if (mkdir(path, 0700) < 0 && errno != EEXIST) {
			*p = '/';
			return -errno;
		}
		*p = '/';
	}
	return mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

int state_open(const char *name, struct err *err)
{
	char path[4096];
	size_t len;
	struct stat st;
	_cleanup_fd_ int fd = NO_FD;

	if (state_path(path, sizeof(path), err) < 0)
		return -err->code;
	len = strlen(path);
	if ((size_t)snprintf(path + len, sizeof(path) - len, "/%s", name) >=
	    sizeof(path) - len)
		return err_set(err, ENAMETOOLONG, "the state path is too long");
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT && make_parents(path) == 0)
		fd = open(path,
			  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, errno, "open '%s'", path);
	if (st.st_uid != geteuid() || (st.st_mode & 022))
		return err_set(err, EPERM,
			       "'%s' belongs to another user, or others may "
			       "write to it",
			       path);
	return take_fd(&fd);
}
