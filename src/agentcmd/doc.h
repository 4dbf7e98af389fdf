/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A document that a person wrote: YAML 1.2 or JSON, as a JSON tree, and where
 * in the file each of its values stands.
 *
 * Values are found by their path, a JSON pointer: "/agents/critic/model".
 * Reading one executes nothing and opens nothing else; tags, a second
 * document, a key that is there twice and a file that grows by its aliases
 * are errors.
 */

#include <jansson.h>
#include <stddef.h>

#include "base/err.h"

struct doc {
	char *file; /* as it is named in messages */
	json_t *root;
	json_t *places; /* path -> "LINE:COLUMN"; empty for JSON */
};

/* `file` "-" is standard input. */
int doc_read(const char *file, struct doc *ret, struct err *err);
int doc_parse(const char *file, const char *text, size_t len, struct doc *ret,
	      struct err *err);
void doc_done(struct doc *d);

/* Where one is in a document, while it is walked. */
struct at {
	const struct doc *doc;
	struct err *err;
	char path[1024];
	size_t len;
};

/* Goes down; returns what at_up() takes. */
size_t at_down(struct at *at, const char *key);
size_t at_down_to(struct at *at, size_t index);
void at_up(struct at *at, size_t len);
/* "FILE:LINE:COLUMN: PATH: ..."; returns -EINVAL. */
int at_error(const struct at *at, const char *fmt, ...) PRINTF(2, 3);
