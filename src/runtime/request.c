/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Requests at their sender: from runtime_send() to exactly one outcome.
 *
 * Each has a token of its own, with the deadline, below the sender's. The
 * receiver gets the same one. When it fires, those who hooked last are told
 * first: the handler, the mailbox it waits in, and at last this file. A
 * deadline is final; after a cancel the handler has `cancel_grace` to say how
 * it ended.
 */

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "runtime/cell.h"

#define PENDING_OF(ptr, member)                                                \
	((struct pending *)((char *)(ptr)-offsetof(struct pending, member)))

struct pending *pending_find(const struct runtime *rt, struct uuid id)
{
	for (struct node *n = table_first(&rt->pending, id.low); n;
	     n = table_next(n)) {
		struct pending *q = (struct pending *)n;

		if (uuid_is(q->id, id))
			return q;
	}
	return NULL;
}

void pending_free(struct pending *q)
{
	struct runtime *rt = q->rt;

	*(q->prev ? &q->prev->next : &rt->first_pending) = q->next;
	*(q->next ? &q->next->prev : &rt->last_pending) = q->prev;
	table_remove(&rt->pending, &q->node);
	rt->n_untold -= q->is_over;
	cancel_unhook(&q->own);
	cancel_unhook(&q->inner);
	timer_stop(&q->grace);
	task_drop(&q->tell);
	message_unref(q->reply);
	if (q->why.code != FAULT_NONE)
		fault_done(&q->why);
	span_drop(q->span);
	post_unref(q->post);
	if (rt->spare_pending)
		free(q);
	else
		rt->spare_pending = q;
}

static void tell(struct task *t)
{
	struct pending *q = PENDING_OF(t, tell);
	reply_fn *done = q->done;
	void *arg = q->arg;
	struct message *reply = take_ptr(q->reply);
	struct fault why = q->why;

	q->why = (struct fault){ 0 };
	pending_free(q);
	if (done)
		done(arg, reply, why.code == FAULT_NONE ? NULL : &why);
	message_unref(reply);
	if (why.code != FAULT_NONE)
		fault_done(&why);
}

/* Takes over `reply`; the first one counts. */
void pending_finish(struct pending *q, struct message *reply,
		    const struct fault *why)
{
	if (q->is_over) {
		message_unref(reply);
		return;
	}
	q->is_over = true;
	q->rt->n_untold++;
	if (q->span)
		span_end(take_ptr(q->span), why);
	q->reply = reply;
	if (why)
		fault_copy(&q->why, why);
	cancel_unhook(&q->own);
	cancel_unhook(&q->inner);
	timer_stop(&q->grace);
	loop_soon(q->rt->loop, &q->tell);
}

static void grace_over(struct timer *t)
{
	struct pending *q = PENDING_OF(t, grace);
	struct fault why = { 0 };

	cancel_fault(q->post->cancel, &why);
	note(q->rt, &(struct note){ .what = "grace_over",
				    .post = q->post,
				    .why = &why });
	pending_finish(q, NULL, &why);
	fault_done(&why);
}

static void token_fired(struct cancel_hook *h, struct cancel *token)
{
	struct pending *q = PENDING_OF(h, own);
	int64_t until = clock_us() + q->rt->options.cancel_grace;
	struct bus *b = q->rt->bus;
	struct fault why = { 0 };

	if (q->is_over)
		return;
	if (b->ops->cancel)
		b->ops->cancel(b, q->post);
	if (q->post->deadline)
		until = MIN(until, q->post->deadline);
	if (!cancel_is_late(token) &&
	    timer_set(q->rt->loop, &q->grace, until) == 0)
		return;
	cancel_fault(token, &why);
	pending_finish(q, NULL, &why);
	fault_done(&why);
}

static void inner_fired(struct cancel_hook *h, struct cancel *token)
{
	cancel_fire(PENDING_OF(h, inner)->post->cancel, cancel_reason(token));
}

struct pending *pending_add(struct runtime *rt, struct uuid id, reply_fn *done,
			    void *arg)
{
	struct pending *q = malloc(sizeof(*q));

	if (!q)
		q = take_ptr(rt->spare_pending);
	if (!q)
		abort(); /* twice in a round: there is no way to say so */
	*q = (struct pending){ .rt = rt,
			       .id = id,
			       .done = done,
			       .arg = arg,
			       .own.fired = token_fired,
			       .inner.fired = inner_fired,
			       .grace.fire = grace_over,
			       .tell.run = tell,
			       .prev = rt->last_pending };
	*(rt->last_pending ? &rt->last_pending->next : &rt->first_pending) = q;
	rt->last_pending = q;
	table_add(&rt->pending, &q->node, id.low);
	return q;
}

/* --- sending --- */

static const struct send_options no_options;

struct sending {
	struct runtime *rt;
	struct pending *q;
	const struct send_options *o;
	struct address address;
	struct judgement j;
	struct fault *why; /* j.why */
};

/* What holds for requests and events alike. */
bool may_send(struct runtime *rt, struct message *m,
	      const struct send_options *o, struct fault *why)
{
	if (rt->phase == STOPPED || (rt->phase == DRAINING && !o->in))
		fault_set(why, FAULT_UNAVAILABLE, "the runtime is stopped");
	else if (!message_fits(m, rt->options.max_message))
		fault_set(why, FAULT_TOO_LARGE,
			  "the message is larger than %zu bytes",
			  rt->options.max_message);
	else
		return !rt->known || message_check(rt, m, why);
	return false;
}

static bool has_path(struct post *p, struct delivery *in, struct fault *why)
{
	if (!in)
		return true;
	p->path = hop_ref(delivery_hop(in));
	if (p->path && p->path->depth <= HOPS_MAX)
		return true;
	if (p->path)
		fault_set(why, FAULT_WOULD_DEADLOCK,
			  "more than %d agents wait for each other", HOPS_MAX);
	else
		fault_set(why, FAULT_INTERNAL, "out of memory");
	return false;
}

static int64_t deadline_of(const struct runtime *rt,
			   const struct send_options *o)
{
	return o->deadline ? o->deadline
			   : loop_now(rt->loop) + rt->options.default_deadline;
}

/* Where the sender's options name a token, that of `in` counts as well. */
static bool has_token(struct sending *s, struct post *p)
{
	struct delivery *in = s->o->in;
	struct cancel *inner = in ? delivery_cancel(in) : NULL;
	struct cancel *parent = s->o->cancel ? s->o->cancel : inner;

	p->scope = cancel_ref(s->o->cancel ? s->o->cancel
			      : in         ? in->post->scope
					   : NULL);
	p->cancel = cancel_new(s->rt->loop, parent, deadline_of(s->rt, s->o));
	p->deadline = cancel_deadline(p->cancel);
	if (!p->cancel) {
		fault_set(s->why, FAULT_INTERNAL, "out of memory");
		return false;
	}
	if (inner && s->o->cancel)
		cancel_hook(inner, &s->q->inner);
	if (cancel_is_fired(p->cancel)) {
		cancel_fault(p->cancel, s->why);
		return false;
	}
	return true;
}

const char *trace_of(const struct send_options *o)
{
	const char *trace = o->traceparent;

	if (!trace && o->in)
		trace = delivery_traceparent(o->in);
	return trace && strlen(trace) <= TRACEPARENT_MAX ? trace : NULL;
}

static bool hand_over(struct sending *s)
{
	struct address *a = &s->address;
	struct bus *b = s->rt->bus;
	struct post *p;

	if (s->j.to[0])
		a->to = s->j.to;
	if (s->rt->tracer)
		s->q->span = trace_begin(s->rt, SPAN_SEND, s->j.message, a);
	p = post_new(POST_REQUEST, a);
	if (!p) {
		fault_set(s->why, FAULT_INTERNAL, "out of memory");
		return false;
	}
	s->q->post = p;
	p->id = s->q->id;
	p->message = message_ref(s->j.message);
	p->overflow = s->o->overflow;
	if (!has_path(p, s->o->in, s->why) || !has_token(s, p))
		return false;
	cancel_hook(p->cancel, &s->q->own);
	if (s->rt->event)
		note(s->rt, &(struct note){ .what = "send", .post = p });
	return b->ops->send(b, p, s->why) == 0;
}

static bool passes(struct sending *s)
{
	return !s->rt->filters ||
	       filters_pass(s->rt, ON_SEND, &s->address, &s->j);
}

/* An id that is given must be one, and not be on its way already. */
static bool choose_id(struct runtime *rt, const struct send_options *o,
		      struct uuid *ret)
{
	*ret = uuid_make(&rt->ids);
	return !o->message_id ||
	       (uuid_parse(o->message_id, ret) && !pending_find(rt, *ret));
}

void runtime_send(struct runtime *rt, struct message *m, const char *to,
		  const struct send_options *o, reply_fn *done, void *arg)
{
	struct sending s;
	struct uuid id;
	bool is_good;

	s.rt = rt;
	s.o = o ? o : &no_options;
	s.why = &s.j.why;
	s.address = (struct address){ .from = s.o->in ? s.o->in->cell->id
						      : s.o->from,
				      .to = to,
				      .traceparent = trace_of(s.o) };
	s.j.message = message_ref(m);
	s.j.to[0] = '\0';
	s.j.is_dropped = false;
	s.j.why = (struct fault){ 0 };
	is_good = choose_id(rt, s.o, &id);
	if (!is_good) {
		fault_set(s.why, FAULT_REJECTED,
			  "message id '%s' is no UUID, or in use",
			  s.o->message_id);
		id = uuid_make(&rt->ids);
	}
	s.q = pending_add(rt, id, done, arg);
	rt->counts[COUNT_SENT]++;
	if (!is_good || !may_send(rt, m, s.o, s.why) || !passes(&s) ||
	    !hand_over(&s)) {
		pending_finish(s.q, NULL, s.why);
		fault_done(s.why);
	}
	message_unref(s.j.message);
}

/* --- the answer --- */

static void late_reply(struct runtime *rt, const struct post *p)
{
	rt->counts[COUNT_LATE_REPLIES]++;
	note(rt, &(struct note){ .what = "late_reply", .post = p });
}

static void filter_reply(struct pending *q, struct post *p)
{
	struct address a = { .from = p->from, .to = p->to };
	struct judgement j = { .message = message_ref(p->message) };

	if (filters_pass(q->rt, ON_RESPONSE, &a, &j)) {
		pending_finish(q, j.message, NULL);
		return;
	}
	pending_finish(q, NULL, &j.why);
	message_unref(j.message);
	fault_done(&j.why);
}

void pending_answer(struct runtime *rt, struct post *p)
{
	struct pending *q = pending_find(rt, p->reply_to);

	if (!q || q->is_over) {
		late_reply(rt, p);
		return;
	}
	if (rt->event)
		note(rt, &(struct note){ .what = "response",
					 .post = p,
					 .why = p->kind == POST_ERROR ? &p->why
								      : NULL });
	if (p->kind == POST_ERROR)
		pending_finish(q, NULL, &p->why);
	else if (p->message && rt->filters)
		filter_reply(q, p);
	else
		pending_finish(q, message_ref(p->message), NULL);
}

int runtime_claim(struct runtime *rt, const char *id, reply_fn *done, void *arg)
{
	struct pending *q = NULL;
	struct uuid u;

	if (uuid_parse(id, &u))
		q = pending_find(rt, u);
	if (!q || !q->is_claimable)
		return -ENOENT;
	q->is_claimable = false;
	q->done = done;
	q->arg = arg;
	return 0;
}
