/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a box has used of each rule, against the rule's quotas. Rules keep what
 * was used when the table is replaced by one that names the same host. Pure
 * but for the clock that is handed in.
 */

#include "gate/table.h"
#include "gate/wire.h"

struct usage;

struct usage *usage_new(void);
void usage_free(struct usage *u);

/* A new connection of `rule`: GATE_OK and it counts, or why not. */
enum gate_reason usage_open(struct usage *u, const struct gate_table *t,
			    int rule, int64_t now_us);
void usage_close(struct usage *u, int rule);
/* How many bytes more the rule allows. */
uint64_t usage_left(const struct usage *u, const struct gate_table *t,
		    int rule);
/* So many went through; false: the quota is used up. */
bool usage_add(struct usage *u, const struct gate_table *t, int rule,
	       uint64_t n);

/* Another table: open ones are counted anew with usage_move(). */
void usage_replace(struct usage *u, const struct gate_table *old,
		   const struct gate_table *new_table);
void usage_move(struct usage *u, int rule);
