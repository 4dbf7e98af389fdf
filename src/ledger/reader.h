/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The lines of a ledger in order, from any of them on, over all its files.
 *
 *	reader_open(&r, dir, 1, 0, &err);
 *	while ((n = reader_next(&r, &raw)) > 0)
 *		... raw.text, raw.len ...
 *	reader_close(&r);
 *
 * It takes no lock. At the end it returns 0, and may be asked again later.
 * What it gives are lines, not yet records: line_parse() tells.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct raw_line {
	const char *text;
	size_t len; /* without the newline */
	uint32_t file;
	uint64_t offset;
	bool is_torn; /* no newline, or too long: the rest is not read */
};

struct reader {
	int dir_fd;
	int fd;
	uint32_t file;
	uint64_t offset; /* of the next line */
	char *room;
	size_t at, len; /* what of it is read and not yet given */
};

/* A file that does not exist yet is no error. */
int reader_open(struct reader *r, const char *dir, uint32_t file,
		uint64_t offset, struct err *err);
void reader_close(struct reader *r);

/*
 * 1 and a line that lasts until the next call, 0 at the end, or -errno;
 * -EMEDIUMTYPE: what has a file's name is a link, a pipe or the like.
 */
int reader_next(struct reader *r, struct raw_line *ret);

/* After a torn line: reads it again, since a writer may be at it. */
void reader_again(struct reader *r, const struct raw_line *torn);
