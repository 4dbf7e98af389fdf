/* SPDX-License-Identifier: Apache-2.0 */

/* What keywords take as their own value, where several take the same. */

#include "base/util.h"
#include "tool/schema-words.h"

int schema_takes_anything(struct check *c, const json_t *arg)
{
	(void)c;
	(void)arg;
	return 0;
}

int schema_takes_string(struct check *c, const json_t *arg)
{
	return json_is_string(arg) ? 0 : schema_wrong(c, "not a string");
}

int schema_takes_bool(struct check *c, const json_t *arg)
{
	return json_is_boolean(arg) ? 0 : schema_wrong(c, "not true or false");
}

int schema_takes_count(struct check *c, const json_t *arg)
{
	return json_is_integer(arg) && json_integer_value(arg) >= 0
		       ? 0
		       : schema_wrong(c, "not a whole number from 0 on");
}

int schema_takes_list(struct check *c, const json_t *arg)
{
	return json_is_array(arg) && json_array_size(arg) > 0
		       ? 0
		       : schema_wrong(c, "not a list of at least one value");
}

int schema_takes_schemas(struct check *c, const json_t *arg)
{
	int r = schema_takes_list(c, arg);

	for (size_t i = 0; r == 0 && i < json_array_size(arg); i++) {
		size_t was = schema_into_item(c, i);

		r = schema_check_at(c, json_array_get(arg, i));
		schema_out(c, was);
	}
	return r;
}

int schema_takes_map(struct check *c, const json_t *arg)
{
	const char *key;
	json_t *v;
	int r = 0;

	if (!json_is_object(arg))
		return schema_wrong(c, "not a map of schemas");
	json_object_foreach((json_t *)arg, key, v)
	{
		size_t was = schema_into(c, key);

		r = schema_check_at(c, v);
		schema_out(c, was);
		if (r < 0)
			break;
	}
	return r;
}
