/* SPDX-License-Identifier: Apache-2.0 */

/* Results of tools: text for a model, and no more of it than was agreed. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/util.h"
#include "tool/call.h"

void tool_result_done(struct tool_result *r)
{
	json_decref(r->content);
	json_decref(r->detail);
	*r = (struct tool_result){ 0 };
}

/* What is not UTF-8 is replaced: a model reads text. */
static json_t *clean_string(const char *text, size_t len)
{
	struct buf b;
	json_t *s;

	if (utf8_check(text, len))
		return json_stringn(text, len);
	buf_init(&b, 3 * len + 1);
	utf8_repair(&b, text, len);
	s = b.error ? NULL : json_stringn(b.data, b.len);
	buf_done(&b);
	return s;
}

json_t *result_text(const char *text, size_t len)
{
	return json_pack("{s:s, s:o}", "type", "text", "text",
			 clean_string(text, len));
}

void result_set(struct tool_result *r, bool is_error, const char *text)
{
	json_decref(r->content);
	r->content = json_pack("[o]", result_text(text, strlen(text)));
	r->is_error = is_error;
}

static const char *text_of(const json_t *part)
{
	return json_string_value(json_object_get(part, "text"));
}

char *result_all_text(const struct tool_result *r)
{
	struct buf b;
	size_t i;
	json_t *part;

	buf_init(&b, 64U << 20);
	json_array_foreach(r->content, i, part) if (text_of(part))(void)
		buf_puts(&b, text_of(part));
	return b.data ? buf_take(&b) : strdup("");
}

/* Whole characters only. */
static size_t cut_down(const char *s, size_t n)
{
	while (n > 0 && ((unsigned char)s[n] & 0xc0) == 0x80)
		n--;
	return n;
}

/* The first and the last half, and what is missing between them. */
static json_t *cut_text(const char *s, size_t len, size_t max)
{
	size_t head = cut_down(s, max / 2);
	size_t tail = len - max / 2;
	struct buf b;
	json_t *ret;

	while (tail < len && ((unsigned char)s[tail] & 0xc0) == 0x80)
		tail++;
	buf_init(&b, max + 128);
	(void)buf_add(&b, s, head);
	(void)buf_printf(&b, "\n[... %zu bytes left out ...]\n", tail - head);
	(void)buf_add(&b, s + tail, len - tail);
	ret = b.error ? NULL : json_stringn(b.data, b.len);
	buf_done(&b);
	return ret;
}

void result_cut(struct tool_result *r, size_t max)
{
	size_t left = max;
	size_t i;
	json_t *part;

	json_array_foreach(r->content, i, part)
	{
		json_t *text = json_object_get(part, "text");
		size_t len = json_string_length(text);

		if (!json_is_string(text))
			continue;
		if (len > left)
			(void)json_object_set_new(
				part, "text",
				cut_text(json_string_value(text), len, left));
		left -= MIN(left, len);
	}
}
