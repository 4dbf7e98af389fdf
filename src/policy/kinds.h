/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whether one word is what the grammar wants in its place. */

#include "policy/commands.h"
#include "policy/grammar.h"

struct kind_context {
	const char *const *hosts; /* NULL: none */
	const char *cwd;          /* where relative names start */
	const char *script;       /* the directory scripts must be below */
};

/* NULL, or what is wrong with it. */
const char *word_check(enum kind kind, const char *word,
		       const struct kind_context *context);
