/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The settings of a spec, as data: what `cordon run` prints as its flags,
 * what cordon_spec_set() accepts, and what the man page and the completions
 * are made from.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct cordon_spec;

struct setting {
	const char *name;
	char letter;       /* one-letter flag, 0: none */
	const char *value; /* what it takes, NULL: nothing (a switch) */
	const char *help;
	const char *aliases; /* further names, separated by spaces */
	int (*set)(struct cordon_spec *s, const char *value, struct err *err);
};

/* Sorted as the help shows them; NULL past the last. */
const struct setting *setting_at(size_t i);

/* By name or alias; '_' is as good as '-'. NULL if there is none. */
const struct setting *setting_find(const char *name);
const struct setting *setting_find_letter(char letter);
