/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Files of the box, looked at and read.
 *
 * A directory is sent depth first, each before what is in it. A file has as
 * many bytes as it had when it was opened: what it grows is left out, what it
 * loses is sent as zeros. What cannot be read is left out too, and the last
 * entry says so.
 */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "init/files.h"

#define DEPTH      128
#define PROC_MAGIC 0x9fa0
#define CHUNK      65536

static struct walk {
	char name[FILES_MAX_PATH + 256]; /* below the path that was asked for */
	dev_t dev;
	uint64_t n_left_out;
	int code;
	char first[FILES_MAX_PATH + 1]; /* of what was left out */
} walk;

static void leave_out(int code)
{
	if (walk.n_left_out++ > 0)
		return;
	walk.code = code;
	memcpy(walk.first, walk.name,
	       MIN(strlen(walk.name), (size_t)FILES_MAX_PATH));
}

static ssize_t read_link(int dir, const char *name, char *ret, size_t size)
{
	ssize_t n = readlinkat(dir, name, ret, size - 1);

	if (n < 0)
		return -errno;
	ret[n] = '\0';
	return n;
}

/* Whoever asks for one thing must not be given nothing in its place. */
static int check_readable(struct files *f, uint8_t kind)
{
	_cleanup_fd_ int fd = NO_FD;

	if (strchr("scb", kind))
		return err_set(&f->err, EINVAL,
			       "'%.200s' is a device or a socket, which is "
			       "never copied",
			       f->path);
	if (kind != 'f' && kind != 'd')
		return 0;
	fd = openat(AT_FDCWD, f->path,
		    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return err_errno(&f->err, errno, "read '%.200s'", f->path);
	return 0;
}

void files_stat(struct files *f)
{
	struct files_entry e = { 0 };
	struct stat st;
	static char link[FILES_MAX_PATH + 1];
	ssize_t n = 0;

	if (fstatat(AT_FDCWD, f->path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		(void)err_errno(&f->err, errno, "look at '%.200s'", f->path);
	else
		files_describe(&st, &e);
	if (e.kind == 'l')
		n = read_link(AT_FDCWD, f->path, link, sizeof(link));
	if (n < 0)
		(void)err_errno(&f->err, (int)-n, "read link '%.200s'",
				f->path);
	if (!f->err.code && f->ask.op == FILES_LOOK)
		(void)check_readable(f, e.kind);
	e.link_len = n > 0 ? (uint32_t)n : 0;
	if (e.kind == 'd')
		e.size = 0;
	files_answer(f);
	if (!f->err.code)
		files_put_entry(f, &e, "", link);
}

static void put_content(struct files *f, int fd, uint64_t size)
{
	static char buf[CHUNK];

	while (size > 0) {
		size_t want = (size_t)MIN(size, (uint64_t)sizeof(buf));
		ssize_t n = io_read_full(fd, buf, want);

		if (n < 0)
			n = 0;
		memset(buf + n, 0, want - (size_t)n);
		files_put(f, buf, want);
		size -= want;
	}
}

static void put(struct files *f, struct files_entry *e, const char *link)
{
	e->name_len = (uint32_t)strlen(walk.name);
	e->link_len = (uint32_t)strlen(link);
	files_put_entry(f, e, walk.name, link);
}

/* By now it may be anything: it counts what was opened. */
static void read_file(struct files *f, int dir, const char *name)
{
	_cleanup_fd_ int fd = openat(dir, name,
				     O_RDONLY | O_NOFOLLOW | O_NONBLOCK |
					     O_NOCTTY | O_CLOEXEC);
	struct files_entry e;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		leave_out(errno);
		return;
	}
	files_describe(&st, &e);
	if (e.kind != 'f') {
		leave_out(ESTALE);
		return;
	}
	put(f, &e, "");
	put_content(f, fd, e.size);
}

static void read_any(struct files *f, int dir, const char *name, int depth);

/* The kernel's own files are no one's to copy. */
static bool may_enter(const struct files *f, int fd, const struct stat *st)
{
	struct statfs fs;

	if (st->st_dev == walk.dev)
		return true;
	if ((f->ask.flags & FILES_ONE_FS) || fstatfs(fd, &fs) < 0)
		return false;
	return fs.f_type != PROC_MAGIC;
}

static void read_dir(struct files *f, int dir, const char *name, int depth)
{
	_cleanup_fd_ int fd = openat(dir, name,
				     O_RDONLY | O_DIRECTORY | O_NOFOLLOW |
					     O_CLOEXEC);
	struct dents d = { .fd = fd };
	size_t len = strlen(walk.name);
	struct files_entry e;
	struct stat st;
	const char *next;

	if (fd < 0 || fstat(fd, &st) < 0) {
		leave_out(errno);
		return;
	}
	if (depth == 0)
		walk.dev = st.st_dev;
	files_describe(&st, &e);
	put(f, &e, "");
	if (!may_enter(f, fd, &st))
		return;
	while ((next = dents_next(&d))) {
		size_t n = strlen(next);

		if (len + n + 2 > FILES_MAX_PATH) {
			leave_out(ENAMETOOLONG);
			continue;
		}
		if (len)
			walk.name[len] = '/';
		memcpy(walk.name + len + (len > 0), next, n + 1);
		read_any(f, fd, next, depth + 1);
		walk.name[len] = '\0';
	}
}

static void read_any(struct files *f, int dir, const char *name, int depth)
{
	static char link[FILES_MAX_PATH + 1];
	struct files_entry e;
	struct stat st;

	if (depth > DEPTH) {
		leave_out(ELOOP);
		return;
	}
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno != ENOENT) /* gone meanwhile is not left out */
			leave_out(errno);
		return;
	}
	files_describe(&st, &e);
	if (e.kind == 'd') {
		read_dir(f, dir, name, depth);
	} else if (e.kind == 'f') {
		read_file(f, dir, name);
	} else if (e.kind == 'l') {
		ssize_t n = read_link(dir, name, link, sizeof(link));

		if (n < 0)
			leave_out((int)-n);
		else
			put(f, &e, link);
	} else {
		put(f, &e, "");
	}
}

void files_read(struct files *f)
{
	struct stat st;

	if (fstatat(AT_FDCWD, f->path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		(void)err_errno(&f->err, errno, "look at '%.200s'", f->path);
	files_answer(f);
	if (f->err.code)
		return;
	read_any(f, AT_FDCWD, f->path, 0);
	files_put_end(f, walk.n_left_out, walk.code, walk.first);
}
