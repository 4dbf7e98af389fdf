/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation
 *
 * A word is a flag, the value of one, or an operand. Which one it is depends
 * on how many values the flag before takes, and a mistake about that could
 * let a flag pass as a value. So a value that stands alone may not look like
 * a flag (-5 may), whatever the table says about the flag before it: read
 * either way, no word of an accepted command is a flag that is not allowed.
 */

#include "policy/arguments.h"

#include <string.h>

#include "policy/grammar.h"
#include "policy/kinds.h"

struct args {
	const struct command_rule *rule;
	const struct grammar *g; /* NULL: the program is not known */
	struct kind_context context;
	const char *const *words;
	size_t n;
	size_t i;
	bool ended; /* by -- */
	bool led;   /* the first operand was seen */
	unsigned int operands;
	struct complaint wrong;
};

static bool complain(struct args *a, const char *why, const char *word)
{
	a->wrong = (struct complaint){ .why = why, .word = word };
	return false;
}

static bool is_in(const char *const *list, const char *word, size_t len)
{
	for (; list && *list; list++)
		if (strncmp(*list, word, len) == 0 && (*list)[len] == '\0')
			return true;
	return false;
}

/* A rule may say "--name=" of a flag that takes a value. */
static bool takes_value(const struct command_rule *rule, const char *flag,
			size_t len)
{
	for (const char *const *f = rule->flags; f && *f; f++)
		if (strncmp(*f, flag, len) == 0 && strcmp(*f + len, "=") == 0)
			return true;
	return false;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_flag(const char *word)
{
	return word[0] == '-' && word[1] != '\0';
}

static const struct valued *valued_find(const struct grammar *g,
					const char *flag, size_t len,
					bool attached)
{
	const struct valued *v = g ? g->valued : NULL;

	for (; v && v->name; v++)
		if (strncmp(v->name, flag, len) == 0 && v->name[len] == '\0' &&
		    (attached || v->n > 0))
			return v;
	return NULL;
}

/* By the rule's own list if it has one, else by the grammar. */
static bool is_allowed(const struct args *a, const char *flag, size_t len,
		       bool shipped)
{
	if (!a->rule->flags)
		return shipped;
	return is_in(a->rule->flags, flag, len) ||
	       takes_value(a->rule, flag, len);
}

static bool check_value(struct args *a, enum kind kind, const char *value)
{
	const char *why = word_check(kind, value, &a->context);

	return why ? complain(a, why, value) : true;
}

/* The words after a flag that are its values. */
static bool take_values(struct args *a, enum kind kind, unsigned int n)
{
	const char *flag = a->words[a->i - 1];

	for (; n > 0; n--) {
		const char *value;

		if (a->i >= a->n)
			return complain(a, "a flag without its value", flag);
		value = a->words[a->i++];
		if (is_flag(value) && !is_digit(value[1]) && kind != KIND_PERM)
			return complain(a, "a value that looks like a flag",
					value);
		if (!check_value(a, kind, value))
			return false;
	}
	return true;
}

static bool take_attached(struct args *a, const struct valued *v,
			  const char *value)
{
	a->led |= v->lead;
	if (v->n > 1)
		return complain(a, "a flag of several values", value);
	return check_value(a, v->kind, value);
}

static bool take_separate(struct args *a, const struct valued *v)
{
	a->led |= v->lead;
	return take_values(a, v->kind, v->n);
}

static enum kind operand_kind(const struct args *a, bool lead)
{
	enum kind grammar = KIND_PLAIN;

	if (a->g)
		grammar = lead && a->g->lead ? a->g->lead : a->g->rest;
	switch (a->rule->operands) {
	case OPERANDS_ANY:
		return KIND_ANY;
	case OPERANDS_NONE:
		return KIND_NONE;
	case OPERANDS_PATHS:
		/* The program of awk, the pattern of grep are not paths. */
		return lead && a->g && a->g->lead ? grammar : KIND_FILE;
	default:
		return grammar;
	}
}

static bool take_operand(struct args *a, const char *word)
{
	bool lead = !a->led && a->g && a->g->lead;
	enum kind kind = operand_kind(a, lead);
	unsigned int most = a->g && a->rule->operands != OPERANDS_ANY
				    ? a->g->most
				    : 0;

	a->led = true;
	a->operands++;
	if (kind == KIND_NONE)
		return complain(a, "an operand", word);
	if (most && a->operands > most)
		return complain(a, "one operand too many", word);
	return check_value(a, kind, word);
}

static bool take_long(struct args *a, const char *word)
{
	size_t len = strcspn(word, "=");
	bool attached = word[len] == '=';
	const struct valued *v = valued_find(a->g, word, len, attached);

	if (attached && a->g && a->g->style == STYLE_SPLIT)
		return complain(a, "a flag that no rule allows", word);
	if (is_in(a->rule->flags, word, strlen(word)) && attached)
		return true; /* --name=value as the rule has it */
	if (!is_allowed(a, word, len,
			v || (!attached && a->g &&
			      is_in(a->g->words, word, len))))
		return complain(a, "a flag that no rule allows", word);
	if (v)
		return attached ? take_attached(a, v, word + len + 1)
				: take_separate(a, v);
	if (takes_value(a->rule, word, len))
		return attached || take_values(a, KIND_TEXT, 1);
	if (attached)
		return complain(a, "a flag that no rule allows", word);
	return true;
}

static bool is_number_flag(const struct args *a, const char *word)
{
	return a->g && a->g->digits && !a->rule->flags &&
	       strspn(word + 1, "0123456789") == strlen(word + 1);
}

/* -abc, -n5, -abn 5, as getopt() reads them. */
static bool take_cluster(struct args *a, const char *word)
{
	if (is_in(a->rule->flags, word, strlen(word)) && word[2])
		return true; /* -la as the rule has it */
	for (const char *c = word + 1; *c; c++) {
		const char flag[] = { '-', *c, '\0' };
		bool letter = strchr(a->g->letters, *c) != NULL;
		const struct valued *v = valued_find(a->g, flag, 2,
						     c[1] || !letter);

		if (!is_allowed(a, flag, 2, letter || v))
			return complain(a, "a flag that no rule allows", word);
		if (v)
			return c[1] ? take_attached(a, v, c + 1)
				    : take_separate(a, v);
		if (letter)
			continue;
		/* Known to the rule alone. */
		if (takes_value(a->rule, flag, 2))
			return c[1] || take_values(a, KIND_TEXT, 1);
		if (c != word + 1 || c[1])
			return complain(a, "a flag that no rule allows", word);
	}
	return true;
}

/* One whole word, for programs that are not known and for find. */
static bool take_exact(struct args *a, const char *word)
{
	size_t len = strlen(word);
	const struct valued *v = valued_find(a->g, word, len, false);
	bool shipped = v || (a->g && is_in(a->g->words, word, len));

	if (!is_allowed(a, word, len, shipped))
		return complain(a, "a flag that no rule allows", word);
	if (v)
		return take_separate(a, v);
	return !takes_value(a->rule, word, len) || take_values(a, KIND_TEXT, 1);
}

static bool take_flag(struct args *a, const char *word)
{
	if (word[1] == '-')
		return take_long(a, word);
	if (!a->g)
		return take_exact(a, word);
	if (is_number_flag(a, word))
		return true;
	return take_cluster(a, word);
}

static bool check_getopt(struct args *a)
{
	/* Who knows what an unknown program does after --? */
	bool ends = a->g && a->g->style == STYLE_GETOPT;

	while (a->i < a->n) {
		const char *word = a->words[a->i++];

		a->ended |= a->operands && a->g && a->g->flags_first;
		if (!a->ended && ends && strcmp(word, "--") == 0)
			a->ended = true;
		else if (!a->ended && is_flag(word) ? !take_flag(a, word)
						    : !take_operand(a, word))
			return false;
	}
	return true;
}

/* Paths, then an expression; a path within it is an error of find's. */
static bool check_find(struct args *a)
{
	bool expression = false;

	while (a->i < a->n) {
		const char *word = a->words[a->i++];

		if (is_in((const char *const[]){ "(", ")", "!", ",", NULL },
			  word, strlen(word))) {
			expression = true;
		} else if (word[0] == '-') {
			expression |= strlen(word) > 2;
			if (!take_exact(a, word))
				return false;
		} else if (expression && a->rule->operands != OPERANDS_ANY) {
			return complain(a, "a path after the expression", word);
		} else if (!take_operand(a, word)) {
			return false;
		}
	}
	return true;
}

/* A script file and whatever it likes; or one harmless flag alone. */
static bool check_script(struct args *a)
{
	if (a->n == 2 && a->g && a->g->style == STYLE_SCRIPT &&
	    is_in(a->g->words, a->words[1], strlen(a->words[1])))
		return true;
	if (a->n < 2)
		return complain(a,
				"no script file, so it reads commands from "
				"its input",
				NULL);
	if (a->context.script[0] != '/')
		return complain(a,
				"a rule with a script directory that is "
				"not absolute",
				NULL);
	return check_value(a, KIND_SCRIPT, a->words[1]);
}

static bool check_any(struct args *a)
{
	for (; a->i < a->n; a->i++)
		if (!check_value(a, KIND_ANY, a->words[a->i]))
			return false;
	return true;
}

/* A rule that leaves open what the program is given. */
static bool is_open(const struct command_rule *rule)
{
	return !rule->sub && !rule->script &&
	       rule->operands == OPERANDS_GRAMMAR;
}

static bool has_own_words(const struct command_rule *rule)
{
	return rule->flags || rule->operands != OPERANDS_GRAMMAR;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool check_sub(struct args *a)
{
	if (!a->rule->sub)
		return true;
	/* Exactly there: a flag before it could take it as a value. */
	if (a->n < 2 || !is_in(a->rule->sub, a->words[1], strlen(a->words[1])))
		return complain(a, "a sub-command that no rule allows",
				a->n < 2 ? NULL : a->words[1]);
	a->i = 2;
	return true;
}

static bool check(struct args *a)
{
	const char *program = base_name(a->rule->name);

	a->g = grammar_find(program);
	if (a->rule->script)
		return check_script(a);
	if (a->g && a->g->style == STYLE_SCRIPT && !has_own_words(a->rule)) {
		/* Not the working directory, which a caller chooses. */
		a->context.script = COMMANDS_CWD;
		return check_script(a);
	}
	/* Its operands are not those of the grammar with a sub-command. */
	if (a->rule->sub || (a->g && a->g->style == STYLE_SCRIPT))
		a->g = NULL;
	if (!a->g && is_open(a->rule) && grammar_runs_others(program))
		return complain(a,
				"a program that runs others; a rule that "
				"means it says which operands",
				NULL);
	if (!check_sub(a))
		return false;
	if (a->g && a->g->style == STYLE_ANY && !has_own_words(a->rule))
		return check_any(a);
	if (a->g && a->g->style == STYLE_ANY)
		a->g = NULL;
	if (a->g && a->g->style == STYLE_FIND)
		return check_find(a);
	return check_getopt(a);
}

struct complaint arguments_check(const struct command_rules *rules,
				 const struct command_rule *rule,
				 const char *const *words, size_t n)
{
	struct args a = {
		.rule = rule,
		.context = {
			.hosts = rules->hosts,
			.cwd = rules->cwd ? rules->cwd : COMMANDS_CWD,
			.script = rule->script,
		},
		.words = words,
		.n = n,
		.i = 1,
	};

	if (!check(&a) && !a.wrong.why)
		a.wrong.why = "arguments that are not understood";
	return a.wrong;
}

/* Whether `word` could be the flag, in any of the ways it can be written. */
static bool may_be_flag(const char *word, const char *flag)
{
	size_t len = strcspn(flag, "=");
	size_t w = strcspn(word, "=");

	if (word[0] != '-' || len == 0)
		return false;
	if (strncmp(word, flag, len) == 0)
		return true;
	if (len == 2 && flag[0] == '-' && word[1] != '-')
		return strchr(word, flag[1]) != NULL;
	return w > 2 && w < len && strncmp(word, flag, w) == 0;
}

static bool has_flag(const char *const *flags, const char *word)
{
	for (; *flags; flags++)
		if (may_be_flag(word, *flags))
			return true;
	return false;
}

bool arguments_concern(const struct command_rule *rule,
		       const char *const *words, size_t n)
{
	bool sub = !rule->sub;
	bool flag = !rule->flags;

	for (size_t i = 1; i < n; i++) {
		sub |= is_in(rule->sub, words[i], strlen(words[i]));
		flag |= rule->flags && has_flag(rule->flags, words[i]);
	}
	return sub && flag;
}
