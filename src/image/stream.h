/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A tar archive, packed or not, as libarchive reads it: what comes out of the
 * first (gzip, zstd, xz or nothing, and only one of them) goes through a hash
 * and our limits into the second (tar and nothing else).
 *
 *	image_stream_open(&s, fd, &limits, &err);
 *	while (image_stream_next(&s, &entry, &err) > 0)
 *		archive_read_data_block(s.tar, ...);
 *	image_stream_end(&s, digest, &err);	 (reads the rest)
 *	image_stream_close(&s);
 */

#include <archive.h>
#include <archive_entry.h>
#include <locale.h>

#include "base/sha256.h"
#include "image/image.h"

struct image_stream {
	int fd;
	struct archive *raw;
	struct archive *tar;
	const struct image_limits *limits;
	uint64_t max_in;
	uint64_t max_out;
	uint64_t in;  /* bytes read */
	uint64_t out; /* bytes unpacked */
	bool is_hashed;
	struct sha256 hash;
	struct err err; /* of ours, met inside libarchive */
	void (*tick)(struct image_stream *s);
	void *tick_arg;
	unsigned char buf[1 << 17];
};

/*
 * libarchive gives names in the thread's locale, and none that it lacks letters
 * for: this thread's becomes UTF-8. Returns the one before, for uselocale().
 */
locale_t image_utf8_enter(void);

int image_stream_open(struct image_stream *s, int fd,
		      const struct image_limits *limits, struct err *err);

/* 1 and the next entry, 0 at the end. */
int image_stream_next(struct image_stream *s, struct archive_entry **ret,
		      struct err *err);

/* The error of the last call on s->tar. */
int image_stream_error(struct image_stream *s, struct err *err);

/* Reads what follows the archive's end; the digest of all that came out. */
int image_stream_end(struct image_stream *s, char ret[IMAGE_DIGEST],
		     struct err *err);
void image_stream_close(struct image_stream *s);
