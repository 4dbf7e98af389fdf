/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Events: who gets one, and what its publisher hears.
 *
 * All subscriptions deliver to the key that is the topic's source, so the set
 * of actors is a set of types: each remembers the last event it was matched
 * for.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "runtime/cell.h"

/* --- tickets --- */

static void tell(struct task *t)
{
	struct ticket *k = (struct ticket *)((char *)t -
					     offsetof(struct ticket, tell));
	published_fn *done = k->done;
	void *arg = k->arg;
	int count = k->count;
	struct fault why = k->why;

	k->why = (struct fault){ 0 };
	ticket_free(k);
	done(arg, count, why.code == FAULT_NONE ? NULL : &why);
	fault_done(&why);
}

void ticket_free(struct ticket *t)
{
	struct runtime *rt = t->rt;

	*(t->prev ? &t->prev->next : &rt->first_ticket) = t->next;
	if (t->next)
		t->next->prev = t->prev;
	rt->n_tickets--;
	task_drop(&t->tell);
	fault_done(&t->why);
	if (rt->spare_ticket)
		free(t);
	else
		rt->spare_ticket = t;
}

static struct ticket *ticket_new(struct runtime *rt, published_fn *done,
				 void *arg)
{
	struct ticket *t;

	if (!done)
		return NULL;
	t = malloc(sizeof(*t));
	if (!t)
		t = take_ptr(rt->spare_ticket);
	if (!t)
		abort(); /* as a request */
	*t = (struct ticket){ .rt = rt,
			      .done = done,
			      .arg = arg,
			      .open = 1,
			      .tell.run = tell,
			      .next = rt->first_ticket };
	if (t->next)
		t->next->prev = t;
	rt->first_ticket = t;
	rt->n_tickets++;
	return t;
}

struct ticket *ticket_ref(struct ticket *t)
{
	if (t)
		t->open++;
	return t;
}

void ticket_done(struct ticket *t, int count, const struct fault *why)
{
	if (!t)
		return;
	t->count += count;
	if (why && t->why.code == FAULT_NONE)
		fault_copy(&t->why, why);
	if (--t->open == 0)
		loop_soon(t->rt->loop, &t->tell);
}

/* --- who gets it --- */

struct matching {
	struct runtime *rt;
	struct post *post;
	struct ticket *ticket;
	const char *source;
	int n_matched;
};

static void not_there(struct matching *m, const char *id,
		      const struct fault *why)
{
	dead_letter(m->rt, m->post, id, why);
	ticket_done(ticket_ref(m->ticket), 0, why);
}

/* "type/key"; both are short, by what a topic and a type may be. */
static bool join(char *ret, size_t size, const char *type, const char *key)
{
	size_t n = strlen(type);
	size_t m = strlen(key) + 1;

	if (n + 1 + m > size)
		return false;
	ret = mempcpy(ret, type, n);
	*ret++ = '/';
	(void)mempcpy(ret, key, m);
	return true;
}

static void deliver_to(struct matching *m, struct type *t)
{
	char id[TYPE_MAX + KEY_MAX + 2];
	struct fault why = { 0 };
	struct cell *c;

	if (!join(id, sizeof(id), t->name, m->source))
		return;
	if (!m->rt->options.self_delivery && m->post->from &&
	    strcmp(m->post->from, id) == 0)
		return;
	c = cell_need(m->rt, id, &why);
	if (c)
		cell_accept(c, m->post, m->ticket);
	else
		not_there(m, id, &why);
	fault_done(&why);
}

static void matched(struct matching *m, struct type *t)
{
	m->n_matched++;
	if (t->mark == m->rt->mark)
		return;
	t->mark = m->rt->mark;
	deliver_to(m, t);
}

static void found(void *arg, const char *actor_type)
{
	struct matching *m = arg;
	struct type *t = type_find(m->rt, actor_type, strlen(actor_type));

	if (t)
		matched(m, t);
}

/* "<actor type>:" and anything: each type has that by itself. */
static void match_direct(struct matching *m, const char *type, size_t len)
{
	const char *colon = memchr(type, ':', len);
	struct type *t = NULL;

	if (colon)
		t = type_find(m->rt, type, (size_t)(colon - type));
	if (t)
		matched(m, t);
}

static void nobody(struct matching *m)
{
	struct runtime *rt = m->rt;
	struct fault why = { 0 };

	rt->counts[COUNT_NO_SUBSCRIBER]++;
	fault_set(&why, FAULT_UNDELIVERABLE, "nobody subscribes to '%.80s'",
		  m->post->topic);
	note(rt, &(struct note){ .what = "no_subscriber",
				 .post = m->post,
				 .why = &why });
	if (rt->options.require_subscriber)
		ticket_done(ticket_ref(m->ticket), 0, &why);
	fault_done(&why);
}

static void to_one(struct runtime *rt, struct post *p, struct ticket *t)
{
	struct matching m = { .rt = rt, .post = p, .ticket = t };
	struct fault why = { 0 };
	struct cell *c = cell_need(rt, p->to, &why);

	if (c)
		cell_accept(c, p, t);
	else
		not_there(&m, p->to, &why);
	fault_done(&why);
}

void event_arrive(struct runtime *rt, struct post *p, struct ticket *t)
{
	struct matching m = { .rt = rt, .post = p, .ticket = t };
	const char *slash = p->topic ? strchr(p->topic, '/') : NULL;
	size_t len;

	if (p->to || !slash) {
		if (p->to)
			to_one(rt, p, t);
		return;
	}
	m.source = slash + 1;
	len = (size_t)(slash - p->topic);
	rt->mark++;
	subs_match(&rt->subs, p->topic, len, found, &m);
	match_direct(&m, p->topic, len);
	if (m.n_matched == 0)
		nobody(&m);
}

/* --- publishing --- */

static bool fill(struct runtime *rt, struct post *p,
		 const struct send_options *o, struct fault *why)
{
	struct delivery *in = o->in;
	struct cancel *scope = o->cancel ? o->cancel
			       : in      ? in->post->scope
					 : NULL;

	p->overflow = o->overflow;
	p->deadline = o->deadline;
	p->id = uuid_make(&rt->ids);
	if (o->message_id && !uuid_parse(o->message_id, &p->id)) {
		fault_set(why, FAULT_REJECTED, "message id '%s' is no UUID",
			  o->message_id);
		return false;
	}
	if (in)
		p->path = hop_ref(delivery_hop(in));
	if (!scope)
		return true;
	p->scope = cancel_ref(scope);
	p->cancel = cancel_new(rt->loop, scope, 0);
	if (!p->cancel)
		fault_set(why, FAULT_INTERNAL, "out of memory");
	else if (cancel_is_fired(p->cancel))
		cancel_fault(p->cancel, why);
	return why->code == FAULT_NONE;
}

static void give_to_bus(struct runtime *rt, struct message *m,
			const struct address *a, const struct send_options *o,
			struct ticket *t, struct fault *why)
{
	struct address own = *a;
	struct span *span = NULL;
	struct post *p;

	if (rt->tracer)
		span = trace_begin(rt, SPAN_PUBLISH, m, &own);
	p = post_new(POST_EVENT, &own);
	if (!p) {
		fault_set(why, FAULT_INTERNAL, "out of memory");
		span_end(span, why);
		return;
	}
	p->message = message_ref(m);
	if (fill(rt, p, o, why)) {
		if (rt->event)
			note(rt,
			     &(struct note){ .what = "publish", .post = p });
		(void)rt->bus->ops->publish(rt->bus, p, t, why);
	}
	span_end(span, why);
	post_unref(p);
}

static void publish(struct runtime *rt, struct message *m,
		    const struct address *a, const struct send_options *o,
		    struct ticket *t, struct judgement *j)
{
	if (!topic_split(a->topic)) {
		fault_set(&j->why, FAULT_REJECTED, "not a topic: '%.80s'",
			  a->topic);
		return;
	}
	if (!may_send(rt, m, o, &j->why))
		return;
	j->message = message_ref(m);
	if (!rt->filters || filters_pass(rt, ON_PUBLISH, a, j))
		give_to_bus(rt, j->message, a, o, t, &j->why);
	message_unref(j->message);
}

/* The publisher's key, whoever it is; "default" where nobody is. */
static void default_topic(const char *from, char *ret, size_t size)
{
	const char *key = from ? strchr(from, '/') : NULL;

	(void)snprintf(ret, size, "default/%s", key ? key + 1 : "default");
}

void runtime_publish(struct runtime *rt, struct message *m, const char *topic,
		     const struct send_options *o, published_fn *done,
		     void *arg)
{
	static const struct send_options no_options;
	char own[KEY_MAX + 16];
	struct ticket *t = ticket_new(rt, done, arg);
	struct address a = { .topic = topic };
	struct judgement j;

	o = o ? o : &no_options;
	a.from = o->in ? o->in->cell->id : o->from;
	a.traceparent = trace_of(o);
	if (!topic) {
		default_topic(a.from, own, sizeof(own));
		a.topic = own;
	}
	j.to[0] = '\0';
	j.is_dropped = false;
	j.why = (struct fault){ 0 };
	rt->counts[COUNT_PUBLISHED]++;
	publish(rt, m, &a, o, t, &j);
	ticket_done(t, 0, j.why.code && !j.is_dropped ? &j.why : NULL);
	fault_done(&j.why);
}
