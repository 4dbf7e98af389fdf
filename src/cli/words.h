/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What cordon-desk knows: its sub-commands and their flags, as that program
 * itself lists them, so that a completion cannot name one that is not there.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define WORDS_MAX 64

struct words_verb {
	char *command; /* "audit" */
	char *name;    /* "verify", "rules list" */
	char *flags;   /* "--json --head", may be empty */
	bool has_file; /* it takes the name of a file */
};

struct words {
	struct words_verb v[WORDS_MAX];
	size_t n;
	char *text; /* what the strings above point into */
	char *flags;
};

/* 0, or -errno; words_done() releases in both cases. */
int words_read(struct words *ret, struct err *err);
void words_done(struct words *w);
