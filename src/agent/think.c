/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/think.h"

#include <stdio.h>
#include <string.h>

#include "agent/screening.h"
#include "runtime/filter-policy.h"
#include "runtime/trace.h"

#define THINK_OF(ptr)                                                          \
	((struct think *)((char *)(ptr)-offsetof(struct think, step)))

static int extend(json_t *list, const json_t *more)
{
	return more ? json_array_extend(list, (json_t *)more) : 0;
}

static char *schema_words(const json_t *schema)
{
	_cleanup_free_ char *text = chat_dump(
		json_object_get(schema, "schema"));
	char *words = NULL;

	if (!text || asprintf(&words,
			      "Answer with one JSON object and nothing else. "
			      "It follows this JSON schema: %s",
			      text) < 0)
		return NULL;
	return words;
}

/* A model that cannot be held to a schema is asked to keep to it. */
static json_t *system_message(const struct think *k)
{
	bool is_told = k->schema && !model_info(k->model)->structured_output;
	_cleanup_free_ char *words = is_told ? schema_words(k->schema) : NULL;
	const char *own = k->system ? k->system : "";

	if (is_told && !words)
		return NULL;
	return json_pack("{s:s, s:o}", "role", "system", "content",
			 json_sprintf("%s%s%s", own,
				      *own && words ? "\n\n" : "",
				      words ? words : ""));
}

static bool has_system(const struct think *k)
{
	return (k->system && *k->system) ||
	       (k->schema && !model_info(k->model)->structured_output);
}

/* What nobody else has looked at: the rest is as the filters left it. */
static bool add_system(struct think *k, json_t *list, struct fault *why)
{
	json_t *m = has_system(k) ? system_message(k) : NULL;

	if (!screening_prompt(k->agent, ROLE_SYSTEM, "system", &m, why) ||
	    !screening_prompt(k->agent, ROLE_SYSTEM, "tools", &k->tools, why)) {
		json_decref(m);
		return false;
	}
	return !has_system(k) || json_array_append_new(list, m) == 0;
}

static json_t *all_messages(struct think *k, struct fault *why)
{
	json_t *list = json_array();
	json_t *history = context_messages(k->context);
	int r = list && history ? 0 : -1;

	if (r == 0 && !add_system(k, list, why))
		r = -1;
	if (r == 0)
		r = extend(list, k->reminders);
	if (r == 0)
		r = extend(list, history);
	if (r == 0)
		r = extend(list, k->after);
	json_decref(history);
	if (r == 0)
		return list;
	json_decref(list);
	return NULL;
}

bool think_is_too_much(const struct think *k, const struct model *m,
		       const struct model_request *q, struct fault *why)
{
	const struct model_info *info = model_info(m);
	int64_t spent = k->used.prompt + k->used.completion;
	int64_t prompt;
	double cost = k->used.cost;

	if (k->max_tokens == 0 && k->max_cost == 0)
		return false;
	prompt = model_count_tokens(m, q->messages, q->tools);
	if (info->price_prompt > 0)
		cost += (double)prompt * info->price_prompt / 1e6;
	if (k->max_tokens > 0 && spent + prompt > k->max_tokens)
		fault_set(why, FAULT_REJECTED,
			  "Budget exceeded: tokens of the turn: %lld used, "
			  "about %lld more needed, %lld allowed",
			  (long long)spent, (long long)prompt,
			  (long long)k->max_tokens);
	else if (k->max_cost > 0 && cost > k->max_cost)
		fault_set(why, FAULT_REJECTED,
			  "Budget exceeded: cost of the turn: %.4f of %.4f",
			  cost, k->max_cost);
	return why->code != FAULT_NONE;
}

static void on_chunk(void *arg, bool is_thought, const char *text, size_t len)
{
	struct think *k = arg;

	/* A type of its own: an answer is what its chunks are together. */
	turn_event(k->turn,
		   chat_new(is_thought ? "ThoughtChunkEvent"
				       : "ModelClientStreamingChunkEvent",
			    k->agent->name,
			    json_pack("{s:o, s:s}", "content",
				      json_stringn(text, len),
				      "full_message_id",
				      is_thought ? k->thought_id : k->id)));
}

static void add_usage(struct model_usage *to, const struct model_usage *u)
{
	to->prompt += u->prompt;
	to->completion += u->completion;
	to->cached += u->cached;
	to->reasoning += u->reasoning;
	to->calls++;
	to->cost += u->cost;
}

static void span_over(struct think *k, const struct model_result *r,
		      const struct fault *why)
{
	struct span *s = take_ptr(k->span);

	if (r) {
		span_text(s, "gen_ai.response.id", r->raw_id);
		span_text(s, "gen_ai.response.model", r->model);
		span_int(s, "gen_ai.usage.input_tokens", r->usage.prompt);
		span_int(s, "gen_ai.usage.output_tokens", r->usage.completion);
	}
	span_end(s, why);
}

void think_paid(struct think *k, const struct model_result *r,
		const struct fault *why)
{
	span_over(k, r, why);
	if (r)
		add_usage(&k->used, &r->usage);
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
	/* From here on nobody sees what the filters took out. */
	if (r && !screening_answer(k->agent, r, &kept, &holder, &refused))
		k->done(k, NULL, &refused);
	else
		k->done(k, r ? &kept : NULL, why);
	json_decref(holder);
	fault_done(&refused);
}

static const struct model_events plain = { .done = on_done };
static const struct model_events streamed = { .chunk = on_chunk,
					      .done = on_done };

/* What cannot start ends here: this is the loop's own call. */
static void step(struct task *t)
{
	struct think *k = THINK_OF(t);
	struct model_request q = { .tool_choice = k->tools ? k->choice : NULL,
				   .output_schema = k->schema,
				   .is_stream = k->is_stream,
				   .cancel = turn_cancel(k->turn) };
	struct fault why = { 0 };

	if (agent_is_held(k->agent, t) || think_condense(k))
		return;
	q.messages = all_messages(k, &why);
	q.tools = k->tools;
	if (cancel_is_fired(q.cancel))
		cancel_fault(q.cancel, &why);
	else if (!q.messages && !why.code)
		fault_set(&why, FAULT_INTERNAL, "out of memory");
	else if (q.messages && !think_is_too_much(k, k->model, &q, &why))
		k->span = span_begin(k->agent->tracer, SPAN_CHAT,
				     model_name(k->model),
				     turn_traceparent(k->turn));
	if (q.messages && !why.code)
		k->call = model_start(k->model, &q,
				      k->is_stream ? &streamed : &plain, k);
	json_decref(q.messages);
	if (!k->call && !why.code)
		fault_set(&why, FAULT_INTERNAL, "out of memory");
	if (why.code) {
		span_end(take_ptr(k->span), &why);
		k->done(k, NULL, &why);
	}
	fault_done(&why);
}

static void forget(struct think *k)
{
	json_decref(k->after);
	json_decref(k->tools);
	json_decref(k->schema);
	k->after = k->tools = k->schema = NULL;
}

void think_start(struct think *k, const struct think_about *q)
{
	/* They may be the very ones of the last call. */
	json_t *after = json_incref(q->after);
	json_t *tools = json_incref(q->tools);
	json_t *schema = json_incref(q->output_schema);

	forget(k);
	chat_id(k->id);
	chat_id(k->thought_id);
	k->system = q->system;
	k->after = after;
	k->tools = tools;
	k->schema = schema;
	k->choice = q->choice;
	k->step.run = step;
	agent_go(k->agent, &k->step);
}

void think_done(struct think *k)
{
	if (k->call)
		model_drop(take_ptr(k->call));
	span_drop(take_ptr(k->span));
	if (k->agent)
		agent_let_go(k->agent, &k->step);
	forget(k);
	json_decref(k->reminders);
	k->reminders = NULL;
}
