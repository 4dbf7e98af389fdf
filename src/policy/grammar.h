/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The shipped argument grammars: for each program, the flags that are known
 * to be harmless and what its operands are. A table; arguments.c reads it.
 *
 * Harmless means: the program runs no other program, writes no file, sets
 * nothing on the machine, reads no list of commands or options from a file,
 * and talks to nobody but hosts of the policy. Reading files that the box
 * shows is harmless; the environment is not printed. A flag that is not in
 * the table is not allowed, also not by abbreviation.
 */

#include <stdbool.h>

/* What a value or an operand may be. */
enum kind {
	KIND_NONE,   /* there is none */
	KIND_ANY,    /* any word, also one that looks like a flag */
	KIND_TEXT,   /* data: a pattern, a format, a separator */
	KIND_NUMBER, /* 5, -5, +5, 10k, 1.5 */
	KIND_WORD,   /* a short word such as auto, 1-3,7 or 2,2nr */
	KIND_PATH,   /* a file of the box, or "-" */
	KIND_FILE,   /* a file of the box, not "-", no URL */
	KIND_PLAIN,  /* an operand of a program that is not known */
	KIND_ASSIGN, /* NAME=text */
	KIND_PERM,   /* find -perm */
	KIND_STAMP,  /* +FORMAT of date; without the + it sets the clock */
	KIND_AWK,    /* a program for awk */
	KIND_INPUT,  /* a file or NAME=text for awk */
	KIND_SED,    /* a script for sed */
	KIND_JQ,     /* a filter for jq */
	KIND_URL,    /* at an allowed host */
	KIND_METHOD, /* of HTTP */
	KIND_HEADER, /* of HTTP, not Host, not from a file */
	KIND_BODY,   /* of HTTP, not from a file */
	KIND_SCRIPT, /* a script file below a directory; any words after it */
	N_KINDS
};

/* How a program reads its arguments. */
enum style {
	STYLE_GETOPT, /* -a -b, -ab, -n5, -n 5, --long, --long=5, --long 5 */
	STYLE_SPLIT,  /* the same without --long=5 (curl, jq) */
	STYLE_FIND,   /* paths, then an expression of -words */
	STYLE_SCRIPT, /* a script file first, everything after it is its own */
	STYLE_ANY,    /* every word is data (echo, true) */
};

struct valued {
	const char *name; /* with its dashes */
	enum kind kind;
	unsigned int n; /* words after it; 0: only attached, and optional */
	bool lead;      /* stands for the first operand (grep -e) */
};

struct grammar {
	const char *const *names; /* NULL-ended: the program and its aliases */
	enum style style;
	const char *letters;         /* short flags without a value */
	const char *const *words;    /* long ones, NULL-ended */
	const struct valued *valued; /* ended by a NULL name */
	bool digits;                 /* -5 means something */
	bool flags_first;            /* after an operand there are no flags */
	enum kind lead;              /* the first operand; NONE: as `rest` */
	enum kind rest;
	unsigned int most; /* operands; 0: any number */
};

/* By the name without its directory; NULL if there is none. */
const struct grammar *grammar_find(const char *program);

/* Whether its trade is to run other programs or commands (env, xargs, tar). */
bool grammar_runs_others(const char *program);
