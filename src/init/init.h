/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * cordon-init: pid 1 of a box.
 *
 * It is started by the keeper from a sealed memfd, inside new namespaces,
 * with the capabilities over them that set-up needs. It builds the box from
 * the inside, gives up everything, starts the program, reaps, and says how it
 * ended. It has no heap; all it holds is in this structure.
 *
 * Set-up is five tables of stages (stages.c), and init waits for the keeper
 * before each: for its ids, the box's spec, its mounts, its groups, the work.
 * So a box can be made ahead, as far as its future is known. A stage returns 0,
 * or -errno with init->err filled in; then the whole set-up ends with that one
 * message and the program never starts.
 *
 * In a box that stays (wire_conf.stays) there is no fifth wait: when the wall
 * stands, init says so and serves (session.c). Each program and each request
 * for files is a child, which runs the last table itself; init forks, reaps
 * and passes on, and never waits for anything that the box could hold up.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "box/wire.h"

#define INIT_SOCK 3 /* the socket to the keeper */

/* Of a gate: four for names, two for each port. */
#define INIT_MAX_SOCKETS (8 + 2 * WIRE_MAX_PORTS)

/*
 * What was changed in a root of layers, and what it is without that: the root,
 * then a directory of the host that has a layer of its own (layers-host.c).
 */
enum { CHANGES_ROOT, CHANGES_HOST, CHANGES };

struct changes {
	int upper[CHANGES];
	int lower[CHANGES];
	const char *host; /* where the second one is in the box */
};

struct init {
	struct err err;
	struct wire_go go;
	struct wire_conf conf;
	struct wire_bounds bounds;
	const struct wire_box *box;
	const struct wire_work *work;
	uint32_t job;
	int tasks[WIRE_MAX_TASKS];   /* of the groups to enter */
	int mounts[WIRE_MAX_MOUNTS]; /* detached, in the spec's order */
	int stdio[3];
	int root; /* the root directory, once there is one */
	int old;  /* the one before, until it is let go */
	int next; /* one of layers, before it is the root; else NO_FD */
	int tty;  /* our side of the terminal */
	dev_t own[WIRE_MAX_MOUNTS + 1]; /* file systems of the box's own */
	size_t n_own;
	uint32_t not_enforced;
	uint32_t landlock_abi;
	int witness; /* where refused sockets are told, NO_FD: nowhere */
	int pts;     /* the directory of terminals, in a box that stays */
	/* Of a root whose changes are kept, in such a box; else NO_FD. */
	struct changes changes;
	/* Of a box with a gate, until that has them; stage-net.c */
	int gate;
	bool has_ipv6;
	int sockets[INIT_MAX_SOCKETS];
	uint32_t n_sockets;
};

static inline bool init_has_gate(const struct init *in)
{
	return in->box->blob.flags & WIRE_EGRESS;
}

/* As getdents64(2) has it; musl's headers do not. */
struct dirent64 {
	uint64_t ino;
	int64_t off;
	uint16_t len;
	uint8_t type;
	char name[];
};

typedef int init_stage_fn(struct init *in);

/* Knowing who we are. */
init_stage_fn stage_user;     /* our user and group, the parent's death */
init_stage_fn stage_identity; /* session keyring */
init_stage_fn stage_proc;     /* an empty root with a procfs */
init_stage_fn stage_enter;    /* make it the root */

/* Knowing the box. */
init_stage_fn stage_name;      /* host name */
init_stage_fn stage_net;       /* lo and the gate's sockets, if there is one */
init_stage_fn stage_root;      /* the root's own files */
init_stage_fn stage_mounts;    /* everything that is mounted into it */
init_stage_fn stage_terminals; /* a place for them, in a box that stays */
init_stage_fn stage_leave;     /* the old root is gone */
init_stage_fn stage_freeze;    /* no more changes to the root */
init_stage_fn stage_groups;    /* our cgroups, the top of what we see */
init_stage_fn stage_tty;       /* a terminal, if asked for */
init_stage_fn stage_limits;    /* resource limits of each process */
init_stage_fn stage_landlock;
init_stage_fn stage_caps; /* no capability, for ever */
init_stage_fn stage_seccomp;

/* Knowing the work. */
init_stage_fn stage_gate;    /* the gate has its sockets, we do not */
init_stage_fn stage_files;   /* files that the request brought */
init_stage_fn stage_workdir; /* where the program starts */

enum stage_table {
	STAGES_OWN,
	STAGES_ROOT,
	STAGES_BOX,
	STAGES_WALL,
	STAGES_WORK,
};

/* Runs one of the tables. */
int stages_run(struct init *in, enum stage_table table);

/*
 * Lays down the records of a blob. In the root, which is ours (`in_root`),
 * or in places that may hold anything. records.c
 */
int records_lay(struct init *in, const struct wire_blob *blob,
		struct wire_records records, bool in_root);

/*
 * stage-root.c: the old root is gone, if it was still there. Before anything
 * follows a link, since any ".." may lead to it.
 */
int root_let_go(struct init *in);

/*
 * stage-proc.c: makes all of /.proc go that is not held or stood in for; and
 * mounts a file on an entry of it, through no link.
 */
int proc_hide(struct init *in);
int proc_cover(struct init *in, const char *with, const char *path);

/* Files of /proc that the spec brings and stage_mounts() puts there. */
extern const char *const proc_instead[];

/*
 * stage-net.c: what the box's programs have done since it is there: addresses
 * that have no route, connections that somebody listened for.
 */
void net_count(struct wire_outcome *ret);

/* witness.c: refuses one socket(2), as the filter would; whether it did. */
bool witness_refuse(int fd);

/* Runs all steps and talks to the keeper about them; does not return. */
void steps_run(struct init *in) __attribute__((noreturn));

/*
 * What a child of an init that stays tells it over a pipe which a successful
 * exec closes: nothing at all, if it has become its only program.
 */
enum report_kind {
	REPORT_FAILED, /* nothing was started: err or exec_errno */
	REPORT_BEGUN,  /* it will run several steps */
	REPORT_ENDED,  /* it has */
};

struct report {
	uint32_t kind;
	int32_t exec_errno;
	uint32_t step;
	int32_t wait_status;
	struct err err;
};

/* In such a child: becomes the program, or the parent of its steps. */
void steps_become(struct init *in, int report) __attribute__((noreturn));

/* session.c: serves the keeper for as long as the box stays. */
void session_serve(struct init *in) __attribute__((noreturn));

/*
 * users.c: in a child of such an init: becomes the user that the work names,
 * and gives up every right. In init: signals a process of any user of the box.
 */
int users_become(struct init *in);
void users_kill(pid_t pid, int signal);

/*
 * tree.c: where there is no group of a program: kills what descends from its
 * first process or is in its session, as far as that can be known.
 */
void session_kill_tree(pid_t first);

/* main.c: a sealed blob; NULL with in->err. `fd` is closed. */
const void *init_map(struct init *in, int fd, uint64_t *ret_size);

/* files.c: one request for files (box/files.h), as the box's user. */
void files_serve(int sock, const struct changes *changes)
	__attribute__((noreturn));

/*
 * stage-layers.c: a root of layers, made beside the one that was there first;
 * a place in it to mount on, as O_PATH, in an image never through a link; it
 * becomes the root, and the other one goes.
 */
int layers_make(struct init *in);
int layers_place(struct init *in, const char *path, bool is_file);
int layers_enter(struct init *in);

/*
 * A volume or a file of the list of commands; and when all are there, the rest
 * of the root: nothing of it can be executed.
 */
int layers_part(struct init *in, const struct wire_mount *m);
int layers_no_exec(struct init *in);

/* Where it is until then, and what takes the changes to it. */
#define LAYERS_ROOT  "/.root"
#define LAYERS_UPPER "/.upper"

/* layers-host.c: a layer for changes over mount `i`, at `target` in there. */
int layers_over_host(struct init *in, uint32_t i, const char *target);

/* Files of an image box that are not the image's: below /dev. */
bool layers_is_dev(const char *path);

/* stage-limits.c: those that the spec asks for, in a program to be. */
int limits_lower(const struct init *in);

/* links.c: none can be made in binds that say so; one domain more. */
int links_deny(struct init *in);

/* place.c: what is on this file system is the box's own. */
int place_own(struct init *in, int fd);
/*
 * Makes a directory or an empty file, and what is missing above it. Follows
 * links: not while the old root is there, unless `path` is known to have none.
 */
int place_make(const struct init *in, const char *path, bool is_file);
/* As O_PATH, and made if it is missing; through links the box has. */
int place_open(struct init *in, const char *path, bool is_file);
