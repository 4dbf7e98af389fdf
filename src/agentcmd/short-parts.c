/* SPDX-License-Identifier: Apache-2.0 */

/* Models, contexts, conditions and budgets as people write them. */

#include <errno.h>
#include <string.h>

#include "agentcmd/short.h"
#include "base/num.h"
#include "base/util.h"

json_t *short_made(struct at *at, const char *provider, json_t *config)
{
	const struct provider *p = provider_find(provider);

	if (!config || fields_check(at, config, p->fields, p->name) < 0) {
		json_decref(config);
		return NULL;
	}
	return component_new(provider, config);
}

json_t *short_model(struct at *at, const json_t *v)
{
	if (json_is_string(v))
		return component_new("cordon.model.openai",
				     json_pack("{s:O}", "model", v));
	if (!json_is_object(v)) {
		(void)at_error(at, "write a model's name, or a map with "
				   "'model' and more");
		return NULL;
	}
	return short_made(at, "cordon.model.openai", json_deep_copy(v));
}

static double seconds(const json_t *v)
{
	uint64_t us = 0;

	if (json_is_string(v))
		(void)num_parse_duration(json_string_value(v), &us);
	return json_is_number(v) ? json_number_value(v) : (double)us / 1e6;
}

static const struct short_stop_word words[] = {
	{ "text", "text_mention", "text" },
	{ "messages", "max_messages", "n" },
	{ "tokens", "token_usage", "max_total" },
	{ "time", "timeout", "seconds" },
	{ "answer", "source_match", "sources" },
	{ "text_from", "text_message", "source" },
	{ "handoff", "handoff", "target" },
	{ "call", "function_call", "name" },
	{ "function", "function", "name" },
	{ "cost", "cost", "max" },
	{ "loop", "loop", "n" },
	{ "errors", "errors", "n" },
	{ "tool_calls", "tool_calls", "n" },
	{ "cpu", "resource", "cpu" },
	{ "memory", "resource", "memory" },
	{ "stop_message", "stop_message", NULL },
	{ "external", "external", NULL },
};

const struct short_stop_word *short_stop_at(size_t i)
{
	return i < ARRAY_SIZE(words) ? &words[i] : NULL;
}

static json_t *stop_list(struct at *at, const char *kind, const json_t *v);

static json_t *stop_word(struct at *at, const struct short_stop_word *w,
			 const json_t *v)
{
	static const struct field time = FIELD("time", FIELD_TIME);
	char provider[64] = "cordon.termination.";
	json_t *config = NULL;

	strncat(provider, w->kind, sizeof(provider) - strlen(provider) - 1);
	if (json_is_object(v)) {
		config = json_deep_copy(v);
	} else if (strcmp(w->word, "time") == 0) {
		if (field_check(at, v, &time) < 0)
			return NULL;
		config = json_pack("{s:f}", w->field, seconds(v));
	} else if (w->field) {
		config = json_pack("{s:O}", w->field, v);
	} else if (json_is_true(v)) {
		config = json_object();
	} else {
		(void)at_error(at, "write true, or leave it out");
	}
	return short_made(at, provider, config);
}

static json_t *stop_one(struct at *at, const char *key, const json_t *v)
{
	if (strcmp(key, "any") == 0 || strcmp(key, "all") == 0)
		return stop_list(at, key, v);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strcmp(key, words[i].word) == 0)
			return stop_word(at, &words[i], v);
	(void)at_error(
		at, "no such condition; known: any, all, text, "
		    "messages, tokens, time, answer, text_from, "
		    "handoff, call, function, cost, loop, errors, tool_calls, "
		    "cpu, memory, stop_message, external");
	return NULL;
}

static json_t *stop_join(const char *kind, json_t *list)
{
	char provider[64] = "cordon.termination.";

	strncat(provider, kind, sizeof(provider) - strlen(provider) - 1);
	return component_new(provider, json_pack("{s:o}", "conditions", list));
}

static json_t *stop_list(struct at *at, const char *kind, const json_t *v)
{
	json_t *list = json_array();
	json_t *item;
	size_t i;

	if (json_array_size(v) == 0) {
		(void)at_error(at, "write a list of conditions");
		json_decref(list);
		return NULL;
	}
	json_array_foreach(v, i, item)
	{
		size_t up = at_down_to(at, i);
		json_t *one = short_stop(at, item);

		if (!one || json_array_append_new(list, one) < 0) {
			json_decref(list);
			return NULL;
		}
		at_up(at, up);
	}
	return stop_join(kind, list);
}

/* Several words in one map: the first of them that comes true. */
json_t *short_stop(struct at *at, const json_t *v)
{
	json_t *list;
	const char *key;
	json_t *value;
	json_t *only;

	if (json_is_array(v))
		return stop_list(at, "any", v);
	if (json_object_size(v) == 0) {
		(void)at_error(at, "write conditions, such as {text: DONE, "
				   "messages: 20}");
		return NULL;
	}
	list = json_array();
	json_object_foreach((json_t *)v, key, value)
	{
		size_t up = at_down(at, key);
		json_t *one = stop_one(at, key, value);

		if (!one || json_array_append_new(list, one) < 0) {
			json_decref(list);
			return NULL;
		}
		at_up(at, up);
	}
	if (json_array_size(list) > 1)
		return stop_join("any", list);
	only = json_incref(json_array_get(list, 0));
	json_decref(list);
	return only;
}

/* {summary: 40}, or {summary: {messages: 40, model: ...}} */
static json_t *summary(struct at *at, const json_t *v)
{
	size_t up = at_down(at, "summary");
	json_t *model = json_object_get(v, "model");
	json_t *config = json_is_object(v) ? json_copy((json_t *)v)
					   : json_pack("{s:O}", "messages", v);
	json_t *ret;

	if (model) {
		size_t at_model = at_down(at, "model");
		json_t *whole = short_model(at, model);

		if (!whole || json_object_set_new(config, "model", whole) < 0) {
			json_decref(config);
			return NULL;
		}
		at_up(at, at_model);
	}
	ret = short_made(at, "cordon.context.summary", config);
	if (ret)
		at_up(at, up);
	return ret;
}

json_t *short_context(struct at *at, const json_t *v)
{
	const char *word = json_string_value(v);

	if (word && strcmp(word, "unbounded") == 0)
		return short_made(at, "cordon.context.unbounded",
				  json_object());
	if (json_object_get(v, "last") && json_object_size(v) == 1)
		return short_made(at, "cordon.context.last",
				  json_pack("{s:O}", "n",
					    json_object_get(v, "last")));
	if (json_object_get(v, "tokens") && json_object_size(v) == 1)
		return short_made(at, "cordon.context.tokens",
				  json_pack("{s:O}", "max",
					    json_object_get(v, "tokens")));
	if (json_object_get(v, "summary") && json_object_size(v) == 1)
		return summary(at, json_object_get(v, "summary"));
	if (json_object_get(v, "head") && json_object_get(v, "tail"))
		return short_made(at, "cordon.context.head_tail",
				  json_deep_copy(v));
	(void)at_error(at, "write unbounded, {last: N}, {head: N, tail: N}, "
			   "{tokens: N} or {summary: N}");
	return NULL;
}

json_t *short_budget(struct at *at, const json_t *v)
{
	static const struct field fields[] = {
		FIELD("tokens", FIELD_COUNT),
		FIELD("cost", FIELD_NUMBER),
		FIELD("time", FIELD_TIME),
		FIELD("tool_calls", FIELD_COUNT),
		{ 0 },
	};
	json_t *time = json_object_get(v, "time");
	json_t *ret;

	if (fields_check(at, v, fields, "a budget") < 0)
		return NULL;
	ret = json_deep_copy(v);
	if (time) {
		json_object_set_new(ret, "wall_seconds",
				    json_real(seconds(time)));
		json_object_del(ret, "time");
	}
	return ret;
}
