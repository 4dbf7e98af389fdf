/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Flags of commands: "--name", "--name=VALUE", "--name VALUE" and "-n". Which
 * there are and where a value goes is the command's own table; how they are
 * written is here.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct flag_form {
	const char *name;
	char letter;       /* 0: none */
	const char *value; /* what it takes; NULL: nothing */
};

/*
 * Whether **at is this flag: 1, and *ret has its value ("" where it takes
 * none), *at the last argument that belongs to it; 0: it is another one.
 */
int flag_read(const struct flag_form *f, char ***at, const char **ret,
	      struct err *err);

/* Before a command's own table is looked into. */
struct operands {
	char **v; /* moved to the front of the arguments themselves */
	size_t n;
};
/*
 * Each argument is an operand, or `read` takes it; after "--" all are
 * operands. At least and at most so many.
 */
int operands_read(char **args, size_t least, size_t most, struct operands *ret,
		  int (*read)(void *arg, char ***at, struct err *err),
		  void *arg, struct err *err);
