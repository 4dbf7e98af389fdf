/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Cells: mailboxes with bounds, and when the next message is handled.
 *
 * A full mailbox lets as many wait again as it holds, in their order; what is
 * more is refused at once, since nobody can be made to wait who has returned
 * already.
 */

#include "runtime/cell.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

struct type *type_find(const struct runtime *rt, const char *name, size_t len)
{
	uint64_t hash = table_hash(&rt->types, name, len);

	for (struct node *n = table_first(&rt->types, hash); n;
	     n = table_next(n)) {
		struct type *t = (struct type *)n;

		if (strncmp(t->name, name, len) == 0 && !t->name[len])
			return t;
	}
	return NULL;
}

struct cell *cell_find(const struct runtime *rt, const char *id)
{
	uint64_t hash = table_hash(&rt->cells, id, strlen(id));

	for (struct node *n = table_first(&rt->cells, hash); n;
	     n = table_next(n)) {
		struct cell *c = (struct cell *)n;

		if (strcmp(c->id, id) == 0)
			return c;
	}
	return NULL;
}

static void begin_next(struct task *t);

struct cell *cell_add(struct runtime *rt, struct type *t, const char *id)
{
	size_t size = strlen(id) + 1;
	struct cell *c = calloc(1, sizeof(*c) + size);

	if (!c)
		return NULL;
	memcpy(c->id, id, size);
	c->key = strchr(c->id, '/') + 1;
	c->rt = rt;
	c->type = t;
	c->task.run = begin_next;
	table_add(&rt->cells, &c->node, table_hash(&rt->cells, id, size - 1));
	*rt->last_cell = c;
	rt->last_cell = &c->later;
	rt->n_cells++;
	return c;
}

struct cell *cell_need(struct runtime *rt, const char *id, struct fault *why)
{
	struct cell *c = cell_find(rt, id);
	size_t len = c ? 0 : actor_id_split(id);
	struct type *t = len ? type_find(rt, id, len) : NULL;

	if (c)
		return c;
	if (!t || !t->is.make) {
		fault_set(why, FAULT_NOT_FOUND, "no such agent: '%.80s'", id);
	} else if (rt->n_cells >= rt->options.max_actors) {
		fault_set(why, FAULT_OVERLOADED, "there are %zu agents already",
			  rt->n_cells);
	} else {
		c = cell_add(rt, t, id);
		if (!c)
			fault_set(why, FAULT_INTERNAL, "out of memory");
	}
	return c;
}

int cell_make(struct cell *c, struct err *err)
{
	struct actor *a = NULL;
	int r;

	if (c->actor)
		return 0;
	if (!c->type->is.make)
		return err_set(err, ENOENT, "no such agent: '%s'", c->id);
	r = c->type->is.make(c->type->is.arg, c->rt, c->key, &a, err);
	if (r < 0 || !a) {
		c->rt->counts[COUNT_MAKE_FAILED]++;
		return r < 0 ? r
			     : err_set(err, EINVAL,
				       "the factory of '%s' "
				       "made nothing",
				       c->type->name);
	}
	c->rt->counts[COUNT_MADE]++;
	a->cell = c;
	c->actor = a;
	return 0;
}

void cell_free(struct cell *c)
{
	task_drop(&c->task);
	for (int i = 0; i < LISTS; i++)
		while (c->lists[i].first)
			delivery_free(c->lists[i].first);
	if (c->actor && c->actor->ops->free)
		c->actor->ops->free(c->actor);
	free(c);
}

/* --- in --- */

static bool has_room(const struct cell *c)
{
	return c->lists[IN_MAILBOX].n < c->type->is.mailbox &&
	       c->lists[IN_WAITING].n == 0;
}

static void waited_enough(struct timer *t)
{
	struct delivery *d = (struct delivery *)((char *)t -
						 offsetof(struct delivery,
							  wait));
	struct fault why = { 0 };

	fault_set(&why, FAULT_OVERLOADED, "the mailbox of '%s' stayed full",
		  d->cell->id);
	delivery_end(d, NULL, &why);
	fault_done(&why);
}

static void was_taken(struct delivery *d)
{
	struct ticket *t = d->ticket;

	timer_stop(&d->wait);
	d->ticket = NULL;
	ticket_done(t, 1, NULL);
}

static void let_in(struct cell *c)
{
	while (c->lists[IN_WAITING].first &&
	       c->lists[IN_MAILBOX].n < c->type->is.mailbox) {
		struct delivery *d = c->lists[IN_WAITING].first;

		delivery_take(d);
		delivery_put(d, IN_MAILBOX);
		was_taken(d);
	}
}

static void evict_oldest(struct cell *c)
{
	struct delivery *d = c->lists[IN_MAILBOX].first;
	struct fault why = { 0 };

	if (!d)
		return;
	fault_set(&why, FAULT_OVERLOADED, "made room in the mailbox of '%s'",
		  c->id);
	delivery_end(d, NULL, &why);
	fault_done(&why);
}

/* An event has no token with a deadline: its wait is timed here. */
static int wait_for_room(struct delivery *d)
{
	struct runtime *rt = d->cell->rt;
	int64_t until = d->post->deadline;

	delivery_put(d, IN_WAITING);
	if (d->post->kind == POST_REQUEST)
		return 0;
	if (!until)
		until = clock_us() + rt->options.default_deadline;
	d->wait.fire = waited_enough;
	return timer_set(rt->loop, &d->wait, until);
}

static bool may_wait(const struct cell *c, const struct post *p)
{
	return p->overflow == OVERFLOW_WAIT &&
	       c->lists[IN_WAITING].n < c->type->is.mailbox;
}

static void place(struct delivery *d)
{
	struct cell *c = d->cell;
	struct fault why = { 0 };

	if (d->is_inner || has_room(c)) {
		delivery_put(d, IN_MAILBOX);
		was_taken(d);
	} else if (!may_wait(c, d->post) || wait_for_room(d) < 0) {
		fault_set(&why, FAULT_OVERLOADED, "the mailbox of '%s' is full",
			  c->id);
		delivery_end(d, NULL, &why);
		fault_done(&why);
		return;
	}
	cancel_hook(d->post->cancel, &d->hook);
	cell_wake(c);
}

void cell_accept(struct cell *c, struct post *p, struct ticket *t)
{
	struct delivery *d = delivery_new(c, p);
	struct fault why = { 0 };

	if (!d) {
		fault_set(&why, FAULT_INTERNAL, "out of memory");
		if (p->kind == POST_REQUEST)
			bus_refuse(c->rt, p, &why);
		ticket_done(ticket_ref(t), 0, &why);
		fault_done(&why);
		return;
	}
	d->ticket = ticket_ref(t);
	d->is_inner = c->type->is.is_reentrant && p->kind == POST_REQUEST &&
		      p->path && hop_count(p->path, c->id) > 0;
	if (cancel_is_fired(p->cancel)) {
		cancel_fault(p->cancel, &why);
		delivery_end(d, NULL, &why);
		fault_done(&why);
		return;
	}
	if (p->overflow == OVERFLOW_DROP_OLDEST && !has_room(c))
		evict_oldest(c);
	place(d);
}

/* --- out --- */

static bool may_begin(const struct delivery *d)
{
	const struct cell *c = d->cell;

	if (d->is_inner)
		return true;
	if (c->lists[IN_HANDLER].n >= c->type->is.concurrency)
		return false;
	/* What somebody waits for who is to end first. */
	return !c->rt->is_resting ||
	       (d->post->kind == POST_REQUEST && d->post->path);
}

/* The first; it is looked for only where others may overtake it. */
static struct delivery *next_one(const struct cell *c)
{
	struct delivery *d = c->lists[IN_MAILBOX].first;

	if (!c->type->is.is_reentrant && !c->rt->is_resting)
		return d && may_begin(d) ? d : NULL;
	while (d && !may_begin(d))
		d = d->next;
	return d;
}

void cell_wake(struct cell *c)
{
	let_in(c);
	if (c->lists[IN_MAILBOX].first)
		loop_soon(c->rt->loop, &c->task);
}

static bool is_taken(const struct cell *c, const char *type)
{
	if (!c->type->takes)
		return true;
	for (; type; type = message_base(c->rt, type))
		for (char **t = c->type->takes; *t; t++)
			if (strcmp(*t, type) == 0)
				return true;
	return false;
}

static bool is_let_through(struct delivery *d, struct fault *why)
{
	struct judgement j = { .message = message_ref(d->message) };
	struct address a = { .from = d->post->from,
			     .to = d->cell->id,
			     .topic = d->post->topic };
	bool is_good = filters_pass(d->cell->rt, ON_DELIVER, &a, &j);

	message_unref(d->message);
	d->message = j.message;
	if (!is_good)
		*why = j.why;
	return is_good;
}

static bool is_made(struct delivery *d, struct fault *why)
{
	struct cell *c = d->cell;
	struct err err = { 0 };

	if (cell_make(c, &err) == 0)
		return true;
	fault_set(why, FAULT_HANDLER, "make '%s': %s", c->id, err.text);
	why->is_retryable = true;
	note(c->rt, &(struct note){ .what = "make_failed",
				    .post = d->post,
				    .to = c->id,
				    .why = why });
	return false;
}

static bool is_ready(struct delivery *d, struct fault *why)
{
	struct cell *c = d->cell;

	if (cancel_is_fired(d->post->cancel)) {
		cancel_fault(d->post->cancel, why);
		return false;
	}
	if (c->rt->filters && !is_let_through(d, why))
		return false;
	if (!is_taken(c, d->message->type)) {
		fault_set(why, FAULT_CANT_HANDLE, "'%s' does not take '%s'",
			  c->type->name, d->message->type);
		return false;
	}
	return c->actor || is_made(d, why);
}

static void begin(struct delivery *d)
{
	struct cell *c = d->cell;
	struct fault why = { 0 };

	cancel_unhook(&d->hook);
	delivery_take(d);
	delivery_put(d, IN_HANDLER);
	let_in(c);
	if (!is_ready(d, &why)) {
		delivery_end(d, NULL, &why);
		fault_done(&why);
		return;
	}
	c->rt->counts[COUNT_DELIVERED]++;
	if (c->rt->event)
		note(c->rt, &(struct note){ .what = "deliver",
					    .post = d->post,
					    .to = c->id });
	if (c->rt->tracer)
		trace_handle(d);
	c->actor->ops->handle(c->actor, d);
}

/* One at a time: between two of the same actor others have their turn. */
static void begin_next(struct task *t)
{
	struct cell *c = (struct cell *)((char *)t -
					 offsetof(struct cell, task));
	struct delivery *d = next_one(c);

	if (d)
		begin(d);
	if (next_one(c))
		cell_wake(c);
}
