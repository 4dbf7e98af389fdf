/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The end of a run, from the client's side: its result and its record.
 */

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "box/job-parts.h"
#include "box/message.h"
#include "box/spec.h"
#include "box/work-bind.h"

struct run *job_add_run(struct cordon_job *j, const struct wire_outcome *o)
{
	struct cordon_result *r = j->result;
	struct run *run = &r->runs[r->n_runs];

	run->outcome = *o;
	run->verdict = verdict_of(o);
	stream_take(&run->out, &j->out_cap);
	stream_take(&run->err, &j->err_cap);
	if (j->prep.code_files[r->n_runs])
		run->code_file = strdup(j->prep.code_files[r->n_runs]);
	capture_init(&j->out_cap, j->spec->output);
	capture_init(&j->err_cap, j->spec->output);
	j->has_flooded = false;
	r->n_runs++;
	r->not_enforced |= o->not_enforced;
	return run;
}

static void append_both(struct cordon_job *j, const char *text)
{
	if (j->result->has_output)
		capture_add(&j->both_cap, text, strlen(text));
}

/* For readers that only look at text. */
void job_append_end(struct cordon_job *j, const struct run *run,
		    const char *after)
{
	const char *words = NULL;

	if (run->verdict.cause == CAUSE_TIMEOUT)
		words = "\nTimeout";
	else if (run->verdict.cause == CAUSE_CANCELLED)
		words = "\nCode execution was cancelled.";
	else if (run->verdict.cause == CAUSE_DENIED)
		words = run->outcome.err.text;
	if (!words)
		return;
	append_both(j, words);
	append_both(j, after);
}

/*
 * Nobody is told of an end that is not on the record: then the result says
 * that, and how it ended only in words.
 */
static void record_end(struct cordon_job *j)
{
	struct cordon_result *r = j->result;
	struct run *run = &r->runs[r->n_runs - 1];
	struct err err = { 0 };
	char *text;

	if (recorder_end(&j->recorder, r, &err) == 0)
		return;
	if (asprintf(&text, "it ended (%s), but that could not be recorded: %s",
		     cause_name(run->verdict.cause), err.text) >= 0) {
		free(r->message);
		r->message = text;
	}
	run->verdict = (struct verdict){ CAUSE_SETUP, 125, 0 };
}

/* The box ends beside us: as in keeper/run.c. A gate can wait. */
static void give_way(const struct cordon_job *j)
{
	if (j->handle->keeper == 0 && !j->egress.is_open)
		(void)sched_yield();
}

/* Nothing was started: then nothing was made for it either. */
static bool has_not_begun(const struct cordon_result *r)
{
	enum cause cause = r->runs[0].verdict.cause;

	return r->n_runs == 1 &&
	       (cause == CAUSE_SETUP || cause == CAUSE_NOT_FOUND ||
		cause == CAUSE_DENIED || cause == CAUSE_INVALID);
}

/* We ended it for want of a gate. */
static void blame_gate(const struct cordon_job *j, struct run *run)
{
	if (!j->is_gateless || run->verdict.cause != CAUSE_CANCELLED)
		return;
	run->outcome.err = *egress_missing(&j->egress);
	run->verdict = (struct verdict){ CAUSE_SETUP, 125, 0 };
}

/* It ended otherwise, but there was none. */
static void warn_of_gate(const struct cordon_job *j, const struct run *run)
{
	const struct err *missing = egress_missing(&j->egress);
	char text[sizeof(missing->text) + 32];

	if (!missing || run->verdict.cause == CAUSE_SETUP)
		return;
	(void)snprintf(text, sizeof(text), "there was no gate: %s",
		       missing->text);
	(void)strv_add(&j->result->warnings, text);
}

void job_close_run(struct cordon_job *j, const struct wire_outcome *o, int work)
{
	struct cordon_result *r = j->result;
	struct run *run;

	job_drain(j);
	fd_close(&j->out);
	fd_close(&j->err);
	fd_close(&j->in);
	run = job_add_run(j, o);
	blame_gate(j, run);
	if (run->verdict.cause == CAUSE_CANCELLED)
		r->cancel_reason = atomic_exchange(&j->cancel_reason, NULL);
	r->message = message_of(run, j->spec, r->cancel_reason);
	job_append_end(j, run, "");
	stream_take(&r->output, &j->both_cap);
	if (work >= 0 && !(j->spec->no_files && j->spec->n_copies == 0))
		workspace_collect(work, j->spec, j->guard.copies, &j->prep,
				  &r->files, &r->warnings);
	if (!o->err.code)
		work_dir_clean(j->spec, &j->prep, &r->warnings);
	if (has_not_begun(r))
		guard_unmake(&j->guard);
	message_truncation(r, &r->warnings);
	egress_end(&j->egress, o);
	warn_of_gate(j, run);
	guard_sweep(&j->guard, &r->violations);
	give_way(j);
	record_end(j);
	give_way(j);
	j->is_over = true;
}

/* A refusal is a result: the run has ended before it began. */
void job_refuse(struct cordon_job *j, const struct err *why)
{
	static const struct verdict verdicts[] = {
		[REFUSED_DENIED] = { CAUSE_DENIED, 126, 0 },
		[REFUSED_NOT_FOUND] = { CAUSE_NOT_FOUND, 127, 0 },
		[REFUSED_INVALID] = { CAUSE_INVALID, 125, 0 },
	};
	struct cordon_result *r = j->result;
	size_t block = j->spec->n_blocks > 1 ? j->prep.block : 0;

	guard_unmake(&j->guard);
	r->runs[0].verdict = verdicts[j->prep.refused];
	if (j->prep.exit_code)
		r->runs[0].verdict.exit_code = j->prep.exit_code;
	r->n_runs = 1;
	if (!block)
		r->message = strdup(why->text);
	else if (asprintf(&r->message, "block %zu: %s", block, why->text) < 0)
		r->message = NULL;
	append_both(j, why->text);
	stream_take(&r->output, &j->both_cap);
	record_end(j);
	j->is_over = true;
	j->has_ended = true;
}
