/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One asking, while it goes on: ask.c, and ask-wait.c, which waits. */

#include <stdbool.h>
#include <stdint.h>

#include "desk/approvals.h"
#include "desk/asker.h"
#include "desk/terminal.h"

#define ASK_SOON_MS 2 /* the first pause between looks at the row */

struct asking {
	struct store store;
	struct request request;
	struct asker asker;
	struct entry entry; /* as it was last read */
	struct terminal terminal;
	char id[STORE_ID + 1];
	char content[65];
	const char *session;
	int signals;
	int watch;
	int64_t deadline; /* clock_us() */
	int pause;        /* ms */
	bool is_told;     /* that it waits */
	bool is_peer;     /* a daemon asks for somebody */
	bool is_recorded; /* on the ledger, by us */
	bool suspends;    /* nobody waits: what has no answer is left */
	uid_t peer;
	pid_t peer_pid;
};

/* The one line that the asker reads; the exit status, as of all below. */
int asking_tell(const char *id, bool allow, const char *scope,
		const char *reason, const char *by);
/* The same with an answer; for a daemon it is on the ledger first. */
int asking_conclude(struct asking *a, const struct entry *e);
int asking_deny(struct asking *a, const char *reason);
/* The asking failed; that is said to both who asks and who looks. */
int asking_fail(struct asking *a, const struct err *err);

/* standing.c: 1 and it was told, with its status; 0: nobody decided before. */
int asking_standing(struct asking *a, int *ret_status, struct err *err);

/* ask-wait.c */

/* Reads the row; 0 or -errno. */
int asking_look(struct asking *a, struct err *err);
/* Until it is decided. */
int asking_wait(struct asking *a);
