/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which agent may call which tool, and which calls ask: the policy's `tools`,
 * and the default rules.
 *
 * A policy without `tools` says nothing about who has which tool; what an
 * agent was given by its own configuration it has. With `tools`, a tool that
 * no rule names is not given, nor is one to an agent that its rule does not
 * name. The rule for "*" is for all that have none of their own; that it
 * always asks, and its limits, hold for those too: the closer rule narrows.
 *
 * An agent's configuration may tighten (`always`). Its `never` counts only
 * where the policy says the same.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "tool/call.h"

static const struct policy_tool *find_rule(const struct policy *p,
					   const char *name)
{
	for (size_t i = 0; i < p->n_tools; i++)
		if (strcmp(p->tools[i].name, name) == 0)
			return &p->tools[i];
	return NULL;
}

static void narrow(struct call *c, const struct policy_tool *rule)
{
	c->always_asks |= rule->always_asks;
	for (int i = 0; i < POLICY_NUMBERS; i++) {
		const struct policy_value *v = &rule->numbers[i];

		if (v->is_stated &&
		    (!c->narrow[i].is_stated || v->value < c->narrow[i].value))
			c->narrow[i] = *v;
	}
	c->c.narrow = c->narrow;
}

static bool has_agent(const struct policy_tool *rule, const char *agent)
{
	return policy_list_has(&rule->agents, "*") ||
	       (agent && policy_list_has(&rule->agents, agent));
}

static bool gives(const struct policy *p, const char *name, const char *agent)
{
	const struct policy_tool *own = find_rule(p, name);
	const struct policy_tool *rule = own ? own : find_rule(p, "*");

	return rule && has_agent(rule, agent);
}

bool rules_give(const struct policy *p, const struct tool *t, const char *agent)
{
	return p->n_tools == 0 || (gives(p, t->name, agent) &&
				   (!t->kind || gives(p, t->kind, agent)));
}

static const char *policy_file(const struct policy *p)
{
	return p->flat.n_sources ? p->flat.sources[0].name : "the policy";
}

static int rule_for(struct call *c, const char *name,
		    const struct policy_tool **ret, struct err *err)
{
	const struct policy *p = c->set->policy;
	const struct policy_tool *own = find_rule(p, name);
	const struct policy_tool *rule = own ? own : find_rule(p, "*");

	if (!rule)
		return err_set(err, EPERM,
			       "tool '%s' is not given: %s names it nowhere "
			       "in 'tools'",
			       name, policy_file(p));
	if (!has_agent(rule, c->agent))
		return err_set(err, EPERM,
			       "tool '%s' is not given to agent '%s' (%s:%u: "
			       "tools.%s.agents)",
			       name, c->agent ? c->agent : "", rule->at.file,
			       rule->at.line, rule->name);
	narrow(c, rule);
	*ret = rule;
	return 0;
}

/* By its name and by what it is: neither gets round the other. */
int rules_find(struct call *c, struct err *err)
{
	const struct policy *p = c->set->policy;
	const struct policy_tool *star = find_rule(p, "*");
	const struct policy_tool *other = NULL;
	const char *kind = c->tool->kind;

	if (p->n_tools == 0)
		return 0;
	if (rule_for(c, c->name, &c->rule, err) < 0)
		return -err->code;
	if (kind && strcmp(kind, c->name) != 0 &&
	    rule_for(c, kind, &other, err) < 0)
		return -err->code;
	if (star)
		narrow(c, star);
	c->never_asks = c->rule->never_asks && !c->always_asks &&
			(!other || other->never_asks);
	return 0;
}

static void ask(struct call *c, const char *rule, const char *why)
{
	c->decision = DECISION_ASK;
	c->rule_text = rule;
	(void)snprintf(c->why, sizeof(c->why), "%s", why);
}

void rules_decide(struct call *c)
{
	const struct tool_judgement *j = &c->judged;
	const struct tool *t = c->tool;

	c->decision = DECISION_ALLOW;
	if (j->decision == DECISION_DENY) {
		c->decision = DECISION_DENY;
		(void)snprintf(c->why, sizeof(c->why), "%s", j->why);
	} else if (t->approval == APPROVAL_ALWAYS || c->must_ask) {
		ask(c, "approval: always", "each call of this tool is asked");
	} else if (c->always_asks) {
		ask(c, "tools.approval: always",
		    "the policy has each call of this tool asked");
	} else if (j->decision == DECISION_ASK) {
		ask(c, "the policy asks", j->why);
	} else if (c->never_asks) {
		c->rule_text = "tools.approval: never";
	} else if (j->crosses) {
		ask(c, "default: what crosses the wall", j->why);
	} else if (!t->is_boxed && !t->is_read_only) {
		ask(c, "default: what crosses the wall",
		    "it acts on this machine, outside of any box");
	}
}
