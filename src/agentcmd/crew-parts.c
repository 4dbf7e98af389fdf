/* SPDX-License-Identifier: Apache-2.0 */

/* Pure: components of a configuration in the form that each library takes. */

#include <stdio.h>
#include <string.h>

#include "agentcmd/crew.h"
#include "agentcmd/fields.h"
#include "base/num.h"
#include "base/util.h"

char *crew_path(const struct config *c, const char *path)
{
	char *ret = NULL;

	if (*path == '/' || strcmp(c->dir, ".") == 0)
		return strdup(path);
	return asprintf(&ret, "%s/%s", c->dir, path) < 0 ? NULL : ret;
}

char *crew_policy(const struct config *c, const json_t *component)
{
	const char *name = json_string_value(
		json_object_get(component_config(component), "policy"));
	const char *dot = name ? strrchr(name, '.') : NULL;

	if (!name)
		return NULL;
	if (strchr(name, '/') ||
	    (dot && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0)))
		return crew_path(c, name);
	return strdup(name);
}

/* One text is a list of one. */
static void make_list(json_t *config, const char *name)
{
	json_t *v = json_object_get(config, name);

	if (json_is_string(v))
		json_object_set_new(config, name, json_pack("[O]", v));
}

json_t *crew_stop(const json_t *component)
{
	const json_t *config = component_config(component);
	const json_t *parts = json_object_get(config, "conditions");
	json_t *list;
	json_t *item;
	size_t i;

	if (!parts) {
		json_t *args = config ? json_deep_copy(config) : json_object();

		make_list(args, "sources");
		return json_pack("{s:o}", component_kind(component), args);
	}
	list = json_array();
	json_array_foreach(parts, i, item)
	{
		json_array_append_new(list, crew_stop(item));
	}
	return json_pack("{s:o}", component_kind(component), list);
}

/* {"kind":"last","n":20} */
static json_t *with_kind(const json_t *component)
{
	json_t *ret = json_pack("{s:s}", "kind", component_kind(component));

	json_object_update(ret, component_config(component));
	return ret;
}

json_t *crew_agent(const json_t *component)
{
	static const char *const parts[] = { "name",     "model",    "tools",
					     "toolsets", "executor", "policy" };
	static const char *const lists[] = { "handoffs", "languages",
					     "sources" };
	json_t *ret = json_copy(component_config(component));
	json_t *context = json_object_get(ret, "context");
	json_t *memory = json_object_get(ret, "memory");
	json_t *item;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(parts); i++)
		json_object_del(ret, parts[i]);
	for (i = 0; i < ARRAY_SIZE(lists); i++)
		make_list(ret, lists[i]);
	if (context)
		json_object_set_new(ret, "context", with_kind(context));
	if (memory) {
		json_t *list = json_array();

		json_array_foreach(memory, i, item)
		{
			json_t *one = with_kind(item);

			make_list(one, "entries");
			json_array_append_new(list, one);
		}
		json_object_set_new(ret, "memory", list);
	}
	return ret;
}

int64_t crew_time(const json_t *v)
{
	uint64_t us = 0;

	if (json_is_number(v))
		return (int64_t)(json_number_value(v) * 1e6);
	if (json_is_string(v))
		(void)num_parse_duration(json_string_value(v), &us);
	return (int64_t)us;
}

/* Prices are those of the model that the file names. */
static void rename_model(json_t *config, const char *name)
{
	const char *was = json_string_value(json_object_get(config, "model"));
	json_t *info = json_object_get(config, "info");

	if (was && strcmp(was, name) != 0) {
		json_object_del(info, "price_prompt");
		json_object_del(info, "price_completion");
	}
	json_object_set_new(config, "model", json_string(name));
}

json_t *crew_model(const struct config *c, const json_t *component,
		   const char *name)
{
	static const char *const times[] = { "timeout", "connect_timeout",
					     "first_byte_timeout",
					     "idle_timeout", "retry_delay" };
	json_t *ret = json_deep_copy(component_config(component));
	const char *file = json_string_value(
		json_object_get(json_object_get(ret, "api_key"), "file"));

	for (size_t i = 0; i < ARRAY_SIZE(times); i++)
		if (json_is_string(json_object_get(ret, times[i])))
			json_object_set_new(
				ret, times[i],
				json_real((double)crew_time(json_object_get(
						  ret, times[i])) /
					  1e6));
	if (file) {
		_cleanup_free_ char *path = crew_path(c, file);

		json_object_set_new(json_object_get(ret, "api_key"), "file",
				    json_string(path ? path : file));
	}
	if (name)
		rename_model(ret, name);
	return ret;
}

/* "./data:/workspace/data:ro", with its first part where it belongs. */
static json_t *volume(const struct config *c, const json_t *v)
{
	const char *text = json_string_value(v);
	_cleanup_free_ char *path = NULL;

	if (!text || *text != '.')
		return json_incref((json_t *)v);
	path = crew_path(c, text);
	return path ? json_string(path) : json_incref((json_t *)v);
}

/* As a text, as a list of texts, or as a map of docker-py's. */
static json_t *volumes(const struct config *c, const json_t *v)
{
	json_t *ret;
	const char *key;
	json_t *item;
	size_t i;

	if (json_is_array(v)) {
		ret = json_array();
		json_array_foreach(v, i, item)
		{
			json_array_append_new(ret, volume(c, item));
		}
		return ret;
	}
	if (!json_is_object(v))
		return volume(c, v);
	ret = json_object();
	json_object_foreach((json_t *)v, key, item)
	{
		_cleanup_free_ char *path = *key == '.' ? crew_path(c, key)
							: strdup(key);

		json_object_set(ret, path ? path : key, item);
	}
	return ret;
}

json_t *crew_box(const struct config *c, const json_t *settings)
{
	static const char *const binds[] = { "volume", "volumes" };
	json_t *ret = settings ? json_deep_copy(settings) : json_object();
	const char *said = json_string_value(json_object_get(ret, "workspace"));

	for (size_t i = 0; i < ARRAY_SIZE(binds); i++) {
		json_t *v = json_object_get(ret, binds[i]);

		if (v)
			json_object_set_new(ret, binds[i], volumes(c, v));
	}
	if (said && *said != '/') {
		_cleanup_free_ char *path = crew_path(c, said);

		json_object_set_new(ret, "workspace",
				    json_string(path ? path : said));
	}
	return ret;
}
