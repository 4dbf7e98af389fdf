/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where the runtime's own spans begin. A request's span is that of its
 * sender until the outcome is there; what its handler does is below it, and
 * what that one sends below that.
 */

#include "runtime/cell.h"

void runtime_set_tracer(struct runtime *rt, struct tracer *t)
{
	rt->tracer = t;
}

struct tracer *runtime_tracer(const struct runtime *rt)
{
	return rt->tracer;
}

struct span *trace_begin(struct runtime *rt, enum span_kind k,
			 const struct message *m, struct address *a)
{
	struct span *s = span_begin(rt->tracer, k, NULL, a->traceparent);

	a->traceparent = span_parent(s, a->traceparent);
	span_text(s, "messaging.message.type", m->type);
	span_text(s, "messaging.destination.name", a->to ? a->to : a->topic);
	span_text(s, "cordon.from", a->from);
	return s;
}

void trace_handle(struct delivery *d)
{
	d->span = span_begin(d->cell->rt->tracer, SPAN_PROCESS,
			     d->message->type, d->post->traceparent);
	span_text(d->span, "cordon.agent", d->cell->id);
	if (d->span)
		span_text(d->span, "messaging.message.id", delivery_id(d));
}
