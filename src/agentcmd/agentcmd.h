/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * cordon-agent: `cordon agent` becomes this program. main.c has the table of
 * its commands, args.c that of their flags.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/say.h"

enum {
	EXIT_FAILED = 1, /* the run failed; a check or an import: see there */
	EXIT_WAITS = 3,  /* a person has to answer first */
	EXIT_OURS = 125, /* a bad call or file, or Cordon's own failure */
	EXIT_STOPPED = 130, /* interrupted */
};

/* Below the state directory. */
#define CHECKPOINTS_DIR "agents"

struct call {
	char **operands;
	size_t n;
	bool json, stats, no_input;
	const char *resume, *record, *replay, *model, *policy, *output;
	const char *trace, *log, *metrics, *secrets;
	const char *reason;
	const char *was_policy; /* of the run that is resumed */
};

struct command {
	const char *name;
	const char *usage; /* after the name */
	const char *help;
	int bit;
	size_t least, most; /* operands */
	/* An exit status, or -errno and *err. */
	int (*run)(struct call *c, struct err *err);
};

enum {
	CMD_RUN = 1,
	CMD_CHECK = 2,
	CMD_DUMP = 4,
	CMD_IMPORT = 8,
	CMD_LS = 16,
	CMD_SHOW = 32,
	CMD_SCHEMA = 64,
	CMD_CANCEL = 128,
};

/* args.c: flags and operands, as the command takes them. */
int args_read(const struct command *cmd, char **args, struct call *ret,
	      struct err *err);
/* The flags of a command, a line each. */
void args_help(const struct command *cmd);

/* run.c */
int run_run(struct call *c, struct err *err);

/* files.c: commands about configurations */
int run_check(struct call *c, struct err *err);
int run_dump(struct call *c, struct err *err);
int run_import(struct call *c, struct err *err);
int run_schema(struct call *c, struct err *err);

/* kept.c: commands about checkpoints */
int run_ls(struct call *c, struct err *err);
int run_show(struct call *c, struct err *err);

/* cancel.c */
int run_cancel(struct call *c, struct err *err);
