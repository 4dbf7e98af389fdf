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
 *
 * Gates of boxes ask as well, in the midst of a connection (gate-ask.h). Their
 * questions have places of their own, so that a box that asks much keeps no
 * request from being asked about.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define MAX_QUESTIONS  64
#define QUESTIONS_PEER 8 /* of one user */

#define GATE_QUESTIONS      64
#define GATE_QUESTIONS_PEER 16 /* of one user */
#define GATE_QUESTIONS_ONE  8  /* of one gate */

#define ALL_QUESTIONS (MAX_QUESTIONS + GATE_QUESTIONS)

struct daemon;
struct errand;
struct gate_child;
struct prep;

/* What a gate asks, and where the desk's line will be. */
struct question_gate {
	struct gate_child *gate; /* NULL: it is gone */
	uint32_t number;         /* the gate's own */
	int said;                /* a memfd that the desk writes to */
	char target[272];        /* HOST:PORT */
};

struct question {
	struct errand *errand; /* that waits; NULL: nobody does any more */
	bool is_gates;         /* no errand's, but: */
	struct question_gate of;
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

/*
 * A desk for what `q` says, which the place must have but for its process: it
 * reads fds[0] and writes to fds[1]. `asker` is whose pid people are shown, the
 * uid is q->uid. -errno: there is none.
 */
int question_start(struct daemon *d, struct question *q, pid_t asker,
		   const int *fds);
/* When nobody has answered by then, and the desk has not ended, it is ended. */
int64_t question_deadline(const struct daemon *d);
/* A free place, if fewer than `most` of the user's are taken; NULL: none. */
struct question *question_place(struct daemon *d, uid_t uid, bool is_gates,
				int most);
/* Ends it: it is withdrawn, and that is why. */
void question_end(struct question *q, const char *why);

/* In the parent. Takes the descriptors; the preparer is answered in any case.
 */
void question_open(struct daemon *d, struct errand *e, const struct ask *ask,
		   int *fds, int n);
/* Its desk may have ended. */
void question_look(struct daemon *d, struct question *q);
/* Nobody waits for it any more. */
void question_drop(struct question *q);
/* All of requests: withdrawn, and that is why. */
void questions_end(struct daemon *d, const char *why);
void questions_late(struct daemon *d, int64_t now);
int64_t questions_next(const struct daemon *d);
/* Until none is left; at most a moment. */
void questions_kill(struct daemon *d);
