/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The message filters of a crew's policy, and the record of what they did. */

#include <jansson.h>

#include "agent/agent.h"
#include "base/strv.h"
#include "runtime/filter-policy.h"

/* Whose run it is, for the records. */
struct crew_run {
	const char *(*of)(void *arg);
	void *arg;
};

struct crew_screen {
	struct policy *policy;
	struct ledger *ledger;
	struct strv people;
	struct screen *screen; /* NULL: the policy has no filters */
};

/* `team`: the component; agents that are people are told apart. */
int crew_screen_open(struct crew_screen *s, const char *policy,
		     const json_t *team, const struct crew_run *run,
		     struct runtime *rt, struct err *err);
/* After the runtime has gone. */
void crew_screen_close(struct crew_screen *s);
