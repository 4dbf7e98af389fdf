/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A limit in dollars holds only where every model has its prices, and those
 * are said by whoever pays them: none is built in, since they change.
 */

#include <errno.h>
#include <string.h>

#include "agentcmd/config.h"
#include "agentcmd/doc.h"
#include "agentcmd/fields.h"

/* A recording costs what was recorded. */
static bool is_priced(const json_t *model)
{
	const json_t *info = json_object_get(component_config(model), "info");

	return strcmp(component_kind(model), "openai") != 0 ||
	       (json_is_number(json_object_get(info, "price_prompt")) &&
		json_is_number(json_object_get(info, "price_completion")));
}

/* The first part of it for which `find` has an answer; NULL: none. */
static const json_t *find_in(const json_t *v,
			     const json_t *(*find)(const json_t *component))
{
	const json_t *found = NULL;
	const char *key;
	json_t *part;
	size_t i;

	if (component_provider(v))
		found = find(v);
	if (!found && json_is_array(v))
		for (i = 0; !found && (part = json_array_get(v, i)); i++)
			found = find_in(part, find);
	else if (!found)
		json_object_foreach((json_t *)v, key, part) if (!found)
			found = find_in(part, find);
	return found;
}

static const json_t *as_unpriced(const json_t *c)
{
	bool is_model = strncmp(component_provider(c), "cordon.model.", 13) ==
			0;

	return is_model && !is_priced(c) ? c : NULL;
}

/* A model of this part that has no prices: its own, of who summarises, of
 * agents that are its tools. */
static const json_t *unpriced(const json_t *component)
{
	return find_in(component, as_unpriced);
}

static bool has_cost(const json_t *stop)
{
	const json_t *parts = json_object_get(component_config(stop),
					      "conditions");
	bool has = strcmp(component_kind(stop), "cost") == 0;

	for (size_t i = 0; !has && i < json_array_size(parts); i++)
		has = has_cost(json_array_get(parts, i));
	return has;
}

static int refuse(struct at *at, const json_t *model)
{
	const char *name = json_string_value(
		json_object_get(component_config(model), "model"));

	return at_error(at,
			"a limit in dollars needs the prices of '%.60s'; write "
			"model: {model: %.60s, info: {price_prompt: P, "
			"price_completion: P}}, in dollars for a million "
			"tokens, or limit tokens instead",
			name, name);
}

/* The path of a member, in the form that the document has. */
static void go_to(struct at *at, const char *component_key, const char *key)
{
	if (json_object_get(at->doc->root, "provider")) {
		(void)at_down(at, "config");
		key = component_key;
	}
	(void)at_down(at, key);
}

static void go_to_agent(struct at *at, const json_t *agent, size_t i)
{
	const json_t *name = json_object_get(component_config(agent), "name");

	if (json_object_get(at->doc->root, "provider")) {
		go_to(at, "participants", "");
		(void)at_down_to(at, i);
		(void)at_down(at, "config");
	} else if (json_object_get(at->doc->root, "agents")) {
		(void)at_down(at, "agents");
		(void)at_down(at, json_string_value(name));
	}
	(void)at_down(at, "max_cost_per_turn");
}

/* The part itself, where it has a limit. */
static const json_t *as_limited(const json_t *c)
{
	const json_t *config = component_config(c);
	const json_t *stop = json_object_get(config, "termination");
	bool is = json_object_get(json_object_get(config, "budget"), "cost") ||
		  json_object_get(config, "max_cost_per_turn") ||
		  (stop && has_cost(stop));

	return is ? c : NULL;
}

bool prices_matter(const json_t *component)
{
	return find_in(component, as_limited) != NULL;
}

static const json_t *as_unpriced_limit(const json_t *c)
{
	return as_limited(c) ? unpriced(c) : NULL;
}

/* Of a team's participants: the first with a limit of its own. */
static void go_to_limited(struct at *at, const json_t *agents)
{
	for (size_t i = 0; i < json_array_size(agents); i++) {
		const json_t *agent = json_array_get(agents, i);

		if (as_unpriced_limit(agent)) {
			go_to_agent(at, agent, i);
			return;
		}
	}
}

int prices_check(struct at *at, const json_t *component)
{
	const json_t *config = component_config(component);
	const json_t *stop = json_object_get(config, "termination");
	const json_t *model = find_in(component, as_unpriced_limit);

	if (!model)
		return 0;
	if (json_object_get(json_object_get(config, "budget"), "cost")) {
		go_to(at, "budget", "budget");
		(void)at_down(at, "cost");
	} else if (stop && has_cost(stop)) {
		go_to(at, "termination", "stop");
	} else if (json_object_get(config, "max_cost_per_turn")) {
		go_to(at, "max_cost_per_turn", "max_cost_per_turn");
	} else {
		go_to_limited(at, json_object_get(config, "participants"));
	}
	return refuse(at, model);
}
