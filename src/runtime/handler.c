/* SPDX-License-Identifier: Apache-2.0 */

/* Which handler of an actor a message is for. */

#include <string.h>

#include "runtime/cell.h"

static bool is_for(const struct handler *h, const struct delivery *d,
		   struct actor *a)
{
	enum post_kind kind = d->post->kind;

	if (h->only == HANDLE_REQUESTS && kind != POST_REQUEST)
		return false;
	if (h->only == HANDLE_EVENTS && kind != POST_EVENT)
		return false;
	return !h->when || h->when(a, d->message);
}

/* type NULL: the rows without one. */
static const struct handler *find(const struct delivery *d, struct actor *a,
				  const struct handler *rows, size_t n,
				  const char *type)
{
	for (size_t i = 0; i < n; i++) {
		const char *t = rows[i].type;
		bool is_type = type ? t && strcmp(t, type) == 0 : !t;

		if (is_type && is_for(&rows[i], d, a))
			return &rows[i];
	}
	return NULL;
}

void delivery_dispatch(struct delivery *d, struct actor *a,
		       const struct handler *rows, size_t n)
{
	const char *type = d->message->type;
	const struct handler *h = NULL;
	struct fault why = { 0 };

	for (; type && !h; type = message_base(d->cell->rt, type))
		h = find(d, a, rows, n, type);
	if (!h)
		h = find(d, a, rows, n, NULL);
	if (h) {
		h->run(a, d);
		return;
	}
	fault_set(&why, FAULT_CANT_HANDLE, "'%s' does not take '%s' as %s",
		  d->cell->type->name, d->message->type,
		  post_kind_name(d->post->kind));
	delivery_fail(d, &why);
	fault_done(&why);
}
