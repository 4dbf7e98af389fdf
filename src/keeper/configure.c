/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Giving a parked box its spec. Init gets it first and fills its root, while
 * mounts are opened; then it gets those and completes its root, while groups
 * are made and limits set.
 */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "keeper/keeper.h"

#ifndef F_GET_SEALS
#define F_GET_SEALS 1034
#endif
#define SEALED 0xf /* seal, shrink, grow, write */

const struct wire_box *spec_map(int fd, struct err *err)
{
	struct stat st;
	void *p;

	if (fcntl(fd, F_GET_SEALS) != SEALED || fstat(fd, &st) < 0 ||
	    st.st_size < (off_t)sizeof(struct wire_box)) {
		(void)err_set(err, EPROTO, "the spec is not a sealed memfd");
		return NULL;
	}
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		(void)err_errno(err, errno, "map the spec");
		return NULL;
	}
	if (wire_check_box(p, (uint64_t)st.st_size, err) < 0) {
		(void)munmap(p, (size_t)st.st_size);
		return NULL;
	}
	return p;
}

/* Root has every group that is there; others have what they were given. */
static int no_group(const struct keeper *k, const char *role, struct err *err)
{
	if (k->world.is_root)
		return err_set(
			err, EOPNOTSUPP,
			"cannot limit %s: no cgroup of it is mounted "
			"below /sys/fs/cgroup that can be written; mount "
			"it, or accept it with '--best-effort cgroup'",
			role);
	return err_set(err, EOPNOTSUPP,
		       "cannot limit %s: no cgroup that this user may use; "
		       "either start it as 'systemd-run --user --scope -p "
		       "Delegate=yes cordon run ...' (cgroup v2), or have root "
		       "run 'cordon doctor --grant-cgroup UID' (v1), or accept "
		       "it with '--best-effort cgroup'",
		       role);
}

/* Which limits cannot be set, or an error that says what to do about it. */
static int check_layers(const struct keeper *k, const struct wire_box *spec,
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
	static const char *const names[WIRE_LAYERS] = {
		[WIRE_L_MEMORY] = "memory",     [WIRE_L_CPU] = "cpu",
		[WIRE_L_PIDS] = "pids",         [WIRE_L_CPUSET] = "cpuset",
		[WIRE_L_LANDLOCK] = "landlock", [WIRE_L_OWN_UID] = "own-uid",
	};
	uint32_t missing = 0;

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		if (k->cg.role[limits[i].role].fd >= 0)
			continue;
		missing |= 1U << limits[i].layer;
		if (spec->best_effort & 1U << limits[i].layer)
			continue;
		return no_group(k, cg_role_name(limits[i].role), err);
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
	for (unsigned int i = 0; i < WIRE_LAYERS; i++)
		if (missing & spec->require & 1U << i)
			return err_set(err, EOPNOTSUPP,
				       "the policy requires a layer that is "
				       "missing on this machine: %s",
				       names[i]);
	*ret_missing = missing;
	return 0;
}

static unsigned int our_cpu(const struct cg_tree *cg)
{
	int here = sched_getcpu();

	for (unsigned int i = 0; i < cg->n_cpus; i++)
		if (cg->cpus[i] == here)
			return i;
	return 0;
}

static bool is_asked_for(const struct wire_limits *l, uint16_t cpu)
{
	bool any = !(l->cpus[0] | l->cpus[1] | l->cpus[2] | l->cpus[3]);

	return any || (cpu < 256 && (l->cpus[cpu / 64] & 1ULL << cpu % 64));
}

/* Of the CPUs that boxes may use, those of `mask` that this one asks for. */
static unsigned int list_cpus(const struct cg_tree *cg,
			      const struct wire_limits *l,
			      const cpu_set_t *mask, uint16_t *ret)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < cg->n_cpus; i++)
		if (is_asked_for(l, cg->cpus[i]) &&
		    (!mask || CPU_ISSET(cg->cpus[i], mask)))
			ret[n++] = cg->cpus[i];
	return n;
}

/*
 * Where we may not use all ourselves (taskset(1), AllowedCPUs=) init inherits
 * that, and the kernel gives it what both have in common, if anything.
 */
static unsigned int choose_cpus(const struct keeper *k,
				const struct wire_limits *l, uint16_t *ret)
{
	unsigned int n = list_cpus(&k->cg, l, &k->cpus, ret);

	return n > 0 ? n : list_cpus(&k->cg, l, NULL, ret);
}

static int set_limits(struct keeper *k, struct box *b, struct wire_bounds *ret,
		      struct err *err)
{
	const struct wire_limits *l = &b->spec->limits;
	static uint16_t choice[CG_MAX_CPUS];
	uint64_t cpus = (l->cpu_quota_us + l->cpu_period_us - 1) /
			l->cpu_period_us;
	unsigned int n = choose_cpus(k, l, choice);
	struct cg_limits cg = {
		.memory = l->memory,
		.memory_low = l->memory_low,
		.has_net = b->spec->blob.flags & WIRE_EGRESS,
		.cpu_quota_us = l->cpu_quota_us,
		.cpu_period_us = l->cpu_period_us,
		.cpu_shares = l->cpu_shares,
		.pids = l->pids,
		.cpus = choice,
		.n_choice = n,
		.n_cpus = (unsigned int)MIN(cpus, n),
	};

	if (n == 0)
		return err_set(err, EINVAL,
			       "no box may use the CPUs of 'cpuset-cpus' on "
			       "this machine");
	/* One CPU after the other, from the one beside ours on. */
	cg.first_cpu = (our_cpu(&k->cg) + b->serial) % n;
	b->only_cpu = cg.n_cpus == 1 ? choice[cg.first_cpu] : -1;
	cpus_leave(k, b->only_cpu);
	if (k->cg.role[CG_CPUSET].fd < 0) {
		ret->n_affinity = MIN(cg.n_cpus, ARRAY_SIZE(ret->affinity));
		for (uint32_t i = 0; i < ret->n_affinity; i++)
			ret->affinity[i] = choice[(cg.first_cpu + i) % n];
	}
	return cg_box_limit(&k->cg, &b->cg, &cg, err);
}

static int send_to(const struct box *b, const void *msg, size_t size,
		   const int *fds, int n, struct err *err)
{
	int r = io_send(b->sock, msg, size, fds, n);

	if (r == 0 || init_is_gone(r))
		return 0;
	(void)err_errno(err, -r, "send the spec to init");
	return err_stage(err, "init");
}

static int give_mounts(struct keeper *k, struct box *b, struct wire_conf *conf,
		       struct err *err)
{
	int fds[IO_MAX_FDS];
	int n = 0;
	int r = mounts_open(k, b, b->spec, fds, &n, conf->has_mount, err);

	if (r == 0)
		r = send_to(b, conf, sizeof(*conf), fds, n, err);
	for (int i = 0; i < n; i++)
		(void)close(fds[i]);
	return r;
}

/* Limits are set before init hears of the groups. */
static int give_bounds(struct keeper *k, struct box *b, struct err *err)
{
	struct wire_bounds bounds = { .type = WIRE_BOUNDS };
	int fds[IO_MAX_FDS];
	int n;
	int r;

	cg_tree_find_cpus(&k->cg);
	if (cg_box_make(&k->cg, &b->cg, false, err) < 0 ||
	    set_limits(k, b, &bounds, err) < 0)
		return err_stage(err, "cgroup");
	keeper_moment("groups");
	n = box_open_tasks(k, b, fds, err);
	if (n < 0)
		return err_stage(err, "cgroup");
	bounds.n_tasks = (uint32_t)n;
	r = send_to(b, &bounds, sizeof(bounds), fds, n, err);
	for (int i = 0; i < n; i++)
		(void)close(fds[i]);
	return r;
}

int box_configure(struct keeper *k, struct box *b, int fd, struct err *err)
{
	const struct wire_head head = { .type = WIRE_SPEC };
	struct wire_conf conf = { .type = WIRE_CONF, .stays = b->stays };

	if (box_born(k, b, err) < 0)
		return err_stage(err, "spawn");
	b->spec = spec_map(fd, err);
	if (!b->spec)
		return err_stage(err, "spec");
	if (check_layers(k, b->spec, b->lock >= 0, &conf.skip, err) < 0)
		return err_stage(err, "layers");
	if (send_to(b, &head, sizeof(head), &fd, 1, err) < 0 ||
	    give_mounts(k, b, &conf, err) < 0 || give_bounds(k, b, err) < 0)
		return -err->code;
	b->outcome.not_enforced = conf.skip;
	b->outcome.host_uid = b->host_uid;
	b->state = BOX_READY;
	return 0;
}
