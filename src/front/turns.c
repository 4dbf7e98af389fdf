/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Turns at what the parent does for us: it has so many hands, and who holds one
 * can hold it long. A preparer is a process of its peer's user, who can stop
 * it; an archive comes as slowly as its sender likes. So each kind has a number
 * for all and a smaller one for one peer, and what can last has smaller ones
 * still. Who finds no hand free waits in the order of arrival, behind nobody
 * who has all that one peer may have.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/util.h"
#include "front/front.h"

#define WAITING_A_PEER 256

struct turn {
	struct turn *next;
	struct manager *m;
	enum turn_kind kind;
	uid_t owner;
	bool is_sent;
	bool is_asked;         /* a person; it has no hand of the parent's */
	int fds[TURN_MAX_FDS]; /* until it is sent */
	int n_fds;
	order_done_fn *done;
	void (*asked)(void *arg);
	void *arg;
};

/* serve/daemon.h: what the parent has, and some to spare. */
static const struct {
	uint32_t order;
	unsigned int all, a_peer;
} table[] = {
	[TURN_PREPARE] = { ORDER_PREPARE, 60, 20 },
	[TURN_IMAGE] = { ORDER_IMAGE, 4, 3 },
	[TURN_ARCHIVE] = { ORDER_IMAGE, 4, 2 },
	[TURN_SWEEP] = { ORDER_SWEEP, 4, 2 },
};

static bool may_go(const struct manager *m, const struct turn *t)
{
	unsigned int all = 0;
	unsigned int a_peer = 0;

	for (const struct turn *o = m->turns; o; o = o->next)
		if (o->is_sent && !o->is_asked && o->kind == t->kind) {
			all++;
			a_peer += o->owner == t->owner;
		}
	return all < table[t->kind].all && a_peer < table[t->kind].a_peer;
}

static void close_fds(struct turn *t)
{
	while (t->n_fds > 0)
		fd_close(&t->fds[--t->n_fds]);
}

static void unlink_turn(struct turn *t)
{
	struct turn **p = &t->m->turns;

	while (*p != t)
		p = &(*p)->next;
	*p = t->next;
}

static void turns_step(struct manager *m);

static void was_answered(void *arg, const struct order_answer *a, int *fds,
			 int n)
{
	struct turn *t = arg;
	struct manager *m = t->m;

	unlink_turn(t);
	t->done(t->arg, a, fds, n);
	free(t);
	turns_step(m);
}

static void was_asked(void *arg)
{
	struct turn *t = arg;
	struct manager *m = t->m;

	t->is_asked = true;
	if (t->asked)
		t->asked(t->arg);
	turns_step(m);
}

void turn_cancel(struct manager *m, const void *arg)
{
	for (struct turn *t = m->turns; t; t = t->next)
		if (t->arg == arg && t->is_asked) {
			orders_cancel(m->parent, t);
			return;
		}
}

static int go(struct turn *t, struct err *err)
{
	const struct order_want want = { .type = table[t->kind].order,
					 .fds = t->fds,
					 .n_fds = t->n_fds,
					 .asked = was_asked };
	int r = orders_ask(t->m->parent, &want, was_answered, t, err);

	if (r == 0) {
		t->is_sent = true;
		close_fds(t);
	}
	return r;
}

static struct turn *find_next(struct manager *m)
{
	for (struct turn *t = m->turns; t; t = t->next)
		if (!t->is_sent && may_go(m, t))
			return t;
	return NULL;
}

static void turns_step(struct manager *m)
{
	struct turn *t;

	while ((t = find_next(m))) {
		struct order_answer lost = { .type = ORDER_ANSWER };

		if (go(t, &lost.err) == 0)
			continue;
		lost.err.code = EPIPE;
		unlink_turn(t);
		t->done(t->arg, &lost, NULL, 0);
		close_fds(t);
		free(t);
	}
}

static int check_waiting(const struct manager *m, uid_t owner, struct err *err)
{
	unsigned int n = 0;

	for (const struct turn *t = m->turns; t; t = t->next)
		n += !t->is_sent && t->owner == owner;
	if (n >= WAITING_A_PEER)
		return err_set(err, MGR_BUSY,
			       "%u requests of one user wait, which is the "
			       "limit",
			       n);
	return 0;
}

static int add(struct turn *t, const int *fds, int n, struct err *err)
{
	struct turn **p = &t->m->turns;

	if (n > TURN_MAX_FDS)
		return err_set(err, E2BIG, "too many descriptors");
	for (; t->n_fds < n; t->n_fds++) {
		t->fds[t->n_fds] = fcntl(fds[t->n_fds], F_DUPFD_CLOEXEC, 3);
		if (t->fds[t->n_fds] < 0)
			return err_errno(err, errno, "keep a descriptor");
	}
	while (*p)
		p = &(*p)->next;
	*p = t;
	if (!may_go(t->m, t) || go(t, err) == 0)
		return 0;
	unlink_turn(t);
	return -err->code;
}

int turn_ask(struct manager *m, const struct turn_want *w, const int *fds,
	     int n, order_done_fn *done, void *arg, struct err *err)
{
	struct turn *t;

	if (check_waiting(m, w->owner, err) < 0)
		return -err->code;
	t = calloc(1, sizeof(*t));
	if (!t)
		return err_set(err, ENOMEM, "out of memory");
	t->m = m;
	t->kind = w->kind;
	t->owner = w->owner;
	t->done = done;
	t->asked = w->asked;
	t->arg = arg;
	if (add(t, fds, n, err) == 0)
		return 0;
	close_fds(t);
	free(t);
	return -err->code;
}
