/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A participant: an actor around an agent. It is asked to speak, sends the
 * agent's events to the manager as they come, one message each, and answers
 * when all of them have arrived:
 *
 *	{"chat":...,"error":...,"pending":...}
 *
 * of which one is not null. An agent that fails is such an answer too; a
 * fault of the request itself means that the runtime or a filter stood in
 * between. No more than WINDOW events are on their way at a time, so a burst
 * waits here and not in a mailbox that is full.
 *
 * The budget is watched here, where the events are: a turn that passes it is
 * cancelled before the agent goes on.
 */

#include <string.h>

#include "agent/team-parts.h"
#include "base/util.h"

#define WINDOW     64
#define MAX_EVENTS 100000 /* that wait */

static void turn_ended(struct member *m)
{
	m->turn = NULL;
	m->delivery = NULL;
	m->is_over = false;
	m->n_sent = 0;
	json_decref(take_ptr(m->queue));
	json_decref(take_ptr(m->chat));
	json_decref(take_ptr(m->waits));
	cancel_unref(take_ptr(m->cancel));
	fault_done(&m->why);
}

static void refuse(struct delivery *d, enum fault_code code, const char *text)
{
	struct fault why = { 0 };

	fault_set(&why, code, "%s", text);
	delivery_fail(d, &why);
	fault_done(&why);
}

static void answer(struct member *m)
{
	struct delivery *d = m->delivery;
	json_t *error = m->why.code ? fault_json(&m->why) : NULL;
	json_t *o = json_pack("{s:O?, s:o?, s:O?}", "chat", m->chat, "error",
			      error, "pending", m->waits);
	struct message *reply = o ? message_new("cordon.team.Answer", o) : NULL;

	turn_ended(m);
	if (reply)
		delivery_reply(d, reply);
	else
		refuse(d, FAULT_INTERNAL, "out of memory");
}

/* --- events on their way --- */

static void pump(struct member *m);

static struct message *wrap(json_t *event)
{
	const char *type = chat_type(event);
	char name[128];

	(void)snprintf(name, sizeof(name), "cordon.%s",
		       type ? type : "Unknown");
	return message_new(name, json_incref(event));
}

/* One that a filter dropped is nobody's business; others are missed. */
static void note_lost(struct member *m, const struct fault *why)
{
	json_t *e;

	if (why->code == FAULT_DROPPED || m->has_lost)
		return;
	m->has_lost = true; /* once in a turn */
	e = chat_new("ErrorEvent", m->agent->name,
		     json_pack("{s:o}", "error", fault_json(why)));
	if (e)
		(void)json_array_append_new(m->queue, e);
}

static void was_told(void *arg, struct message *reply, const struct fault *why)
{
	struct member *m = arg;
	struct team *t = m->team;

	(void)reply;
	m->n_open--;
	if (!t->is_dead && m->delivery) {
		if (why)
			note_lost(m, why);
		pump(m);
	}
	team_unref(t);
}

static void tell(struct member *m, json_t *event)
{
	const struct send_options o = { .from = m->id,
					.traceparent = run_trace(m->team) };
	struct message *message = wrap(event);

	if (!message) {
		cancel_fire(m->cancel, "out of memory");
		return;
	}
	m->n_open++;
	(void)team_ref(m->team);
	runtime_send(m->team->runtime, message, m->team->manager_id, &o,
		     was_told, m);
	message_unref(message);
}

static void pump(struct member *m)
{
	while (m->n_open < WINDOW && m->n_sent < json_array_size(m->queue))
		tell(m, json_array_get(m->queue, m->n_sent++));
	if (m->n_sent == json_array_size(m->queue)) {
		(void)json_array_clear(m->queue);
		m->n_sent = 0;
	}
	if (m->is_over && m->n_open == 0 && json_array_size(m->queue) == 0)
		answer(m);
}

/* --- the agent --- */

static void watch_budget(struct member *m, const json_t *event)
{
	const char *what;
	char text[64];

	account_count(&m->used, event);
	what = budget_passed(&m->team->budget, &m->used);
	if (!what)
		return;
	(void)snprintf(text, sizeof(text), "Budget exceeded: %s", what);
	cancel_fire(m->cancel, text);
}

static void on_event(void *arg, json_t *event)
{
	struct member *m = arg;

	/* The run may have ended without it. */
	if (m->turn_serial != m->team->serial)
		return;
	if (json_array_size(m->queue) >= MAX_EVENTS ||
	    json_array_append(m->queue, event) < 0)
		cancel_fire(m->cancel, "more events than can be told");
	watch_budget(m, event);
	pump(m);
}

static void on_over(void *arg, json_t *chat, const struct fault *why,
		    json_t *pending)
{
	struct member *m = arg;

	m->turn = NULL;
	m->has_said = chat != NULL;
	m->is_over = true;
	m->chat = json_incref(chat);
	m->waits = json_incref(pending);
	if (why)
		fault_copy(&m->why, why);
	pump(m);
}

static const struct turn_events events = { .event = on_event, .over = on_over };

static struct turn *begin(struct member *m, const json_t *data, bool is_resume)
{
	const struct turn_asker who = { .team = m->team->name,
					.run = m->team->run.id,
					.cancel = m->cancel,
					.events = &events,
					.arg = m };

	if (is_resume)
		return turn_resume(m->agent, json_object_get(data, "suspended"),
				   json_object_get(data, "answer"), &who);
	return turn_begin(m->agent, json_object_get(data, "messages"), &who);
}

static void speak(struct member *m, struct delivery *d, bool is_resume)
{
	const json_t *data = delivery_message(d)->data;

	m->upto = (size_t)json_integer_value(json_object_get(data, "upto"));
	account_load(&m->used, json_object_get(data, "used"));
	m->delivery = d;
	m->turn_serial = m->team->serial;
	m->has_lost = false;
	m->queue = json_array();
	m->cancel = cancel_new(m->team->loop, delivery_cancel(d), 0);
	if (m->queue && m->cancel)
		m->turn = begin(m, data, is_resume);
	if (m->turn)
		turn_set_trace(m->turn, delivery_traceparent(d));
	if (m->turn)
		return;
	turn_ended(m);
	refuse(d, FAULT_INTERNAL, "out of memory");
}

static void handle(struct actor *a, struct delivery *d)
{
	struct member *m = (struct member *)a;
	const char *type = delivery_message(d)->type;
	bool is_resume = strcmp(type, "cordon.team.Resume") == 0;

	if (m->team->is_dead)
		refuse(d, FAULT_UNAVAILABLE, "the team has gone");
	else if (is_resume || strcmp(type, "cordon.team.Speak") == 0)
		speak(m, d, is_resume);
	else
		refuse(d, FAULT_CANT_HANDLE,
		       "a participant is asked to speak, nothing else");
}

void participant_drop(struct member *m)
{
	struct delivery *d = m->delivery;

	if (!d)
		return;
	turn_drop(m->turn);
	turn_ended(m);
	refuse(d, FAULT_CANCELLED, "the team goes");
}

static void participant_free(struct actor *a)
{
	team_unref(((struct member *)a)->team);
}

const struct actor_ops participant_ops = { .handle = handle,
					   .free = participant_free };
