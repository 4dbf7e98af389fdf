/* SPDX-License-Identifier: Apache-2.0 */

/* Deliveries: what a handler sees of one, and how each ends. */

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "runtime/cell.h"

static void not_begun(struct cancel_hook *h, struct cancel *token)
{
	struct delivery *d = (struct delivery *)((char *)h -
						 offsetof(struct delivery,
							  hook));
	struct fault why = { 0 };

	if (d->where == IN_WAITING && cancel_is_late(token))
		fault_set(&why, FAULT_OVERLOADED,
			  "the mailbox of '%s' stayed full", d->cell->id);
	else
		cancel_fault(token, &why);
	delivery_end(d, NULL, &why);
	fault_done(&why);
}

struct delivery *delivery_new(struct cell *c, struct post *p)
{
	struct delivery *d = malloc(sizeof(*d));

	if (!d)
		return NULL;
	*d = (struct delivery){ .cell = c,
				.post = post_ref(p),
				.message = message_ref(p->message),
				.where = LISTS,
				.hook.fired = not_begun };
	c->rt->n_deliveries++;
	return d;
}

void delivery_put(struct delivery *d, enum where where)
{
	struct list *l = &d->cell->lists[where];

	d->where = where;
	d->next = NULL;
	d->prev = l->last;
	*(l->last ? &l->last->next : &l->first) = d;
	l->last = d;
	l->n++;
	d->cell->rt->n_in[where]++;
}

void delivery_take(struct delivery *d)
{
	struct list *l;

	if (d->where == LISTS)
		return;
	l = &d->cell->lists[d->where];
	*(d->prev ? &d->prev->next : &l->first) = d->next;
	*(d->next ? &d->next->prev : &l->last) = d->prev;
	l->n--;
	d->cell->rt->n_in[d->where]--;
	d->where = LISTS;
}

void delivery_free(struct delivery *d)
{
	delivery_take(d);
	cancel_unhook(&d->hook);
	timer_stop(&d->wait);
	d->cell->rt->n_deliveries--;
	hop_unref(d->hop);
	span_drop(d->span);
	message_unref(d->message);
	post_unref(d->post);
	free(d);
}

/* --- the end --- */

/* No memory for an answer: whoever is here can be told so without. */
static void answer_short(struct runtime *rt, const struct post *request,
			 struct message *reply)
{
	struct pending *q = pending_find(rt, request->id);
	struct fault why = { 0 };

	fault_set(&why, FAULT_INTERNAL, "out of memory");
	if (q)
		pending_finish(q, NULL, &why);
	message_unref(reply);
	fault_done(&why);
}

static void answer(struct runtime *rt, const struct post *request,
		   const char *from, struct message *reply,
		   const struct fault *why)
{
	struct address a = { .from = from, .to = request->from };
	struct post *p = post_new(why ? POST_ERROR : POST_RESPONSE, &a);
	struct fault lost = { 0 };
	char id[UUID_TEXT];

	if (!p) {
		answer_short(rt, request, reply);
		return;
	}
	p->reply_to = request->id;
	p->message = reply;
	if (why) {
		fault_copy(&p->why, why);
		uuid_format(request->id, id);
		if (!p->why.agent && from)
			p->why.agent = strdup(from);
		if (!p->why.message_id)
			p->why.message_id = strdup(id);
	}
	if (rt->bus->ops->send(rt->bus, p, &lost) < 0)
		note(rt, &(struct note){ .what = "lost_reply",
					 .post = p,
					 .why = &lost });
	fault_done(&lost);
	post_unref(p);
}

void bus_refuse(struct runtime *rt, const struct post *request,
		const struct fault *why)
{
	answer(rt, request, request->to, NULL, why);
}

static void strict_failure(struct runtime *rt, const struct fault *why)
{
	if (!rt->options.strict || rt->has_failed)
		return;
	rt->has_failed = true;
	fault_copy(&rt->first, why);
	loop_soon(rt->loop, &rt->fail);
}

/* How an event ended badly, and what that means. */
static void event_failed(struct delivery *d, const struct fault *why)
{
	struct runtime *rt = d->cell->rt;
	struct fault f = { 0 };

	fault_copy(&f, why);
	if (!f.agent)
		f.agent = strdup(d->cell->id);
	if (!f.message_id)
		f.message_id = strdup(delivery_id(d));
	if (cancel_is_fired(d->post->cancel) || f.code == FAULT_DROPPED) {
		note(rt, &(struct note){ .what = "event_dropped",
					 .post = d->post,
					 .to = d->cell->id,
					 .why = &f });
	} else {
		rt->counts[COUNT_EVENTS_FAILED]++;
		dead_letter(rt, d->post, d->cell->id, &f);
		strict_failure(rt, &f);
	}
	fault_done(&f);
}

static void count_end(struct runtime *rt, const struct fault *why)
{
	static const enum counter counts[FAULTS] = {
		[FAULT_CANCELLED] = COUNT_CANCELLED,
		[FAULT_DEADLINE] = COUNT_LATE,
		[FAULT_OVERLOADED] = COUNT_OVERLOADED,
	};

	if (!why)
		rt->counts[COUNT_REPLIED]++;
	else if (counts[why->code])
		rt->counts[counts[why->code]]++;
	else
		rt->counts[COUNT_FAILED]++;
}

void delivery_end(struct delivery *d, struct message *reply,
		  const struct fault *why)
{
	struct cell *c = d->cell;
	struct ticket *t = d->ticket;
	struct post *p = post_ref(d->post);

	count_end(c->rt, why);
	if (d->span)
		span_end(take_ptr(d->span), why);
	if (p->kind == POST_EVENT && why)
		event_failed(d, why);
	d->ticket = NULL;
	delivery_free(d);
	cell_wake(c);
	if (p->kind == POST_REQUEST)
		answer(c->rt, p, c->id, reply, why);
	else
		message_unref(reply);
	ticket_done(t, 0, why);
	post_unref(p);
}

void delivery_reply(struct delivery *d, struct message *reply)
{
	struct runtime *rt = d->cell->rt;
	struct fault why = { 0 };

	if (!reply || message_fits(reply, rt->options.max_message)) {
		delivery_end(d, reply, NULL);
		return;
	}
	fault_set(&why, FAULT_TOO_LARGE, "the reply is larger than %zu bytes",
		  rt->options.max_message);
	message_unref(reply);
	delivery_end(d, NULL, &why);
	fault_done(&why);
}

void delivery_fail(struct delivery *d, const struct fault *why)
{
	struct fault none = { 0 };

	if (why->code == FAULT_NONE) {
		fault_set(&none, FAULT_HANDLER, "failed without a reason");
		why = &none;
	}
	if (d->cell->rt->event)
		note(d->cell->rt, &(struct note){ .what = "handler_failed",
						  .post = d->post,
						  .to = d->cell->id,
						  .why = why });
	delivery_end(d, NULL, why);
	fault_done(&none);
}

/* --- what a handler sees --- */

struct message *delivery_message(const struct delivery *d)
{
	return d->message;
}

const char *delivery_id(const struct delivery *d)
{
	struct delivery *lazy = (struct delivery *)d;

	if (!d->id[0])
		uuid_format(d->post->id, lazy->id);
	return d->id;
}

const char *delivery_from(const struct delivery *d)
{
	return d->post->from;
}

const char *delivery_topic(const struct delivery *d)
{
	return d->post->topic;
}

const char *delivery_traceparent(const struct delivery *d)
{
	return span_parent(d->span, d->post->traceparent);
}

/* Events without one get it when somebody asks. */
struct cancel *delivery_cancel(struct delivery *d)
{
	if (!d->post->cancel)
		d->post->cancel = cancel_new(d->cell->rt->loop, NULL, 0);
	return d->post->cancel;
}

/* Nobody waits for an event: with its handler a new chain begins. */
struct hop *delivery_hop(struct delivery *d)
{
	struct hop *up = d->post->kind == POST_REQUEST ? d->post->path : NULL;

	if (!d->hop)
		d->hop = hop_new(up, d->cell->id);
	return d->hop;
}
