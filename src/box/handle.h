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

/*
 * Who carries runs out: a keeper of our own (job.c), or another daemon, whose
 * client has these functions and begins its own structures with ours
 * (src/client).
 */
struct job_ops {
	int (*fd)(const struct cordon_job *j);
	int (*step)(struct cordon_job *j);
	long (*write)(struct cordon_job *j, const void *data, size_t len);
	void (*cancel)(struct cordon_job *j, const char *reason);
	struct cordon_result *(*end)(struct cordon_job *j);
	/* NULL: it cannot be done there. */
	int (*set_network)(struct cordon_job *j, const char *policy,
			   struct err *err);
};

struct handle_ops {
	struct cordon_job *(*start)(struct cordon *c,
				    const struct cordon_spec *s,
				    const struct cordon_events *events,
				    void *arg, struct err *err);
	void (*close)(struct cordon *c);
};

/* How every job begins. */
struct job_head {
	const struct job_ops *ops;
};

struct cordon {
	const struct handle_ops *ops; /* NULL: a keeper's */
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
struct keeper_wish {
	const char *mode; /* "reused", "session" */
	int sock;         /* its end; stays the caller's */
	int lock;         /* held by it as long as it lives; NO_FD: none */
};
int keeper_start(const struct keeper_wish *wish, pid_t *ret, struct err *err);

/* A handle on a keeper that the caller steps itself; `sock` is taken over. */
struct cordon *handle_on(int sock, struct err *err);

/* Reads what the keeper has said and hands it out; never blocks. */
void handle_pump(struct cordon *c);

/* job.c: a run by a keeper. */
struct cordon_job *job_start(struct cordon *c, const struct cordon_spec *s,
			     const struct cordon_events *events, void *arg,
			     struct err *err);

/* Steps it to its end. */
void job_wait(struct cordon_job *j);
/* The same, and its result; `j` NULL: -err->code. */
int job_finish(struct cordon_job *j, struct cordon_result **ret,
	       struct err *err);
/* Why a job ends that is freed while it runs. */
#define JOB_LET_GO "the caller let go of it"

/* A message for this job; fds are taken over. NULL msg: lost. */
void job_take(struct cordon_job *j, const struct wire_msg *msg, int *fds,
	      int n_fds);
bool job_is(const struct cordon_job *j, uint32_t number);
struct cordon_job *job_next(const struct cordon_job *j);

/* What is run: the caller's spec, tightened by its policy. */
const struct cordon_spec *job_spec(const struct cordon_job *j);
/* How it stands: the runs of blocks that are over. */
const struct cordon_result *job_result(const struct cordon_job *j);
/*
 * Lets a stream (1, 2) wait in its pipe, so that the program waits too when
 * that is full; at the end of a block it is read all the same.
 */
void job_hold(struct cordon_job *j, int stream, bool is_held);
