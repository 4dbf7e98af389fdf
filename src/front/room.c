/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Admission: so many walls may stand at once, in all and for one peer.
 *
 * Who finds no room waits in the order of arrival, at most limits.waiting of
 * them and for at most limits.wait_us. A peer that has all that one peer may
 * have does not hold up the others behind it. Boxes that were built ahead, and
 * in which nothing runs, make room for those that want to run something.
 */

#include "base/clock.h"
#include "base/util.h"
#include "front/front.h"

static unsigned int count_of_peer(const struct manager *m, uid_t uid)
{
	unsigned int n = 0;

	for (const struct box *b = m->boxes; b; b = b->next)
		n += b->has_room && b->owner == uid;
	return n;
}

static bool may_have(const struct box *b)
{
	const struct manager *m = b->m;

	return m->n_live < m->limits.boxes &&
	       count_of_peer(m, b->owner) < m->limits.boxes_a_peer;
}

bool room_take(struct box *b)
{
	if (b->has_room)
		return true;
	if (b->m->is_draining || !may_have(b))
		return false;
	b->has_room = true;
	b->m->n_live++;
	return true;
}

/* Ends the oldest wall behind which nothing runs; false if there is none. */
static bool make_room(const struct box *b)
{
	struct manager *m = b->m;
	bool is_own = m->n_live < m->limits.boxes;
	struct box *oldest = NULL;

	for (struct box *o = m->boxes; o; o = o->next)
		if (o->session && !o->is_closing && !o->is_starting &&
		    o->state != BOX_RUNNING && o->state != BOX_PAUSED &&
		    !o->needs && !o->n_tars &&
		    (!is_own || o->owner == b->owner))
			oldest = o;
	if (oldest)
		box_close_wall(oldest);
	return oldest;
}

static void waited_long(void *arg)
{
	struct box *b = arg;

	room_leave(b);
	box_no_room(b);
}

void room_none(const struct box *b, struct err *err)
{
	const struct manager *m = b->m;
	unsigned int n = count_of_peer(m, b->owner);

	/* Where both are the same number, it is what was given to us. */
	if (n >= m->limits.boxes_a_peer &&
	    m->limits.boxes_a_peer < m->limits.boxes)
		(void)err_set(err, MGR_BUSY,
			      "%u boxes of this user are alive, which is the "
			      "limit for one user; stop one",
			      n);
	else
		(void)err_set(err, MGR_BUSY,
			      "%u boxes are alive, which is the limit "
			      "(--max-boxes)",
			      m->n_live);
}

/* Disks of boxes that are stopped are the keeper's memory. */
int room_check_kept(const struct box *b, struct err *err)
{
	unsigned int n = 0;

	for (const struct box *o = b->m->boxes; o; o = o->next)
		n += o != b && o->owner == b->owner &&
		     (o->is_shelved || o->session);
	if (b->is_shelved || n < WIRE_SHELVES / 2)
		return 0;
	return err_set(err, MGR_BUSY,
		       "files of %u boxes of this user are kept, which is the "
		       "limit; remove some",
		       n);
}

int room_wait(struct box *b, struct err *err)
{
	struct manager *m = b->m;
	struct box **p = &m->queue;

	if (m->is_draining)
		return err_set(err, MGR_BUSY, "the daemon is stopping");
	if (m->n_queued >= m->limits.waiting) {
		room_none(b, err);
		return err_wrap(err, "%u boxes wait already", m->n_queued);
	}
	while (*p)
		p = &(*p)->room_next;
	*p = b;
	b->room_next = NULL;
	b->is_queued = true;
	m->n_queued++;
	alarm_set(m, &b->room_alarm, m->limits.wait_us, waited_long, b);
	(void)make_room(b);
	return 0;
}

void room_leave(struct box *b)
{
	struct box **p = &b->m->queue;

	if (!b->is_queued)
		return;
	while (*p != b)
		p = &(*p)->room_next;
	*p = b->room_next;
	b->is_queued = false;
	b->m->n_queued--;
	alarm_clear(&b->room_alarm);
}

void room_give(struct box *b)
{
	struct manager *m = b->m;
	struct box *next = m->queue;

	if (!b->has_room)
		return;
	b->has_room = false;
	m->n_live--;
	while (next && !may_have(next))
		next = next->room_next;
	if (!next)
		return;
	room_leave(next);
	if (room_take(next))
		box_have_room(next);
	else
		box_no_room(next);
}
