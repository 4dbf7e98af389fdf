/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A box that stays, made before it is asked for.
 *
 * Who has opened the same box twice will probably open it a third time. So
 * when there is time, one is made with that spec as far as it goes: its init
 * stands behind the wall and waits. Nothing has run in it, and it is used
 * once, for a spec that is the same to the last byte.
 *
 * Only boxes in which nothing is mounted but what every box is made of: a
 * directory of somebody may be another one by then, and whose rights it is
 * opened with depends on who asks. The image of its root is not held, so it
 * can be removed meanwhile; then the box is thrown away when it is looked at.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"
#include "keeper/keeper.h"

/* When nothing happened for so long, nobody waits for us. */
#define QUIET_US 10000

/* Of one kind so many: that many can be asked for in a row. */
#define TWINS 3

/* What was not asked for by then is let go of. */
#define KEPT_US (60 * 1000000LL)
#define KEPT    6

/* FNV-1a, by words: a prediction is not a proof. */
static uint64_t digest(const struct wire_box *spec)
{
	const uint64_t *w = (const void *)spec;
	uint64_t hash = 0xcbf29ce484222325ULL;

	for (uint64_t i = 0; i < spec->blob.size / sizeof(*w); i++)
		hash = (hash ^ w[i]) * 0x100000001b3ULL;
	return hash;
}

static bool was_seen(struct ahead *a, uint64_t what)
{
	for (size_t i = 0; i < AHEAD_SEEN; i++)
		if (a->seen[i] == what)
			return true;
	a->seen[a->n_seen++ % AHEAD_SEEN] = what;
	return false;
}

static bool may_be_ahead(const struct wire_box *spec)
{
	return !(spec->blob.flags & WIRE_TTY) && peer_may_see_all(spec);
}

/* The image is still there, and stays from here on. */
static bool hold_again(const struct box *b)
{
	struct stat st;

	return b->hold < 0 || (flock(b->hold, LOCK_SH | LOCK_NB) == 0 &&
			       fstat(b->hold, &st) == 0 && st.st_nlink > 0);
}

void ahead_drop(struct keeper *k, struct box *b)
{
	uint32_t shelf = b->shelf;

	box_release(k, b);
	shelf_forget(k, shelf);
}

static struct box *find_ready(struct keeper *k, const struct wire_box *spec,
			      bool has_shelf, int *ret_n)
{
	struct box *ret = NULL;

	*ret_n = 0;
	for (int i = 0; i < k->top; i++) {
		struct box *b = &k->boxes[i];

		if (!box_waits(b, BOX_READY) || !b->stays ||
		    (b->shelf != 0) != has_shelf ||
		    !spec_is_same(b->spec, spec))
			continue;
		++*ret_n;
		ret = b;
	}
	return ret;
}

/* Its death may be news that we have not read yet. */
static bool is_alive(const struct box *b)
{
	struct pollfd p = { .fd = b->pidfd, .events = POLLIN };

	return poll(&p, 1, 0) == 0;
}

struct box *ahead_take(struct keeper *k, const struct wire_box *spec,
		       struct ids ids, uint32_t shelf)
{
	int n;
	struct box *b = find_ready(k, spec, shelf != 0, &n);

	if (!b)
		return NULL;
	if (b->ids.caller != ids.caller || !is_alive(b) || !hold_again(b)) {
		ahead_drop(k, b);
		return NULL;
	}
	if (shelf)
		shelf_find(k, b->shelf)->number = shelf;
	b->shelf = shelf;
	b->deadline = 0;
	return b;
}

void ahead_plan(struct keeper *k, const struct wire_box *spec, struct ids ids,
		int fd, bool has_shelf)
{
	struct ahead *a = &k->ahead;
	bool is_known = was_seen(a, digest(spec)) && may_be_ahead(spec);

	(void)find_ready(k, spec, has_shelf, &a->n_ready);
	if (is_known && a->n_ready >= TWINS)
		return;
	fd_close(&a->spec);
	if (is_known)
		a->spec = fcntl(fd, F_DUPFD_CLOEXEC, KEEPER_FIRST_FD);
	a->shelf = has_shelf;
	a->ids = ids;
	a->is_planned = true;
	a->is_soon = false;
	ahead_wait(k);
}

void ahead_wait(struct keeper *k)
{
	if (k->ahead.is_planned && !k->ahead.is_soon)
		k->ahead.at = clock_us() + QUIET_US;
}

/* Made by us, whole, and used by nobody. */
static bool is_waiting(const struct box *b)
{
	return b->pid > 0 &&
	       (b->state == BOX_PARKED || (b->state == BOX_READY && b->stays));
}

static struct box *oldest(struct keeper *k, int *ret_n)
{
	struct box *ret = NULL;

	*ret_n = 0;
	for (int i = 0; i < k->top; i++) {
		struct box *b = &k->boxes[i];

		if (!is_waiting(b))
			continue;
		++*ret_n;
		if (!ret || b->serial < ret->serial)
			ret = b;
	}
	return ret;
}

struct box *ahead_give_up(struct keeper *k)
{
	int n;
	struct box *b = oldest(k, &n);

	if (b)
		ahead_drop(k, b);
	return b;
}

/* At most so many wait; the oldest goes. */
static void make_room(struct keeper *k)
{
	int n;

	(void)oldest(k, &n);
	if (n >= KEPT)
		(void)ahead_give_up(k);
}

/* One of two: the other one when there is time. */
static void plan_twin(struct keeper *k, const struct box *b, int *fd)
{
	struct ahead *a = &k->ahead;

	(void)find_ready(k, b->spec, a->shelf, &a->n_ready);
	if (a->n_ready >= TWINS)
		return;
	a->spec = take_fd(fd);
	a->is_planned = true;
	ahead_wait(k);
}

/* The next box with these ids, without a spec. NULL: there can be none. */
static struct box *park(struct keeper *k)
{
	struct err unused = { 0 };
	struct box *b;

	make_room(k);
	b = box_spawn(k, k->ahead.ids, &unused);
	if (b)
		b->deadline = clock_us() + KEPT_US;
	return b;
}

static void configure(struct keeper *k, struct box *b, int *fd)
{
	uint32_t shelf = k->ahead.shelf ? AHEAD_SHELF | b->serial : 0;
	struct err unused = { 0 };

	if (session_configure(k, b, shelf, *fd, &unused) < 0) {
		ahead_drop(k, b);
		return;
	}
	b->deadline = clock_us() + KEPT_US;
	if (b->hold >= 0)
		(void)flock(b->hold, LOCK_UN);
	plan_twin(k, b, fd);
}

/*
 * In two steps, between which somebody may be heard who waits. Without a spec
 * at least the ids are known.
 */
static void make(struct keeper *k)
{
	struct ahead *a = &k->ahead;
	_cleanup_fd_ int fd = take_fd(&a->spec);
	struct box *b = run_find_parked(k, a->ids);
	bool is_parked = b;

	a->is_planned = false;
	a->is_soon = false;
	if (!b)
		b = park(k);
	if (!b)
		return;
	if (b->ids.many != a->ids.many) {
		/* With fewer users than are wanted it would not be found. */
		if (fd < 0)
			ahead_drop(k, b);
		else
			configure(k, b, &fd);
	} else if (fd >= 0 && is_parked) {
		configure(k, b, &fd);
	} else if (fd >= 0) {
		a->spec = take_fd(&fd);
		a->is_planned = true;
		a->is_soon = true;
		a->at = 0;
	}
}

/*
 * While another is ready it can wait until nothing happens: made now, it would
 * take a CPU from whoever hears of this end, and from the next box's start.
 */
void ahead_soon(struct keeper *k)
{
	if (k->ahead.is_planned && k->ahead.n_ready == 0)
		make(k);
}

void ahead_timers(struct keeper *k)
{
	int64_t now = clock_us();

	if (k->ahead.is_planned && now >= k->ahead.at)
		make(k);
	for (int i = 0; i < k->top; i++) {
		struct box *b = &k->boxes[i];

		if (is_waiting(b) && b->deadline && now >= b->deadline)
			ahead_drop(k, b);
	}
}

int64_t ahead_next_look(const struct keeper *k)
{
	int64_t next = k->ahead.is_planned ? k->ahead.at : INT64_MAX;

	for (int i = 0; i < k->top; i++) {
		const struct box *b = &k->boxes[i];

		if (is_waiting(b) && b->deadline)
			next = MIN(next, b->deadline);
	}
	return next;
}
