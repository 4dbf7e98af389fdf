/* SPDX-License-Identifier: Apache-2.0 */

/* The runtime as a whole: birth and end, types, subscriptions, arrivals. */

#include "runtime/runtime.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "runtime/cell.h"

enum { MESSAGE_MAX = 1 << 20, ACTORS_MAX = 100000, MAILBOX = 1024 };

static void set_options(struct runtime *rt, const struct runtime_options *o)
{
	struct runtime_options *own = &rt->options;

	if (o)
		*own = *o;
	if (own->max_message == 0)
		own->max_message = MESSAGE_MAX;
	if (own->default_deadline == 0)
		own->default_deadline = 300 * 1000000LL;
	if (own->cancel_grace == 0)
		own->cancel_grace = 2 * 1000000LL;
	if (own->stop_limit == 0)
		own->stop_limit = 30 * 1000000LL;
	if (own->max_actors == 0)
		own->max_actors = ACTORS_MAX;
}

struct runtime *runtime_new(struct loop *l, const struct runtime_options *o,
			    struct err *err)
{
	struct runtime *rt = calloc(1, sizeof(*rt));

	if (!rt) {
		err_set(err, ENOMEM, "out of memory");
		return NULL;
	}
	set_options(rt, o);
	rt->loop = l;
	rt->last_cell = &rt->first_cell;
	rt->fail.run = stop_for_failure;
	rt->bus = rt->options.bus ? rt->options.bus : bus_local();
	rt->spare_pending = malloc(sizeof(*rt->spare_pending));
	rt->spare_ticket = malloc(sizeof(*rt->spare_ticket));
	if (!rt->bus || !rt->spare_pending || !rt->spare_ticket ||
	    table_init(&rt->types) < 0 || table_init(&rt->cells) < 0 ||
	    table_init(&rt->pending) < 0 || table_init(&rt->messages) < 0 ||
	    subs_init(&rt->subs) < 0) {
		err_set(err, ENOMEM, "out of memory");
		runtime_free(rt);
		return NULL;
	}
	rt->bus->rt = rt;
	return rt;
}

static void type_free(struct type *t)
{
	for (char **m = t->takes; m && *m; m++)
		free(*m);
	free(t->takes);
	free(t->name);
	free(t->description);
	free(t);
}

static void free_cells(struct runtime *rt)
{
	while (rt->first_cell) {
		struct cell *c = rt->first_cell;

		rt->first_cell = c->later;
		cell_free(c);
	}
	while (rt->gone) {
		struct cell *c = rt->gone;

		rt->gone = c->later;
		cell_free(c);
	}
}

static void free_types(struct runtime *rt)
{
	while (rt->first_type) {
		struct type *t = rt->first_type;

		rt->first_type = t->later;
		type_free(t);
	}
	while (rt->known) {
		struct known *k = rt->known;

		rt->known = k->later;
		known_free(k);
	}
}

static void free_filters(struct runtime *rt)
{
	while (rt->filters) {
		struct filter *f = rt->filters;

		rt->filters = f->next;
		if (f->free)
			f->free(f);
	}
}

void runtime_free(struct runtime *rt)
{
	if (!rt)
		return;
	rt->phase = STOPPED;
	rt->event = NULL;
	task_drop(&rt->fail);
	while (rt->first_pending)
		pending_free(rt->first_pending);
	free_cells(rt);
	while (rt->first_ticket)
		ticket_free(rt->first_ticket);
	dead_done(rt);
	free_types(rt);
	free_filters(rt);
	subs_done(&rt->subs);
	table_done(&rt->types);
	table_done(&rt->cells);
	table_done(&rt->pending);
	table_done(&rt->messages);
	if (rt->bus && rt->bus->ops->free)
		rt->bus->ops->free(rt->bus);
	fault_done(&rt->first);
	json_decref(rt->unknown);
	free(rt->spare_pending);
	free(rt->spare_ticket);
	free(rt);
}

struct loop *runtime_loop(struct runtime *rt)
{
	return rt->loop;
}

/* --- types --- */

static char **copy_names(const char *const *names)
{
	size_t n = 0;
	char **copy;

	while (names[n])
		n++;
	copy = calloc(n + 1, sizeof(char *));
	for (size_t i = 0; copy && i < n; i++) {
		copy[i] = strdup(names[i]);
		if (!copy[i]) {
			while (i-- > 0)
				free(copy[i]);
			free(take_ptr(copy));
		}
	}
	return copy;
}

static struct type *type_new(const struct actor_type *is)
{
	struct type *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->is = *is;
	t->is.concurrency = MAX(is->concurrency, 1);
	t->is.mailbox = is->mailbox ? is->mailbox : MAILBOX;
	t->name = strdup(is->name);
	t->description = strdup(is->description ? is->description : "");
	t->takes = is->takes ? copy_names(is->takes) : NULL;
	if (!t->name || !t->description || (is->takes && !t->takes)) {
		type_free(t);
		return NULL;
	}
	/* What the caller gave is the caller's. */
	t->is.name = t->name;
	t->is.description = t->description;
	t->is.takes = NULL;
	return t;
}

static int type_add(struct runtime *rt, const struct actor_type *is,
		    struct type **ret, struct err *err)
{
	struct bus *b = rt->bus;
	struct type *t;
	int r = 0;

	if (!actor_type_check(is->name))
		return err_set(err, EINVAL, "not an actor type: '%s'",
			       is->name);
	if (type_find(rt, is->name, strlen(is->name)))
		return err_set(err, EEXIST, "there is a type '%s' already",
			       is->name);
	t = type_new(is);
	if (!t)
		return err_set(err, ENOMEM, "out of memory");
	if (b->ops->serve)
		r = b->ops->serve(b, t->name, err);
	if (r < 0) {
		type_free(t);
		return r;
	}
	table_add(&rt->types, &t->node,
		  table_hash(&rt->types, t->name, strlen(t->name)));
	t->later = rt->first_type;
	rt->first_type = t;
	if (ret)
		*ret = t;
	return 0;
}

int runtime_register(struct runtime *rt, const struct actor_type *t,
		     struct err *err)
{
	if (!t->make)
		return err_set(err, EINVAL, "type '%s' has no factory",
			       t->name);
	return type_add(rt, t, NULL, err);
}

static int need_type(struct runtime *rt, const char *id, size_t len,
		     struct type **ret, struct err *err)
{
	_cleanup_free_ char *name = strndup(id, len);
	struct actor_type plain = { .name = name };

	*ret = type_find(rt, id, len);
	if (*ret)
		return 0;
	if (!name)
		return err_set(err, ENOMEM, "out of memory");
	return type_add(rt, &plain, ret, err);
}

int runtime_register_instance(struct runtime *rt, const char *id,
			      struct actor *a, struct err *err)
{
	size_t len = actor_id_split(id);
	struct cell *c = cell_find(rt, id);
	struct type *t = NULL;
	int r;

	if (len == 0)
		return err_set(err, EINVAL, "not an id of an actor: '%s'", id);
	if (c)
		return err_set(err, EEXIST, "there is '%s' already", id);
	r = need_type(rt, id, len, &t, err);
	if (r < 0)
		return r;
	c = cell_add(rt, t, id);
	if (!c)
		return err_set(err, ENOMEM, "out of memory");
	c->actor = a;
	a->cell = c;
	return 0;
}

int runtime_get(struct runtime *rt, const char *id, struct actor **ret,
		struct err *err)
{
	struct fault why = { 0 };
	struct cell *c = cell_need(rt, id, &why);
	int r;

	if (!c) {
		r = err_set(err, ENOENT, "%s",
			    why.message ? why.message : "no such agent");
		fault_done(&why);
		return r;
	}
	r = cell_make(c, err);
	if (r == 0 && ret)
		*ret = c->actor;
	return r;
}

json_t *runtime_metadata(const struct runtime *rt, const char *id)
{
	size_t len = actor_id_split(id);
	const struct type *t = len ? type_find(rt, id, len) : NULL;
	json_t *takes;

	if (!t || (!t->is.make && !cell_find(rt, id)))
		return NULL;
	takes = t->takes ? json_array() : json_null();
	for (char **m = t->takes; m && *m; m++)
		(void)json_array_append_new(takes, json_string(*m));
	return json_pack("{s:s, s:s, s:s, s:o}", "type", t->name, "key",
			 id + len + 1, "description", t->description, "takes",
			 takes);
}

const char *actor_id(const struct actor *a)
{
	return a->cell->id;
}

const char *actor_key(const struct actor *a)
{
	return a->cell->key;
}

struct runtime *actor_runtime(const struct actor *a)
{
	return a->cell->rt;
}

/* --- subscriptions --- */

int runtime_subscribe(struct runtime *rt, enum subscription_kind kind,
		      const char *topic_type, const char *actor_type,
		      char *ret_id, struct err *err)
{
	struct uuid id = uuid_make(&rt->ids);
	int r = subs_add(&rt->subs, id, kind, topic_type, actor_type, err);

	if (r == 0 && ret_id)
		uuid_format(id, ret_id);
	return r;
}

int runtime_unsubscribe(struct runtime *rt, const char *id, struct err *err)
{
	struct uuid u;

	if (!uuid_parse(id, &u))
		return err_set(err, ENOENT, "no such subscription: '%s'", id);
	return subs_remove(&rt->subs, u, err);
}

/* --- what comes from the bus --- */

static bool is_stuck(const struct cell *c, const struct post *p,
		     struct fault *why)
{
	unsigned int n = p->path ? hop_count(p->path, c->id) : 0;

	if (n < c->type->is.concurrency || c->type->is.is_reentrant)
		return false;
	fault_set(why, FAULT_WOULD_DEADLOCK, "'%s' would wait for itself",
		  c->id);
	return true;
}

static void request_arrive(struct runtime *rt, struct post *p)
{
	struct fault why = { 0 };
	struct cell *c = NULL;

	if (rt->phase == STOPPED)
		fault_set(&why, FAULT_UNAVAILABLE, "the runtime is stopped");
	else
		c = cell_need(rt, p->to, &why);
	if (c && !p->cancel)
		p->cancel = cancel_new(rt->loop, NULL, p->deadline);
	if (c && !is_stuck(c, p, &why))
		cell_accept(c, p, NULL);
	else
		bus_refuse(rt, p, &why);
	fault_done(&why);
}

static void cancel_arrive(struct runtime *rt, const struct post *p)
{
	struct cell *c = p->to ? cell_find(rt, p->to) : NULL;
	struct delivery *d = NULL;

	for (int i = 0; c && !d && i < LISTS; i++) {
		d = c->lists[i].first;
		while (d && !uuid_is(d->post->id, p->reply_to))
			d = d->next;
	}
	if (d)
		cancel_fire(d->post->cancel, p->why.message);
}

void bus_arrive(struct runtime *rt, struct post *p, struct ticket *t)
{
	switch (p->kind) {
	case POST_REQUEST:
		request_arrive(rt, p);
		break;
	case POST_EVENT:
		event_arrive(rt, p, t);
		break;
	case POST_RESPONSE:
	case POST_ERROR:
		pending_answer(rt, p);
		break;
	case POST_CANCEL:
	case POST_KINDS:
		cancel_arrive(rt, p);
		break;
	}
}
