/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A question, as the preparer puts it; see asking.c and question.h. */

#include <stdbool.h>

#include "base/sha256.h"
#include "box/guard.h"
#include "serve/request.h"

struct asking {
	int sock;         /* to the parent */
	bool is_short;    /* the client does not wait long */
	bool is_answered; /* with yes; what follows is that answer */
	struct approve_answer answer;
	unsigned char sum[SHA256_SIZE]; /* of the question */
};

/*
 * Where the guard's decision is `ask`: 0 if a person said yes, to exactly this.
 * Called again with another guard of the same request, after a yes, it asks
 * nobody, but compares.
 */
int asking_judge(struct asking *a, struct guard *g, const struct request *q,
		 struct err *err);
