/* SPDX-License-Identifier: Apache-2.0 */

/*
 * State: actors, subscriptions, what is queued and who waits for an answer.
 *
 *	{"type":"cordon.Runtime","version":1,"agents":{"type/key":{...}},
 *	 "subscriptions":[{"id","kind","topic_type","actor_type"}],
 *	 "queue":[envelopes],"pending_requests":["id"],"timers":[]}
 *
 * The queue has each mailbox in its order. A request that a message being
 * handled has sent is not in it: that message is, and will send it again.
 * The runtime itself has no timers; deadlines are on the envelopes. Fields
 * that are not known are kept.
 */

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "runtime/cell.h"

static const char *const kind_names[] = {
	[SUB_TYPE] = "type",
	[SUB_PREFIX] = "prefix",
	[SUB_DEFAULT] = "default",
};

static const char *const own_fields[] = { "type",   "version",
					  "agents", "subscriptions",
					  "queue",  "pending_requests",
					  "timers" };

/* --- saving --- */

static json_t *save_agents(const struct runtime *rt)
{
	json_t *all = json_object();

	for (struct cell *c = rt->first_cell; c; c = c->later) {
		if (!c->actor || !c->actor->ops->save)
			continue;
		if (json_object_set_new(all, c->id,
					c->actor->ops->save(c->actor)) < 0) {
			json_decref(all);
			return NULL;
		}
	}
	return all;
}

static json_t *save_subscriptions(const struct runtime *rt)
{
	json_t *all = json_array();

	for (struct subscription *s = rt->subs.first; s; s = s->later) {
		char id[UUID_TEXT];
		json_t *o;

		uuid_format(s->id, id);
		o = json_pack("{s:s, s:s, s:s, s:s}", "id", id, "kind",
			      kind_names[s->kind], "topic_type", s->topic_type,
			      "actor_type", s->actor_type);
		if (json_array_append_new(all, o) < 0) {
			json_decref(all);
			return NULL;
		}
	}
	return all;
}

/* Whether whoever sent it is being handled right now. */
static bool is_of_active(const struct runtime *rt, const struct post *p)
{
	const struct cell *c = p->path ? cell_find(rt, p->path->id) : NULL;
	const struct delivery *d = c ? c->lists[IN_HANDLER].first : NULL;

	while (d && d->hop != p->path)
		d = d->next;
	return d != NULL;
}

static int save_list(struct runtime *rt, const struct cell *c, enum where where,
		     json_t *queue)
{
	for (struct delivery *d = c->lists[where].first; d; d = d->next) {
		struct post *p = d->post;
		json_t *o;

		if (p->kind == POST_REQUEST && is_of_active(rt, p))
			continue;
		o = post_json(p, &rt->ids, c->id);
		if (o && where == IN_HANDLER)
			(void)json_object_set_new(
				o, "attempt",
				json_integer((json_int_t)p->attempt + 1));
		if (json_array_append_new(queue, o) < 0)
			return -ENOMEM;
	}
	return 0;
}

static json_t *save_queue(struct runtime *rt)
{
	json_t *queue = json_array();

	for (struct cell *c = rt->first_cell; c; c = c->later)
		if (save_list(rt, c, IN_HANDLER, queue) < 0 ||
		    save_list(rt, c, IN_MAILBOX, queue) < 0 ||
		    save_list(rt, c, IN_WAITING, queue) < 0) {
			json_decref(queue);
			return NULL;
		}
	return queue;
}

static json_t *save_pending(const struct runtime *rt)
{
	json_t *all = json_array();

	for (struct pending *q = rt->first_pending; q; q = q->next) {
		char id[UUID_TEXT];

		if (q->is_over || !q->post || is_of_active(rt, q->post))
			continue;
		uuid_format(q->id, id);
		if (json_array_append_new(all, json_string(id)) < 0) {
			json_decref(all);
			return NULL;
		}
	}
	return all;
}

static bool is_at_rest(void *arg)
{
	struct runtime *rt = arg;

	return rt->n_in[IN_HANDLER] == 0 && rt->n_untold == 0;
}

/* Within the loop it cannot be waited for: then it stays as it is. */
static void rest(struct runtime *rt)
{
	rt->is_resting = true;
	(void)run_until(rt, is_at_rest, clock_us() + rt->options.stop_limit);
	rt->is_resting = false;
	for (struct cell *c = rt->first_cell; c; c = c->later)
		cell_wake(c);
}

json_t *runtime_save(struct runtime *rt)
{
	json_t *o;

	rest(rt);
	o = json_pack("{s:s, s:i, s:o, s:o, s:o, s:o, s:[]}", "type",
		      "cordon.Runtime", "version", 1, "agents", save_agents(rt),
		      "subscriptions", save_subscriptions(rt), "queue",
		      save_queue(rt), "pending_requests", save_pending(rt),
		      "timers");
	if (o && rt->unknown)
		(void)json_object_update_missing(o, rt->unknown);
	return o;
}

/* --- loading --- */

static int load_agents(struct runtime *rt, const json_t *agents,
		       struct err *err)
{
	const char *id;
	json_t *state;

	json_object_foreach((json_t *)agents, id, state)
	{
		struct actor *a = NULL;

		if (runtime_get(rt, id, &a, err) < 0)
			return err_wrap(err, "agent '%s'", id);
		if (!a->ops->load)
			return err_set(err, EINVAL, "agent '%s' takes no state",
				       id);
		if (a->ops->load(a, state, err) < 0)
			return err_wrap(err, "agent '%s'", id);
	}
	return 0;
}

static int kind_of(const char *name)
{
	int i = SUB_DEFAULT;

	while (i >= 0 && strcmp(kind_names[i], name) != 0)
		i--;
	return i;
}

/* One that is there already, by its id, stays. */
static int load_subscriptions(struct runtime *rt, const json_t *all,
			      struct err *err)
{
	const json_t *s;
	size_t i;

	json_array_foreach(all, i, s)
	{
		const char *id = "";
		const char *kind = "";
		const char *topic;
		const char *actor;
		struct uuid u;
		int r;

		if (json_unpack((json_t *)s, "{s:s, s:s, s:s, s:s}", "id", &id,
				"kind", &kind, "topic_type", &topic,
				"actor_type", &actor) < 0 ||
		    !uuid_parse(id, &u) || kind_of(kind) < 0)
			return err_set(err, EINVAL,
				       "subscription %zu is not valid", i);
		r = subs_add(&rt->subs, u,
			     (enum subscription_kind)kind_of(kind), topic,
			     actor, err);
		if (r < 0 && r != -EEXIST)
			return r;
	}
	return 0;
}

/* As an object: a long queue is looked up in it. */
static json_t *set_of(const json_t *ids)
{
	json_t *set = json_object();
	const json_t *s;
	size_t i;

	json_array_foreach(ids, i, s)
	{
		if (!json_is_string(s))
			continue;
		if (json_object_set_new(set, json_string_value(s),
					json_true()) < 0) {
			json_decref(set);
			return NULL;
		}
	}
	return set;
}

static bool is_listed(const json_t *set, struct uuid id)
{
	char text[UUID_TEXT];

	uuid_format(id, text);
	return json_object_get(set, text) != NULL;
}

/* Its sender is gone; somebody may claim the answer. */
static int revive(struct runtime *rt, struct post *p, struct err *err)
{
	struct pending *q;

	if (pending_find(rt, p->id))
		return err_set(err, EEXIST, "a request is there twice");
	p->cancel = cancel_new(rt->loop, NULL, p->deadline);
	if (!p->cancel)
		return err_set(err, ENOMEM, "out of memory");
	q = pending_add(rt, p->id, NULL, NULL);
	q->post = post_ref(p);
	q->is_claimable = true;
	cancel_hook(p->cancel, &q->own);
	return 0;
}

static int load_one(struct runtime *rt, const json_t *envelope,
		    const json_t *pending, struct err *err)
{
	struct post *p = NULL;
	int r = post_load(envelope, &p, err);

	if (r < 0)
		return r;
	if ((p->kind != POST_REQUEST && p->kind != POST_EVENT) || !p->to)
		r = err_set(err, EINVAL, "not something to deliver");
	else if (p->kind == POST_REQUEST && is_listed(pending, p->id))
		r = revive(rt, p, err);
	if (r == 0)
		bus_arrive(rt, p, NULL);
	post_unref(p);
	return r;
}

static int load_queue(struct runtime *rt, const json_t *queue,
		      const json_t *pending, struct err *err)
{
	json_t *waiting = set_of(pending);
	const json_t *envelope;
	size_t i;
	int r = 0;

	json_array_foreach(queue, i, envelope)
	{
		r = load_one(rt, envelope, waiting, err);
		if (r < 0) {
			(void)err_wrap(err, "queue %zu", i);
			break;
		}
	}
	json_decref(waiting);
	return r;
}

static void keep_unknown(struct runtime *rt, const json_t *state)
{
	json_t *rest = json_copy((json_t *)state);

	for (size_t i = 0; i < sizeof(own_fields) / sizeof(own_fields[0]); i++)
		(void)json_object_del(rest, own_fields[i]);
	json_decref(rt->unknown);
	rt->unknown = rest;
}

int runtime_load(struct runtime *rt, const json_t *state, struct err *err)
{
	const char *type = "cordon.Runtime";
	json_t *agents = NULL;
	json_t *subs = NULL;
	json_t *queue = NULL;
	json_t *pending = NULL;
	int version = 0;
	int r;

	if (json_unpack((json_t *)state, "{s?s, s:i, s?o, s?o, s?o, s?o}",
			"type", &type, "version", &version, "agents", &agents,
			"subscriptions", &subs, "queue", &queue,
			"pending_requests", &pending) < 0 ||
	    strcmp(type, "cordon.Runtime") != 0)
		return err_set(err, EINVAL, "not the state of a runtime");
	if (version != 1)
		return err_set(err, EINVAL,
			       "the state is of version %d, this program knows "
			       "1",
			       version);
	keep_unknown(rt, state);
	r = load_subscriptions(rt, subs, err);
	if (r == 0)
		r = load_agents(rt, agents, err);
	return r == 0 ? load_queue(rt, queue, pending, err) : r;
}
