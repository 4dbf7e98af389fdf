/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The answer of the assistant. Direct and reflected answers come through the
 * same door, so a schema and a format hold for both.
 */

#include <stdio.h>
#include <string.h>

#include "agent/assistant.h"
#include "base/buf.h"

#define SUMMARY_MAX ((size_t)16 << 20)

/* The JSON of the answer; many models put it between fences or words. */
static json_t *find_object(const char *text)
{
	const char *begin = strchr(text, '{');
	const char *end = strrchr(text, '}');
	json_t *o = json_loads(text, JSON_REJECT_DUPLICATES, NULL);

	if (o || !begin || !end || end < begin)
		return o;
	return json_loadb(begin, (size_t)(end - begin) + 1,
			  JSON_REJECT_DUPLICATES, NULL);
}

static json_t *read_structured(const struct speech *s, const char *text,
			       struct err *err)
{
	json_t *o = find_object(text);

	if (!json_is_object(o))
		(void)err_set(err, EINVAL, "not a JSON object");
	else if (schema_validate(json_object_get(s->a->schema, "schema"), o,
				 err) == 0)
		return o;
	json_decref(o);
	return NULL;
}

/* Tells what was wrong, and what it cost: the answer itself is not kept. */
static void tell_bad(struct speech *s, const struct model_result *r,
		     const struct fault *why)
{
	turn_event(s->w.turn, work_chat(&s->w, "ErrorEvent",
					json_pack("{s:o, s:{s:s}}", "error",
						  fault_json(why), "metadata",
						  "level", "warning"),
					&r->usage));
}

/* Once: the model sees its answer and what is wrong with it. */
static void repair(struct speech *s, const struct model_result *r,
		   const struct err *bad)
{
	s->repair = json_pack(
		"[{s:s, s:s, s:s}, {s:s, s:s, s:o}]", "role", "assistant",
		"source", s->a->agent.name, "content",
		r->content ? r->content : "", "role", "user", "source",
		"validator", "content",
		json_sprintf("The answer does not follow the schema: %s. "
			     "Answer again, with the JSON object only.",
			     bad->text));
	if (s->repair)
		assistant_ask(s);
	else
		work_fail_short(&s->w);
}

static void structured(struct speech *s, const struct model_result *r)
{
	struct err bad = { 0 };
	struct fault why = { 0 };
	json_t *o = read_structured(s, r->content ? r->content : "", &bad);
	const json_t *schema = s->a->schema;

	if (o) {
		work_keep(&s->w, r);
		work_finish(&s->w,
			    work_chat(&s->w, "StructuredMessage",
				      json_pack("{s:o, s:O, s:s?}", "content",
						o, "schema_name",
						json_object_get(schema, "name"),
						"format_string",
						setting_text(s->a->config,
							     "output_format",
							     NULL)),
				      &r->usage));
		return;
	}
	fault_set(&why, FAULT_HANDLER,
		  "the answer does not follow the schema '%.64s': %s",
		  setting_text(schema, "name", ""), bad.text);
	tell_bad(s, r, &why);
	if (s->repair)
		work_fail(&s->w, &why);
	else
		repair(s, r, &bad);
	fault_done(&why);
}

void assistant_answer(struct speech *s, const struct model_result *r)
{
	if (s->a->schema) {
		structured(s, r);
		return;
	}
	work_keep(&s->w, r);
	work_finish(&s->w, work_chat(&s->w, "TextMessage",
				     json_pack("{s:s}", "content",
					       r->content ? r->content : ""),
				     &r->usage));
}

/* --- the summary, where nobody reflects --- */

static char *summary_line(const struct speech *s, const char *format, size_t i)
{
	const json_t *c = json_array_get(s->calls, i);
	const json_t *r = json_array_get(s->results, i);
	json_t *values = json_pack("{s:O, s:O, s:O, s:O}", "tool_name",
				   json_object_get(c, "name"), "arguments",
				   json_object_get(c, "arguments"), "result",
				   json_object_get(r, "content"), "is_error",
				   json_object_get(r, "is_error"));
	char *line = values ? chat_fill(format, values) : NULL;

	json_decref(values);
	return line;
}

static char *summary(const struct speech *s)
{
	const char *format = setting_text(s->a->config, "summary_format",
					  "{result}");
	struct buf b;

	buf_init(&b, SUMMARY_MAX);
	for (size_t i = 0; i < json_array_size(s->calls); i++) {
		_cleanup_free_ char *line = summary_line(s, format, i);

		if (!line || buf_puts(&b, i ? "\n" : "") < 0 ||
		    buf_puts(&b, line) < 0) {
			buf_done(&b);
			return NULL;
		}
	}
	return b.data ? buf_take(&b) : strdup("");
}

void assistant_summary(struct speech *s)
{
	_cleanup_free_ char *text = summary(s);
	json_t *fields = text ? json_pack("{s:s, s:O, s:O}", "content", text,
					  "tool_calls", s->calls, "results",
					  s->results)
			      : NULL;

	work_finish(&s->w,
		    work_chat(&s->w, "ToolCallSummaryMessage", fields, NULL));
}
