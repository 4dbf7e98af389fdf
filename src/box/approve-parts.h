/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the two ways to ask (approve.h) share: the process that is asked. */

#include <sys/types.h>

#include "box/approve.h"

#define APPROVE_MAX_REQUEST (2U << 20)
#define APPROVE_MAX_ANSWER  32768

struct desk_process {
	pid_t pid; /* 0: none */
	int pidfd;
};

/*
 * Starts the desk with these as standard input and output, which stay the
 * caller's. After an error desk_reap() ends what may have been started.
 */
int desk_spawn(const struct approve_request *req, int in, int out,
	       struct desk_process *ret, struct err *err);

/* Ends it by `sig` if it has not ended (0: it will); its status, or -1. */
int desk_reap(struct desk_process *d, int sig);

/* A denial of ours. */
void approve_refuse(struct approve_answer *ret, const char *why);
