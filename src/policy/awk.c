/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation
 *
 * awk can run programs (system, | , |&), read and write files (getline, >,
 * >>), load code (@load, extension) and call a function by a computed name
 * (@name). A text is accepted if none of this can be in it. For that it must
 * be cut into tokens exactly as every awk would, or something could hide in
 * what looks like a string or a regular expression.
 *
 * The one hard question of awk's grammar is whether / begins a regular
 * expression or divides. It is answered only after tokens where there is but
 * one answer; elsewhere the text is refused. Comments, backslashes outside
 * strings, functions of one's own and bytes that awk does not use are refused
 * too. Only listed functions can be called.
 *
 * > compares in a pattern (outside braces) and inside parentheses; anywhere
 * else it might redirect a print, and is refused.
 */

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/util.h"
#include "policy/program-text.h"

#define MOST_PARENS 64

/* What / would mean after the token before. */
enum slash { REGEX, DIVIDE, UNCLEAR };

struct awk {
	const char *s;
	enum slash slash;
	unsigned int braces;
	unsigned int parens;
	bool control[MOST_PARENS]; /* the parenthesis of if, while, for */
	bool control_next;
};

static bool starts_name(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_one_of(const char *const *list, size_t n, const char *s,
		      size_t len)
{
	for (size_t i = 0; i < n; i++)
		if (strlen(list[i]) == len && memcmp(list[i], s, len) == 0)
			return true;
	return false;
}

#define ONE_OF(list, s, len) is_one_of(list, ARRAY_SIZE(list), s, len)

/* Keywords and functions; all may be followed by a parenthesis. */
static const char *const control[] = { "if", "while", "for", "switch" };
static const char *const prints[] = { "print", "printf" };
static const char *const keywords[] = {
	"BEGIN",  "END",      "BEGINFILE", "ENDFILE", "if",    "else",
	"while",  "for",      "do",        "in",      "break", "continue",
	"next",   "nextfile", "exit",      "delete",  "print", "printf",
	"return", "switch",   "case",      "default",
};
static const char *const functions[] = {
	"atan2",   "cos",      "sin",      "exp",     "log",    "sqrt",
	"int",     "rand",     "srand",    "gsub",    "gensub", "index",
	"length",  "match",    "split",    "sprintf", "sub",    "substr",
	"tolower", "toupper",  "strftime", "systime", "mktime", "asort",
	"asorti",  "patsplit", "strtonum", "and",     "or",     "xor",
	"lshift",  "rshift",   "compl",
};
/* Run, read, load, or show what is not input. */
static const char *const refused[] = {
	"system",   "getline", "extension", "function", "func", "ENVIRON",
	"PROCINFO", "SYMTAB",  "FUNCTAB",   "ARGV",     "ARGC",
};

static const char *read_name(struct awk *a)
{
	const char *name = a->s;
	const char *after;
	size_t len = 0;
	bool known;

	while (starts_name(name[len]) || is_digit(name[len]))
		len++;
	a->s += len;
	if (ONE_OF(refused, name, len))
		return "a program that runs, reads or loads something else";
	/* In the head of a for, where gawk takes one, > would redirect it. */
	if (a->parens && ONE_OF(prints, name, len))
		return "a program that prints within parentheses";
	known = ONE_OF(keywords, name, len) || ONE_OF(functions, name, len);
	a->control_next = ONE_OF(control, name, len);
	a->slash = known ? UNCLEAR : DIVIDE;
	for (after = a->s; *after == ' ' || *after == '\t'; after++)
		;
	if (*after == '(' && !known)
		return "a program that calls a function that is not known";
	return NULL;
}

static const char *read_string(struct awk *a)
{
	for (a->s++; *a->s != '"'; a->s++) {
		if (*a->s == '\\')
			a->s++;
		if (*a->s == '\0' || *a->s == '\n')
			return "a program with a string that is not closed";
	}
	a->s++;
	a->slash = UNCLEAR;
	return NULL;
}

static const char *read_slash(struct awk *a)
{
	const char *end;

	if (a->slash == UNCLEAR)
		return "a program with a / that can be read in two ways";
	if (a->slash == DIVIDE) {
		a->s += a->s[1] == '=' ? 2 : 1;
		a->slash = UNCLEAR;
		return NULL;
	}
	end = regex_end(a->s + 1, '/');
	if (!end)
		return "a program with a regular expression whose end is "
		       "unclear";
	a->s = end + 1;
	a->slash = UNCLEAR;
	return NULL;
}

static const char *read_paren(struct awk *a)
{
	if (*a->s++ == '(') {
		if (a->parens == MOST_PARENS)
			return "a program with too many parentheses";
		a->control[a->parens++] = a->control_next;
		a->control_next = false;
		a->slash = REGEX;
		return NULL;
	}
	if (a->parens == 0)
		return "a program with unbalanced parentheses";
	a->slash = a->control[--a->parens] ? UNCLEAR : DIVIDE;
	return NULL;
}

static const char *read_brace(struct awk *a)
{
	if (a->parens)
		return "a program with unbalanced parentheses";
	if (*a->s == '{')
		a->braces++;
	else if (a->braces-- == 0)
		return "a program with unbalanced braces";
	a->s++;
	a->slash = REGEX;
	return NULL;
}

static const char *read_operator(struct awk *a)
{
	char c = *a->s;
	char next = a->s[1];

	if (c == '|' && next != '|')
		return "a program with a pipe";
	if (c == '>' && (next == '>' || (a->braces && !a->parens)))
		return "a program with a redirection";
	if (c == '&' && next != '&')
		return "a program that is not understood";
	a->slash = UNCLEAR;
	if (c == '|' || c == '&') {
		a->s += 2;
		a->slash = REGEX;
		return NULL;
	}
	a->s++;
	if (strchr(";,~?:\n", c) || (c == '!' && next != '='))
		a->slash = REGEX;
	else if (c == ']')
		a->slash = DIVIDE;
	return NULL;
}

static const char *read_token(struct awk *a)
{
	char c = *a->s;

	if (c == ' ' || c == '\t') {
		a->s++;
		return NULL;
	}
	if (starts_name(c))
		return read_name(a);
	if (c == '(' || c == ')')
		return read_paren(a);
	a->control_next = false;
	if (is_digit(c)) {
		a->s++;
		a->slash = DIVIDE;
		return NULL;
	}
	if (c == '"')
		return read_string(a);
	if (c == '/')
		return read_slash(a);
	if (c == '{' || c == '}')
		return read_brace(a);
	if (strchr("[];,+-*%^!<>=&|?:~$.\n", c))
		return read_operator(a);
	return "a program with a character that is not understood";
}

const char *awk_check(const char *text)
{
	struct awk a = { .s = text, .slash = REGEX };
	const char *why = NULL;

	while (!why && *a.s)
		why = read_token(&a);
	if (!why && (a.braces || a.parens))
		why = "a program that is not complete";
	return why;
}
