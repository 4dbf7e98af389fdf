/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What has changed in a box whose root is an image, or can be written.
 *
 * The layer that takes the changes has all of them, and nothing else: what is
 * in it and not in the root was added, what is in both was changed (also a
 * directory in which something was), and a mark of overlayfs says that
 * something was deleted. The root is only asked whether it has a name.
 * A directory of the host in it has such a layer of its own.
 */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/util.h"
#include "init/files.h"

#define DEPTH 128

static struct {
	char name[FILES_MAX_PATH + 256];
	size_t at; /* in it, where the layers begin */
	int lower;
	uint64_t n_left_out;
	int code;
} walk;

static void leave_out(int code)
{
	if (walk.n_left_out++ == 0)
		walk.code = code;
}

/* A device 0:0; from Linux 6.7 on a file may have an attribute instead. */
static bool is_deleted(int dir, const char *name, const struct stat *st)
{
	_cleanup_fd_ int fd = NO_FD;

	if (S_ISCHR(st->st_mode))
		return st->st_rdev == makedev(0, 0);
	if (!S_ISREG(st->st_mode) || st->st_size != 0)
		return false;
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return fd >= 0 && fgetxattr(fd, "user.overlay.whiteout", NULL, 0) >= 0;
}

static char kind_of(int dir, const char *name, const struct stat *st)
{
	struct stat before;

	if (is_deleted(dir, name, st))
		return 'D';
	/* Without its first slash; no link is the last part of it. */
	return fstatat(walk.lower, walk.name + walk.at + 1, &before,
		       AT_SYMLINK_NOFOLLOW) < 0
		       ? 'A'
		       : 'C';
}

static void look_below(struct files *f, int dir, int depth);

static void look_at(struct files *f, int dir, const char *name, int depth)
{
	_cleanup_fd_ int fd = NO_FD;
	struct files_entry e = { 0 };
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno != ENOENT)
			leave_out(errno);
		return;
	}
	e.kind = (uint8_t)kind_of(dir, name, &st);
	e.name_len = (uint32_t)strlen(walk.name);
	files_put_entry(f, &e, walk.name, "");
	if (!S_ISDIR(st.st_mode))
		return;
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || depth >= DEPTH)
		leave_out(fd < 0 ? errno : ELOOP);
	else
		look_below(f, fd, depth + 1);
}

static void look_below(struct files *f, int dir, int depth)
{
	struct dents d = { .fd = dir };
	size_t len = strlen(walk.name);
	const char *name;

	while ((name = dents_next(&d))) {
		size_t n = strlen(name);

		if (len + n + 2 > FILES_MAX_PATH) {
			leave_out(ENAMETOOLONG);
			continue;
		}
		walk.name[len] = '/';
		memcpy(walk.name + len + 1, name, n + 1);
		look_at(f, dir, name, depth);
		walk.name[len] = '\0';
	}
}

/* Of one of the two; what changed in a directory has changed that. */
static void look_in(struct files *f, int which, const char *at)
{
	const char *first;
	_cleanup_fd_ int top = openat(f->changes.upper[which], ".",
				      O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dents d = { .fd = top };

	walk.lower = f->changes.lower[which];
	walk.at = strlen(at);
	memcpy(walk.name, at, walk.at + 1);
	if (top < 0) {
		leave_out(errno);
		return;
	}
	first = which == CHANGES_ROOT ? NULL : dents_next(&d);
	if (first) {
		struct files_entry e = { .kind = 'C',
					 .name_len = (uint32_t)walk.at };

		files_put_entry(f, &e, walk.name, "");
	}
	if (lseek(top, 0, SEEK_SET) < 0)
		leave_out(errno);
	look_below(f, top, 0);
}

void files_changes(struct files *f)
{
	const struct changes *c = &f->changes;

	if (c->upper[CHANGES_ROOT] < 0 || c->lower[CHANGES_ROOT] < 0)
		(void)err_set(&f->err, ENOSYS,
			      "the root of this box takes no changes");
	files_answer(f);
	if (f->err.code)
		return;
	look_in(f, CHANGES_ROOT, "");
	if (c->upper[CHANGES_HOST] >= 0)
		look_in(f, CHANGES_HOST, c->host);
	files_put_end(f, walk.n_left_out, walk.code, "");
}
