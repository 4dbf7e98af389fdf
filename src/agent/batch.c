/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/batch.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "agent/chat.h"
#include "agent/screening.h"
#include "runtime/trace.h"

#define BATCH_OF(ptr)                                                          \
	((struct batch *)((char *)(ptr)-offsetof(struct batch, step)))

struct slot {
	struct batch *batch;
	size_t i;
	bool is_running;
	struct span *span;
};

static void batch_free(struct batch *b)
{
	struct batch **at = &b->belt->batches;

	while (*at && *at != b)
		at = &(*at)->next;
	if (*at)
		*at = b->next;
	json_decref(b->calls);
	json_decref(b->results);
	json_decref(b->details);
	json_decref(b->approvals);
	json_decref(b->answer);
	for (size_t i = 0; b->slots && i < b->n; i++)
		span_drop(b->slots[i].span);
	free(b->slots);
	free(b);
}

void belt_done(struct belt *b)
{
	if (b->set)
		toolset_free(take_ptr(b->set));
	while (b->batches)
		batch_free(b->batches);
}

void belt_reset(struct belt *b)
{
	struct err err = { 0 };

	if (b->set && toolset_reset(b->set, &err) < 0)
		toolset_stop(b->set);
}

static json_t *nulls(size_t n)
{
	json_t *list = json_array();

	while (list && json_array_size(list) < n)
		if (json_array_append_new(list, json_null()) < 0) {
			json_decref(list);
			list = NULL;
		}
	return list;
}

static void step(struct task *t);

struct batch *batch_new(struct belt *belt, struct agent *a, struct turn *t,
			json_t *calls)
{
	size_t n = json_array_size(calls);
	struct batch *b = n <= BATCH_MAX ? calloc(1, sizeof(*b)) : NULL;

	if (!b)
		return NULL;
	b->belt = belt;
	b->next = belt->batches;
	belt->batches = b;
	b->agent = a;
	b->turn = t;
	b->n = n;
	b->calls = json_incref(calls);
	b->results = nulls(n);
	b->details = nulls(n);
	b->approvals = nulls(n);
	b->slots = calloc(n + 1, sizeof(*b->slots));
	b->step.run = step;
	if (b->results && b->details && b->approvals && b->slots)
		return b;
	batch_free(b);
	return NULL;
}

static const char *call_text(const struct batch *b, size_t i, const char *name)
{
	const char *s = json_string_value(
		json_object_get(json_array_get(b->calls, i), name));

	return s ? s : "";
}

/* `images` may be NULL, or empty. */
static void set_result_with(struct batch *b, size_t i, bool is_error,
			    const char *text, json_t *images)
{
	json_t *r = json_pack("{s:s, s:s, s:s, s:b}", "call_id",
			      call_text(b, i, "id"), "name",
			      call_text(b, i, "name"), "content",
			      text ? text : "", "is_error", is_error);

	if (r && json_array_size(images) > 0 &&
	    json_object_set(r, "images", images) < 0) {
		json_decref(r);
		r = NULL;
	}
	/* A result that cannot be kept must not look like one that is not
	 * there yet: then the turn fails as a whole. */
	if (json_array_set_new(b->results, i, r) < 0)
		turn_event(b->turn, NULL);
}

static void set_result(struct batch *b, size_t i, bool is_error,
		       const char *text)
{
	set_result_with(b, i, is_error, text, NULL);
}

void batch_set(struct batch *b, size_t i, bool is_error, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	set_result(b, i, is_error, text);
	free(text);
}

bool batch_has(const struct batch *b, size_t i)
{
	return json_is_object(json_array_get(b->results, i));
}

size_t batch_waiting(const struct batch *b)
{
	size_t i = 0;

	while (i < b->n && (batch_has(b, i) ||
			    !json_is_object(json_array_get(b->approvals, i))))
		i++;
	return i;
}

void batch_fill(struct batch *b, const char *text)
{
	for (size_t i = 0; i < b->n; i++)
		if (!batch_has(b, i))
			set_result(b, i, true, text);
}

json_t *batch_told(const struct batch *b)
{
	json_t *list = json_array();

	for (size_t i = 0; i < b->n; i++) {
		json_t *r = json_copy(json_array_get(b->results, i));
		json_t *detail = json_array_get(b->details, i);

		if (json_is_object(detail))
			(void)json_object_set(r, "detail", detail);
		if (json_array_append_new(list, r) < 0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

/* What is asked, without what the tool keeps for itself. */
static json_t *asked(const json_t *record)
{
	json_t *o = json_copy((json_t *)record);

	(void)json_object_del(o, "inner");
	return o;
}

static json_t *request_event(const struct batch *b, json_t *record)
{
	const char *kind = setting_text(record, "kind", "approval");

	if (strcmp(kind, "input") == 0)
		return chat_new("UserInputRequestedEvent", b->agent->name,
				json_pack("{s:s, s:s}", "request_id",
					  setting_text(record, "id", ""),
					  "prompt",
					  setting_text(record, "prompt", "")));
	return chat_new("ApprovalRequestedEvent", b->agent->name,
			json_pack("{s:o}", "approval", asked(record)));
}

/* A request that was told before, and waits on, is not told again. */
static void take_pending(struct batch *b, size_t i, json_t *record)
{
	json_t *id = json_object_get(record, "id");
	json_t *before = json_object_get(json_array_get(b->approvals, i), "id");
	bool is_new = !id || !before || !json_equal(id, before);

	(void)json_array_set(b->approvals, i, record);
	if (is_new)
		turn_event(b->turn, request_event(b, record));
}

/* [{"mime","data"}] of a result's content; NULL: no memory. */
static json_t *images_of(const json_t *content)
{
	json_t *list = json_array();
	size_t i;
	json_t *part;

	json_array_foreach(content, i, part)
	{
		json_t *mime = json_object_get(part, "mime");
		json_t *data = json_object_get(part, "data");

		if (mime && data &&
		    json_array_append_new(list, json_pack("{s:O, s:O}", "mime",
							  mime, "data", data)) <
			    0) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static void take_outcome(struct batch *b, size_t i,
			 const struct tool_outcome *o)
{
	bool is_error = o->result.is_error || o->end != TOOL_RESULT;
	_cleanup_free_ char *text = NULL;
	json_t *images;
	bool is_screened;

	if (o->end == TOOL_SUSPENDED && json_is_object(o->pending)) {
		take_pending(b, i, o->pending);
		return;
	}
	text = chat_parts_text(o->result.content);
	is_screened = screening_result(b->agent, &text, &is_error);
	/* Of what may not be read nothing is seen either. */
	images = is_screened && is_error ? NULL : images_of(o->result.content);
	set_result_with(b, i, is_error, text, images);
	json_decref(images);
	/* What was taken out of the text stands in the detail, too. */
	if (o->result.detail && !is_screened)
		(void)json_array_set(b->details, i, o->result.detail);
}

/* What starts nothing need not wait for a paused agent. */
static void go_on(struct batch *b)
{
	if (b->running > 0)
		return;
	if (b->at < b->n)
		agent_go(b->agent, &b->step);
	else
		loop_soon(b->agent->loop, &b->step);
}

static const char *span_text_of(const json_t *detail, const char *name)
{
	return json_string_value(json_object_get(detail, name));
}

/* What the box did, known when it is over. */
static void code_span(struct batch *b, const struct span *above,
		      const json_t *detail)
{
	const json_t *usage = json_object_get(detail, "usage");
	struct span *s = span_begin(b->agent->tracer, SPAN_CODE, NULL,
				    span_parent(above, NULL));

	span_began(s, 1000 * json_integer_value(
				     json_object_get(usage, "wall_ms")));
	span_text(s, "cordon.run", span_text_of(detail, "id"));
	span_text(s, "cordon.cause", span_text_of(detail, "cause"));
	span_end(s, NULL);
}

static void approval_span(struct batch *b, const struct span *above,
			  const json_t *record)
{
	struct span *s = span_begin(b->agent->tracer, SPAN_APPROVAL, NULL,
				    span_parent(above, NULL));

	span_text(s, "cordon.approval", span_text_of(record, "id"));
	span_end(s, NULL);
}

static void span_over(struct slot *s, const struct tool_outcome *o)
{
	struct span *span = take_ptr(s->span);
	struct fault why = { .code = FAULT_HANDLER };

	if (!span)
		return;
	if (json_is_object(o->result.detail))
		code_span(s->batch, span, o->result.detail);
	if (o->end == TOOL_SUSPENDED)
		approval_span(s->batch, span, o->pending);
	span_end(span,
		 o->end == TOOL_RESULT && o->result.is_error ? &why : NULL);
}

static void on_done(void *arg, const struct tool_outcome *o)
{
	struct slot *s = arg;
	struct batch *b = s->batch;

	s->is_running = false;
	b->running--;
	span_over(s, o);
	if (b->turn) {
		take_outcome(b, s->i, o);
		go_on(b);
	} else if (b->running == 0) {
		batch_free(b);
	}
}

/* What happens within a call belongs to the turn, and so does its price. */
static void on_event(void *arg, json_t *event)
{
	const struct slot *s = arg;
	struct batch *b = s->batch;
	const json_t *u = json_object_get(event, "models_usage");

	if (!b->turn)
		return;
	if (b->used) {
		b->used->prompt += setting_int(u, "prompt_tokens", 0);
		b->used->completion += setting_int(u, "completion_tokens", 0);
		b->used->cost += json_number_value(json_object_get(u, "cost"));
	}
	turn_event(b->turn, json_incref(event));
}

static const char *approval_id(const struct batch *b, size_t i)
{
	return json_string_value(
		json_object_get(json_array_get(b->approvals, i), "id"));
}

/* What was asked about before was so in the conversation of then. */
static const char *context_of(const struct batch *b, size_t i)
{
	const char *then = json_string_value(
		json_object_get(json_array_get(b->approvals, i), "context"));

	if (then)
		return then;
	return b->context[0] ? b->context : NULL;
}

static struct span *call_span(struct batch *b, const struct tool_want *w)
{
	struct span *s = span_begin(b->agent->tracer, SPAN_TOOL, w->name,
				    turn_traceparent(b->turn));

	span_text(s, "gen_ai.tool.name", w->name);
	span_text(s, "gen_ai.tool.call.id", w->id);
	if (tracer_has_contents(b->agent->tracer))
		span_text(s, "gen_ai.tool.call.arguments", w->arguments);
	return s;
}

static void make_call(struct batch *b, size_t i)
{
	struct tool_want w = { .id = call_text(b, i, "id"),
			       .name = call_text(b, i, "name"),
			       .arguments = call_text(b, i, "arguments"),
			       .agent = b->agent->name,
			       .team = turn_team(b->turn),
			       .run = turn_run(b->turn),
			       .cancel = turn_cancel(b->turn),
			       .context = context_of(b, i),
			       .approval = approval_id(b, i),
			       .must_ask = b->must_ask,
			       .event = on_event,
			       .event_arg = &b->slots[i] };

	/* Somebody within it waits: the call itself was let through. */
	w.suspended = json_object_get(json_array_get(b->approvals, i), "inner");
	if (w.suspended && b->answer_to && w.approval &&
	    strcmp(b->answer_to, w.approval) == 0)
		w.reply = b->answer;
	if (w.suspended)
		w.approval = NULL;
	if (!b->belt->set) {
		batch_set(b, i, true, "There is no tool named '%.64s'.",
			  w.name);
		return;
	}
	b->slots[i] = (struct slot){ b, i, true, call_span(b, &w) };
	w.traceparent = span_parent(b->slots[i].span,
				    turn_traceparent(b->turn));
	b->running++;
	toolset_call(b->belt->set, &w, on_done, &b->slots[i]);
}

/* What the tool is given is what the history says of the call. */
static bool set_arguments(struct batch *b, size_t i, const char *text)
{
	json_t *call = json_copy(json_array_get(b->calls, i));

	if (json_object_set_new(call, "arguments", json_string(text)) == 0)
		return json_array_set_new(b->calls, i, call) == 0;
	json_decref(call);
	return false;
}

static bool screen_arguments(struct batch *b, size_t i)
{
	_cleanup_free_ char *now = NULL;
	char reason[256];
	bool may = screening_call(b->agent, call_text(b, i, "arguments"), &now,
				  reason);

	if (may && !now)
		return true;
	if (!set_arguments(b, i, may ? now : "{}")) {
		turn_event(b->turn, NULL);
		may = false;
	}
	if (!may)
		batch_set(b, i, true, "The call was refused. Reason: %s",
			  reason);
	return may;
}

void batch_screen(struct batch *b)
{
	for (size_t i = 0; i < b->n; i++)
		if (!batch_has(b, i))
			(void)screen_arguments(b, i);
}

static void call(struct batch *b, size_t i)
{
	if (!screen_arguments(b, i))
		return;
	make_call(b, i);
}

/* One after the other stops where a person has to be asked first. */
static bool may_start(const struct batch *b)
{
	if (b->at >= b->n || cancel_is_fired(turn_cancel(b->turn)))
		return false;
	return !b->is_serial || (b->running == 0 && batch_waiting(b) >= b->at);
}

static void step(struct task *t)
{
	struct batch *b = BATCH_OF(t);

	if (b->at < b->n && agent_is_held(b->agent, t))
		return;
	for (; may_start(b); b->at++)
		if (!batch_has(b, b->at))
			call(b, b->at);
	if (b->running == 0)
		b->done(b->arg, b);
}

void batch_start(struct batch *b)
{
	agent_go(b->agent, &b->step);
}

void batch_drop(struct batch *b)
{
	if (!b)
		return;
	agent_let_go(b->agent, &b->step);
	b->turn = NULL;
	if (b->running == 0)
		batch_free(b);
}
