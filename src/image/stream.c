/* SPDX-License-Identifier: Apache-2.0 */
#include "image/stream.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "image/digest.h"

/* Below this a high ratio is no bomb: some layers are mostly zeroes. */
#define RATIO_FROM ((uint64_t)64 << 20)

static locale_t utf8;

static void make_utf8(void)
{
	utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

/* Loaded once and kept: a confined process cannot open its file. */
locale_t image_utf8_enter(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, make_utf8);
	return uselocale(utf8);
}

static la_ssize_t read_in(struct archive *a, void *arg, const void **ret)
{
	struct image_stream *s = arg;
	ssize_t n;

	do
		n = read(s->fd, s->buf, sizeof(s->buf));
	while (n < 0 && errno == EINTR);
	if (n < 0) {
		err_errno(&s->err, errno, "read the archive");
		archive_set_error(a, EIO, "read");
		return -1;
	}
	s->in += (uint64_t)n;
	if (s->in > s->max_in) {
		err_set(&s->err, IMAGE_TOO_LARGE,
			"the archive has more than %llu bytes",
			(unsigned long long)s->max_in);
		archive_set_error(a, EFBIG, "too large");
		return -1;
	}
	if (s->tick)
		s->tick(s);
	*ret = s->buf;
	return n;
}

static int check_out(struct image_stream *s)
{
	if (s->out > s->max_out)
		return err_set(&s->err, IMAGE_TOO_LARGE,
			       "the archive unpacks to more than %llu bytes",
			       (unsigned long long)s->max_out);
	if (s->out > RATIO_FROM && s->out / s->limits->ratio > s->in)
		return err_set(&s->err, IMAGE_TOO_LARGE,
			       "the archive unpacks to more than %llu times "
			       "its size",
			       (unsigned long long)s->limits->ratio);
	return 0;
}

static la_ssize_t read_out(struct archive *a, void *arg, const void **ret)
{
	struct image_stream *s = arg;
	la_int64_t offset;
	size_t len = 0;
	int r = archive_read_data_block(s->raw, ret, &len, &offset);

	if (r == ARCHIVE_EOF)
		return 0;
	if (r != ARCHIVE_OK) {
		if (!s->err.code)
			err_set(&s->err, IMAGE_CORRUPT,
				"the archive cannot be unpacked: %s",
				archive_error_string(s->raw));
		archive_set_error(a, EIO, "unpack");
		return -1;
	}
	s->out += len;
	if (check_out(s) < 0) {
		archive_set_error(a, EFBIG, "too large");
		return -1;
	}
	if (s->is_hashed)
		sha256_add(&s->hash, *ret, len);
	return (la_ssize_t)len;
}

int image_stream_error(struct image_stream *s, struct err *err)
{
	const char *text = s->tar ? archive_error_string(s->tar) : NULL;

	if (s->err.code) {
		if (err)
			*err = s->err;
		return -s->err.code;
	}
	return err_set(err, IMAGE_CORRUPT, "the archive cannot be read: %s",
		       text ? text : "it is no tar archive");
}

static int open_raw(struct image_stream *s)
{
	struct archive_entry *entry;

	s->raw = archive_read_new();
	/* One that is not compiled in would be run as a program: ARCHIVE_WARN
	 */
	return s->raw && archive_read_support_format_raw(s->raw) == 0 &&
	       archive_read_support_filter_gzip(s->raw) == 0 &&
	       archive_read_support_filter_zstd(s->raw) == 0 &&
	       archive_read_support_filter_xz(s->raw) == 0 &&
	       archive_read_open(s->raw, s, NULL, read_in, NULL) == 0 &&
	       archive_read_next_header(s->raw, &entry) == 0;
}

int image_stream_open(struct image_stream *s, int fd,
		      const struct image_limits *limits, struct err *err)
{
	memset(s, 0, offsetof(struct image_stream, buf));
	s->fd = fd;
	s->limits = limits;
	s->is_hashed = true;
	s->max_in = limits->archive;
	/* Headers and padding take their part. */
	s->max_out = limits->size + limits->size / 4 + ((uint64_t)64 << 20);
	sha256_init(&s->hash);
	if (!open_raw(s)) {
		if (s->err.code)
			return image_stream_error(s, err);
		return err_set(err, IMAGE_CORRUPT,
			       "the archive is empty or cannot be unpacked");
	}
	/* The last one is "none". */
	if (archive_filter_count(s->raw) > 2)
		return err_set(err, IMAGE_REFUSED,
			       "the archive is packed more than once");
	s->tar = archive_read_new();
	if (!s->tar || archive_read_support_format_tar(s->tar) != 0)
		return err_set(err, ENOMEM, "out of memory");
	if (archive_read_open(s->tar, s, NULL, read_out, NULL) != 0)
		return image_stream_error(s, err);
	return 0;
}

int image_stream_next(struct image_stream *s, struct archive_entry **ret,
		      struct err *err)
{
	int r = archive_read_next_header(s->tar, ret);

	if (r == ARCHIVE_EOF)
		return s->err.code ? image_stream_error(s, err) : 0;
	/* A warning is about an attribute or a character that is odd. */
	if (r != ARCHIVE_OK && r != ARCHIVE_WARN)
		return image_stream_error(s, err);
	if (!archive_entry_pathname(*ret))
		return err_set(err, IMAGE_CORRUPT, "an entry has no name");
	return 1;
}

int image_stream_end(struct image_stream *s, char ret[IMAGE_DIGEST],
		     struct err *err)
{
	const void *data;
	la_ssize_t n;

	do
		n = read_out(s->tar, s, &data);
	while (n > 0);
	if (n < 0)
		return image_stream_error(s, err);
	image_digest_end(&s->hash, ret);
	return 0;
}

void image_stream_close(struct image_stream *s)
{
	archive_read_free(s->tar);
	archive_read_free(s->raw);
	s->tar = NULL;
	s->raw = NULL;
}
