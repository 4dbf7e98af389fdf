/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Control groups, versions 1 and 2, behind one face.
 *
 * What a box needs from cgroups is a set of roles. Each role is served by a
 * directory in some hierarchy: on a version 2 machine one directory serves
 * them all, on version 1 each controller has its own, and on a hybrid machine
 * limits come from version 1 while kill and CPU accounting come from the
 * version 2 tree, which has no controllers but both of those. A role that the
 * machine cannot serve has no directory; whether that is an error is the
 * caller's to decide.
 *
 * Life: cg_tree_open() finds the parent directories once; for each box
 * cg_box_make(); the box is born by clone3 into the version 2 directory;
 * cg_box_limit(); the box joins those of version 1 by writing "0" to their
 * `tasks`: moving oneself takes no lock, moving another process waits for an
 * RCU grace period. Then cg_box_kill(), cg_box_usage(), cg_box_remove().
 * Removal needs an empty box; a directory that could not be removed is left
 * for cg_sweep().
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

enum cg_role {
	CG_MEMORY,
	CG_CPU,
	CG_PIDS,
	CG_CPUSET,
	CG_ACCT, /* CPU time */
	CG_KILL, /* kill all at once, know when empty */
	/*
	 * Stand still. Version 2 has it where it has CG_KILL; that of version
	 * 1 is looked for only by cg_tree_find_freezer().
	 */
	CG_FREEZE,
	CG_ROLES,
};

#define CG_MAX_CPUS 1024
#define CG_PATH_MAX 512

struct cg_tree {
	struct cg_parent {
		int fd;            /* NO_FD: the role is not served */
		enum cg_role same; /* the first role with this directory */
		bool v2;
		char path[CG_PATH_MAX];
	} role[CG_ROLES];
	char mems[64];              /* v1: memory nodes for a new cpuset */
	uint16_t cpus[CG_MAX_CPUS]; /* CPUs that boxes may use */
	unsigned int n_cpus;        /* 0 before cg_tree_find_cpus() */
};

struct cg_box {
	char name[48];
	bool may_freeze;   /* it has a group in the freezer of version 1 */
	int dir[CG_ROLES]; /* NO_FD, or owned by the first role that has it */
};

struct cg_limits {
	uint64_t memory;       /* bytes */
	bool has_net;          /* sockets whose buffers count beside it */
	uint64_t cpu_quota_us; /* in each period */
	uint64_t cpu_period_us;
	uint64_t pids;
	const uint16_t *cpus;   /* what to choose from ... */
	unsigned int first_cpu; /* ... from this index on ... */
	unsigned int n_cpus;    /* ... so many, going round */
	unsigned int n_choice;
	uint64_t memory_low; /* 0: none */
	uint64_t cpu_shares; /* 0: the usual */
};

struct cg_usage {
	uint64_t memory_peak; /* bytes, 0 when not known */
	uint64_t oom_kills;
	uint64_t cpu_us;
	bool has_cpu;
	uint64_t pids_peak;
	uint64_t pids_refused;
};

const char *cg_role_name(enum cg_role role);

/*
 * Finds where this process may make groups, moving the processes of its own
 * group into a leaf where version 2 demands that. Roles that cannot be served
 * are left without a directory. Fails only if /proc cannot be read.
 */
int cg_tree_open(struct cg_tree *tree, struct err *err);
void cg_tree_close(struct cg_tree *tree);
/* Which CPUs boxes may use; once. */
void cg_tree_find_cpus(struct cg_tree *tree);

/*
 * Where version 2 cannot freeze: looks for the freezer of version 1. True if
 * groups will be made in a directory that was not there before.
 */
bool cg_tree_find_freezer(struct cg_tree *tree);

/* The name of its directories, of which none is made yet. */
void cg_box_init(struct cg_box *box, const char *name);
/* Makes the directories in the hierarchies of one version. */
int cg_box_make(const struct cg_tree *tree, struct cg_box *box, bool v2,
		struct err *err);
int cg_box_limit(const struct cg_tree *tree, const struct cg_box *box,
		 const struct cg_limits *limits, struct err *err);

/* The version 2 directory to clone into, NO_FD if there is none. */
int cg_box_clone_fd(const struct cg_tree *tree, const struct cg_box *box);

/* Opens `tasks` of each version 1 directory; the number, or -errno. */
int cg_box_open_tasks(const struct cg_tree *tree, const struct cg_box *box,
		      int ret_fds[CG_ROLES], struct err *err);

/* Kills everything in the box; false if it could not be reached so. */
bool cg_box_kill(const struct cg_box *box);
/*
 * Lifts the CPU quota of a box that was killed: what has used up its quota
 * would otherwise die only in the next period. Never before the kill.
 */
void cg_box_let_die(const struct cg_tree *tree, const struct cg_box *box);
bool cg_box_is_empty(const struct cg_box *box);
uint64_t cg_box_cpu_us(const struct cg_tree *tree, const struct cg_box *box);
bool cg_box_is_full(const struct cg_box *box); /* of processes */
/* Of these only what the kernel refused: quicker. */
void cg_box_counts(const struct cg_tree *tree, const struct cg_box *box,
		   struct cg_usage *ret);
void cg_box_usage(const struct cg_tree *tree, const struct cg_box *box,
		  struct cg_usage *ret);

/*
 * Removes the directories that are still there and closes them; 0, or -errno of
 * the first. Another process may do the first half: they are called box->name,
 * in these directories, whose number is returned.
 */
int cg_box_remove(const struct cg_tree *tree, struct cg_box *box);
int cg_box_parents(const struct cg_tree *tree, const struct cg_box *box,
		   int *ret_fds);
void cg_box_close(const struct cg_tree *tree, struct cg_box *box);

/* What the box uses now, for people who watch it. */
struct cg_gauge {
	uint64_t memory, memory_limit, inactive_file, active_file;
	uint64_t cpu_user_us, cpu_system_us;
	uint64_t throttled, throttled_us, periods;
	uint64_t pids, pids_limit;
};
void cg_box_gauge(const struct cg_tree *tree, const struct cg_box *box,
		  struct cg_gauge *ret);

/*
 * Kills, then removes, a group of an earlier life below directory `path`,
 * with the parts it had.
 */
int cg_sweep(const char *path, const char *name);

/*
 * A part of a box: the groups of one of its programs, below the box's own,
 * named by a number. In version 2 where that kills; else in the hierarchies
 * of version 1 that count processes and CPU time, and in the freezer. Nothing
 * of a part is held open.
 *
 * A program gets into it by being born there (version 2: clone3 with the
 * directory, for which `owner`, the uid that will do it, must own two files)
 * or by writing "0" to `tasks`. cgroup-part.c
 */
struct cg_join {
	int dir;             /* to be born into, NO_FD */
	int tasks[CG_ROLES]; /* to write to */
	int n_tasks;
};

int cg_part_make(const struct cg_tree *tree, const struct cg_box *box,
		 uint32_t number, int64_t owner, struct err *err);
int cg_part_open(const struct cg_tree *tree, const struct cg_box *box,
		 uint32_t number, struct cg_join *ret, struct err *err);
void cg_join_close(struct cg_join *j);
/* False where there is no group that could be killed. */
bool cg_part_kill(const struct cg_tree *tree, const struct cg_box *box,
		  uint32_t number);
bool cg_part_is_empty(const struct cg_tree *tree, const struct cg_box *box,
		      uint32_t number);
uint64_t cg_part_cpu_us(const struct cg_tree *tree, const struct cg_box *box,
			uint32_t number);
int cg_part_freeze(const struct cg_tree *tree, const struct cg_box *box,
		   uint32_t number, bool is_frozen);
int cg_part_remove(const struct cg_tree *tree, const struct cg_box *box,
		   uint32_t number);
bool cg_may_freeze(const struct cg_tree *tree);

/* Kills what is in a group of version 1, or of one without cgroup.kill. */
void cg_kill_tasks(int dir);
/* The number after `key ` in a file of such lines, 0 if it is not there. */
uint64_t cg_keyed(int dir, const char *file, const char *key);
/* The number that is all of a file, 0 where there is none, or "max". */
uint64_t cg_single(int dir, const char *file);
