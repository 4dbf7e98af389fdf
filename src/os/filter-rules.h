/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the system call filter of a box says, as data; filter-gen.c makes the
 * program. Lists end with NULL, rules with a call of NULL.
 */

#include <stdint.h>

extern const char *const calls_allowed[];
/* Known, and refused with EPERM rather than as unknown. */
extern const char *const calls_refused[];

enum test {
	BITS,   /* refused when one of these bits is set */
	EQUAL,  /* refused when it is this value */
	DIFFER, /* refused when it is not this value */
	UNLESS, /* none of these bits: the rules that follow do not matter */
};

struct arg_rule {
	const char *call;
	unsigned int arg;
	enum test test;
	uint32_t value;
	int error;
};

/* The rules of one call stand together; the calls made most come first. */
extern const struct arg_rule arg_rules[];
