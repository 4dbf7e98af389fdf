/* SPDX-License-Identifier: Apache-2.0 */

/* The groups of one box: made, limited, killed, read and removed. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "os/cgroup.h"

#define MIN_SOCKETS (4ULL << 20)

static bool owns(const struct cg_tree *tree, int role)
{
	return tree->role[role].fd >= 0 && (int)tree->role[role].same == role;
}

static int put(int dir, const char *file, const char *text, struct err *err)
{
	int r = io_write_file(dir, file, text);

	if (r < 0)
		return err_errno(err, -r, "write '%s' to %s", text, file);
	return 0;
}

static int put_cpus(int dir, const struct cg_limits *l, struct err *err)
{
	char text[4096];
	size_t len = 0;

	for (unsigned int i = 0; i < l->n_cpus && len < sizeof(text) - 8; i++) {
		unsigned int at = (l->first_cpu + i) % l->n_choice;

		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%u",
					i ? "," : "", l->cpus[at]);
	}
	return put(dir, "cpuset.cpus", text, err);
}

static int make_dir(const struct cg_parent *p, const char *name, int *ret_fd,
		    struct err *err)
{
	if (mkdirat(p->fd, name, 0755) < 0)
		return err_errno(err, errno, "make cgroup '%s'", name);
	*ret_fd = openat(p->fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*ret_fd < 0) {
		(void)err_errno(err, errno, "open cgroup '%s'", name);
		(void)unlinkat(p->fd, name, AT_REMOVEDIR);
		return -err->code;
	}
	return 0;
}

void cg_box_init(struct cg_box *box, const char *name)
{
	(void)snprintf(box->name, sizeof(box->name), "%s", name);
	for (int i = 0; i < CG_ROLES; i++)
		box->dir[i] = NO_FD;
}

int cg_box_make(const struct cg_tree *tree, struct cg_box *box, bool v2,
		struct err *err)
{
	for (int i = 0; i < CG_ROLES; i++) {
		const struct cg_parent *p = &tree->role[i];

		if (p->fd < 0 || p->v2 != v2 ||
		    (i == CG_FREEZE && !box->may_freeze))
			continue;
		if (!owns(tree, i))
			box->dir[i] = box->dir[p->same];
		else if (make_dir(p, box->name, &box->dir[i], err) < 0)
			return -err->code;
	}
	return 0;
}

static int put_num(int dir, const char *file, uint64_t n, struct err *err)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
	return put(dir, file, text, err);
}

static int limit_memory(int dir, bool v2, uint64_t bytes, uint64_t low,
			struct err *err)
{
	int r;

	if (dir < 0)
		return 0;
	if (put_num(dir, v2 ? "memory.max" : "memory.limit_in_bytes", bytes,
		    err) < 0)
		return -err->code;
	if (low &&
	    put_num(dir, v2 ? "memory.low" : "memory.soft_limit_in_bytes", low,
		    err) < 0)
		return -err->code;
	if (v2)
		r = io_write_file(dir, "memory.swap.max", "0");
	else if (put_num(dir, "memory.memsw.limit_in_bytes", bytes, NULL) == 0)
		return 0;
	else
		r = io_write_file(dir, "memory.swappiness", "0");
	/* No such file: the kernel counts no swap, or there is none. */
	if (r < 0 && r != -ENOENT)
		return err_errno(err, -r, "turn off swap");
	return 0;
}

/*
 * Version 2 counts what waits in TCP and UDP sockets as memory. Version 1 has
 * a counter of its own for it, and none unless it is limited: the box would
 * have the host's memory there. A quarter, and room for a few connections.
 */
static int limit_sockets(int dir, bool v2, uint64_t memory, struct err *err)
{
	if (dir < 0 || v2)
		return 0;
	return put_num(dir, "memory.kmem.tcp.limit_in_bytes",
		       MAX(memory / 4, MIN_SOCKETS), err);
}

/* Version 2 counts from 1 to 10000 what version 1 counts from 2 to 262144. */
static int put_shares(int dir, bool v2, uint64_t shares, struct err *err)
{
	return v2 ? put_num(dir, "cpu.weight", 1 + (shares - 2) * 9999 / 262142,
			    err)
		  : put_num(dir, "cpu.shares", shares, err);
}

static int limit_cpu(int dir, bool v2, const struct cg_limits *l,
		     struct err *err)
{
	char text[48];

	if (dir < 0)
		return 0;
	if (l->cpu_shares && put_shares(dir, v2, l->cpu_shares, err) < 0)
		return -err->code;
	if (v2) {
		(void)snprintf(text, sizeof(text), "%llu %llu",
			       (unsigned long long)l->cpu_quota_us,
			       (unsigned long long)l->cpu_period_us);
		return put(dir, "cpu.max", text, err);
	}
	if (l->cpu_period_us != 100000 &&
	    put_num(dir, "cpu.cfs_period_us", l->cpu_period_us, err) < 0)
		return -err->code;
	return put_num(dir, "cpu.cfs_quota_us", l->cpu_quota_us, err);
}

/*
 * A version 1 cpuset is empty at first; nobody can enter it then. Where it is
 * one that balances load, the kernel looks through all of them for scheduling
 * domains when it gets CPUs and when it goes, which takes a tenth of a
 * millisecond each. On one CPU there is nothing to balance.
 */
static int limit_cpus_v1(int dir, const char *mems, const struct cg_limits *l,
			 struct err *err)
{
	if (l->n_cpus == 1 &&
	    put(dir, "cpuset.sched_load_balance", "0", err) < 0)
		return -err->code;
	if (put(dir, "cpuset.mems", mems, err) < 0)
		return -err->code;
	return put_cpus(dir, l, err);
}

static int limit_cpus(const struct cg_tree *tree, int dir,
		      const struct cg_limits *l, struct err *err)
{
	if (dir < 0)
		return 0;
	return tree->role[CG_CPUSET].v2
		       ? put_cpus(dir, l, err)
		       : limit_cpus_v1(dir, tree->mems, l, err);
}

int cg_box_limit(const struct cg_tree *tree, const struct cg_box *box,
		 const struct cg_limits *l, struct err *err)
{
	const struct cg_parent *p = tree->role;

	if (limit_memory(box->dir[CG_MEMORY], p[CG_MEMORY].v2, l->memory,
			 l->memory_low, err) < 0 ||
	    (l->has_net && limit_sockets(box->dir[CG_MEMORY], p[CG_MEMORY].v2,
					 l->memory, err) < 0) ||
	    limit_cpu(box->dir[CG_CPU], p[CG_CPU].v2, l, err) < 0)
		return -err->code;
	if (limit_cpus(tree, box->dir[CG_CPUSET], l, err) < 0)
		return -err->code;
	if (box->dir[CG_PIDS] < 0)
		return 0;
	return put_num(box->dir[CG_PIDS], "pids.max", l->pids, err);
}

int cg_box_clone_fd(const struct cg_tree *tree, const struct cg_box *box)
{
	return tree->role[CG_KILL].v2 ? box->dir[CG_KILL] : NO_FD;
}

int cg_box_open_tasks(const struct cg_tree *tree, const struct cg_box *box,
		      int ret_fds[CG_ROLES], struct err *err)
{
	int n = 0;

	for (int i = 0; i < CG_ROLES; i++) {
		int fd;

		if (!owns(tree, i) || tree->role[i].v2 || i == CG_FREEZE)
			continue;
		fd = openat(box->dir[i], "tasks", O_WRONLY | O_CLOEXEC);
		if (fd < 0) {
			err_errno(err, errno, "open tasks of cgroup '%s'",
				  box->name);
			while (n > 0)
				(void)close(ret_fds[--n]);
			return -(err ? err->code : EIO);
		}
		ret_fds[n++] = fd;
	}
	return n;
}

bool cg_box_kill(const struct cg_box *box)
{
	if (box->dir[CG_KILL] >= 0 &&
	    io_write_file(box->dir[CG_KILL], "cgroup.kill", "1") == 0)
		return true;
	if (box->dir[CG_PIDS] < 0)
		return false;
	/* Those it misses, because they are new, end with their init. */
	cg_kill_tasks(box->dir[CG_PIDS]);
	return true;
}

void cg_box_let_die(const struct cg_tree *tree, const struct cg_box *box)
{
	bool v2 = tree->role[CG_CPU].v2;

	if (box->dir[CG_CPU] >= 0)
		(void)io_write_file(box->dir[CG_CPU],
				    v2 ? "cpu.max" : "cpu.cfs_quota_us",
				    v2 ? "max" : "-1");
}

uint64_t cg_keyed(int dir, const char *file, const char *key)
{
	char text[8192];
	size_t len = strlen(key);

	if (dir < 0 || io_read_file(dir, file, text, sizeof(text)) < 0)
		return 0;
	for (const char *p = text; *p; p = strchrnul(p, '\n')) {
		p += *p == '\n';
		if (strncmp(p, key, len) == 0 && p[len] == ' ')
			return strtoull(p + len + 1, NULL, 10);
	}
	return 0;
}

uint64_t cg_single(int dir, const char *file)
{
	char text[32];

	if (dir < 0 || io_read_file(dir, file, text, sizeof(text)) <= 0)
		return 0;
	return strtoull(text, NULL, 10);
}

bool cg_box_is_empty(const struct cg_box *box)
{
	return box->dir[CG_KILL] < 0 ||
	       cg_keyed(box->dir[CG_KILL], "cgroup.events", "populated") == 0;
}

bool cg_box_is_full(const struct cg_box *box)
{
	uint64_t now = cg_single(box->dir[CG_PIDS], "pids.current");

	return now > 0 && now >= cg_single(box->dir[CG_PIDS], "pids.max");
}

uint64_t cg_box_cpu_us(const struct cg_tree *tree, const struct cg_box *box)
{
	int dir = box->dir[CG_ACCT];

	if (tree->role[CG_ACCT].v2)
		return cg_keyed(dir, "cpu.stat", "usage_usec");
	return cg_single(dir, "cpuacct.usage") / 1000;
}

void cg_box_counts(const struct cg_tree *tree, const struct cg_box *box,
		   struct cg_usage *ret)
{
	*ret = (struct cg_usage){ 0 };
	ret->oom_kills = cg_keyed(box->dir[CG_MEMORY],
				  tree->role[CG_MEMORY].v2
					  ? "memory.events"
					  : "memory.oom_control",
				  "oom_kill");
	ret->pids_refused = cg_keyed(box->dir[CG_PIDS], "pids.events", "max");
}

void cg_box_usage(const struct cg_tree *tree, const struct cg_box *box,
		  struct cg_usage *ret)
{
	int mem = box->dir[CG_MEMORY];
	bool v2 = tree->role[CG_MEMORY].v2;

	cg_box_counts(tree, box, ret);
	ret->memory_peak = cg_single(mem, v2 ? "memory.peak"
					     : "memory.max_usage_in_bytes");
	ret->has_cpu = box->dir[CG_ACCT] >= 0;
	ret->cpu_us = cg_box_cpu_us(tree, box);
	ret->pids_peak = cg_single(box->dir[CG_PIDS], "pids.peak");
}

/* CPU time by who used it; version 1 has it in ticks or in nanoseconds. */
static void gauge_cpu(const struct cg_tree *tree, const struct cg_box *box,
		      struct cg_gauge *ret)
{
	int acct = box->dir[CG_ACCT];
	int cpu = box->dir[CG_CPU];

	if (tree->role[CG_ACCT].v2) {
		ret->cpu_user_us = cg_keyed(acct, "cpu.stat", "user_usec");
		ret->cpu_system_us = cg_keyed(acct, "cpu.stat", "system_usec");
	} else {
		ret->cpu_user_us = cg_single(acct, "cpuacct.usage_user") / 1000;
		ret->cpu_system_us = cg_single(acct, "cpuacct.usage_sys") /
				     1000;
	}
	ret->periods = cg_keyed(cpu, "cpu.stat", "nr_periods");
	ret->throttled = cg_keyed(cpu, "cpu.stat", "nr_throttled");
	ret->throttled_us = tree->role[CG_CPU].v2 ? cg_keyed(cpu, "cpu.stat",
							     "throttled_usec")
						  : cg_keyed(cpu, "cpu.stat",
							     "throttled_time") /
							    1000;
}

void cg_box_gauge(const struct cg_tree *tree, const struct cg_box *box,
		  struct cg_gauge *ret)
{
	int mem = box->dir[CG_MEMORY];
	bool v2 = tree->role[CG_MEMORY].v2;

	*ret = (struct cg_gauge){ 0 };
	ret->memory = cg_single(mem, v2 ? "memory.current"
					: "memory.usage_in_bytes");
	ret->memory_limit = cg_single(mem, v2 ? "memory.max"
					      : "memory.limit_in_bytes");
	ret->inactive_file = cg_keyed(mem, "memory.stat",
				      v2 ? "inactive_file"
					 : "total_inactive_file");
	ret->active_file = cg_keyed(mem, "memory.stat",
				    v2 ? "active_file" : "total_active_file");
	ret->pids = cg_single(box->dir[CG_PIDS], "pids.current");
	ret->pids_limit = cg_single(box->dir[CG_PIDS], "pids.max");
	gauge_cpu(tree, box, ret);
}

int cg_box_parents(const struct cg_tree *tree, const struct cg_box *box,
		   int *ret_fds)
{
	int n = 0;

	for (int i = 0; i < CG_ROLES; i++)
		if (owns(tree, i) && box->dir[i] >= 0)
			ret_fds[n++] = tree->role[i].fd;
	return n;
}

void cg_box_close(const struct cg_tree *tree, struct cg_box *box)
{
	for (int i = 0; i < CG_ROLES; i++) {
		if (owns(tree, i) && box->dir[i] >= 0)
			(void)close(box->dir[i]);
		box->dir[i] = NO_FD;
	}
}

int cg_box_remove(const struct cg_tree *tree, struct cg_box *box)
{
	int parents[CG_ROLES];
	int n = cg_box_parents(tree, box, parents);
	int first = 0;

	cg_box_close(tree, box);
	for (int i = 0; i < n; i++)
		if (unlinkat(parents[i], box->name, AT_REMOVEDIR) < 0 &&
		    errno != ENOENT && !first)
			first = -errno;
	return first;
}

static int sweep_in(int parent, const char *name, bool has_parts);

/* The parts of a group are its only directories. */
static void sweep_parts(int dir)
{
	DIR *d = fdopendir(dir);
	const struct dirent *e;

	if (!d) {
		(void)close(dir);
		return;
	}
	while ((e = readdir(d)))
		if (e->d_type == DT_DIR && e->d_name[0] != '.')
			(void)sweep_in(dirfd(d), e->d_name, false);
	(void)closedir(d);
}

static int sweep_in(int parent, const char *name, bool has_parts)
{
	_cleanup_fd_ int dir = openat(parent, name,
				      O_RDONLY | O_DIRECTORY | O_CLOEXEC |
					      O_NOFOLLOW);

	if (dir < 0)
		return errno == ENOENT ? 0 : -errno;
	for (int tries = 0; tries < 50; tries++) {
		if (unlinkat(parent, name, AT_REMOVEDIR) == 0 ||
		    errno == ENOENT)
			return 0;
		if (errno != EBUSY)
			return -errno;
		/* What is frozen dies only when it may move again. */
		(void)io_write_file(dir, "freezer.state", "THAWED");
		if (io_write_file(dir, "cgroup.kill", "1") < 0)
			cg_kill_tasks(dir);
		if (has_parts)
			sweep_parts(openat(dir, ".",
					   O_RDONLY | O_DIRECTORY | O_CLOEXEC));
		usleep(tries ? 10000 : 1000);
	}
	return -EBUSY;
}

int cg_sweep(const char *path, const char *name)
{
	_cleanup_fd_ int parent = open(path, O_RDONLY | O_DIRECTORY |
						     O_CLOEXEC | O_NOFOLLOW);

	if (parent < 0)
		return errno == ENOENT ? 0 : -errno;
	return sweep_in(parent, name, true);
}
