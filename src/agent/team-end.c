/* SPDX-License-Identifier: Apache-2.0 */

/* Why a run ends, and what becomes of the turn that is open then. */

#include <string.h>

#include "agent/team-parts.h"
#include "base/clock.h"
#include "base/util.h"

void turn_take(struct team *t)
{
	(void)json_array_extend(t->run.messages, t->run.open);
	(void)json_array_extend(t->run.fresh, t->run.open);
	(void)json_array_clear(t->run.open);
}

void turn_close(struct team *t)
{
	turn_take(t);
	json_decref(take_ptr(t->before));
	(void)json_array_clear(t->run.fresh);
}

void turn_undo(struct team *t)
{
	struct err err = { 0 };

	if (t->before && t->kind->load)
		(void)t->kind->load(t->own, t->before, &err);
	turn_close(t);
}

static struct stop_facts facts(const struct team *t, bool is_task)
{
	const struct account *a = &t->run.used;

	return (struct stop_facts){ .fresh = t->run.fresh,
				    .is_task = is_task,
				    .started = t->run.started,
				    .now = clock_us(),
				    .cost = a->cost,
				    .tool_calls = a->tool_calls,
				    .errors = a->errors,
				    .box_cpu_ms = a->box_cpu_ms,
				    .box_memory = a->box_memory };
}

/* Whether the run is over by its conditions; then it has been ended. */
bool team_is_stopped(struct team *t, bool is_task)
{
	struct stop_facts f = facts(t, is_task);
	struct fault bad = { 0 };
	char *why;

	if (!t->stop)
		return false;
	why = termination_check(t->stop, &f, &bad);
	if (bad.code)
		run_fail(t, &bad);
	else if (why)
		run_end(t, "completed", why);
	fault_done(&bad);
	return t->state == TEAM_ENDING;
}

char *team_reason(const char *what, const char *why)
{
	char *text = NULL;

	return asprintf(&text, "%s: %s", what, why ? why : "") < 0 ? NULL
								   : text;
}

static bool is_wall_passed(const struct team *t)
{
	double max = t->budget.wall_seconds;

	return max >= 0 && clock_us() >= t->run.started + (int64_t)(max * 1e6);
}

/* Whether a limit is passed; then the run has been ended. */
bool team_is_spent(struct team *t)
{
	const char *what = budget_passed(&t->budget, &t->run.used);

	if (!what && is_wall_passed(t))
		what = "wall_seconds";
	if (what)
		run_end(t, "cancelled", team_reason("Budget exceeded", what));
	return what;
}

/* The turn was cut by the run's token, or by its budget. */
bool team_cut_short(struct team *t)
{
	bool is_fired = cancel_is_fired(t->run.cancel);
	char *why;

	if (!is_fired && !budget_passed(&t->budget, &t->run.used))
		return false;
	why = team_reason("Cancelled", cancel_reason(t->run.cancel));
	turn_undo(t);
	/* A condition that time alone fulfils, then a limit, then a person. */
	if (!team_is_stopped(t, false) && !team_is_spent(t))
		run_end(t, "cancelled", take_ptr(why));
	free(why);
	return true;
}

void run_short(struct team *t)
{
	struct fault why = { 0 };

	if (t->state == TEAM_ENDING)
		return;
	fault_set(&why, FAULT_INTERNAL, "out of memory");
	turn_undo(t);
	run_fail(t, &why);
	fault_done(&why);
}
