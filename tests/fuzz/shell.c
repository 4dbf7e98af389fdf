/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Command lines: whatever is understood can be written down again, quoted,
 * and is then understood the same; whatever is allowed has only names of the
 * preset, and no byte that a shell could act upon unless it was quoted. The
 * checkers of awk, sed and jq read the bytes as well.
 */

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "fuzz.h"
#include "policy/commands.h"
#include "policy/program-text.h"

static struct shell_line line;
static struct shell_line again;
static char text[8 * SHELL_MAX_TEXT];

static const struct command_rule wide[] = {
	{ .name = "sed" },
	{ .name = "curl" },
	{ .name = "git",
	  .sub = (const char *const[]){ "log", NULL },
	  .flags = (const char *const[]){ "--stat", "-n=", NULL } },
	{ .name = "tool",
	  .flags = (const char *const[]){ "-a", "--x=", NULL } },
};
static const struct command_rules wide_rules = {
	.allow = wide,
	.n_allow = ARRAY_SIZE(wide),
	.hosts = (const char *const[]){ "a.example", "*.b.example", NULL },
};

static size_t put(size_t n, const char *s)
{
	while (*s)
		text[n++] = *s++;
	return n;
}

static size_t quote_word(size_t n, const char *s)
{
	n = put(n, " '");
	for (; *s; s++) {
		if (*s == '\'')
			n = put(n, "'\\'");
		text[n++] = *s;
	}
	return put(n, "'");
}

/* All in single quotes; returns the length. */
static size_t quote(void)
{
	static const char *const joins[] = { "", "|", "&&", "||", ";" };
	size_t n = 0;

	for (size_t i = 0; i < line.n_commands; i++) {
		const struct shell_command *c = &line.commands[i];

		n = put(n, joins[c->join]);
		for (size_t w = 0; w < c->n; w++)
			n = quote_word(n, line.words[c->first + w]);
	}
	return n;
}

static void same_again(void)
{
	size_t n = quote();

	if (n > SHELL_MAX_TEXT)
		return;
	MUST(shell_parse(text, n, &again) == 0);
	MUST(again.n_commands == line.n_commands);
	MUST(again.n_words == line.n_words);
	for (size_t i = 0; i < line.n_commands; i++) {
		MUST(again.commands[i].join == line.commands[i].join);
		MUST(again.commands[i].n == line.commands[i].n);
	}
	for (size_t i = 0; i < line.n_words; i++)
		MUST(strcmp(again.words[i], line.words[i]) == 0);
}

static bool is_named(const struct command_rules *rules, const char *name)
{
	for (size_t i = 0; i < rules->n_allow; i++)
		if (strcmp(rules->allow[i].name, name) == 0)
			return true;
	return false;
}

static void judge(const struct command_rules *rules)
{
	struct judgement j;

	commands_judge(rules, &line, &j);
	MUST(j.why[0] && strlen(j.why) < sizeof(j.why));
	MUST(j.command < line.n_commands);
	MUST(j.decision == DECISION_ALLOW || j.decision == DECISION_DENY);
	if (j.decision == DECISION_DENY)
		return;
	for (size_t i = 0; i < line.n_commands; i++)
		MUST(is_named(rules, line.words[line.commands[i].first]));
}

static void programs(const uint8_t *data, size_t size)
{
	char *copy = strndup((const char *)data, size);

	if (!copy)
		abort();
	if (!awk_check(copy))
		MUST(!strstr(copy, "@load") || strchr(copy, '"') ||
		     strchr(copy, '/'));
	(void)sed_check(copy);
	(void)jq_check(copy);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	programs(data, size);
	if (shell_parse((const char *)data, size, &line) < 0) {
		MUST(line.why[0] && line.n_commands == 0);
		MUST(line.at <= size);
		return 0;
	}
	MUST(line.n_commands > 0 && line.n_words > 0);
	same_again();
	judge(commands_preset("shell-tools"));
	judge(&wide_rules);
	return 0;
}
