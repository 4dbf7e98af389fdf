/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A box that stays: opened, asked, closed.
 *
 *	PARKED --spec--> SETUP --init: ready--> STAYS
 *	   any of them --closed--> DYING --init's death--> told, FREE
 *
 * The client is less to be trusted than that of a run: it reads what others
 * send it. It can name boxes and programs of its own and nothing else; what it
 * may mount is looked at in peer.c. Who breaks the form is cut off, and all
 * its boxes end.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/util.h"
#include "keeper/keeper.h"
#include "os/uapi.h"

/* Numbers from here on are those of requests for files. */
#define FILES_NUMBER 0x80000000U

/* A client that does not read for so long does not live. */
#define PATIENCE_MS 10000

_Static_assert(sizeof(struct wire_told) != sizeof(struct wire_msg),
	       "they are told apart by their size");
_Static_assert(sizeof(struct wire_ask) != sizeof(struct wire_head),
	       "they are told apart by their size");

void session_tell(struct keeper *k, const struct wire_told *told,
		  const int *fds, int n)
{
	struct pollfd p = { .fd = k->sock, .events = POLLOUT };
	int64_t end = clock_us() + PATIENCE_MS * 1000LL;
	int r;

	while ((r = io_send_now(k->sock, told, sizeof(*told), fds, n)) ==
		       -EAGAIN &&
	       clock_us() < end)
		(void)poll(&p, 1, 100);
	if (r < 0)
		k->is_over = true;
}

static void tell_closed(struct keeper *k, uint32_t job,
			const struct wire_outcome *o)
{
	struct wire_told told = { .type = WIRE_CLOSED, .job = job };

	told.outcome = *o;
	session_tell(k, &told, NULL, 0);
}

static void tell_not_started(struct keeper *k, const struct wire_ask *ask,
			     const struct err *err)
{
	struct wire_told told = { .type = WIRE_DONE,
				  .job = ask->job,
				  .exec = ask->exec };

	told.outcome.err = *err;
	session_tell(k, &told, NULL, 0);
}

static struct box *find(struct keeper *k, uint32_t job)
{
	for (int i = 0; i < k->top; i++) {
		struct box *b = &k->boxes[i];

		if (b->state > BOX_READY && b->stays && b->job == job)
			return b;
	}
	return NULL;
}

/* What was made ahead for a run has one user, and will not be used. */
static void let_go_of_narrow(struct keeper *k)
{
	for (int i = 0; i < k->top && k->world.block_count > 0; i++)
		if (box_waits(&k->boxes[i], BOX_PARKED) &&
		    !k->boxes[i].ids.many)
			box_release(k, &k->boxes[i]);
}

/* What only a keeper whose boxes stay needs, before the first of them. */
static int get_ready(struct keeper *k, struct err *err)
{
	const struct cg_parent *freezer = &k->cg.role[CG_FREEZE];
	struct rlimit files;

	if (k->has_own_mounts)
		return 0;
	if (cg_tree_find_freezer(&k->cg) &&
	    record_add(k, freezer->path, err) < 0)
		return err_stage(err, "record");
	/* A dozen for each box; a box's own limit is set by its init. */
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
	if (world_own_mounts(&k->world, err) < 0)
		return err_stage(err, "keeper");
	k->has_own_mounts = true;
	shed_open(k);
	let_go_of_narrow(k);
	return 0;
}

static struct box *find_box(struct keeper *k, const struct wire_ask *ask,
			    struct ids ids, struct err *err)
{
	const struct shelf *s = shelf_find(k, ask->value);
	struct box *b;

	if (!s) {
		b = run_find_parked(k, ids);
		return b ? b : box_spawn(k, ids, err);
	}
	shed_settle(k);
	if (s->is_used || s->ids.uid != ids.uid || s->ids.gid != ids.gid ||
	    s->ids.caller != ids.caller) {
		(void)err_set(err, s->is_used ? EBUSY : EINVAL,
			      s->is_used ? "what was kept is in use"
					 : "what was kept is another user's");
		return NULL;
	}
	return box_spawn_again(k, ids, s, err);
}

int session_configure(struct keeper *k, struct box *b, uint32_t shelf, int fd,
		      struct err *err)
{
	b->stays = true;
	b->cg.may_freeze = true;
	if (shelf) {
		struct shelf *s = shelf_find(k, shelf);

		if (!s)
			s = shelf_take(k, b, shelf, err);
		if (!s)
			return err_stage(err, "shelf");
		s->is_used = true;
		b->shelf = shelf;
	}
	return box_configure(k, b, fd, err);
}

/* Lets go of a shelf's disks, unless they are to be kept. */
static void put_back(struct keeper *k, const struct box *b, bool is_kept)
{
	struct shelf *s = b->shelf ? shelf_find(k, b->shelf) : NULL;

	if (!s)
		return;
	s->is_used = false;
	if (!is_kept)
		shelf_forget(k, b->shelf);
}

/* Its init may have been ready before it was asked for. */
static void say_ready(struct keeper *k, struct box *b)
{
	struct wire_told told = { .type = WIRE_READY, .job = b->job };

	b->state = BOX_STAYS;
	b->started = clock_us();
	if (cg_may_freeze(&k->cg))
		told.flags |= WIRE_TOLD_MAY_FREEZE;
	told.outcome = b->outcome;
	session_tell(k, &told, NULL, 0);
	keeper_moment("ready");
	(void)keeper_sweep(k);
}

static void begin(struct keeper *k, struct box *b, uint32_t job)
{
	b->job = job;
	b->state = BOX_SETUP;
	if (b->is_up)
		say_ready(k, b);
}

static int make_box(struct keeper *k, const struct wire_ask *ask,
		    struct ids ids, const struct peer *peer, int fd,
		    struct err *err)
{
	bool is_new = !shelf_find(k, ask->value);
	struct box *b = find_box(k, ask, ids, err);

	if (!b)
		return -err->code;
	b->peer = peer;
	if (session_configure(k, b, ask->value, fd, err) < 0) {
		put_back(k, b, !is_new);
		box_release(k, b);
		return -err->code;
	}
	b->peer = NULL;
	begin(k, b, ask->job);
	return 0;
}

/* Of a box that stays: it may have further users. */
static struct ids session_ids(const struct keeper *k,
			      const struct wire_box *spec)
{
	struct ids ids = run_ids(k, spec);

	ids.many = k->world.block_count > 0 && !ids.caller;
	ids.root = spec->blob.flags & WIRE_ROOT_USER;
	return ids;
}

static int open_spec(struct keeper *k, const struct wire_ask *ask,
		     const struct wire_box *spec, const struct peer *peer,
		     int fd, struct err *err)
{
	struct ids ids = session_ids(k, spec);
	struct box *b;

	if (spec->blob.flags & WIRE_WITNESS)
		return err_set(err, EOPNOTSUPP,
			       "a box that stays has no witness");
	b = shelf_find(k, ask->value) ? NULL
				      : ahead_take(k, spec, ids, ask->value);
	if (b)
		begin(k, b, ask->job);
	else if (make_box(k, ask, ids, peer, fd, err) < 0)
		return -err->code;
	ahead_plan(k, spec, ids, fd, ask->value);
	return 0;
}

static int open_box(struct keeper *k, const struct wire_ask *ask,
		    const int *fds, int n_fds, struct err *err)
{
	bool has_peer = ask->flags & WIRE_ASK_PEER;
	static struct peer peer;
	const struct wire_box *spec;
	int r;

	if (n_fds != 1 + has_peer)
		return err_set(err, EPROTO, "a box needs its spec");
	if (has_peer && peer_read(fds[1], &peer, err) < 0)
		return err_stage(err, "peer");
	spec = spec_map(fds[0], err);
	if (!spec)
		return err_stage(err, "spec");
	r = open_spec(k, ask, spec, has_peer ? &peer : NULL, fds[0], err);
	(void)munmap((void *)spec, spec->blob.size);
	return r;
}

static void request_open(struct keeper *k, const struct wire_ask *ask,
			 const int *fds, int n_fds)
{
	struct wire_outcome o = { 0 };
	struct err *err = &o.err;

	if (find(k, ask->job) || ask->value >= AHEAD_SHELF) {
		k->is_over = true;
		return;
	}
	if (k->refusal.code)
		*err = k->refusal;
	else if (get_ready(k, err) == 0)
		(void)open_box(k, ask, fds, n_fds, err);
	if (err->code)
		tell_closed(k, ask->job, &o);
}

static void begin_end(struct keeper *k, struct box *b, bool is_kept)
{
	b->outcome.end = WIRE_BY_CANCEL;
	b->may_keep = is_kept;
	b->state = BOX_DYING;
	/* What is frozen in version 1 dies only when it may move again. */
	if (b->is_frozen)
		(void)programs_freeze(k, b, false);
}

static void close_box(struct keeper *k, struct box *b, bool is_kept)
{
	if (b->state == BOX_DYING)
		return;
	box_kill(k, b);
	begin_end(k, b, is_kept);
}

/* Init ends by itself, and with it all that is in the box. */
void session_over(struct keeper *k, struct box *b)
{
	if (b->state == BOX_DYING)
		return;
	b->late_at = clock_us() + BOX_LATE_US;
	begin_end(k, b, true);
}

static void request_exec(struct keeper *k, struct box *b,
			 const struct wire_ask *ask, const int *fds, int n_fds)
{
	struct err err = { 0 };
	uint32_t early = ask->flags & (WIRE_ASK_TTY | WIRE_ASK_HOLD);
	int need = early ? 1 : 4;

	if (n_fds != need || early == (WIRE_ASK_TTY | WIRE_ASK_HOLD) ||
	    !ask->exec || ask->exec >= FILES_NUMBER ||
	    program_get(k, b, ask->exec)) {
		k->is_over = true;
		return;
	}
	if (b->state != BOX_STAYS)
		(void)err_set(&err, EBUSY, "the box is not ready");
	else if (b->is_frozen)
		(void)err_set(&err, EBUSY, "the box is paused");
	else
		(void)program_start(k, b, ask, fds, n_fds, &err);
	if (!err.code)
		return;
	tell_not_started(k, ask, &err);
	if (ask->flags & WIRE_ASK_LAST)
		close_box(k, b, true);
}

/* Without a program it has ended, and the two messages crossed. */
static void request_let(struct keeper *k, struct box *b,
			const struct wire_ask *ask, const int *fds, int n_fds)
{
	const struct wire_ask to_init = { .type = WIRE_LET, .exec = ask->exec };
	struct program *p = program_get(k, b, ask->exec);

	if (n_fds != 3 || (p && !p->is_held)) {
		k->is_over = true;
	} else if (p) {
		p->is_held = false;
		(void)io_send_now(b->sock, &to_init, sizeof(to_init), fds, 3);
	}
}

/* Where it cannot be served, the socket's end says so. */
static void request_files(struct keeper *k, struct box *b,
			  const struct wire_ask *ask, const int *fds, int n_fds)
{
	struct wire_ask to_init = *ask;
	struct err unused = { 0 };

	if (n_fds != 1) {
		k->is_over = true;
		return;
	}
	if (b->state != BOX_STAYS)
		return;
	to_init.flags = 0;
	to_init.exec = FILES_NUMBER | (++b->n_files & ~FILES_NUMBER);
	(void)program_start(k, b, &to_init, fds, 1, &unused);
}

/* Init knows whether it has sockets to give away; without one it has a wall. */
static void request_gate(struct keeper *k, struct box *b, const int *fds,
			 int n_fds)
{
	const struct wire_ask ask = { .type = WIRE_GATE };

	if (n_fds != 1)
		k->is_over = true;
	else if (b->state == BOX_STAYS)
		(void)io_send_now(b->sock, &ask, sizeof(ask), fds, 1);
}

static void tell_usage(struct keeper *k, const struct box *b, uint32_t token)
{
	struct wire_told told = { .type = WIRE_USAGE,
				  .job = b->job,
				  .token = token };
	struct wire_usage *u = &told.usage;
	struct cg_gauge g;
	struct cg_usage c;

	cg_box_gauge(&k->cg, &b->cg, &g);
	cg_box_usage(&k->cg, &b->cg, &c);
	u->memory = g.memory;
	u->memory_limit = g.memory_limit;
	u->memory_peak = c.memory_peak;
	u->inactive_file = g.inactive_file;
	u->active_file = g.active_file;
	u->cpu_us = c.cpu_us;
	u->cpu_user_us = g.cpu_user_us;
	u->cpu_system_us = g.cpu_system_us;
	u->throttled = g.throttled;
	u->throttled_us = g.throttled_us;
	u->periods = g.periods;
	u->pids = g.pids;
	u->pids_limit = g.pids_limit;
	u->oom_kills = c.oom_kills;
	u->pids_refused = c.pids_refused;
	session_tell(k, &told, NULL, 0);
}

/* The mask, or 0 where there is nobody to ask. */
static void ask_caught(struct keeper *k, const struct box *b,
		       const struct wire_ask *ask)
{
	struct wire_told none = { .type = WIRE_CAUGHT,
				  .job = b->job,
				  .exec = ask->exec,
				  .token = ask->token };

	if (b->state != BOX_STAYS ||
	    io_send_now(b->sock, ask, sizeof(*ask), NULL, 0) < 0)
		session_tell(k, &none, NULL, 0);
}

static void freeze(struct keeper *k, struct box *b, bool is_frozen)
{
	if (b->state != BOX_STAYS)
		return;
	b->is_frozen = is_frozen;
	(void)programs_freeze(k, b, is_frozen);
}

static void request_about(struct keeper *k, struct box *b,
			  const struct wire_ask *ask, const int *fds, int n_fds)
{
	struct program *p = program_get(k, b, ask->exec);

	switch (ask->type) {
	case WIRE_EXEC:
		request_exec(k, b, ask, fds, n_fds);
		break;
	case WIRE_LET:
		request_let(k, b, ask, fds, n_fds);
		break;
	case WIRE_SIGNAL:
		if (p && ask->value >= 1 && ask->value <= 64)
			program_signal(k, p, (int)ask->value);
		break;
	case WIRE_KILL:
		if (p)
			program_kill(k, p, WIRE_BY_CANCEL);
		break;
	case WIRE_FROZEN:
		freeze(k, b, ask->value);
		break;
	case WIRE_CAUGHT:
		ask_caught(k, b, ask);
		break;
	case WIRE_USAGE:
		tell_usage(k, b, ask->token);
		break;
	case WIRE_FILES:
		request_files(k, b, ask, fds, n_fds);
		break;
	case WIRE_GATE:
		request_gate(k, b, fds, n_fds);
		break;
	case WIRE_CLOSE:
		close_box(k, b, ask->value);
		break;
	default:
		k->is_over = true;
		break;
	}
}

/* Boxes of a keeper that was killed end with it, but not at once. */
static void tell_swept(struct keeper *k, uint32_t token)
{
	struct wire_told told = { .type = WIRE_SWEPT, .token = token };

	if (!keeper_sweep(k))
		told.flags = WIRE_TOLD_LEFT;
	session_tell(k, &told, NULL, 0);
}

void session_request(struct keeper *k, const struct wire_ask *ask, int *fds,
		     int n_fds)
{
	struct box *b = find(k, ask->job);

	/* Without a box it has ended, and the two messages crossed. */
	if (ask->type == WIRE_OPEN)
		request_open(k, ask, fds, n_fds);
	else if (ask->type == WIRE_FORGET && ask->value < AHEAD_SHELF)
		shelf_forget(k, ask->value);
	else if (ask->type == WIRE_SWEPT)
		tell_swept(k, ask->token);
	else if (b)
		request_about(k, b, ask, fds, n_fds);
	for (int i = 0; i < n_fds; i++)
		fd_close(&fds[i]);
}

static void is_ready(struct keeper *k, struct box *b,
		     const struct wire_outcome *o, int unchanged)
{
	if (b->state != BOX_SETUP && b->state != BOX_READY)
		return;
	if (unchanged >= 0 && b->unchanged < 0)
		b->unchanged = fcntl(unchanged, F_DUPFD_CLOEXEC,
				     KEEPER_FIRST_FD);
	b->outcome.not_enforced |= o->not_enforced;
	b->outcome.landlock_abi = o->landlock_abi;
	b->is_up = true;
	layers_keep(k, b);
	if (b->state == BOX_SETUP)
		say_ready(k, b);
}

static void take_told(struct keeper *k, struct box *b, struct wire_told *told,
		      const int *fds, int n_fds)
{
	struct program *p = program_get(k, b, told->exec);

	switch (told->type) {
	case WIRE_READY:
		is_ready(k, b, &told->outcome, n_fds ? fds[0] : NO_FD);
		break;
	case WIRE_BEGUN:
		if (p)
			program_begun(k, p, n_fds ? fds[0] : NO_FD);
		break;
	case WIRE_DONE:
		if (p)
			program_done(k, p, &told->outcome);
		break;
	case WIRE_CAUGHT:
		told->job = b->job;
		session_tell(k, told, NULL, 0);
		break;
	default:
		break;
	}
}

void session_init_said(struct keeper *k, struct box *b)
{
	union {
		struct wire_told told;
		struct wire_msg msg;
	} u;
	int fds[IO_MAX_FDS];
	int n_fds = 0;
	ssize_t n = io_recv(b->sock, &u, sizeof(u), MSG_DONTWAIT, fds, &n_fds);

	if (n == sizeof(u.told)) {
		take_told(k, b, &u.told, fds, n_fds);
	} else if (n == sizeof(u.msg)) {
		/* It could not be built; then init goes. */
		b->outcome.err = u.msg.outcome.err;
	} else if (n != -EAGAIN && n != -ECONNRESET) {
		fd_close(&b->sock);
	}
	for (int i = 0; i < n_fds; i++)
		(void)close(fds[i]);
}

void session_init_died(struct keeper *k, struct box *b)
{
	struct rusage ru = { 0 };
	bool is_closed;

	if (wait4(b->pid, NULL, WNOHANG, &ru) != b->pid)
		return;
	b->pid = 0;
	if (b->state == BOX_READY) {
		ahead_drop(k, b);
		return;
	}
	/* What it said last may still be in the socket. */
	while (b->sock >= 0)
		session_init_said(k, b);
	is_closed = b->state == BOX_DYING;
	if (!is_closed && !b->outcome.err.code)
		b->outcome.end = WIRE_BY_LOSS;
	if (b->started)
		b->outcome.wall_us = (uint64_t)(clock_us() - b->started);
	/* Of what was closed, each program's were told with its end. */
	if (!is_closed) {
		box_fill_usage(k, b, &ru);
		box_look_at_disks(b);
	}
	programs_end(k, b);
	keeper_moment("closed");
	/* What was lost by accident is not thrown away with it. */
	put_back(k, b, is_closed ? b->may_keep : b->started != 0);
	layers_done(b);
	fd_close(&b->hold);
	/* Only its empty groups and mounts are left, and nobody in it. */
	tell_closed(k, b->job, &b->outcome);
	/* Who was told is woken on our CPU, and first. */
	(void)sched_yield();
	box_release(k, b);
	ahead_soon(k);
}
