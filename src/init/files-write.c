/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Files written into the box.
 *
 * Every name is below the directory that was asked for: none is absolute, has
 * ".." in it, or goes through a link. The way is gone by descriptors, so what
 * is swapped meanwhile leads nowhere else. An existing file is never opened:
 * a new one is written beside it under a name that was not there, and takes
 * its place. Set-id bits are dropped.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "init/files.h"

#define CHUNK     65536
#define DRAIN_MAX (64ULL << 20)
#define MODE_MASK 01777U

struct item {
	struct files_entry e;
	char name[FILES_MAX_PATH + 1];
	char link[FILES_MAX_PATH + 1];
};

static struct item item;
static uint64_t written;
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

static void new_name(char *ret, size_t size)
{
	static unsigned int n;

	(void)snprintf(ret, size, ".cordon-%d-%u", (int)getpid(), n++);
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
	const struct timespec t[2] = {
		{ item.e.mtime_ns / 1000000000, item.e.mtime_ns % 1000000000 },
		{ item.e.mtime_ns / 1000000000, item.e.mtime_ns % 1000000000 },
	};

	(void)fchmod(fd, item.e.mode & MODE_MASK);
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

static int write_file(struct files *f, int dir, const char *name)
{
	char temp[48];
	_cleanup_fd_ int fd = NO_FD;
	int r;

	new_name(temp, sizeof(temp));
	fd = openat(dir, temp,
		    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = write_content(f, fd, 0);
	if (r == 0) {
		set_meta(fd);
		set_owner(f, fd, "");
	}
	return put_in_place(f, dir, temp, name, r);
}

static int write_link(const struct files *f, int dir, const char *name)
{
	char temp[48];

	new_name(temp, sizeof(temp));
	if (symlinkat(item.link, dir, temp) < 0)
		return -errno;
	set_owner(f, dir, temp);
	return put_in_place(f, dir, temp, name, 0);
}

/* One more name for a file that is there, as the archive says. */
static int write_hard(struct files *f, int top, int dir, const char *name)
{
	char target[256];
	char temp[48];
	_cleanup_fd_ int from = open_parent(top, item.link, false, target,
					    sizeof(target));
	int r = from < 0 ? from : 0;

	if (r == 0 && !target[0])
		r = -EISDIR;
	new_name(temp, sizeof(temp));
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
	if (r < 0)
		return err_errno(&f->err, -r, "write '%.200s'", item.name);
	return 0;
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
