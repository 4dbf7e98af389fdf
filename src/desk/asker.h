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

/* Since boot, in ticks; with the pid, this process and no other. -1: none. */
int64_t process_start(pid_t pid);

/* The person at this terminal: "alice on pts/3". */
void answerer(char *ret, size_t size);
