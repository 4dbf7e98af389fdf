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
 * Set-up is the table of stages in stages.c, run in order. A stage returns 0,
 * or -errno with init->err filled in; then the whole set-up ends with that
 * one message and the program never starts.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "box/wire.h"

#define INIT_SOCK 3 /* the socket to the keeper */

struct init {
	struct err err;
	struct wire_conf conf;
	const struct wire_spec *spec;
	int mounts[WIRE_MAX_MOUNTS]; /* detached, in the spec's order */
	int stdio[3];
	int root; /* the root to be, then "/" */
	int tty;  /* our side of the terminal */
	uint32_t not_enforced;
	uint32_t landlock_abi;
};

typedef int init_stage_fn(struct init *in);

/* Before the spec is known; a parked box waits after these. */
init_stage_fn stage_proc; /* a procfs of our own, covered */

/* With the spec. */
init_stage_fn stage_user;     /* our user and group, the parent's death */
init_stage_fn stage_identity; /* host name, cgroup view, session keyring */
init_stage_fn stage_root;     /* the root's own files */
init_stage_fn stage_mounts;   /* everything that is mounted into it */
init_stage_fn stage_files;    /* files that the request brought */
init_stage_fn stage_enter;    /* make it the root, forget the old one */
init_stage_fn stage_tty;      /* a terminal, if asked for */
init_stage_fn stage_limits;   /* resource limits of each process */
init_stage_fn stage_landlock;
init_stage_fn stage_caps; /* no capability, for ever */
init_stage_fn stage_seccomp;

/* Runs the early stages, or the rest. */
int stages_run_early(struct init *in);
int stages_run(struct init *in);

/* Lays down records of the spec; `late` says which ones. records.c */
int records_lay(struct init *in, bool late);

/* Runs all steps and talks to the keeper about them; does not return. */
void steps_run(struct init *in) __attribute__((noreturn));

/* Makes the place for a mount, below in->root; 0 or -errno. place.c */
int place_make(struct init *in, const char *path, bool is_file);
/* Opens a directory below in->root, making what is missing; fd or -errno. */
int place_open_dir(struct init *in, const char *path, size_t len);
