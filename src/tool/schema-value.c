/* SPDX-License-Identifier: Apache-2.0 */

/* Keywords about one value: its type, a number, a text. */

#include <math.h>
#include <string.h>

#include "base/regex.h"
#include "base/util.h"
#include "tool/schema-words.h"

/* values */

static double number(const json_t *v)
{
	return json_number_value(v);
}

/* <0, 0, >0; whole numbers are compared as such. */
static int compare(const json_t *a, const json_t *b)
{
	if (json_is_integer(a) && json_is_integer(b)) {
		json_int_t x = json_integer_value(a);
		json_int_t y = json_integer_value(b);

		return x < y ? -1 : x > y;
	}
	return number(a) < number(b) ? -1 : number(a) > number(b);
}

static bool is_whole(const json_t *v)
{
	return json_is_integer(v) ||
	       (json_is_real(v) && floor(number(v)) == number(v));
}

static bool is_equal_object(const json_t *a, const json_t *b)
{
	const char *key;
	json_t *v;

	if (json_object_size(a) != json_object_size(b))
		return false;
	json_object_foreach(
		(json_t *)a, key,
		v) if (!schema_is_equal(v,
					json_object_get(b, key))) return false;
	return true;
}

/* 1 and 1.0 are the same number; jansson has them as different. */
bool schema_is_equal(const json_t *a, const json_t *b)
{
	if (json_is_number(a) && json_is_number(b))
		return compare(a, b) == 0;
	if (!a || !b || json_typeof(a) != json_typeof(b))
		return false;
	if (json_is_object(a))
		return is_equal_object(a, b);
	if (!json_is_array(a))
		return json_equal(a, b);
	if (json_array_size(a) != json_array_size(b))
		return false;
	for (size_t i = 0; i < json_array_size(a); i++)
		if (!schema_is_equal(json_array_get(a, i),
				     json_array_get(b, i)))
			return false;
	return true;
}

static size_t count_chars(const json_t *v)
{
	const char *s = json_string_value(v);
	size_t n = 0;

	for (size_t i = 0; i < json_string_length(v); i++)
		n += ((unsigned char)s[i] & 0xc0) != 0x80;
	return n;
}

/* what these keywords take */

static int takes_number(struct check *c, const json_t *arg)
{
	return json_is_number(arg) ? 0 : schema_wrong(c, "not a number");
}

static int takes_positive(struct check *c, const json_t *arg)
{
	return json_is_number(arg) && number(arg) > 0
		       ? 0
		       : schema_wrong(c, "not a number above 0");
}

static int takes_pattern(struct check *c, const json_t *arg)
{
	struct regex *r = NULL;
	struct err err = { 0 };

	if (!json_is_string(arg))
		return schema_wrong(c, "not a string");
	if (regex_new_test(json_string_value(arg), &r, &err) < 0)
		return schema_wrong(c, "%.200s", err.text);
	regex_free(r);
	return 0;
}

/* types */

static const char *const types[] = { "object", "array",   "string", "integer",
				     "number", "boolean", "null" };

static bool has_type(const json_t *v, const char *type)
{
	if (strcmp(type, "integer") == 0)
		return is_whole(v);
	if (strcmp(type, "number") == 0)
		return json_is_number(v);
	if (strcmp(type, "object") == 0)
		return json_is_object(v);
	if (strcmp(type, "array") == 0)
		return json_is_array(v);
	if (strcmp(type, "string") == 0)
		return json_is_string(v);
	if (strcmp(type, "boolean") == 0)
		return json_is_boolean(v);
	return json_is_null(v);
}

static bool is_type(const json_t *arg)
{
	const char *name = json_string_value(arg);

	for (size_t i = 0; name && i < ARRAY_SIZE(types); i++)
		if (strcmp(types[i], name) == 0)
			return true;
	return false;
}

static int takes_types(struct check *c, const json_t *arg)
{
	if (is_type(arg))
		return 0;
	if (!json_is_array(arg) || json_array_size(arg) == 0)
		return schema_wrong(c, "not a type");
	for (size_t i = 0; i < json_array_size(arg); i++)
		if (!is_type(json_array_get(arg, i)))
			return schema_wrong(c, "not a list of types");
	return 0;
}

static int test_type(struct check *c, const json_t *schema, const json_t *arg,
		     const json_t *v)
{
	(void)schema;
	if (json_is_string(arg))
		return has_type(v, json_string_value(arg))
			       ? 0
			       : schema_wrong(c, "not %s %s",
					      strchr("aio",
						     *json_string_value(arg))
						      ? "an"
						      : "a",
					      json_string_value(arg));
	for (size_t i = 0; i < json_array_size(arg); i++)
		if (has_type(v, json_string_value(json_array_get(arg, i))))
			return 0;
	return schema_wrong(c, "of none of the types that are possible");
}

/* any value */

static int test_enum(struct check *c, const json_t *schema, const json_t *arg,
		     const json_t *v)
{
	_cleanup_free_ char *all = NULL;

	(void)schema;
	for (size_t i = 0; i < json_array_size(arg); i++)
		if (schema_is_equal(json_array_get(arg, i), v))
			return 0;
	all = c->is_quiet ? NULL : json_dumps(arg, JSON_ENCODE_ANY);
	return schema_wrong(c, "not one of %.160s",
			    all ? all : "the possible values");
}

static int test_const(struct check *c, const json_t *schema, const json_t *arg,
		      const json_t *v)
{
	_cleanup_free_ char *only = NULL;

	(void)schema;
	if (schema_is_equal(arg, v))
		return 0;
	only = c->is_quiet ? NULL : json_dumps(arg, JSON_ENCODE_ANY);
	return schema_wrong(c, "not %.160s",
			    only ? only : "the one possible value");
}

/* numbers */

#define TEST_NUMBER(name_, bad_, text_)                                        \
	static int name_(struct check *c, const json_t *schema,                \
			 const json_t *arg, const json_t *v)                   \
	{                                                                      \
		int n = json_is_number(v) ? compare(v, arg) : 0;               \
                                                                               \
		(void)schema;                                                  \
		if (json_is_number(v) && (bad_))                               \
			return schema_wrong(c, text_ " %.17g", number(arg));   \
		return 0;                                                      \
	}
TEST_NUMBER(test_minimum, n < 0, "less than")
TEST_NUMBER(test_maximum, n > 0, "more than")
TEST_NUMBER(test_above, n <= 0, "not more than")
TEST_NUMBER(test_below, n >= 0, "not less than")

static int test_multiple(struct check *c, const json_t *schema,
			 const json_t *arg, const json_t *v)
{
	double q;

	(void)schema;
	if (!json_is_number(v))
		return 0;
	if (json_is_integer(v) && json_is_integer(arg))
		return json_integer_value(v) % json_integer_value(arg) == 0
			       ? 0
			       : schema_wrong(c, "not a multiple of %.17g",
					      number(arg));
	q = number(v) / number(arg);
	if (isfinite(q) && fabs(q - round(q)) < 1e-9)
		return 0;
	return schema_wrong(c, "not a multiple of %.17g", number(arg));
}

/* texts */

TEST_SIZE(test_min_length, json_is_string, count_chars, n < want,
	  "shorter than %lld characters")
TEST_SIZE(test_max_length, json_is_string, count_chars, n > want,
	  "longer than %lld characters")

static int test_pattern(struct check *c, const json_t *schema,
			const json_t *arg, const json_t *v)
{
	struct regex *r = NULL;
	int fits;

	(void)schema;
	if (!json_is_string(v))
		return 0;
	c->steps += PATTERN;
	if (regex_new_test(json_string_value(arg), &r, NULL) < 0)
		return schema_wrong(c, "the pattern cannot be used");
	fits = regex_test(r, json_string_value(v), json_string_length(v));
	regex_free(r);
	c->is_cut |= fits < 0;
	if (fits < 0)
		return schema_wrong(c, "too much to match %.160s",
				    json_string_value(arg));
	return fits ? 0
		    : schema_wrong(c, "does not match %.160s",
				   json_string_value(arg));
}

const struct keyword schema_value_words[] = {
	{ "type", takes_types, test_type },
	{ "enum", schema_takes_list, test_enum },
	{ "const", schema_takes_anything, test_const },
	{ "minimum", takes_number, test_minimum },
	{ "maximum", takes_number, test_maximum },
	{ "exclusiveMinimum", takes_number, test_above },
	{ "exclusiveMaximum", takes_number, test_below },
	{ "multipleOf", takes_positive, test_multiple },
	{ "minLength", schema_takes_count, test_min_length },
	{ "maxLength", schema_takes_count, test_max_length },
	{ "pattern", takes_pattern, test_pattern },
	{ 0 },
};
