/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One rule over one message: filter-walk.c goes through the JSON,
 * filter-text.c changes a string, filter-role.c knows whose message it is.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/filter-find.h"

enum rule_action { RULE_STRIP, RULE_MASK, RULE_REJECT };

struct sweep {
	/* The rule. */
	struct find_want want;
	unsigned int on; /* ROLE_... */
	enum rule_action action;
	const char *const *people;
	bool is_ours; /* a message of Cordon's own: what holds it has labels */
	/* What came of it. */
	uint64_t counts[FIND_KINDS];
	bool is_found;
	int error; /* it was not looked at to the end */
	int depth; /* of JSON, and of JSON within strings */
	int layers;
};

/* A new reference, to `data` itself where nothing changes; NULL: s->error. */
json_t *sweep_json(struct sweep *s, json_t *data, unsigned int roles);

/* filter-text.c */
/* NULL: it stays as it is, or s->error. */
char *sweep_text(struct sweep *s, const char *text, size_t len,
		 size_t *ret_len);
/* Whether a value is a secret by the name it has; it counts as found. */
bool sweep_named(struct sweep *s, const char *name, const char *value,
		 size_t len);
/*
 * Finds that go over the ends of pieces: the pieces (strings) are changed in
 * place of v; true: some were.
 */
bool sweep_pieces(struct sweep *s, json_t **v, size_t n);

/* filter-role.c */
/* Whose message an object is; 0: it is none that is known. */
unsigned int role_of(const json_t *o, const char *const *people);
/* Whether a member of such an object is an id, a name or a time. */
bool role_is_label(const char *member);
/* The same for what Cordon's own messages put around it. */
bool role_is_own_label(const char *member);
/* Whether a member holds messages again. */
bool role_is_nested(const char *member);
/* Whose words a member of something unknown has; 0: everybody's. */
unsigned int role_of_member(const char *member);
/* Whether its members are free: a structured answer. */
bool role_is_free(const json_t *o);
/* Pieces of answers that come before it is whole. */
bool role_is_chunk(const json_t *o);
/* Whether these are the data of an image and not text in disguise. */
bool role_is_image(const json_t *o);
