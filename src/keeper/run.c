/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One run: a parked box gets its spec, lives, and ends.
 *
 *	PARKED --spec--> SETUP --init: started--> RUNNING
 *	   any of them --killed--> DYING --init's death--> told, FREE
 *
 * The end is told to the client only when init has been reaped: then, by the
 * kernel's rules for pid namespaces, no process of the box exists.
 */

#include <errno.h>
#include <fcntl.h>
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

#ifndef F_GET_SEALS
#define F_GET_SEALS 1034
#endif
#define SEALED 0xf /* seal, shrink, grow, write */

#define CPU_CHECK_MIN_US 5000

struct box *run_find(struct keeper *k, uint32_t job)
{
	for (int i = 0; i < KEEPER_BOXES; i++) {
		struct box *b = &k->boxes[i];

		if (b->state > BOX_PARKED && b->job == job)
			return b;
	}
	return NULL;
}

static struct box *find_parked(struct keeper *k, bool caller_uid)
{
	for (int i = 0; i < KEEPER_BOXES; i++) {
		struct box *b = &k->boxes[i];

		if (b->state == BOX_PARKED && b->caller_uid == caller_uid)
			return b;
	}
	return NULL;
}

void park_spares(struct keeper *k)
{
	int have = 0;

	for (int i = 0; i < KEEPER_BOXES; i++)
		have += k->boxes[i].state == BOX_PARKED;
	for (; have < k->spares; have++) {
		k->spare_err.code = 0;
		if (!box_spawn(k, false, &k->spare_err))
			return;
	}
}

/* Which limits cannot be set, or an error that says what to do about it. */
static int check_layers(const struct keeper *k, const struct wire_spec *spec,
			bool own_uid, uint32_t *ret_missing, struct err *err)
{
	static const struct {
		enum wire_layer layer;
		enum cg_role role;
	} limits[] = {
		{ WIRE_L_MEMORY, CG_MEMORY },
		{ WIRE_L_CPU, CG_CPU },
		{ WIRE_L_PIDS, CG_PIDS },
	};
	uint32_t missing = 0;

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		if (k->cg.role[limits[i].role].fd >= 0)
			continue;
		missing |= 1U << limits[i].layer;
		if (spec->best_effort & 1U << limits[i].layer)
			continue;
		return err_set(
			err, EOPNOTSUPP,
			"cannot limit %s: no cgroup that '%s' may use; either "
			"start it as 'systemd-run --user --scope -p "
			"Delegate=yes cordon run ...' (cgroup v2), or have "
			"root run 'cordon doctor --grant-cgroup UID' (v1), "
			"or accept it with '--best-effort cgroup'",
			cg_role_name(limits[i].role),
			k->world.is_root ? "root" : "this user");
	}
	if (k->cg.role[CG_CPUSET].fd < 0)
		missing |= 1U << WIRE_L_CPUSET;
	if (k->world.landlock_abi == 0) {
		missing |= 1U << WIRE_L_LANDLOCK;
		if (!(spec->best_effort & 1U << WIRE_L_LANDLOCK))
			missing &= ~(1U << WIRE_L_LANDLOCK);
	}
	if (!own_uid)
		missing |= 1U << WIRE_L_OWN_UID;
	*ret_missing = missing;
	return 0;
}

static int map_ids(const struct world *w, const struct box *b,
		   const struct wire_spec *spec, struct err *err)
{
	bool own = b->lock >= 0;
	uint32_t gid = own ? b->host_uid : w->caller_gid;
	const struct {
		const char *file;
		uint32_t inside;
		uint32_t outside;
	} maps[] = {
		{ "uid_map", spec->uid, b->host_uid },
		{ "gid_map", spec->gid, gid },
	};
	char path[64];
	char line[48];
	int r;

	(void)snprintf(path, sizeof(path), "%d/setgroups", (int)b->pid);
	r = io_write_file(w->proc, path, "deny");
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(maps); i++) {
		(void)snprintf(path, sizeof(path), "%d/%s", (int)b->pid,
			       maps[i].file);
		(void)snprintf(line, sizeof(line), "%u %u 1", maps[i].inside,
			       maps[i].outside);
		r = io_write_file(w->proc, path, line);
	}
	if (r < 0)
		return err_errno(err, -r, "write /proc/%s", path);
	return 0;
}

static int set_limits(struct keeper *k, struct box *b,
		      const struct wire_limits *l, struct wire_conf *conf,
		      struct err *err)
{
	uint64_t cpus = (l->cpu_quota_us + l->cpu_period_us - 1) /
			l->cpu_period_us;
	struct cg_limits cg = {
		.memory = l->memory,
		.cpu_quota_us = l->cpu_quota_us,
		.cpu_period_us = l->cpu_period_us,
		.pids = l->pids,
		/* Boxes start on one CPU after the other. */
		.first_cpu = (b->serial + (unsigned int)getpid()) % k->cg.n_cpus,
		.n_cpus = (unsigned int)MIN(cpus, k->cg.n_cpus),
	};

	conf->set_affinity = k->cg.role[CG_CPUSET].fd < 0;
	conf->first_cpu = cg.first_cpu;
	conf->n_cpus = cg.n_cpus;
	return cg_box_limit(&k->cg, &b->cg, &cg, err);
}

/* Hands the box over to init; fds[0..3] are the client's. */
static int configure(struct keeper *k, struct box *b,
		     const struct wire_spec *spec, const int *fds,
		     struct err *err)
{
	struct wire_conf conf = { .type = WIRE_MOUNTS, .job = b->job };
	int all[IO_MAX_FDS];
	int n = 0;
	int r;

	b->limits = spec->limits;
	b->best_effort = spec->best_effort;
	memcpy(all, fds, 4 * sizeof(int));
	r = check_layers(k, spec, b->lock >= 0, &conf.skip, err);
	if (r < 0)
		return err_stage(err, "layers");
	if (set_limits(k, b, &spec->limits, &conf, err) < 0)
		return err_stage(err, "cgroup");
	if (map_ids(&k->world, b, spec, err) < 0)
		return err_stage(err, "user");
	r = mounts_open(k, b, spec, all + 4, &n, &conf.mount_mask, err);
	if (r == 0) {
		b->outcome.not_enforced = conf.skip;
		b->outcome.host_uid = b->host_uid;
		r = io_send(b->sock, &conf, sizeof(conf), all, n + 4);
		if (r < 0)
			(void)err_errno(err, -r, "send the spec to init");
	}
	for (int i = 0; i < n; i++)
		(void)close(all[4 + i]);
	return r < 0 ? err_stage(err, "init") : 0;
}

static void tell(uint32_t job, uint32_t type, const struct wire_outcome *o,
		 const int *fds, int n)
{
	struct wire_msg msg = { .type = type, .job = job };

	if (o)
		msg.outcome = *o;
	(void)io_send(KEEPER_SOCK, &msg, sizeof(msg), fds, n);
}

static void tell_failure(uint32_t job, const struct err *err)
{
	struct wire_outcome o = { .err = *err };

	tell(job, WIRE_ENDED, &o, NULL, 0);
}

static int map_spec(int fd, const struct wire_spec **ret, struct err *err)
{
	struct stat st;
	void *p;

	if (fcntl(fd, F_GET_SEALS) != SEALED || fstat(fd, &st) < 0 ||
	    st.st_size < (off_t)sizeof(struct wire_spec))
		return err_set(err, EPROTO, "the spec is not a sealed memfd");
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return err_errno(err, errno, "map the spec");
	if (wire_check(p, (uint64_t)st.st_size, err) < 0) {
		(void)munmap(p, (size_t)st.st_size);
		return -err->code;
	}
	*ret = p;
	return 0;
}

static int start(struct keeper *k, uint32_t job, const int *fds,
		 struct err *err)
{
	const struct wire_spec *spec = NULL;
	struct box *b;
	bool caller_uid;
	int r;

	if (map_spec(fds[0], &spec, err) < 0)
		return err_stage(err, "spec");
	caller_uid = spec->flags & WIRE_CALLER_UID && !k->world.is_root;
	b = find_parked(k, caller_uid);
	if (!b)
		b = box_spawn(k, caller_uid, err);
	r = b ? 0 : -err->code;
	if (b) {
		b->job = job;
		b->state = BOX_SETUP;
		r = configure(k, b, spec, fds, err);
		if (r < 0)
			box_release(k, b);
	}
	(void)munmap((void *)spec, spec->size);
	return r;
}

void run_request(struct keeper *k, const struct wire_head *head, int *fds,
		 int n_fds)
{
	struct err err = { 0 };

	if (n_fds != 4)
		(void)err_set(&err, EPROTO, "a run needs four descriptors");
	else
		(void)start(k, head->job, fds, &err);
	if (err.code)
		tell_failure(head->job, &err);
	for (int i = 0; i < n_fds; i++)
		fd_close(&fds[i]);
	/* While this one runs, there is time to make the next. */
	if (k->refill)
		park_spares(k);
}

static void plan_cpu_check(struct keeper *k, struct box *b)
{
	uint64_t used = cg_box_cpu_us(&k->cg, &b->cg);
	uint64_t limit = b->limits.cpu_time_us;
	uint64_t left = limit > used ? limit - used : 0;

	/* It cannot be used up faster than on all CPUs at once. */
	b->cpu_check = clock_us() +
		       (int64_t)MAX(left / k->cg.n_cpus, CPU_CHECK_MIN_US);
}

static void started(struct keeper *k, struct box *b, int tty)
{
	bool first = b->state == BOX_SETUP;

	b->state = BOX_RUNNING;
	b->started = clock_us();
	b->deadline = b->started + (int64_t)b->limits.timeout_us;
	if (first && b->limits.total_us)
		b->total_deadline = b->started + (int64_t)b->limits.total_us;
	if (b->limits.cpu_time_us)
		plan_cpu_check(k, b);
	tell(b->job, WIRE_STARTED, NULL, &tty, tty >= 0);
}

static void fill_usage(struct keeper *k, struct box *b,
		       const struct rusage *ru)
{
	struct wire_outcome *o = &b->outcome;
	struct cg_usage u;

	cg_box_usage(&k->cg, &b->cg, &u);
	o->memory_peak = u.memory_peak;
	o->oom_kills = u.oom_kills;
	o->pids_peak = u.pids_peak;
	o->pids_refused = u.pids_refused;
	o->cpu_us = u.cpu_us;
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
	b->outcome.not_enforced |= o->not_enforced;
	b->outcome.landlock_abi = o->landlock_abi;
}

static void look_at_disks(struct box *b)
{
	b->outcome.disk_full = 0;
	for (int i = 0; i < b->n_disks; i++)
		if (is_full(b->disks[i]))
			b->outcome.disk_full = 1;
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
			fill_usage(k, b, NULL);
			look_at_disks(b);
			b->deadline = 0;
			tell(b->job, WIRE_BLOCK, &b->outcome, NULL, 0);
			break;
		case WIRE_ENDED:
		case WIRE_FAILED:
			take_outcome(b, &msg.outcome);
			b->heard = true;
			break;
		default:
			break;
		}
	} else if (n != -EAGAIN) {
		/* The end of the stream; its death tells the rest. */
		fd_close(&b->sock);
	}
	for (int i = 0; i < n_fds; i++)
		(void)close(fds[i]);
}

void run_end(struct keeper *k, struct box *b, enum wire_end end)
{
	(void)k;
	if (b->state == BOX_DYING || b->heard)
		return;
	b->outcome.end = end;
	b->outcome.pids_full = cg_box_is_full(&b->cg);
	b->state = BOX_DYING;
	/*
	 * Both: the group reaches every process in one call, and init's death
	 * ends the pid namespace where there is no such group.
	 */
	(void)cg_box_kill(&b->cg);
	(void)sys_pidfd_kill(b->pidfd, SIGKILL);
}

void run_init_died(struct keeper *k, struct box *b)
{
	struct rusage ru = { 0 };
	bool parked = b->state == BOX_PARKED;

	if (wait4(b->pid, NULL, WNOHANG, &ru) != b->pid)
		return;
	b->pid = 0;
	/* What it said last may still be in the socket. */
	while (b->sock >= 0 && !b->heard)
		run_init_said(k, b);
	if (parked) {
		k->spare_err = b->outcome.err;
		box_release(k, b);
		return;
	}
	if (!b->heard && b->outcome.end == WIRE_BY_ITSELF)
		b->outcome.end = WIRE_BY_LOSS;
	if (!b->heard && b->started)
		b->outcome.wall_us = (uint64_t)(clock_us() - b->started);
	fill_usage(k, b, &ru);
	look_at_disks(b);
	(void)cg_box_remove(&k->cg, &b->cg);
	tell(b->job, WIRE_ENDED, &b->outcome, &b->work, b->work >= 0);
	box_release(k, b);
}

static void check_cpu(struct keeper *k, struct box *b)
{
	if (cg_box_cpu_us(&k->cg, &b->cg) >= b->limits.cpu_time_us)
		run_end(k, b, WIRE_BY_CPU);
	else
		plan_cpu_check(k, b);
}

/* At the deadline: SIGTERM first where a time of grace was given. */
static void timed_out(struct keeper *k, struct box *b, int64_t now)
{
	const struct wire_head term = { WIRE_TERM, b->job };

	if (b->limits.grace_us && !b->kill_at) {
		b->outcome.end = WIRE_BY_TIMEOUT;
		b->kill_at = now + (int64_t)b->limits.grace_us;
		(void)io_send(b->sock, &term, sizeof(term), NULL, 0);
		return;
	}
	if (!b->kill_at || now >= b->kill_at)
		run_end(k, b, WIRE_BY_TIMEOUT);
}

void run_timers(struct keeper *k)
{
	int64_t now = clock_us();

	for (int i = 0; i < KEEPER_BOXES; i++) {
		struct box *b = &k->boxes[i];

		if (b->state != BOX_RUNNING)
			continue;
		if ((b->deadline && now >= b->deadline) ||
		    (b->total_deadline && now >= b->total_deadline))
			timed_out(k, b, now);
		else if (b->cpu_check && now >= b->cpu_check)
			check_cpu(k, b);
	}
}

int run_timeout_ms(const struct keeper *k)
{
	int64_t next = INT64_MAX;
	int64_t now;

	for (int i = 0; i < KEEPER_BOXES; i++) {
		const struct box *b = &k->boxes[i];

		if (b->state != BOX_RUNNING)
			continue;
		if (b->kill_at) {
			next = MIN(next, b->kill_at);
			continue;
		}
		if (b->deadline)
			next = MIN(next, b->deadline);
		if (b->total_deadline)
			next = MIN(next, b->total_deadline);
		if (b->cpu_check)
			next = MIN(next, b->cpu_check);
	}
	if (next == INT64_MAX)
		return -1;
	now = clock_us();
	if (next <= now)
		return 0;
	return (int)MIN((next - now + 999) / 1000, 3600000);
}
