/* SPDX-License-Identifier: Apache-2.0 */

/* Tools and toolsets as people write them. */

#include <errno.h>
#include <string.h>

#include "agentcmd/short.h"
#include "base/util.h"

const char *const short_tool_names[] = { "run_python", "run_shell",
					 "run_code",   "read_file",
					 "write_file", "list_files",
					 NULL };

static bool is_in(const char *const *list, const char *name)
{
	for (; list && *list; list++)
		if (strcmp(*list, name) == 0)
			return true;
	return false;
}

/* Settings of the agent's boxes below those of the tool itself. */
static void put_box(json_t *config, const json_t *box, const char *workspace)
{
	json_t *all = json_object();

	if (workspace)
		json_object_set_new(all, "workspace", json_string(workspace));
	if (box)
		json_object_update(all, (json_t *)box);
	if (json_object_get(config, "box"))
		json_object_update(all, json_object_get(config, "box"));
	if (json_object_size(all))
		json_object_set(config, "box", all);
	json_decref(all);
}

json_t *short_tool(const struct short_form *s, const char *name,
		   const json_t *fields, const struct short_shared *of)
{
	json_t *config = fields ? json_deep_copy(fields) : json_object();
	char provider[96] = "cordon.tool.";

	if (strchr("./", *name) && strchr(name, '/')) {
		strcat(provider, "program");
		json_object_set_new(config, "path", json_string(name));
		put_box(config, of->box, NULL);
	} else if (is_in(s->functions, name)) {
		strcat(provider, "function");
		json_object_set_new(config, "name", json_string(name));
	} else if (is_in(short_tool_names, name)) {
		strncat(provider, name,
			sizeof(provider) - strlen(provider) - 1);
		if (strncmp(name, "run_", 4) == 0)
			put_box(config, of->box, of->workspace);
		else if (of->workspace)
			json_object_set_new(config, "workspace",
					    json_string(of->workspace));
	} else {
		json_decref(config);
		(void)at_error(s->at,
			       "no such tool '%.60s'; there are run_python, "
			       "run_shell, run_code, read_file, write_file, "
			       "list_files, and programs by their path "
			       "(./word-count), {agent: {...}} and {team: "
			       "{...}}",
			       name);
		return NULL;
	}
	return short_made(s->at, provider, config);
}

/* {agent: {...}, timeout: 1m}: what it is, beside what any tool has. */
static json_t *inner_item(const struct short_form *s, const json_t *v,
			  const char *what, const struct short_shared *of)
{
	const json_t *from = json_object_get(v, what);
	bool is_agent = strcmp(what, "agent") == 0;
	json_t *config = json_copy((json_t *)v);
	size_t up = at_down(s->at, what);
	json_t *inner = is_agent ? short_agent(s, from, of)
				 : short_inner_team(s, from, of);

	if (!inner) {
		json_decref(config);
		return NULL;
	}
	at_up(s->at, up);
	json_object_set_new(config, what, inner);
	return short_made(s->at,
			  is_agent ? "cordon.tool.agent" : "cordon.tool.team",
			  config);
}

/* "run_python", or {run_python: {...}} */
static json_t *tool_item(const struct short_form *s, const json_t *v,
			 const struct short_shared *of)
{
	void *it = json_object_iter((json_t *)v);
	json_t *ret;
	size_t up;

	if (json_is_string(v))
		return short_tool(s, json_string_value(v), NULL, of);
	if (json_object_get(v, "agent") || json_object_get(v, "team"))
		return inner_item(s, v,
				  json_object_get(v, "agent") ? "agent"
							      : "team",
				  of);
	if (json_object_size(v) != 1 ||
	    !json_is_object(json_object_iter_value(it))) {
		(void)at_error(s->at, "write a tool's name, or {name: {...}} "
				      "with settings of its own");
		return NULL;
	}
	up = at_down(s->at, json_object_iter_key(it));
	ret = short_tool(s, json_object_iter_key(it),
			 json_object_iter_value(it), of);
	if (ret)
		at_up(s->at, up);
	return ret;
}

/* A list, each item by `one`. */
static json_t *each(const struct short_form *s, const json_t *v,
		    const struct short_shared *of,
		    json_t *(*one)(const struct short_form *s, const json_t *v,
				   const struct short_shared *of))
{
	json_t *list = json_array();
	json_t *item;
	size_t i;

	json_array_foreach(v, i, item)
	{
		size_t up = at_down_to(s->at, i);
		json_t *made = one(s, item, of);

		if (!made || json_array_append_new(list, made) < 0) {
			json_decref(list);
			return NULL;
		}
		at_up(s->at, up);
	}
	return list;
}

json_t *short_tools(const struct short_form *s, const json_t *v,
		    const struct short_shared *of)
{
	if (json_is_array(v))
		return each(s, v, of, tool_item);
	(void)at_error(s->at, "write a list of tools");
	return NULL;
}

/* toolsets */

static json_t *sandbox_set(const struct short_form *s, const json_t *fields,
			   const struct short_shared *of)
{
	json_t *config = json_deep_copy(fields);

	put_box(config, of->box, of->workspace);
	return short_made(s->at, "cordon.toolset.sandbox", config);
}

static json_t *static_set(const struct short_form *s, const json_t *fields,
			  const struct short_shared *of)
{
	json_t *config = json_copy((json_t *)fields);
	json_t *tools = json_object_get(fields, "tools");
	size_t up = at_down(s->at, "tools");
	json_t *list = short_tools(s, tools, of);

	if (!list) {
		json_decref(config);
		return NULL;
	}
	at_up(s->at, up);
	json_object_set_new(config, "tools", list);
	return short_made(s->at, "cordon.toolset.static", config);
}

static json_t *mcp_set(const struct short_form *s, const json_t *fields,
		       const struct short_shared *of)
{
	(void)fields;
	(void)of;
	(void)at_error(s->at, "%s", provider_absent("cordon.toolset.mcp"));
	return NULL;
}

static const struct {
	const char *word;
	json_t *(*expand)(const struct short_form *s, const json_t *fields,
			  const struct short_shared *of);
} sets[] = {
	{ "sandbox", sandbox_set },
	{ "static", static_set },
	{ "mcp", mcp_set },
};

/* "sandbox", or {sandbox: {...}} */
static json_t *set_item(const struct short_form *s, const json_t *v,
			const struct short_shared *of)
{
	json_t *one = json_is_string(v)
			      ? json_pack("{s:{}}", json_string_value(v))
			      : json_incref((json_t *)v);
	void *it = json_object_iter(one);
	const json_t *fields = json_object_iter_value(it);
	json_t *ret = NULL;
	bool is_known = false;

	for (size_t i = 0; json_object_size(one) == 1 && i < ARRAY_SIZE(sets) &&
			   json_is_object(fields);
	     i++)
		if (strcmp(json_object_iter_key(it), sets[i].word) == 0) {
			size_t up = at_down(s->at, sets[i].word);

			is_known = true;
			ret = sets[i].expand(s, fields, of);
			if (ret)
				at_up(s->at, up);
		}
	if (!is_known)
		(void)at_error(s->at,
			       "write sandbox, {sandbox: {...}} or {static: "
			       "{tools: [...]}}");
	json_decref(one);
	return ret;
}

json_t *short_toolsets(const struct short_form *s, const json_t *v,
		       const struct short_shared *of)
{
	if (json_is_array(v))
		return each(s, v, of, set_item);
	(void)at_error(s->at, "write a list of toolsets");
	return NULL;
}
