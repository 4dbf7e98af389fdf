/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Laying down a blob's directories, files and links.
 *
 * The box's own records go into the root, which is new, empty and ours; but
 * who wrote them may not be believed, so a link among them is never followed,
 * and whatever is there already is not opened. Those
 * of the work go into places that may be a directory of the host with
 * anything in it: there no link is followed, an existing file is never opened
 * but replaced by a new one, and what is neither absent nor a regular file is
 * refused. By then the filter is in force, which has no openat2(2), so the
 * walk is made one component at a time.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "init/init.h"
#include "os/below.h"

#define TEMP_NAMES 1024

struct item {
	struct wire_record rec;
	const char *path;
	const char *data;
};

/* One step down, never through a link; `dir` is closed. */
static int step_down(int dir, const char *name, size_t len)
{
	char copy[256];
	int next = -EINVAL;

	if (len < sizeof(copy) && !(len == 2 && memcmp(name, "..", 2) == 0)) {
		memcpy(copy, name, len);
		copy[len] = '\0';
		next = openat(dir, copy,
			      O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			next = -errno;
	}
	(void)close(dir);
	return next;
}

static int open_untrusted(const char *path, size_t len)
{
	int dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	for (size_t at = 0; dir >= 0 && at < len;) {
		size_t n = 0;

		while (at + n < len && path[at + n] != '/')
			n++;
		if (n > 0)
			dir = step_down(dir, path + at, n);
		at += n + 1;
	}
	return dir;
}

static int open_parent(const struct item *it)
{
	size_t len = it->rec.path_len;

	while (len > 0 && it->path[len - 1] != '/')
		len--;
	return open_untrusted(it->path, len);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* What a file copied from the host had there. */
static int set_times(int fd, const struct wire_record *rec)
{
	struct timespec t[2];

	t[0].tv_sec = rec->mtime_ns / 1000000000;
	t[0].tv_nsec = rec->mtime_ns % 1000000000;
	t[1] = t[0];
	return fchmod(fd, rec->mode) < 0 || futimens(fd, t) < 0 ? -errno : 0;
}

/* Whole or not at all: half of it would only take what room is left. */
static int write_new(int dir, const char *name, const struct item *it)
{
	_cleanup_fd_ int fd = openat(dir, name,
				     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW |
					     O_CLOEXEC,
				     it->rec.mode);
	int r;

	if (fd < 0)
		return -errno;
	r = io_write_all(fd, it->data, it->rec.data_len);
	if (r == 0 && it->rec.mtime_ns)
		r = set_times(fd, &it->rec);
	if (r < 0)
		(void)unlinkat(dir, name, 0);
	return r;
}

static int replace_file(struct init *in, int dir, const char *name,
			const struct item *it)
{
	struct stat st;
	char temp[32];
	int r;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? write_new(dir, name, it) : -errno;
	if (!S_ISREG(st.st_mode)) {
		(void)err_set(&in->err, EPERM,
			      "Filename is not a regular file: '%s'", it->path);
		return -EPERM;
	}
	/* A block before may have left anything, also under such a name. */
	r = -EEXIST;
	for (unsigned int i = 0; r == -EEXIST && i < TEMP_NAMES; i++) {
		(void)snprintf(temp, sizeof(temp), ".cordon-%u-%u", in->job, i);
		r = write_new(dir, temp, it);
	}
	if (r < 0)
		return r;
	if (renameat(dir, temp, dir, name) == 0)
		return 0;
	r = -errno;
	(void)unlinkat(dir, temp, 0);
	return r;
}

static int make_link(int dir, const char *name, const struct item *it)
{
	static char target[4096];

	if (it->rec.data_len >= sizeof(target))
		return -ENAMETOOLONG;
	memcpy(target, it->data, it->rec.data_len);
	target[it->rec.data_len] = '\0';
	return symlinkat(target, dir, name) < 0 ? -errno : 0;
}

static int make_dir(int dir, const char *name, const struct item *it)
{
	if (mkdirat(dir, name, it->rec.mode) == 0 || errno == EEXIST)
		return 0;
	return -errno;
}

/* In the root; what is missing is made, and no link was met before that. */
static int open_above(const struct init *in, const char *path, size_t len)
{
	char above[WIRE_MAX_PATH];
	const char *below;
	int fd;
	int r;

	if (len >= sizeof(above))
		return -ENAMETOOLONG;
	memcpy(above, path, len);
	above[len] = '\0';
	below = above + strspn(above, "/");
	if (!*below)
		below = ".";
	fd = open_below(in->root, below, O_PATH | O_DIRECTORY);
	if (fd != -ENOENT)
		return fd;
	r = place_make(in, above, false);
	return r < 0 ? r : open_below(in->root, below, O_PATH | O_DIRECTORY);
}

/* Many in a row have the same directory above them. */
struct above {
	int fd;
	const char *path;
	size_t len;
};

static int lay_at(int dir, const char *name, const struct item *it)
{
	switch ((enum wire_record_kind)it->rec.kind) {
	case WIRE_DIR:
		return make_dir(dir, name, it);
	case WIRE_FILE:
		return write_new(dir, name, it);
	case WIRE_LINK:
		return make_link(dir, name, it);
	}
	return -EINVAL;
}

static int lay_in_root(const struct init *in, const struct item *it,
		       struct above *up)
{
	const char *name = base_name(it->path);
	size_t len = (size_t)(name - it->path) - 1;
	int r;

	/* No link is among what our own client says that could be met. */
	if (!in->go.is_apart) {
		r = lay_at(in->root, it->path + 1, it);
		if (r != -ENOENT)
			return r;
	}
	if (up->fd < 0 || up->len != len ||
	    memcmp(up->path, it->path, len) != 0) {
		fd_close(&up->fd);
		up->fd = open_above(in, it->path, len);
		up->path = it->path;
		up->len = len;
	}
	return up->fd < 0 ? up->fd : lay_at(up->fd, name, it);
}

static int lay_untrusted(struct init *in, const struct item *it)
{
	_cleanup_fd_ int dir = open_parent(it);
	const char *name = base_name(it->path);

	if (dir == -ELOOP || dir == -ENOTDIR) {
		(void)err_set(&in->err, EPERM,
			      "Filename is not a regular file: '%s'", it->path);
		return -EPERM;
	}
	if (dir < 0)
		return dir;
	switch ((enum wire_record_kind)it->rec.kind) {
	case WIRE_DIR:
		return make_dir(dir, name, it);
	case WIRE_FILE:
		return replace_file(in, dir, name, it);
	case WIRE_LINK:
		return make_link(dir, name, it);
	}
	return -EINVAL;
}

int records_lay(struct init *in, const struct wire_blob *blob,
		struct wire_records records, bool in_root)
{
	const char *base = (const char *)blob;
	uint64_t off = records.off;
	struct above up = { .fd = NO_FD };
	int r = 0;

	for (uint64_t i = 0; r == 0 && i < records.count; i++) {
		struct item it;

		memcpy(&it.rec, base + off, sizeof(it.rec));
		it.path = base + off + sizeof(it.rec);
		it.data = it.path + it.rec.path_len + 1;
		off += sizeof(it.rec) + it.rec.path_len + 1 + it.rec.data_len;
		off = (off + 7) & ~7ULL;
		in->err.code = 0;
		r = in_root ? lay_in_root(in, &it, &up)
			    : lay_untrusted(in, &it);
		if (r < 0 && !in->err.code)
			(void)err_errno(&in->err, -r, "write '%s' in the box",
					it.path);
	}
	fd_close(&up.fd);
	return r;
}

int stage_files(struct init *in)
{
	return records_lay(in, &in->work->blob, in->work->records, false);
}
