/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation
 *
 * Each simple command gets a verdict of its own; the line gets the worst of
 * them. There is one way to ALLOW: a rule of `allow` names the program and
 * finds nothing wrong with any argument, and neither `deny` nor `ask`
 * concerns it. A rule that restricts is matched generously, a rule that
 * permits is matched exactly.
 */

#include "policy/commands.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "policy/arguments.h"

struct verdict {
	enum decision decision;
	const struct command_rule *rule;
	struct complaint wrong;
	const char *text; /* instead of a complaint */
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* `deny: [curl]` means /usr/bin/curl too, and the other way round. */
static const struct command_rule *concerned(const struct command_rule *rules,
					    size_t n, const char *const *words,
					    size_t n_words)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(base_name(rules[i].name), base_name(words[0])) ==
			    0 &&
		    arguments_concern(&rules[i], words, n_words))
			return &rules[i];
	return NULL;
}

/* The first rule that permits the command, or what the first one said. */
static const struct command_rule *permits(const struct command_rules *all,
					  const struct command_rule *rules,
					  size_t n, const char *const *words,
					  size_t n_words, struct verdict *v)
{
	for (size_t i = 0; i < n; i++) {
		struct complaint wrong;

		if (strcmp(rules[i].name, words[0]) != 0)
			continue;
		wrong = arguments_check(all, &rules[i], words, n_words);
		if (!wrong.why)
			return &rules[i];
		if (!v->rule) {
			v->rule = &rules[i];
			v->wrong = wrong;
		}
	}
	return NULL;
}

static struct verdict judge_one(const struct command_rules *all,
				const char *const *words, size_t n)
{
	enum decision otherwise = all->ask_otherwise ? DECISION_ASK
						     : DECISION_DENY;
	struct verdict v = { .decision = otherwise };
	const struct command_rule *deny = concerned(all->deny, all->n_deny,
						    words, n);
	const struct command_rule *asks;
	const struct command_rule *ask;
	const struct command_rule *allow;

	if (deny)
		return (struct verdict){ DECISION_DENY, deny,
					 .text = "a rule denies it" };
	asks = concerned(all->ask, all->n_ask, words, n);
	ask = permits(all, all->ask, all->n_ask, words, n, &v);
	allow = permits(all, all->allow, all->n_allow, words, n, &v);
	if (ask || (asks && allow))
		return (struct verdict){ DECISION_ASK, ask ? ask : asks,
					 .text = "a rule asks" };
	if (allow && !asks)
		return (struct verdict){ DECISION_ALLOW, allow,
					 .text = "a rule allows it" };
	if (!v.rule)
		v.text = "no rule names it";
	return v;
}

/* A word as it can be shown: one line, not too long. */
static void show(const char *word, char *out, size_t size)
{
	size_t n = 0;

	for (; *word && n + 5 < size; word++) {
		unsigned char c = (unsigned char)*word;

		if (c == '\n' || c == '\t') {
			out[n++] = '\\';
			out[n++] = c == '\n' ? 'n' : 't';
		} else {
			out[n++] = (char)c;
		}
	}
	/* Not half a character. */
	while (*word && n > 0 && ((unsigned char)*word & 0xc0) == 0x80) {
		word--;
		n--;
	}
	if (*word && n + 5 < size + 5)
		n += (size_t)snprintf(out + n, size - n, "...");
	out[n] = '\0';
}

static void explain(const struct verdict *v, const char *name,
		    struct judgement *ret)
{
	char program[40];
	char word[72] = "";
	char place[80] = "";

	show(name, program, sizeof(program));
	if (v->wrong.word && !v->text)
		show(v->wrong.word, word, sizeof(word));
	if (v->rule && v->rule->file)
		(void)snprintf(place, sizeof(place), " (%.60s:%u)",
			       v->rule->file, v->rule->line);
	if (v->text)
		(void)snprintf(ret->why, sizeof(ret->why), "'%s': %s%s",
			       program, v->text, place);
	else if (word[0])
		(void)snprintf(ret->why, sizeof(ret->why), "'%s': '%s': %s%s",
			       program, word, v->wrong.why, place);
	else
		(void)snprintf(ret->why, sizeof(ret->why), "'%s': %s%s",
			       program, v->wrong.why, place);
}

void commands_judge(const struct command_rules *rules,
		    const struct shell_line *line, struct judgement *ret)
{
	struct verdict worst = { .decision = DECISION_ALLOW };

	*ret = (struct judgement){ .decision = DECISION_DENY };
	if (!rules || line->n_commands == 0) {
		(void)snprintf(ret->why, sizeof(ret->why), "%s",
			       rules ? "no command" : "no rules");
		return;
	}
	for (size_t i = 0; i < line->n_commands; i++) {
		const struct shell_command *c = &line->commands[i];
		struct verdict v = judge_one(rules, line->words + c->first,
					     c->n);

		if (i > 0 && v.decision <= worst.decision)
			continue;
		worst = v;
		ret->command = i;
	}
	ret->decision = worst.decision;
	ret->rule = worst.rule;
	explain(&worst, line->words[line->commands[ret->command].first], ret);
}

void commands_judge_text(const struct command_rules *rules, const char *text,
			 size_t len, struct shell_line *line,
			 struct judgement *ret)
{
	if (shell_parse(text, len, line) == 0) {
		commands_judge(rules, line, ret);
		return;
	}
	*ret = (struct judgement){
		.decision = rules && rules->ask_otherwise ? DECISION_ASK
							  : DECISION_DENY,
	};
	(void)snprintf(ret->why, sizeof(ret->why),
		       "not understood at byte %zu: %s", line->at + 1,
		       line->why);
}

const char *decision_name(enum decision d)
{
	static const char *const names[] = { "allow", "ask", "deny" };

	return (size_t)d < ARRAY_SIZE(names) ? names[d] : "deny";
}

const struct command_rules *commands_preset(const char *name)
{
	static const struct command_rule allow[] = {
		{ .name = "ls" },
		{ .name = "cat" },
		{ .name = "head" },
		{ .name = "tail" },
		{ .name = "wc" },
		{ .name = "grep" },
		{ .name = "find" },
		{ .name = "sort" },
		{ .name = "uniq" },
		{ .name = "cut" },
		{ .name = "awk" },
		{ .name = "jq" },
		{ .name = "echo" },
		{ .name = "date" },
		{ .name = "python", .script = COMMANDS_CWD },
		{ .name = "node", .script = COMMANDS_CWD },
		{ .name = "curl" },
		{ .name = "pwd" },
		{ .name = "true" },
		{ .name = "false" },
	};
	static const struct command_rules shell_tools = {
		.allow = allow,
		.n_allow = ARRAY_SIZE(allow),
	};

	return strcmp(name, "shell-tools") == 0 ? &shell_tools : NULL;
}
