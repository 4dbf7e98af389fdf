/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How many tokens a text is, at most about.
 *
 * Vocabularies differ and none is here. Words of a language are a token or two,
 * so four letters count as one, begun anew at each hump of a camelCase name;
 * numbers two digits; what looks like base64 or hexadecimal three of four
 * characters; other scripts by how seldom vocabularies have their characters
 * whole. The answer is for deciding what still fits, and is too high rather
 * than too low.
 */

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "model/provider.h"

enum {
	A_MESSAGE = 6, /* role, name and separators */
	A_TOOL = 10,
	AN_IMAGE = 1700, /* large ones, cut into tiles */
	A_CONVERSATION = 3,
};

/* Of a word, letters and digits: how long it is, and how many tokens. */
static size_t word(const char *p, size_t len, int64_t *sum)
{
	size_t n = 0;
	size_t humps = 1; /* of camelCase */
	size_t digits = 0;

	for (; n < len && isalnum((unsigned char)p[n]); n++) {
		digits += isdigit((unsigned char)p[n]) != 0;
		humps += n && islower((unsigned char)p[n - 1]) &&
			 isupper((unsigned char)p[n]);
	}
	if (digits == n)
		*sum += (int64_t)(n + 1) / 2;
	else if (digits || n < 3 * humps - 2)
		*sum += (int64_t)(3 * n + 3) / 4;
	else
		*sum += (int64_t)(n + 3 * humps) / 4;
	return n;
}

static size_t same(const char *p, size_t len)
{
	size_t n = 1;

	while (n < len && p[n] == p[0])
		n++;
	return n;
}

int64_t tokens_of(const char *text, size_t len)
{
	int64_t sum = 0;
	size_t n;

	for (size_t i = 0; i < len; i += n) {
		unsigned char c = (unsigned char)text[i];

		n = 1;
		if (isalnum(c)) {
			n = word(text + i, len - i, &sum);
		} else if (c == ' ' || c == '\t') {
			/* One goes with the word that follows. */
			n = same(text + i, len - i);
			sum += n > 1;
		} else if (c < 0x80) {
			n = same(text + i, len - i);
			sum += (int64_t)(n + 3) / 4;
		} else if (c >= 0xc0) {
			sum += c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
		}
	}
	return sum;
}

static int64_t of_json(const json_t *v)
{
	char *text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
	int64_t sum = text ? tokens_of(text, strlen(text)) : 0;

	free(text);
	return sum;
}

static int64_t of_string(const json_t *v)
{
	return tokens_of(json_string_value(v), json_string_length(v));
}

static int64_t of_parts(const json_t *parts)
{
	int64_t sum = 0;
	size_t i;
	json_t *part;

	json_array_foreach(parts, i, part)
	{
		const json_t *text = json_object_get(part, "text");

		sum += json_is_string(text) ? of_string(text) : AN_IMAGE;
	}
	return sum;
}

/* An image costs what images cost, not what its base64 would. */
static int64_t of_result(const json_t *result)
{
	json_t *rest = json_copy((json_t *)result);
	int64_t sum = A_MESSAGE;

	sum += AN_IMAGE *
	       (int64_t)json_array_size(json_object_get(result, "images"));
	(void)json_object_del(rest, "images");
	sum += of_json(rest);
	json_decref(rest);
	return sum;
}

static int64_t of_message(const json_t *message)
{
	const json_t *content = json_object_get(message, "content");
	const json_t *calls = json_object_get(message, "calls");
	const json_t *results = json_object_get(message, "results");
	int64_t sum = A_MESSAGE;
	size_t i;
	json_t *r;

	if (json_is_string(content))
		sum += of_string(content);
	else if (json_is_array(content))
		sum += of_parts(content);
	if (json_array_size(calls))
		sum += of_json(calls);
	json_array_foreach(results, i, r) sum += of_result(r);
	return sum;
}

int64_t tokens_of_request(const json_t *messages, const json_t *tools)
{
	int64_t sum = A_CONVERSATION;
	size_t i;
	json_t *v;

	json_array_foreach(messages, i, v) sum += of_message(v);
	json_array_foreach(tools, i, v) sum += A_TOOL + of_json(v);
	return sum;
}
