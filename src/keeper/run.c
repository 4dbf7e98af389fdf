/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One run: a box gets its work, lives, and ends.
 *
 *	PARKED --spec--> READY --work--> SETUP --init: started--> RUNNING
 *	   any of them --killed--> DYING --init's death--> told, FREE
 *
 * The end is told to the client only when init has been reaped: then, by the
 * kernel's rules for pid namespaces, no process of the box exists. What is
 * known of it is told before, when init says that it is the last (over).
 */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/util.h"
#include "keeper/keeper.h"
#include "os/uapi.h"

#define CPU_CHECK_MIN_US 5000

/* What init has for ending a block, before the box is ended with it. */
#define BLOCK_LATE_US 500000

struct box *run_find(struct keeper *k, uint32_t job)
{
	for (int i = 0; i < k->top; i++) {
		struct box *b = &k->boxes[i];

		if (b->state > BOX_READY && !b->stays && b->job == job)
			return b;
	}
	return NULL;
}

static void tell(struct keeper *k, uint32_t job, uint32_t type,
		 const struct wire_outcome *o, const int *fds, int n)
{
	struct wire_msg msg = { .type = type, .job = job };

	if (o)
		msg.outcome = *o;
	/* A client that cannot be told must not wait for it: it sees us go. */
	if (io_send(k->sock, &msg, sizeof(msg), fds, n) < 0)
		k->is_over = true;
}

static void tell_failure(struct keeper *k, uint32_t job, const struct err *err)
{
	struct wire_outcome o = { .err = *err };

	tell(k, job, WIRE_ENDED, &o, NULL, 0);
}

bool spec_is_same(const struct wire_box *a, const struct wire_box *b)
{
	return a->blob.size == b->blob.size && memcmp(a, b, a->blob.size) == 0;
}

static bool is_for(const struct box *b, struct ids ids)
{
	return b->ids.uid == ids.uid && b->ids.gid == ids.gid &&
	       b->ids.caller == ids.caller && b->ids.many == ids.many &&
	       b->ids.root == ids.root;
}

struct box *run_find_parked(struct keeper *k, struct ids ids)
{
	for (int i = 0; i < k->top; i++)
		if (box_waits(&k->boxes[i], BOX_PARKED) &&
		    is_for(&k->boxes[i], ids))
			return &k->boxes[i];
	return NULL;
}

/* The box that is furthest on its way to what is wanted. */
static struct box *find_ahead(struct keeper *k, const struct wire_box *spec,
			      struct ids ids)
{
	struct box *parked = NULL;

	for (int i = 0; i < k->top; i++) {
		struct box *b = &k->boxes[i];

		if (box_waits(b, BOX_READY) && !b->stays &&
		    spec_is_same(b->spec, spec))
			return b;
		if (box_waits(b, BOX_PARKED) && is_for(b, ids))
			parked = b;
	}
	return parked;
}

struct ids run_ids(const struct keeper *k, const struct wire_box *spec)
{
	return (struct ids){ .uid = spec->uid,
			     .gid = spec->gid,
			     .caller = spec->blob.flags & WIRE_CALLER_UID &&
				       !k->world.is_root };
}

/* How many descriptors come with it: one more where the box has a gate. */
static int run_fds(const struct wire_box *spec)
{
	return spec->blob.flags & WIRE_EGRESS ? 6 : 5;
}

/* The time limits; the rest of the work is init's to read. */
static int read_times(int fd, struct box *b, struct err *err)
{
	struct wire_work head;

	if (pread(fd, &head, sizeof(head), 0) != sizeof(head) ||
	    head.blob.magic != WIRE_WORK_MAGIC)
		return err_set(err, EPROTO, "the work has another layout");
	b->times = head.times;
	b->goes_on = head.blob.flags & WIRE_CONTINUE;
	return 0;
}

/* fds: box, work, stdin, stdout, stderr, and the gate's where there is one */
static int start(struct keeper *k, struct box *b, uint32_t job, const int *fds,
		 struct err *err)
{
	const struct wire_head head = { WIRE_WORK, job };
	int r;

	b->job = job;
	if (read_times(fds[1], b, err) < 0)
		return err_stage(err, "spec");
	if (b->state == BOX_PARKED && box_configure(k, b, fds[0], err) < 0)
		return -err->code;
	keeper_moment("configure");
	b->state = BOX_SETUP;
	b->before.cpu_us = cg_box_cpu_us(&k->cg, &b->cg);
	r = io_send(b->sock, &head, sizeof(head), fds + 1,
		    run_fds(b->spec) - 1);
	if (r < 0 && !init_is_gone(r)) {
		(void)err_errno(err, -r, "send the work to init");
		return err_stage(err, "init");
	}
	return 0;
}

static void take_run(struct keeper *k, uint32_t job, const int *fds, int n_fds,
		     struct err *err)
{
	const struct wire_box *spec = spec_map(fds[0], err);
	struct box *b;

	if (!spec) {
		(void)err_stage(err, "spec");
		return;
	}
	if (n_fds != run_fds(spec)) {
		(void)err_set(err, EPROTO, "a run needs %d descriptors",
			      run_fds(spec));
		(void)munmap((void *)spec, spec->blob.size);
		return;
	}
	b = find_ahead(k, spec, run_ids(k, spec));
	if (!b)
		b = box_spawn(k, run_ids(k, spec), err);
	if (b && start(k, b, job, fds, err) < 0)
		box_release(k, b);
	(void)munmap((void *)spec, spec->blob.size);
}

void run_request(struct keeper *k, const struct wire_head *head, int *fds,
		 int n_fds)
{
	struct err err = { 0 };

	if (k->refusal.code)
		err = k->refusal;
	else if (n_fds < 5)
		(void)err_set(&err, EPROTO, "a run needs five descriptors");
	else
		take_run(k, head->job, fds, n_fds, &err);
	for (int i = 1; i < n_fds; i++)
		fd_close(&fds[i]);
	if (err.code)
		tell_failure(k, head->job, &err);
	else if (k->is_reused)
		next_plan(k, &fds[0]);
	if (n_fds > 0)
		fd_close(&fds[0]);
}

/* Where it fails, the run that follows tries again and hears why. */
void run_ahead(struct keeper *k, int *fds, int n_fds)
{
	struct err unused = { 0 };
	const struct wire_box *spec = n_fds == 1 && !k->refusal.code
					      ? spec_map(fds[0], &unused)
					      : NULL;
	struct box *b = spec ? find_ahead(k, spec, run_ids(k, spec)) : NULL;

	if (b && b->state == BOX_PARKED &&
	    box_configure(k, b, fds[0], &unused) < 0)
		box_release(k, b);
	if (spec)
		(void)munmap((void *)spec, spec->blob.size);
	for (int i = 0; i < n_fds; i++)
		fd_close(&fds[i]);
}

static void plan_cpu_check(struct keeper *k, struct box *b)
{
	uint64_t used = cg_box_cpu_us(&k->cg, &b->cg) - b->before.cpu_us;
	uint64_t limit = b->times.cpu_time_us;
	uint64_t left = limit > used ? limit - used : 0;

	/* It cannot be used up faster than on all CPUs at once. */
	b->cpu_check = clock_us() +
		       (int64_t)MAX(left / k->cg.n_cpus, CPU_CHECK_MIN_US);
}

/* The block is over; the box too, unless others are to run all the same. */
static void end_block(struct keeper *k, struct box *b, enum wire_end end)
{
	const struct wire_head head = { WIRE_END_BLOCK, b->job };

	/* It was told to end already: that is the cause. */
	if (b->kill_at)
		end = (enum wire_end)b->outcome.end;
	if (!b->goes_on || end == WIRE_BY_TOTAL || b->block_at) {
		run_end(k, b, end);
		return;
	}
	b->outcome.end = end;
	b->outcome.pids_full = cg_box_is_full(&b->cg);
	b->deadline = 0;
	b->cpu_check = 0;
	b->kill_at = 0;
	b->block_at = clock_us() + BLOCK_LATE_US;
	(void)io_send(b->sock, &head, sizeof(head), NULL, 0);
}

static void started(struct keeper *k, struct box *b, int tty)
{
	bool first = b->state == BOX_SETUP;
	struct cg_usage unused;

	b->state = BOX_RUNNING;
	b->started = clock_us();
	b->deadline = b->started + (int64_t)b->times.timeout_us;
	if (first && b->times.total_us)
		b->total_deadline = b->started + (int64_t)b->times.total_us;
	if (b->times.cpu_time_us)
		plan_cpu_check(k, b);
	tell(k, b->job, WIRE_STARTED, NULL, &tty, tty >= 0);
	keeper_moment("started");
	if (b->is_flooded)
		end_block(k, b, WIRE_BY_FLOOD);
	(void)keeper_sweep(k);
	/*
	 * The only one that was born: let go now, not when somebody waits. The
	 * files that are read then the kernel has to look up once.
	 */
	if (first && !k->is_reused) {
		fd_close(&k->world.init);
		remains_watch(k, b);
		cg_box_usage(&k->cg, &b->cg, &unused);
	}
}

void box_fill_usage(struct keeper *k, struct box *b, const struct rusage *ru)
{
	struct wire_outcome *o = &b->outcome;
	struct cg_usage u;

	cg_box_usage(&k->cg, &b->cg, &u);
	o->memory_peak = u.memory_peak;
	o->oom_kills = u.oom_kills - b->before.oom_kills;
	o->pids_peak = u.pids_peak;
	o->pids_refused = u.pids_refused - b->before.pids_refused;
	o->cpu_us = u.cpu_us - MIN(u.cpu_us, b->before.cpu_us);
	if (!u.has_cpu && ru)
		o->cpu_us = (uint64_t)(ru->ru_utime.tv_sec +
				       ru->ru_stime.tv_sec) *
				    1000000 +
			    (uint64_t)(ru->ru_utime.tv_usec +
				       ru->ru_stime.tv_usec);
	if (!u.memory_peak && ru)
		o->memory_peak = (uint64_t)ru->ru_maxrss * 1024;
}

static bool is_full(int disk)
{
	struct statfs fs;

	return fstatfs(disk, &fs) == 0 && (fs.f_bfree == 0 || fs.f_ffree == 0);
}

/* What init said of the end, into what the client will hear. */
static void take_outcome(struct box *b, const struct wire_outcome *o)
{
	b->outcome.err = o->err;
	b->outcome.wait_status = o->wait_status;
	b->outcome.exec_errno = o->exec_errno;
	b->outcome.step = o->step;
	b->outcome.wall_us = o->wall_us;
	b->outcome.net_refused = o->net_refused;
	b->outcome.net_opened = o->net_opened;
	b->outcome.not_enforced |= o->not_enforced;
	b->outcome.landlock_abi = o->landlock_abi;
}

void box_look_at_disks(struct box *b)
{
	b->outcome.disk_full = 0;
	for (int i = 0; i < b->n_disks; i++)
		if (is_full(b->disks[i]))
			b->outcome.disk_full = 1;
}

/*
 * Init takes its namespaces down, for which a thread of the kernel must run.
 * It may wait on this very CPU, where we have just begun and would not be
 * interrupted for milliseconds. Where there are two of us, the client and the
 * next box come first.
 */
static void give_way(const struct keeper *k)
{
	if (!k->is_reused)
		(void)sched_yield();
}

/*
 * Init has ended all others and is about to follow. Its death takes a while,
 * in which the client can already look at what is known; where usage is only
 * known from the dead, it waits.
 */
static void over(struct keeper *k, struct box *b)
{
	if (k->cg.role[CG_MEMORY].fd < 0)
		return;
	remains_offer(k, b);
	tell(k, b->job, WIRE_OVER, &b->outcome, &b->work, b->work >= 0);
	/* What the box wrote to is then let go of by init, beside us. */
	box_close_disks(k, b);
	give_way(k);
}

static void block_over(struct keeper *k, struct box *b)
{
	enum wire_end end = (enum wire_end)b->outcome.end;

	/* It was ended just before, and nothing is to follow. */
	if (end == WIRE_BY_TOTAL || (end != WIRE_BY_ITSELF && !b->goes_on)) {
		run_end(k, b, end);
		return;
	}
	box_fill_usage(k, b, NULL);
	box_look_at_disks(b);
	/* The next block has its own counts and time. */
	cg_box_usage(&k->cg, &b->cg, &b->before);
	b->deadline = 0;
	b->cpu_check = 0;
	b->kill_at = 0;
	b->block_at = 0;
	b->is_between = true;
	b->is_flooded = false;
	tell(k, b->job, WIRE_BLOCK, &b->outcome, NULL, 0);
	b->outcome.end = WIRE_BY_ITSELF;
	b->outcome.pids_full = 0;
}

void run_init_said(struct keeper *k, struct box *b)
{
	struct wire_msg msg;
	int fds[IO_MAX_FDS];
	int n_fds = 0;
	ssize_t n = io_recv(b->sock, &msg, sizeof(msg), MSG_DONTWAIT, fds,
			    &n_fds);

	if (n == sizeof(msg)) {
		switch (msg.type) {
		case WIRE_STARTED:
			started(k, b, n_fds ? fds[0] : NO_FD);
			break;
		case WIRE_BLOCK:
			take_outcome(b, &msg.outcome);
			block_over(k, b);
			break;
		case WIRE_ENDED:
		case WIRE_FAILED:
			take_outcome(b, &msg.outcome);
			/* Only init is left, and takes its time to end. */
			box_fill_usage(k, b, NULL);
			give_way(k);
			box_look_at_disks(b);
			b->heard = true;
			b->late_at = clock_us() + BOX_LATE_US;
			if (msg.type == WIRE_ENDED && b->state == BOX_RUNNING)
				over(k, b);
			break;
		default:
			break;
		}
	} else if (n != -EAGAIN && n != -ECONNRESET) {
		/*
		 * The end of the stream; its death tells the rest. A reset is
		 * told once, when init left a message unread, and before what
		 * it said last.
		 */
		fd_close(&b->sock);
	}
	for (int i = 0; i < n_fds; i++)
		(void)close(fds[i]);
}

/*
 * Both: the group reaches every process in one call, and init's death ends
 * the pid namespace where there is no such group.
 */
void box_kill(struct keeper *k, struct box *b)
{
	bool reached = cg_box_kill(&b->cg);

	(void)sys_pidfd_kill(b->pidfd, SIGKILL);
	if (reached)
		cg_box_let_die(&k->cg, &b->cg);
}

void run_end(struct keeper *k, struct box *b, enum wire_end end)
{
	if (b->state == BOX_DYING || b->heard)
		return;
	b->outcome.end = end;
	b->outcome.pids_full = cg_box_is_full(&b->cg);
	b->state = BOX_DYING;
	box_kill(k, b);
}

void run_init_died(struct keeper *k, struct box *b)
{
	struct rusage ru = { 0 };
	bool ahead = b->state == BOX_PARKED || b->state == BOX_READY;

	if (wait4(b->pid, NULL, WNOHANG, &ru) != b->pid)
		return;
	b->pid = 0;
	/* What it said last may still be in the socket. */
	while (b->sock >= 0 && !b->heard)
		run_init_said(k, b);
	if (ahead) {
		/* The run that needs it will try again and hear why. */
		box_release(k, b);
		return;
	}
	if (!b->heard && b->outcome.end == WIRE_BY_ITSELF)
		b->outcome.end = WIRE_BY_LOSS;
	if (!b->heard && b->started)
		b->outcome.wall_us = (uint64_t)(clock_us() - b->started);
	if (!b->heard || k->cg.role[CG_MEMORY].fd < 0)
		box_fill_usage(k, b, &ru);
	if (!b->heard)
		box_look_at_disks(b);
	keeper_moment("ended");
	if (!remains_take(k, b) && cg_box_remove(&k->cg, &b->cg) < 0)
		k->has_left = true;
	keeper_moment("removed");
	tell(k, b->job, WIRE_ENDED, &b->outcome, &b->work, b->work >= 0);
	box_release(k, b);
	/* The one run there was: go, while the client looks at its result. */
	if (!k->is_reused)
		k->is_over = true;
}

void run_flooded(struct keeper *k, struct box *b)
{
	/* Of a block that is over, or about to be. */
	if (b->is_between || b->block_at)
		return;
	/* Its output may be here before what init says of it. */
	if (b->state == BOX_RUNNING && b->deadline)
		end_block(k, b, WIRE_BY_FLOOD);
	else
		b->is_flooded = true;
}

void run_next(struct box *b, const struct wire_head *head)
{
	b->is_between = false;
	(void)io_send(b->sock, head, sizeof(*head), NULL, 0);
}

static void check_cpu(struct keeper *k, struct box *b)
{
	if (cg_box_cpu_us(&k->cg, &b->cg) - b->before.cpu_us >=
	    b->times.cpu_time_us)
		end_block(k, b, WIRE_BY_CPU);
	else
		plan_cpu_check(k, b);
}

/* At the deadline: SIGTERM first where a time of grace was given. */
static void timed_out(struct keeper *k, struct box *b, enum wire_end end,
		      int64_t now)
{
	const struct wire_head term = { WIRE_TERM, b->job };

	if (b->times.grace_us && !b->kill_at) {
		b->outcome.end = end;
		b->kill_at = now + (int64_t)b->times.grace_us;
		(void)io_send(b->sock, &term, sizeof(term), NULL, 0);
		return;
	}
	if (!b->kill_at || now >= b->kill_at)
		end_block(k, b, end);
}

static void check_times(struct keeper *k, struct box *b, int64_t now)
{
	/* Its end is under way; what else is over now is of the next block. */
	if (b->block_at) {
		if (now >= b->block_at)
			run_end(k, b, (enum wire_end)b->outcome.end);
	} else if (b->deadline && now >= b->deadline) {
		timed_out(k, b, WIRE_BY_TIMEOUT, now);
	} else if (b->total_deadline && now >= b->total_deadline) {
		timed_out(k, b, WIRE_BY_TOTAL, now);
	} else if (b->cpu_check && now >= b->cpu_check) {
		check_cpu(k, b);
	}
}

/* Whether its init said that it ends, and is to be helped if it does not. */
static bool is_awaited(const struct box *b)
{
	return b->late_at && (b->state == BOX_RUNNING || b->state == BOX_DYING);
}

void run_timers(struct keeper *k)
{
	int64_t now = clock_us();

	for (int i = 0; i < k->top; i++) {
		struct box *b = &k->boxes[i];

		if (is_awaited(b) && now >= b->late_at) {
			b->late_at = 0;
			box_kill(k, b);
		}
		if (b->state != BOX_RUNNING || b->heard)
			continue;
		check_times(k, b, now);
	}
}

/* When this box needs a look, INT64_MAX if never. */
static int64_t next_look(const struct box *b)
{
	int64_t next = INT64_MAX;

	if (is_awaited(b))
		return b->late_at;
	if (b->state != BOX_RUNNING || b->heard)
		return next;
	if (b->kill_at)
		return b->kill_at;
	if (b->block_at)
		return b->block_at;
	if (b->deadline)
		next = b->deadline;
	if (b->total_deadline)
		next = MIN(next, b->total_deadline);
	if (b->cpu_check)
		next = MIN(next, b->cpu_check);
	return next;
}

int64_t run_next_look(const struct keeper *k)
{
	int64_t next = INT64_MAX;

	for (int i = 0; i < k->top; i++)
		next = MIN(next, next_look(&k->boxes[i]));
	return next;
}
