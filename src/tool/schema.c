/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The part of JSON Schema 2020-12 that the arguments of tools need.
 *
 * Every keyword is a row: how its own value is checked, and how an argument is
 * tested against it. A keyword without a test says nothing about the value. A
 * keyword that is in no row would mean something that nobody looks at, so a
 * schema with one is refused; those that begin with "x-" mean nothing here.
 *
 * Bounded: schemas by their depth, tests by their depth and the number of
 * schemas that were applied, so that neither a reference to itself nor nested
 * alternatives take long.
 */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "tool/schema-words.h"

int schema_wrong(struct check *c, const char *fmt, ...)
{
	char text[240];
	va_list ap;

	if (c->is_quiet)
		return -EINVAL;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return err_set(c->err, EINVAL, "%s: %s", c->len ? c->path : "/", text);
}

size_t schema_into(struct check *c, const char *name)
{
	size_t was = c->len;
	int n = snprintf(c->path + was, sizeof(c->path) - was, "/%.60s", name);

	c->len = MIN(was + (size_t)n, sizeof(c->path) - 1);
	return was;
}

size_t schema_into_item(struct check *c, size_t i)
{
	char name[24];

	(void)snprintf(name, sizeof(name), "%zu", i);
	return schema_into(c, name);
}

void schema_out(struct check *c, size_t was)
{
	c->len = was;
	c->path[was] = '\0';
}

/* references: to the whole, or to a definition of the whole */

static const json_t *resolve(const json_t *root, const char *ref)
{
	static const char *const places[] = { "$defs", "definitions" };

	if (strcmp(ref, "#") == 0)
		return root;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		size_t len = strlen(places[i]);

		if (strncmp(ref, "#/", 2) == 0 &&
		    strncmp(ref + 2, places[i], len) == 0 &&
		    ref[2 + len] == '/')
			return json_object_get(json_object_get(root, places[i]),
					       ref + 3 + len);
	}
	return NULL;
}

static int takes_ref(struct check *c, const json_t *arg)
{
	const char *ref = json_string_value(arg);

	if (ref && resolve(c->root, ref))
		return 0;
	return schema_wrong(
		c, "'%.80s' is not '#' or '#/$defs/NAME' of this schema",
		ref ? ref : "");
}

static int test_ref(struct check *c, const json_t *schema, const json_t *arg,
		    const json_t *v)
{
	const json_t *to = resolve(c->root, json_string_value(arg));

	(void)schema;
	return to ? schema_test(c, to, v)
		  : schema_wrong(c, "a reference leads nowhere");
}

/* several schemas */

static int test_all(struct check *c, const json_t *schema, const json_t *arg,
		    const json_t *v)
{
	int r = 0;

	(void)schema;
	for (size_t i = 0; r == 0 && i < json_array_size(arg); i++)
		r = schema_test(c, json_array_get(arg, i), v);
	return r;
}

static bool fits(struct check *c, const json_t *schema, const json_t *v)
{
	bool was = c->is_quiet;
	int r;

	c->is_quiet = true;
	r = schema_test(c, schema, v);
	c->is_quiet = was;
	return r == 0;
}

static int test_any(struct check *c, const json_t *schema, const json_t *arg,
		    const json_t *v)
{
	(void)schema;
	for (size_t i = 0; i < json_array_size(arg); i++)
		if (fits(c, json_array_get(arg, i), v))
			return 0;
	/* Where there is only one, its own words say more. */
	if (json_array_size(arg) == 1)
		return schema_test(c, json_array_get(arg, 0), v);
	return schema_wrong(c, "fits none of the %zu alternatives",
			    json_array_size(arg));
}

static int test_one(struct check *c, const json_t *schema, const json_t *arg,
		    const json_t *v)
{
	size_t n = 0;

	(void)schema;
	for (size_t i = 0; i < json_array_size(arg); i++)
		n += fits(c, json_array_get(arg, i), v);
	return n == 1 ? 0
		      : schema_wrong(
				c, "fits %zu of the %zu alternatives, not one",
				n, json_array_size(arg));
}

static int test_not(struct check *c, const json_t *schema, const json_t *arg,
		    const json_t *v)
{
	(void)schema;
	if (fits(c, arg, v))
		return schema_wrong(c, "is what it must not be");
	return 0;
}

/* Words that say nothing about a value, and references. */
static const struct keyword plain_words[] = {
	{ "$schema", schema_takes_string, NULL },
	{ "$id", schema_takes_string, NULL },
	{ "$comment", schema_takes_string, NULL },
	{ "title", schema_takes_string, NULL },
	{ "description", schema_takes_string, NULL },
	{ "default", schema_takes_anything, NULL },
	{ "examples", schema_takes_anything, NULL },
	{ "format", schema_takes_string, NULL },
	{ "deprecated", schema_takes_bool, NULL },
	{ "readOnly", schema_takes_bool, NULL },
	{ "writeOnly", schema_takes_bool, NULL },
	{ "$defs", schema_takes_map, NULL },
	{ "definitions", schema_takes_map, NULL },
	{ "$ref", takes_ref, test_ref },
	{ 0 },
};

static const struct keyword several_words[] = {
	{ "allOf", schema_takes_schemas, test_all },
	{ "anyOf", schema_takes_schemas, test_any },
	{ "oneOf", schema_takes_schemas, test_one },
	{ "not", schema_check_at, test_not },
	{ 0 },
};

static const struct keyword *const tables[] = { plain_words, schema_value_words,
						schema_member_words,
						several_words };

static const struct keyword *find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		for (const struct keyword *k = tables[i]; k->name; k++)
			if (strcmp(k->name, name) == 0)
				return k;
	return NULL;
}

static int check_keyword(struct check *c, const char *name, const json_t *arg)
{
	const struct keyword *k = find(name);
	size_t was;
	int r;

	if (strncmp(name, "x-", 2) == 0)
		return 0;
	if (!k)
		return schema_wrong(c, "the keyword '%.60s' is not known here",
				    name);
	was = schema_into(c, name);
	r = k->check(c, arg);
	schema_out(c, was);
	return r;
}

int schema_check_at(struct check *c, const json_t *s)
{
	const char *name;
	json_t *arg;
	int r = 0;

	if (json_is_boolean(s))
		return 0;
	if (!json_is_object(s))
		return schema_wrong(c, "not a schema");
	if (++c->depth > MAX_DEPTH || ++c->steps > MAX_STEPS)
		return schema_wrong(c, "the schema is too deep or too large");
	json_object_foreach((json_t *)s, name, arg)
	{
		r = check_keyword(c, name, arg);
		if (r < 0)
			break;
	}
	c->depth--;
	return r;
}

static int test_table(struct check *c, const struct keyword *k,
		      const json_t *schema, const json_t *v)
{
	for (; k->name; k++) {
		const json_t *arg = k->test ? json_object_get(schema, k->name)
					    : NULL;
		int r = arg ? k->test(c, schema, arg, v) : 0;

		if (r < 0)
			return r;
	}
	return 0;
}

/* In the order of the tables, so that the same is said each time. */
static int test_keywords(struct check *c, const json_t *schema, const json_t *v)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(tables); i++)
		r = test_table(c, tables[i], schema, v);
	return r;
}

int schema_test(struct check *c, const json_t *schema, const json_t *v)
{
	int r;

	if (json_is_true(schema))
		return 0;
	if (!json_is_object(schema))
		return schema_wrong(c, "nothing may be here");
	if (c->depth >= MAX_DEPTH || ++c->steps > MAX_STEPS) {
		c->is_cut = true;
		return schema_wrong(c, TOO_MUCH);
	}
	c->depth++;
	r = test_keywords(c, schema, v);
	c->depth--;
	return r;
}

int schema_check(const json_t *schema, struct err *err)
{
	struct check c = { .root = schema, .err = err };
	int r = schema_check_at(&c, schema);

	return r < 0 && err ? err_wrap(err, "schema") : r;
}

int schema_validate(const json_t *schema, const json_t *value, struct err *err)
{
	struct check c = { .root = schema, .err = err };

	int r = schema_test(&c, schema, value);

	/* Also where only one alternative was not looked at to its end. */
	if (c.is_cut)
		return err_set(err, EINVAL, "/: " TOO_MUCH);
	return r;
}
