/* SPDX-License-Identifier: Apache-2.0 */

/* A team's settings, and its actors: made, subscribed, and gone again. */

#include <string.h>

#include "agent/parts.h"
#include "agent/team-parts.h"
#include "base/util.h"

#define MAX_SETTINGS 32

static const struct setting common[] = {
	{ "max_turns", SETTING_POSITIVE },
	{ "budget", SETTING_OBJECT },
	{ "on_agent_error", SETTING_TEXT },
	{ "max_retries", SETTING_COUNT },
	{ "emit_team_events", SETTING_BOOL },
	{ "output_task_messages", SETTING_BOOL },
};

static int check_settings(const struct team *t, const json_t *config,
			  struct err *err)
{
	struct setting all[MAX_SETTINGS];
	size_t n = ARRAY_SIZE(common);

	memcpy(all, common, sizeof(common));
	for (size_t i = 0; i < t->kind->n_settings && n < MAX_SETTINGS; i++)
		all[n++] = t->kind->settings[i];
	return settings_check(config, all, n, err);
}

static int parse_on_error(const char *text, enum on_error *ret, struct err *err)
{
	static const char *const names[] = { [ERROR_STOP] = "stop",
					     [ERROR_SKIP] = "skip",
					     [ERROR_RETRY] = "retry" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(names[i], text) == 0) {
			*ret = (enum on_error)i;
			return 0;
		}
	return err_set(err, EINVAL,
		       "/on_agent_error: '%s' is none of stop, skip, retry",
		       text);
}

int team_settings(struct team *t, const json_t *config, struct err *err)
{
	const json_t *budget = json_object_get(config, "budget");
	int r = check_settings(t, config, err);

	if (r == 0)
		r = budget_parse(&t->budget, budget, err);
	if (r == 0)
		r = parse_on_error(setting_text(config, "on_agent_error",
						"stop"),
				   &t->on_error, err);
	t->max_turns = setting_int(config, "max_turns", 0);
	t->max_retries = (unsigned int)setting_int(config, "max_retries", 2);
	t->emit_events = setting_bool(config, "emit_team_events", false);
	t->output_task = setting_bool(config, "output_task_messages", true);
	return r;
}

/* One more actor, on the topic of its own name; it refers to the team. */
static int add_actor(struct team *t, struct actor *a, const char *id,
		     struct err *err)
{
	char type[2 * TEAM_NAME_MAX + 8];
	int r;

	(void)snprintf(type, sizeof(type), "%.*s", (int)strcspn(id, "/"), id);
	r = runtime_subscribe(t->runtime, SUB_TYPE, type, type,
			      t->subscriptions[t->n_subscriptions], err);
	if (r < 0)
		return r;
	t->n_subscriptions++;
	r = runtime_register_instance(t->runtime, id, a, err);
	if (r < 0)
		return r;
	(void)team_ref(t);
	t->n_actors++;
	return 0;
}

/* In the order in which team_leave() takes them away again. */
static const char *id_of(const struct team *t, size_t i)
{
	if (i == 0)
		return t->manager_id;
	return i == 1 ? t->output_topic : t->members[i - 2]->id;
}

int team_join(struct team *t, struct err *err)
{
	int r;

	t->subscriptions = calloc(t->n_members + 2, sizeof(*t->subscriptions));
	if (!t->subscriptions)
		return err_set(err, ENOMEM, "out of memory");
	t->manager = (struct team_actor){ { .ops = &manager_ops }, t };
	t->output = (struct team_actor){ { .ops = &output_ops }, t };
	r = add_actor(t, &t->manager.actor, t->manager_id, err);
	if (r == 0)
		r = add_actor(t, &t->output.actor, t->output_topic, err);
	for (size_t i = 0; i < t->n_members && r == 0; i++)
		r = add_actor(t, &t->members[i]->actor, t->members[i]->id, err);
	return r;
}

void team_leave(struct team *t)
{
	struct err err = { 0 };

	while (t->n_subscriptions > 0)
		(void)runtime_unsubscribe(
			t->runtime, t->subscriptions[--t->n_subscriptions],
			&err);
	while (t->n_actors > 0)
		(void)runtime_unregister(t->runtime, id_of(t, --t->n_actors),
					 &err);
}
