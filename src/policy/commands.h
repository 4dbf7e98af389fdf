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

/*
 * One entry of `commands: {allow, ask, deny}`. Lists end with NULL; an empty
 * one allows nothing.
 *
 * To permit (allow, ask), every argument must fit. `flags` are then exactly
 * those that may be used: "-n", "--name"; "-n=" and "--name=" take a value
 * (any word that does not look like a flag), "--name=value" takes that one.
 * Without the = a flag that the shipped grammar knows has its values as
 * there, and after any other the next word is judged like an operand.
 *
 * To restrict (deny, and ask before allow), it is enough that the program has
 * that name, with or without a directory, that one of `sub` is among the
 * arguments and that one of `flags` may be; `operands` and `script` do not
 * narrow such a rule.
 */
struct command_rule {
	const char *name; /* never NULL: the program; with a directory if it
			     must be called so */
	const char *const *sub;   /* NULL: any; else the first argument */
	const char *const *flags; /* NULL: those of the shipped grammar */
	enum operands operands;
	const char *script; /* the first argument is a script below this
			       (absolute), those after it are its own */
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
	/*
	 * NULL-ended: what curl may be sent to, each [scheme://]name[:port];
	 * https and its port if not said; "*.name" is any name below it.
	 */
	const char *const *hosts;
	const char *cwd; /* where commands start; NULL: COMMANDS_CWD */
};

#define COMMANDS_CWD "/workspace"

struct judgement {
	enum decision decision;
	size_t command;                  /* the simple command that decided */
	const struct command_rule *rule; /* NULL: none names it */
	char why[256];
};

/* Judges a line that shell_parse() understood. */
void commands_judge(const struct command_rules *rules,
		    const struct shell_line *line, struct judgement *ret);

/*
 * Parses and judges; what is not understood is denied, or asks. If it asks
 * for that reason there is no list (line->n_commands is 0), so there is
 * nothing that could be executed if the answer were yes.
 */
void commands_judge_text(const struct command_rules *rules, const char *text,
			 size_t len, struct shell_line *line,
			 struct judgement *ret);

const char *decision_name(enum decision d);

/* The rules of a shipped preset ("shell-tools"), NULL if there is none. */
const struct command_rules *commands_preset(const char *name);
