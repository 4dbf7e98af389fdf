/* SPDX-License-Identifier: Apache-2.0 */
#include "image/source.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "image/digest.h"
#include "image/entry.h"
#include "image/stream.h"
#include "image/tree.h"

/* An archive of images has a few for each layer; a root has thousands. */
#define FILES_MAX 8192
#define BLOBS     "blobs/sha256/"

static struct image_file *add_file(struct image_source *src, const char *name,
				   struct err *err)
{
	struct image_file *v;

	if (src->n >= FILES_MAX) {
		err_set(err, IMAGE_CORRUPT,
			"it has too many files for an archive of images; for "
			"a root file system use 'cordon image import'");
		return NULL;
	}
	v = reallocarray(src->files, src->n + 1, sizeof(*v));
	if (v) {
		src->files = v;
		v += src->n;
		memset(v, 0, sizeof(*v));
		v->name = strdup(name);
	}
	if (!v || !v->name) {
		err_set(err, ENOMEM, "out of memory");
		return NULL;
	}
	src->n++;
	image_session_name(src->ses, v->file);
	return v;
}

static int open_new(struct image_session *ses, const char *file,
		    struct err *err)
{
	int fd = openat(ses->dir, file,
			O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			0600);

	return fd < 0 ? err_errno(err, errno, "make a file in the store") : fd;
}

static int store_entry(struct image_stream *st, struct image_source *src,
		       struct image_file *f, struct err *err)
{
	_cleanup_fd_ int fd = open_new(src->ses, f->file, err);
	struct sha256 hash;
	const void *data;
	la_int64_t offset;
	size_t len;
	int r;

	if (fd < 0)
		return -err->code;
	sha256_init(&hash);
	while ((r = archive_read_data_block(st->tar, &data, &len, &offset)) ==
	       ARCHIVE_OK) {
		if (offset < 0 || (uint64_t)offset != f->size)
			return err_set(err, IMAGE_REFUSED, "'%.100s' has holes",
				       f->name);
		sha256_add(&hash, data, len);
		r = io_write_all(fd, data, len);
		if (r < 0)
			return err_errno(err, -r, "write to the store");
		f->size += len;
	}
	if (r != ARCHIVE_EOF)
		return image_stream_error(st, err);
	image_digest_end(&hash, f->digest);
	return 0;
}

/* "a/b" and "../c/d" make "c/d". 0, or -IMAGE_REFUSED. */
static int join(const char *name, const char *target, char *ret, size_t size,
		struct err *err)
{
	const char *slash = strrchr(name, '/');
	size_t len = slash ? (size_t)(slash - name) : 0;

	if (*target == '/' || len >= size)
		goto refuse;
	memcpy(ret, name, len);
	ret[len] = '\0';
	while (*target) {
		size_t n = strcspn(target, "/");

		if (n == 2 && memcmp(target, "..", 2) == 0) {
			if (len == 0)
				goto refuse;
			while (len > 0 && ret[--len] != '/')
				;
			ret[len] = '\0';
		} else if (n > 0 && !(n == 1 && *target == '.')) {
			if (len + n + 2 > size)
				goto refuse;
			if (len > 0)
				ret[len++] = '/';
			memcpy(ret + len, target, n);
			len += n;
			ret[len] = '\0';
		}
		target += n;
		target += strspn(target, "/");
	}
	return 0;
refuse:
	return err_set(err, IMAGE_REFUSED,
		       "the link '%.100s' leads out of the archive", name);
}

static int add_link(struct image_source *src, struct image_entry *at,
		    struct archive_entry *e, struct err *err)
{
	const char *hard = archive_entry_hardlink(e);
	const char *soft = archive_entry_symlink(e);
	struct image_file *f;
	char target[4096];

	if (join(hard ? "" : at->path,
		 hard   ? hard
		 : soft ? soft
			: "/",
		 target, sizeof(target), err) < 0)
		return -err->code;
	f = add_file(src, at->path, err);
	if (!f)
		return -err->code;
	f->target = strdup(target);
	return f->target ? 0 : err_set(err, ENOMEM, "out of memory");
}

static int stage_entry(struct image_stream *st, struct image_source *src,
		       struct archive_entry *e, struct err *err)
{
	struct image_entry *at = malloc(sizeof(*at));
	struct image_file *f;
	int r = 0;

	if (!at)
		return err_set(err, ENOMEM, "out of memory");
	if (image_entry_parse(archive_entry_pathname(e), at, err) < 0) {
		r = -err->code;
	} else if (at->kind != IMAGE_ENTRY_FILE) {
		r = 0;
	} else if (archive_entry_hardlink(e) ||
		   archive_entry_filetype(e) == AE_IFLNK) {
		r = add_link(src, at, e, err);
	} else if (archive_entry_filetype(e) == AE_IFREG) {
		f = add_file(src, at->path, err);
		r = f ? store_entry(st, src, f, err) : -err->code;
	}
	free(at);
	return r;
}

struct reading {
	const struct image_progress *progress;
	uint64_t total;
};

static void tick(struct image_stream *st)
{
	const struct reading *r = st->tick_arg;

	r->progress->tell(r->progress->arg, IMAGE_READING, NULL, st->in,
			  r->total);
}

/* The size, where there is one. */
static uint64_t size_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size
							  : 0;
}

static int stage_archive(struct image_source *src, struct err *err)
{
	const struct image_take *take = src->take;
	struct reading reading = { &take->progress, size_of(take->fd) };
	struct image_stream *st = malloc(sizeof(*st));
	locale_t before = image_utf8_enter();
	char all[IMAGE_DIGEST];
	struct archive_entry *e;
	int r;

	if (!st)
		return err_set(err, ENOMEM, "out of memory");
	r = image_stream_open(st, take->fd, &take->limits, err);
	/* It is what the layers are, packed: held by the limit for those. */
	st->max_out = take->limits.archive;
	st->is_hashed = false;
	if (take->progress.tell) {
		st->tick_arg = &reading;
		st->tick = tick;
	}
	while (r == 0 && (r = image_stream_next(st, &e, err)) > 0)
		r = stage_entry(st, src, e, err);
	if (r == 0)
		r = image_stream_end(st, all, err);
	image_stream_close(st);
	free(st);
	(void)uselocale(before);
	return r;
}

int image_source_open(struct image_source *src, struct image_session *ses,
		      const struct image_take *take, struct err *err)
{
	struct stat st;

	*src = (struct image_source){ .ses = ses, .take = take };
	if (fstat(take->fd, &st) < 0)
		return err_errno(err, errno, "read the archive");
	src->is_dir = S_ISDIR(st.st_mode);
	return src->is_dir ? 0 : stage_archive(src, err);
}

void image_source_close(struct image_source *src)
{
	for (size_t i = 0; i < src->n; i++) {
		free(src->files[i].name);
		free(src->files[i].target);
	}
	free(src->files);
	src->files = NULL;
	src->n = 0;
}

/* Copies until the end; what it was, into `f`. */
static int copy_stream(struct image_session *ses, int from,
		       const struct image_take *take, struct image_file *f,
		       struct err *err)
{
	_cleanup_fd_ int fd = open_new(ses, f->file, err);
	_cleanup_free_ char *buf = malloc(1 << 17);
	const struct image_progress *p = &take->progress;
	uint64_t total = size_of(from);
	struct sha256 hash;

	if (fd < 0 || !buf)
		return fd < 0 ? -err->code
			      : err_set(err, ENOMEM, "out of memory");
	sha256_init(&hash);
	for (;;) {
		ssize_t n = read(from, buf, 1 << 17);
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(err, errno, "read the archive");
		if (n == 0)
			break;
		f->size += (uint64_t)n;
		if (f->size > take->limits.archive)
			return err_set(err, IMAGE_TOO_LARGE,
				       "the archive has more than %llu bytes",
				       (unsigned long long)
					       take->limits.archive);
		sha256_add(&hash, buf, (size_t)n);
		r = io_write_all(fd, buf, (size_t)n);
		if (r < 0)
			return err_errno(err, -r, "write to the store");
		if (p->tell)
			p->tell(p->arg, IMAGE_READING, NULL, f->size, total);
	}
	image_digest_end(&hash, f->digest);
	return 0;
}

int image_source_stream(struct image_session *ses,
			const struct image_take *take, struct image_file *ret,
			struct err *err)
{
	*ret = (struct image_file){ 0 };
	image_session_name(ses, ret->file);
	return copy_stream(ses, take->fd, take, ret, err);
}

/* Copied from the layout's directory. */
static struct image_file *fetch(struct image_source *src, const char *name,
				struct err *err)
{
	_cleanup_fd_ int from = image_tree_open(src->take->fd, name,
						O_RDONLY | O_NONBLOCK);
	struct image_file *f;
	struct stat st;

	if (from == -ENOENT)
		return NULL;
	if (from < 0 || fstat(from, &st) < 0) {
		err_errno(err, from < 0 ? -from : errno, "open '%.100s'", name);
		return NULL;
	}
	if (!S_ISREG(st.st_mode)) {
		err_set(err, IMAGE_REFUSED, "'%.100s' is no file", name);
		return NULL;
	}
	src->bytes += (uint64_t)st.st_size;
	if (src->bytes > src->take->limits.archive) {
		err_set(err, IMAGE_TOO_LARGE,
			"the layout has more than %llu bytes",
			(unsigned long long)src->take->limits.archive);
		return NULL;
	}
	f = add_file(src, name, err);
	if (!f || copy_stream(src->ses, from, src->take, f, err) < 0)
		return NULL;
	return f;
}

/* The last of that name: a later entry replaces an earlier one. */
static struct image_file *lookup(struct image_source *src, const char *name)
{
	for (int links = 0; links < 8; links++) {
		size_t i = src->n;

		while (i > 0 && strcmp(src->files[i - 1].name, name) != 0)
			i--;
		if (i == 0)
			return NULL;
		if (!src->files[i - 1].target)
			return &src->files[i - 1];
		name = src->files[i - 1].target;
	}
	return NULL;
}

static int check_name(const struct image_file *f, struct err *err)
{
	const char *digits = f->name;

	if (strncmp(digits, BLOBS, strlen(BLOBS)) == 0)
		digits += strlen(BLOBS);
	else if (image_digest_digits(digits) != 64 ||
		 strcmp(digits + 64, ".json") != 0)
		return 0;
	if (strncmp(digits, image_digest_hex(f->digest), 64) != 0)
		return err_set(err, IMAGE_CORRUPT,
			       "'%.100s' has the digest '%s'", f->name,
			       f->digest);
	return 0;
}

const struct image_file *image_source_file(struct image_source *src,
					   const char *name, struct err *err)
{
	struct image_entry *at = malloc(sizeof(*at));
	struct image_file *f = NULL;

	if (!at) {
		err_set(err, ENOMEM, "out of memory");
		return NULL;
	}
	if (image_entry_parse(name, at, err) == 0 &&
	    at->kind == IMAGE_ENTRY_FILE) {
		f = lookup(src, at->path);
		if (!f && src->is_dir)
			f = fetch(src, at->path, err);
	}
	free(at);
	return f && check_name(f, err) == 0 ? f : NULL;
}

int image_source_doc(struct image_source *src, const char *name, char **ret,
		     size_t *ret_len, struct err *err)
{
	const struct image_file *f = image_source_file(src, name, err);
	_cleanup_fd_ int fd = NO_FD;

	if (err->code)
		return -err->code;
	if (!f)
		return err_set(err, IMAGE_CORRUPT, "'%.100s' is missing", name);
	fd = image_tree_open(src->ses->dir, f->file, O_RDONLY);
	if (fd < 0)
		return err_errno(err, -fd, "open '%.100s'", name);
	return image_read_doc(fd, ret, ret_len, err);
}
