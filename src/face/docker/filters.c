/* SPDX-License-Identifier: Apache-2.0 */

/* Filters, in the shape of the docker command and in that of docker-py. */

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/num.h"
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

/* ["a"] or {"a":true} */
static json_t *values_of(json_t *v)
{
	json_t *list = json_array();
	const char *key;
	json_t *item;
	size_t i;

	if (json_is_array(v)) {
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

static bool need_values(struct http_request *r, json_t *f, const char *name,
			bool (*is_good)(const char *value))
{
	json_t *v;
	size_t i;

	json_array_foreach(json_object_get(f, name), i, v)
	{
		if (is_good(json_string_value(v)))
			continue;
		answer_fail(r, 400, "invalid filter '%s=%.60s'", name,
			    json_string_value(v));
		json_decref(f);
		return false;
	}
	return true;
}

static bool is_bool(const char *value)
{
	static const char *const known[] = {
		"0", "1", "f", "t", "false", "true"
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (strcasecmp(known[i], value) == 0)
			return true;
	return false;
}

static bool is_number(const char *value)
{
	uint64_t n;

	return num_parse(value, INT32_MAX, &n) == 0;
}

bool filter_is_true(const char *value)
{
	return *value && strchr("1tT", *value);
}

/* The moment that is meant; -EINVAL. */
static int until_parse(const char *value, int64_t *ret_ns)
{
	uint64_t us;

	if (*value && value[strspn(value, "0123456789.")] &&
	    num_parse_duration(value, &us) == 0) {
		*ret_ns = ((int64_t)time(NULL) - (int64_t)(us / 1000000)) *
			  1000000000;
		return 0;
	}
	return *value ? time_parse(value, ret_ns) : -EINVAL;
}

static bool is_until(const char *value)
{
	int64_t ns;

	return until_parse(value, &ns) == 0;
}

bool until_fits(const char *value, int64_t created_ns)
{
	int64_t ns;

	return until_parse(value, &ns) == 0 && created_ns < ns;
}

bool need_untils(struct http_request *r, json_t *f, const char *name)
{
	return need_values(r, f, name, is_until);
}

bool need_bools(struct http_request *r, json_t *f, const char *name)
{
	return need_values(r, f, name, is_bool);
}

bool need_numbers(struct http_request *r, json_t *f, const char *name)
{
	return need_values(r, f, name, is_number);
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
	const char *eq = strchrnul(want, '=');
	_cleanup_free_ char *name = strndup(want, (size_t)(eq - want));
	const char *value;

	if (!name)
		abort();
	if (!json_object_get(labels, name))
		return false;
	value = json_string_value(json_object_get(labels, name));
	return !*eq || (value && strcmp(value, eq + 1) == 0);
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
