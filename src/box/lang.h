/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The languages that code can be in; the table is in lang.c. */

#include <stddef.h>

struct lang {
	const char *names[4]; /* the first is the usual one */
	const char *suffix;
	const char *programs[2]; /* the first that exists in the box's root */
	const char *args[4];     /* before the file */
	const char *compile[8];  /* program and arguments, "@" is the file,
				    "%" what it makes; empty: interpreted */
};

/* Finds a language by name, without regard to case; NULL if unknown. */
const struct lang *lang_find(const char *name);

/* By the ending of a file's name. */
const struct lang *lang_of_file(const char *path);

/* The i-th language, NULL past the last. */
const struct lang *lang_at(size_t i);

/*
 * The name without what is around it, as it is kept; the caller frees it. NULL
 * without memory.
 */
char *lang_trimmed(const char *name);

/* Exact program for names such as python3.11, NULL otherwise. */
const char *lang_exact_program(const char *name);
