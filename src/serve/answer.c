/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/answer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/num.h"
#include "base/util.h"
#include "box/recorder.h"
#include "serve/daemon.h"
#include "serve/sweep.h"

#define MAX_ANSWER (16U << 20)

static void put_warnings(struct json *j, const struct answer *a)
{
	json_open(j, "warnings", '[');
	for (size_t i = 0; i < a->warnings->n; i++)
		json_str(j, NULL, a->warnings->v[i]);
	for (size_t i = 0; i < a->network->told.warnings.n; i++)
		json_str(j, NULL, a->network->told.warnings.v[i]);
	for (size_t i = 0; i < a->prepared->warnings.n; i++)
		json_str(j, NULL, a->prepared->warnings.v[i]);
	json_close(j, ']');
}

/* The number that was asked for, in the unit of the policy's. */
static uint64_t asked(const struct cordon_spec *s, enum policy_number n)
{
	switch (n) {
	case POLICY_TIMEOUT:
		return s->timeout_us;
	case POLICY_CPU_TIME:
		return s->cpu_time_us;
	case POLICY_MEMORY:
		return s->memory;
	case POLICY_CPUS:
		return (s->cpu_quota_us * 1000 + s->cpu_period_us - 1) /
		       s->cpu_period_us;
	case POLICY_PIDS:
		return s->pids;
	case POLICY_OUTPUT:
		return s->output;
	case POLICY_DISK:
		return s->disk;
	case POLICY_FILES:
		return s->nofile;
	case POLICY_NUMBERS:
		break;
	}
	return 0;
}

/* A number, or a text that is none ("0-7", "unlimited"). */
static void put_amount(struct json *j, const char *name, const char *text)
{
	uint64_t n;

	if (num_parse(text, INT64_MAX, &n) == 0)
		json_int(j, name, (int64_t)n);
	else
		json_str(j, name, text);
}

static void put_clamped(struct json *j, const struct guard *g)
{
	json_open(j, "clamped", '[');
	for (int i = 0; i < POLICY_NUMBERS; i++) {
		enum policy_number n = (enum policy_number)i;

		if (!(g->verdict.clamped & 1U << i))
			continue;
		json_open(j, NULL, '{');
		json_str(j, "name", policy_number_name(n));
		json_int(j, "asked", (int64_t)asked(g->given, n));
		json_int(j, "given", (int64_t)g->verdict.numbers[i]);
		json_close(j, '}');
	}
	for (size_t i = 0; i + 2 < g->lowered.n; i += 3) {
		json_open(j, NULL, '{');
		json_str(j, "name", g->lowered.v[i]);
		put_amount(j, "asked", g->lowered.v[i + 1]);
		put_amount(j, "given", g->lowered.v[i + 2]);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void put_decision(struct json *j, const struct answer *a,
			 const struct record_decision *d)
{
	json_str(j, "decision", d->decision);
	if (d->rule)
		json_str(j, "rule", d->rule);
	if (d->reason)
		json_str(j, "reason", d->reason);
	if (a->guard->was_asked)
		json_bool(j, "asked", true);
}

/* A document of its own, on the next line. */
static void add_line(struct buf *out, const char *text)
{
	struct json j = { .out = out };

	(void)buf_add(out, "\n", 1);
	json_raw(&j, NULL, text);
}

static char *make_start(const struct answer *a, const struct cordon_spec *s,
			const struct record_decision *d, struct err *err)
{
	const struct record_of of = { .run = a->request->run,
				      .box = a->request->box[0]
						     ? a->request->box
						     : NULL,
				      .face = a->request->face,
				      .peer = a->peer };

	return recorder_start_members(s, &of, d, err);
}

/* What a later exec can find there. */
static void put_programs(struct json *j, const struct cordon_spec *s)
{
	if (!s->has_programs)
		return;
	json_open(j, "programs", '[');
	for (size_t i = 0; i < s->programs.n; i++)
		json_str(j, NULL, s->programs.v[i]);
	json_close(j, ']');
}

int answer_make(const struct answer *a, struct buf *out, struct err *err)
{
	const struct cordon_spec *s = a->guard->spec ? a->guard->spec
						     : a->guard->given;
	_cleanup_free_ char *spec = cordon_spec_json(s);
	_cleanup_free_ char *start = NULL;
	struct json j = { .out = out };
	struct record_decision d;

	buf_init(out, MAX_ANSWER);
	if (!spec)
		return err_set(err, ENOMEM, "out of memory");
	record_decision_of(&d, a->guard, a->refused, a->why);
	start = make_start(a, s, &d, err);
	if (!start)
		return -err->code;
	json_open(&j, NULL, '{');
	json_str(&j, "image", spec_image_name(s));
	put_warnings(&j, a);
	put_clamped(&j, a->guard);
	put_decision(&j, a, &d);
	json_bool(&j, "keep_output",
		  policy_list_has(&a->guard->policy->keep_text, "output"));
	put_programs(&j, s);
	network_put(&j, a->network);
	rules_docker(&j, a->guard->policy);
	sweep_put(&j, a->guard, &(struct sweep_by){ a->key, a->peer, a->who });
	if (a->refused)
		json_str(&j, "message", a->why->text);
	json_close(&j, '}');
	add_line(out, spec);
	add_line(out, start);
	return out->error ? err_set(err, -out->error, "the answer is too long")
			  : 0;
}

int answer_sweep(const struct strv *violations, struct buf *out,
		 struct err *err)
{
	struct json j = { .out = out };

	buf_init(out, MAX_ANSWER);
	json_open(&j, NULL, '{');
	json_open(&j, "violations", '[');
	for (size_t i = 0; i < violations->n; i++)
		json_str(&j, NULL, violations->v[i]);
	json_close(&j, ']');
	json_close(&j, '}');
	return out->error ? err_set(err, -out->error, "the answer is too long")
			  : 0;
}
