/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation
 *
 * A turn lies between the one who asked (turn_events) and the agent. It is
 * begun and ended from the loop, so neither finds itself called by its own
 * call. The end is kept until the loop comes round: events that the agent
 * emits before it, even in the same breath, are heard before it.
 *
 * When the token fires, the agent's model and tool calls see the same token
 * and end by themselves; the agent then fails the turn. One that waits at its
 * pause, or that has not ended after the grace, is told to abandon the turn,
 * and the turn ends without it.
 */

#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/parts.h"
#include "base/clock.h"
#include "runtime/trace.h"

/* Less than the runtime's two seconds: the end is heard before it gives up. */
#define GRACE_US (1500 * 1000)

struct turn {
	struct agent *agent; /* until it has ended or abandoned the turn */
	struct loop *loop;
	json_t *messages, *suspended, *answer;
	char *team, *run;
	struct cancel *cancel;
	struct cancel_hook hook;
	struct task start, fired, finish;
	struct timer grace;
	const struct turn_events *events; /* NULL: nobody listens any more */
	void *arg;
	bool is_over, is_told, is_short;
	bool is_owed; /* the agent will still end it, later than the end */
	json_t *chat, *pending; /* the end */
	struct fault why;
	struct span *span; /* from its start to its end */
	char traceparent[TRACEPARENT];
};

#define owner(ptr, member)                                                     \
	((struct turn *)((char *)(ptr)-offsetof(struct turn, member)))

static void turn_free(struct turn *t)
{
	cancel_unhook(&t->hook);
	task_drop(&t->start);
	task_drop(&t->fired);
	task_drop(&t->finish);
	timer_stop(&t->grace);
	json_decref(t->messages);
	json_decref(t->suspended);
	json_decref(t->answer);
	json_decref(t->chat);
	json_decref(t->pending);
	cancel_unref(t->cancel);
	fault_done(&t->why);
	span_drop(t->span);
	free(t->team);
	free(t->run);
	free(t);
}

static void finish(struct task *task)
{
	struct turn *t = owner(task, finish);
	const struct fault *why = t->chat || t->pending ? NULL : &t->why;

	if (t->events)
		t->events->over(t->arg, t->chat, why, t->pending);
	t->events = NULL;
	t->is_told = true;
	if (!t->is_owed)
		turn_free(t);
}

/* Whether the agent ends what has ended without it. */
static bool is_late(struct turn *t)
{
	if (!t->is_over)
		return false;
	t->is_owed = false;
	if (t->is_told)
		turn_free(t);
	return true;
}

/* The agent is free for another turn from here on. */
static void end(struct turn *t)
{
	t->is_over = true;
	if (t->span)
		span_end(take_ptr(t->span),
			 t->chat || t->pending ? NULL : &t->why);
	cancel_unhook(&t->hook);
	timer_stop(&t->grace);
	task_drop(&t->fired);
	if (t->agent && t->agent->turn == t)
		t->agent->turn = NULL;
	t->agent = NULL;
	loop_soon(t->loop, &t->finish);
}

/* What the agent gives at the end goes to *place. */
static void end_with(struct turn *t, json_t **place, json_t *v)
{
	if (is_late(t)) {
		json_decref(v);
		return;
	}
	if (!v || t->is_short) {
		json_decref(v);
		fault_set(&t->why, FAULT_INTERNAL, "out of memory");
	} else {
		*place = v;
	}
	end(t);
}

void turn_done(struct turn *t, json_t *chat)
{
	end_with(t, &t->chat, chat);
}

void turn_suspend(struct turn *t, json_t *pending)
{
	end_with(t, &t->pending, pending);
}

/* What fails after the token has fired fails for that. */
void turn_fail(struct turn *t, const struct fault *why)
{
	if (is_late(t))
		return;
	if (cancel_is_fired(t->cancel))
		cancel_fault(t->cancel, &t->why);
	else
		fault_copy(&t->why, why);
	if (!t->why.agent && t->agent)
		t->why.agent = strdup(t->agent->name);
	end(t);
}

void turn_event(struct turn *t, json_t *event)
{
	if (!event)
		t->is_short = true;
	else if (!t->is_over && t->events && t->events->event)
		t->events->event(t->arg, event);
	json_decref(event);
}

static void give_up(struct turn *t)
{
	bool is_forgotten = t->agent->ops->abandon != NULL;

	if (is_forgotten)
		t->agent->ops->abandon(t->agent, t);
	if (t->is_over)
		return;
	cancel_fault(t->cancel, &t->why);
	t->why.agent = strdup(t->agent->name);
	t->is_owed = !is_forgotten;
	end(t);
}

void turn_stop(struct turn *t, const char *reason)
{
	/* One that has not begun sees the token when it does. */
	bool has_begun = !t->start.loop;

	cancel_fire(t->cancel, reason);
	if (has_begun && !t->is_over)
		give_up(t);
}

static void grace_over(struct timer *timer)
{
	give_up(owner(timer, grace));
}

static void fired(struct task *task)
{
	struct turn *t = owner(task, fired);

	if (t->agent->held) {
		agent_let_go(t->agent, t->agent->held);
		give_up(t);
	} else if (timer_set(t->loop, &t->grace, clock_us() + GRACE_US) < 0) {
		give_up(t);
	}
}

/* From within cancel_fire(), wherever that was called: only takes note. */
static void on_cancel(struct cancel_hook *h, struct cancel *c)
{
	struct turn *t = owner(h, hook);

	(void)c;
	loop_soon(t->loop, &t->fired);
}

/* A token that had fired before the agent began: the agent is not asked. */
static void start(struct task *task)
{
	struct turn *t = owner(task, start);
	struct agent *a = t->agent;
	struct fault why = { 0 };

	if (cancel_is_fired(t->cancel))
		cancel_fault(t->cancel, &why);
	else if (a->turn && a->turn != t)
		fault_set(&why, FAULT_REJECTED,
			  "agent '%s' has a turn that goes on", a->name);
	else if (t->suspended && !a->ops->resume)
		fault_set(&why, FAULT_CANT_HANDLE,
			  "agent '%s' has no turns to resume", a->name);
	if (why.code) {
		turn_fail(t, &why);
		fault_done(&why);
		return;
	}
	a->turn = t;
	t->span = span_begin(a->tracer, SPAN_AGENT, a->name, t->traceparent);
	span_text(t->span, "gen_ai.agent.name", a->name);
	span_text(t->span, "gen_ai.conversation.id", t->run);
	cancel_hook(t->cancel, &t->hook);
	if (t->suspended && a->ops->resume)
		a->ops->resume(a, t, t->suspended, t->answer);
	else
		a->ops->begin(a, t);
}

static char *copy(const char *text)
{
	return strdup(text ? text : "");
}

static struct turn *turn_new(struct agent *a, const struct turn_asker *who)
{
	struct turn *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->agent = a;
	t->loop = a->loop;
	t->team = copy(who->team);
	t->run = copy(who->run);
	t->cancel = cancel_new(a->loop, who->cancel, 0);
	t->hook.fired = on_cancel;
	t->start.run = start;
	t->fired.run = fired;
	t->finish.run = finish;
	t->grace.fire = grace_over;
	t->events = who->events;
	t->arg = who->arg;
	if (!t->team || !t->run || !t->cancel) {
		turn_free(t);
		return NULL;
	}
	if (!a->turn)
		a->turn = t;
	return t;
}

struct turn *turn_begin(struct agent *a, json_t *messages,
			const struct turn_asker *who)
{
	struct turn *t = turn_new(a, who);

	if (!t)
		return NULL;
	t->messages = json_incref(messages);
	loop_soon(t->loop, &t->start);
	return t;
}

struct turn *turn_resume(struct agent *a, json_t *suspended, json_t *answer,
			 const struct turn_asker *who)
{
	struct turn *t = turn_new(a, who);

	if (!t)
		return NULL;
	t->suspended = json_incref(suspended);
	t->answer = json_incref(answer);
	loop_soon(t->loop, &t->start);
	return t;
}

void turn_drop(struct turn *t)
{
	struct agent *a = t ? t->agent : NULL;
	bool has_begun = a && a->turn == t && !t->start.loop;

	if (!t)
		return;
	t->events = NULL;
	if (has_begun) {
		cancel_unhook(&t->hook);
		cancel_fire(t->cancel, "nobody waits for the answer");
		/* One that cannot forget it ends it some time. */
		if (!a->ops->abandon)
			return;
		a->ops->abandon(a, t);
	}
	if (a && a->turn == t)
		a->turn = NULL;
	turn_free(t);
}

bool turn_is_short(const struct turn *t)
{
	return t->is_short;
}

const json_t *turn_messages(const struct turn *t)
{
	return t->messages;
}

struct cancel *turn_cancel(const struct turn *t)
{
	return t->cancel;
}

void turn_set_trace(struct turn *t, const char *traceparent)
{
	if (t && traceparent)
		(void)snprintf(t->traceparent, sizeof(t->traceparent), "%s",
			       traceparent);
}

const char *turn_traceparent(const struct turn *t)
{
	return span_parent(t->span, t->traceparent[0] ? t->traceparent : NULL);
}

const char *turn_team(const struct turn *t)
{
	return t->team;
}

const char *turn_run(const struct turn *t)
{
	return t->run;
}
