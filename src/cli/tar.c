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
	tar_put_fn *put;
	void *arg;
	struct err *err;
	int depth;
};

struct entry {
	const char *name;
	const char *link;
	char type;
	unsigned int mode;
	uint64_t size;
	int64_t mtime;
};

static void put_octal(char *field, size_t size, uint64_t value)
{
	field[--size] = '\0';
	while (size > 0) {
		field[--size] = (char)('0' + (value & 7));
		value >>= 3;
	}
}

static int put_header(struct packer *p, const struct entry *e)
{
	static const char magic[8] = { 'u', 's', 't', 'a', 'r', 0, '0', '0' };
	char h[TAR_BLOCK] = { 0 };
	unsigned int sum = 0;

	(void)memcpy(h, e->name, MIN(strlen(e->name), 100));
	put_octal(h + 100, 8, e->mode);
	put_octal(h + 108, 8, 0);
	put_octal(h + 116, 8, 0);
	put_octal(h + 124, 12, e->size > 077777777777ULL ? 0 : e->size);
	put_octal(h + 136, 12, e->mtime > 0 ? (uint64_t)e->mtime : 0);
	memset(h + 148, ' ', 8);
	h[156] = e->type;
	if (e->link)
		(void)memcpy(h + 157, e->link, MIN(strlen(e->link), 100));
	/* "ustar", NUL, and the version: no string. */
	memcpy(h + 257, magic, sizeof(magic));
	for (size_t i = 0; i < sizeof(h); i++)
		sum += (unsigned char)h[i];
	put_octal(h + 148, 7, sum);
	return p->put(p->arg, h, sizeof(h), p->err);
}

static int put_padding(struct packer *p, uint64_t size)
{
	static const char zeros[TAR_BLOCK];
	size_t n = (size_t)(-size & (TAR_BLOCK - 1));

	return n ? p->put(p->arg, zeros, n, p->err) : 0;
}

/* "LEN key=value\n", where LEN counts itself. */
static void put_record(struct buf *b, const char *key, const char *value)
{
	size_t rest = strlen(key) + strlen(value) + 3;
	size_t len = rest + 1;

	for (int i = 0; i < 4; i++) {
		char digits[24];

		len = rest +
		      (size_t)snprintf(digits, sizeof(digits), "%zu", len);
	}
	(void)buf_printf(b, "%zu %s=%s\n", len, key, value);
}

/* What does not fit into the header comes in one before it. */
static int put_entry(struct packer *p, const struct entry *e)
{
	struct entry pax = { .name = "pax", .type = 'x', .mode = 0644 };
	char size[24];
	struct buf b;
	int r = 0;

	buf_init(&b, TAR_MAX_HEAD);
	if (strlen(e->name) > 100)
		put_record(&b, "path", e->name);
	if (e->link && strlen(e->link) > 100)
		put_record(&b, "linkpath", e->link);
	if (e->size > 077777777777ULL) {
		(void)snprintf(size, sizeof(size), "%llu",
			       (unsigned long long)e->size);
		put_record(&b, "size", size);
	}
	if (b.error)
		r = err_set(p->err, ENAMETOOLONG, "'%.100s...' is too long",
			    e->name);
	if (r == 0 && b.len) {
		pax.size = b.len;
		r = put_header(p, &pax);
		if (r == 0)
			r = p->put(p->arg, b.data, b.len, p->err);
		if (r == 0)
			r = put_padding(p, b.len);
	}
	buf_done(&b);
	return r < 0 ? r : put_header(p, e);
}

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
		if (p->put(p->arg, data, (size_t)n, p->err) < 0)
			return -p->err->code;
		left -= (uint64_t)n;
	}
	return put_padding(p, size);
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
	struct entry e = { .type = '5',
			   .mode = st->st_mode & 0777,
			   .mtime = st->st_mtim.tv_sec };

	if (++p->depth > TAR_MAX_DEPTH)
		return err_set(p->err, ELOOP, "'%.100s...' is too deep", name);
	if (asprintf(&slash, "%s/", name) < 0)
		return err_set(p->err, ENOMEM, "out of memory");
	e.name = slash;
	if (*name && put_entry(p, &e) < 0)
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
	struct entry e = { .name = name,
			   .link = target,
			   .type = '2',
			   .mode = 0777,
			   .mtime = st->st_mtim.tv_sec };

	if (n < 0)
		return err_errno(p->err, errno, "read the link '%s'", path);
	target[n] = '\0';
	return put_entry(p, &e);
}

static int pack_at(struct packer *p, int dirfd, const char *path,
		   const char *name)
{
	_cleanup_fd_ int fd = NO_FD;
	struct entry e = { .name = name, .type = '0' };
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
	if (put_entry(p, &e) < 0)
		return -p->err->code;
	return put_file(p, fd, e.size, path);
}

int tar_pack(int dirfd, const char *path, const char *name, tar_put_fn *put,
	     void *arg, struct err *err)
{
	static const char zeros[2 * TAR_BLOCK];
	struct packer p = { .put = put, .arg = arg, .err = err };
	int r = pack_at(&p, dirfd, path, name);

	return r < 0 ? r : put(arg, zeros, sizeof(zeros), err);
}
