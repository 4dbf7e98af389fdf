/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/work.h"

#include <string.h>

#include "base/visible.h"

struct work *work_new(size_t size, struct work **place, struct agent *a,
		      struct context *c, struct model *m, struct turn *t)
{
	struct work *w = calloc(1, size);

	if (!w)
		return NULL;
	w->agent = a;
	w->context = c;
	w->turn = t;
	w->mark = context_mark(c);
	w->think.agent = a;
	w->think.turn = t;
	w->think.model = m;
	w->think.context = c;
	w->place = place;
	*place = w;
	return w;
}

void work_limits(struct work *w, const json_t *config)
{
	w->think.max_tokens = setting_int(config, "max_tokens_per_turn", 0);
	w->think.max_cost = json_number_value(
		json_object_get(config, "max_cost_per_turn"));
	w->think.is_stream = setting_bool(config, "stream", false);
}

/*
 * The conversation as the agent has it, before the calls: what the model was
 * told, or what it was given to do where no model is asked.
 */
static void hash_context(const struct work *w, char ret[65])
{
	json_t *list = context_messages(w->context);
	const json_t *said = json_array_size(list) ? list
						   : turn_messages(w->turn);
	_cleanup_free_ char *text = said ? json_dumps(said,
						      JSON_COMPACT |
							      JSON_SORT_KEYS)
					 : NULL;

	ret[0] = '\0';
	if (text)
		visible_sha256(text, strlen(text), ret);
	json_decref(list);
}

void work_calls(struct work *w, const json_t *config)
{
	hash_context(w, w->batch->context);
	w->batch->used = &w->think.used;
	w->batch->is_serial = !setting_bool(config, "parallel", true);
	w->batch->must_ask = strcmp(setting_text(config, "approval", "policy"),
				    "always") == 0;
}

json_t *work_save(const struct work *w, const struct context *c)
{
	return w ? context_save_before(c, w->mark) : context_save(c);
}

static void work_free(struct work *w)
{
	*w->place = NULL;
	think_done(&w->think);
	batch_drop(w->batch);
	json_decref(w->tools_were);
	if (w->release)
		w->release(w);
	free(w);
}

void work_drop(struct work *w)
{
	struct toolset *tools = w->tools;
	json_t *were = take_ptr(w->tools_were);

	context_rewind(w->context, w->mark);
	work_free(w);
	if (were)
		toolset_rewind(tools, were);
	json_decref(were);
}

void work_fail(struct work *w, const struct fault *why)
{
	struct turn *t = w->turn;

	work_drop(w);
	turn_fail(t, why);
}

bool work_tools(struct work *w, struct toolset *set)
{
	struct fault why = { 0 };
	struct err err = { 0 };

	if (!set)
		return true;
	w->tools = set;
	w->tools_were = toolset_mark(set);
	if (toolset_start(set, &err) == 0)
		return true;
	fault_set(&why, FAULT_UNAVAILABLE, "%s", err.text);
	work_fail(w, &why);
	fault_done(&why);
	return false;
}

void work_fail_short(struct work *w)
{
	struct fault why = { 0 };

	fault_set(&why, FAULT_INTERNAL, "out of memory");
	work_fail(w, &why);
	fault_done(&why);
}

void work_fail_cancelled(struct work *w)
{
	struct fault why = { 0 };

	cancel_fault(turn_cancel(w->turn), &why);
	work_fail(w, &why);
	fault_done(&why);
}

void work_finish(struct work *w, json_t *chat)
{
	struct turn *t = w->turn;

	if (!chat || turn_is_short(t) || context_is_short(w->context)) {
		json_decref(chat);
		work_fail_short(w);
		return;
	}
	work_free(w);
	turn_done(t, chat);
}

json_t *work_chat(struct work *w, const char *type, json_t *fields,
		  const struct model_usage *u)
{
	json_t *chat = chat_new(type, w->agent->name, fields);

	if (u && chat) {
		chat_set_usage(chat, u);
		(void)json_object_set_new(chat, "id", json_string(w->think.id));
	}
	return chat;
}

void work_thought(struct work *w, const struct model_result *r)
{
	if (r->thought && *r->thought)
		turn_event(w->turn, chat_new("ThoughtEvent", w->agent->name,
					     json_pack("{s:s, s:s}", "content",
						       r->thought, "id",
						       w->think.thought_id)));
}

void work_keep(struct work *w, const struct model_result *r)
{
	json_t *m = json_pack("{s:s, s:s, s:s}", "role", "assistant", "source",
			      w->agent->name, "content",
			      r->content ? r->content : "");

	if (m && r->thought)
		(void)json_object_set_new(m, "thought",
					  json_string(r->thought));
	context_add(w->context, m);
}

static const char *const finishes[] = {
	[FINISH_STOP] = "stop",
	[FINISH_LENGTH] = "length",
	[FINISH_CALLS] = "function_calls",
	[FINISH_FILTER] = "content_filter",
	[FINISH_UNKNOWN] = "unknown",
};

void work_fail_empty(struct work *w, const struct model_result *r)
{
	struct fault why = { 0 };

	fault_set(&why,
		  r->finish == FINISH_FILTER ? FAULT_REJECTED : FAULT_HANDLER,
		  "the model gave no answer, only '%s'", finishes[r->finish]);
	work_fail(w, &why);
	fault_done(&why);
}

/*
 * The context that a handoff brings was made by another agent: its tool
 * results come only behind calls, and nothing in it speaks as the system.
 */
static bool may_bring(const json_t *m, bool *has_calls)
{
	const char *role = setting_text(m, "role", "");

	if (strcmp(role, "tool") == 0)
		return *has_calls &&
		       json_is_array(json_object_get(m, "results"));
	*has_calls = json_array_size(json_object_get(m, "calls")) > 0;
	return strcmp(role, "user") == 0 || strcmp(role, "assistant") == 0;
}

void work_hear(struct work *w, const json_t *chat)
{
	bool has_calls = false;
	size_t i;
	json_t *m;

	if (!chat_is_message(chat))
		return;
	json_array_foreach(json_object_get(chat, "context"), i,
			   m) if (may_bring(m, &has_calls))
		context_add(w->context, json_incref(m));
	context_add(w->context, chat_to_model(chat));
}
