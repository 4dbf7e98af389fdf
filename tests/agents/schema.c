/* SPDX-License-Identifier: Apache-2.0 */

/* Schemas of arguments: what fits, what does not and how that is told. */

#include "tests/tap.h"

#include <errno.h>
#include <time.h>

#include "tool/tool.h"

static json_t *parse(const char *text)
{
	json_error_t why;
	json_t *v = json_loads(text, JSON_DECODE_ANY, &why);

	if (!v) {
		printf("# %s: %s\n", text, why.text);
		tap_bad++;
	}
	return v;
}

/* NULL: it fits; else the words that are told. */
static void check(const char *schema, const char *value, const char *want)
{
	json_t *s = parse(schema);
	json_t *v = parse(value);
	struct err err = { 0 };
	int r = schema_check(s, &err);

	if (r < 0)
		printf("# %s: %s\n", schema, err.text);
	CHECK_INT(r, 0);
	r = schema_validate(s, v, &err);
	if ((r == 0) != !want) {
		printf("# %s with %s: %d %s\n", schema, value, r, err.text);
		tap_bad++;
	}
	if (want)
		CHECK_STR(err.text, want);
	json_decref(s);
	json_decref(v);
}

static void check_refused(const char *schema, const char *part)
{
	json_t *s = parse(schema);
	struct err err = { 0 };

	CHECK_INT(schema_check(s, &err), -EINVAL);
	CHECK_HAS(err.text, part);
	json_decref(s);
}

TEST(types)
{
	check("{\"type\":\"string\"}", "\"x\"", NULL);
	check("{\"type\":\"string\"}", "1", "/: not a string");
	check("{\"type\":\"integer\"}", "1", NULL);
	check("{\"type\":\"integer\"}", "1.0", NULL);
	check("{\"type\":\"integer\"}", "1.5", "/: not an integer");
	check("{\"type\":\"number\"}", "1.5", NULL);
	check("{\"type\":\"number\"}", "true", "/: not a number");
	check("{\"type\":\"object\"}", "[]", "/: not an object");
	check("{\"type\":\"array\"}", "{}", "/: not an array");
	check("{\"type\":\"null\"}", "null", NULL);
	check("{\"type\":[\"string\",\"null\"]}", "null", NULL);
	check("{\"type\":[\"string\",\"null\"]}", "1",
	      "/: of none of the types that are possible");
	check("true", "1", NULL);
	check("false", "1", "/: nothing may be here");
	check("{}", "1", NULL);
}

TEST(objects)
{
	const char *s = "{\"type\":\"object\",\"properties\":{\"files\":{"
			"\"type\":\"array\",\"items\":{\"type\":\"object\","
			"\"properties\":{\"path\":{\"type\":\"string\"}},"
			"\"required\":[\"path\"]}}},\"required\":[\"files\"],"
			"\"additionalProperties\":false}";

	check(s, "{\"files\":[{\"path\":\"a\"}]}", NULL);
	check(s, "{\"files\":[{\"path\":1}]}", "/files/0/path: not a string");
	check(s, "{\"files\":[{}]}", "/files/0: 'path' is missing");
	check(s, "{}", "/: 'files' is missing");
	check(s, "{\"files\":[],\"x\":1}", "/: 'x' is not known");
	check("{\"additionalProperties\":{\"type\":\"integer\"}}",
	      "{\"a\":1,\"b\":\"x\"}", "/b: not an integer");
	check("{\"minProperties\":1}", "{}", "/: fewer than 1 members");
	check("{\"maxProperties\":1}", "{\"a\":1,\"b\":2}",
	      "/: more than 1 members");
}

TEST(values)
{
	check("{\"enum\":[1,\"a\",null]}", "1.0", NULL);
	check("{\"enum\":[1,\"a\"]}", "2", "/: not one of [1, \"a\"]");
	check("{\"const\":{\"a\":[1]}}", "{\"a\":[1.0]}", NULL);
	check("{\"const\":{\"a\":[1]}}", "{\"a\":[2]}", "/: not {\"a\": [1]}");
	check("{\"minimum\":2}", "2", NULL);
	check("{\"minimum\":2}", "1", "/: less than 2");
	check("{\"maximum\":2}", "2.5", "/: more than 2");
	check("{\"exclusiveMinimum\":2}", "2", "/: not more than 2");
	check("{\"exclusiveMaximum\":2}", "2", "/: not less than 2");
	check("{\"minimum\":9007199254740993}", "9007199254740992",
	      "/: less than 9007199254740992");
	check("{\"multipleOf\":0.1}", "0.3", NULL);
	check("{\"multipleOf\":3}", "7", "/: not a multiple of 3");
	check("{\"minLength\":2}", "\"\xc3\xa4\"",
	      "/: shorter than 2 characters");
	check("{\"maxLength\":1}", "\"\xc3\xa4\"", NULL);
	check("{\"minItems\":1}", "[]", "/: fewer than 1 items");
	check("{\"maxItems\":1}", "[1,2]", "/: more than 1 items");
	check("{\"uniqueItems\":true}", "[1,2,1.0]",
	      "/: has the same item twice");
	check("{\"prefixItems\":[{\"type\":\"string\"}],\"items\":false}",
	      "[\"a\"]", NULL);
	check("{\"prefixItems\":[{\"type\":\"string\"}],\"items\":false}",
	      "[\"a\",1]", "/1: nothing may be here");
	check("{\"pattern\":\"^[a-z]+$\"}", "\"abc\"", NULL);
	/* Of the whole text, not of one line in it. */
	check("{\"pattern\":\"^[a-z]+$\"}", "\"abc\\nX\"",
	      "/: does not match ^[a-z]+$");
	check("{\"pattern\":\"^[a-z]+$\"}", "\"abc\\n\"",
	      "/: does not match ^[a-z]+$");
	check("{\"pattern\":\"^[a-z]+$\"}", "\"aBc\"",
	      "/: does not match ^[a-z]+$");
}

TEST(several)
{
	const char *any = "{\"anyOf\":[{\"type\":\"string\"},{\"type\":"
			  "\"integer\"}]}";

	check(any, "1", NULL);
	check(any, "1.5", "/: fits none of the 2 alternatives");
	check("{\"oneOf\":[{\"minimum\":1},{\"minimum\":2}]}", "1", NULL);
	check("{\"oneOf\":[{\"minimum\":1},{\"minimum\":2}]}", "3",
	      "/: fits 2 of the 2 alternatives, not one");
	check("{\"allOf\":[{\"minimum\":1},{\"maximum\":2}]}", "3",
	      "/: more than 2");
	check("{\"not\":{\"type\":\"string\"}}", "\"x\"",
	      "/: is what it must not be");
	check("{\"not\":{\"type\":\"string\"}}", "1", NULL);
}

TEST(references)
{
	const char *tree = "{\"$ref\":\"#/$defs/node\",\"$defs\":{\"node\":{"
			   "\"type\":\"object\",\"properties\":{\"next\":{"
			   "\"$ref\":\"#/$defs/node\"},\"n\":{\"type\":"
			   "\"integer\"}}}}}";

	check(tree, "{\"next\":{\"next\":{\"n\":1}}}", NULL);
	check(tree, "{\"next\":{\"next\":{\"n\":\"x\"}}}",
	      "/next/next/n: not an integer");
	/* A reference to itself ends, and does not fit. */
	check("{\"$ref\":\"#\"}", "1", "/: too deep or too much to look at");
	check("{\"not\":{\"$ref\":\"#\"}}", "1",
	      "/: too deep or too much to look at");
	check_refused("{\"$ref\":\"#/$defs/none\"}", "'#/$defs/none' is not");
	check_refused("{\"$ref\":\"http://x/y\"}", "is not '#'");
	check_refused("{\"$ref\":1}", "is not '#'");
}

TEST(what_is_not_known_is_refused)
{
	check_refused("{\"dependentRequired\":{}}",
		      "the keyword 'dependentRequired' is not known here");
	check_refused("{\"properties\":{\"a\":{\"if\":true}}}",
		      "/properties/a: the keyword 'if'");
	check_refused("{\"patternProperties\":{}}", "patternProperties");
	check_refused("{\"type\":\"strin\"}", "/type: not a type");
	check_refused("{\"type\":[]}", "/type: not a type");
	check_refused("{\"items\":[{}]}", "/items: not a schema");
	check_refused("{\"required\":\"a\"}", "/required: not a list");
	check_refused("{\"minLength\":-1}", "/minLength: not a whole");
	check_refused("{\"multipleOf\":0}", "/multipleOf: not a number above");
	check_refused("{\"pattern\":\"(a)\\\\1\"}", "/pattern: regex");
	check_refused("{\"anyOf\":[]}", "/anyOf: not a list");
	check_refused("[]", "/: not a schema");
	check("{\"x-note\":1,\"title\":\"t\",\"default\":1,\"format\":\"uri\"}",
	      "1", NULL);
}

TEST(deep_schemas_and_wide_ones_end)
{
	char text[8192];
	size_t n = 0;
	json_t *s;

	for (int i = 0; i < 80; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      "{\"items\":");
	n += (size_t)snprintf(text + n, sizeof(text) - n, "{}");
	for (int i = 0; i < 80; i++)
		text[n++] = '}';
	text[n] = '\0';
	s = parse(text);
	CHECK_INT(schema_check(s, NULL), -EINVAL);
	json_decref(s);
	/* Each alternative tries all alternatives again, 30 times deep. */
	s = parse("{\"$defs\":{\"a\":{\"anyOf\":[{\"items\":{\"$ref\":"
		  "\"#/$defs/a\"},\"minItems\":1},{\"items\":{\"$ref\":"
		  "\"#/$defs/a\"},\"minItems\":1},{\"items\":{\"$ref\":"
		  "\"#/$defs/a\"},\"minItems\":1}]}},\"$ref\":\"#/$defs/a\"}");
	{
		json_t *v = json_array();
		clock_t begin = clock();

		for (int i = 0; i < 28; i++)
			v = json_pack("[o]", v);
		CHECK_INT(schema_validate(s, v, NULL), -EINVAL);
		CHECK(clock() - begin < CLOCKS_PER_SEC);
		json_decref(v);
	}
	json_decref(s);
}

TAP_MAIN()
