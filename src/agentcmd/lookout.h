/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What watches a crew where it is asked for: traces, an event log and figures
 * (docs/agents-telemetry.md).
 */

#include <jansson.h>

#include "runtime/runtime.h"

struct lookout;

struct lookout_options {
	struct runtime *runtime;
	const char *trace; /* files; NULL: not wanted */
	const char *log;
	const char *metrics; /* written at the end */
};

int lookout_new(const struct lookout_options *o, struct lookout **ret,
		struct err *err);
/* While the runtime is there; writes the figures. */
void lookout_end(struct lookout *l);
/* When the runtime and all agents have gone. */
void lookout_free(struct lookout *l);

/* A message or an event of the team. */
void lookout_chat(struct lookout *l, const json_t *chat);
