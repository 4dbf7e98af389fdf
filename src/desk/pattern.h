/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A pattern of a tool's arguments, which a remembered answer may have:
 *
 *	[{"path": "$.path", "glob": "notes-*.txt"},
 *	 {"path": "$.mode", "equals": 420},
 *	 {"path": "$.content", "any": true}]
 *
 * A path is $ and then steps: .name, ["any name"], [3]. There are no
 * wildcards in it. Equality is that of JSON: 1 is not "1", nor 1.0, nor true;
 * texts are compared byte by byte. A glob (glob.h) is for texts alone.
 *
 * For a yes every part of the arguments must be told of: a value that no term
 * stands for, or a key more, and it does not match. A term must find its
 * value, except "any", whose may be missing. For a no it is the other way
 * round: what the terms say is enough, whatever else there is.
 */

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

#define PATTERN_TERMS 32
#define PATTERN_DEPTH 16
#define PATTERN_PATH  512   /* bytes */
#define PATTERN_MAX   16384 /* bytes of a pattern as text */

/* NULL with *err: it is not one, or too large. json_decref() releases it. */
json_t *pattern_parse(const char *text, struct err *err);

/*
 * Adds the term of a flag: kind "equals" or "glob" with "PATH=VALUE", where
 * the value of "equals" is JSON; "any" with "PATH".
 */
int pattern_add(json_t *pattern, const char *kind, const char *said,
		struct err *err);

/* `arguments` is JSON text; what is not there or cannot be read is denied. */
bool pattern_allows(const json_t *pattern, const char *arguments);
bool pattern_denies(const json_t *pattern, const char *arguments);

/* On one line, for people. */
void pattern_show(const json_t *pattern, struct buf *out);
