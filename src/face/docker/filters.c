/* SPDX-License-Identifier: Apache-2.0 */

/* Filters, in the shape of the docker command and in that of docker-py. */

#include <stdio.h>
#include <string.h>

#include "face/docker/internal.h"

static bool is_known(const char *known, const char *name)
{
	size_t len = strlen(name);

	for (const char *p = known; (p = strstr(p, name)) != NULL; p += len)
		if ((p == known || p[-1] == ' ') &&
		    (p[len] == ' ' || !p[len]) && len > 0)
			return true;
	return false;
}

/* ["a"], {"a":true} or "a" */
static json_t *values_of(json_t *v)
{
	json_t *list = json_array();
	const char *key;
	json_t *item;
	size_t i;

	if (json_is_string(v)) {
		json_array_append(list, v);
	} else if (json_is_array(v)) {
		json_array_foreach(v, i, item)
		{
			if (!json_is_string(item))
				goto bad;
			json_array_append(list, item);
		}
	} else if (json_is_object(v)) {
		json_object_foreach(v, key, item)
		{
			if (!json_is_boolean(item))
				goto bad;
			if (json_is_true(item))
				json_array_append_new(list, json_string(key));
		}
	} else {
		goto bad;
	}
	return list;
bad:
	json_decref(list);
	return NULL;
}

json_t *filters_parse(const char *text, const char *known, struct err *err)
{
	json_t *doc = body_parse(text, strlen(text), err);
	json_t *out = json_object();
	const char *name;
	json_t *v;

	if (!doc) {
		json_decref(out);
		return NULL;
	}
	json_object_foreach(doc, name, v)
	{
		json_t *list = is_known(known, name) ? values_of(v) : NULL;

		if (!list) {
			(void)err_set(err, EINVAL, "invalid filter '%.60s'",
				      name);
			json_decref(doc);
			json_decref(out);
			return NULL;
		}
		json_object_set_new(out, name, list);
	}
	json_decref(doc);
	return out;
}

json_t *need_filters(struct http_request *r, const char *known)
{
	const char *text = http_query(r, "filters");
	struct err err = { 0 };
	json_t *f = filters_parse(text ? text : "", known, &err);

	if (!f)
		answer_fail(r, 400, "%s", err.text);
	return f;
}

bool filters_has(const json_t *filters, const char *name)
{
	return json_array_size(json_object_get(filters, name)) > 0;
}

bool filters_any(const json_t *filters, const char *name, filter_fn *fn,
		 void *arg)
{
	json_t *list = json_object_get(filters, name);
	json_t *v;
	size_t i;

	if (json_array_size(list) == 0)
		return true;
	json_array_foreach(list, i,
			   v) if (fn(json_string_value(v), arg)) return true;
	return false;
}

/* "name" or "name=value" */
static bool has_label(json_t *labels, const char *want)
{
	const char *eq = strchr(want, '=');
	char name[1024];
	const char *value;

	if ((size_t)snprintf(name, sizeof(name), "%.*s",
			     eq ? (int)(eq - want) : (int)strlen(want),
			     want) >= sizeof(name))
		return false;
	if (!json_object_get(labels, name))
		return false;
	value = json_string_value(json_object_get(labels, name));
	return !eq || (value && strcmp(value, eq + 1) == 0);
}

bool filters_labels(const json_t *filters, json_t *labels)
{
	json_t *v;
	size_t i;

	json_array_foreach(
		json_object_get(filters, "label"), i,
		v) if (!has_label(labels, json_string_value(v))) return false;
	json_array_foreach(json_object_get(filters, "label!"), i,
			   v) if (has_label(labels,
					    json_string_value(v))) return false;
	return true;
}
