/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Functions of the program, known by their names: a configuration never holds
 * code, it names what the program has registered.
 */

#include "base/err.h"

#define NAMED_MAX 32

typedef void named_fn(void); /* its owner knows what it really is */

struct named {
	char name[64];
	named_fn *fn; /* NULL: free */
	void *arg;
};

/* In a table of NAMED_MAX. NULL: there is none. */
const struct named *named_find(const struct named *table, const char *name);
/* Takes the place of one with the same name. */
int named_add(struct named *table, const char *name, named_fn *fn, void *arg,
	      struct err *err);
