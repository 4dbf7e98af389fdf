/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Files of an image, before a box is made of it.
 *
 * They are looked for in the layers one by one, as overlayfs would show them:
 * the topmost that has the name decides, a mark hides what is below, and a
 * directory may hide all of it. An image is foreign. No link is followed by
 * the kernel; where one is to be followed it is done here, name by name, and
 * its root is the image's.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "box/images.h"

#define MAX_LINKS 40 /* as the kernel */

static bool is_opaque(int dir)
{
	char value = 0;

	return fgetxattr(dir, "user.overlay.opaque", &value, 1) == 1 &&
	       value == 'y';
}

static bool is_mark(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

enum look {
	LOOK_FILE, /* opens it */
	LOOK_DIR,  /* opens it */
	LOOK_NAME, /* opens the directory that has the name */
};

/*
 * In one layer. -ENOENT: the next layer may have it; -ENODATA: none below
 * counts.
 */
static int open_in_layer(int layer, const char *path, enum look what)
{
	_cleanup_fd_ int dir = fcntl(layer, F_DUPFD_CLOEXEC, 3);
	bool hides = false;

	while (dir >= 0) {
		size_t len = strcspn(path, "/");
		bool is_last = path[len] == '\0';
		bool is_file = is_last && what == LOOK_FILE;
		_cleanup_fd_ int next = NO_FD;
		char name[256];
		struct stat st;

		if (len == 0 || len >= sizeof(name))
			return -EINVAL;
		memcpy(name, path, len);
		name[len] = '\0';
		if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return errno == ENOENT && hides ? -ENODATA : -errno;
		if (is_mark(&st))
			return -ENODATA;
		if (is_last && what == LOOK_NAME)
			return take_fd(&dir);
		if (S_ISLNK(st.st_mode))
			return -ELOOP;
		if (!(is_file ? S_ISREG(st.st_mode) : S_ISDIR(st.st_mode)))
			return -ENODATA;
		next = openat(dir, name,
			      O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		if (next < 0)
			return -errno;
		if (is_last)
			return take_fd(&next);
		hides |= is_opaque(next);
		(void)close(dir);
		dir = take_fd(&next);
		path += len + 1;
	}
	return -errno;
}

static int open_in_image(const struct box_image *image, const char *path,
			 enum look what)
{
	int fd = -ENOENT;

	while (*path == '/')
		path++;
	for (size_t i = image->n_layer_fds; i-- > 0 && fd == -ENOENT;)
		fd = open_in_layer(image->layer_fds[i], path, what);
	return fd;
}

int box_image_open(const struct box_image *image, const char *path)
{
	int fd = open_in_image(image, path, LOOK_FILE);

	return fd == -ENODATA ? -ENOENT : fd;
}

bool box_image_has(const struct box_image *image, const char *path,
		   const char *program)
{
	char full[512];

	if (strchr(program, '/'))
		path = "";
	do {
		size_t len = strcspn(path, ":");
		_cleanup_fd_ int fd = NO_FD;

		(void)snprintf(full, sizeof(full), "%.*s/%s", (int)len, path,
			       program);
		fd = open_in_image(image, full, LOOK_NAME);
		if (fd >= 0)
			return true;
		path += len + (path[len] == ':');
	} while (*path);
	return false;
}

long box_image_read(const struct box_image *image, const char *path, char *buf,
		    size_t size)
{
	_cleanup_fd_ int fd = box_image_open(image, path);
	ssize_t n;

	if (fd < 0)
		return fd;
	n = io_read_full(fd, buf, size - 1);
	if (n < 0)
		return n;
	if ((size_t)n == size - 1)
		return -EFBIG;
	buf[n] = '\0';
	return strlen(buf) == (size_t)n ? n : -EINVAL;
}

int box_image_list(const struct box_image *image, const char *path,
		   struct strv *ret)
{
	while (*path == '/')
		path++;
	for (size_t i = image->n_layer_fds; i-- > 0;) {
		int fd = open_in_layer(image->layer_fds[i], path, LOOK_DIR);
		bool is_all;
		DIR *d;
		int r = 0;

		if (fd == -ENOENT)
			continue;
		if (fd < 0)
			return fd == -ENODATA || fd == -ELOOP ? 0 : fd;
		is_all = is_opaque(fd);
		d = fdopendir(fd);
		if (!d) {
			r = -errno;
			(void)close(fd);
			return r;
		}
		for (struct dirent *e = readdir(d); r == 0 && e; e = readdir(d))
			r = strv_add(ret, e->d_name);
		(void)closedir(d);
		if (r < 0 || is_all)
			return r;
	}
	return 0;
}

/* following links */

struct walk {
	const struct box_image *image;
	char done[PATH_MAX]; /* what was found, without links */
	char todo[PATH_MAX]; /* what is still to be looked for */
	struct stat st;      /* of `done` */
	unsigned int links;
	bool is_missing; /* from here on nothing is there */
};

/* What `done` leads to; a link's text goes to `link`. */
static int look(struct walk *w, char link[PATH_MAX])
{
	_cleanup_fd_ int dir = open_in_image(w->image, w->done, LOOK_NAME);
	const char *name = strrchr(w->done, '/') + 1;
	ssize_t n;

	link[0] = '\0';
	/* A link in a lower layer is hidden by the directory above it. */
	if (dir < 0)
		return dir == -ENODATA || dir == -ELOOP ? -ENOENT : dir;
	if (fstatat(dir, name, &w->st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISLNK(w->st.st_mode))
		return 0;
	n = readlinkat(dir, name, link, PATH_MAX);
	if (n <= 0 || n >= PATH_MAX)
		return n < 0 ? -errno : -ENAMETOOLONG;
	link[n] = '\0';
	return 1;
}

static void step_up(struct walk *w)
{
	char *slash = strrchr(w->done, '/');

	if (slash)
		*slash = '\0';
}

/* The link that `done` ends with is replaced by where it leads. */
static int follow(struct walk *w, const char *link)
{
	char rest[PATH_MAX];

	if (++w->links > MAX_LINKS)
		return -ELOOP;
	if (link[0] == '/')
		w->done[0] = '\0';
	else
		step_up(w);
	memcpy(rest, w->todo, sizeof(rest));
	if (snprintf(w->todo, sizeof(w->todo), "%s/%s", link, rest) >=
	    (int)sizeof(w->todo))
		return -ENAMETOOLONG;
	return 0;
}

static int step_down(struct walk *w, const char *name, bool may_miss)
{
	size_t len = strlen(w->done);
	char link[PATH_MAX];
	int r;

	if (snprintf(w->done + len, sizeof(w->done) - len, "/%s", name) >=
	    (int)(sizeof(w->done) - len))
		return -ENAMETOOLONG;
	if (w->is_missing)
		return 0;
	r = look(w, link);
	if (r > 0)
		return follow(w, link);
	if (r == -ENOENT && may_miss) {
		w->is_missing = true;
		return 0;
	}
	if (r == 0 && !S_ISDIR(w->st.st_mode) && w->todo[0])
		return -ENOTDIR;
	return r;
}

/* The next name; what is left of `todo` begins behind it. */
static bool next_name(struct walk *w, char name[256], int *ret_error)
{
	const char *p = w->todo + strspn(w->todo, "/");
	size_t len = strcspn(p, "/");

	if (len == 0)
		return false;
	if (len > 255) {
		*ret_error = -ENAMETOOLONG;
		return false;
	}
	memcpy(name, p, len);
	name[len] = '\0';
	p += len + strspn(p + len, "/");
	memmove(w->todo, p, strlen(p) + 1);
	return true;
}

static int walk_all(struct walk *w, bool may_miss)
{
	char name[256];
	int r = 0;

	while (r == 0 && next_name(w, name, &r)) {
		if (strcmp(name, ".") == 0)
			continue;
		if (strcmp(name, "..") != 0)
			r = step_down(w, name, may_miss);
		else if (w->is_missing)
			r = -ENOENT; /* where that leads is not known */
		else
			step_up(w);
	}
	return r;
}

int box_image_real(const struct box_image *image, const char *path,
		   bool may_miss, struct image_real *ret)
{
	struct walk w = { .image = image };
	int r;

	if (snprintf(w.todo, sizeof(w.todo), "%s", path) >= (int)sizeof(w.todo))
		return -ENAMETOOLONG;
	r = walk_all(&w, may_miss);
	if (r < 0)
		return r;
	/* The last step may have been upwards. */
	if (w.done[0] && !w.is_missing) {
		char unused[PATH_MAX];

		r = look(&w, unused);
		if (r != 0)
			return r < 0 ? r : -ELOOP;
	}
	(void)snprintf(ret->path, sizeof(ret->path), "%s",
		       w.done[0] ? w.done : "/");
	ret->mode = w.is_missing ? 0 : w.done[0] ? w.st.st_mode : S_IFDIR;
	return 0;
}
