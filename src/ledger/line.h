/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One record, as a line.
 *
 *	{"prev":"64 hex","time":"2026-11-15T23:52:12.123456Z","seq":7,
 *	 "kind":"run.end",MEMBERS,"crc":"8 hex"}\n
 *
 * without the line break in the middle. `prev` is the RFC 6962 leaf hash of
 * the line before (SHA-256 of a zero byte and the raw line without its
 * newline), 64 zeros in the first record. `seq` counts from 1. `crc` is the
 * CRC-32C of everything before the comma in front of it: the chain sees a
 * change in every record but the last one, this sees it there too, and tells
 * which of two neighbours was changed.
 *
 * Order, spelling and positions are fixed. So reading a line needs no JSON
 * parser, and a line that says the same in other bytes is not a record.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/sha256.h"

#define LINE_MAX_SIZE (1U << 20) /* with its newline */
#define LINE_TIME     27

struct line {
	const char *text;
	size_t len; /* without the newline */
	uint64_t seq;
	unsigned char prev[SHA256_SIZE];
	const char *time; /* LINE_TIME bytes */
	const char *kind;
	size_t kind_len;
	const char *members; /* what stands between kind and crc */
	size_t members_len;
};

/* The names at the start, for a record without a line around it yet. */
struct line_head {
	unsigned char prev[SHA256_SIZE];
	uint64_t seq;
	const char *kind;
};

/* Adds a whole line, with its newline; members without braces, may be "". */
int line_format(struct buf *out, const struct line_head *head,
		const char *members, size_t len);

/*
 * Reads a line without its newline; 0, or -EBADMSG when it is not exactly a
 * record. The result points into the text.
 */
int line_parse(const char *text, size_t len, struct line *ret);

/* The same without the checksum: what a changed line says that it is. */
int line_peek(const char *text, size_t len, struct line *ret);

/* The leaf hash of a line without its newline. */
void line_hash(const char *text, size_t len, unsigned char ret[SHA256_SIZE]);

/* Microseconds since 1970 of a record's time; -1 if it is none. */
int64_t line_time_us(const char time[LINE_TIME]);

void hex_format(const unsigned char *data, size_t len, char *ret);
/* 2 * len lower case digits; 0 or -EINVAL. */
int hex_parse(const char *text, unsigned char *ret, size_t len);

uint32_t crc32c(const void *data, size_t len);
