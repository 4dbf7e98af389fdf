/* SPDX-License-Identifier: Apache-2.0 */
#include "model/recording.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/sha256.h"
#include "base/util.h"

enum { LAST_SHOWN = 160 };

static const char *const finishes[] = {
	[FINISH_STOP] = "stop",
	[FINISH_LENGTH] = "length",
	[FINISH_CALLS] = "function_calls",
	[FINISH_FILTER] = "content_filter",
	[FINISH_UNKNOWN] = "unknown",
};

/* --- requests --- */

int recording_hash(const struct model_request *q, char ret[HASH_SIZE])
{
	json_t *o = json_pack("{s:O, s:O*, s:s*, s:O*, s:O*}", "messages",
			      q->messages, "tools", q->tools, "tool_choice",
			      q->tool_choice, "output_schema", q->output_schema,
			      "extra", q->extra);
	_cleanup_free_ char *text = json_dumps(o,
					       JSON_COMPACT | JSON_SORT_KEYS);
	unsigned char sum[SHA256_SIZE];
	struct sha256 s;

	json_decref(o);
	if (!text)
		return -ENOMEM;
	sha256_init(&s);
	sha256_add(&s, text, strlen(text));
	sha256_end(&s, sum);
	hex_format(sum, sizeof(sum), ret);
	return 0;
}

/* What a reader would look for: its text, or the first result in it. */
static const char *text_of(const json_t *message)
{
	const json_t *content = json_object_get(message, "content");
	const json_t *results = json_object_get(message, "results");

	if (json_is_array(content))
		content = json_object_get(json_array_get(content, 0), "text");
	if (results)
		content = json_object_get(json_array_get(results, 0),
					  "content");
	return json_string_value(content);
}

/* At most so many bytes, and no character cut in two. */
static int cut(const char *text, size_t most)
{
	size_t len = strnlen(text, most + 1);

	if (len <= most)
		return (int)len;
	len = most;
	while (len && ((unsigned char)text[len] & 0xc0) == 0x80)
		len--;
	return (int)len;
}

json_t *recording_request(const struct model_request *q)
{
	size_t n = json_array_size(q->messages);
	const char *last = n ? text_of(json_array_get(q->messages, n - 1))
			     : NULL;
	char hash[HASH_SIZE];

	if (recording_hash(q, hash) < 0)
		return NULL;
	if (!last)
		last = "";
	return json_pack("{s:s, s:I, s:s#}", "hash", hash, "messages",
			 (json_int_t)n, "last", last, cut(last, LAST_SHOWN));
}

/* --- results --- */

static int set_count(json_t *o, const char *name, int64_t n)
{
	return n ? json_object_set_new(o, name, json_integer(n)) : 0;
}

static json_t *usage_json(const struct model_usage *u)
{
	json_t *o = json_pack("{s:I, s:I}", "prompt_tokens",
			      (json_int_t)u->prompt, "completion_tokens",
			      (json_int_t)u->completion);

	if (set_count(o, "cached_tokens", u->cached) < 0 ||
	    set_count(o, "reasoning_tokens", u->reasoning) < 0 ||
	    (u->cost > 0 &&
	     json_object_set_new(o, "cost", json_real(u->cost)) < 0)) {
		json_decref(o);
		return NULL;
	}
	return o;
}

json_t *recording_result(const struct model_result *r)
{
	return json_pack("{s:s, s:s?, s:O*, s:s*, s:s*, s:s*, s:o}",
			 "finish_reason", finishes[r->finish], "content",
			 r->content, "calls", r->calls, "thought", r->thought,
			 "model", r->model, "raw_id", r->raw_id, "usage",
			 usage_json(&r->usage));
}

static void load_usage(struct model_usage *u, const json_t *o)
{
	u->prompt = json_integer_value(json_object_get(o, "prompt_tokens"));
	u->completion = json_integer_value(
		json_object_get(o, "completion_tokens"));
	u->cached = json_integer_value(json_object_get(o, "cached_tokens"));
	u->reasoning = json_integer_value(
		json_object_get(o, "reasoning_tokens"));
	u->cost = json_number_value(json_object_get(o, "cost"));
}

static int load_call(json_t *list, const json_t *o, size_t place, size_t i,
		     struct err *err)
{
	const char *id = json_string_value(json_object_get(o, "id"));
	const char *name = json_string_value(json_object_get(o, "name"));
	const json_t *given = json_object_get(o, "arguments");
	_cleanup_free_ char *dumped = json_is_object(given)
					      ? json_dumps(given, JSON_COMPACT)
					      : NULL;
	const char *text = json_string_value(given);
	char made[48];

	if (!name)
		return err_set(err, EINVAL, "a call needs a 'name'");
	if (json_is_object(given) && !dumped)
		return err_set(err, ENOMEM, "out of memory");
	(void)snprintf(made, sizeof(made), "call_%zu_%zu", place, i + 1);
	if (json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "id",
						  id ? id : made, "name", name,
						  "arguments",
						  dumped ? dumped
						  : text ? text
							 : "{}")) < 0)
		return err_set(err, ENOMEM, "out of memory");
	return 0;
}

static int load_calls(struct model_result *r, const json_t *calls, size_t place,
		      struct err *err)
{
	json_t *o;
	size_t i;

	if (!json_array_size(calls))
		return 0;
	r->calls = json_array();
	json_array_foreach(calls, i, o)
	{
		int code = load_call(r->calls, o, place, i, err);

		if (code < 0)
			return code;
	}
	return 0;
}

static int load_finish(struct model_result *r, const json_t *v, struct err *err)
{
	const char *name = json_string_value(v);

	r->finish = r->calls ? FINISH_CALLS : FINISH_STOP;
	if (!v)
		return 0;
	for (size_t i = 0; name && i < ARRAY_SIZE(finishes); i++) {
		if (strcmp(finishes[i], name) == 0) {
			r->finish = (enum model_finish)i;
			return 0;
		}
	}
	return err_set(err, EINVAL, "no such finish_reason: '%s'",
		       name ? name : "(no text)");
}

/* Of the chunks: text, or thought. */
static int join(char **to, const json_t *chunks, const char *field)
{
	struct buf b;
	json_t *v;
	size_t i;

	buf_init(&b, RECORDING_MAX);
	json_array_foreach(chunks, i, v)
	{
		const json_t *part = field ? json_object_get(v, field) : v;

		if (json_is_string(part))
			(void)buf_puts(&b, json_string_value(part));
	}
	if (b.error) {
		buf_done(&b);
		return -ENOMEM;
	}
	*to = buf_take(&b);
	return 0;
}

static int copy(char **to, const json_t *o, const char *name)
{
	const char *text = json_string_value(json_object_get(o, name));

	*to = text ? strdup(text) : NULL;
	return text && !*to ? -ENOMEM : 0;
}

static int load_texts(struct model_result *r, const json_t *o,
		      const json_t *chunks)
{
	if (copy(&r->content, o, "content") < 0 ||
	    copy(&r->thought, o, "thought") < 0 ||
	    copy(&r->raw_id, o, "raw_id") < 0 ||
	    copy(&r->model, o, "model") < 0)
		return -ENOMEM;
	if (!r->content && join(&r->content, chunks, NULL) < 0)
		return -ENOMEM;
	return r->thought ? 0 : join(&r->thought, chunks, "thought");
}

int recording_load_result(struct model_result *r, const json_t *o,
			  const json_t *chunks, size_t place, struct err *err)
{
	int code = load_calls(r, json_object_get(o, "calls"), place, err);

	load_usage(&r->usage, json_object_get(o, "usage"));
	if (code == 0)
		code = load_finish(r, json_object_get(o, "finish_reason"), err);
	if (code == 0 && load_texts(r, o, chunks) < 0)
		code = err_set(err, ENOMEM, "out of memory");
	if (code == 0 && !r->content && !r->calls)
		code = err_set(err, EINVAL,
			       "an answer needs 'content', 'calls' or chunks");
	if (code < 0)
		result_done(r);
	return code;
}
