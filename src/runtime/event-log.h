/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The event log: one JSON line for each thing that happened, with its time.
 *
 *	{"time":"2026-01-02T03:04:05.678Z","event":"send","from":...}
 *
 * Stages of messages, drops, failures and filters come from a runtime
 * (runtime_on_event()); calls of models, tools and code from a team's
 * messages and events. Without `has_contents` what anybody said is left out:
 * there are names, ids, counts, sizes and outcomes.
 */

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"

struct event_log;

/* Appended to, mode 0600. "-" is standard error. */
int event_log_open(const char *path, bool has_contents, struct event_log **ret,
		   struct err *err);
void event_log_close(struct event_log *l);

void event_log_runtime(struct event_log *l, const json_t *event);
void event_log_chat(struct event_log *l, const json_t *chat);
