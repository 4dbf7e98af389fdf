/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation
 *
 * The manager turns the wheel: choose who is next, ask them to speak, record
 * what they answered, look whether that was enough. manager_step() is the one
 * way from one turn to the next, run by the loop, so a pause or a cancel
 * between two turns is seen there and nowhere else.
 *
 * A turn is open from choosing to recording; `before` is what the kind knew
 * when it was opened. A turn that comes to nothing is undone by loading that
 * again; nothing else has changed then. A turn that is suspended stays open:
 * speakers who have answered are recorded, those who wait are kept in their
 * members, and manager_resume() asks only them again.
 *
 * Time that is over, a budget that is passed and a caller who cancels all
 * fire the run's token; the turn then ends by itself, and `cut_short` finds
 * out which it was.
 */

#include <string.h>

#include "agent/team-parts.h"
#include "agent/termination.h"
#include "base/clock.h"
#include "base/util.h"

/* --- choosing --- */

static void ask_all(struct team *t, const json_t *names)
{
	size_t i;
	json_t *name;

	t->state = TEAM_SPEAKING;
	if (t->emit_events)
		team_note(t, chat_new("SelectSpeakerEvent", t->name,
				      json_pack("{s:O}", "content", names)));
	json_array_foreach((json_t *)names, i, name)
	{
		struct member *m = team_find(t, json_string_value(name));

		m->failures = 0;
		manager_ask(t, m);
	}
}

static bool are_members(struct team *t, const json_t *names, struct fault *bad)
{
	size_t i;
	json_t *name;

	json_array_foreach((json_t *)names, i, name)
	{
		const char *text = json_string_value(name);

		if (text && team_find(t, text))
			continue;
		fault_set(bad, FAULT_NOT_FOUND,
			  "the next speaker '%s' is no participant",
			  text ? text : "");
		return false;
	}
	return true;
}

static void chosen(void *arg, json_t *names, const struct fault *why)
{
	struct team *t = arg;
	struct fault bad = { 0 };

	if (t->state != TEAM_CHOOSING || team_cut_short(t))
		return;
	if (why)
		fault_copy(&bad, why);
	if (!why && json_array_size(names) == 0) {
		turn_undo(t);
		run_end(t, "completed", strdup("The group chat is stopped."));
	} else if (!why && are_members(t, names, &bad)) {
		ask_all(t, names);
	} else {
		turn_undo(t);
		run_fail(t, &bad);
	}
	fault_done(&bad);
}

static bool is_too_long(struct team *t)
{
	struct fault why = { 0 };

	if (json_array_size(t->thread) < TEAM_MAX_THREAD)
		return false;
	fault_set(&why, FAULT_TOO_LARGE,
		  "the conversation has %d messages; reset the team",
		  TEAM_MAX_THREAD);
	run_fail(t, &why);
	fault_done(&why);
	return true;
}

void manager_step(struct task *task)
{
	struct team *t = (struct team *)((char *)task -
					 offsetof(struct team, step));
	struct speaker_choice choice = { chosen, t };

	if (t->state != TEAM_READY || team_cut_short(t) || is_too_long(t))
		return;
	if (t->is_paused)
		return; /* team_unpause() comes here again */
	if (run_watch(t) < 0) {
		run_short(t);
		return;
	}
	t->before = t->kind->save ? t->kind->save(t->own) : NULL;
	t->state = TEAM_CHOOSING;
	t->kind->next(t->own, t->thread, t->run.cancel, choice);
}

/* --- a run begins --- */

static void take_task(struct team *t, const json_t *messages)
{
	size_t i;
	json_t *m;

	json_array_foreach((json_t *)messages, i, m)
	{
		(void)json_array_append(t->thread, m);
		(void)json_array_append(t->run.fresh, m);
		if (!t->output_task)
			continue;
		(void)json_array_append(t->run.messages, m);
		team_emit(t, t->manager_id, m);
	}
}

static bool has_terminated(struct team *t)
{
	if (!t->stop || !t->stop->reason)
		return false;
	run_end(t, "completed",
		strdup("The group chat has already terminated."));
	return true;
}

static void start(struct team *t, const json_t *data)
{
	t->state = TEAM_READY;
	if (has_terminated(t))
		return;
	take_task(t, json_object_get(data, "messages"));
	if (team_is_stopped(t, true))
		return;
	(void)json_array_clear(t->run.fresh);
	loop_soon(t->loop, &t->step);
}

/* Who it is that speaks; NULL: nobody who was asked. */
static struct member *speaker(const struct team *t, const struct delivery *d)
{
	const char *from = delivery_from(d);

	for (size_t i = 0; from && i < t->n_members; i++)
		if (strcmp(t->members[i]->id, from) == 0)
			return t->members[i]->is_asked ? t->members[i] : NULL;
	return NULL;
}

static bool is_start(const struct team *t, const struct message *m)
{
	const char *run = json_string_value(json_object_get(m->data, "run"));

	return t->state == TEAM_STARTING && run &&
	       strcmp(m->type, "cordon.team.Start") == 0 &&
	       strcmp(run, t->run.id) == 0;
}

static void handle(struct actor *a, struct delivery *d)
{
	struct team *t = ((struct team_actor *)a)->team;
	struct message *message = delivery_message(d);
	struct member *m = speaker(t, d);
	struct fault why = { 0 };

	if (!t->is_dead && is_start(t, message)) {
		start(t, message->data);
		delivery_reply(d, NULL);
		return;
	}
	if (!t->is_dead && t->state == TEAM_SPEAKING && m) {
		team_hear(t, m, message->data);
		delivery_reply(d, NULL);
		return;
	}
	fault_set(&why, FAULT_CANT_HANDLE, "the team does not wait for this");
	delivery_fail(d, &why);
	fault_done(&why);
}

void manager_refused(struct team *t, const struct fault *why)
{
	if (t->state == TEAM_STARTING && !team_cut_short(t))
		run_fail(t, why);
}

void manager_resume(struct team *t, const json_t *answers)
{
	bool is_waiting = false;

	for (size_t i = 0; i < t->n_members; i++)
		is_waiting |= t->members[i]->pending != NULL;
	t->state = is_waiting ? TEAM_SPEAKING : TEAM_READY;
	if (run_watch(t) < 0)
		run_short(t);
	if (!is_waiting)
		loop_soon(t->loop, &t->step);
	for (size_t i = 0; i < t->n_members; i++)
		if (t->members[i]->pending && t->state == TEAM_SPEAKING)
			manager_ask_again(t, t->members[i], answers);
}

const struct actor_ops manager_ops = { .handle = handle,
				       .free = team_actor_free };
