/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A compiled policy: text, one line for each stated value.
 *
 *	cordon-policy TAB 2 TAB VERSION { TAB SHA256 TAB SOURCE }
 *	path TAB value TAB file:line:column
 *	...
 *
 * The first line names the format, the version of Cordon that wrote it, and
 * every source that took part: an absolute path, or "preset:NAME", each with
 * the SHA-256 of its bytes in hexadecimal, so that a copy can be checked
 * against what is on disk now.
 *
 * A path is the keys from the outside in, joined by dots; items of a list are
 * numbered from 0 without gaps: commands.allow.0.name. In paths, values and
 * files a tab is \t, a newline \n, a carriage return \r, a backslash \\, and
 * within a key of a path a dot is \. ; no other escape exists. A list that is
 * there and empty is one line with the value [], a map one with {}: empty is
 * not the same as absent. Each line ends with a newline; no line is empty;
 * no path occurs twice.
 *
 * The reader believes nothing: each path and each value is checked against
 * keys.h, and whatever it does not know makes the whole text invalid.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define FLAT_FORMAT  "cordon-policy\t2\t"
#define FLAT_MAX     (4U << 20)
#define FLAT_LINES   65536
#define FLAT_SOURCES 16

struct flat_line {
	char *path;  /* as written, with escapes */
	char *value; /* without */
	char *file;
	unsigned int line;
	unsigned int column;
};

struct flat_source {
	const char *sha256; /* 64 hexadecimal digits */
	const char *name;
};

struct flat {
	char *text; /* what everything else points into */
	const char *version;
	struct flat_source sources[FLAT_SOURCES];
	size_t n_sources;
	struct flat_line *lines; /* in the order of the text */
	size_t n_lines;
	struct flat_line **sorted; /* by path */
};

/* On failure nothing is left to release. */
int flat_parse(const char *text, size_t len, struct flat *ret, struct err *err);
void flat_done(struct flat *f);

/* Only the first line: what is needed to check a copy. */
int flat_parse_head(char *line, struct flat *ret, struct err *err);

/* The line of exactly that path, NULL if it is not stated. */
const struct flat_line *flat_get(const struct flat *f, const char *path);

/* The first line at that path or below it, NULL if there is none. */
const struct flat_line *flat_below(const struct flat *f, const char *path);

/*
 * Lines below `path` in the order of their paths: start with *at = 0; NULL
 * past the last.
 */
const struct flat_line *flat_next(const struct flat *f, const char *path,
				  size_t *at);

/*
 * Takes the part after `at` out of a path, unescaped; -EINVAL if it does not
 * fit or has an escape that does not exist. *ret_next is past the dot, NULL
 * at the end.
 */
int flat_part(const char *at, char *ret, size_t size, const char **ret_next);
