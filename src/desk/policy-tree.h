/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A policy as it is written: a tree that follows the grammar, each node with
 * the place where it stands.
 *
 *	policy_read()   YAML -> tree, with everything that `extends` brings
 *	policy_flat()   tree -> the flat form
 */

#include "base/buf.h"
#include "base/err.h"
#include "policy/flat.h"
#include "policy/keys.h"

struct node {
	const struct grammar *grammar; /* of its own kind */
	char *key;                     /* in a map or dict */
	char *value;                   /* of a scalar */
	const char *file;              /* a name in struct sources */
	unsigned int line;
	unsigned int column;
	struct node **items;
	size_t n;
};

struct source {
	char *shown; /* in messages */
	char *name;  /* absolute path, or preset:NAME */
	char sha256[65];
};

struct sources {
	struct source v[FLAT_SOURCES];
	size_t n;
	char *dir; /* of the first file: where relative paths start */
};

/* Reads a file and all that it extends. Errors are FILE:LINE:COLUMN: ... */
int policy_read(const char *file, struct sources *sources, struct node **ret,
		struct err *err);

/* policy-yaml.c: one document along the grammar; NULL and *err. */
struct node *policy_parse_yaml(const char *file, const char *text, size_t len,
			       struct err *err);

/* policy-merge.c: puts `child` over `base`, which stays; `child` is used up. */
int policy_merge(struct node *base, struct node *child, struct err *err);

/* Writes the flat form. */
int policy_flat(const struct node *tree, const struct sources *sources,
		struct buf *ret, struct err *err);

struct node *node_new(const struct grammar *g, const char *key,
		      const struct node *at);
/* `item` is taken over, also on failure. */
int node_add(struct node *n, struct node *item);
struct node *node_find(const struct node *n, const char *key);
void node_free(struct node *n);
void sources_done(struct sources *s);

/* Position in front; returns -EINVAL. */
int node_error(const struct node *n, struct err *err, const char *fmt, ...)
	PRINTF(3, 4);
