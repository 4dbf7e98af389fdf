/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One configuration at work: a loop, a crew, its checkpoints. Both the command
 * and the library run tasks through it.
 *
 * session_run() and session_resume() return when the task has ended. All that
 * happens meanwhile goes to `event`, in order; the end is the TaskResult.
 */

#include <jansson.h>

#include "agentcmd/crew.h"

struct session;
struct checkpoints;

struct session_options {
	/* The parts of it that a session does not fill in itself. */
	struct crew_options crew;
	/* How a user is asked for a line; it gets the session's loop. */
	bool has_prompt;
	/* Below the state directory; NULL: nothing is kept. */
	const char *checkpoints;
	const char *task; /* for `cordon agent ls` */
};

int session_open(const struct session_options *o, struct session **ret,
		 struct err *err);
void session_close(struct session *s);
/* From any thread, and from a signal handler. */
void session_cancel(struct session *s);
/* The name of the policy that holds. */
const char *session_policy(const struct session *s);

/* task NULL: goes on with what there is. *ret is the caller's. */
int session_run(struct session *s, const char *task, json_t **ret,
		struct err *err);
/*
 * Goes on from a checkpoint's document, NULL: where this session is;
 * `answer` is for whoever waits for input, or NULL.
 */
int session_resume(struct session *s, const json_t *checkpoint,
		   const char *answer, json_t **ret, struct err *err);

/* {"id","agent","prompt",...} of one who waits for input; NULL: nobody does. */
const json_t *session_waits_for(const json_t *checkpoint);

/* The directory of checkpoints. */
int session_checkpoints(const char *name, struct checkpoints **ret,
			struct err *err);
/* The configuration that a checkpoint belongs to. */
int session_config(const json_t *checkpoint, struct config *ret,
		   struct err *err);
