/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reading JSON where it stands, without memory of its own.
 *
 * For what the ledger's own writer wrote: no white space, no member twice.
 * Other text is refused or gives nothing, never an error in the reader.
 *
 *	struct value v, name, item;
 *
 *	if (value_get(&record, "limits", &v))
 *		for (struct walk w = walk_start(&v); walk_next(&w, &name,
 *&item);)
 *			...
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Deeper ones are refused. */
#define VALUE_DEPTH 16

struct value {
	const char *p;
	size_t len;
};

/* Whether it is one JSON value, as base/json.h writes them. */
bool value_check(const char *text, size_t len);

/* '{', '[', '"', '0' for numbers, 't', 'f', 'n'; '\0' for none. */
char value_type(const struct value *v);

/* The member `name` of an object; false, and *ret empty, if there is none. */
bool value_get(const struct value *object, const char *name, struct value *ret);

struct walk {
	const char *p, *end;
	bool is_object;
};

struct walk walk_start(const struct value *v);
/* The next member or item; `name` is empty for items, with its quotes else. */
bool walk_next(struct walk *w, struct value *name, struct value *ret);

/* Adds a string's text, escapes resolved; a value of another type as it is. */
int value_text(const struct value *v, struct buf *out);
/* Whether a string is exactly this; no escapes in it. */
bool value_is(const struct value *v, const char *text);
/* A whole number; `other` if it is none. */
int64_t value_int(const struct value *v, int64_t other);
