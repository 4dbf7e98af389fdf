/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Text of a model: whatever it is, blocks come in order, lie in the text, do
 * not overlap, begin with a fence and end with one.
 */

#include <jansson.h>
#include <string.h>

#include "base/json.h"
#include "fuzz.h"
#include "tool/tool.h"

static size_t number(const json_t *o, const char *name)
{
	return (size_t)json_integer_value(json_object_get(o, name));
}

static void check(const char *text, size_t size, const json_t *list)
{
	size_t before = 0;
	size_t i;
	json_t *o;

	json_array_foreach(list, i, o)
	{
		size_t begin = number(o, "begin");
		size_t end = number(o, "end");

		MUST(begin >= before && end >= begin && end <= size);
		MUST(memchr(text + begin, '`', end - begin) ||
		     memchr(text + begin, '~', end - begin));
		MUST(json_is_string(json_object_get(o, "language")));
		before = end;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	json_t *found = fences_find(text, size, NULL, size & 1 ? "sh" : NULL);
	const json_t *blocks = json_object_get(found, "blocks");
	size_t i;
	json_t *o;

	MUST(found != NULL);
	check(text, size, blocks);
	check(text, size, json_object_get(found, "skipped"));
	json_array_foreach(blocks, i, o)
	{
		const json_t *code = json_object_get(o, "code");

		MUST(json_is_string(code));
		MUST(utf8_check(json_string_value(code),
				json_string_length(code)));
		/* A tab may have become spaces, and no more. */
		MUST(json_string_length(code) <= 4 * size + 4);
	}
	json_decref(found);
	return 0;
}
