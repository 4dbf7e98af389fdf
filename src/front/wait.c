/* SPDX-License-Identifier: Apache-2.0 */

/* Who waits for a box, and ends of boxes that are removed (docker-api.md 8.4)
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "front/front.h"

struct end {
	char id[65];
	char name[130];
	uid_t owner;
	int exit_code;
	int64_t time_ns;
};

struct ends {
	size_t next; /* the oldest is overwritten */
	struct end v[FRONT_ENDS];
};

void ends_add(struct box *b)
{
	struct manager *m = b->m;
	struct end *e;

	if (!b->is_made)
		return;
	if (!m->ends)
		m->ends = calloc(1, sizeof(*m->ends));
	if (!m->ends)
		return;
	e = &m->ends->v[m->ends->next++ % FRONT_ENDS];
	memcpy(e->id, b->id, sizeof(e->id));
	memcpy(e->name, b->name, sizeof(e->name));
	e->owner = b->owner;
	e->exit_code = b->exit_code;
	e->time_ns = day_ns();
}

void ends_free(struct manager *m)
{
	free(m->ends);
	m->ends = NULL;
}

/* The newest of that id or name that the peer may know. */
static const struct end *ends_find(const struct manager *m,
				   const struct peer *peer, const char *text)
{
	size_t n = m->ends ? MIN(m->ends->next, (size_t)FRONT_ENDS) : 0;

	for (size_t i = 1; i <= n; i++) {
		const struct end
			*e = &m->ends->v[(m->ends->next - i) % FRONT_ENDS];

		if (e->time_ns + FRONT_ENDS_NS < day_ns())
			return NULL;
		if ((peer->uid == 0 || peer->uid == e->owner) &&
		    strcmp(e->id, text) == 0)
			return e;
	}
	return NULL;
}

static void deliver_waited(struct call *c)
{
	c->fn.waited(c->arg, c->exit_code, c->error);
}

static void answer(struct call *c, int exit_code, const char *error)
{
	c->exit_code = exit_code;
	c->error = error ? strdup(error) : NULL;
	call_end(c, NULL);
}

void box_tell_waiters(struct box *b, bool is_removed)
{
	struct call **p = &b->waiters;

	while (*p) {
		struct call *c = *p;

		if (c->is_dropped || is_removed ||
		    c->condition != WAIT_REMOVED) {
			*p = c->next;
			answer(c, b->exit_code, b->error);
		} else {
			p = &c->next;
		}
	}
}

static bool is_there(const struct box *b, enum box_condition condition)
{
	return condition == WAIT_NOT_RUNNING && !b->is_starting &&
	       !b->is_ending &&
	       (b->state == BOX_CREATED || b->state == BOX_EXITED);
}

struct call *box_wait(struct manager *m, const struct peer *peer,
		      const char *text, enum box_condition condition,
		      box_waited_fn *done, void *arg, struct err *err)
{
	struct box *b = box_find(m, peer, text, err);
	const struct end *e = NULL;
	struct call *c;

	if (!b)
		e = ends_find(m, peer, *text == '/' ? text + 1 : text);
	if (!b && !e)
		return NULL;
	c = call_new(m, arg);
	if (!c) {
		(void)err_set(err, ENOMEM, "out of memory");
		return NULL;
	}
	c->fn.waited = done;
	c->deliver = deliver_waited;
	c->condition = (int)condition;
	if (e)
		answer(c, e->exit_code, NULL);
	else if (is_there(b, condition))
		answer(c, b->exit_code, b->error);
	else
		calls_add(&b->waiters, c);
	return c;
}
