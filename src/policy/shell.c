/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation
 *
 * One pass over the text, a byte at a time, that knows three places: outside
 * quotes, inside '...' and inside "...". In each of them the bytes that mean
 * themselves are copied; those that a shell would act upon end the parse with
 * a reason. There is no third way: nothing is skipped, guessed or repaired.
 *
 * dash 0.5.12 and bash 5.2 are the shells that were compared (tests/shell-diff
 * does it again with random lines). What one of them reads differently from
 * the other, or bash at a prompt differently from bash -c (history), is
 * refused as well: a person who approves a line reads it as their shell would.
 */

#include "policy/shell.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"

static_assert(sizeof(((struct shell_line *)0)->text) >=
		      SHELL_MAX_TEXT + SHELL_MAX_WORDS,
	      "each word is at most as long as its source, and a NUL");

struct parser {
	const unsigned char *in;
	size_t len;
	size_t i;
	struct shell_line *out;
	size_t used; /* of out->text */
	bool open;   /* the current command has a word */
	bool owed;   /* && || or | wait for the command after them */
	enum shell_join join;
};

enum place { BARE, DOUBLE, SINGLE };

/* Leaves no list behind that somebody could execute by mistake. */
static int refuse(struct parser *p, size_t at, const char *why)
{
	p->out->n_commands = 0;
	p->out->n_words = 0;
	p->out->at = at;
	(void)strncpy(p->out->why, why, sizeof(p->out->why) - 1);
	p->out->why[sizeof(p->out->why) - 1] = '\0';
	return -EINVAL;
}

static bool is_blank(unsigned char c)
{
	return c == ' ' || c == '\t';
}

static bool ends_word(unsigned char c)
{
	return is_blank(c) || c == '\n' || c == ';' || c == '|' || c == '&';
}

static bool is_alnum(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
	       (c >= 'a' && c <= 'z');
}

/*
 * Characters that are not seen or that reorder what is seen: format
 * characters, default-ignorable ones (Unicode 15, DerivedCoreProperties, but
 * not the variation selectors of emoji), controls and non-characters. They
 * would make two different lists look the same to a person.
 */
static bool is_unseen(uint32_t c)
{
	static const uint32_t ranges[][2] = {
		{ 0x0080, 0x009f },   { 0x00ad, 0x00ad },
		{ 0x034f, 0x034f },   { 0x0600, 0x0605 },
		{ 0x061c, 0x061c },   { 0x06dd, 0x06dd },
		{ 0x070f, 0x070f },   { 0x0890, 0x0891 },
		{ 0x08e2, 0x08e2 },   { 0x115f, 0x1160 },
		{ 0x17b4, 0x17b5 },   { 0x180b, 0x180f },
		{ 0x200b, 0x200f },   { 0x202a, 0x202e },
		{ 0x2060, 0x206f },   { 0x3164, 0x3164 },
		{ 0xfdd0, 0xfdef },   { 0xfeff, 0xfeff },
		{ 0xffa0, 0xffa0 },   { 0xfff0, 0xfffb },
		{ 0x110bd, 0x110bd }, { 0x110cd, 0x110cd },
		{ 0x13430, 0x1343f }, { 0x1bca0, 0x1bca3 },
		{ 0x1d173, 0x1d17a }, { 0xe0000, 0xe0fff },
	};

	if ((c & 0xfffe) == 0xfffe)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
		if (c >= ranges[i][0] && c <= ranges[i][1])
			return true;
	return false;
}

static uint32_t decode(const unsigned char *s, size_t n)
{
	uint32_t c = n == 2 ? s[0] & 0x1f : n == 3 ? s[0] & 0x0f : s[0] & 0x07;

	for (size_t i = 1; i < n; i++)
		c = c << 6 | (s[i] & 0x3f);
	return c;
}

/* Copies one character that means itself; tabs and newlines only in quotes. */
static int copy_char(struct parser *p, enum place place)
{
	const unsigned char *s = p->in + p->i;
	size_t n = 1;

	if (*s < 0x20 && (place == BARE || (*s != '\n' && *s != '\t')))
		return refuse(p, p->i, "a control character");
	if (*s == 0x7f)
		return refuse(p, p->i, "a control character");
	if (*s >= 0x80) {
		n = utf8_len(s, p->len - p->i);
		if (n == 0)
			return refuse(p, p->i, "bytes that are not UTF-8");
		if (is_unseen(decode(s, n)))
			return refuse(p, p->i,
				      "a character that cannot be seen");
	}
	memcpy(p->out->text + p->used, s, n);
	p->used += n;
	p->i += n;
	return 0;
}

/*
 * bash at a prompt reads `!x` as history, also inside double quotes. Followed
 * by a blank, `=` or the end it is an ordinary character everywhere.
 */
static bool is_history(const struct parser *p, enum place place)
{
	unsigned char next;

	if (p->i + 1 >= p->len)
		return false;
	next = p->in[p->i + 1];
	if (place == DOUBLE && next == '"')
		return false;
	return !is_blank(next) && next != '\n' && next != '=';
}

static int read_single(struct parser *p)
{
	size_t start = p->i++;
	int r = 0;

	while (r == 0 && p->i < p->len && p->in[p->i] != '\'')
		r = copy_char(p, SINGLE);
	if (r < 0)
		return r;
	if (p->i >= p->len)
		return refuse(p, start, "a single quote that is never closed");
	p->i++;
	return 0;
}

/* A backslash inside double quotes keeps itself except before these. */
static int escape_in_double(struct parser *p)
{
	unsigned char next = p->i + 1 < p->len ? p->in[p->i + 1] : '\0';

	if (next == '\n')
		return refuse(p, p->i, "a line continued by a backslash");
	if (next == '$' || next == '`' || next == '"' || next == '\\')
		p->i++;
	return copy_char(p, DOUBLE);
}

static int read_double(struct parser *p)
{
	size_t start = p->i++;
	int r = 0;

	while (r == 0 && p->i < p->len && p->in[p->i] != '"') {
		switch (p->in[p->i]) {
		case '$':
			return refuse(p, p->i,
				      "an expansion ($) in double quotes");
		case '`':
			return refuse(p, p->i,
				      "a command substitution (`) in double "
				      "quotes");
		case '!':
			if (is_history(p, DOUBLE))
				return refuse(p, p->i,
					      "a history expansion (!)");
			r = copy_char(p, DOUBLE);
			break;
		case '\\':
			r = escape_in_double(p);
			break;
		default:
			r = copy_char(p, DOUBLE);
		}
	}
	if (r < 0)
		return r;
	if (p->i >= p->len)
		return refuse(p, start, "a double quote that is never closed");
	p->i++;
	return 0;
}

static int read_escape(struct parser *p)
{
	if (p->i + 1 >= p->len)
		return refuse(p, p->i, "a backslash with nothing after it");
	if (p->in[p->i + 1] == '\n')
		return refuse(p, p->i, "a line continued by a backslash");
	p->i++;
	/* A tab after a backslash is one, as in quotes. */
	return copy_char(p, SINGLE);
}

/* What a shell would do with this byte outside quotes; NULL: nothing. */
static const char *bare_meaning(unsigned char c)
{
	switch (c) {
	case '$':
		return "an expansion ($)";
	case '`':
		return "a command substitution (`)";
	case '*':
	case '?':
	case '[':
		return "a pattern of file names (* ? [)";
	case '{':
	case '}':
		return "a brace";
	case '(':
	case ')':
		return "a parenthesis";
	case '<':
	case '>':
		return "a redirection";
	default:
		return NULL;
	}
}

/*
 * `after` says that the byte before is of the same word, unquoted and a
 * letter, a digit, `_` or `.`: nowhere else is # surely no comment and ~
 * surely no directory (bash expands it also after `=` and `:`).
 */
static int read_bare(struct parser *p, bool after)
{
	unsigned char c = p->in[p->i];
	const char *meaning = bare_meaning(c);

	if (meaning)
		return refuse(p, p->i, meaning);
	if (c == '#' && !after)
		return refuse(p, p->i, "a comment (#)");
	if (c == '~' && !after)
		return refuse(p, p->i, "a home directory (~)");
	if (c == '!' && is_history(p, BARE))
		return refuse(p, p->i, "a history expansion (!)");
	return copy_char(p, BARE);
}

static int read_piece(struct parser *p, bool *after)
{
	unsigned char c = p->in[p->i];
	bool was = *after;

	*after = is_alnum(c) || c == '_' || c == '.';
	switch (c) {
	case '\'':
		return read_single(p);
	case '"':
		return read_double(p);
	case '\\':
		return read_escape(p);
	default:
		return read_bare(p, was);
	}
}

/* Words with which dash or bash begin something other than a command. */
static bool is_reserved(const char *word)
{
	static const char *const words[] = {
		"!",    "case",   "coproc", "do",   "done",     "elif",
		"else", "esac",   "fi",     "for",  "function", "if",
		"in",   "select", "then",   "time", "until",    "while",
		"{",    "}",      "[[",     "]]",
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strcmp(word, words[i]) == 0)
			return true;
	return false;
}

/* The first word of a command, quoted or not. */
static int check_name(struct parser *p, size_t at, const char *name)
{
	if (name[0] == '\0')
		return refuse(p, at, "a command without a name");
	if (is_reserved(name))
		return refuse(p, at, "a reserved word of the shell");
	if (strchr(name, '='))
		return refuse(p, at, "an assignment");
	return 0;
}

static int open_command(struct parser *p, size_t at)
{
	struct shell_line *out = p->out;

	if (out->n_commands == SHELL_MAX_COMMANDS)
		return refuse(p, at, "too many commands");
	out->commands[out->n_commands++] = (struct shell_command){
		.join = p->join,
		.first = out->n_words,
	};
	p->open = true;
	p->owed = false;
	return 0;
}

static int read_word(struct parser *p)
{
	struct shell_line *out = p->out;
	size_t at = p->i;
	size_t start = p->used;
	bool first = !p->open;
	bool after = false;
	int r = 0;

	if (first)
		r = open_command(p, at);
	if (r == 0 && out->n_words == SHELL_MAX_WORDS)
		r = refuse(p, at, "too many words");
	while (r == 0 && p->i < p->len && !ends_word(p->in[p->i]))
		r = read_piece(p, &after);
	if (r < 0)
		return r;
	out->text[p->used++] = '\0';
	out->words[out->n_words++] = out->text + start;
	out->commands[out->n_commands - 1].n++;
	return first ? check_name(p, at, out->text + start) : 0;
}

static int join(struct parser *p, enum shell_join how, size_t bytes)
{
	if (!p->open)
		return refuse(p, p->i, "no command before an operator");
	p->open = false;
	p->owed = how != SHELL_THEN;
	p->join = how;
	p->i += bytes;
	return 0;
}

static int read_operator(struct parser *p)
{
	unsigned char c = p->in[p->i];
	unsigned char next = p->i + 1 < p->len ? p->in[p->i + 1] : '\0';

	if (c == ';')
		return join(p, SHELL_THEN, 1);
	if (c == '&' && next == '&')
		return join(p, SHELL_AND, 2);
	if (c == '&')
		return refuse(p, p->i, "a command in the background (&)");
	if (next == '|')
		return join(p, SHELL_OR, 2);
	if (next == '&')
		return refuse(p, p->i, "a pipe of both streams (|&)");
	return join(p, SHELL_PIPE, 1);
}

static int read_one(struct parser *p)
{
	unsigned char c = p->in[p->i];

	if (is_blank(c)) {
		p->i++;
		return 0;
	}
	if (c == '\n' && p->open)
		return join(p, SHELL_THEN, 1);
	/* An empty line, or one broken after an operator. */
	if (c == '\n') {
		p->i++;
		return 0;
	}
	return ends_word(c) ? read_operator(p) : read_word(p);
}

int shell_parse(const char *text, size_t len, struct shell_line *ret)
{
	struct parser p = {
		.in = (const unsigned char *)text,
		.len = len,
		.out = ret,
		.join = SHELL_FIRST,
	};
	int r = 0;

	ret->n_commands = 0;
	ret->n_words = 0;
	ret->at = 0;
	ret->why[0] = '\0';
	if (len > SHELL_MAX_TEXT)
		return refuse(&p, SHELL_MAX_TEXT, "too long");
	while (r == 0 && p.i < p.len)
		r = read_one(&p);
	if (r < 0)
		return r;
	if (p.owed)
		return refuse(&p, p.i, "no command after an operator");
	if (ret->n_commands == 0)
		return refuse(&p, 0, "no command");
	return 0;
}
