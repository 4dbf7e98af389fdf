/* SPDX-License-Identifier: Apache-2.0 */

/* The flags of `cordon agent`, as one table. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agentcmd/agentcmd.h"
#include "base/flags.h"
#include "base/util.h"

#define AT(member) offsetof(struct call, member)

static const struct flag {
	struct flag_form form;
	int commands;
	const char *help;
	size_t at;
} flags[] = {
	{ { "replay", 0, "FILE" },
	  CMD_RUN,
	  "answers from a recording, no model",
	  AT(replay) },
	{ { "record", 0, "FILE" },
	  CMD_RUN,
	  "write down what the models answer",
	  AT(record) },
	{ { "resume", 0, "ID" },
	  CMD_RUN,
	  "go on from a checkpoint or run",
	  AT(resume) },
	{ { "model", 0, "NAME" },
	  CMD_RUN | CMD_CHECK,
	  "instead of the file's model",
	  AT(model) },
	{ { "policy", 0, "FILE" },
	  CMD_RUN | CMD_CHECK,
	  "a preset or a file, instead of the file's policy",
	  AT(policy) },
	{ { "trace", 0, "FILE" },
	  CMD_RUN,
	  "append spans, as OTLP in JSON lines",
	  AT(trace) },
	{ { "log", 0, "FILE" },
	  CMD_RUN,
	  "append what happens, as JSON lines",
	  AT(log) },
	{ { "metrics", 0, "FILE" },
	  CMD_RUN,
	  "write figures at the end, as text",
	  AT(metrics) },
	{ { "secret", 0, "NAME@HOST" },
	  CMD_RUN | CMD_CHECK,
	  "a key that the file may send there; commas between several",
	  AT(secrets) },
	{ { "no-input", 0, NULL },
	  CMD_RUN,
	  "ask nobody here: suspend instead",
	  AT(no_input) },
	{ { "stats", 0, NULL },
	  CMD_RUN | CMD_SHOW,
	  "tokens of each message",
	  AT(stats) },
	{ { "reason", 0, "TEXT" },
	  CMD_CANCEL,
	  "why; whoever looks is told",
	  AT(reason) },
	{ { "json", 0, NULL },
	  CMD_RUN | CMD_LS | CMD_SHOW | CMD_CANCEL,
	  "JSON, a line each",
	  AT(json) },
	{ { "output", 0, "FILE" },
	  CMD_IMPORT,
	  "instead of standard output",
	  AT(output) },
};

void args_help(const struct command *cmd)
{
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		const struct flag *f = &flags[i];
		char left[40];

		if (!(f->commands & cmd->bit))
			continue;
		(void)snprintf(left, sizeof(left), "--%s%s%s", f->form.name,
			       f->form.value ? " " : "",
			       f->form.value ? f->form.value : "");
		printf("  %-18s %s\n", left, f->help);
	}
}

static int set(const struct flag *f, struct call *c, const char *value,
	       struct err *err)
{
	void *at = (char *)c + f->at;

	if (!f->form.value)
		*(bool *)at = true;
	else if (*value)
		*(const char **)at = value;
	else
		return err_set(err, EINVAL, "--%s takes %s", f->form.name,
			       f->form.value);
	return 0;
}

struct reader {
	const struct command *cmd;
	struct call *call;
};

static int read_flag(void *arg, char ***at, struct err *err)
{
	const struct reader *r = arg;

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		const struct flag *f = &flags[i];
		const char *value;
		int e = f->commands & r->cmd->bit
				? flag_read(&f->form, at, &value, err)
				: 0;

		if (e != 0)
			return e < 0 ? e : set(f, r->call, value, err);
	}
	return err_set(err, EINVAL, "'%.60s' is not a flag of this command",
		       **at);
}

int args_read(const struct command *cmd, char **args, struct call *ret,
	      struct err *err)
{
	struct reader r = { cmd, ret };
	struct operands o = { 0 };
	int e;

	e = operands_read(args, cmd->least, cmd->most, &o, read_flag, &r, err);
	ret->operands = o.v;
	ret->n = o.n;
	return e;
}
