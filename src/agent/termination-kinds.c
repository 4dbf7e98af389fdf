/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The conditions, one row each (section 12 of the specification; the reasons
 * are part of the interface).
 *
 * Text is looked for in what participants said, not in events and not in the
 * task: a task that asks to "end with TERMINATE" has not ended. What a tool
 * gave back is not said by a participant either, also where an agent passes
 * it on as the summary of its calls.
 */

#include "agent/termination.h"

#include <string.h>

#include "base/util.h"

static bool is_type(const json_t *m, const char *type)
{
	const char *have = chat_type(m);

	return have && strcmp(have, type) == 0;
}

static bool has_text(const json_t *list, const char *text)
{
	size_t i;
	json_t *one;

	json_array_foreach((json_t *)list, i,
			   one) if (strcmp(json_string_value(one), text) ==
				    0) return true;
	return false;
}

/*
 * Whether a condition about what participants say looks at it. The task is
 * somebody else's, unless that is asked for, by word or by name.
 */
static bool is_said(const struct termination *t, const struct stop_facts *f,
		    const json_t *m, bool is_named)
{
	return chat_is_message(m) && (!f->is_task || is_named ||
				      json_is_true(arg(t, "include_task")));
}

/* --- the conditions --- */

static bool max_messages(struct termination *t, const struct stop_facts *f,
			 struct buf *why, struct fault *bad)
{
	bool has_events = json_is_true(arg(t, "include_events"));
	int64_t n = count_arg(t, "n");
	size_t i;
	json_t *m;

	(void)bad;
	json_array_foreach((json_t *)f->fresh, i, m)
		t->counts[0] += has_events || chat_is_message(m);
	if (t->counts[0] < n)
		return false;
	(void)buf_printf(why,
			 "Maximum number of messages %lld reached, current "
			 "message count: %lld",
			 (long long)n, (long long)t->counts[0]);
	return true;
}

static bool mentions(const json_t *m, const char *text)
{
	_cleanup_free_ char *said = NULL;

	if (is_type(m, "ToolCallSummaryMessage"))
		return false;
	said = chat_to_text(m);
	return said && strstr(said, text);
}

static bool text_mention(struct termination *t, const struct stop_facts *f,
			 struct buf *why, struct fault *bad)
{
	const json_t *sources = arg(t, "sources");
	const char *text = text_arg(t, "text");
	size_t i;
	json_t *m;

	(void)bad;
	json_array_foreach((json_t *)f->fresh, i, m)
	{
		bool is_named = sources && has_text(sources, source_of(m));

		if ((sources && !is_named) || !is_said(t, f, m, is_named) ||
		    !mentions(m, text))
			continue;
		(void)buf_printf(why, "Text '%s' mentioned", text);
		return true;
	}
	return false;
}

static bool text_message(struct termination *t, const struct stop_facts *f,
			 struct buf *why, struct fault *bad)
{
	const char *source = text_arg(t, "source");
	size_t i;
	json_t *m;

	(void)bad;
	json_array_foreach((json_t *)f->fresh, i, m)
	{
		bool is_named = source && strcmp(source, source_of(m)) == 0;

		if (!is_type(m, "TextMessage") || (source && !is_named) ||
		    !is_said(t, f, m, is_named))
			continue;
		(void)buf_printf(why, "Text message received from '%s'",
				 source_of(m));
		return true;
	}
	return false;
}

static bool stop_message(struct termination *t, const struct stop_facts *f,
			 struct buf *why, struct fault *bad)
{
	size_t i;
	json_t *m;

	(void)t;
	(void)bad;
	json_array_foreach((json_t *)f->fresh, i, m)
	{
		if (!is_type(m, "StopMessage"))
			continue;
		(void)buf_puts(why, "Stop message received");
		return true;
	}
	return false;
}

enum { TOTAL, PROMPT, COMPLETION };

static bool is_reached(const struct termination *t, const char *name,
		       int64_t count)
{
	const json_t *max = arg(t, name);

	return max && count >= json_integer_value(max);
}

/* Counts events too: a turn with tools asks its model several times. */
static bool token_usage(struct termination *t, const struct stop_facts *f,
			struct buf *why, struct fault *bad)
{
	int64_t *n = t->counts;
	size_t i;
	json_t *m;

	(void)bad;
	json_array_foreach((json_t *)f->fresh, i, m)
	{
		const json_t *u = json_object_get(m, "models_usage");

		n[PROMPT] += json_integer_value(
			json_object_get(u, "prompt_tokens"));
		n[COMPLETION] += json_integer_value(
			json_object_get(u, "completion_tokens"));
	}
	n[TOTAL] = n[PROMPT] + n[COMPLETION];
	if (!is_reached(t, "max_total", n[TOTAL]) &&
	    !is_reached(t, "max_prompt", n[PROMPT]) &&
	    !is_reached(t, "max_completion", n[COMPLETION]))
		return false;
	(void)buf_printf(why,
			 "Token usage limit reached, total token count: %lld, "
			 "prompt token count: %lld, completion token count: "
			 "%lld.",
			 (long long)n[TOTAL], (long long)n[PROMPT],
			 (long long)n[COMPLETION]);
	return true;
}

static bool handoff(struct termination *t, const struct stop_facts *f,
		    struct buf *why, struct fault *bad)
{
	const char *target = text_arg(t, "target");
	size_t i;
	json_t *m;

	(void)bad;
	json_array_foreach((json_t *)f->fresh, i, m)
	{
		const char *to = json_string_value(
			json_object_get(m, "target"));

		if (!is_type(m, "HandoffMessage") || !to ||
		    strcmp(to, target) != 0)
			continue;
		(void)buf_printf(why, "Handoff to %s from %s detected.", target,
				 source_of(m));
		return true;
	}
	return false;
}

static bool timeout(struct termination *t, const struct stop_facts *f,
		    struct buf *why, struct fault *bad)
{
	double seconds = json_number_value(arg(t, "seconds"));

	(void)bad;
	if (f->now < f->started + (int64_t)(seconds * 1e6))
		return false;
	(void)buf_printf(why, "Timeout of %g seconds reached", seconds);
	return true;
}

static bool external(struct termination *t, const struct stop_facts *f,
		     struct buf *why, struct fault *bad)
{
	(void)f;
	(void)bad;
	if (!t->counts[0])
		return false;
	(void)buf_puts(why, "External termination requested");
	return true;
}

static bool source_match(struct termination *t, const struct stop_facts *f,
			 struct buf *why, struct fault *bad)
{
	size_t i;
	json_t *m;

	(void)bad;
	/* Who gives a task has not answered. */
	if (f->is_task)
		return false;
	json_array_foreach((json_t *)f->fresh, i, m)
	{
		if (!chat_is_message(m) ||
		    !has_text(arg(t, "sources"), source_of(m)))
			continue;
		(void)buf_printf(why, "'%s' answered", source_of(m));
		return true;
	}
	return false;
}

/* One that was refused or failed has not been executed. */
static bool was_executed(const json_t *results, const char *name)
{
	size_t i;
	json_t *r;

	json_array_foreach((json_t *)results, i, r)
	{
		const char *have = json_string_value(
			json_object_get(r, "name"));

		if (have && strcmp(have, name) == 0 &&
		    !json_is_true(json_object_get(r, "is_error")))
			return true;
	}
	return false;
}

static bool function_call(struct termination *t, const struct stop_facts *f,
			  struct buf *why, struct fault *bad)
{
	const char *name = text_arg(t, "name");
	size_t i;
	json_t *m;

	(void)bad;
	json_array_foreach((json_t *)f->fresh, i, m)
	{
		if (!is_type(m, "ToolCallExecutionEvent") ||
		    !was_executed(json_object_get(m, "content"), name))
			continue;
		(void)buf_printf(why, "Function '%s' was executed.", name);
		return true;
	}
	return false;
}

static const struct termination_kind kinds[] = {
	{ "max_messages",
	  { { "n", ARG_COUNT, true }, { "include_events", ARG_BOOL, false } },
	  .counts = { "count" },
	  .look = max_messages },
	{ "text_mention",
	  { { "text", ARG_TEXT, true },
	    { "sources", ARG_TEXTS, false },
	    { "include_task", ARG_BOOL, false } },
	  .look = text_mention },
	{ "stop_message", .look = stop_message },
	{ "token_usage",
	  { { "max_total", ARG_COUNT, false },
	    { "max_prompt", ARG_COUNT, false },
	    { "max_completion", ARG_COUNT, false } },
	  .wants_one = true,
	  .counts = { "total", "prompt", "completion" },
	  .look = token_usage },
	{ "handoff", { { "target", ARG_TEXT, true } }, .look = handoff },
	{ "timeout", { { "seconds", ARG_NUMBER, true } }, .look = timeout },
	{ "external", .counts = { "set" }, .look = external },
	{ "source_match",
	  { { "sources", ARG_TEXTS, true } },
	  .look = source_match },
	{ "text_message",
	  { { "source", ARG_TEXT, false },
	    { "include_task", ARG_BOOL, false } },
	  .look = text_message },
	{ "function_call",
	  { { "name", ARG_TEXT, true } },
	  .look = function_call },
	{ "function",
	  { { "name", ARG_TEXT, true } },
	  .look = termination_function },
	{ "cost", { { "max", ARG_NUMBER, true } }, .look = termination_cost },
	{ "loop", { { "n", ARG_COUNT, true } }, .look = termination_loop },
	{ "errors", { { "n", ARG_COUNT, true } }, .look = termination_errors },
	{ "tool_calls",
	  { { "n", ARG_COUNT, true } },
	  .look = termination_tool_calls },
	{ "resource",
	  { { "cpu", ARG_NUMBER, false }, { "memory", ARG_COUNT, false } },
	  .wants_one = true,
	  .look = termination_resource },
};

const struct termination_kind *termination_kind_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	return NULL;
}
