/* SPDX-License-Identifier: Apache-2.0 */

/* Keywords about lists and objects. */

#include <string.h>

#include "base/util.h"
#include "tool/schema-words.h"

static int takes_names(struct check *c, const json_t *arg)
{
	if (!json_is_array(arg))
		return schema_wrong(c, "not a list of names");
	for (size_t i = 0; i < json_array_size(arg); i++)
		if (!json_is_string(json_array_get(arg, i)))
			return schema_wrong(c, "not a list of names");
	return 0;
}

TEST_SIZE(test_min_items, json_is_array, json_array_size, n < want,
	  "fewer than %lld items")
TEST_SIZE(test_max_items, json_is_array, json_array_size, n > want,
	  "more than %lld items")
TEST_SIZE(test_min_members, json_is_object, json_object_size, n < want,
	  "fewer than %lld members")
TEST_SIZE(test_max_members, json_is_object, json_object_size, n > want,
	  "more than %lld members")

/* lists */

static int test_prefix(struct check *c, const json_t *schema, const json_t *arg,
		       const json_t *v)
{
	int r = 0;

	(void)schema;
	for (size_t i = 0; r == 0 && json_is_array(v) &&
			   i < json_array_size(v) && i < json_array_size(arg);
	     i++) {
		size_t was = schema_into_item(c, i);

		r = schema_test(c, json_array_get(arg, i),
				json_array_get(v, i));
		schema_out(c, was);
	}
	return r;
}

static int test_items(struct check *c, const json_t *schema, const json_t *arg,
		      const json_t *v)
{
	size_t i = json_array_size(json_object_get(schema, "prefixItems"));
	int r = 0;

	for (; r == 0 && json_is_array(v) && i < json_array_size(v); i++) {
		size_t was = schema_into_item(c, i);

		r = schema_test(c, arg, json_array_get(v, i));
		schema_out(c, was);
	}
	return r;
}

static int test_unique(struct check *c, const json_t *schema, const json_t *arg,
		       const json_t *v)
{
	size_t n = json_array_size(v); /* 0 if it is none */

	(void)schema;
	if (!json_is_true(arg))
		return 0;
	for (size_t i = 0; i < n; i++)
		for (size_t k = i + 1; k < n; k++) {
			if (++c->steps > MAX_STEPS) {
				c->is_cut = true;
				return schema_wrong(c, TOO_MUCH);
			}
			if (schema_is_equal(json_array_get(v, i),
					    json_array_get(v, k)))
				return schema_wrong(c,
						    "has the same item twice");
		}
	return 0;
}

/* objects */

static int test_properties(struct check *c, const json_t *schema,
			   const json_t *arg, const json_t *v)
{
	const char *key;
	json_t *one;

	(void)schema;
	if (!json_is_object(v))
		return 0;
	json_object_foreach((json_t *)arg, key, one)
	{
		const json_t *have = json_object_get(v, key);
		size_t was;
		int r;

		if (!have)
			continue;
		was = schema_into(c, key);
		r = schema_test(c, one, have);
		schema_out(c, was);
		if (r < 0)
			return r;
	}
	return 0;
}

static int test_required(struct check *c, const json_t *schema,
			 const json_t *arg, const json_t *v)
{
	(void)schema;
	for (size_t i = 0; json_is_object(v) && i < json_array_size(arg); i++) {
		const char *name = json_string_value(json_array_get(arg, i));

		if (!json_object_get(v, name))
			return schema_wrong(c, "'%.80s' is missing", name);
	}
	return 0;
}

static int test_additional(struct check *c, const json_t *schema,
			   const json_t *arg, const json_t *v)
{
	const json_t *known = json_object_get(schema, "properties");
	const char *key;
	json_t *one;

	if (!json_is_object(v))
		return 0;
	json_object_foreach((json_t *)v, key, one)
	{
		size_t was;
		int r;

		if (json_object_get(known, key))
			continue;
		if (json_is_false(arg))
			return schema_wrong(c, "'%.80s' is not known", key);
		was = schema_into(c, key);
		r = schema_test(c, arg, one);
		schema_out(c, was);
		if (r < 0)
			return r;
	}
	return 0;
}

const struct keyword schema_member_words[] = {
	{ "minItems", schema_takes_count, test_min_items },
	{ "maxItems", schema_takes_count, test_max_items },
	{ "uniqueItems", schema_takes_bool, test_unique },
	{ "prefixItems", schema_takes_schemas, test_prefix },
	{ "items", schema_check_at, test_items },
	{ "minProperties", schema_takes_count, test_min_members },
	{ "maxProperties", schema_takes_count, test_max_members },
	{ "required", takes_names, test_required },
	{ "properties", schema_takes_map, test_properties },
	{ "additionalProperties", schema_check_at, test_additional },
	{ 0 },
};
