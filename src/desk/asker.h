/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Who asks, who answers, and the session that an answer may be bound to. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct asker {
	char user[64];
	char program[64]; /* of the process that asks, our parent */
	pid_t pid;
	/*
	 * CORDON_SESSION, else the leader of the terminal's session by boot,
	 * pid and start; empty where there is neither.
	 */
	char session[320];
};

void asker_init(struct asker *a);

/*
 * The same for somebody who asked a daemon, our parent: this uid, by a
 * connection of this process. The session is the daemon's life, and this
 * user's alone; what the asker's surroundings say does not count.
 */
void asker_init_peer(struct asker *a, uid_t uid, pid_t pid);

/* Since boot, in ticks; with the pid, this process and no other. -1: none. */
int64_t process_start(pid_t pid);

/* The person at this terminal: "alice on pts/3". */
void answerer(char *ret, size_t size);
