/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From what the manager knows of an end to the document of a run, the same as
 * `cordon run --json` writes.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "box/capture.h"
#include "box/message.h"
#include "box/result.h"
#include "box/spec.h"
#include "face/own/internal.h"

static uint64_t number(const char *spec, const char *name, uint64_t other)
{
	double n = own_doc_number(spec, name, -1);

	return n < 0 ? other : (uint64_t)n;
}

/* Its settings are under the names that a request has for them. */
static void take_wall(struct cordon_spec *s, const char *json)
{
	static const char *const names[] = { "read_only", "tmpfs", "writable" };
	char *network = own_doc_member(json, "network");

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char *value = own_doc_member(json, names[i]);
		char *text = NULL;

		if (value &&
		    asprintf(&text, "{\"%s\":%s}", names[i], value) >= 0)
			(void)cordon_spec_set_json(s, text, strlen(text), NULL);
		free(text);
		free(value);
	}
	s->has_network = network && strcmp(network, "\"allow\"") == 0;
	free(network);
}

/* The limits that were in force, as the preparer told. */
static void take_limits(struct cordon_spec *s, const struct run_facts *f)
{
	const char *json = f->spec;

	s->timeout_us = f->timeout_us ? f->timeout_us
				      : number(json, "timeout_ms",
					       s->timeout_us / 1000) *
						1000;
	s->cpu_time_us = number(json, "cpu_time_ms", 0) * 1000;
	s->memory = number(json, "memory", s->memory);
	s->pids = number(json, "pids", s->pids);
	s->output = number(json, "output", s->output);
	s->hard_output = number(json, "hard_output", 0);
	s->disk = number(json, "disk", s->disk);
	s->nofile = number(json, "files", s->nofile);
	s->fsize = number(json, "file_size", s->fsize);
	s->cpu_period_us = 100000;
	s->cpu_quota_us = (uint64_t)(own_doc_number(json, "cpus", 0.5) *
				     100000);
	s->total_us = number(json, "total_timeout_ms", 0) * 1000;
	s->grace_us = number(json, "kill_grace_ms", 0) * 1000;
	s->uid = (uint32_t)number(json, "uid", s->uid);
	s->gid = (uint32_t)number(json, "gid", s->gid);
	take_wall(s, json);
	own_doc_list(json, "command", &s->command);
}

/* What kept it from starting is an end, too. */
static struct verdict verdict_of_refusal(const struct err *why)
{
	switch (why->code) {
	case MGR_DENIED:
	case MGR_ASKED:
	case MGR_READ_ONLY:
		return (struct verdict){ CAUSE_DENIED, 126, 0 };
	case MGR_NO_PROGRAM:
		return (struct verdict){ CAUSE_NOT_FOUND, 127, 0 };
	case MGR_NOT_EXECUTABLE:
		return (struct verdict){ CAUSE_NOT_FOUND, 126, 0 };
	case MGR_LOST:
		return (struct verdict){ CAUSE_LOST, 125, 0 };
	default:
		return (struct verdict){ CAUSE_SETUP, 125, 0 };
	}
}

static void judge(struct cordon_result *r, const struct cordon_spec *s,
		  const struct run_facts *f)
{
	struct run *run = &r->runs[0];

	if (f->outcome)
		run->outcome = *f->outcome;
	if (f->cancel_reason) {
		run->outcome.end = WIRE_BY_CANCEL;
		r->cancel_reason = strdup(f->cancel_reason);
	}
	if (f->refusal && !f->cancel_reason) {
		run->verdict = verdict_of_refusal(f->refusal);
		r->message = strdup(f->refusal->text);
		return;
	}
	run->verdict = verdict_of(&run->outcome);
	r->message = message_of(run, s, f->cancel_reason);
	r->not_enforced = run->outcome.not_enforced;
}

/* As AutoGen's executors word it (code-executor specification). */
static void add_to_both(const struct cordon_result *r, struct capture *both)
{
	const char *text = "";

	if (r->runs[0].verdict.cause == CAUSE_TIMEOUT)
		text = "\nTimeout";
	else if (r->runs[0].verdict.cause == CAUSE_CANCELLED)
		text = "\nCode execution was cancelled.";
	else if (r->runs[0].verdict.cause == CAUSE_DENIED && r->message)
		text = r->message;
	capture_add(both, text, strlen(text));
}

char *own_result(const struct run_facts *f)
{
	struct cordon_result *r = calloc(1, sizeof(*r));
	struct cordon_spec *s = cordon_spec_new();
	char *text = NULL;

	if (r && s && (r->runs = calloc(1, sizeof(*r->runs)))) {
		r->n_runs = 1;
		(void)snprintf(r->id, sizeof(r->id), "%s", f->id);
		take_limits(s, f);
		result_take_limits(r, s);
		judge(r, s, f);
		own_doc_list(f->warnings, NULL, &r->warnings);
		result_add_denials(r, f->net);
		r->has_output = f->is_code;
		if (f->is_code)
			add_to_both(r, f->both);
		stream_take(&r->runs[0].out, f->out);
		stream_take(&r->runs[0].err, f->err);
		stream_take(&r->output, f->both);
		message_truncation(r, &r->warnings);
		text = cordon_result_json(r);
	}
	cordon_result_free(r);
	cordon_spec_free(s);
	return text;
}
