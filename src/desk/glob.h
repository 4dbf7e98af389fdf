/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Globs over the text of an argument.
 *
 *	*	characters other than '/', perhaps none
 *	**	characters of any kind, perhaps none
 *	?	one character other than '/'
 *	\c	the character c itself
 *
 * One that is a whole segment takes at least one character: "src" and a star
 * is never "src/" alone. '[' and '{' mean something elsewhere and are refused
 * here unless escaped. Work is bounded by GLOB_MAX times GLOB_TEXT.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define GLOB_MAX  1024 /* bytes of a glob */
#define GLOB_TEXT 4096 /* bytes of a text */

int glob_check(const char *glob, struct err *err);

/*
 * For a yes. A wildcard stands for nothing that is not seen or that means
 * another place: no control or format character, no backslash; and the text
 * has no segment "." or "..", no "%2e", "%2f", "%5c", no "//" that the glob
 * does not have, and at most GLOB_TEXT bytes.
 */
bool glob_allows(const char *glob, const char *text);

/*
 * For a no: as they stand, or both with ".", ".." and "//" taken out. Wildcards
 * stand for any character, and a text that is too long is denied.
 */
bool glob_denies(const char *glob, const char *text);
