/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Before a model is asked about a history that is too long: its beginning is
 * summarised, by the same model or by one of its own.
 *
 * What goes wrong with it does not end the turn: an event tells it, the
 * history is seen without what is due (context-summary.c), and it is tried
 * again in the next turn. Only a token that has fired ends both.
 */

#include <stdio.h>
#include <string.h>

#include "agent/screening.h"
#include "agent/think.h"
#include "runtime/filter-policy.h"
#include "runtime/trace.h"

static struct model *model_of(const struct think *k)
{
	return k->agent->summariser ? k->agent->summariser : k->model;
}

static void tell(struct think *k, const char *type, json_t *fields,
		 const struct model_usage *u)
{
	json_t *e = chat_new(type, k->agent->name, fields);

	chat_set_usage(e, u);
	turn_event(k->turn, e);
}

static void give_up(struct think *k, const struct fault *why,
		    const struct model_usage *u)
{
	struct fault told = { 0 };

	k->cannot_condense = true;
	/* Who cancelled it is told by the turn itself. */
	if (!cancel_is_fired(turn_cancel(k->turn))) {
		fault_set(&told, why->code,
			  "the history could not be summarised, its beginning "
			  "is left out: %s",
			  why->message ? why->message : "");
		tell(k, "ErrorEvent",
		     json_pack("{s:o, s:{s:s}}", "error", fault_json(&told),
			       "metadata", "level", "warning"),
		     u);
	}
	fault_done(&told);
}

static bool is_blank(const char *text)
{
	return !text || text[strspn(text, " \t\r\n")] == '\0';
}

static void take(struct think *k, const struct model_result *r)
{
	struct fault why = { 0 };
	_cleanup_free_ char *text = NULL;

	if (is_blank(r->content))
		fault_set(&why, FAULT_HANDLER, "the model gave no summary");
	else if (asprintf(&text, "%s%s", r->content,
			  r->finish == FINISH_LENGTH ? " [cut short]" : "") <
			 0 ||
		 context_sum_up(k->context, k->due, text) < 0)
		fault_set(&why, FAULT_INTERNAL, "out of memory");
	if (why.code)
		give_up(k, &why, &r->usage);
	else
		tell(k, "ContextSummaryEvent",
		     json_pack("{s:s, s:I}", "content", text, "upto",
			       (json_int_t)k->due),
		     &r->usage);
	fault_done(&why);
}

static void on_done(void *arg, const struct model_result *r,
		    const struct fault *why)
{
	struct think *k = arg;
	struct model_result kept = { 0 };
	struct fault refused = { 0 };
	json_t *holder = NULL;

	k->call = NULL;
	think_paid(k, r, why);
	if (!r)
		give_up(k, why, NULL);
	else if (!screening_answer(k->agent, r, &kept, &holder, &refused))
		give_up(k, &refused, &r->usage);
	else
		take(k, &kept);
	json_decref(holder);
	fault_done(&refused);
	/* And now for what it was done; the agent may be paused meanwhile. */
	agent_go(k->agent, &k->step);
}

/* The call, or NULL and why. */
static struct model_call *start(struct think *k, struct fault *why)
{
	static const struct model_events events = { .done = on_done };
	struct model_request q = { .messages = context_ask(k->context, k->due),
				   .cancel = turn_cancel(k->turn) };
	struct model_call *call = NULL;
	json_t *prompt = json_incref(json_array_get(q.messages, 0));

	if (screening_prompt(k->agent, ROLE_SYSTEM, "summary", &prompt, why) &&
	    prompt && json_array_set(q.messages, 0, prompt) == 0 &&
	    !think_is_too_much(k, model_of(k), &q, why)) {
		k->span = span_begin(k->agent->tracer, SPAN_CHAT,
				     model_name(model_of(k)),
				     turn_traceparent(k->turn));
		call = model_start(model_of(k), &q, &events, k);
		if (!call)
			span_drop(take_ptr(k->span));
	}
	json_decref(prompt);
	json_decref(q.messages);
	if (!call && !why->code)
		fault_set(why, FAULT_INTERNAL, "out of memory");
	return call;
}

bool think_condense(struct think *k)
{
	ssize_t due = k->cannot_condense ||
				      cancel_is_fired(turn_cancel(k->turn))
			      ? 0
			      : context_due(k->context);
	struct fault why = { 0 };

	if (due <= 0)
		return false; /* without memory nothing goes on after it */
	k->due = (size_t)due;
	k->call = start(k, &why);
	if (!k->call)
		give_up(k, &why, NULL);
	fault_done(&why);
	return k->call != NULL;
}
