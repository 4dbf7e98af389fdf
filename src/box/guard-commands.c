/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is to be run, against the lists of commands: the policy's, and the
 * request's own, which can only narrow it.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "box/guard-parts.h"
#include "box/line.h"

static int judge(struct guard *g, const struct command_rules *rules,
		 const char *where, struct err *err)
{
	struct judgement j;
	char text[480];

	for (size_t i = 0; i < g->spec->n_blocks; i++)
		g->spec->blocks[i].program = NULL;
	if (line_judge(g->spec, rules, &j, err) < 0)
		return -err->code;
	if (j.decision == DECISION_DENY) {
		(void)snprintf(text, sizeof(text), "%s%s", j.why, where);
		return guard_denied(g, err, text);
	}
	if (j.decision > g->verdict.decision) {
		g->verdict.decision = j.decision;
		(void)snprintf(g->verdict.why, sizeof(g->verdict.why), "%s",
			       j.why);
	}
	if (!g->rule || j.decision == DECISION_ASK)
		g->rule = j.rule;
	return 0;
}

static bool is_given(const struct command_rules *rules, const char *name)
{
	for (size_t i = 0; rules && i < rules->n_allow; i++)
		if (strcmp(rules->allow[i].name, name) == 0)
			return true;
	for (size_t i = 0; rules && i < rules->n_ask; i++)
		if (strcmp(rules->ask[i].name, name) == 0)
			return true;
	return !rules;
}

/*
 * The request's own list, by name. It narrows the policy's: what that does
 * not have is not in the box, whatever the request says.
 */
static int judge_allowed(struct guard *g, const struct command_rules *policy,
			 struct err *err)
{
	const struct strv *names = &g->given->allowed;
	_cleanup_free_ struct command_rule *allow = calloc(names->n + 1,
							   sizeof(*allow));
	struct command_rules rules = { .allow = allow };
	int r;

	if (!allow)
		return guard_no_memory(err);
	if (policy) {
		rules.deny = policy->deny;
		rules.n_deny = policy->n_deny;
		rules.hosts = policy->hosts;
	}
	for (size_t i = 0; i < names->n; i++)
		if (is_given(policy, names->v[i]))
			allow[rules.n_allow++].name = names->v[i];
	r = judge(g, &rules, " (allowed_commands)", err);
	/* A rule of this list ends with this function. */
	if (g->rule >= allow && g->rule < allow + rules.n_allow)
		g->rule = NULL;
	return r;
}

int guard_commands(struct guard *g, struct err *err)
{
	const struct command_rules *rules = g->policy && g->policy->has_commands
						    ? &g->policy->commands
						    : NULL;
	bool has_list = rules || g->given->has_allowed;
	char where[300] = "";

	if (!has_list && !g->given->command_line)
		return 0;
	/* The copy has the lists of the original; from here on its own. */
	g->spec->n_line = 0;
	if (has_list)
		memset(&g->spec->programs, 0, sizeof(g->spec->programs));
	g->owns_programs = has_list;
	if (rules)
		(void)snprintf(where, sizeof(where), " (commands, %.200s:%u)",
			       g->policy->commands_at.file,
			       g->policy->commands_at.line);
	if ((rules || !g->given->has_allowed) &&
	    judge(g, rules, where, err) < 0)
		return -err->code;
	return g->given->has_allowed ? judge_allowed(g, rules, err) : 0;
}
