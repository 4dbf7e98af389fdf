/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Whose a kill for memory was, in a box that stays.
 *
 * They are counted for the whole box: init stands in its group, so that in
 * version 2 the groups of programs cannot have the memory controller, and in
 * version 1 another group of it for each program would cost more than the
 * program's start. So it is told by what is seen: the first process ended by
 * SIGKILL that we did not send, or as a shell does whose command was, and there
 * was a kill in its life that was not another program's already.
 *
 * That alone can be forged. Another program lets a child of its own be killed
 * for memory, and then sends SIGKILL itself. So nothing is said unless nobody
 * else in the box could have sent one: no other program has run in that life.
 * One that only waits, as the first program of many a box, has used no time of
 * a CPU meanwhile; each has a group of its own that counts it. It is read when
 * another program starts, and when one was killed.
 */

#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/util.h"
#include "keeper/keeper.h"

/* More others than this are not looked at, but taken to have run. */
#define MAX_OTHERS 16

/*
 * The kernel may count what runs now only at its next tick. In a life shorter
 * than some of these, one that ran all the time could look as if it waited.
 */
#define TICKS_US 25000

/* Requests for files are init's own work. */
static bool is_other(const struct program *p, const struct program *q)
{
	return q != p && q->state != PROGRAM_FREE && q->box == p->box &&
	       q->born;
}

/* Whether it has run since the last look; what cannot be known has. */
static bool has_run(struct keeper *k, struct program *q)
{
	uint64_t used = cg_part_cpu_us(&k->cg, &k->boxes[q->box].cg, q->number);
	bool is_same = used && used == q->cpu_seen;

	q->cpu_seen = used;
	return !is_same;
}

/* How many others there are; which of them have run is noted. */
static int look_at_others(struct keeper *k, const struct program *p)
{
	int n = 0;

	k->stamp++;
	for (int i = 0; i < k->top_program; i++) {
		struct program *q = &k->programs[i];

		if (is_other(p, q) && (++n > MAX_OTHERS || has_run(k, q)))
			q->ran = k->stamp;
	}
	return n;
}

void blame_begin(struct keeper *k, struct program *p)
{
	struct cg_usage now;

	cg_box_counts(&k->cg, &k->boxes[p->box].cg, &now);
	p->oom_before = now.oom_kills;
	p->refused_before = now.pids_refused;
	if (p->is_files)
		return;
	(void)look_at_others(k, p);
	p->born = ++k->stamp;
}

void blame_end(struct keeper *k, const struct program *p)
{
	if (p->born)
		k->boxes[p->box].last_end = ++k->stamp;
}

/* Whether any other program of the box may have run in the life of `p`. */
static bool others_ran(struct keeper *k, const struct program *p)
{
	int n = look_at_others(k, p);

	if (k->boxes[p->box].last_end > p->born)
		return true;
	if (n > 0 && clock_us() - p->started < TICKS_US)
		return true;
	for (int i = 0; i < k->top_program; i++)
		if (is_other(p, &k->programs[i]) &&
		    k->programs[i].ran > p->born)
			return true;
	return false;
}

uint64_t blame_kills(struct keeper *k, const struct program *p, uint64_t kills)
{
	struct box *b = &k->boxes[p->box];
	uint64_t before = MAX(p->oom_before, b->oom_claimed);
	int status = p->wait_status;
	bool is_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
	bool is_shell = WIFEXITED(status) &&
			WEXITSTATUS(status) == 128 + SIGKILL;

	if (p->end != WIRE_BY_ITSELF || p->is_shot || kills <= before ||
	    (!is_killed && !is_shell) || others_ran(k, p))
		return 0;
	if (is_killed)
		b->oom_claimed = before + 1;
	return kills - before;
}
