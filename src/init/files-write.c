/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Files written into the box.
 *
 * Every name is below the directory that was asked for: none is absolute, has
 * ".." in it, or goes through a link. The way is gone by descriptors, so what
 * is swapped meanwhile leads nowhere else. An existing file is never opened:
 * a new one is written beside it (files-fresh.c), and when it is whole it takes
 * its place. Set-id bits are dropped.
 *
 * Where the box's files are in its memory, what does not fit there is refused
 * before it is written: the kernel would make room by killing, and nobody can
 * say whom.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "init/files.h"

#define CHUNK     65536
#define DRAIN_MAX (64ULL << 20)
#define MODE_MASK 01777U

#define TMPFS     0x01021994 /* as in linux/magic.h */
#define OVERLAYFS 0x794c7630
#define PAGE      4096ULL
#define INODE     2048ULL /* and its name, at most */

struct item {
	struct files_entry e;
	char name[FILES_MAX_PATH + 1];
	char link[FILES_MAX_PATH + 1];
};

static struct item item;
static uint64_t written;
static uint64_t in_memory; /* of what was written */
static char chunk[CHUNK];

/* Whoever sends is let finish, so that it can hear the answer. */
static void drain(struct files *f)
{
	uint64_t n_read = 0;
	ssize_t n;

	while (n_read < DRAIN_MAX &&
	       (n = read(f->sock, chunk, sizeof(chunk))) > 0)
		n_read += (uint64_t)n;
}

/* The next entry; false at the end. */
static bool receive(struct files *f)
{
	struct item *it = &item;

	files_get(f, &it->e, sizeof(it->e));
	if (it->e.kind == 0)
		return false;
	if (it->e.name_len > FILES_MAX_PATH ||
	    it->e.link_len > FILES_MAX_PATH) {
		(void)err_set(&f->err, ENAMETOOLONG, "a name is too long");
		return true;
	}
	files_get(f, it->name, it->e.name_len);
	files_get(f, it->link, it->e.link_len);
	it->name[it->e.name_len] = '\0';
	it->link[it->e.link_len] = '\0';
	return true;
}

/* Length of the component at `p`; what follows it is skipped by the caller. */
static size_t component(const char *p)
{
	return strcspn(p, "/");
}

static bool leaves(const char *p)
{
	while (*p) {
		size_t n = component(p);

		if (n == 2 && memcmp(p, "..", 2) == 0)
			return true;
		p += n + (p[n] == '/');
	}
	return false;
}

static int check_name(struct files *f)
{
	const char *p = item.name;

	if (strlen(p) != item.e.name_len || p[0] == '/' ||
	    strlen(item.link) != item.e.link_len ||
	    !strchr("fdlh", item.e.kind) ||
	    (item.e.kind == 'l' || item.e.kind == 'h') != (item.e.link_len > 0))
		return err_set(&f->err, EINVAL, "refused: '%.200s'", p);
	if (leaves(p))
		return err_set(&f->err, EPERM,
			       "refused: '%.200s' leaves the directory", p);
	if (item.e.kind == 'h' && (item.link[0] == '/' || leaves(item.link)))
		return err_set(&f->err, EPERM,
			       "refused: '%.200s' is a hard link to something "
			       "outside",
			       p);
	return 0;
}

static bool is_dot(const char *p, size_t n)
{
	return n == 0 || (n == 1 && *p == '.');
}

/*
 * The directory that `p` is in, and its last name; `dir` stays. With `may_make`
 * what is missing above it is made: an archive may leave that out.
 */
static int open_parent(int dir, const char *p, bool may_make, char *ret_name,
		       size_t size)
{
	int at = fcntl(dir, F_DUPFD_CLOEXEC, 4);

	ret_name[0] = '\0';
	while (at >= 0 && *p) {
		size_t n = component(p);
		const char *next = p + n + strspn(p + n, "/");
		char copy[256];
		int below;

		while (is_dot(next, component(next)) && *next)
			next += component(next) +
				strspn(next + component(next), "/");
		if (is_dot(p, n)) {
			p = next;
			continue;
		}
		if (n >= sizeof(copy)) {
			(void)close(at);
			return -ENAMETOOLONG;
		}
		memcpy(copy, p, n);
		copy[n] = '\0';
		if (!*next) {
			(void)snprintf(ret_name, size, "%s", copy);
			return at;
		}
		below = files_step(at, copy, n);
		if (below == -ENOENT && may_make &&
		    mkdirat(at, copy, 0755) == 0)
			below = files_step(at, copy, n);
		(void)close(at);
		at = below;
		p = next;
	}
	return at;
}

/*
 * An owner that the box does not have is its user, whose everything is that is
 * made here (EINVAL: not in its map; EOVERFLOW: not in that of a volume;
 * EPERM: it has one user). A link has an owner too.
 */
static void set_owner(const struct files *f, int dir, const char *name)
{
	if (!(f->ask.flags & FILES_IDS))
		return;
	if (item.e.uid != UINT32_MAX)
		(void)fchownat(dir, name, item.e.uid, (gid_t)-1,
			       AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH);
	if (item.e.gid != UINT32_MAX)
		(void)fchownat(dir, name, (uid_t)-1, item.e.gid,
			       AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH);
}

static void set_meta(int fd)
{
	struct timespec t[2];

	(void)fchmod(fd, item.e.mode & MODE_MASK);
	times_fill(item.e.mtime_ns, t);
	if (item.e.mtime_ns > 0)
		(void)futimens(fd, t);
}

/* The content is taken in whole even when it cannot be kept. */
static int write_content(struct files *f, int fd, int r)
{
	uint64_t left = item.e.size;

	while (left > 0) {
		size_t n = (size_t)MIN(left, (uint64_t)sizeof(chunk));

		if (r < 0)
			return r;
		files_get(f, chunk, n);
		if (f->ask.max && n > f->ask.max - written)
			r = -EFBIG;
		else
			r = io_write_all(fd, chunk, n);
		written += n;
		left -= n;
	}
	return r;
}

/* Whether what is there may give way; a full directory never does. */
static int make_room(const struct files *f, int dir, const char *name,
		     bool is_dir)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISDIR(st.st_mode) == is_dir)
		return 0;
	if (f->ask.flags & FILES_NO_OVERWRITE)
		return is_dir ? -ENOTDIR : -EISDIR;
	if (unlinkat(dir, name, is_dir ? 0 : AT_REMOVEDIR) < 0)
		return -errno;
	return 0;
}

static int put_in_place(const struct files *f, int dir, const char *temp,
			const char *name, int r)
{
	if (r == 0)
		r = make_room(f, dir, name, false);
	if (r == 0 && renameat(dir, temp, dir, name) < 0)
		r = -errno;
	/* Two names of one file stay two: then nothing was renamed. */
	if (r < 0 || item.e.kind == 'h')
		(void)unlinkat(dir, temp, 0);
	return r;
}

static bool is_tmpfs(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == TMPFS;
}

/* Of a root of layers, what takes its changes; unknown, it is memory. */
static bool is_in_memory(const struct files *f, int fd)
{
	struct statfs fs;
	int upper = f->changes.upper[0];

	if (fstatfs(fd, &fs) < 0 || fs.f_type != OVERLAYFS)
		return is_tmpfs(fd);
	return upper < 0 || is_tmpfs(upper);
}

static uint64_t pages_of(uint64_t size)
{
	return (size + PAGE - 1) / PAGE * PAGE;
}

/* For a file that is about to be written; no size is so large as to wrap. */
static int take_memory(struct files *f, int fd)
{
	uint64_t room = f->ask.memory;
	uint64_t left = room - MIN(room, in_memory);
	uint64_t need = pages_of(MIN(item.e.size, INT64_MAX)) + INODE;

	if (room == 0 || !is_in_memory(f, fd))
		return 0;
	if (need > left)
		return err_set(
			&f->err, ENOSPC,
			"write '%.120s': its %llu bytes do not fit in "
			"the box's memory, which has room for %llu more; "
			"give it more memory",
			item.name, (unsigned long long)item.e.size,
			(unsigned long long)left);
	in_memory += need;
	return 0;
}

/* What another takes the place of is free then, if that was its only name. */
static uint64_t memory_of(int dir, const char *name)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISREG(st.st_mode) || st.st_nlink != 1)
		return 0;
	return (uint64_t)st.st_blocks * 512;
}

static int write_file(struct files *f, int dir, const char *name)
{
	char temp[FRESH_NAME];
	_cleanup_fd_ int fd = fresh_open(dir);
	uint64_t old = memory_of(dir, name);
	int r;

	if (fd < 0)
		return fd;
	r = write_content(f, fd, take_memory(f, fd));
	/* Named before it has another owner: only its owner may do that. */
	if (r == 0)
		r = fresh_link(fd, dir, temp);
	if (r < 0) {
		fresh_drop();
		return r;
	}
	set_meta(fd);
	set_owner(f, fd, "");
	r = put_in_place(f, dir, temp, name, 0);
	if (r == 0)
		in_memory -= MIN(in_memory, old);
	return r;
}

static int write_link(const struct files *f, int dir, const char *name)
{
	struct timespec t[2];
	char temp[FRESH_NAME];
	int r = fresh_name(temp);

	if (r < 0)
		return r;
	if (symlinkat(item.link, dir, temp) < 0)
		return -errno;
	set_owner(f, dir, temp);
	times_fill(item.e.mtime_ns, t);
	if (item.e.mtime_ns > 0)
		(void)utimensat(dir, temp, t, AT_SYMLINK_NOFOLLOW);
	return put_in_place(f, dir, temp, name, 0);
}

/* One more name for a file that is there, as the archive says. */
static int write_hard(struct files *f, int top, int dir, const char *name)
{
	char target[256];
	char temp[FRESH_NAME];
	_cleanup_fd_ int from = open_parent(top, item.link, false, target,
					    sizeof(target));
	int r = from < 0 ? from : 0;

	if (r == 0 && !target[0])
		r = -EISDIR;
	if (r == 0)
		r = fresh_name(temp);
	if (r == 0 && linkat(from, target, dir, temp, 0) < 0)
		r = -errno;
	if (r == -ENOENT || r == -ENOTDIR)
		return err_set(&f->err, EINVAL,
			       "write '%.120s': it is a hard link to '%.120s', "
			       "which is not there",
			       item.name, item.link);
	return r < 0 ? r : put_in_place(f, dir, temp, name, 0);
}

/* Its owner must be able to fill it, so those bits are always set. */
static int write_dir(const struct files *f, int dir, const char *name)
{
	int r = make_room(f, dir, name, true);
	_cleanup_fd_ int fd = NO_FD;

	if (r < 0)
		return r;
	if (mkdirat(dir, name, 0700 | (item.e.mode & MODE_MASK)) < 0 &&
	    errno != EEXIST)
		return -errno;
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == EACCES ? 0 : -errno;
	(void)fchmod(fd, 0700 | (item.e.mode & MODE_MASK));
	set_owner(f, fd, "");
	times_later(item.name, item.e.name_len, item.e.mtime_ns);
	return 0;
}

static int write_item(struct files *f, int top)
{
	char name[256];
	_cleanup_fd_ int dir = NO_FD;
	int r;

	if (check_name(f) < 0)
		return -f->err.code;
	dir = open_parent(top, item.name, true, name, sizeof(name));
	r = dir;
	if (dir >= 0 && !name[0])
		r = item.e.kind == 'd' ? 0 : -EISDIR; /* the top itself */
	else if (dir >= 0 && item.e.kind == 'f')
		r = write_file(f, dir, name);
	else if (dir >= 0 && item.e.kind == 'l')
		r = write_link(f, dir, name);
	else if (dir >= 0 && item.e.kind == 'h')
		r = write_hard(f, top, dir, name);
	else if (dir >= 0)
		r = write_dir(f, dir, name);
	if (f->err.code)
		return -f->err.code;
	if (r == -ENOTEMPTY)
		return err_set(&f->err, ENOTEMPTY,
			       "write '%.200s': a directory is there that is "
			       "not empty; remove it first",
			       item.name);
	if (r < 0)
		return err_errno(&f->err, -r, "write '%.200s'", item.name);
	return 0;
}

/* Whatever is there by now, it is not followed. */
static void set_times(const char *path, const struct timespec t[2], int top)
{
	char name[256];
	_cleanup_fd_ int dir = open_parent(top, path, false, name,
					   sizeof(name));

	if (dir >= 0 && name[0])
		(void)utimensat(dir, name, t, AT_SYMLINK_NOFOLLOW);
}

void files_write(struct files *f)
{
	_cleanup_fd_ int top = openat(AT_FDCWD, f->path,
				      O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (top < 0)
		(void)err_errno(&f->err, errno, "open the directory '%.200s'",
				f->path);
	while (!f->err.code && receive(f))
		if (!f->err.code)
			(void)write_item(f, top);
	if (top >= 0)
		times_set(set_times, top);
	files_answer(f);
	files_flush(f);
	if (f->err.code)
		drain(f);
}

void files_make(struct files *f)
{
	char part[FILES_MAX_PATH + 1];
	struct stat st;
	int r = 0;

	for (size_t i = 1; f->path[i - 1]; i++) {
		if (f->path[i] && f->path[i] != '/')
			continue;
		memcpy(part, f->path, i);
		part[i] = '\0';
		if (mkdir(part, 0755) < 0 && errno != EEXIST)
			r = errno;
		if (!f->path[i])
			break;
	}
	if (stat(f->path, &st) < 0)
		(void)err_errno(&f->err, r ? r : errno, "make '%.200s'",
				f->path);
	else if (!S_ISDIR(st.st_mode))
		(void)err_errno(&f->err, ENOTDIR, "make '%.200s'", f->path);
	files_answer(f);
}
