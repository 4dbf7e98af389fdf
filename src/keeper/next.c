/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The next box of a keeper that serves run after run, made while one runs.
 *
 * In two steps, its birth and its configuration, each only when nothing else
 * is to be done: whoever waits for an end waits for one step at most. Where
 * the next run comes between, it takes the box as far as it is.
 */

#include <sched.h>
#include <sys/mman.h>

#include "base/util.h"
#include "keeper/keeper.h"

/*
 * The CPU that the running box is bound to, which we may have been woken on:
 * then its program would have to wait for us, with other CPUs idle. Once moved
 * we may be anywhere again; what is born inherits it.
 */
static void step_aside(const struct keeper *k)
{
	int here = sched_getcpu();
	cpu_set_t own;
	cpu_set_t free;

	if (here < 0 || sched_getaffinity(0, sizeof(own), &own) < 0)
		return;
	free = own;
	for (int i = 0; i < k->top; i++) {
		const struct box *b = &k->boxes[i];

		if (b->only_cpu >= 0 &&
		    (b->state == BOX_SETUP || b->state == BOX_RUNNING))
			CPU_CLR((size_t)b->only_cpu, &free);
	}
	if (CPU_ISSET((size_t)here, &free) || CPU_COUNT(&free) == 0)
		return;
	(void)sched_setaffinity(0, sizeof(free), &free);
	(void)sched_setaffinity(0, sizeof(own), &own);
}

/*
 * A directory of the host may be another one by then, and a terminal has a
 * size: such a box is not made ahead.
 */
static bool may_be_next(const struct wire_box *spec)
{
	if (spec->blob.flags & WIRE_TTY)
		return false;
	for (uint32_t i = 0; i < spec->n_mounts; i++)
		if (spec->mounts[i].flags & WIRE_MNT_IDMAP)
			return false;
	return true;
}

/* Lets go of those for another run; whether there is one for this. */
static bool is_ready(struct keeper *k, const struct wire_box *spec, bool may_be)
{
	bool found = false;

	for (int i = 0; i < k->top; i++) {
		struct box *b = &k->boxes[i];

		if (b->stays || b->state != BOX_READY)
			continue;
		if (may_be && spec_is_same(b->spec, spec))
			found = true;
		else
			box_release(k, b);
	}
	return found;
}

void next_plan(struct keeper *k, int *fd)
{
	fd_close(&k->next);
	k->next = take_fd(fd);
	k->next_is_born = false;
}

/* One step; whether there is another. */
static bool go_on(struct keeper *k, const struct wire_box *spec)
{
	struct box *b = run_find_parked(k, run_ids(k, spec));
	struct err unused = { 0 };

	if (b) {
		if (box_configure(k, b, k->next, &unused) < 0)
			box_release(k, b);
		return false;
	}
	/* One that did not live: the run that needs it will hear why. */
	if (k->next_is_born)
		return false;
	k->next_is_born = true;
	step_aside(k);
	return box_spawn(k, run_ids(k, spec), &unused) != NULL;
}

void next_step(struct keeper *k)
{
	struct err unused = { 0 };
	const struct wire_box *spec = spec_map(k->next, &unused);
	bool may_be = spec && may_be_next(spec);

	if (!spec || is_ready(k, spec, may_be) || !may_be || !go_on(k, spec))
		fd_close(&k->next);
	if (spec)
		(void)munmap((void *)spec, spec->blob.size);
}
