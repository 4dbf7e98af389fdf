/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A run's begin and end, and its result as the caller hears it: everything
 * that is said on "<team>.output", in order, then the TaskResult.
 *
 * The result travels without its messages, which the caller has heard; they
 * are put in where it arrives.
 */

#include <string.h>

#include "agent/team-parts.h"
#include "base/clock.h"
#include "base/util.h"
#include "runtime/trace.h"

static void on_cancel(struct cancel_hook *h, struct cancel *c)
{
	struct run *r = (struct run *)((char *)h - offsetof(struct run, hook));
	struct team *t = (struct team *)((char *)r -
					 offsetof(struct team, run));

	(void)c;
	loop_soon(t->loop, &t->step);
}

static void conclude(struct team *t, const json_t *end);

static void on_mute(struct task *task)
{
	struct run *r = (struct run *)((char *)task -
				       offsetof(struct run, mute));

	conclude((struct team *)((char *)r - offsetof(struct team, run)), NULL);
}

static void on_time(struct timer *timer)
{
	struct run *r = (struct run *)((char *)timer -
				       offsetof(struct run, timer));

	cancel_fire(r->cancel, "its time is over");
}

const char *team_run_id(const struct team *t)
{
	return t->run.id[0] ? t->run.id : NULL;
}

int run_begin(struct team *t, struct cancel *cancel,
	      const struct team_events *e, void *arg, struct err *err)
{
	struct run *r = &t->run;

	if (!r->is_open) {
		run_clear(t);
		chat_id(r->id);
		r->messages = json_array();
		r->fresh = json_array();
	}
	json_decref(r->open);
	json_decref(r->spare);
	r->open = json_array();
	r->spare = json_pack("{s:s, s:s, s:[], s:[]}", "status", "failed",
			     "stop_reason", "Error: internal: out of memory",
			     "messages", "pending");
	r->cancel = cancel_new(t->loop, cancel, 0);
	if (!r->messages || !r->fresh || !r->open || !r->spare || !r->cancel) {
		run_clear(t);
		return err_set(err, ENOMEM, "out of memory");
	}
	r->is_open = true;
	r->started = clock_us() - r->elapsed;
	r->events = e;
	r->arg = arg;
	r->hook.fired = on_cancel;
	r->timer.fire = on_time;
	r->mute.run = on_mute;
	t->serial++;
	cancel_hook(r->cancel, &r->hook);
	r->span = span_begin(runtime_tracer(t->runtime), SPAN_AGENT, t->name,
			     NULL);
	span_text(r->span, "gen_ai.conversation.id", r->id);
	return 0;
}

const char *run_trace(const struct team *t)
{
	return span_parent(t->run.span, NULL);
}

int run_watch(struct team *t)
{
	struct run *r = &t->run;
	int64_t at = t->stop ? termination_deadline(t->stop, r->started) : 0;
	double wall = t->budget.wall_seconds;
	int64_t end = r->started + (int64_t)(wall * 1e6);

	if (wall >= 0 && (at == 0 || end < at))
		at = end;
	if (at == 0) {
		timer_stop(&r->timer);
		return 0;
	}
	return timer_set(t->loop, &r->timer, at);
}

static void let_go(struct run *r)
{
	span_end(take_ptr(r->span), &r->why);
	timer_stop(&r->timer);
	cancel_unhook(&r->hook);
	cancel_unref(take_ptr(r->cancel));
}

void run_clear(struct team *t)
{
	struct run *r = &t->run;

	let_go(r);
	task_drop(&r->mute);
	for (size_t i = 0; i < t->n_members; i++) {
		json_decref(take_ptr(t->members[i]->pending));
		json_decref(take_ptr(t->members[i]->was));
		t->members[i]->is_asked = false;
	}
	json_decref(take_ptr(t->before));
	json_decref(r->messages);
	json_decref(r->fresh);
	json_decref(r->open);
	json_decref(r->spare);
	free(r->reason);
	fault_done(&r->why);
	memset(r, 0, sizeof(*r));
	/* What was not known of it goes with it. */
	if (t->rest)
		(void)json_object_del(t->rest, "run");
}

static json_t *usage(const struct team *t)
{
	json_t *o = account_json(&t->run.used);
	int64_t ms = (clock_us() - t->run.started) / 1000;

	(void)json_object_set_new(o, "turns", json_integer(t->run.turns));
	(void)json_object_set_new(o, "seconds",
				  json_pack("f", (double)ms / 1e3));
	return o;
}

/* What people have to answer; the agents' own notes stay inside. */
static void add_pending(json_t *list, const struct member *m, json_t *what)
{
	size_t i;
	json_t *one;

	if (json_is_array(what)) {
		json_array_foreach(what, i, one) add_pending(list, m, one);
		return;
	}
	one = json_copy(what);
	(void)json_object_del(one, "state");
	(void)json_object_set_new(one, "agent", json_string(m->agent->name));
	(void)json_array_append_new(list, one);
}

static json_t *pending(const struct team *t)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < t->n_members; i++)
		if (t->members[i]->pending)
			add_pending(list, t->members[i],
				    json_object_get(t->members[i]->pending,
						    "what"));
	return list;
}

static json_t *result(const struct team *t)
{
	const struct run *r = &t->run;
	json_t *error = r->why.code ? fault_json(&r->why) : NULL;

	return json_pack("{s:s, s:s, s:s, s:o?, s:o, s:s?, s:o}", "run", r->id,
			 "stop_reason", r->reason ? r->reason : "", "status",
			 r->status, "error", error, "usage", usage(t),
			 "checkpoint", t->checkpoint[0] ? t->checkpoint : NULL,
			 "pending", pending(t));
}

/*
 * The caller hears the end; it may free the team then. `end` is what came
 * through the filters: what they masked stays masked.
 */
static void conclude(struct team *t, const json_t *end)
{
	struct run *r = &t->run;
	const struct team_events *e = r->events;
	void *arg = r->arg;
	json_t *o;

	if (t->state != TEAM_ENDING || t->is_dead)
		return;
	o = team_copy(end);
	if (json_object_set_new(o, "messages", team_copy(r->messages)) < 0) {
		json_decref(o);
		o = take_ptr(r->spare);
	}
	t->state = TEAM_IDLE;
	if (r->is_open)
		let_go(r); /* suspended */
	else
		run_clear(t);
	r->events = NULL;
	if (e && e->over)
		e->over(arg, o);
	json_decref(o);
}

static void was_published(void *arg, int count, const struct fault *why)
{
	struct team *t = arg;
	json_t *end;

	/* Nobody heard it: a filter stands in between. It is the end anyway. */
	if (why || count < 1) {
		end = json_pack("{s:s, s:s, s:o, s:o?}", "status", "failed",
				"stop_reason",
				"Error: dropped: the result was held back",
				"pending", json_array(), "error",
				why ? fault_json(why) : NULL);
		conclude(t, end);
		json_decref(end);
	}
	team_unref(t);
}

static void publish_end(struct team *t)
{
	const struct send_options o = { .from = t->manager_id,
					.traceparent = run_trace(t) };
	json_t *end = result(t);
	struct message *m = end ? message_new("cordon.team.End", end) : NULL;

	if (!m) {
		loop_soon(t->loop, &t->run.mute);
		return;
	}
	(void)team_ref(t);
	runtime_publish(t->runtime, m, t->output_topic, &o, was_published, t);
	message_unref(m);
}

/* All that belongs to a run that will not go on. */
static void forget(struct team *t)
{
	if (t->stop)
		termination_reset(t->stop);
	for (size_t i = 0; i < t->n_members; i++)
		json_decref(take_ptr(t->members[i]->pending));
	json_decref(take_ptr(t->before));
	t->run.is_open = false;
}

void run_end(struct team *t, const char *status, char *reason)
{
	struct run *r = &t->run;

	t->state = TEAM_ENDING;
	turn_take(t);
	timer_stop(&r->timer);
	cancel_unhook(&r->hook);
	task_drop(&t->step);
	r->status = status;
	free(r->reason); /* of an earlier suspension */
	r->reason = reason;
	r->elapsed = clock_us() - r->started;
	if (strcmp(status, "suspended") != 0)
		forget(t);
	team_checkpoint(t, reason ? reason : status);
	publish_end(t);
}

void run_fail(struct team *t, const struct fault *why)
{
	char *reason = NULL;

	fault_copy(&t->run.why, why);
	if (asprintf(&reason, "Error: %s: %s", fault_name(why->code),
		     why->message ? why->message : "") < 0)
		reason = NULL;
	run_end(t, "failed", reason);
}

static void handle(struct actor *a, struct delivery *d)
{
	struct team *t = ((struct team_actor *)a)->team;
	struct message *m = message_ref(delivery_message(d));
	const struct team_events *e = t->run.events;

	(void)team_ref(t);
	delivery_reply(d, NULL); /* the caller may free the team now */
	if (!t->is_dead && strcmp(m->type, "cordon.team.End") == 0)
		conclude(t, m->data);
	else if (!t->is_dead && t->state != TEAM_IDLE && e && e->event)
		e->event(t->run.arg, m->data);
	message_unref(m);
	team_unref(t);
}

const struct actor_ops output_ops = { .handle = handle,
				      .free = team_actor_free };
