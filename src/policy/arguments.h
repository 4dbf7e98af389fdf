/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The arguments of one command against one rule and the shipped grammar. */

#include "policy/commands.h"

struct complaint {
	const char *why;  /* NULL: nothing is wrong */
	const char *word; /* the argument, or NULL if none is to blame */
};

/*
 * `words` are the command's, its name included. Nothing is wrong only if
 * each word is understood: a flag that is allowed, its value, or an operand
 * of the right kind.
 */
struct complaint arguments_check(const struct command_rules *rules,
				 const struct command_rule *rule,
				 const char *const *words, size_t n);

/*
 * Whether a rule that restricts (deny, ask) concerns the command. Errs on
 * the side of yes: a sub-command counts wherever it stands, a flag also when
 * it is abbreviated, has a value attached or is one letter among several.
 */
bool arguments_concern(const struct command_rule *rule,
		       const char *const *words, size_t n);
