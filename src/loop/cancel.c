/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/cancel.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/*
 * A child is a hook on its parent like any other, so one order holds for
 * both. It keeps its parent, and with it the parent's deadline: a timer of
 * its own it needs only where its deadline is sooner.
 */
struct cancel {
	unsigned int refs;
	bool is_fired, is_late;
	struct loop *loop;
	struct cancel *parent;
	struct cancel_hook up; /* on the parent */
	struct cancel_hook *hooks;
	struct timer timer;
	int64_t deadline;
	char *reason;
};

#define CANCEL_OF(ptr, member)                                                 \
	((struct cancel *)((char *)(ptr)-offsetof(struct cancel, member)))

/* Callbacks may drop whatever they like, the token too. */
static void fire(struct cancel *c, const char *reason, bool is_late)
{
	if (c->is_fired)
		return;
	c->is_fired = true;
	c->is_late = is_late;
	c->reason = strdup(reason ? reason : "cancelled");
	timer_stop(&c->timer);
	cancel_unhook(&c->up);
	(void)cancel_ref(c);
	while (c->hooks) {
		struct cancel_hook *h = c->hooks;

		cancel_unhook(h);
		h->fired(h, c);
	}
	cancel_unref(c);
}

static void parent_fired(struct cancel_hook *h, struct cancel *parent)
{
	fire(CANCEL_OF(h, up), cancel_reason(parent), parent->is_late);
}

static void is_due(struct timer *t)
{
	fire(CANCEL_OF(t, timer), "deadline exceeded", true);
}

static int set_deadline(struct cancel *c, int64_t deadline)
{
	int64_t sooner = cancel_deadline(c->parent);

	c->deadline = deadline;
	if (sooner && (!deadline || sooner <= deadline))
		c->deadline = sooner;
	if (c->is_fired || c->deadline == 0 || c->deadline == sooner)
		return 0;
	if (c->deadline > loop_now(c->loop))
		return timer_set(c->loop, &c->timer, c->deadline);
	is_due(&c->timer);
	return 0;
}

struct cancel *cancel_new(struct loop *l, struct cancel *parent,
			  int64_t deadline_us)
{
	struct cancel *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->refs = 1;
	c->loop = l;
	c->timer.fire = is_due;
	c->up.fired = parent_fired;
	c->parent = cancel_ref(parent);
	cancel_hook(parent, &c->up);
	if (set_deadline(c, deadline_us) < 0) {
		cancel_unref(c);
		return NULL;
	}
	return c;
}

struct cancel *cancel_ref(struct cancel *c)
{
	if (c)
		c->refs++;
	return c;
}

void cancel_unref(struct cancel *c)
{
	while (c && --c->refs == 0) {
		struct cancel *parent = c->parent;

		while (c->hooks)
			cancel_unhook(c->hooks);
		cancel_unhook(&c->up);
		timer_stop(&c->timer);
		free(c->reason);
		free(c);
		c = parent;
	}
}

void cancel_fire(struct cancel *c, const char *reason)
{
	if (c)
		fire(c, reason, false);
}

bool cancel_is_fired(const struct cancel *c)
{
	return c && c->is_fired;
}

bool cancel_is_late(const struct cancel *c)
{
	return c && c->is_late;
}

const char *cancel_reason(const struct cancel *c)
{
	if (!cancel_is_fired(c))
		return NULL;
	return c->reason ? c->reason : "cancelled";
}

int64_t cancel_deadline(const struct cancel *c)
{
	return c ? c->deadline : 0;
}

void cancel_fault(const struct cancel *c, struct fault *ret)
{
	if (!cancel_is_fired(c))
		fault_set(ret, FAULT_INTERNAL, "not cancelled");
	else
		fault_set(ret, c->is_late ? FAULT_DEADLINE : FAULT_CANCELLED,
			  "%s", cancel_reason(c));
}

void cancel_hook(struct cancel *c, struct cancel_hook *h)
{
	if (!c)
		return;
	if (c->is_fired) {
		h->fired(h, c);
		return;
	}
	h->token = c;
	h->prev = NULL;
	h->next = c->hooks;
	if (c->hooks)
		c->hooks->prev = h;
	c->hooks = h;
}

void cancel_unhook(struct cancel_hook *h)
{
	if (!h->token)
		return;
	if (h->prev)
		h->prev->next = h->next;
	else
		h->token->hooks = h->next;
	if (h->next)
		h->next->prev = h->prev;
	h->next = NULL;
	h->prev = NULL;
	h->token = NULL;
}
