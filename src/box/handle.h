/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A handle: the client's end of one keeper, and the jobs that wait on it.
 *
 * Messages for all jobs come over one socket; whichever job is stepped reads
 * them and hands each to the job it is for, waking that one by its eventfd.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <cordon/cordon.h>

#include "base/err.h"
#include "box/wire.h"

struct cordon {
	int sock;
	pid_t keeper;            /* 0: stepped by the caller, */
	void (*turn)(void *arg); /* and by this where it helps */
	void *turn_arg;
	uint32_t next_job;
	bool is_lost; /* the keeper is gone */
	struct cordon_job *jobs;
};

/*
 * Another program of Cordon's: where CORDON_LIBEXEC says, else beside the
 * running one (so that a build tree works as it is), else where it was
 * installed.
 */
int program_find(const char *name, char *ret, size_t size, struct err *err);

/*
 * Starts a keeper on one end of a socket pair, which stays the caller's to
 * close; the other end is its client's. It ends with that, or with us. Mode
 * "reused": runs follow each other; "session": boxes that stay (session.h).
 */
int keeper_start(const char *mode, int sock, pid_t *ret, struct err *err);

/* A handle on a keeper that the caller steps itself; `sock` is taken over. */
struct cordon *handle_on(int sock, struct err *err);

/* Reads what the keeper has said and hands it out; never blocks. */
void handle_pump(struct cordon *c);

/* job.c: a message for this job; fds are taken over. NULL msg: lost. */
void job_take(struct cordon_job *j, const struct wire_msg *msg, int *fds,
	      int n_fds);
bool job_is(const struct cordon_job *j, uint32_t number);
struct cordon_job *job_next(const struct cordon_job *j);

/* What is run: the caller's spec, tightened by its policy. */
const struct cordon_spec *job_spec(const struct cordon_job *j);
