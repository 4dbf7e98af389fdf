/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An instance that goes before its runtime. It may be the one whose handler
 * runs at this moment, so the cell is only taken out of everybody's sight;
 * the loop frees it, and the actor with it.
 */

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "runtime/cell.h"

static void forget(struct runtime *rt, struct cell *c)
{
	struct cell **p = &rt->first_cell;

	while (*p != c)
		p = &(*p)->later;
	*p = c->later;
	if (rt->last_cell == &c->later)
		rt->last_cell = p;
	table_remove(&rt->cells, &c->node);
	rt->n_cells--;
}

static void bury(struct task *t)
{
	struct cell *c = (struct cell *)((char *)t -
					 offsetof(struct cell, task));
	struct cell **p = &c->rt->gone;

	while (*p != c)
		p = &(*p)->later;
	*p = c->later;
	cell_free(c);
}

static void refuse(struct delivery *d)
{
	bool is_request = d->post->kind == POST_REQUEST;
	struct fault why = { 0 };

	fault_set(&why, is_request ? FAULT_UNAVAILABLE : FAULT_DROPPED,
		  "'%s' has gone", d->cell->id);
	delivery_end(d, NULL, &why);
	fault_done(&why);
}

int runtime_unregister(struct runtime *rt, const char *id, struct err *err)
{
	struct cell *c = cell_find(rt, id);

	if (!c)
		return err_set(err, ENOENT, "no such agent: '%s'", id);
	forget(rt, c);
	for (int i = 0; i < LISTS; i++)
		while (c->lists[i].first)
			refuse(c->lists[i].first);
	task_drop(&c->task);
	c->task.run = bury;
	c->later = rt->gone;
	rt->gone = c;
	loop_soon(rt->loop, &c->task);
	return 0;
}
