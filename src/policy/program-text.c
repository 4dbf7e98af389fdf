/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/program-text.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static bool is_letter(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/*
 * The closing ] of a bracket expression that began before `s`. gawk and
 * busybox let brackets hide a delimiter, GNU sed and the original awk do not;
 * a leading ], an escaped or a nested bracket is read in several ways.
 */
static const char *bracket_end(const char *s, char delimiter)
{
	if (*s == '^')
		s++;
	if (*s == ']')
		return NULL;
	for (; *s != ']'; s++) {
		if (*s == '\0' || *s == '\n' || *s == delimiter)
			return NULL;
		if (*s == '\\' && !is_letter(s[1]) && s[1] != '.')
			return NULL;
		if (*s != '[')
			continue;
		if (s[1] != ':')
			return NULL;
		for (s += 2; is_letter(*s); s++)
			;
		if (s[0] != ':' || s[1] != ']')
			return NULL;
		s++;
	}
	return s;
}

const char *regex_end(const char *s, char delimiter)
{
	for (; *s != delimiter; s++) {
		if (*s == '\0' || *s == '\n')
			return NULL;
		if (*s == '[')
			s = bracket_end(s + 1, delimiter);
		else if (*s == '\\' && (*++s == '\0' || *s == '\n'))
			return NULL;
		if (!s)
			return NULL;
	}
	return s;
}

/* sed ---------------------------------------------------------------- */

static const char *skip_digits(const char *s)
{
	while (is_digit(*s))
		s++;
	return s;
}

static const char *skip_blank(const char *s)
{
	while (*s == ' ' || *s == '\t')
		s++;
	return s;
}

/* After one address: a line, $, /regex/, first~step, +N, ~N. */
static const char *sed_address(const char *s, bool second)
{
	if (*s == '$')
		return s + 1;
	if (*s == '/') {
		s = regex_end(s + 1, '/');
		if (!s)
			return NULL;
		for (s++; *s == 'I' || *s == 'M'; s++)
			;
		return s;
	}
	if (second && (*s == '+' || *s == '~'))
		return is_digit(s[1]) ? skip_digits(s + 1) : NULL;
	if (!is_digit(*s))
		return NULL;
	s = skip_digits(s);
	if (*s == '~')
		return is_digit(s[1]) ? skip_digits(s + 1) : NULL;
	return s;
}

static const char *sed_addresses(const char *s)
{
	if (*s != '$' && *s != '/' && !is_digit(*s))
		return s;
	s = sed_address(s, false);
	if (!s)
		return NULL;
	s = skip_blank(s);
	if (*s == ',')
		s = sed_address(skip_blank(s + 1), true);
	if (!s)
		return NULL;
	s = skip_blank(s);
	return *s == '!' ? skip_blank(s + 1) : s;
}

/* After s/a/b/flags or y/a/b/; `s` stands on the letter. */
static const char *sed_substitute(const char *s)
{
	bool y = *s == 'y';
	char delimiter = s[1];

	if (!delimiter || !strchr("/,|#@:%~!+", delimiter))
		return NULL;
	s = regex_end(s + 2, delimiter);
	/* Brackets mean nothing in a replacement: only without them do all
	   readers agree. */
	for (s = s ? s + 1 : NULL; s && *s != delimiter; s++)
		if (*s == '\0' || *s == '\n' || *s == '[' ||
		    (*s == '\\' && (*++s == '\0' || *s == '\n')))
			return NULL;
	if (!s)
		return NULL;
	s++;
	while (!y && *s && (is_digit(*s) || strchr("gpiIM", *s)))
		s++;
	return s;
}

/* After one command; NULL for those that write, run, or take text. */
static const char *sed_command(const char *s)
{
	if (*s == 's' || *s == 'y')
		return sed_substitute(s);
	if (*s == 'q' || *s == 'Q' || *s == 'l')
		return skip_digits(skip_blank(s + 1));
	if (*s && strchr("pPdDgGhHxnN=Fz", *s))
		return s + 1;
	return NULL;
}

/* After one command with its addresses, or a brace; NULL: not understood. */
static const char *sed_step(const char *s, int *depth)
{
	if (*s == '}') {
		s = --*depth < 0 ? NULL : skip_blank(s + 1);
	} else {
		s = sed_addresses(s);
		if (s && *s == '{') {
			++*depth;
			return s + 1;
		}
		s = s ? sed_command(s) : NULL;
		s = s ? skip_blank(s) : NULL;
	}
	return s && *s && !strchr("\n;}", *s) ? NULL : s;
}

const char *sed_check(const char *s)
{
	int depth = 0;

	while (s && *s) {
		if (strchr(" \t\n;", *s))
			s++;
		else
			s = sed_step(s, &depth);
	}
	return s && depth == 0 ? NULL
			       : "a script that is not known to only edit its "
				 "input";
}

/* jq ----------------------------------------------------------------- */

/*
 * jq can neither write nor run anything. What it can do besides computing is
 * reading the environment and modules. Strings hold code too ("\(env)"), so
 * the words are looked for everywhere, but not as names of fields (.env).
 */
const char *jq_check(const char *s)
{
	static const char *const words[] = {
		"env",
		"ENV",
		"import",
		"include",
		"modulemeta",
		"get_search_list",
		"input_filename",
		"__prog_args",
	};
	char before = '\0';

	while (*s) {
		size_t n = 0;

		while (is_letter(s[n]) || (n && is_digit(s[n])))
			n++;
		for (size_t i = 0;
		     n && before != '.' && i < sizeof(words) / sizeof(words[0]);
		     i++)
			if (strlen(words[i]) == n &&
			    memcmp(words[i], s, n) == 0)
				return "a filter that reads the environment "
				       "or other files";
		s += n ? n : 1;
		before = s[-1];
	}
	return NULL;
}
