/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Destinations that a person is asked about: each host and port once, however
 * many connections want it. An answer holds as long as the gate lives, also
 * one that comes when nobody waits any more.
 */

#include "gate/wire.h"

struct questions;

enum answer {
	ANSWER_NONE, /* not yet */
	ANSWER_YES,
	ANSWER_NO,
};

struct questions *questions_new(void);
void questions_free(struct questions *q);

/*
 * The number of the question about host and port; *ret_new: nobody was asked
 * yet. -ENOSPC: the table is full.
 */
int questions_take(struct questions *q, const char *host, uint16_t port,
		   bool *ret_new);
enum answer questions_state(const struct questions *q, uint32_t number);
/* False: there is no such question, or it was answered before. */
bool questions_answer(struct questions *q, uint32_t number, bool is_allowed);
/* Nobody answers any more: all that have no answer have a no. */
void questions_end(struct questions *q);
