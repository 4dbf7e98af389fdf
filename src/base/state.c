/* SPDX-License-Identifier: Apache-2.0 */
#include "base/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"

static const char *variable(const char *name)
{
	const char *v = getenv(name);

	return v && *v ? v : NULL;
}

int state_path(char *ret, size_t size, struct err *err)
{
	const char *own = variable("CORDON_STATE_DIR");
	const char *xdg = variable("XDG_STATE_HOME");
	const char *home = variable("HOME");
	int n;

	if (own)
		n = snprintf(ret, size, "%s", own);
	else if (geteuid() == 0)
		n = snprintf(ret, size, "/var/lib/cordon");
	else if (xdg)
		n = snprintf(ret, size, "%s/cordon", xdg);
	else if (home)
		n = snprintf(ret, size, "%s/.local/state/cordon", home);
	else
		return err_set(err, ENOENT,
			       "find the state directory: set "
			       "'CORDON_STATE_DIR' or 'HOME'");
	if (n < 0 || (size_t)n >= size)
		return err_set(err, ENAMETOOLONG,
			       "the state directory's name is too long");
	if (ret[0] != '/')
		return err_set(err, EINVAL,
			       "the state directory '%s' is not an absolute "
			       "path",
			       ret);
	return 0;
}

int runtime_path(char *ret, size_t size, struct err *err)
{
	const char *own = variable("CORDON_RUNTIME_DIR");
	const char *xdg = variable("XDG_RUNTIME_DIR");
	int n;

	if (own && own[0] == '/')
		n = snprintf(ret, size, "%s", own);
	else if (geteuid() == 0)
		n = snprintf(ret, size, "/run/cordon");
	else if (xdg && xdg[0] == '/')
		n = snprintf(ret, size, "%s/cordon", xdg);
	else
		n = snprintf(ret, size, "/tmp/cordon-%u",
			     (unsigned int)geteuid());
	if (n < 0 || (size_t)n >= size)
		return err_set(err, ENAMETOOLONG,
			       "the runtime directory's name is too long");
	return 0;
}

/* Each part of it. */
static int make_path(char *path)
{
	for (char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
		int r;

		*p = '\0';
		r = mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
		*p = '/';
		if (r < 0)
			return r;
	}
	return mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

static int check_owner(int fd, const char *path, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_errno(err, errno, "open '%s'", path);
	if (st.st_uid != geteuid() || (st.st_mode & 022))
		return err_set(err, EPERM,
			       "'%s' belongs to another user, or others may "
			       "write to it",
			       path);
	return 0;
}

int state_open(const char *name, char *ret_path, size_t size, struct err *err)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	_cleanup_fd_ int fd = NO_FD;
	size_t len;
	int r;

	if (state_path(ret_path, size, err) < 0)
		return -err->code;
	len = strlen(ret_path);
	if ((size_t)snprintf(ret_path + len, size - len, "/%s", name) >=
	    size - len)
		return err_set(err, ENAMETOOLONG, "the state path is too long");
	fd = open(ret_path, flags);
	if (fd < 0 && errno == ENOENT) {
		r = make_path(ret_path);
		if (r < 0)
			return err_errno(err, -r, "make '%s'", ret_path);
		fd = open(ret_path, flags);
	}
	if (fd < 0)
		return err_errno(err, errno, "open '%s'", ret_path);
	if (check_owner(fd, ret_path, err) < 0)
		return -err->code;
	return take_fd(&fd);
}
