/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation
 *
 * What an entry says about the layers below (entry.h) becomes what overlayfs
 * understands: a character device 0:0, which since Linux 5.8 anyone may make,
 * and the attribute user.overlay.opaque. A mark is about the layers below
 * alone: a file of that name in the same layer stays, before or after it.
 */

#include "image/unpack.h"

#include <fcntl.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/util.h"
#include "image/entry.h"
#include "image/stream.h"
#include "image/tree.h"
#include "image/unpack-dirs.h"

static int count_bytes(struct unpack *u, uint64_t size, struct err *err)
{
	if (size > u->limits->file)
		return err_set(err, IMAGE_TOO_LARGE,
			       "'%.120s' has more than %llu bytes", u->at.path,
			       (unsigned long long)u->limits->file);
	if (size > u->limits->size - MIN(u->sum->size, u->limits->size))
		return err_set(err, IMAGE_TOO_LARGE,
			       "the image has more than %llu bytes",
			       (unsigned long long)u->limits->size);
	u->sum->size += size;
	return 0;
}

/* What is there goes; a directory with all that is in it. */
static int clear(struct unpack *u, int parent, struct err *err)
{
	const char *name = u->at.path + u->at.base;
	int r;

	if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
		return 0;
	r = image_tree_remove(parent, name);
	if (r < 0)
		return unpack_failed(u, -r, "replace", err);
	return 0;
}

static void read_time(struct archive_entry *e, struct timespec *ret)
{
	ret->tv_sec = archive_entry_mtime(e);
	ret->tv_nsec = archive_entry_mtime_nsec(e);
	if (ret->tv_nsec < 0 || ret->tv_nsec > 999999999)
		ret->tv_nsec = 0;
}

static mode_t mode_of(struct archive_entry *e)
{
	return archive_entry_perm(e) & 01777;
}

static int put_dir(struct unpack *u, int parent, struct archive_entry *e,
		   struct err *err)
{
	const char *name = u->at.path + u->at.base;
	struct late_dir d = { .mode = mode_of(e), .has_time = true };
	int r = unpack_make_dir(parent, name);

	if (r == -ENOTDIR) {
		if (clear(u, parent, err) < 0)
			return -err->code;
		r = unpack_make_dir(parent, name);
	}
	if (r < 0)
		return unpack_failed(u, -r, "make the directory", err);
	read_time(e, &d.time);
	return unpack_keep_late(u, u->at.path, strlen(u->at.path), &d, err);
}

static int write_at(int fd, const char *data, size_t len, la_int64_t offset)
{
	while (len > 0) {
		ssize_t n = pwrite(fd, data, len, offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data += n;
		offset += n;
		len -= (size_t)n;
	}
	return 0;
}

static int copy_data(struct unpack *u, int fd, uint64_t size, struct err *err)
{
	const void *data;
	la_int64_t offset;
	uint64_t end = 0;
	size_t len;
	int r;

	while ((r = archive_read_data_block(u->stream.tar, &data, &len,
					    &offset)) == ARCHIVE_OK) {
		/* A map of holes may say anything. */
		if (offset < 0 || (uint64_t)offset < end ||
		    (uint64_t)offset > size || len > size - (uint64_t)offset)
			return err_set(err, IMAGE_CORRUPT,
				       "'%.120s' has data outside its size",
				       u->at.path);
		r = write_at(fd, data, len, offset);
		if (r < 0)
			return unpack_failed(u, -r, "write", err);
		end = (uint64_t)offset + len;
	}
	if (r != ARCHIVE_EOF)
		return image_stream_error(&u->stream, err);
	if (end < size && ftruncate(fd, (off_t)size) < 0)
		return unpack_failed(u, errno, "write", err);
	return 0;
}

static int put_file(struct unpack *u, int parent, struct archive_entry *e,
		    struct err *err)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	const char *name = u->at.path + u->at.base;
	la_int64_t size = archive_entry_size(e);
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT } };
	_cleanup_fd_ int fd = NO_FD;

	if (size < 0)
		return err_set(err, IMAGE_CORRUPT, "'%.120s' has no size",
			       u->at.path);
	if (count_bytes(u, (uint64_t)size, err) < 0)
		return -err->code;
	fd = openat(parent, name, flags, 0600);
	if (fd < 0 && errno == EEXIST) {
		if (clear(u, parent, err) < 0)
			return -err->code;
		fd = openat(parent, name, flags, 0600);
	}
	if (fd < 0)
		return unpack_failed(u, errno, "make", err);
	if (copy_data(u, fd, (uint64_t)size, err) < 0)
		return -err->code;
	read_time(e, &times[1]);
	if (fchmod(fd, mode_of(e)) < 0 || futimens(fd, times) < 0)
		return unpack_failed(u, errno, "set the mode and time of", err);
	return 0;
}

static int put_symlink(struct unpack *u, int parent, struct archive_entry *e,
		       struct err *err)
{
	const char *name = u->at.path + u->at.base;
	const char *target = archive_entry_symlink(e);
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT } };

	if (!target || !*target || strlen(target) > 4095)
		return err_set(err, IMAGE_REFUSED,
			       "the link '%.120s' has no target or a long one",
			       u->at.path);
	if (symlinkat(target, parent, name) < 0) {
		if (errno != EEXIST)
			return unpack_failed(u, errno, "make the link", err);
		if (clear(u, parent, err) < 0)
			return -err->code;
		if (symlinkat(target, parent, name) < 0)
			return unpack_failed(u, errno, "make the link", err);
	}
	read_time(e, &times[1]);
	(void)utimensat(parent, name, times, AT_SYMLINK_NOFOLLOW);
	return 0;
}

/* The directory that an entry is in, if it is there. */
static int open_dir_of(int root, struct image_entry *e)
{
	int fd;

	if (e->base == 0)
		return image_tree_open(root, "", O_PATH | O_DIRECTORY);
	e->path[e->base - 1] = '\0';
	fd = image_tree_open(root, e->path, O_PATH | O_DIRECTORY);
	e->path[e->base - 1] = '/';
	return fd;
}

/*
 * Only to what this layer has, and only to a file or a link itself, which is
 * not followed.
 */
static int put_hardlink(struct unpack *u, int parent, struct archive_entry *e,
			struct err *err)
{
	const char *from;
	struct stat st;
	_cleanup_fd_ int dir = NO_FD;

	if (image_entry_parse(archive_entry_hardlink(e), &u->target, err) < 0)
		return err_wrap(err, "the target of link '%.120s'", u->at.path);
	if (u->target.kind != IMAGE_ENTRY_FILE ||
	    strcmp(u->at.path, u->target.path) == 0)
		return err_set(err, IMAGE_REFUSED,
			       "the link '%.120s' is to itself or to no file",
			       u->at.path);
	if (clear(u, parent, err) < 0)
		return -err->code;
	from = u->target.path + u->target.base;
	dir = open_dir_of(u->root, &u->target);
	if (dir < 0 || fstatat(dir, from, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(err, IMAGE_REFUSED,
			       "the link '%.120s' is to what is not in its "
			       "layer",
			       u->at.path);
	if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
		return err_set(err, IMAGE_REFUSED,
			       "the link '%.120s' is to what is no file",
			       u->at.path);
	if (linkat(dir, from, parent, u->at.path + u->at.base, 0) < 0)
		return unpack_failed(u, errno, "make the link", err);
	return 0;
}

static int put_gone(struct unpack *u, int parent, struct err *err)
{
	const char *name = u->at.path + u->at.base;
	int r;

	if (mknodat(parent, name, S_IFCHR, makedev(0, 0)) == 0)
		return 0;
	if (errno != EEXIST)
		return unpack_failed(u, errno, "mark as removed", err);
	/* This layer has one too: of a directory, only what is below goes. */
	r = unpack_set_opaque(parent, name);
	if (r < 0 && r != -ENOTDIR && r != -ELOOP)
		return unpack_failed(u, -r, "mark as opaque", err);
	return 0;
}

static int put_opaque(struct unpack *u, struct err *err)
{
	int parent;
	int r;

	/* The directory itself may come later in the archive. */
	if (*u->at.path) {
		size_t len = strlen(u->at.path);

		parent = unpack_open_parent(u, u->at.path, len + 1, err);
		if (parent < 0)
			return -err->code;
	}
	r = unpack_set_opaque(u->root, u->at.path);
	if (r == -EOPNOTSUPP)
		return err_set(err, EOPNOTSUPP,
			       "the file system of the state directory has no "
			       "attributes of users; choose another with "
			       "CORDON_STATE_DIR");
	if (r < 0)
		return unpack_failed(u, -r, "mark as opaque", err);
	return 0;
}

static int put_root(struct unpack *u, struct archive_entry *e, struct err *err)
{
	struct late_dir d = { .mode = mode_of(e), .has_time = true };

	if (archive_entry_hardlink(e) || archive_entry_filetype(e) != AE_IFDIR)
		return err_set(err, IMAGE_REFUSED,
			       "the root is not a directory");
	read_time(e, &d.time);
	return unpack_keep_late(u, "", 0, &d, err);
}

/* A box mounts on these; a link there would lead the mount elsewhere. */
static bool must_be_dir(const char *path)
{
	static const char *const names[] = { "dev", "proc", "sys" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(path, names[i]) == 0)
			return true;
	return false;
}

static void skip(struct unpack *u)
{
	u->sum->skipped++;
	if (u->progress && u->progress->tell)
		u->progress->tell(u->progress->arg, IMAGE_SKIPPED, u->at.path,
				  0, 0);
}

static int put_file_entry(struct unpack *u, struct archive_entry *e,
			  struct err *err)
{
	bool is_link = archive_entry_hardlink(e) != NULL;
	unsigned int type = is_link ? 0 : archive_entry_filetype(e);
	int parent;

	if (type != AE_IFDIR && must_be_dir(u->at.path))
		return err_set(err, IMAGE_REFUSED, "'/%s' is not a directory",
			       u->at.path);
	if (!is_link && type != AE_IFDIR && type != AE_IFREG &&
	    type != AE_IFLNK) {
		skip(u);
		return 0;
	}
	parent = unpack_open_parent(u, u->at.path, u->at.base, err);
	if (parent < 0)
		return -err->code;
	if (is_link)
		return put_hardlink(u, parent, e, err);
	if (type == AE_IFDIR)
		return put_dir(u, parent, e, err);
	return type == AE_IFREG ? put_file(u, parent, e, err)
				: put_symlink(u, parent, e, err);
}

/*
 * A mark behind a link or below a file of the same layer says nothing: that
 * hides all that is below it anyway. (umoci writes such marks where a directory
 * has become a link.)
 */
static int put_mark(struct unpack *u, struct err *err)
{
	int parent;
	int r;

	if (u->at.kind == IMAGE_ENTRY_OPAQUE) {
		r = put_opaque(u, err);
	} else {
		parent = unpack_open_parent(u, u->at.path, u->at.base, err);
		r = parent < 0 ? parent : put_gone(u, parent, err);
	}
	if (r != -IMAGE_REFUSED)
		return r;
	*err = (struct err){ 0 };
	return 0;
}

static int put_entry(struct unpack *u, struct archive_entry *e, struct err *err)
{
	if (image_entry_parse(archive_entry_pathname(e), &u->at, err) < 0)
		return -err->code;
	if (unpack_count(u, err) < 0)
		return -err->code;
	switch (u->at.kind) {
	case IMAGE_ENTRY_NONE:
		return 0;
	case IMAGE_ENTRY_ROOT:
		return put_root(u, e, err);
	case IMAGE_ENTRY_OPAQUE:
	case IMAGE_ENTRY_GONE:
		return put_mark(u, err);
	case IMAGE_ENTRY_FILE:
		break;
	}
	return put_file_entry(u, e, err);
}

static void tick(struct image_stream *s)
{
	const struct image_progress *p = s->tick_arg;

	p->tell(p->arg, IMAGE_UNPACKING, NULL, s->in, 0);
}

static int run(struct unpack *u, int fd, struct err *err)
{
	struct archive_entry *e;
	int r;

	if (image_stream_open(&u->stream, fd, u->limits, err) < 0)
		return -err->code;
	if (u->progress && u->progress->tell) {
		u->stream.tick_arg = (void *)u->progress;
		u->stream.tick = tick;
	}
	while ((r = image_stream_next(&u->stream, &e, err)) > 0)
		if (put_entry(u, e, err) < 0)
			return -err->code;
	if (r < 0 || image_stream_end(&u->stream, u->sum->diff_id, err) < 0)
		return -err->code;
	return unpack_finish_dirs(u, err);
}

int image_unpack(int fd, int dir, const struct image_limits *limits,
		 const struct image_progress *progress,
		 struct image_unpacked *ret, struct err *err)
{
	struct unpack *u = calloc(1, sizeof(*u));
	locale_t before = image_utf8_enter();
	int r = -ENOMEM;

	memset(ret, 0, sizeof(*ret));
	if (u) {
		u->root = dir;
		u->limits = limits;
		u->progress = progress;
		u->sum = ret;
		u->parent_fd = NO_FD;
		r = run(u, fd, err);
		image_stream_close(&u->stream);
		unpack_forget_parent(u);
		for (size_t i = 0; i < u->n_late; i++)
			free(u->late[i].path);
		free(u->late);
		free(u);
	} else {
		err_set(err, ENOMEM, "out of memory");
	}
	(void)uselocale(before);
	return r;
}
