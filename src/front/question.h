/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One request to the preparer, from when it is asked until its answer; and
 * meanwhile, maybe, a person is asked (serve/question.h). Then it can take
 * minutes: whoever waits for it can leave, which withdraws the question.
 */

#include "front/front.h"

struct asking {
	struct asking *next; /* in m->questions, while a person is asked */
	struct box *box;     /* a reference */
	struct exec *exec;   /* a reference, or NULL */
	prepared_fn *done;
	exec_prepared_fn *exec_done;
	void *arg;
	bool is_open; /* a question */
	bool is_cancelled;
};

/* A person is asked; of orders.h. */
void asking_asked(void *arg);
/* The answer is there, whatever it is. */
void asking_over(struct asking *a);
void asking_free(struct asking *a);
