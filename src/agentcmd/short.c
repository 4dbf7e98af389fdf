/* SPDX-License-Identifier: Apache-2.0 */
#include "agentcmd/short.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"

#define ROUNDS 10 /* of model and tools in one turn, where nothing is said */

#define COMMON_FIELDS                                                          \
	FIELD("name", FIELD_NAME),                                             \
		PART("kind", FIELD_CHOICE, "assistant|code_executor|user"),    \
		FIELD("description", FIELD_TEXT)

const struct field short_assistant[] = {
	COMMON_FIELDS,
	FIELD("model", FIELD_OWN),
	FIELD("system", FIELD_TEXT),
	FIELD("tools", FIELD_OWN),
	FIELD("toolsets", FIELD_OWN),
	FIELD("box", FIELD_BOX),
	FIELD("workspace", FIELD_TEXT),
	FIELD("context", FIELD_OWN),
	FIELD("memory", FIELD_TEXTS),
	FIELD("stream", FIELD_BOOL),
	FIELD("parallel", FIELD_BOOL),
	FIELD("handoffs", FIELD_HANDOFFS),
	FIELD("max_tool_iterations", FIELD_COUNT),
	FIELD("reflect_on_tool_use", FIELD_BOOL),
	FIELD("summary_format", FIELD_TEXT),
	FIELD("output_schema", FIELD_MAP),
	FIELD("output_format", FIELD_TEXT),
	PART("approval", FIELD_CHOICE, "policy|always|never"),
	FIELD("max_tokens_per_turn", FIELD_COUNT),
	FIELD("max_cost_per_turn", FIELD_NUMBER),
	{ 0 },
};

const struct field short_executor[] = {
	COMMON_FIELDS,
	FIELD("model", FIELD_OWN),
	FIELD("system", FIELD_TEXT),
	FIELD("box", FIELD_BOX),
	FIELD("workspace", FIELD_TEXT),
	FIELD("context", FIELD_OWN),
	FIELD("languages", FIELD_TEXTS),
	FIELD("untagged_language", FIELD_TEXT),
	FIELD("sources", FIELD_TEXTS),
	FIELD("max_retries_on_error", FIELD_COUNT),
	PART("approval", FIELD_CHOICE, "policy|always|never"),
	{ 0 },
};

const struct field short_user[] = {
	COMMON_FIELDS,
	FIELD("prompt", FIELD_TEXT),
	FIELD("expire_seconds", FIELD_COUNT),
	{ 0 },
};

/* Of the run as a whole; beside the fields of a single agent. */
const struct field short_top[] = {
	FIELD("policy", FIELD_TEXT),
	FIELD("stop", FIELD_OWN),
	FIELD("max_turns", FIELD_COUNT),
	FIELD("budget", FIELD_OWN),
	{ 0 },
};

const struct field short_team[] = {
	PART("team", FIELD_CHOICE, "round_robin|selector"),
	FIELD("name", FIELD_NAME),
	FIELD("description", FIELD_TEXT),
	FIELD("model", FIELD_OWN),
	MUST("agents", FIELD_OWN),
	FIELD("box", FIELD_BOX),
	FIELD("workspace", FIELD_TEXT),
	FIELD("policy", FIELD_TEXT),
	FIELD("stop", FIELD_OWN),
	FIELD("max_turns", FIELD_COUNT),
	FIELD("budget", FIELD_OWN),
	FIELD("prompt", FIELD_TEXT),
	FIELD("allow_repeated_speaker", FIELD_BOOL),
	FIELD("max_selector_attempts", FIELD_COUNT),
	FIELD("selector_func", FIELD_SPEAKER),
	FIELD("candidate_func", FIELD_SPEAKER),
	FIELD("emit_team_events", FIELD_BOOL),
	FIELD("output_task_messages", FIELD_BOOL),
	PART("on_agent_error", FIELD_CHOICE, "stop|skip|retry"),
	{ 0 },
};

static const struct kind {
	const char *word, *provider;
	const struct field *fields;
} kinds[] = {
	{ "assistant", "cordon.agent.assistant", short_assistant },
	{ "code_executor", "cordon.agent.code_executor", short_executor },
	{ "user", "cordon.agent.user_proxy", short_user },
};

static const char *text_of(const json_t *map, const char *key)
{
	return json_string_value(json_object_get(map, key));
}

/* Takes over `value`; -EINVAL where there is none. */
static int put(json_t *to, const char *key, json_t *value)
{
	return value && json_object_set_new(to, key, value) == 0 ? 0 : -EINVAL;
}

/* Expands one field in place: `key` becomes `as`. */
static int put_part(struct at *at, const json_t *from, const char *key,
		    json_t *to, const char *as,
		    json_t *(*expand)(struct at *at, const json_t *v))
{
	const json_t *v = json_object_get(from, key);
	size_t up;

	if (!v)
		return 0;
	up = at_down(at, key);
	if (put(to, as, expand(at, v)) < 0)
		return -EINVAL;
	at_up(at, up);
	return 0;
}

/* Fields that mean the same in both forms. */
static int put_plain(const json_t *from, const struct field *fields, json_t *to)
{
	static const char *const not_so[] = { "kind",  "name",  "system",
					      "box",   "tools", "workspace",
					      "memory" };

	for (; fields->name; fields++) {
		json_t *v = json_object_get(from, fields->name);
		bool skip = fields->kind == FIELD_OWN || !v;

		for (size_t i = 0; !skip && i < ARRAY_SIZE(not_so); i++)
			skip = strcmp(fields->name, not_so[i]) == 0;
		if (!skip && json_object_set(to, fields->name, v) < 0)
			return -ENOMEM;
	}
	if (json_object_get(from, "system"))
		return json_object_set(to, "system_message",
				       json_object_get(from, "system"));
	return 0;
}

static json_t *merged_box(const struct short_shared *s, const json_t *own)
{
	json_t *ret = s->box ? json_deep_copy(s->box) : json_object();

	if (own)
		json_object_update(ret, (json_t *)own);
	return ret;
}

static int put_model(struct at *at, const struct short_shared *shared,
		     const json_t *from, bool is_required, json_t *to)
{
	if (json_object_get(from, "model"))
		return put_part(at, from, "model", to, "model", short_model);
	if (shared->model && is_required)
		return put(to, "model", json_deep_copy(shared->model));
	return is_required ? at_error(at, "'model' is missing; name one, such "
					  "as gpt-4o-mini")
			   : 0;
}

/* What the agent's tools share: its own where it says so. */
static struct short_shared shared_of(const struct short_shared *above,
				     const json_t *from, const json_t *model,
				     const json_t *box)
{
	const char *dir = text_of(from, "workspace");

	return (struct short_shared){ .model = model,
				      .box = box,
				      .workspace = dir ? dir
						       : above->workspace };
}

static int put_memory(const json_t *memory, json_t *to)
{
	if (!memory)
		return 0;
	return put(to, "memory",
		   json_pack("[o]", component_new("cordon.memory.list",
						  json_pack("{s:O}", "entries",
							    memory))));
}

static int put_tools(const struct short_form *s,
		     const struct short_shared *shared, const json_t *from,
		     json_t *to)
{
	static const struct {
		const char *key;
		json_t *(*expand)(const struct short_form *s, const json_t *v,
				  const struct short_shared *of);
	} parts[] = { { "tools", short_tools },
		      { "toolsets", short_toolsets } };
	json_t *box = merged_box(shared, json_object_get(from, "box"));
	struct short_shared of = shared_of(shared, from,
					   json_object_get(to, "model"), box);
	int e = 0;

	for (size_t i = 0; e == 0 && i < ARRAY_SIZE(parts); i++) {
		json_t *v = json_object_get(from, parts[i].key);
		size_t up;

		if (!v)
			continue;
		up = at_down(s->at, parts[i].key);
		e = put(to, parts[i].key, parts[i].expand(s, v, &of));
		if (e == 0)
			at_up(s->at, up);
	}
	json_decref(box);
	return e;
}

static int fill_assistant(const struct short_form *s,
			  const struct short_shared *shared, const json_t *from,
			  json_t *to)
{
	bool has_tools = json_object_get(from, "tools") ||
			 json_object_get(from, "toolsets");
	int e = put_model(s->at, shared, from, true, to);

	if (e == 0)
		e = put_part(s->at, from, "context", to, "context",
			     short_context);
	if (e == 0)
		e = put_memory(json_object_get(from, "memory"), to);
	if (e == 0)
		e = put_tools(s, shared, from, to);
	if (e == 0 && !json_object_get(from, "stream"))
		e = put(to, "stream", json_true());
	if (e == 0 && has_tools &&
	    !json_object_get(from, "max_tool_iterations"))
		e = put(to, "max_tool_iterations", json_integer(ROUNDS));
	return e;
}

static int fill_executor(const struct short_form *s,
			 const struct short_shared *shared, const json_t *from,
			 json_t *to)
{
	json_t *box = merged_box(shared, json_object_get(from, "box"));
	struct short_shared of = shared_of(shared, from, NULL, box);
	int e = put_model(s->at, shared, from, false, to);

	if (e == 0)
		e = put_part(s->at, from, "context", to, "context",
			     short_context);
	if (e == 0)
		e = put(to, "executor", short_tool(s, "run_code", NULL, &of));
	json_decref(box);
	return e;
}

/* `name`: where the map does not say it. */
static json_t *expand_agent(const struct short_form *s,
			    const struct short_shared *shared,
			    const json_t *from, const char *name)
{
	const char *word = text_of(from, "kind");
	const struct kind *k = &kinds[0];
	json_t *to = json_object();
	int e;

	for (size_t i = 0; word && i < ARRAY_SIZE(kinds); i++)
		if (strcmp(kinds[i].word, word) == 0)
			k = &kinds[i];
	e = fields_check(s->at, from, k->fields, "an agent");
	if (e == 0)
		e = put(to, "name", json_string(name));
	if (e == 0)
		e = put_plain(from, k->fields, to);
	if (e == 0 && k->fields == short_assistant)
		e = fill_assistant(s, shared, from, to);
	if (e == 0 && k->fields == short_executor)
		e = fill_executor(s, shared, from, to);
	if (e < 0) {
		json_decref(to);
		return NULL;
	}
	return component_new(k->provider, to);
}

static json_t *expand_agents(const struct short_form *s,
			     const struct short_shared *shared,
			     const json_t *agents)
{
	static const struct field named = FIELD("name", FIELD_NAME);
	json_t *list = json_array();
	const char *key;
	json_t *value;
	size_t top = at_down(s->at, "agents");

	if (json_object_size(agents) == 0) {
		(void)at_error(s->at, "write a map: the name of each agent, "
				      "and what it is");
		json_decref(list);
		return NULL;
	}
	json_object_foreach((json_t *)agents, key, value)
	{
		json_t *name = json_string(key);
		size_t up = at_down(s->at, key);
		json_t *one = NULL;

		if (json_object_get(value, "name"))
			(void)at_error(s->at, "an agent of a team has its name "
					      "in front; 'name' is for one "
					      "alone");
		else if (field_check(s->at, name, &named) == 0)
			one = expand_agent(s, shared, value, key);
		json_decref(name);
		if (!one || json_array_append_new(list, one) < 0) {
			json_decref(list);
			return NULL;
		}
		at_up(s->at, up);
	}
	at_up(s->at, top);
	return list;
}

/* stop, budget and the rest of what concerns the run. */
static int put_top(struct at *at, const json_t *from, json_t *to)
{
	static const char *const same[] = { "policy", "max_turns" };

	for (size_t i = 0; i < ARRAY_SIZE(same); i++)
		if (json_object_get(from, same[i]))
			json_object_set(to, same[i],
					json_object_get(from, same[i]));
	if (put_part(at, from, "stop", to, "termination", short_stop) < 0)
		return -EINVAL;
	return put_part(at, from, "budget", to, "budget", short_budget);
}

static json_t *expand_team(const struct short_form *s, const json_t *doc,
			   const struct short_shared *above)
{
	json_t *box = merged_box(above, json_object_get(doc, "box"));
	struct short_shared shared = shared_of(above, doc, NULL, box);
	const char *word = text_of(doc, "team");
	bool is_selector = word && strcmp(word, "selector") == 0;
	const struct provider *p = provider_find(
		is_selector ? "cordon.team.selector"
			    : "cordon.team.round_robin");
	json_t *model = json_object();
	json_t *to = json_object();
	int e = fields_check(s->at, doc, short_team, "a team");

	if (e == 0)
		e = put_part(s->at, doc, "model", model, "model", short_model);
	shared.model = json_object_get(model, "model");
	if (!shared.model)
		shared.model = above->model;
	if (e == 0 && is_selector && !shared.model)
		e = at_error(s->at, "'model' is missing; a selector asks one "
				    "who is next");
	if (e == 0 && is_selector)
		e = put(to, "model", json_deep_copy(shared.model));
	for (const struct field *f = short_team; e == 0 && f->name; f++)
		if (f->kind != FIELD_OWN && f->kind != FIELD_BOX &&
		    strcmp(f->name, "team") != 0 &&
		    strcmp(f->name, "workspace") != 0 &&
		    json_object_get(doc, f->name))
			e = json_object_set(to, f->name,
					    json_object_get(doc, f->name));
	if (e == 0)
		e = put(to, "participants",
			expand_agents(s, &shared,
				      json_object_get(doc, "agents")));
	if (e == 0)
		e = put_top(s->at, doc, to);
	/* What only another kind of team has is refused here. */
	if (e == 0)
		e = fields_check(s->at, to, p->fields, p->name);
	json_decref(model);
	json_decref(box);
	if (e < 0) {
		json_decref(to);
		return NULL;
	}
	return component_new(p->name, to);
}

/* One agent: the fields of the run are taken out first. */
static json_t *expand_single(const struct short_form *s, const json_t *doc)
{
	struct short_shared none = { 0 };
	json_t *own = json_copy((json_t *)doc);
	const char *name = text_of(doc, "name");
	json_t *top = json_object();
	json_t *to = json_object();
	json_t *agent = NULL;
	int e;

	for (const struct field *f = short_top; f->name; f++) {
		if (json_object_get(doc, f->name))
			json_object_set(top, f->name,
					json_object_get(doc, f->name));
		json_object_del(own, f->name);
	}
	e = fields_check(s->at, top, short_top, "an agent");
	if (e == 0)
		agent = expand_agent(s, &none, own, name ? name : "agent");
	if (!agent)
		e = -EINVAL;
	if (e == 0)
		e = put(to, "participants", json_pack("[o]", agent));
	if (e == 0)
		e = put_top(s->at, top, to);
	/* Where nothing is said, it ends with the agent's answer. */
	if (e == 0 && !json_object_get(to, "termination") &&
	    !json_object_get(to, "max_turns"))
		e = put(to, "termination",
			component_new("cordon.termination.source_match",
				      json_pack("{s:[s]}", "sources",
						name ? name : "agent")));
	json_decref(own);
	json_decref(top);
	if (e < 0) {
		json_decref(to);
		return NULL;
	}
	return component_new("cordon.team.round_robin", to);
}

json_t *short_agent(const struct short_form *s, const json_t *from,
		    const struct short_shared *above)
{
	const char *name = text_of(from, "name");

	if (name)
		return expand_agent(s, above, from, name);
	(void)at_error(s->at, "'name' is missing; an agent that is a tool has "
			      "one");
	return NULL;
}

json_t *short_inner_team(const struct short_form *s, const json_t *from,
			 const struct short_shared *above)
{
	if (text_of(from, "name"))
		return expand_team(s, from, above);
	(void)at_error(s->at, "'name' is missing; a team that is a tool has "
			      "one");
	return NULL;
}

json_t *short_expand(const struct short_form *s, const json_t *doc)
{
	const struct short_shared none = { 0 };

	if (json_object_get(doc, "agents") || json_object_get(doc, "team"))
		return expand_team(s, doc, &none);
	return expand_single(s, doc);
}
