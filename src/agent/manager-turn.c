/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One turn at the manager: speakers are asked, their events and answers come
 * in, and when nobody is asked any more it is over, or waits for people.
 */

#include <string.h>

#include "agent/team-parts.h"
#include "base/clock.h"
#include "base/util.h"

/* A turn has no time limit of its own; requests must have one. */
#define TURN_US (7LL * 24 * 3600 * 1000000)

/* --- what comes out --- */

void team_emit(struct team *t, const char *from, json_t *event)
{
	const struct send_options o = { .from = from,
					.traceparent = run_trace(t) };
	const char *type = chat_type(event);
	struct message *m;
	char name[128];

	(void)snprintf(name, sizeof(name), "cordon.%s",
		       type ? type : "Unknown");
	m = message_new(name, json_incref(event));
	if (!m)
		return;
	runtime_publish(t->runtime, m, t->output_topic, &o, NULL, NULL);
	message_unref(m);
}

/* Part of the result, and of what conditions look at; when it has ended. */
static int keep(struct team *t, json_t *event)
{
	account_count(&t->run.used, event);
	return json_array_append(t->run.open, event);
}

void team_note(struct team *t, json_t *event)
{
	if (!event)
		return;
	team_emit(t, t->manager_id, event);
	(void)keep(t, event);
	json_decref(event);
}

void team_hear(struct team *t, const struct member *m, json_t *event)
{
	team_emit(t, m->id, event);
	if (!chat_is_chunk(event))
		(void)keep(t, event);
}

/* --- a turn is over --- */

static void after_turn(struct team *t)
{
	char *why = NULL;

	t->run.turns++;
	if (team_is_stopped(t, false) || team_is_spent(t))
		return;
	turn_close(t);
	if (t->max_turns > 0 && t->run.turns >= t->max_turns) {
		if (asprintf(&why, "Maximum number of turns %lld reached.",
			     (long long)t->max_turns) < 0)
			why = NULL;
		run_end(t, "completed", why);
		return;
	}
	team_checkpoint(t, "turn");
	t->state = TEAM_READY;
	loop_soon(t->loop, &t->step);
}

static const char *pending_reason(const struct member *m, const json_t *what)
{
	const char *tool = json_string_value(json_object_get(what, "tool"));
	const char *kind = json_string_value(json_object_get(what, "kind"));

	if (kind && strcmp(kind, "input") == 0)
		return m->agent->name;
	return tool ? tool : m->agent->name;
}

static void suspend(struct team *t, const struct member *m)
{
	const json_t *what = json_object_get(m->pending, "what");
	const char *kind;

	if (json_is_array(what))
		what = json_array_get(what, 0);
	kind = json_string_value(json_object_get(what, "kind"));
	run_end(t, "suspended",
		team_reason(kind && strcmp(kind, "input") == 0
				    ? "Input required"
				    : "Approval required",
			    pending_reason(m, what)));
}

/* When nobody is asked any more: over, or waiting for people. */
static void settle(struct team *t)
{
	const struct member *waiting = NULL;

	for (size_t i = t->n_members; i-- > 0;) {
		if (t->members[i]->is_asked)
			return;
		if (t->members[i]->pending)
			waiting = t->members[i];
	}
	if (t->state != TEAM_SPEAKING)
		return;
	if (!waiting)
		after_turn(t); /* recorded, also if it was cancelled by now */
	else if (!team_cut_short(t))
		suspend(t, waiting);
}

/* --- asking and answers --- */

static void ask(struct team *t, struct member *m, const char *type,
		json_t *data);

static void note_error(struct team *t, const struct member *m,
		       const struct fault *why)
{
	team_note(t, chat_new("ErrorEvent", m->agent->name,
			      json_pack("{s:o}", "error", fault_json(why))));
}

static void turn_failed(struct team *t, struct member *m,
			const struct fault *why)
{
	struct fault f = { 0 };

	if (t->state != TEAM_SPEAKING || team_cut_short(t))
		return;
	fault_copy(&f, why);
	if (!f.agent)
		f.agent = strdup(m->agent->name);
	if (t->on_error != ERROR_STOP)
		note_error(t, m, &f);
	if (t->on_error == ERROR_RETRY && m->failures++ < t->max_retries) {
		manager_ask(t, m);
	} else if (t->on_error == ERROR_SKIP) {
		settle(t);
	} else {
		cancel_fire(t->run.cancel, "another participant has failed");
		turn_undo(t);
		run_fail(t, &f);
	}
	fault_done(&f);
}

/* What was said is part of the thread; its speaker need not hear it. */
static void record(struct team *t, struct member *m, json_t *chat)
{
	size_t at = json_array_size(t->thread);

	team_emit(t, m->id, chat);
	if ((keep(t, chat) | json_array_append(t->thread, chat)) < 0) {
		run_short(t);
		return;
	}
	m->heard = m->upto == at ? at + 1 : m->upto;
	turn_take(t);
	settle(t);
}

static void wait_for_people(struct team *t, struct member *m, json_t *what)
{
	m->pending = json_pack("{s:I, s:O}", "upto", (json_int_t)m->upto,
			       "what", what);
	if (m->pending)
		settle(t);
	else
		run_short(t);
}

static void take_answer(struct team *t, struct member *m, const json_t *data)
{
	json_t *chat = json_object_get(data, "chat");
	json_t *error = json_object_get(data, "error");
	json_t *pending = json_object_get(data, "pending");
	struct fault why = { 0 };

	turn_take(t);
	if (json_is_object(chat)) {
		record(t, m, chat);
	} else if (pending && !json_is_null(pending)) {
		wait_for_people(t, m, pending);
	} else {
		if (fault_load(&why, error, NULL) < 0)
			fault_set(&why, FAULT_HANDLER, "no answer");
		turn_failed(t, m, &why);
		fault_done(&why);
	}
}

/* It has answered, and a filter kept the answer: it was never said. */
static void forget_turn(struct member *m)
{
	struct err err = { 0 };

	if (m->has_said && m->was)
		(void)agent_load(m->agent, m->was, &err);
}

static void answered(void *arg, struct message *reply, const struct fault *why)
{
	struct member *m = arg;
	struct team *t = m->team;

	/* One of a run that has ended without it is of no use. */
	if (!t->is_dead && t->state == TEAM_SPEAKING &&
	    m->serial == t->serial) {
		m->is_asked = false;
		json_decref(take_ptr(m->pending));
		if (why)
			forget_turn(m);
		json_decref(take_ptr(m->was));
		if (why)
			turn_failed(t, m, why);
		else
			take_answer(t, m, reply ? reply->data : NULL);
	}
	team_unref(t);
}

static void ask(struct team *t, struct member *m, const char *type,
		json_t *data)
{
	const struct send_options o = { .from = t->manager_id,
					.deadline = clock_us() + TURN_US,
					.traceparent = run_trace(t),
					.cancel = t->run.cancel };
	struct message *message = data ? message_new(type, data) : NULL;

	if (!message) {
		run_short(t);
		return;
	}
	m->is_asked = true;
	m->has_said = false;
	json_decref(m->was);
	m->was = agent_save(m->agent);
	m->serial = t->serial;
	(void)team_ref(t);
	runtime_send(t->runtime, message, m->id, &o, answered, m);
	message_unref(message);
}

/* What of the thread it has not heard, but for its own words. */
static json_t *news_for(const struct team *t, const struct member *m)
{
	json_t *list = json_array();

	for (size_t i = m->heard; list && i < json_array_size(t->thread); i++) {
		json_t *c = json_array_get(t->thread, i);
		const char *source = chat_source(c);

		if (source && strcmp(source, m->agent->name) == 0)
			continue;
		(void)json_array_append(list, c);
	}
	return list;
}

void manager_ask(struct team *t, struct member *m)
{
	ask(t, m, "cordon.team.Speak",
	    json_pack("{s:s, s:I, s:o, s:o}", "run", t->run.id, "upto",
		      (json_int_t)json_array_size(t->thread), "used",
		      account_json(&t->run.used), "messages", news_for(t, m)));
}

static json_t *answer_to(const json_t *what, const json_t *answers)
{
	const char *id = json_string_value(json_object_get(what, "id"));

	return id ? json_object_get(answers, id) : NULL;
}

/* It stays pending until the answer is there: a crash loses nothing. */
void manager_ask_again(struct team *t, struct member *m, const json_t *answers)
{
	json_t *what = json_object_get(m->pending, "what");

	m->failures = 0;
	ask(t, m, "cordon.team.Resume",
	    json_pack("{s:s, s:O, s:o, s:O, s:O?}", "run", t->run.id, "upto",
		      json_object_get(m->pending, "upto"), "used",
		      account_json(&t->run.used), "suspended", what, "answer",
		      answer_to(what, answers)));
}
