/* SPDX-License-Identifier: Apache-2.0 */
#include "agentcmd/crew-screen.h"

#include <errno.h>
#include <string.h>

#include "agentcmd/config.h"
#include "agentcmd/fields.h"
#include "ledger/ledger.h"
#include "policy/policy.h"
#include "tool/tool.h"

/* Names of agents who are people. */
static int find_person(void *arg, const json_t *agent)
{
	struct strv *people = arg;
	const char *name = json_string_value(
		json_object_get(component_config(agent), "name"));

	if (strcmp(component_kind(agent), "user_proxy") != 0)
		return 0;
	return strv_add(people, name) < 0 ? -ENOMEM : 0;
}

int crew_screen_open(struct crew_screen *s, const char *policy,
		     const json_t *team, const struct crew_run *run,
		     struct runtime *rt, struct err *err)
{
	struct screen_options o = { 0 };
	struct filter *f = NULL;
	int e = toolset_policy(policy, &s->policy, err);

	if (e < 0 || s->policy->n_filters == 0)
		return e;
	e = ledger_open(NULL, &s->ledger, err);
	if (e == 0 && config_each_agent(team, find_person, &s->people) < 0)
		e = err_set(err, ENOMEM, "out of memory");
	o = (struct screen_options){
		.policy = s->policy,
		.ledger = s->ledger,
		.run_of = run->of,
		.arg = run->arg,
		.people = (const char *const *)s->people.v
	};
	if (e == 0)
		e = screen_new(&o, &s->screen, err);
	if (e < 0)
		return err_wrap(err, "filters");
	f = screen_filter(s->screen);
	if (!f)
		return err_set(err, ENOMEM, "out of memory");
	runtime_add_filter(rt, f);
	return 0;
}

void crew_screen_close(struct crew_screen *s)
{
	screen_unref(s->screen);
	strv_done(&s->people);
	ledger_close(s->ledger);
	policy_free(s->policy);
	memset(s, 0, sizeof(*s));
}
