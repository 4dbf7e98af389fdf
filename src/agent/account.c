/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/account.h"

#include <string.h>

#include "agent/agent.h"
#include "base/util.h"

static int64_t count_of(const json_t *o, const char *name)
{
	json_int_t n = json_integer_value(json_object_get(o, name));

	return n > 0 ? n : 0;
}

/* The result document of a box: cpu_time_ms, memory_used_mb. */
static void count_box(struct account *a, const json_t *result)
{
	double mb = json_number_value(
		json_object_get(result, "memory_used_mb"));
	int64_t bytes = mb > 0 && mb < 1e9 ? (int64_t)(mb * (1 << 20)) : 0;

	a->box_cpu_ms += count_of(result, "cpu_time_ms");
	a->box_memory = MAX(a->box_memory, bytes);
}

static void count_request(struct account *a, const json_t *event)
{
	a->tool_calls += (int64_t)json_array_size(
		json_object_get(event, "content"));
}

static void count_results(struct account *a, const json_t *event)
{
	size_t i;
	json_t *r;

	json_array_foreach(json_object_get(event, "content"), i, r)
	{
		a->errors += json_is_true(json_object_get(r, "is_error"));
		count_box(a, json_object_get(r, "detail"));
	}
}

static void count_code(struct account *a, const json_t *event)
{
	const json_t *result = json_object_get(event, "result");
	const char *status = json_string_value(
		json_object_get(result, "status"));

	a->tool_calls++; /* known to nobody before it has run */
	a->errors += status && strcmp(status, "success") != 0;
	count_box(a, result);
}

/* A warning is followed by another attempt, or by the error itself. */
static void count_error(struct account *a, const json_t *event)
{
	const char *level = json_string_value(
		json_object_get(json_object_get(event, "metadata"), "level"));

	a->errors += !level || strcmp(level, "warning") != 0;
}

static void count_inner(struct account *a, const json_t *event);

static const struct {
	const char *type;
	void (*count)(struct account *a, const json_t *event);
} types[] = {
	{ "ToolCallRequestEvent", count_request },
	{ "ToolCallExecutionEvent", count_results },
	{ "CodeExecutionEvent", count_code },
	{ "ErrorEvent", count_error },
	{ "InnerEvent", count_inner },
};

static void count_type(struct account *a, const json_t *event)
{
	const char *type = chat_type(event);

	for (size_t i = 0; type && i < ARRAY_SIZE(types); i++)
		if (strcmp(types[i].type, type) == 0)
			types[i].count(a, event);
}

/* Its usage stands outside already. */
static void count_inner(struct account *a, const json_t *event)
{
	count_type(a, json_object_get(event, "content"));
}

void account_count(struct account *a, const json_t *event)
{
	const json_t *u = json_object_get(event, "models_usage");
	double cost = json_number_value(json_object_get(u, "cost"));

	a->prompt += count_of(u, "prompt_tokens");
	a->completion += count_of(u, "completion_tokens");
	if (cost > 0)
		a->cost += cost;
	count_type(a, event);
}

json_t *account_json(const struct account *a)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:f}", "prompt_tokens",
			 (json_int_t)a->prompt, "completion_tokens",
			 (json_int_t)a->completion, "tool_calls",
			 (json_int_t)a->tool_calls, "errors",
			 (json_int_t)a->errors, "box_cpu_ms",
			 (json_int_t)a->box_cpu_ms, "box_memory",
			 (json_int_t)a->box_memory, "cost", a->cost);
}

void account_load(struct account *a, const json_t *o)
{
	double cost = json_number_value(json_object_get(o, "cost"));

	a->prompt = count_of(o, "prompt_tokens");
	a->completion = count_of(o, "completion_tokens");
	a->tool_calls = count_of(o, "tool_calls");
	a->errors = count_of(o, "errors");
	a->box_cpu_ms = count_of(o, "box_cpu_ms");
	a->box_memory = count_of(o, "box_memory");
	a->cost = cost > 0 ? cost : 0;
}

static int parse_one(struct budget *b, const char *name, const json_t *v,
		     struct err *err)
{
	double n = json_number_value(v);

	if (!json_is_number(v) || !(n >= 0 && n < 1e15))
		return err_set(err, EINVAL, "budget: %s: must be a number",
			       name);
	if (strcmp(name, "tokens") == 0)
		b->tokens = (int64_t)n;
	else if (strcmp(name, "tool_calls") == 0)
		b->tool_calls = (int64_t)n;
	else if (strcmp(name, "cost") == 0)
		b->cost = n;
	else if (strcmp(name, "wall_seconds") == 0)
		b->wall_seconds = MIN(n, 1e9);
	else
		return err_set(err, EINVAL, "budget: %s: no such field", name);
	return 0;
}

int budget_parse(struct budget *b, const json_t *o, struct err *err)
{
	const char *name;
	json_t *v;

	*b = (struct budget){ -1, -1, -1, -1 };
	if (o && !json_is_object(o) && !json_is_null(o))
		return err_set(err, EINVAL, "budget: must be an object");
	json_object_foreach((json_t *)o, name,
			    v) if (parse_one(b, name, v, err) <
				   0) return -EINVAL;
	return 0;
}

const char *budget_passed(const struct budget *b, const struct account *a)
{
	if (b->tokens >= 0 && a->prompt + a->completion > b->tokens)
		return "tokens";
	if (b->cost >= 0 && a->cost > b->cost)
		return "cost";
	if (b->tool_calls >= 0 && a->tool_calls > b->tool_calls)
		return "tool_calls";
	return NULL;
}
