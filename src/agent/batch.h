/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The calls of one answer: all at once, or one after the other, each with
 * exactly one result.
 *
 * A call that a person must be asked about has an approval record instead;
 * the batch is over when nothing runs any more, and its owner then sees
 * which calls wait. No call starts while the agent is paused.
 *
 * A belt is a toolset with the batches that go on. A batch whose owner has
 * left stays there until the last of its calls has ended.
 */

#include "agent/parts.h"

struct belt {
	struct toolset *set; /* NULL: no tools */
	struct batch *batches;
};
/* Frees the toolset as well, which stops what it started. */
void belt_done(struct belt *b);
/* One that cannot be reset is stopped: the next turn starts it, or says why. */
void belt_reset(struct belt *b);

struct batch {
	struct belt *belt;
	struct batch *next;
	struct agent *agent;
	struct turn *turn;
	json_t *calls;     /* [{"id","name","arguments"}] */
	json_t *results;   /* for each call its result, or null */
	json_t *details;   /* for each what its box said, or null */
	json_t *approvals; /* for each its record, or null */
	bool is_serial, must_ask;
	char context[65]; /* the hash of what led to the calls; "": unknown */
	/* What agents among the tools use is added here; or NULL. */
	struct model_usage *used;
	/* What a person said to the approval of this id; or NULL. */
	const char *answer_to;
	json_t *answer;
	void (*done)(void *arg, struct batch *b); /* from the loop */
	void *arg;

	struct slot *slots;
	size_t n, at, running;
	struct task step;
};

/*
 * NULL: no memory, or more than BATCH_MAX calls. The caller sets the rest of
 * the upper half, and results that are there already, then starts it.
 */
#define BATCH_MAX 128
struct batch *batch_new(struct belt *belt, struct agent *a, struct turn *t,
			json_t *calls);
/* The filters on what it would call, before anybody is told of it. */
void batch_screen(struct batch *b);
void batch_start(struct batch *b);
/* Gives call i a result without making it. */
void batch_set(struct batch *b, size_t i, bool is_error, const char *fmt, ...)
	PRINTF(4, 5);
bool batch_has(const struct batch *b, size_t i);
/* The first call that waits for a person, or n. */
size_t batch_waiting(const struct batch *b);
/* Every call that has no result gets this error. */
void batch_fill(struct batch *b, const char *text);
/* The results with what the boxes said, for an event; new, or NULL. */
json_t *batch_told(const struct batch *b);
/* The owner goes; calls that run are not waited for. */
void batch_drop(struct batch *b);
