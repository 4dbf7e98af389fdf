/* SPDX-License-Identifier: Apache-2.0 */

/* Writing an archive. */

#include "cli/tar.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/say.h"
#include "base/util.h"

struct packer {
	struct tar_out out;
	struct err *err;
	int depth;
};

/* Exactly `size` bytes, whatever happens to the file meanwhile. */
static int put_file(struct packer *p, int fd, uint64_t size, const char *name)
{
	char data[65536];
	uint64_t left = size;

	while (left > 0) {
		size_t want = (size_t)MIN(left, sizeof(data));
		ssize_t n = read(fd, data, want);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(p->err, errno, "read '%s'", name);
		if (n == 0)
			return err_set(p->err, EIO, "'%s' became shorter",
				       name);
		if (p->out.put(p->out.arg, data, (size_t)n, p->err) < 0)
			return -p->err->code;
		left -= (uint64_t)n;
	}
	return tar_put_padding(&p->out, size);
}

static int pack_at(struct packer *p, int dirfd, const char *path,
		   const char *name);

static int pack_children(struct packer *p, int fd, const char *name)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *d;
	int r = 0;

	if (!dir) {
		fd_close(&copy);
		return err_errno(p->err, errno, "read '%s'", name);
	}
	while (r == 0 && (d = readdir(dir))) {
		_cleanup_free_ char *below = NULL;

		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
			continue;
		if (asprintf(&below, "%s%s%s", name, *name ? "/" : "",
			     d->d_name) < 0)
			r = err_set(p->err, ENOMEM, "out of memory");
		else
			r = pack_at(p, dirfd(dir), d->d_name, below);
	}
	(void)closedir(dir);
	return r;
}

static int pack_directory(struct packer *p, int fd, const struct stat *st,
			  const char *name)
{
	_cleanup_free_ char *slash = NULL;
	struct tar_entry e = { .type = '5',
			       .mode = st->st_mode & 0777,
			       .mtime = st->st_mtim.tv_sec,
			       .uid = st->st_uid,
			       .gid = st->st_gid };

	if (++p->depth > TAR_MAX_DEPTH)
		return err_set(p->err, ELOOP, "'%.100s...' is too deep", name);
	if (asprintf(&slash, "%s/", name) < 0)
		return err_set(p->err, ENOMEM, "out of memory");
	e.name = slash;
	if (*name && tar_put_entry(&p->out, &e) < 0)
		return -p->err->code;
	if (pack_children(p, fd, name) < 0)
		return -p->err->code;
	p->depth--;
	return 0;
}

static int pack_link(struct packer *p, int dirfd, const char *path,
		     const struct stat *st, const char *name)
{
	char target[4096];
	ssize_t n = readlinkat(dirfd, path, target, sizeof(target) - 1);
	struct tar_entry e = { .name = name,
			       .link = target,
			       .type = '2',
			       .mode = 0777,
			       .mtime = st->st_mtim.tv_sec,
			       .uid = st->st_uid,
			       .gid = st->st_gid };

	if (n < 0)
		return err_errno(p->err, errno, "read the link '%s'", path);
	target[n] = '\0';
	return tar_put_entry(&p->out, &e);
}

static int pack_at(struct packer *p, int dirfd, const char *path,
		   const char *name)
{
	_cleanup_fd_ int fd = NO_FD;
	struct tar_entry e = { .name = name, .type = '0' };
	struct stat st;

	if (fstatat(dirfd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_errno(p->err, errno, "look at '%s'", path);
	if (S_ISLNK(st.st_mode))
		return pack_link(p, dirfd, path, &st, name);
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
		say("'%s' is left out: neither a file nor a directory", path);
		return 0;
	}
	fd = openat(dirfd, path,
		    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(p->err, errno, "open '%s'", path);
	if (S_ISDIR(st.st_mode))
		return pack_directory(p, fd, &st, name);
	if (!S_ISREG(st.st_mode))
		return err_set(p->err, EINVAL, "'%s' changed", path);
	e.mode = st.st_mode & 0777;
	e.size = (uint64_t)st.st_size;
	e.mtime = st.st_mtim.tv_sec;
	e.uid = st.st_uid;
	e.gid = st.st_gid;
	if (tar_put_entry(&p->out, &e) < 0)
		return -p->err->code;
	return put_file(p, fd, e.size, path);
}

int tar_pack(int dirfd, const char *path, const char *name, tar_put_fn *put,
	     void *arg, struct err *err)
{
	struct packer p = { .out = { put, arg, err }, .err = err };
	int r = pack_at(&p, dirfd, path, name);

	return r < 0 ? r : tar_put_end(&p.out);
}
