/* SPDX-License-Identifier: Apache-2.0 */

/* What happened: the event log's hook, counters, dead letters. */

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "runtime/cell.h"

static const char *const counter_names[] = {
	[COUNT_SENT] = "sent",
	[COUNT_PUBLISHED] = "published",
	[COUNT_DELIVERED] = "delivered",
	[COUNT_REPLIED] = "replied",
	[COUNT_FAILED] = "failed",
	[COUNT_EVENTS_FAILED] = "events_failed",
	[COUNT_CHANGED] = "changed",
	[COUNT_DROPPED] = "dropped",
	[COUNT_REJECTED] = "rejected",
	[COUNT_NO_SUBSCRIBER] = "no_subscriber",
	[COUNT_OVERLOADED] = "overloaded",
	[COUNT_CANCELLED] = "cancelled",
	[COUNT_LATE] = "deadline_exceeded",
	[COUNT_LATE_REPLIES] = "late_replies",
	[COUNT_DEAD_LETTERS] = "dead_letters",
	[COUNT_MADE] = "made",
	[COUNT_MAKE_FAILED] = "make_failed",
};
_Static_assert(ARRAY_SIZE(counter_names) == COUNTERS, "one name each");

enum { DEAD_BYTES = 16 << 20 };

void runtime_on_event(struct runtime *rt,
		      void (*event)(void *arg, const json_t *event), void *arg)
{
	rt->event = event;
	rt->event_arg = arg;
}

static json_t *id_json(struct uuid id)
{
	char text[UUID_TEXT];

	if (uuid_is_none(id))
		return NULL;
	uuid_format(id, text);
	return json_string(text);
}

static json_t *note_json(const struct note *n)
{
	const struct post *p = n->post;
	const char *to = n->to ? n->to : p->to;
	const char *type = p->message ? p->message->type : NULL;

	return json_pack(
		"{s:s, s:s, s:o*, s:o*, s:s*, s:s*, s:s*, s:s*, s:s*, s:s*,"
		" s:s*, s:o*}",
		"event", n->what, "kind", post_kind_name(p->kind), "id",
		id_json(p->id), "reply_to", id_json(p->reply_to), "type", type,
		"from", p->from, "to", to, "topic", p->topic, "traceparent",
		p->traceparent, "filter", n->filter, "text", n->text, "error",
		n->why ? fault_json(n->why) : NULL);
}

void note(struct runtime *rt, const struct note *n)
{
	json_t *o;

	if (!rt->event)
		return;
	o = note_json(n);
	if (o)
		rt->event(rt->event_arg, o);
	json_decref(o);
}

/* --- dead letters: a ring, bounded in number and in bytes --- */

static size_t weight(const struct dead *d)
{
	return sizeof(*d->post) +
	       (d->post->message ? d->post->message->size : 0);
}

static void forget_oldest(struct runtime *rt)
{
	struct dead *d = &rt->dead[rt->dead_at];

	rt->dead_bytes -= weight(d);
	post_unref(d->post);
	free(d->to);
	fault_done(&d->why);
	*d = (struct dead){ 0 };
	rt->dead_at = (rt->dead_at + 1) % DEAD_MAX;
	rt->n_dead--;
}

void dead_letter(struct runtime *rt, struct post *p, const char *to,
		 const struct fault *why)
{
	struct dead *d;

	rt->counts[COUNT_DEAD_LETTERS]++;
	note(rt,
	     &(struct note){
		     .what = "dead_letter", .post = p, .to = to, .why = why });
	if (rt->n_dead == DEAD_MAX)
		forget_oldest(rt);
	d = &rt->dead[(rt->dead_at + rt->n_dead++) % DEAD_MAX];
	d->post = post_ref(p);
	d->to = to ? strdup(to) : NULL;
	fault_copy(&d->why, why);
	rt->dead_bytes += weight(d);
	while (rt->dead_bytes > DEAD_BYTES && rt->n_dead > 1)
		forget_oldest(rt);
}

void dead_done(struct runtime *rt)
{
	while (rt->n_dead > 0)
		forget_oldest(rt);
}

json_t *runtime_dead_letters(struct runtime *rt)
{
	json_t *all = json_array();

	for (size_t i = 0; all && i < rt->n_dead; i++) {
		struct dead *d = &rt->dead[(rt->dead_at + i) % DEAD_MAX];
		json_t *o = json_pack("{s:o, s:o}", "reason",
				      fault_json(&d->why), "envelope",
				      post_json(d->post, &rt->ids, d->to));

		if (json_array_append_new(all, o) < 0) {
			json_decref(all);
			return NULL;
		}
	}
	return all;
}

/* --- figures --- */

json_t *runtime_metrics(const struct runtime *rt)
{
	json_t *counts = json_object();
	const size_t *n = rt->n_in;

	for (int i = 0; i < COUNTERS; i++)
		(void)json_object_set_new(counts, counter_names[i],
					  json_integer(
						  (json_int_t)rt->counts[i]));
	return json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:I}", "counters",
			 counts, "queued", (json_int_t)n[IN_MAILBOX], "waiting",
			 (json_int_t)n[IN_WAITING], "active",
			 (json_int_t)n[IN_HANDLER], "pending",
			 (json_int_t)rt->pending.n, "actors",
			 (json_int_t)rt->n_cells, "subscriptions",
			 (json_int_t)rt->subs.n);
}
