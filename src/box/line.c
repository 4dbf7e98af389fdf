/* SPDX-License-Identifier: Apache-2.0 */
#include "box/line.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "box/lang.h"
#include "box/prepare.h"
#include "box/wire.h"

static const uint32_t joins[] = {
	[SHELL_FIRST] = WIRE_ALWAYS, [SHELL_PIPE] = WIRE_BY_PIPE,
	[SHELL_AND] = WIRE_IF_OK,    [SHELL_OR] = WIRE_IF_NOT,
	[SHELL_THEN] = WIRE_ALWAYS,
};

/* The programs that init will start, from the line as it was understood. */
static int take_line(struct cordon_spec *s, const struct shell_line *line,
		     struct err *err)
{
	for (size_t i = 0; i < line->n_commands; i++) {
		const struct shell_command *c = &line->commands[i];

		if (spec_add_line(s, joins[c->join], line->words + c->first,
				  c->n, err) < 0)
			return -err->code;
	}
	return 0;
}

static int take_name(struct cordon_spec *s, const char *name, struct err *err)
{
	if (strv_add(&s->programs, name) < 0)
		return err_set(err, ENOMEM, "out of memory");
	return 0;
}

/* What a person is asked about: each program by the name it is called by. */
static int take_asked(struct cordon_spec *s, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->n_line; i++)
		r = take_name(s, s->line[i].argv.v[0], err);
	if (r == 0 && s->command.n)
		r = take_name(s, s->command.v[0], err);
	for (size_t i = 0; r == 0 && i < s->n_blocks; i++)
		if (s->blocks[i].program)
			r = take_name(s, s->blocks[i].program, err);
	return r;
}

static bool is_denied(const struct command_rules *rules, const char *name)
{
	for (size_t i = 0; i < rules->n_deny; i++)
		if (strcmp(rules->deny[i].name, name) == 0 &&
		    !rules->deny[i].sub && !rules->deny[i].flags)
			return true;
	return false;
}

/*
 * What is allowed is there; what asks, only where a person is asked about it:
 * else a script that is allowed could start it. A name that is denied as a
 * whole is not there, though another rule has it.
 */
static int take_programs(struct cordon_spec *s,
			 const struct command_rules *rules, bool asks,
			 struct err *err)
{
	size_t kept = 0;
	int r = 0;

	/* A caller's own list is narrower, or an error of its own. */
	strv_done(&s->programs);
	s->has_programs = true;
	for (size_t i = 0; r == 0 && i < rules->n_allow; i++)
		r = take_name(s, rules->allow[i].name, err);
	if (r == 0 && asks)
		r = take_asked(s, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < s->programs.n; i++) {
		if (is_denied(rules, s->programs.v[i]))
			free(s->programs.v[i]);
		else
			s->programs.v[kept++] = s->programs.v[i];
	}
	if (s->programs.v)
		s->programs.v[kept] = NULL;
	s->programs.n = kept;
	return 0;
}

/* Words that were given one by one: nothing is left to understand. */
static int as_line(const char *const *words, size_t n, struct shell_line *line,
		   struct judgement *ret)
{
	if (n > SHELL_MAX_WORDS) {
		ret->decision = DECISION_DENY;
		(void)snprintf(ret->why, sizeof(ret->why), "too many words");
		return -E2BIG;
	}
	line->n_commands = 1;
	line->commands[0] = (struct shell_command){ SHELL_FIRST, 0, n };
	line->n_words = n;
	memcpy(line->words, words, n * sizeof(*words));
	return 0;
}

static void judge_words(const struct command_rules *rules,
			const char *const *words, size_t n,
			struct shell_line *line, struct judgement *ret)
{
	if (as_line(words, n, line, ret) == 0)
		commands_judge(rules, line, ret);
}

/*
 * A block is a call of its interpreter, under whichever of its names the
 * policy has: `python` stands for python3 as it does in the box.
 */
static void judge_block(struct spec_block *b, const char *file,
			const struct command_rules *rules,
			struct shell_line *line, struct judgement *ret)
{
	const struct lang *l = b->lang;
	const char *const names[] = { l ? l->programs[0] : b->lang_name,
				      l ? l->programs[1] : NULL,
				      l ? l->names[0] : NULL };

	ret->decision = DECISION_DENY;
	if (l && l->compile[0]) {
		(void)snprintf(ret->why, sizeof(ret->why),
			       "what a compiler makes is not on the list of "
			       "commands, and cannot be executed");
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *words[] = { names[i], file };
		struct judgement one = { 0 };

		if (!names[i])
			continue;
		judge_words(rules, words, ARRAY_SIZE(words), line, &one);
		if (is_denied(rules, names[i]) || i == 0 ||
		    one.decision < ret->decision)
			*ret = one;
		if (is_denied(rules, names[i]))
			return;
		if (ret->decision != DECISION_DENY && !b->program)
			b->program = names[i];
	}
}

/* The strictest answer for any of them decides. */
static void judge_blocks(struct cordon_spec *s,
			 const struct command_rules *rules,
			 struct shell_line *line, struct judgement *ret)
{
	char file[64];

	(void)snprintf(file, sizeof(file), "%s/code", prepare_code_dir(s));
	for (size_t i = 0; i < s->n_blocks; i++) {
		struct judgement one = { 0 };

		judge_block(&s->blocks[i], file, rules, line, &one);
		if (i == 0 || one.decision > ret->decision)
			*ret = one;
	}
}

static int judge_text(struct cordon_spec *s, const struct command_rules *rules,
		      struct shell_line *line, struct judgement *ret,
		      struct err *err)
{
	const char *text = s->command_line;

	if (rules) {
		commands_judge_text(rules, text, strlen(text), line, ret);
	} else if (shell_parse(text, strlen(text), line) < 0) {
		ret->decision = DECISION_DENY;
		(void)snprintf(ret->why, sizeof(ret->why),
			       "at byte %zu: %s; only plain words, quotes and "
			       "| && || ; are understood",
			       line->at, line->why);
	}
	/* What was not understood has no list that a person could allow. */
	if (ret->decision != DECISION_DENY && line->n_commands == 0)
		ret->decision = DECISION_DENY;
	return ret->decision == DECISION_DENY ? 0 : take_line(s, line, err);
}

int line_judge(struct cordon_spec *s, const struct command_rules *given,
	       struct judgement *ret, struct err *err)
{
	_cleanup_free_ struct shell_line *line = NULL;
	struct command_rules here;
	const struct command_rules *rules = NULL;
	int r = 0;

	/* A relative name means what it will mean when it is run. */
	if (given) {
		here = *given;
		here.cwd = s->workdir ? s->workdir : COMMANDS_CWD;
		rules = &here;
	}
	memset(ret, 0, sizeof(*ret));
	/* The spec may have been used before. */
	while (s->n_line > 0)
		strv_done(&s->line[--s->n_line].argv);
	if (!s->command_line && !rules)
		return 0;
	line = calloc(1, sizeof(*line));
	if (!line)
		return err_set(err, ENOMEM, "out of memory");
	if (s->command_line)
		r = judge_text(s, rules, line, ret, err);
	else if (s->command.n)
		judge_words(rules, (const char *const *)s->command.v,
			    s->command.n, line, ret);
	else
		judge_blocks(s, rules, line, ret);
	if (r < 0 || !rules || ret->decision == DECISION_DENY)
		return r;
	return take_programs(s, rules, ret->decision == DECISION_ASK, err);
}
