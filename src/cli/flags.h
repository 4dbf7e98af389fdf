/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The flags of `cordon run`: the settings of a spec, and a few of its own.
 */

#include <stdbool.h>
#include <stddef.h>

#include <cordon/cordon.h>

#include "base/err.h"
#include "box/spec.h"

struct own_flag {
	const char *name;
	char letter;
	const char *value; /* NULL: a switch */
	const char *help;
	size_t offset; /* of the char * or bool in struct run_flags */
};

struct run_flags {
	const char *lang;
	const char *code; /* the last of `codes` */
	struct {
		const char *lang; /* said before it; NULL: none was */
		const char *code;
	} codes[SPEC_MAX_BLOCKS];
	size_t n_codes;
	bool json;
	bool dry_run;
	bool detach;
	bool help;
};

const struct own_flag *own_flag_at(size_t i);

/*
 * Reads CORDON_* and then argv[1..]; settings go into `s`, the rest of the line
 * is left at *ret_rest; *ret_dashes says that "--" ended the flags. 0 or
 * -errno.
 */
int flags_parse(int argc, char **argv, struct cordon_spec *s,
		struct run_flags *ret, char ***ret_rest, bool *ret_dashes,
		struct err *err);
void flags_help(void);
