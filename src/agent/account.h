/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a run has used, counted from its messages and events, and how much it
 * may use. A budget is a hard limit: whoever finds it passed cancels the turn.
 */

#include <jansson.h>
#include <stdint.h>

#include "base/err.h"

struct account {
	int64_t prompt, completion; /* tokens */
	int64_t tool_calls, errors;
	int64_t box_cpu_ms, box_memory; /* bytes; the largest */
	double cost;
};

void account_count(struct account *a, const json_t *event);
json_t *account_json(const struct account *a);
/* What is not there or no number is 0. */
void account_load(struct account *a, const json_t *o);

struct budget {
	int64_t tokens, tool_calls; /* < 0: as many as it likes */
	double cost, wall_seconds;
};

/* {"tokens","cost","wall_seconds","tool_calls"}; NULL: none. */
int budget_parse(struct budget *b, const json_t *o, struct err *err);
/* The name of what is used up, or NULL; time is not looked at. */
const char *budget_passed(const struct budget *b, const struct account *a);
