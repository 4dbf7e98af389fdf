/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A program in a box that stays.
 *
 *	STARTING --init: begun--> RUNNING --init: done--> told, LEFT or FREE
 *	   either --killed--> ENDING --init: done, group empty--> told, FREE
 *
 * Each has a group of its own below the box's (os/cgroup.h: parts). So what it
 * started can be ended whole, also what has forked twice and is in a session
 * of its own, and nothing else of the box is. The end of a program that was
 * killed is told only when its group is empty. What an ended program left
 * behind stays in its group, which is looked at from time to time and removed
 * when it is empty.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/util.h"
#include "keeper/keeper.h"

#define CPU_CHECK_MIN_US 5000
#define SOON_US          500
#define ENDING_MAX_US    50000
#define LEFT_MIN_US      100000
#define LEFT_MAX_US      10000000

/* How long one request for files may take. */
#define FILES_US (15 * 60 * 1000000LL)

static struct box *box_of(struct keeper *k, const struct program *p)
{
	return &k->boxes[p->box];
}

struct program *program_get(struct keeper *k, const struct box *b,
			    uint32_t number)
{
	for (int i = 0; i < k->top_program; i++) {
		struct program *p = &k->programs[i];

		if (p->state != PROGRAM_FREE && p->number == number &&
		    p->box == (int)(b - k->boxes))
			return p;
	}
	return NULL;
}

static struct program *take_free(struct keeper *k)
{
	for (int i = 0; i < KEEPER_PROGRAMS; i++) {
		struct program *p = &k->programs[i];

		if (p->state != PROGRAM_FREE)
			continue;
		if (i >= k->top_program)
			k->top_program = i + 1;
		memset(p, 0, sizeof(*p));
		return p;
	}
	return NULL;
}

static void forget(struct keeper *k, struct program *p)
{
	if (cg_part_remove(&k->cg, &box_of(k, p)->cg, p->number) < 0)
		k->has_left = true;
	blame_end(k, p);
	p->state = PROGRAM_FREE;
}

/* The time limits; the rest of the work is init's to read. */
static int read_times(int fd, struct wire_times *ret, struct err *err)
{
	struct wire_work head;
	uint32_t n_blocks = 0;

	if (pread(fd, &head, sizeof(head), 0) != sizeof(head) ||
	    head.blob.magic != WIRE_WORK_MAGIC || head.n_steps > WIRE_MAX_STEPS)
		return err_set(err, EPROTO, "the work has another layout");
	*ret = head.times;
	for (uint32_t i = 0; i < head.n_steps; i++)
		n_blocks += (head.steps[i].flags & WIRE_STEP_END_BLOCK) != 0;
	/* Where one block ends is not told here: the time of all counts. */
	if (n_blocks > 1)
		ret->timeout_us = 0;
	return 0;
}

static int send_start(struct keeper *k, const struct box *b,
		      const struct wire_ask *ask, const int *fds, int n_fds,
		      struct err *err)
{
	struct wire_ask to_init = *ask;
	int all[4 + 1 + CG_ROLES];
	struct cg_join join;
	int n = n_fds;
	int r;

	if (n_fds > 4)
		return err_set(err, EPROTO, "too many descriptors");
	if (box_open_part(k, b, ask->exec, &join, err) < 0)
		return -err->code;
	memcpy(all, fds, sizeof(int) * (size_t)n_fds);
	to_init.flags &= WIRE_ASK_TTY | WIRE_ASK_LAST | WIRE_ASK_HOLD;
	if (join.dir >= 0) {
		to_init.flags |= WIRE_ASK_BIRTH;
		all[n++] = join.dir;
	}
	for (int i = 0; i < join.n_tasks; i++)
		all[n++] = join.tasks[i];
	to_init.n_groups = (uint32_t)(n - n_fds);
	r = io_send_now(b->sock, &to_init, sizeof(to_init), all, n);
	cg_join_close(&join);
	/* Where init is gone, its death ends this one too. */
	if (r < 0 && !init_is_gone(r))
		return err_errno(err, -r, "send the work to init");
	return 0;
}

int program_start(struct keeper *k, struct box *b, const struct wire_ask *ask,
		  const int *fds, int n_fds, struct err *err)
{
	struct program *p = take_free(k);

	if (!p)
		return err_set(err, EBUSY, "%d programs are there already",
			       KEEPER_PROGRAMS);
	p->number = ask->exec;
	p->box = (int)(b - k->boxes);
	p->is_files = ask->type == WIRE_FILES;
	p->kill_rest = p->is_files || (ask->flags & WIRE_ASK_KILL_REST);
	p->is_last = ask->flags & WIRE_ASK_LAST;
	p->is_held = ask->flags & WIRE_ASK_HOLD;
	if (!p->is_files && read_times(fds[0], &p->times, err) < 0)
		return err_stage(err, "work");
	if (cg_part_make(&k->cg, &b->cg, p->number, b->host_uid, err) < 0)
		return err_stage(err, "cgroup");
	p->state = PROGRAM_STARTING;
	blame_begin(k, p);
	if (p->is_files)
		p->deadline = clock_us() + FILES_US;
	if (send_start(k, b, ask, fds, n_fds, err) < 0) {
		forget(k, p);
		return err_stage(err, "init");
	}
	return 0;
}

void program_signal(struct keeper *k, struct program *p, int signal)
{
	const struct wire_ask ask = { .type = WIRE_SIGNAL,
				      .exec = p->number,
				      .value = (uint32_t)signal };

	p->is_shot = p->is_shot || signal == SIGKILL;
	if (p->state == PROGRAM_STARTING || p->state == PROGRAM_RUNNING ||
	    p->state == PROGRAM_ENDING)
		(void)io_send_now(box_of(k, p)->sock, &ask, sizeof(ask), NULL,
				  0);
}

static void plan_cpu_check(struct keeper *k, struct program *p)
{
	uint64_t used = cg_part_cpu_us(&k->cg, &box_of(k, p)->cg, p->number);
	uint64_t limit = p->times.cpu_time_us;
	uint64_t left = limit > used ? limit - used : 0;

	p->cpu_check = clock_us() +
		       (int64_t)MAX(left / k->cg.n_cpus, CPU_CHECK_MIN_US);
}

void program_begun(struct keeper *k, struct program *p, int tty)
{
	const struct wire_told told = { .type = WIRE_BEGUN,
					.job = box_of(k, p)->job,
					.exec = p->number };
	const struct wire_times *t = &p->times;

	if (p->is_files)
		return;
	p->started = clock_us();
	if (p->state == PROGRAM_STARTING)
		p->state = PROGRAM_RUNNING;
	if (t->timeout_us)
		p->deadline = p->started + (int64_t)t->timeout_us;
	if (t->total_us)
		p->total_deadline = p->started + (int64_t)t->total_us;
	if (t->cpu_time_us)
		plan_cpu_check(k, p);
	session_tell(k, &told, &tty, tty >= 0);
	keeper_moment("begun");
}

/* Ends what there is; where there is no group, init does what it can. */
static void kill_group(struct keeper *k, const struct program *p)
{
	const struct wire_ask ask = { .type = WIRE_KILL, .exec = p->number };
	struct box *b = box_of(k, p);

	if (!cg_part_kill(&k->cg, &b->cg, p->number))
		(void)io_send_now(b->sock, &ask, sizeof(ask), NULL, 0);
}

static void look_soon(struct program *p, int64_t patience)
{
	p->patience = patience;
	p->look_at = clock_us() + patience;
}

void program_kill(struct keeper *k, struct program *p, enum wire_end end)
{
	if (p->state == PROGRAM_STARTING || p->state == PROGRAM_RUNNING) {
		p->end = end;
		p->pids_full = cg_box_is_full(&box_of(k, p)->cg);
		p->state = PROGRAM_ENDING;
	}
	kill_group(k, p);
	look_soon(p, SOON_US);
}

static void tell_end(struct keeper *k, struct program *p, const struct err *err)
{
	struct wire_told told = { .type = WIRE_DONE, .exec = p->number };
	struct wire_outcome *o = &told.outcome;
	struct box *b = box_of(k, p);
	struct cg_usage u;

	if (p->is_files)
		return;
	told.job = b->job;
	*o = b->outcome;
	o->err = err ? *err : (struct err){ 0 };
	o->end = p->end;
	o->wait_status = p->wait_status;
	o->exec_errno = p->exec_errno;
	o->step = p->step;
	o->wall_us = p->wall_us;
	o->pids_full = p->pids_full;
	cg_box_usage(&k->cg, &b->cg, &u);
	o->memory_peak = u.memory_peak;
	o->oom_kills = blame_kills(k, p, u.oom_kills);
	o->pids_peak = u.pids_peak;
	o->pids_refused = u.pids_refused - p->refused_before;
	o->cpu_us = cg_part_cpu_us(&k->cg, &b->cg, p->number);
	session_tell(k, &told, NULL, 0);
	if (p->is_last)
		session_over(k, b);
}

/* Told, or there is nobody to be told: whatever is left has its group. */
static void leave(struct keeper *k, struct program *p)
{
	/* With a box that ends goes its group too; the client waits. */
	if (!p->is_last &&
	    cg_part_is_empty(&k->cg, &box_of(k, p)->cg, p->number)) {
		forget(k, p);
		return;
	}
	p->state = PROGRAM_LEFT;
	look_soon(p, LEFT_MIN_US);
}

static void check_empty(struct keeper *k, struct program *p)
{
	bool is_empty = cg_part_is_empty(&k->cg, &box_of(k, p)->cg, p->number);

	if (is_empty && p->state == PROGRAM_LEFT) {
		forget(k, p);
	} else if (is_empty && p->heard) {
		tell_end(k, p, NULL);
		forget(k, p);
	} else if (p->state == PROGRAM_LEFT) {
		look_soon(p, MIN(p->patience * 2, LEFT_MAX_US));
	} else {
		kill_group(k, p);
		look_soon(p, MIN(p->patience * 2, ENDING_MAX_US));
	}
}

void program_done(struct keeper *k, struct program *p,
		  const struct wire_outcome *o)
{
	box_look_at_disks(box_of(k, p));
	p->heard = true;
	p->wait_status = o->wait_status;
	p->exec_errno = o->exec_errno;
	p->step = o->step;
	p->wall_us = o->wall_us;
	box_of(k, p)->outcome.net_refused = o->net_refused;
	box_of(k, p)->outcome.net_opened = o->net_opened;
	p->deadline = p->total_deadline = p->cpu_check = p->kill_at = 0;
	if (p->state != PROGRAM_ENDING && !p->kill_rest) {
		tell_end(k, p, &o->err);
		leave(k, p);
		return;
	}
	if (o->err.code && p->state != PROGRAM_ENDING) {
		tell_end(k, p, &o->err);
		p->is_files = true; /* there is no more to tell */
	}
	p->state = PROGRAM_ENDING;
	if (!cg_part_is_empty(&k->cg, &box_of(k, p)->cg, p->number))
		kill_group(k, p);
	p->patience = SOON_US / 2;
	check_empty(k, p);
}

void programs_end(struct keeper *k, struct box *b)
{
	for (int i = 0; i < k->top_program; i++) {
		struct program *p = &k->programs[i];

		if (p->state == PROGRAM_FREE || p->box != (int)(b - k->boxes))
			continue;
		if (!p->heard) {
			p->wait_status = SIGKILL;
			if (p->started)
				p->wall_us = (uint64_t)(clock_us() -
							p->started);
			if (p->end == WIRE_BY_ITSELF)
				p->end = b->outcome.end ? b->outcome.end
							: WIRE_BY_LOSS;
		}
		if (p->state != PROGRAM_LEFT)
			tell_end(k, p, NULL);
		forget(k, p);
	}
}

int programs_freeze(struct keeper *k, struct box *b, bool is_frozen)
{
	int first = 0;

	for (int i = 0; i < k->top_program; i++) {
		const struct program *p = &k->programs[i];
		int r;

		if (p->state == PROGRAM_FREE || p->box != (int)(b - k->boxes))
			continue;
		r = cg_part_freeze(&k->cg, &b->cg, p->number, is_frozen);
		if (r < 0 && !first)
			first = r;
	}
	return first;
}

static void check_cpu(struct keeper *k, struct program *p)
{
	if (cg_part_cpu_us(&k->cg, &box_of(k, p)->cg, p->number) >=
	    p->times.cpu_time_us)
		program_kill(k, p, WIRE_BY_CPU);
	else
		plan_cpu_check(k, p);
}

/* At the deadline: SIGTERM first where a time of grace was given. */
static void timed_out(struct keeper *k, struct program *p, enum wire_end end,
		      int64_t now)
{
	if (p->times.grace_us && !p->kill_at) {
		p->end = end;
		p->kill_at = now + (int64_t)p->times.grace_us;
		program_signal(k, p, SIGTERM);
		return;
	}
	if (!p->kill_at || now >= p->kill_at)
		program_kill(k, p, end);
}

void programs_timers(struct keeper *k)
{
	int64_t now = k->top_program ? clock_us() : 0;

	for (int i = 0; i < k->top_program; i++) {
		struct program *p = &k->programs[i];
		bool is_alive = p->state == PROGRAM_STARTING ||
				p->state == PROGRAM_RUNNING;

		if (!is_alive && p->look_at && now >= p->look_at &&
		    p->state != PROGRAM_FREE)
			check_empty(k, p);
		if (!is_alive)
			continue;
		if (p->deadline && now >= p->deadline)
			timed_out(k, p, WIRE_BY_TIMEOUT, now);
		else if (p->total_deadline && now >= p->total_deadline)
			timed_out(k, p, WIRE_BY_TOTAL, now);
		else if (p->cpu_check && now >= p->cpu_check)
			check_cpu(k, p);
	}
}

static int64_t next_look(const struct program *p)
{
	int64_t next = INT64_MAX;

	if (p->state == PROGRAM_ENDING || p->state == PROGRAM_LEFT)
		return p->look_at;
	if (p->state == PROGRAM_FREE)
		return next;
	if (p->kill_at)
		return p->kill_at;
	if (p->deadline)
		next = p->deadline;
	if (p->total_deadline)
		next = MIN(next, p->total_deadline);
	if (p->cpu_check)
		next = MIN(next, p->cpu_check);
	return next;
}

int64_t programs_next_look(const struct keeper *k)
{
	int64_t next = INT64_MAX;

	for (int i = 0; i < k->top_program; i++)
		next = MIN(next, next_look(&k->programs[i]));
	return next;
}
