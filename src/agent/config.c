/* SPDX-License-Identifier: Apache-2.0 */

/* Settings of components, and saved state: the checks that all have. */

#include <errno.h>
#include <string.h>

#include "agent/parts.h"

static bool is_approval(const json_t *v)
{
	const char *s = json_string_value(v);

	return s && (strcmp(s, "always") == 0 || strcmp(s, "never") == 0 ||
		     strcmp(s, "policy") == 0);
}

static bool is_kind(const json_t *v, enum setting_kind kind)
{
	switch (kind) {
	case SETTING_ANY:
		return true;
	case SETTING_TEXT:
		return json_is_string(v);
	case SETTING_BOOL:
		return json_is_boolean(v);
	case SETTING_COUNT:
		return json_is_integer(v) && json_integer_value(v) >= 0;
	case SETTING_POSITIVE:
		return json_is_integer(v) && json_integer_value(v) > 0;
	case SETTING_MONEY:
		return json_is_number(v) && json_number_value(v) > 0;
	case SETTING_LIST:
		return json_is_array(v);
	case SETTING_OBJECT:
		return json_is_object(v);
	case SETTING_APPROVAL:
		return is_approval(v);
	}
	return false;
}

static const char *const wanted[] = {
	[SETTING_ANY] = "anything",
	[SETTING_TEXT] = "a text",
	[SETTING_BOOL] = "true or false",
	[SETTING_COUNT] = "a whole number from 0",
	[SETTING_POSITIVE] = "a whole number from 1",
	[SETTING_MONEY] = "a number above 0",
	[SETTING_LIST] = "a list",
	[SETTING_OBJECT] = "an object",
	[SETTING_APPROVAL] = "always, policy or never",
};

int settings_check(const json_t *config, const struct setting *table, size_t n,
		   struct err *err)
{
	const char *name;
	json_t *v;

	if (!config || json_is_null(config))
		return 0;
	if (!json_is_object(config))
		return err_set(err, EINVAL, "settings are an object");
	json_object_foreach((json_t *)config, name, v)
	{
		size_t i = 0;

		while (i < n && strcmp(table[i].name, name) != 0)
			i++;
		if (i == n)
			return err_set(err, EINVAL, "/%.80s: no such setting",
				       name);
		if (!json_is_null(v) && !is_kind(v, table[i].kind))
			return err_set(err, EINVAL, "/%s: must be %s", name,
				       wanted[table[i].kind]);
	}
	return 0;
}

const char *setting_text(const json_t *config, const char *name,
			 const char *fallback)
{
	const char *s = json_string_value(json_object_get(config, name));

	return s ? s : fallback;
}

int64_t setting_int(const json_t *config, const char *name, int64_t fallback)
{
	const json_t *v = json_object_get(config, name);

	return json_is_integer(v) ? json_integer_value(v) : fallback;
}

bool setting_bool(const json_t *config, const char *name, bool fallback)
{
	const json_t *v = json_object_get(config, name);

	return json_is_boolean(v) ? json_is_true(v) : fallback;
}

json_t *saved_new(const char *type, int version, const json_t *loaded)
{
	json_t *o = loaded ? json_copy((json_t *)loaded) : json_object();

	if (json_object_set_new(o, "type", json_string(type)) < 0 ||
	    json_object_set_new(o, "version", json_integer(version)) < 0) {
		json_decref(o);
		return NULL;
	}
	return o;
}

int saved_check(const json_t *state, const char *type, int version,
		struct err *err)
{
	const char *have = json_string_value(json_object_get(state, "type"));
	json_int_t v = json_integer_value(json_object_get(state, "version"));

	if (!have || strcmp(have, type) != 0)
		return err_set(err, EINVAL,
			       "this is the state of '%.40s', "
			       "not of '%s'",
			       have ? have : "nothing known", type);
	if (v < 1 || v > version)
		return err_set(err, EINVAL,
			       "state of '%s' has version %lld; this program "
			       "reads 1 to %d",
			       type, (long long)v, version);
	return 0;
}
