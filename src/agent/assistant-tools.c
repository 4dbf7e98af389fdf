/* SPDX-License-Identifier: Apache-2.0 */

/* One round of calls: what the model wants, what came of it, who is next. */

#include <string.h>

#include "agent/assistant.h"

static json_t *handoff_tool(const json_t *h)
{
	return json_pack("{s:O, s:O, s:{s:s, s:{}, s:b}, s:b}", "name",
			 json_object_get(h, "name"), "description",
			 json_object_get(h, "description"), "parameters",
			 "type", "object", "properties", "additionalProperties",
			 0, "strict", 0);
}

json_t *assistant_tools(const struct assistant *a)
{
	json_t *list = a->belt.set
			       ? toolset_list_for(a->belt.set, a->agent.name)
			       : json_array();
	size_t i;
	json_t *h;

	json_array_foreach(a->handoffs, i, h)(void)
		json_array_append_new(list, handoff_tool(h));
	return list;
}

static json_t *find_handoff(const struct assistant *a, const char *name)
{
	size_t i;
	json_t *h;

	json_array_foreach(a->handoffs, i,
			   h) if (strcmp(setting_text(h, "name", ""), name) ==
				  0) return h;
	return NULL;
}

bool assistant_is_handoff(const struct assistant *a, const char *name)
{
	return find_handoff(a, name) != NULL;
}

static json_t *handoff_of(const struct speech *s, size_t i)
{
	return find_handoff(s->a,
			    setting_text(json_array_get(s->w.batch->calls, i),
					 "name", ""));
}

static void warn_second(struct speech *s, const char *target)
{
	struct fault f = { 0 };
	json_t *e;

	fault_set(&f, FAULT_REJECTED,
		  "more than one handoff in one answer; the one to '%s' is "
		  "not made",
		  target);
	e = chat_new("ErrorEvent", s->a->agent.name,
		     json_pack("{s:o, s:{s:s}}", "error", fault_json(&f),
			       "metadata", "level", "warning"));
	turn_event(s->w.turn, e);
	fault_done(&f);
}

/* The first one is taken; the model reads why the others are not. */
static void answer_handoffs(struct speech *s)
{
	struct batch *b = s->w.batch;
	bool has_one = false;

	for (size_t i = 0; i < b->n; i++) {
		json_t *h = handoff_of(s, i);

		if (!h || batch_has(b, i))
			continue;
		if (!has_one) {
			batch_set(b, i, false, "%s",
				  setting_text(h, "message", ""));
		} else {
			const char *target = setting_text(h, "target", "");

			batch_set(b, i, true,
				  "Only one handoff is made at a time; the one "
				  "to %s was not made.",
				  target);
			warn_second(s, target);
		}
		has_one = true;
	}
}

static json_t *call_message(const struct speech *s,
			    const struct model_result *r, json_t *calls)
{
	json_t *m = json_pack("{s:s, s:s, s:s?, s:O}", "role", "assistant",
			      "source", s->a->agent.name, "content", r->content,
			      "calls", calls);

	if (m && r->thought)
		(void)json_object_set_new(m, "thought",
					  json_string(r->thought));
	return m;
}

static void fail_many(struct speech *s, size_t n)
{
	struct fault why = { 0 };

	fault_set(&why, FAULT_TOO_LARGE,
		  "%zu calls in one answer; %d are allowed", n, BATCH_MAX);
	work_fail(&s->w, &why);
	fault_done(&why);
}

static void called(void *arg, struct batch *b);

struct batch *assistant_batch(struct speech *s, json_t *calls)
{
	struct assistant *a = s->a;
	struct batch *b = batch_new(&a->belt, &a->agent, s->w.turn, calls);

	if (!b)
		return NULL;
	b->done = called;
	b->arg = s;
	s->w.batch = b;
	work_calls(&s->w, a->config);
	return b;
}

/*
 * The answer is the model's; what becomes of the calls is one list of our own
 * for the event, the history and the tools: a filter may change it.
 */
void assistant_call(struct speech *s, const struct model_result *r)
{
	json_t *calls = json_deep_copy(r->calls);
	size_t n = json_array_size(r->calls);
	struct batch *b = n <= BATCH_MAX ? assistant_batch(s, calls) : NULL;

	if (b)
		batch_screen(b);
	turn_event(s->w.turn,
		   work_chat(&s->w, "ToolCallRequestEvent",
			     json_pack("{s:O}", "content", calls), &r->usage));
	context_add(s->a->context, call_message(s, r, calls));
	if (n > BATCH_MAX) {
		fail_many(s, n);
	} else if (!b) {
		work_fail_short(&s->w);
	} else {
		answer_handoffs(s);
		batch_start(s->w.batch);
	}
	json_decref(calls);
}

/* --- after the calls --- */

/* The calls but the handoffs, and their results, for whoever is next. */
static json_t *others(const struct speech *s)
{
	json_t *calls = json_array();
	json_t *results = json_array();
	json_t *context = NULL;

	for (size_t i = 0; i < s->w.batch->n; i++) {
		if (handoff_of(s, i))
			continue;
		(void)json_array_append(calls,
					json_array_get(s->w.batch->calls, i));
		(void)json_array_append(results,
					json_array_get(s->w.batch->results, i));
	}
	if (json_array_size(calls) == 0)
		context = json_array();
	else
		context = json_pack("[{s:s, s:s, s:n, s:O}, {s:s, s:O}]",
				    "role", "assistant", "source",
				    s->a->agent.name, "content", "calls", calls,
				    "role", "tool", "results", results);
	json_decref(calls);
	json_decref(results);
	return context;
}

static const json_t *taken_handoff(const struct speech *s)
{
	for (size_t i = 0; i < s->w.batch->n; i++)
		if (handoff_of(s, i))
			return handoff_of(s, i);
	return NULL;
}

static void hand_over(struct speech *s, const json_t *h)
{
	json_t *fields = json_pack("{s:O, s:O, s:o}", "content",
				   json_object_get(h, "message"), "target",
				   json_object_get(h, "target"), "context",
				   others(s));

	work_finish(&s->w, work_chat(&s->w, "HandoffMessage", fields, NULL));
}

static void tell_results(struct speech *s)
{
	turn_event(s->w.turn,
		   chat_new("ToolCallExecutionEvent", s->a->agent.name,
			    json_pack("{s:o}", "content",
				      batch_told(s->w.batch))));
}

void assistant_give_up(struct speech *s)
{
	batch_fill(s->w.batch, "The call was cancelled.");
	tell_results(s);
}

static void keep_results(struct speech *s)
{
	struct batch *b = s->w.batch;

	tell_results(s);
	context_add(s->a->context, json_pack("{s:s, s:O}", "role", "tool",
					     "results", b->results));
	if (json_array_extend(s->calls, b->calls) < 0 ||
	    json_array_extend(s->results, b->results) < 0)
		turn_event(s->w.turn, NULL);
}

/* The calls have ended: each has a result, unless a person is asked. */
static void called(void *arg, struct batch *b)
{
	struct speech *s = arg;
	bool is_cancelled = cancel_is_fired(turn_cancel(s->w.turn));
	const json_t *h;

	if (is_cancelled)
		batch_fill(b, "The call was cancelled.");
	if (batch_waiting(b) < b->n) {
		assistant_suspend(s);
		return;
	}
	keep_results(s);
	if (is_cancelled) {
		work_fail_cancelled(&s->w);
		return;
	}
	h = taken_handoff(s);
	s->round++;
	if (h) {
		hand_over(s, h);
		return;
	}
	batch_drop(take_ptr(s->w.batch));
	if (s->round < s->a->max_rounds) {
		assistant_ask(s);
	} else if (s->a->is_reflecting) {
		s->is_last = true;
		assistant_ask(s);
	} else {
		assistant_summary(s);
	}
}
