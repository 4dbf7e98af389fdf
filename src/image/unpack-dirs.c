/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The directories of a layer that is unpacked.
 *
 * They are made with mode 0700, whatever their entry says, so that we can work
 * in them without any right but that of their owner; their modes and times are
 * kept in a list and set at the end, the deepest first.
 *
 * The directory of the entry before is kept open, since most entries are where
 * the one before was. It is given up whenever a directory is removed.
 */

#include "image/unpack-dirs.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/util.h"
#include "image/tree.h"

#define OPAQUE "user.overlay.opaque"

void unpack_forget_parent(struct unpack *u)
{
	fd_close(&u->parent_fd);
	u->parent[0] = '\0';
}

int unpack_count(struct unpack *u, struct err *err)
{
	if (++u->sum->files > u->limits->files)
		return err_set(err, IMAGE_TOO_LARGE,
			       "the image has more than %llu files",
			       (unsigned long long)u->limits->files);
	return 0;
}

int unpack_failed(struct unpack *u, int code, const char *what, struct err *err)
{
	return err_errno(err, code, "%s '%.120s'", what, u->at.path);
}

int unpack_keep_late(struct unpack *u, const char *path, size_t len,
		     const struct late_dir *from, struct err *err)
{
	struct late_dir *d;

	if (u->n_late == u->room_late) {
		size_t room = u->room_late ? 2 * u->room_late : 256;

		d = reallocarray(u->late, room, sizeof(*d));
		if (!d)
			return err_set(err, ENOMEM, "out of memory");
		u->late = d;
		u->room_late = room;
	}
	d = &u->late[u->n_late];
	*d = *from;
	d->order = u->n_late;
	d->path = strndup(path, len);
	if (!d->path)
		return err_set(err, ENOMEM, "out of memory");
	u->n_late++;
	return 0;
}

int unpack_set_opaque(int parent, const char *name)
{
	_cleanup_fd_ int fd = image_tree_open(parent, name,
					      O_RDONLY | O_DIRECTORY);

	if (fd < 0)
		return fd;
	return fsetxattr(fd, OPAQUE, "y", 1, 0) < 0 ? -errno : 0;
}

int unpack_make_dir(int parent, const char *name)
{
	struct stat st;
	int r;

	if (mkdirat(parent, name, 0700) == 0)
		return 1;
	if (errno != EEXIST)
		return -errno;
	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return 0;
	if (!S_ISCHR(st.st_mode))
		return -ENOTDIR;
	if (unlinkat(parent, name, 0) < 0 || mkdirat(parent, name, 0700) < 0)
		return -errno;
	r = unpack_set_opaque(parent, name);
	return r < 0 ? r : 1;
}

/* Directories that no entry made get the usual mode. */
static int make_parents(struct unpack *u, const char *path, struct err *err)
{
	static const struct late_dir usual = { .mode = 0755 };
	_cleanup_fd_ int at = image_tree_open(u->root, "", O_PATH);

	while (at >= 0 && *path) {
		size_t len = strcspn(path, "/");
		char name[256];
		int next;
		int r;

		memcpy(name, path, len);
		name[len] = '\0';
		r = unpack_make_dir(at, name);
		if (r < 0)
			return r;
		path += len;
		if (r > 0 &&
		    (unpack_count(u, err) < 0 ||
		     unpack_keep_late(u, u->parent, (size_t)(path - u->parent),
				      &usual, err) < 0))
			return -err->code;
		next = image_tree_open(at, name, O_PATH | O_DIRECTORY);
		fd_close(&at);
		at = next;
		path += *path == '/';
	}
	return at < 0 ? at : take_fd(&at);
}

int unpack_open_parent(struct unpack *u, const char *path, size_t base,
		       struct err *err)
{
	size_t len = base ? base - 1 : 0;
	int fd;

	if (u->parent_fd >= 0 && strlen(u->parent) == len &&
	    memcmp(u->parent, path, len) == 0)
		return u->parent_fd;
	unpack_forget_parent(u);
	memcpy(u->parent, path, len);
	u->parent[len] = '\0';
	fd = image_tree_open(u->root, u->parent, O_PATH | O_DIRECTORY);
	if (fd == -ENOENT || fd == -ENOTDIR)
		fd = make_parents(u, u->parent, err);
	if (fd == -ELOOP || fd == -ENOTDIR)
		return err_set(err, IMAGE_REFUSED,
			       "'%.120s' lies behind a link or below a file",
			       path);
	if (fd < 0)
		return err->code ? -err->code
				 : unpack_failed(u, -fd,
						 "open the directory of", err);
	u->parent_fd = fd;
	return fd;
}

/* The longest path first: below a directory no path is shorter than its own. */
static int compare_late(const void *a, const void *b)
{
	const struct late_dir *x = a;
	const struct late_dir *y = b;
	size_t m = strlen(x->path);
	size_t n = strlen(y->path);

	if (m != n)
		return m < n ? 1 : -1;
	return x->order < y->order ? -1 : x->order > y->order;
}

int unpack_finish_dirs(struct unpack *u, struct err *err)
{
	if (u->n_late > 0)
		qsort(u->late, u->n_late, sizeof(*u->late), compare_late);
	for (size_t i = 0; i < u->n_late; i++) {
		struct late_dir *d = &u->late[i];
		struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
					     d->time };
		_cleanup_fd_ int fd = image_tree_open(u->root, d->path,
						      O_RDONLY | O_DIRECTORY);

		/* A later entry may have replaced it. */
		if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
			continue;
		if (fd < 0)
			return err_errno(err, -fd, "open '%.120s'", d->path);
		if ((d->has_time && futimens(fd, times) < 0) ||
		    fchmod(fd, d->mode) < 0)
			return err_errno(err, errno,
					 "set the mode and time of '%.120s'",
					 d->path);
	}
	return 0;
}
