/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The parts of a job, for job.c, job-streams.c and job-end.c.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "box/capture.h"
#include "box/egress.h"
#include "box/guard.h"
#include "box/handle.h"
#include "box/prepare.h"
#include "box/recorder.h"
#include "box/result.h"
#include "box/wire.h"

#define JOB_CHUNK 65536

/* What has an event, in `epoll`. */
enum { TO_SOCK, TO_EVENT, TO_OUT, TO_ERR, TO_IN, TO_GATE };

struct cordon_job {
	struct job_head head;
	struct cordon *handle;
	struct cordon_job *next;
	uint32_t number;
	const struct cordon_spec *spec; /* as the guard has tightened it */
	struct guard guard;
	struct prepared prep;
	struct recorder recorder;
	struct egress egress;
	struct policy *network; /* that took the place of the guard's */
	struct cordon_events events;
	void *arg;
	int epoll;
	int event; /* woken for what another job read */
	int out;
	int err;
	int in;       /* write end of standard input */
	size_t in_at; /* how much of the given input is written */
	struct capture out_cap;
	struct capture err_cap;
	struct capture both_cap;
	struct cordon_result *result;
	bool is_over;   /* the result is complete */
	bool has_ended; /* and nothing of the box is left */
	bool has_flooded;
	bool is_gateless; /* that is why we cancelled it */
	atomic_flag cancel_asked;
	_Atomic(char *) cancel_reason;
	char chunk[JOB_CHUNK]; /* what was read last; costs nothing before */
};

/* job-streams.c: the client's ends in `j`, the box's in `box`, in their order.
 */
int job_open_streams(struct cordon_job *j, int box[3], struct err *err);
/* A terminal in their place. */
void job_take_tty(struct cordon_job *j, int *fd);
/* Reads once; false when there is nothing now, or nothing any more. */
bool job_read(struct cordon_job *j, int stream);
/* Everything that is there. */
void job_drain(struct cordon_job *j);
/* How much of it was taken, 0: none now, or -errno. Nothing is its end. */
long job_write(struct cordon_job *j, const void *data, size_t len);
/* What the request has for it, as far as there is room. */
void job_feed(struct cordon_job *j);

/* job-end.c: a block is over, or all: into the result. */
struct run *job_add_run(struct cordon_job *j, const struct wire_outcome *o);
/* A few words in the joined output, for readers that only look at text. */
void job_append_end(struct cordon_job *j, const struct run *run,
		    const char *after);
/* The run is over: the result is complete, and on the record. */
void job_close_run(struct cordon_job *j, const struct wire_outcome *o,
		   int work);
/* A refusal is a result: the run has ended before it began. */
void job_refuse(struct cordon_job *j, const struct err *why);
