/* SPDX-License-Identifier: Apache-2.0 */

/*
 * cordon policy test: the tests of a policy, in real boxes, as TAP.
 *
 * A program or code is run under the policy: `allowed` is an exit with
 * status 0, `denied` is a refusal by a rule or a program that failed, `ask`
 * is a run that would wait for a person. A command line is judged, and run if
 * it is allowed. A connection is judged.
 *
 * With `layer`, denied means that this layer denied something in this run and
 * said so: the decision itself (policy), refused sockets (net), what the box
 * must not have made in a mount (mount), a limit as the kernel counted it. A
 * program may meet that and still end well.
 */

#include "desk/desk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cordon/cordon.h>

#include "base/visible.h"
#include "box/guard.h"
#include "box/result.h"
#include "desk/policy-cmd.h"
#include "policy/commands.h"
#include "policy/network.h"

/* Bits of struct outcome; the words are those of keys.c. */
enum {
	BY_POLICY = 1 << 0,
	BY_NET = 1 << 1,
	BY_MOUNT = 1 << 2,
	BY_CPU = 1 << 3,
	BY_MEMORY = 1 << 4,
	BY_PIDS = 1 << 5,
	BY_DISK = 1 << 6,
	BY_OUTPUT = 1 << 7,
};

static const char *const layers[] = { "policy", "net",  "mount", "cpu",
				      "memory", "pids", "disk",  "output" };

struct outcome {
	unsigned int denied_by;
	enum decision decision;
	char cause[24];
	int exit_code;
	char why[600];
};

static void put_text(char *ret, size_t size, const char *text)
{
	struct buf shown;

	(void)snprintf(ret, size, "%s", text ? text : "");
	for (char *p = ret; *p; p++)
		if (*p == '\n' || *p == '\t')
			*p = ' ';
	buf_init(&shown, 16 * size);
	visible_text(&shown, ret, strlen(ret), size);
	(void)snprintf(ret, size, "%s",
		       shown.data && !shown.error ? shown.data : "");
	buf_done(&shown);
}

/* The decision alone: what would be asked cannot be run here. */
static bool is_asking(const struct cordon_spec *s, struct outcome *ret)
{
	struct guard g;
	struct err err = { 0 };
	bool asks;

	asks = guard_judge(s, &g, &err) == 0 &&
	       g.verdict.decision == DECISION_ASK;
	if (asks) {
		ret->decision = DECISION_ASK;
		ret->cause[0] = '\0';
		put_text(ret->why, sizeof(ret->why), g.verdict.why);
	}
	guard_done(&g);
	return asks;
}

/* Which layers denied something, by what was observed. */
static unsigned int denied_by(const struct cordon_result *r)
{
	static const unsigned int by_cause[CAUSES] = {
		[CAUSE_DENIED] = BY_POLICY, [CAUSE_CPU] = BY_CPU,
		[CAUSE_MEMORY] = BY_MEMORY, [CAUSE_PIDS] = BY_PIDS,
		[CAUSE_DISK] = BY_DISK,     [CAUSE_OUTPUT] = BY_OUTPUT,
	};
	unsigned int bits = r->violations.n ? BY_MOUNT : 0;

	bits |= r->n_refused ? BY_NET : 0;
	for (size_t i = 0; i < r->n_runs; i++) {
		const struct wire_outcome *o = &r->runs[i].outcome;

		bits |= by_cause[r->runs[i].verdict.cause];
		bits |= o->net_refused ? BY_NET : 0;
		bits |= o->oom_kills ? BY_MEMORY : 0;
		bits |= o->pids_refused ? BY_PIDS : 0;
	}
	return bits;
}

/* "net, memory": for the message. */
static const char *layer_list(unsigned int bits, char *ret, size_t size)
{
	size_t at = 0;

	(void)snprintf(ret, size, "no layer");
	for (size_t i = 0; i < ARRAY_SIZE(layers); i++)
		if (bits & 1U << i)
			at += (size_t)snprintf(ret + at, size - at, "%s%s",
					       at ? ", " : "", layers[i]);
	return ret;
}

static bool is_by_layer(const struct policy_test *t, const struct outcome *o)
{
	for (size_t i = 0; i < ARRAY_SIZE(layers); i++)
		if (strcmp(layers[i], t->layer) == 0)
			return o->denied_by & 1U << i;
	return false;
}

static void run_spec(struct cordon *c, struct cordon_spec *s,
		     struct outcome *ret)
{
	struct cordon_error err = { 0 };
	struct cordon_result *r = NULL;

	if (is_asking(s, ret))
		return;
	if (cordon_run(c, s, &r, &err) < 0) {
		ret->decision = DECISION_DENY;
		put_text(ret->cause, sizeof(ret->cause), "error");
		put_text(ret->why, sizeof(ret->why), err.text);
		return;
	}
	ret->denied_by = denied_by(r);
	put_text(ret->cause, sizeof(ret->cause), cordon_result_cause(r));
	ret->exit_code = cordon_result_exit_code(r);
	put_text(ret->why, sizeof(ret->why), cordon_result_message(r));
	if (!ret->why[0])
		put_text(ret->why, sizeof(ret->why),
			 cordon_result_stderr(r, NULL));
	ret->decision = strcmp(ret->cause, "exited") == 0 && ret->exit_code == 0
				? DECISION_ALLOW
				: DECISION_DENY;
	cordon_result_free(r);
}

static int fill(struct cordon_spec *s, const struct policy_test *t,
		struct cordon_error *err)
{
	if (t->run.n > 0)
		return cordon_spec_command(s, t->run.v, err);
	if (t->code_lang)
		return cordon_spec_code(s, t->code_lang, t->code_text,
					strlen(t->code_text), NULL, err);
	return cordon_spec_set(s, "command", t->command, err);
}

static void run_box(struct cordon *c, const char *file,
		    const struct policy_test *t, struct outcome *ret)
{
	struct cordon_spec *s = cordon_spec_new();
	struct cordon_error err = { 0 };

	ret->decision = DECISION_DENY;
	put_text(ret->cause, sizeof(ret->cause), "error");
	if (s)
		s->witness = t->layer != NULL;
	if (!s || cordon_spec_set(s, "policy", file, &err) < 0 ||
	    fill(s, t, &err) < 0)
		put_text(ret->why, sizeof(ret->why), err.text);
	else
		run_spec(c, s, ret);
	cordon_spec_free(s);
}

static void run_command(struct cordon *c, const struct compiled *comp,
			const struct policy_test *t, struct outcome *ret)
{
	static struct shell_line line;
	struct judgement j;

	commands_judge_text(&comp->policy->commands, t->command,
			    strlen(t->command), &line, &j);
	ret->decision = j.decision;
	put_text(ret->why, sizeof(ret->why), j.why);
	put_text(ret->cause, sizeof(ret->cause),
		 j.decision == DECISION_DENY ? "denied" : "");
	ret->denied_by = j.decision == DECISION_DENY ? BY_POLICY : 0;
	if (j.decision == DECISION_ALLOW)
		run_box(c, comp->file, t, ret);
}

static bool is_as_expected(const struct policy_test *t, const struct outcome *o)
{
	/* A failure of our own is never what was expected. */
	if (strcmp(o->cause, "error") == 0 || strcmp(o->cause, "setup") == 0 ||
	    strcmp(o->cause, "lost") == 0)
		return t->expect == EXPECT_CAUSE &&
		       strcmp(t->cause, o->cause) == 0;
	switch (t->expect) {
	case EXPECT_ALLOWED:
		return o->decision == DECISION_ALLOW;
	case EXPECT_ASK:
		return o->decision == DECISION_ASK;
	case EXPECT_DENIED:
		return t->layer ? is_by_layer(t, o)
				: o->decision == DECISION_DENY;
	case EXPECT_CAUSE:
		return strcmp(t->cause, o->cause) == 0;
	}
	return false;
}

static const char *expected(const struct policy_test *t)
{
	static const char *const words[] = { [EXPECT_ALLOWED] = "allowed",
					     [EXPECT_ASK] = "ask",
					     [EXPECT_DENIED] = "denied" };

	return t->expect == EXPECT_CAUSE ? t->cause : words[t->expect];
}

static bool run_test(struct cordon *c, const struct compiled *comp, size_t i)
{
	const struct policy_test *t = &comp->policy->tests[i];
	struct outcome o = { 0 };
	struct network_judgement j;
	char name[300];
	char by[80];
	bool ok;

	if (t->connect) {
		network_judge(comp->policy, t->connect, &j);
		o.decision = j.decision;
		o.denied_by = j.decision == DECISION_DENY ? BY_NET : 0;
		put_text(o.cause, sizeof(o.cause),
			 j.decision == DECISION_DENY ? "denied" : "");
		put_text(o.why, sizeof(o.why), j.why);
	} else if (t->command) {
		run_command(c, comp, t, &o);
	} else {
		run_box(c, comp->file, t, &o);
	}
	ok = is_as_expected(t, &o);
	put_text(name, sizeof(name), t->name);
	for (char *p = name; *p; p++)
		if (*p == '#')
			*p = ' ';
	printf("%sok %zu - %s\n", ok ? "" : "not ", i + 1, name);
	if (!ok)
		printf("# %s:%u: expected %s%s%s, and it was %s%s%s, denied by "
		       "%s\n# %s\n",
		       t->at.file, t->at.line, expected(t),
		       t->layer ? " by layer " : "", t->layer ? t->layer : "",
		       decision_name(o.decision), o.cause[0] ? ", cause " : "",
		       o.cause, layer_list(o.denied_by, by, sizeof(by)), o.why);
	(void)fflush(stdout);
	return ok;
}

int policy_cmd_test(const struct compiled *comp)
{
	struct cordon_error err = { 0 };
	struct cordon *c;
	size_t bad = 0;

	if (comp->policy->n_tests == 0) {
		say("%s has no 'tests'; nothing was shown", comp->file);
		return EXIT_OURS;
	}
	c = cordon_open(&err);
	if (!c) {
		say("%s", err.text);
		return EXIT_OURS;
	}
	printf("1..%zu\n", comp->policy->n_tests);
	for (size_t i = 0; i < comp->policy->n_tests; i++)
		bad += !run_test(c, comp, i);
	cordon_close(c);
	return bad ? 1 : 0;
}
