/* SPDX-License-Identifier: Apache-2.0 */
#include "agentcmd/config.h"

#include <errno.h>
#include <string.h>

#include "agentcmd/doc.h"
#include "agentcmd/fields.h"
#include "agentcmd/short.h"
#include "base/util.h"

static const char *type_of(const json_t *c)
{
	const struct provider *p = provider_find(component_provider(c));

	return p ? p->type : "";
}

static bool is_team(const json_t *c)
{
	return strcmp(type_of(c), "team") == 0;
}

/* The agent or the team that a tool is; NULL: it is another tool. */
static json_t *inner_of(const json_t *tool)
{
	const json_t *config = component_config(tool);
	json_t *agent = json_object_get(config, "agent");

	return agent ? agent : json_object_get(config, "team");
}

static int each_inner(const json_t *tools,
		      int (*visit)(void *arg, const json_t *agent), void *arg)
{
	json_t *tool;
	size_t i;
	int r = 0;

	for (i = 0; r == 0 && (tool = json_array_get(tools, i)); i++)
		if (json_is_object(tool) && inner_of(tool))
			r = config_each_agent(inner_of(tool), visit, arg);
	return r;
}

static int one_agent(const json_t *agent,
		     int (*visit)(void *arg, const json_t *agent), void *arg)
{
	const json_t *config = component_config(agent);
	json_t *set;
	size_t i;
	int r = visit(arg, agent);

	if (r == 0)
		r = each_inner(json_object_get(config, "tools"), visit, arg);
	for (i = 0;
	     r == 0 &&
	     (set = json_array_get(json_object_get(config, "toolsets"), i));
	     i++)
		r = each_inner(json_object_get(component_config(set), "tools"),
			       visit, arg);
	return r;
}

int config_each_agent(const json_t *component,
		      int (*visit)(void *arg, const json_t *agent), void *arg)
{
	json_t *list = json_object_get(component_config(component),
				       "participants");
	json_t *agent;
	size_t i;
	int r = 0;

	if (!is_team(component))
		return one_agent(component, visit, arg);
	for (i = 0; r == 0 && (agent = json_array_get(list, i)); i++)
		r = one_agent(agent, visit, arg);
	return r;
}

struct names {
	struct at *at;
	json_t *seen;
};

static int take_agent(void *arg, const json_t *agent)
{
	struct names *n = arg;
	const char *name = json_string_value(
		json_object_get(component_config(agent), "name"));

	if (json_object_get(n->seen, name))
		return at_error(n->at, "two agents are called '%s'", name);
	return json_object_set_new(n->seen, name, json_true());
}

/*
 * Names are an address, and a policy's rules go by them: two with the same one
 * would answer for each other.
 */
static int check_names(struct at *at, const json_t *component)
{
	struct names n = { .at = at, .seen = json_object() };
	int e = config_each_agent(component, take_agent, &n);

	json_decref(n.seen);
	return e;
}

static const char *tool_name(const json_t *tool)
{
	const json_t *config = component_config(inner_of(tool) ? inner_of(tool)
							       : tool);
	const char *name = json_string_value(
		json_object_get(component_config(tool), "name"));

	if (!name)
		name = json_string_value(json_object_get(config, "name"));
	return name ? name : component_kind(tool);
}

/* Names that are known, in a map; the toolset finds other twins later. */
static int take_name(struct at *at, const char *agent, const char *name,
		     json_t *seen)
{
	/* Programs are named by their file. */
	if (strcmp(name, "program") == 0)
		return 0;
	if (json_object_get(seen, name))
		return at_error(at, "'%s' has two tools called '%s'", agent,
				name);
	return json_object_set_new(seen, name, json_true());
}

static const char *new_name(const json_t *set, const char *name)
{
	const char *to = json_string_value(
		json_object_get(json_object_get(component_config(set), "names"),
				name));

	return to ? to : name;
}

static int take_set(struct at *at, const char *agent, const json_t *set,
		    json_t *seen)
{
	static const char *const boxed[] = { "run_python", "run_shell",
					     "run_code" };
	json_t *list = json_object_get(component_config(set), "tools");
	bool is_sandbox = strcmp(component_kind(set), "sandbox") == 0;
	json_t *item;
	size_t i;
	int e = 0;

	for (i = 0; is_sandbox && !list && e == 0 && i < ARRAY_SIZE(boxed); i++)
		e = take_name(at, agent, new_name(set, boxed[i]), seen);
	for (i = 0; e == 0 && (item = json_array_get(list, i)); i++)
		e = take_name(at, agent,
			      new_name(set, json_is_string(item)
						    ? json_string_value(item)
						    : tool_name(item)),
			      seen);
	return e;
}

static int check_tools_of(struct at *at, const json_t *agent)
{
	const json_t *config = component_config(agent);
	const char *name = json_string_value(json_object_get(config, "name"));
	json_t *seen = json_object();
	json_t *item;
	size_t i;
	int e = 0;

	json_array_foreach(json_object_get(config, "tools"), i, item)
	{
		if (e == 0)
			e = take_name(at, name, tool_name(item), seen);
	}
	json_array_foreach(json_object_get(config, "toolsets"), i, item)
	{
		if (e == 0)
			e = take_set(at, name, item, seen);
	}
	json_decref(seen);
	return e;
}

static int check_inner(struct at *at, const json_t *inner);

static int check_agent(void *arg, const json_t *agent)
{
	const json_t *config = component_config(agent);
	json_t *tools = json_object_get(config, "tools");
	struct at *at = arg;
	json_t *tool;
	size_t i;

	if (check_tools_of(at, agent) < 0)
		return -EINVAL;
	for (i = 0; (tool = json_array_get(tools, i)); i++)
		if (inner_of(tool) && check_inner(at, inner_of(tool)) < 0)
			return -EINVAL;
	return 0;
}

/* What a team must have, wherever it is. */
static int check_team(struct at *at, const json_t *team)
{
	json_t *config = component_config(team);

	if (json_array_size(json_object_get(config, "participants")) == 0)
		return at_error(at, "a team needs at least one participant");
	if (!json_object_get(config, "termination") &&
	    !json_object_get(config, "max_turns"))
		return at_error(at, "this would never end; say 'stop' (or "
				    "'termination') or 'max_turns'");
	return 0;
}

/* There is one policy for all, which whoever is outermost may name. */
static int check_inner(struct at *at, const json_t *inner)
{
	if (json_object_get(component_config(inner), "policy"))
		return at_error(at,
				"an agent or a team that is a tool names no "
				"policy; the one for all holds for it");
	return is_team(inner) ? check_team(at, inner) : 0;
}

static int check_all(struct at *at, const json_t *component)
{
	if (is_team(component) && check_team(at, component) < 0)
		return -EINVAL;
	if (check_names(at, component) < 0)
		return -EINVAL;
	return config_each_agent(component, check_agent, at);
}

static json_t *expand(struct at *at, const struct doc *d,
		      const char *const *functions)
{
	struct short_form s = { .at = at, .functions = functions };
	json_t *ret;

	if (!json_object_get(d->root, "provider"))
		return short_expand(&s, d->root);
	if (component_check(at, d->root, NULL) < 0)
		return NULL;
	ret = json_incref(d->root);
	if (!is_team(ret) && strcmp(type_of(ret), "agent") != 0) {
		(void)at_error(at,
			       "a %s by itself cannot run; write a team "
			       "or an agent",
			       type_of(ret));
		json_decref(ret);
		return NULL;
	}
	return ret;
}

/* The directory of a file's name: "." for one that has none. */
static char *dir_of(const char *file)
{
	const char *slash = strrchr(file, '/');

	if (!slash)
		return strdup(".");
	return slash == file ? strdup("/")
			     : strndup(file, (size_t)(slash - file));
}

static int take(const struct doc *d, const char *const *functions,
		struct config *ret, struct err *err)
{
	struct at at = { .doc = d, .err = err };

	ret->component = expand(&at, d, functions);
	if (!ret->component) {
		if (!err->code)
			(void)err_set(err, ENOMEM, "out of memory");
		return -err->code;
	}
	at_up(&at, 0);
	if (check_all(&at, ret->component) < 0)
		return -EINVAL;
	if (prices_check(&at, ret->component) < 0)
		return -EINVAL;
	ret->dir = dir_of(d->file);
	ret->file = strdup(d->file);
	if (!ret->dir || !ret->file)
		return err_set(err, ENOMEM, "out of memory");
	return 0;
}

static int finish(struct doc *d, int e, const char *const *functions,
		  struct config *ret, struct err *err)
{
	memset(ret, 0, sizeof(*ret));
	if (e == 0)
		e = take(d, functions, ret, err);
	if (e < 0)
		config_done(ret);
	doc_done(d);
	return e;
}

int config_read(const char *file, const char *const *functions,
		struct config *ret, struct err *err)
{
	struct doc d;
	int e = doc_read(file, &d, err);

	return finish(&d, e, functions, ret, err);
}

int config_parse(const char *file, const char *text, size_t len,
		 const char *const *functions, struct config *ret,
		 struct err *err)
{
	struct doc d;
	int e = doc_parse(file, text, len, &d, err);

	return finish(&d, e, functions, ret, err);
}

void config_done(struct config *c)
{
	json_decref(c->component);
	free(c->dir);
	free(c->file);
	memset(c, 0, sizeof(*c));
}

char *config_dump(const struct config *c)
{
	return json_dumps(c->component, JSON_INDENT(2));
}
