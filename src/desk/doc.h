/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reading JSON strictly, with libfyaml in its JSON mode: one document, no
 * duplicate keys, nesting bounded, and each mapping held against a table of
 * the keys it may have. Bounding the size is the caller's.
 *
 * A string is written as such or as {"base64": "..."}, as json_exact() does.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct fy_document;
struct fy_node;
struct fy_diag;

struct doc {
	struct fy_document *tree;
	struct fy_diag *diag;
};

struct doc_key {
	const char *name;
	bool is_needed;
	int (*read)(struct fy_node *node, void *to, struct err *err);
};

/* The text must stay until doc_close(). */
int doc_open(struct doc *d, const char *text, size_t len, struct err *err);
struct fy_node *doc_root(const struct doc *d);
void doc_close(struct doc *d);

/* Reads each key into `to`; unknown and missing ones are errors. */
int doc_mapping(struct fy_node *node, const struct doc_key *keys, size_t n_keys,
		void *to, struct err *err);
/* Calls `each` for every element of at most `max`. */
int doc_list(struct fy_node *node, size_t max,
	     int (*each)(struct fy_node *node, void *to, struct err *err),
	     void *to, struct err *err);
/* A copy with a NUL behind it, which the caller frees; replaces *ret. */
int doc_bytes(struct fy_node *node, char **ret, size_t *ret_len,
	      struct err *err);
/* The same, and there is no NUL in it. */
int doc_string(struct fy_node *node, char **ret, struct err *err);
/* The same, and it is a SHA-256 in small digits. */
int doc_sha256(struct fy_node *node, char **ret, struct err *err);
int doc_uint(struct fy_node *node, uint64_t max, uint64_t *ret,
	     struct err *err);
