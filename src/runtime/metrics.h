/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Figures of agents, as text that Prometheus and its relatives read.
 *
 * They are made from what is told anyway: the events of a runtime
 * (runtime_on_event()), the messages and events of a team, and spans that
 * ended (trace.h), from which come the times. Nothing is counted twice, and
 * nobody who does the work needs to know. No figure has a text of an agent
 * in it; the number of series is bounded.
 */

#include <jansson.h>

#include "base/buf.h"
#include "runtime/runtime.h"

struct metrics;

struct metrics *metrics_new(void); /* NULL: no memory */
void metrics_free(struct metrics *m);

/* Each takes what its source gives; what it does not know it leaves. */
void metrics_event(struct metrics *m, const json_t *event);
void metrics_chat(struct metrics *m, const json_t *chat);
void metrics_span(struct metrics *m, const json_t *request);

/* All of it, and the runtime's own counters; rt may be NULL. */
int metrics_text(struct metrics *m, const struct runtime *rt, struct buf *out);
