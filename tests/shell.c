/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every row of tests/data/shell*.tsv against the rules of the preset
 * shell-tools; one TAP line a row.
 *
 * A row is: id, class, `command` (with JSON escapes; MARK is "touch marker"),
 * expected, why. ALLOW and DENY are the verdicts. ARGS is denied by the
 * preset and allowed by a rule that names those arguments (the table below).
 * "...(N chars)" at the end stands for the character before it, repeated.
 */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "policy/commands.h"

#define MOST 262144

static struct shell_line line;

#define LIST(...)                                                              \
	(const char *const[])                                                  \
	{                                                                      \
		__VA_ARGS__, NULL                                              \
	}

/* The rules that let ARGS rows pass. */
static const struct command_rule wider[] = {
	{ .name = "git",
	  .sub = LIST("commit"),
	  .flags = LIST("-m="),
	  .operands = OPERANDS_NONE },
	{ .name = "date", .flags = LIST("-f="), .operands = OPERANDS_NONE },
	{ .name = "git",
	  .sub = LIST("status", "log"),
	  .flags = LIST("--short") },
	{ .name = "sed" },
	{ .name = "tar", .flags = LIST("-tf"), .operands = OPERANDS_PATHS },
	{ .name = "curl" },
};
static const struct command_rules wide = {
	.allow = wider,
	.n_allow = ARRAY_SIZE(wider),
	.hosts = LIST("api.example.org", "http://plain.example.org:8080",
		      "*.below.example.org"),
};

/*
 * "Policy may allow" a redirection to /dev/null, says the table; the language
 * has no redirections, so no rule can.
 */
static const char *const never[] = { "SH-170" };

static int hex(const char *s)
{
	char digits[5] = "";

	memcpy(digits, s, 4);
	return (int)strtol(digits, NULL, 16);
}

static size_t put_utf8(char *out, unsigned int c)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	out[0] = (char)(0xe0 | c >> 12);
	out[1] = (char)(0x80 | (c >> 6 & 0x3f));
	out[2] = (char)(0x80 | (c & 0x3f));
	return 3;
}

/* \xNN is ours: a byte, for what JSON cannot say. */
static size_t unescape(const char *s, size_t n, char *out)
{
	static const char from[] = "ntrbf\"\\/";
	static const char to[] = "\n\t\r\b\f\"\\/";
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		const char *known;

		if (s[i] != '\\' || i + 1 >= n) {
			out[used++] = s[i];
			continue;
		}
		i++;
		known = strchr(from, s[i]);
		if (known) {
			out[used++] = to[known - from];
		} else if (s[i] == 'u' && i + 4 < n + 1) {
			used += put_utf8(out + used,
					 (unsigned int)hex(s + i + 1));
			i += 4;
		} else if (s[i] == 'x' && i + 2 < n + 1) {
			out[used++] = (char)strtol((char[]){ s[i + 1], s[i + 2],
							     '\0' },
						   NULL, 16);
			i += 2;
		}
	}
	return used;
}

static size_t replace_mark(char *text, size_t n)
{
	static const char mark[] = "touch marker";
	size_t more = strlen(mark) - 4;
	char *at = text;

	while ((at = memmem(at, n - (size_t)(at - text), "MARK", 4))) {
		memmove(at + strlen(mark), at + 4, n - (size_t)(at - text) - 4);
		memcpy(at, mark, strlen(mark));
		at += strlen(mark);
		n += more;
	}
	return n;
}

static size_t repeat_last(char *text, size_t n)
{
	char *dots = memmem(text, n, "...(", 4);
	size_t want;

	if (!dots || dots == text || memcmp(text + n - 7, " chars)", 7) != 0)
		return n;
	want = strtoul(dots + 4, NULL, 10);
	if (want > MOST)
		abort();
	memset(dots, dots[-1], want - (size_t)(dots - text));
	return want;
}

static enum decision judge(const struct command_rules *rules, const char *text,
			   size_t n, struct judgement *j)
{
	commands_judge_text(rules, text, n, &line, j);
	return j->decision;
}

static bool is_never(const char *id)
{
	for (size_t i = 0; i < ARRAY_SIZE(never); i++)
		if (strcmp(id, never[i]) == 0)
			return true;
	return false;
}

static bool row_holds(const char *id, const char *expected, const char *text,
		      size_t n)
{
	const struct command_rules *preset = commands_preset("shell-tools");
	enum decision want = DECISION_DENY;
	struct judgement j;
	bool good;

	if (strcmp(expected, "ALLOW") == 0)
		want = DECISION_ALLOW;
	good = judge(preset, text, n, &j) == want;
	printf("# %s: %s\n", decision_name(j.decision), j.why);
	if (strcmp(expected, "ARGS") != 0)
		return good && (want == DECISION_ALLOW ||
				strcmp(expected, "DENY") == 0);
	want = is_never(id) ? DECISION_DENY : DECISION_ALLOW;
	good = judge(&wide, text, n, &j) == want && good;
	printf("# with a rule for it: %s: %s\n", decision_name(j.decision),
	       j.why);
	return good;
}

static char *field(char **rest)
{
	char *start = *rest;
	char *tab = start ? strpbrk(start, "\t\n") : NULL;

	*rest = tab && *tab == '\t' ? tab + 1 : NULL;
	if (tab)
		*tab = '\0';
	return start;
}

static bool row(char *text, int number)
{
	static char command[MOST + 64];
	char *id = field(&text);
	char *class = field(&text);
	char *quoted = field(&text);
	char *expected = field(&text);
	char *why = field(&text);
	size_t n = quoted ? strlen(quoted) : 0;
	bool good;

	if (!expected || n < 2 || quoted[0] != '`' || quoted[n - 1] != '`') {
		printf("not ok %d - a row that cannot be read: %s\n", number,
		       id);
		return false;
	}
	n = unescape(quoted + 1, n - 2, command);
	n = replace_mark(command, n);
	n = repeat_last(command, n);
	good = row_holds(id, expected, command, n);
	printf("%s %d - %s %s: %s\n", good ? "ok" : "not ok", number, id, class,
	       why ? why : "");
	return good;
}

static int rows_of(const char *path, int *n)
{
	FILE *f = fopen(path, "re");
	static char text[65536];
	int bad = 0;

	if (!f) {
		printf("not ok %d - %s cannot be read\n", ++*n, path);
		return 1;
	}
	while (fgets(text, sizeof(text), f))
		if (strncmp(text, "id\t", 3) != 0 && text[0] != '#')
			bad += !row(text, ++*n);
	(void)fclose(f);
	return bad;
}

int main(void)
{
	int n = 0;
	int bad = rows_of(SOURCE_TOP "/tests/data/shell.tsv", &n);

	bad += rows_of(SOURCE_TOP "/tests/data/shell-own.tsv", &n);
	printf("1..%d\n", n);
	return bad || n < 200 ? 1 : 0;
}
