/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Flags of the commands that speak to the daemon, as tables.
 *
 * Flags stand before or between operands, unless `stops` is set: then the first
 * operand ends them (exec: what follows belongs to the program). "--" always
 * does. --name value, --name=value, -n value, -nvalue, -abc.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/strv.h"

enum opt_kind { OPT_SWITCH, OPT_TEXT, OPT_LIST };

struct opt {
	const char *name;
	char letter;
	const char *value; /* what it takes; NULL: a switch */
	const char *help;
	enum opt_kind kind;
	size_t offset; /* of a bool, const char * or struct strv */
};

struct opts {
	const char *usage; /* "[FLAGS] BOX" */
	const struct opt *v;
	size_t n;
	int min, max; /* operands; max -1: any number */
	bool stops;
};

/*
 * argv[0] is the command's name. Operands are moved to argv[1..] and ended by
 * NULL; returns how many, or -errno. -ECANCELED: help was printed.
 */
int opts_read(const struct opts *o, char **argv, void *ret, struct err *err);
