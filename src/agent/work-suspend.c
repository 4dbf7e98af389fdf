/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A turn that waits for a person, and goes on later, maybe in another
 * process.
 *
 * What is saved is the turn's own part of the history, the calls with their
 * exact arguments, the results that are there already and the approvals that
 * are asked for. The history itself is put back: whether the answer ever
 * comes is not known. On resume that part is added again, calls that have a
 * result are not made again, and the others are made with the stored text.
 *
 *	{"kind":"approval","id","agent","tool","approval":{the record},
 *	 "state":{"type":the kind's,"version":n, ... what the kind adds ...,
 *		  "added":[messages],"calls":[...],"results":[result or null],
 *		  "approvals":[record or null],"details":[...],
 *		  "used":{"prompt","completion","cost"},
 *		  "summed":{what was summed up in the turn} or null}}
 */

#include <errno.h>
#include <string.h>

#include "agent/work.h"

static int add_common(const struct work *w, json_t *state)
{
	const struct batch *b = w->batch;
	const struct model_usage *u = &w->think.used;
	json_t *more = json_pack("{s:o, s:O, s:O, s:O, s:O, s:{s:I, s:I, s:f}, "
				 "s:O?}",
				 "added", context_since(w->context, w->mark),
				 "calls", b->calls, "results", b->results,
				 "approvals", b->approvals, "details",
				 b->details, "used", "prompt",
				 (json_int_t)u->prompt, "completion",
				 (json_int_t)u->completion, "cost", u->cost,
				 "summed", context_summed(w->context));
	int r = more ? json_object_update(state, more) : -1;

	json_decref(more);
	return r;
}

/*
 * Of a call of this agent's, or of somebody within one: then it is told as
 * that one has asked.
 */
static json_t *pending_of(const struct work *w, json_t *state)
{
	size_t i = batch_waiting(w->batch);
	json_t *record = json_array_get(w->batch->approvals, i);
	const char *kind = setting_text(record, "kind", "approval");
	const char *tool = setting_text(json_array_get(w->batch->calls, i),
					"name", "");
	bool is_input = strcmp(kind, "input") == 0;
	json_t *asked = json_copy(record);
	json_t *o;
	json_t *copy;

	(void)json_object_del(asked, "inner");
	o = json_pack("{s:s, s:s, s:s, s:s, s:O, s:O}", "kind", kind, "id",
		      setting_text(record, "id", ""), "agent", w->agent->name,
		      "tool", setting_text(record, "tool", tool),
		      is_input ? "asked" : "approval", asked, "state", state);
	if (is_input && o)
		(void)json_object_set_new(
			o, "prompt",
			json_string(setting_text(record, "prompt", "")));
	json_decref(asked);
	/* The lists go on to be changed; what is handed out must not. */
	copy = o ? json_deep_copy(o) : NULL;
	json_decref(o);
	return copy;
}

void work_suspend(struct work *w, json_t *state)
{
	struct turn *t = w->turn;
	json_t *pending = NULL;

	if (state && !context_is_short(w->context) && add_common(w, state) == 0)
		pending = pending_of(w, state);
	json_decref(state);
	if (!pending) {
		work_fail_short(w);
		return;
	}
	/* Calls that were made are not made again: they stay remembered. */
	json_decref(take_ptr(w->tools_were));
	work_drop(w);
	turn_suspend(t, pending);
}

/* --- and back --- */

int work_list(json_t *to, const json_t *state, const char *name)
{
	const json_t *from = json_object_get(state, name);

	if (!json_is_array(from) || json_array_clear(to) < 0)
		return -EINVAL;
	return json_array_extend(to, (json_t *)from) < 0 ? -ENOMEM : 0;
}

static bool is_state(const json_t *s, const char *type, int version)
{
	size_t n = json_array_size(json_object_get(s, "calls"));

	return saved_check(s, type, version, NULL) == 0 && n > 0 &&
	       json_array_size(json_object_get(s, "results")) == n &&
	       json_array_size(json_object_get(s, "approvals")) == n &&
	       json_array_size(json_object_get(s, "details")) == n;
}

static void restore_used(struct work *w, const json_t *used)
{
	w->think.used.prompt = setting_int(used, "prompt", 0);
	w->think.used.completion = setting_int(used, "completion", 0);
	w->think.used.cost = json_number_value(json_object_get(used, "cost"));
}

static int restore(struct work *w, const json_t *s)
{
	struct batch *b = w->batch;
	size_t i;
	json_t *m;

	json_array_foreach(json_object_get(s, "added"), i, m)
		context_add(w->context, json_incref(m));
	restore_used(w, json_object_get(s, "used"));
	if (context_restore(w->context, json_object_get(s, "summed")) < 0)
		return -ENOMEM;
	if (work_list(b->results, s, "results") < 0 ||
	    work_list(b->approvals, s, "approvals") < 0 ||
	    work_list(b->details, s, "details") < 0)
		return -EINVAL;
	return 0;
}

/*
 * A plain no is final. A yes is only looked up: the toolset asks the store
 * whether it was given, and to these very arguments.
 */
static void apply_no(struct batch *b, const json_t *suspended,
		     const json_t *answer)
{
	const char *id = setting_text(suspended, "id", "");

	if (!json_is_false(json_object_get(answer, "approved")))
		return;
	for (size_t i = 0; i < b->n; i++) {
		const json_t *record = json_array_get(b->approvals, i);

		/* Within a call it is for who has asked there. */
		if (!batch_has(b, i) && *id &&
		    !json_object_get(record, "inner") &&
		    strcmp(setting_text(record, "id", ""), id) == 0)
			batch_set(b, i, true,
				  "Tool call was not approved. Reason: %s",
				  setting_text(answer, "reason", "none given"));
	}
}

static void refuse(struct work *w)
{
	struct fault why = { 0 };

	fault_set(&why, FAULT_CANT_HANDLE,
		  "what was suspended is no turn of this agent");
	work_fail(w, &why);
	fault_done(&why);
}

bool work_resume(struct work *w, const char *type, int version,
		 const json_t *suspended, const json_t *answer)
{
	const json_t *state = json_object_get(suspended, "state");

	if (!w->batch || !is_state(state, type, version) ||
	    restore(w, state) < 0) {
		refuse(w);
		return false;
	}
	w->batch->answer_to = setting_text(suspended, "id", "");
	w->batch->answer = json_incref((json_t *)answer);
	if (json_is_object(answer))
		turn_event(w->turn,
			   chat_new("ApprovalDecidedEvent", w->agent->name,
				    json_pack("{s:O}", "decision", answer)));
	apply_no(w->batch, suspended, answer);
	return true;
}
