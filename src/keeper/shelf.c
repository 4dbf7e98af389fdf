/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is kept of a box for the next one: its places in memory and its ids.
 *
 * A file system in memory lives as long as a mount of it does. The box's own
 * goes with the box; a second, detached one is held here by a descriptor, and
 * from that another is made for the next box (mounts_twin()). Its files belong
 * to the ids that the box had, so the lock on those is held too. Nothing
 * of it has a name, so nothing is left when the keeper ends, however it does.
 */

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/util.h"
#include "keeper/keeper.h"

struct shelf *shelf_find(struct keeper *k, uint32_t number)
{
	for (int i = 0; number && i < KEEPER_SHELVES; i++)
		if (k->shelves[i].number == number)
			return &k->shelves[i];
	return NULL;
}

struct shelf *shelf_take(struct keeper *k, struct box *b, uint32_t number,
			 struct err *err)
{
	struct shelf *s = NULL;

	for (int i = 0; i < KEEPER_SHELVES && !s; i++)
		if (k->shelves[i].number == 0)
			s = &k->shelves[i];
	if (!s) {
		(void)err_set(err, EBUSY,
			      "%d boxes have something kept already; remove "
			      "one",
			      KEEPER_SHELVES);
		return NULL;
	}
	memset(s, 0, sizeof(*s));
	s->lock = NO_FD;
	if (b->lock >= 0) {
		s->lock = fcntl(b->lock, F_DUPFD_CLOEXEC, KEEPER_FIRST_FD);
		if (s->lock < 0) {
			(void)err_errno(err, errno, "keep a uid");
			return NULL;
		}
	}
	s->number = number;
	s->host_uid = b->host_uid;
	s->host_block = b->host_block;
	s->ids = b->ids;
	return s;
}

static void let_go(const struct keeper *k, struct shelf *s)
{
	shed_fds(k, s->disks, s->n_disks);
	s->n_disks = 0;
	fd_close(&s->lock);
	s->number = 0;
}

void shelf_forget(struct keeper *k, uint32_t number)
{
	struct shelf *s = shelf_find(k, number);

	/* A box that is there has its own hold on it. */
	if (s)
		let_go(k, s);
}

void shelves_close(struct keeper *k)
{
	for (int i = 0; i < KEEPER_SHELVES; i++)
		if (k->shelves[i].number)
			let_go(k, &k->shelves[i]);
}

/* What a disk is for: where it is mounted, and how large it is (FNV-1a). */
static uint64_t what_is(const struct wire_mount *m, const char *target)
{
	uint64_t hash = 0xcbf29ce484222325ULL ^ m->size ^ m->inodes << 32;

	for (; *target; target++)
		hash = (hash ^ (unsigned char)*target) * 0x100000001b3ULL;
	return hash;
}

int shelf_disk(struct keeper *k, struct box *b, const struct wire_mount *m,
	       const char *target, int *mnt, struct err *err)
{
	struct shelf *s = shelf_find(k, b->shelf);
	uint64_t what = what_is(m, target);
	int twin;

	if (!s)
		return 0;
	if (*mnt < 0) {
		for (int i = 0; i < s->n_disks && *mnt < 0; i++)
			if (s->what[i] == what)
				*mnt = mounts_twin(&k->world, &s->disks[i],
						   err);
		return *mnt < 0 && err->code ? -err->code : 0;
	}
	if (s->n_disks >= BOX_DISKS)
		return err_set(err, E2BIG, "more than %d places in memory",
			       BOX_DISKS);
	twin = mounts_twin(&k->world, mnt, err);
	if (twin < 0)
		return twin;
	s->what[s->n_disks] = what;
	s->disks[s->n_disks++] = twin;
	return 0;
}
