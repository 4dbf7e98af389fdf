/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The kinds of records, as data.
 *
 * ledger_append() takes nothing else; api/ledger.schema.json and the list in
 * cordon-ledger(5) are printed from this table (`cordon-desk audit schema`).
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct kind_member {
	const char *name;
	char type; /* 's' text, 'h' a SHA-256, 'i' whole number, 'b', 'o', 'a'
		    */
	bool is_required;
	const char *about;
};

struct kind {
	const char *name;
	const char *about;
	const struct kind_member *members; /* ended by a NULL name */
};

extern const struct kind kinds[];
extern const size_t n_kinds;

/* NULL if there is none of that name. */
const struct kind *kind_find(const char *name, size_t len);

/* Whether it is an object with the members of that kind; 0 or -EINVAL. */
int kind_check(const char *kind, const char *members, size_t len,
	       struct err *err);
