/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a policy says about commands, and the judgement of one command line.
 *
 * Pure: no system call, no allocation. The rules come from a policy; the line
 * was taken apart by shell.h. A line is allowed only if each of its simple
 * commands is allowed; it asks if one asks and none is denied.
 */

#include <stdbool.h>
#include <stddef.h>

#include "policy/shell.h"

enum decision {
	DECISION_ALLOW,
	DECISION_ASK,
	DECISION_DENY,
};

enum operands {
	OPERANDS_GRAMMAR, /* as the shipped grammar of that program says */
	OPERANDS_ANY,
	OPERANDS_PATHS, /* names of files in the box, no URL, no "-" option */
	OPERANDS_NONE,
};

/* One entry of `commands: {allow, ask, deny}`. Lists end with NULL. */
struct command_rule {
	const char *name;         /* of the program, without a directory */
	const char *const *sub;   /* NULL: any; else the first operand */
	const char *const *flags; /* NULL: those of the shipped grammar */
	enum operands operands;
	const char *script; /* the first operand is a script below this */
	const char *file;   /* where the rule stands, for messages */
	unsigned int line;
};

struct command_rules {
	const struct command_rule *allow;
	size_t n_allow;
	const struct command_rule *ask;
	size_t n_ask;
	const struct command_rule *deny; /* wins */
	size_t n_deny;
	bool ask_otherwise; /* what no rule names, and what is not understood,
			       asks rather than being denied */
	const char *const *hosts; /* NULL-ended: what curl may be sent to */
};

struct judgement {
	enum decision decision;
	size_t command;                  /* the simple command that decided */
	const struct command_rule *rule; /* NULL: none names it */
	char why[256];
};

/* Judges a line that shell_parse() understood. */
void commands_judge(const struct command_rules *rules,
		    const struct shell_line *line, struct judgement *ret);

/* Parses and judges; what is not understood is denied, or asks. */
void commands_judge_text(const struct command_rules *rules, const char *text,
			 size_t len, struct shell_line *line,
			 struct judgement *ret);

const char *decision_name(enum decision d);
