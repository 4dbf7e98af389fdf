/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Code blocks in the text of a model: which of them are to be run.
 *
 * Only what is closed, has a language that is enabled, and is text. All others
 * are told under `skipped`, with the reason.
 */

#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/util.h"
#include "box/lang.h"
#include "tool/markdown.h"
#include "tool/tool.h"

#define MAX_BLOCKS 1000
#define MAX_TAG    64

struct finder {
	const json_t *languages;
	const char *untagged;
	json_t *blocks, *skipped;
	bool is_short; /* one was lost for want of memory */
};

static bool is_space(char c)
{
	return c == ' ' || c == '\t';
}

/* "{.python #id}", "{python}", "python{1,3}" and "python" all mean python. */
static void read_tag(const char *s, size_t len, char ret[MAX_TAG])
{
	size_t n = 0;

	ret[0] = '\0';
	if (len > 0 && *s == '{') {
		s++;
		len--;
		while (len > 0 && (is_space(*s) || *s == '.')) {
			s++;
			len--;
		}
	}
	while (n < len && !is_space(s[n]) && s[n] != '{' && s[n] != '}')
		n++;
	/* What is too long is no language. */
	if (n >= MAX_TAG)
		n = MAX_TAG - 1;
	for (size_t i = 0; i < n; i++)
		ret[i] = s[i] >= 'A' && s[i] <= 'Z' ? (char)(s[i] | 0x20)
						    : s[i];
	ret[n] = '\0';
}

static size_t value_len(const char *s, size_t len, char quote)
{
	size_t n = 0;

	while (n < len &&
	       (quote ? s[n] != quote
		      : !is_space(s[n]) && s[n] != '}' && s[n] != ','))
		n++;
	return n;
}

/* filename=NAME, title="NAME": NULL where there is none. */
static json_t *read_filename(const char *s, size_t len)
{
	static const char *const names[] = { "filename=", "title=" };

	for (size_t i = 0; i < len; i++) {
		if (i > 0 && !is_space(s[i - 1]) && s[i - 1] != '{' &&
		    s[i - 1] != ',')
			continue;
		for (size_t k = 0; k < ARRAY_SIZE(names); k++) {
			size_t n = strlen(names[k]);
			char quote = '\0';

			if (len - i < n || strncasecmp(s + i, names[k], n) != 0)
				continue;
			i += n;
			if (i < len && (s[i] == '"' || s[i] == '\''))
				quote = s[i++];
			return json_stringn(s + i,
					    value_len(s + i, len - i, quote));
		}
	}
	return NULL;
}

static bool is_same(const char *a, const char *b)
{
	const struct lang *l = lang_find(a);

	return strcasecmp(a, b) == 0 || (l && l == lang_find(b));
}

static bool is_enabled(const struct finder *f, const char *tag)
{
	size_t i;
	json_t *one;

	if (!f->languages)
		return lang_find(tag) || lang_exact_program(tag);
	json_array_foreach(f->languages, i,
			   one) if (json_is_string(one) &&
				    is_same(tag, json_string_value(
							 one))) return true;
	return false;
}

static void skip(struct finder *f, const struct fence *at, const char *tag,
		 const char *why)
{
	json_t *o = json_pack("{s:s, s:I, s:I, s:s}", "language", tag, "begin",
			      (json_int_t)at->begin, "end", (json_int_t)at->end,
			      "reason", why);

	if (json_array_append_new(f->skipped, o) < 0)
		f->is_short = true;
}

static void take(struct finder *f, const struct fence *at, const char *tag)
{
	json_t *file = read_filename(at->info, at->info_len);
	json_t *o = json_pack("{s:s, s:o, s:I, s:I}", "language", tag, "code",
			      json_stringn(at->code, at->code_len), "begin",
			      (json_int_t)at->begin, "end",
			      (json_int_t)at->end);

	if (file && json_object_set_new(o, "filename", file) < 0)
		f->is_short = true;
	if (json_array_append_new(f->blocks, o) < 0)
		f->is_short = true;
}

static void on_fence(void *arg, const struct fence *at)
{
	struct finder *f = arg;
	char tag[MAX_TAG] = "";

	if (json_array_size(f->blocks) + json_array_size(f->skipped) >=
	    MAX_BLOCKS)
		return;
	if (!utf8_check(at->info, at->info_len) ||
	    memchr(at->info, '\0', at->info_len)) {
		skip(f, at, "", "invalid UTF-8");
		return;
	}
	read_tag(at->info, at->info_len, tag);
	if (!utf8_check(tag, strlen(tag)))
		tag[0] = '\0';
	if (!at->is_closed)
		skip(f, at, tag, "incomplete");
	else if (!utf8_check(at->code, at->code_len))
		skip(f, at, tag, "invalid UTF-8");
	else if (!tag[0] && !f->untagged)
		skip(f, at, tag, "no language");
	else if (!is_enabled(f, tag[0] ? tag : f->untagged))
		skip(f, at, tag, "language not enabled");
	else
		take(f, at, tag[0] ? tag : f->untagged);
}

json_t *fences_find(const char *text, size_t len, const json_t *languages,
		    const char *untagged)
{
	struct finder f = { .languages = languages,
			    .untagged = untagged && *untagged ? untagged : NULL,
			    .blocks = json_array(),
			    .skipped = json_array() };

	if (!f.blocks || !f.skipped ||
	    markdown_fences(text, len, on_fence, &f) < 0 || f.is_short) {
		json_decref(f.blocks);
		json_decref(f.skipped);
		return NULL;
	}
	return json_pack("{s:o, s:o}", "blocks", f.blocks, "skipped",
			 f.skipped);
}
