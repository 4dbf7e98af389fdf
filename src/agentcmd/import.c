/* SPDX-License-Identifier: Apache-2.0 */

/*
 * cordon agent import: a configuration of AutoGen's as one of ours.
 *
 * Nothing is guessed: what has no counterpart is left out and listed, with its
 * path and the reason. Code in a configuration (the source of a function) is
 * never taken over, and a key is only named by its variable.
 */

#include "agentcmd/import.h"

#include <errno.h>
#include <string.h>

#include "agentcmd/config.h"
#include "agentcmd/doc.h"
#include "agentcmd/fields.h"
#include "base/util.h"

struct importer {
	struct at at;
	json_t *left;
	int depth;
};

#define MAX_DEPTH 32

static void left_out(struct importer *m, const char *what, const char *why)
{
	json_array_append_new(m->left, json_pack("{s:s, s:s, s:s}", "path",
						 m->at.len ? m->at.path : "/",
						 "what", what, "why", why));
}

static json_t *import_one(struct importer *m, const json_t *theirs);

static json_t *import_list(struct importer *m, const json_t *list)
{
	json_t *ret = json_array();
	json_t *item;
	size_t i;

	json_array_foreach(list, i, item)
	{
		size_t up = at_down_to(&m->at, i);
		json_t *one = import_one(m, item);

		if (one)
			json_array_append_new(ret, one);
		at_up(&m->at, up);
	}
	return ret;
}

static void add_all(json_t *to, const char *key, json_t *list)
{
	json_t *have = json_object_get(to, key);

	if (have)
		json_array_extend(have, list);
	else if (json_array_size(list))
		json_object_set(to, key, list);
	json_decref(list);
}

/* A bundle of tools, or a list of such bundles; ours are single tools. */
static void import_workbench(struct importer *m, const char *key,
			     const json_t *v, json_t *to)
{
	const char *name = component_provider(v);
	json_t *bundle;
	size_t i;

	json_array_foreach(v, i, bundle)
	{
		size_t up = at_down_to(&m->at, i);

		import_workbench(m, key, bundle, to);
		at_up(&m->at, up);
	}
	if (json_is_array(v))
		return;
	if (name && (strstr(name, ".StaticWorkbench") ||
		     strstr(name, ".StaticStreamWorkbench"))) {
		size_t up = at_down(&m->at, "config");

		(void)at_down(&m->at, "tools");
		add_all(to, key,
			import_list(m, json_object_get(component_config(v),
						       "tools")));
		at_up(&m->at, up);
		return;
	}
	left_out(m, name ? name : "workbench",
		 "tool servers are not in this build");
}

static void import_memory(struct importer *m, const char *key, const json_t *v,
			  json_t *to)
{
	json_t *list = json_array();
	json_t *item;
	size_t i;

	json_array_foreach(v, i, item)
	{
		json_t *text = json_object_get(item, "content");
		size_t up = at_down_to(&m->at, i);

		if (json_is_string(text))
			json_array_append(list, text);
		else
			left_out(m, "memory", "only text is kept");
		at_up(&m->at, up);
	}
	json_object_set_new(to, key, list);
}

/* Without what has no meaning here; NULL: nothing of it has. */
static json_t *import_handoff(struct importer *m, const json_t *item)
{
	static const char *const same[] = { "target", "description", "name",
					    "message" };
	json_t *ret = json_object();
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(same); i++) {
		json_t *v = json_object_get(item, same[i]);

		if (v)
			n++;
		if (json_is_string(v))
			json_object_set(ret, same[i], v);
	}
	if (n < json_object_size(item))
		left_out(m, "handoff", "it has members that are not known");
	if (json_object_get(ret, "target"))
		return ret;
	left_out(m, "handoff", "it has no target");
	json_decref(ret);
	return NULL;
}

/* A name, or a map whose target is one. */
static void import_handoffs(struct importer *m, const char *key,
			    const json_t *v, json_t *to)
{
	json_t *list = json_array();
	json_t *item;
	size_t i;

	json_array_foreach(v, i, item)
	{
		size_t up = at_down_to(&m->at, i);
		json_t *one = json_is_string(item) ? json_incref(item)
						   : import_handoff(m, item);

		if (one)
			json_array_append_new(list, one);
		at_up(&m->at, up);
	}
	if (json_array_size(list))
		json_object_set(to, key, list);
	json_decref(list);
}

static void import_info(struct importer *m, const json_t *v, json_t *to)
{
	static const char *const known[] = { "vision",
					     "function_calling",
					     "json_output",
					     "structured_output",
					     "multiple_system_messages",
					     "family" };
	json_t *info = json_object();
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)v, key, value)
	{
		size_t up = at_down(&m->at, key);
		bool is_known = false;

		for (size_t i = 0; i < ARRAY_SIZE(known); i++)
			is_known = is_known || strcmp(known[i], key) == 0;
		if (is_known)
			json_object_set(info, key, value);
		else
			left_out(m, key, "not known of a model here");
		at_up(&m->at, up);
	}
	json_object_set_new(to, "info", info);
}

static json_t *box_of(json_t *to)
{
	json_t *box = json_object_get(to, "box");

	if (!box) {
		box = json_object();
		json_object_set_new(to, "box", box);
	}
	return box;
}

static void import_field(struct importer *m, const struct import_field *f,
			 const json_t *v, json_t *to)
{
	json_t *one = NULL;

	if (!f->ours && f->how == IMPORT_SAME)
		return;
	switch (f->how) {
	case IMPORT_SAME:
		json_object_set(to, f->ours, (json_t *)v);
		return;
	case IMPORT_COUNT:
		if (json_integer_value(v) > 0)
			json_object_set(to, f->ours, (json_t *)v);
		return;
	case IMPORT_PART:
		one = import_one(m, v);
		if (one)
			json_object_set_new(to, f->ours, one);
		return;
	case IMPORT_PARTS:
		add_all(to, f->ours, import_list(m, v));
		return;
	case IMPORT_KEY:
		left_out(m, "api_key",
			 "a key is never written down; OPENAI_API_KEY is read "
			 "from the environment");
		return;
	case IMPORT_APPROVER:
		json_object_set_new(to, f->ours, json_string("always"));
		left_out(m, f->theirs,
			 "code that approves is not loaded; each run asks a "
			 "person instead (approval: always)");
		return;
	case IMPORT_INFO:
		import_info(m, v, to);
		return;
	case IMPORT_BOX:
		json_object_set(box_of(to), f->ours, (json_t *)v);
		return;
	case IMPORT_EXECUTOR:
		one = import_one(m, v);
		if (json_object_get(component_config(one), "box"))
			json_object_set(to, "box",
					json_object_get(component_config(one),
							"box"));
		json_decref(one);
		return;
	case IMPORT_MEMORY:
		import_memory(m, f->ours, v, to);
		return;
	case IMPORT_WORKBENCH:
		import_workbench(m, f->ours, v, to);
		return;
	case IMPORT_HANDOFFS:
		import_handoffs(m, f->ours, v, to);
		return;
	}
}

static const struct import_field *find(const struct import_field *f,
				       const char *name)
{
	for (; f->theirs; f++)
		if (strcmp(f->theirs, name) == 0)
			return f;
	return NULL;
}

/* Values that say nothing need not be listed. */
static bool is_empty(const json_t *v)
{
	return json_is_null(v) || json_is_false(v) ||
	       (json_is_array(v) && json_array_size(v) == 0) ||
	       (json_is_object(v) && json_object_size(v) == 0);
}

static json_t *import_config(struct importer *m,
			     const struct import_provider *p, const json_t *v)
{
	size_t up = at_down(&m->at, "config");
	json_t *to = json_object();
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)v, key, value)
	{
		const struct import_field *f = find(p->fields, key);
		size_t here = at_down(&m->at, key);

		if (f && !json_is_null(value))
			import_field(m, f, value, to);
		else if (!f && !is_empty(value))
			left_out(m, key, "there is nothing like it here");
		at_up(&m->at, here);
	}
	at_up(&m->at, up);
	return to;
}

static const char *why_not(const char *name)
{
	if (strstr(name, "FunctionTool"))
		return "its Python source is not run outside a box; write it "
		       "as a program with a schema beside it";
	if (strstr(name, "Swarm") || strstr(name, "GraphFlow") ||
	    strstr(name, "MagenticOne"))
		return "this kind of team is not in this build";
	if (strstr(name, "FunctionalTermination"))
		return "a function cannot be carried in a document";
	if (strstr(name, "Mcp"))
		return "tool servers are not in this build";
	return "there is no such provider here";
}

static json_t *import_one(struct importer *m, const json_t *theirs)
{
	static const char *const same[] = { "label", "description" };
	const char *name = component_provider(theirs);
	const struct import_provider *p = name ? import_find(name) : NULL;
	json_t *ret;

	if (!p || m->depth >= MAX_DEPTH) {
		left_out(m, name ? name : "component",
			 name ? why_not(name) : "it names no provider");
		return NULL;
	}
	m->depth++;
	ret = component_new(p->ours,
			    import_config(m, p, component_config(theirs)));
	m->depth--;
	for (size_t i = 0; i < ARRAY_SIZE(same); i++)
		if (json_is_string(json_object_get(theirs, same[i])))
			json_object_set(ret, same[i],
					json_object_get(theirs, same[i]));
	return ret;
}

json_t *config_import(const json_t *theirs, json_t **ret_left, struct err *err)
{
	struct doc none = { .file = (char *)"import" };
	struct importer m = { .at = { .doc = &none, .err = err },
			      .left = json_array() };
	json_t *ret = import_one(&m, theirs);

	*ret_left = m.left;
	if (!ret)
		(void)err_set(err, EINVAL,
			      "'%.80s' is not known; nothing could be carried "
			      "over",
			      component_provider(theirs)
				      ? component_provider(theirs)
				      : "a document without a provider");
	return ret;
}
