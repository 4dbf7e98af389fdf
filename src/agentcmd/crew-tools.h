/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The tools of one agent of a crew. */

#include "agentcmd/crew.h"

struct crew_tools {
	const struct crew_options *o;
	struct crew *crew; /* the caller's, before the tools are made */
	const char *policy;
	char *agent;
	struct toolset *set; /* NULL: none, or the agent has it */
};

/*
 * `o` and `policy` live longer; lists of components may be NULL. One that has
 * neither tools nor toolsets has no set.
 */
int crew_tools_make(struct crew_tools *t, const struct crew_options *o,
		    const char *policy, const char *agent, const json_t *tools,
		    const json_t *toolsets, struct err *err);
void crew_tools_done(struct crew_tools *t);
