/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Places to mount on. No program runs yet that could change one. By now the
 * root is the root, but until the one before it is let go it lies on top, and
 * ".." leads there. So a path is first tried without following a link (it has
 * no ".." itself, see wire.c); where there is one, the old root goes first.
 *
 * What is missing is made, but only in file systems of the box's own: in a
 * directory of the host nothing is ever created for a mount (CVE-2024-45310).
 */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "init/init.h"
#include "os/below.h"

int place_own(struct init *in, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (in->n_own < ARRAY_SIZE(in->own))
		in->own[in->n_own++] = st.st_dev;
	return 0;
}

/* Whether the box's own file system is there: -ENOENT, or 0 or 1. */
static int is_own(const struct init *in, const char *dir)
{
	struct stat st;

	if (stat(dir, &st) < 0)
		return -errno;
	for (size_t i = 0; i < in->n_own; i++)
		if (in->own[i] == st.st_dev)
			return 1;
	return 0;
}

static int make(const char *path, bool is_file)
{
	int r = is_file ? mknod(path, S_IFREG | 0444, 0) : mkdir(path, 0755);

	return r < 0 && errno != EEXIST ? -errno : 0;
}

/* `path` is not there. */
static int make_missing(const struct init *in, const char *path, bool is_file)
{
	char part[4096];
	size_t len = strlen(path);
	size_t at = len;
	int r;

	if (len >= sizeof(part))
		return -ENAMETOOLONG;
	/* The nearest directory above it that is there. */
	memcpy(part, path, len + 1);
	do {
		while (at > 0 && part[at - 1] != '/')
			at--;
		at -= at > 0;
		part[at ? at : 1] = '\0';
		r = is_own(in, part);
	} while (r == -ENOENT && at > 0);
	if (r <= 0)
		return r < 0 ? r : -EROFS;
	for (r = 0; r == 0 && at < len;) {
		at += 1 + strcspn(path + at + 1, "/");
		memcpy(part, path, at);
		part[at] = '\0';
		r = make(part, is_file && at == len);
	}
	return r;
}

int place_make(const struct init *in, const char *path, bool is_file)
{
	return access(path, F_OK) == 0 ? 0 : make_missing(in, path, is_file);
}

/* What was mounted on the root itself would hide all the rest. */
static int not_the_root(const struct init *in, int fd)
{
	struct stat root;
	struct stat st;
	int r = 0;

	if (fstat(in->root, &root) < 0 || fstat(fd, &st) < 0)
		r = -errno;
	else if (st.st_dev == root.st_dev && st.st_ino == root.st_ino)
		r = -ELOOP;
	if (r < 0)
		(void)close(fd);
	return r < 0 ? r : fd;
}

/* A link may lead anywhere in the box's root, once there is no other. */
static int open_by_link(struct init *in, const char *path, bool is_file)
{
	int r = root_let_go(in);
	int fd;

	if (r == 0)
		r = place_make(in, path, is_file);
	if (r < 0)
		return r;
	fd = open(path, O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : not_the_root(in, fd);
}

int place_open(struct init *in, const char *path, bool is_file)
{
	const char *below = path + strspn(path, "/");
	int fd = open_below(in->root, below, O_PATH);
	int r;

	if (fd == -ELOOP)
		return open_by_link(in, path, is_file);
	if (fd != -ENOENT)
		return fd;
	r = make_missing(in, path, is_file);
	return r < 0 ? r : open_below(in->root, below, O_PATH);
}
