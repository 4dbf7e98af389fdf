/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A turn of the assistant: messages in, memory, model; then calls or an
 * answer. Nothing of it stays in the history unless the turn is done.
 */

#include <string.h>

#include "agent/assistant.h"
#include "agent/screening.h"
#include "runtime/filter-policy.h"

#define STATE   "assistant.turn"
#define VERSION 1

static void release(struct work *w)
{
	struct speech *s = (struct speech *)w;

	json_decref(s->calls);
	json_decref(s->results);
	json_decref(s->repair);
}

/* NULL: the turn has failed. */
static struct speech *speech_new(struct assistant *a, struct turn *t)
{
	struct work *w = work_new(sizeof(struct speech), &a->work, &a->agent,
				  a->context, a->model, t);
	struct speech *s = (struct speech *)w;

	if (!w) {
		turn_done(t, NULL);
		return NULL;
	}
	w->release = release;
	work_limits(w, a->config);
	w->think.reminders = json_array();
	s->a = a;
	s->calls = json_array();
	s->results = json_array();
	if (s->calls && s->results && w->think.reminders)
		return work_tools(w, a->belt.set) ? s : NULL;
	work_fail_short(w);
	return NULL;
}

/* false: the turn has failed. */
static bool remember(struct speech *s, const struct memory *m)
{
	json_t *found = memory_query(m, "");
	struct fault why = { 0 };

	if (!screening_prompt(&s->a->agent, ROLE_TOOL | ROLE_SYSTEM, "memory",
			      &found, &why)) {
		json_decref(found);
		work_fail(&s->w, &why);
		fault_done(&why);
		return false;
	}
	if (json_array_size(found) > 0) {
		json_t *shown = memory_to_model(found);

		turn_event(s->w.turn,
			   chat_new("MemoryQueryEvent", s->a->agent.name,
				    json_pack("{s:O}", "content", found)));
		if (json_array_append_new(s->w.think.reminders, shown) < 0)
			turn_event(s->w.turn, NULL);
	}
	json_decref(found);
	return true;
}

static void answered(struct think *k, const struct model_result *r,
		     const struct fault *why)
{
	struct speech *s = (struct speech *)((char *)k -
					     offsetof(struct speech, w.think));

	if (why) {
		work_fail(&s->w, why);
		return;
	}
	work_thought(&s->w, r);
	if (json_array_size(r->calls) > 0 && !s->is_last && !s->repair)
		assistant_call(s, r);
	else if (r->content || r->finish == FINISH_STOP)
		assistant_answer(s, r);
	else
		work_fail_empty(&s->w, r);
}

void assistant_ask(struct speech *s)
{
	bool may_call = !s->is_last && !s->repair;
	json_t *tools = assistant_tools(s->a);
	struct think_about q = {
		.system = s->a->system,
		.after = s->repair,
		.tools = json_array_size(tools) > 0 ? tools : NULL,
		.choice = may_call ? NULL : "none",
		.output_schema = s->a->schema,
	};

	s->w.think.done = answered;
	think_start(&s->w.think, &q);
	json_decref(tools);
}

void assistant_begin(struct agent *agent, struct turn *t)
{
	struct assistant *a = (struct assistant *)agent;
	struct speech *s = speech_new(a, t);
	size_t i;
	json_t *m;

	if (!s)
		return;
	json_array_foreach(turn_messages(t), i, m) work_hear(&s->w, m);
	for (i = 0; i < a->n_memories; i++)
		if (!remember(s, a->memories[i]))
			return;
	assistant_ask(s);
}

void assistant_abandon(struct agent *agent, struct turn *t)
{
	struct work *w = ((struct assistant *)agent)->work;

	(void)t;
	if (!w)
		return;
	if (w->batch)
		assistant_give_up((struct speech *)w);
	work_drop(w);
}

/* --- waiting for a person --- */

void assistant_suspend(struct speech *s)
{
	json_t *o = saved_new(STATE, VERSION, NULL);

	if (json_object_set(o, "all_calls", s->calls) < 0 ||
	    json_object_set(o, "all_results", s->results) < 0 ||
	    json_object_set(o, "reminders", s->w.think.reminders) < 0 ||
	    json_object_set_new(o, "round", json_integer(s->round)) < 0) {
		json_decref(o);
		o = NULL;
	}
	work_suspend(&s->w, o);
}

void assistant_resume(struct agent *agent, struct turn *t,
		      const json_t *suspended, const json_t *answer)
{
	const json_t *state = json_object_get(suspended, "state");
	struct speech *s = speech_new((struct assistant *)agent, t);
	json_t *calls;

	if (!s)
		return;
	/* A filter may change them; what was suspended stays as it is. */
	calls = json_deep_copy(json_object_get(state, "calls"));
	s->round = setting_int(state, "round", 0);
	if (work_list(s->calls, state, "all_calls") == 0 &&
	    work_list(s->results, state, "all_results") == 0 &&
	    work_list(s->w.think.reminders, state, "reminders") == 0)
		(void)assistant_batch(s, calls);
	json_decref(calls);
	if (work_resume(&s->w, STATE, VERSION, suspended, answer))
		batch_start(s->w.batch);
}
