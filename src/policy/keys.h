/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The grammar of a policy, as data.
 *
 * One table says which keys there are, what each takes, and which of two
 * values is the tighter one. The reader of YAML (desk), the reader of the
 * flat form (flat.c), `extends` and the JSON schema all walk this table, so
 * none of them can know a key that the others do not.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum grammar_kind {
	GRAMMAR_SCALAR,
	GRAMMAR_MAP,  /* fixed keys */
	GRAMMAR_LIST, /* of items */
	GRAMMAR_DICT, /* names of the user's own, each with an item */
};

struct grammar_key;

struct grammar {
	enum grammar_kind kind;
	/* What is allowed there, for messages: "a time such as 30s". */
	const char *takes;

	/* Scalars: a word of the list, or whatever `check` accepts. */
	const char *const *words; /* NULL-ended; later words are tighter */
	bool (*check)(const char *text);
	/* Scalars that are numbers: lower is tighter. */
	int (*number)(const char *text, uint64_t *ret);
	bool is_bool;      /* true or false, in `words` */
	const char *regex; /* for the schema */

	const struct grammar_key *keys; /* maps: ended by a NULL name */
	const char *shorthand; /* maps: a plain word stands for this key */
	/* Maps: exactly one of these keys must be there; NULL-ended. */
	const char *const *one_of;

	const struct grammar *item; /* lists, dicts */
	/*
	 * Lists where none would be read as all, or take the rule's effect
	 * away: at least one item.
	 */
	bool is_filled;
	bool (*check_key)(const char *key); /* dicts */
	const char *key_takes;

	const struct grammar *other; /* another form of the same value */
};

struct grammar_key {
	const char *name;
	const struct grammar *value;
	bool is_required;
	const char *help;
};

extern const struct grammar grammar_policy;

/* The key of a map, NULL if it has none of that name. */
const struct grammar_key *grammar_key(const struct grammar *g,
				      const char *name);

/* Whether a scalar of this grammar may have that value. */
bool grammar_check(const struct grammar *g, const char *text);

/*
 * Follows one part of a path: a key, an index, a name. NULL if it leads
 * nowhere. Where there are two forms, the one that has the part.
 */
const struct grammar *grammar_step(const struct grammar *g, const char *part);

/* The form of `g` that is of that kind, NULL if there is none. */
const struct grammar *grammar_form(const struct grammar *g,
				   enum grammar_kind kind);

/*
 * Compares two values of a scalar: negative if `a` is tighter than `b`, 0 if
 * they say the same, positive if `a` is looser, or if it cannot be said
 * which: then a file must not replace the other's value.
 */
int grammar_compare(const struct grammar *g, const char *a, const char *b);
