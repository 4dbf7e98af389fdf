/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Questions to a person, where the policy says `ask` of a request to the
 * daemon (docs/daemon.md).
 *
 * The preparer, which is the user who asks by then, describes what it judged in
 * a sealed document and hands it to the parent with the end of a pipe, then
 * waits. The parent reads neither: it starts `cordon-desk approvals ask` with
 * both, as the daemon's user, who alone has the store, shut in; and says on its
 * command line who asks, which the kernel told it. What the desk writes goes to
 * the preparer directly. How the desk ended, the parent says.
 *
 *	preparer --- struct ask, document, pipe ---> parent
 *	desk ------- one line -------------------> preparer
 *	parent ----- struct ask_end -------------> preparer
 *
 * While a question is open its preparer counts as one that waits, not as one
 * that prepares, and the front is told (ORDER_ASKED), so that it holds up
 * nobody. A question ends with its preparer, with its client (ORDER_CANCEL),
 * with the policy that it was asked by, and with the daemon: it is withdrawn
 * then. The time that a Docker client waits ends the waiting alone: the
 * question stays, and the same request finds its answer.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define MAX_QUESTIONS  64
#define QUESTIONS_PEER 8 /* of one user */

struct daemon;
struct errand;
struct prep;

struct question {
	struct errand *errand; /* that waits; NULL: nobody does any more */
	uid_t uid;
	pid_t pid; /* of the desk; 0: this place is free */
	int pidfd;
	int64_t deadline; /* then it is told to end, or ended */
	int told;         /* the last signal it was sent */
	const char *why;  /* it was ended, NULL: it was not */
};

struct ask {
	uint32_t type;     /* ORDER_ASKED */
	uint32_t is_short; /* its client does not wait long */
};

struct ask_end {
	int32_t status; /* as of waitpid(2) */
	struct err
		err; /* code 0: the desk was there, and what it said counts */
};

/* In the parent. Takes the descriptors; the preparer is answered in any case.
 */
void question_open(struct daemon *d, struct errand *e, const struct ask *ask,
		   int *fds, int n);
/* Its desk may have ended. */
void question_look(struct daemon *d, struct question *q);
/* Nobody waits for it any more. */
void question_drop(struct question *q);
/* All that somebody waits for: withdrawn, and that is why. */
void questions_end(struct daemon *d, const char *why);
void questions_late(struct daemon *d, int64_t now);
int64_t questions_next(const struct daemon *d);
/* Until none is left; at most a moment. */
void questions_kill(struct daemon *d);
