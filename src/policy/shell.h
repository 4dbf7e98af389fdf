/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A command line in the small part of the shell's language that can be
 * understood completely: literal words, joined by && || ; | and newlines,
 * with quotes and backslashes resolved exactly as a POSIX shell would.
 *
 * Everything else, every expansion, redirection, reserved word, assignment,
 * comment or byte that is not known to be harmless, is refused with a reason.
 * No shell ever sees the text: what is executed is the list that comes out.
 */

#include <stdbool.h>
#include <stddef.h>

/* More than that is refused, never cut. */
#define SHELL_MAX_TEXT     65536
#define SHELL_MAX_COMMANDS 256
#define SHELL_MAX_WORDS    8192

/* What stands between a command and the one before it. */
enum shell_join {
	SHELL_FIRST,
	SHELL_PIPE, /* | */
	SHELL_AND,  /* && */
	SHELL_OR,   /* || */
	SHELL_THEN, /* ; or a newline */
};

struct shell_command {
	enum shell_join join;
	size_t first; /* index into words */
	size_t n;
};

struct shell_line {
	struct shell_command commands[SHELL_MAX_COMMANDS];
	size_t n_commands;
	const char *words[SHELL_MAX_WORDS]; /* into text, NUL-terminated */
	size_t n_words;
	char text[SHELL_MAX_TEXT + SHELL_MAX_WORDS];
	size_t at;     /* of what was refused, in the input */
	char why[128]; /* why */
};

/*
 * 0, or -EINVAL with `why` and `at`, and then there are no commands. The
 * structure is large (not on a stack) and need not be cleared before.
 *
 * The list means what a shell would make of it: commands joined by | run
 * together and end as the last of them does; && and || bind equally, from
 * left to right, and weaker than |; what follows THEN always runs.
 */
int shell_parse(const char *text, size_t len, struct shell_line *ret);
