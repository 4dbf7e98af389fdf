/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * cordon-image: `cordon image` becomes this program. It opens what it is told
 * to read or write, shuts itself in (image_confine()), and only then reads what
 * others wrote.
 */

#include "base/err.h"
#include "base/say.h"
#include "base/util.h"
#include "image/image.h"

enum {
	EXIT_NO = 1,     /* no such image, more than one, or it is in use */
	EXIT_OURS = 125, /* a bad call, or Cordon's own failure */
};

struct call {
	struct image_store *store;
	char **operands;
	size_t n;
	bool all;
	bool force;
	bool json;
	bool names;
	bool quiet;
	bool is_landlock_optional;
	const char *input;
	const char *output;
	const char *name;
	const char *message;
	struct strv changes;
	struct image_limits limits;
};

struct command {
	const char *name;
	const char *usage;
	const char *help;
	int bit;
	size_t least; /* operands */
	size_t most;
	int (*run)(struct call *c, struct err *err);
};

/* args.c: flags and operands, as the command takes them. */
int args_read(const struct command *cmd, char **args, struct call *ret,
	      struct err *err);
/* The flags of a command, a line each. */
void args_help(const struct command *cmd);

enum {
	CMD_LOAD = 1,
	CMD_IMPORT = 2,
	CMD_SAVE = 4,
	CMD_LS = 8,
	CMD_INSPECT = 16,
	CMD_RM = 32,
	CMD_PRUNE = 64,
	CMD_TAG = 128,
	CMD_PULL = 256,
	CMD_ALL = 511,
};

/* show.c */
int run_ls(struct call *c, struct err *err);
int run_inspect(struct call *c, struct err *err);

/* take.c */
int run_load(struct call *c, struct err *err);
int run_import(struct call *c, struct err *err);
int run_save(struct call *c, struct err *err);

/* main.c: before anything foreign is read; `input` as in image_confine(). */
int shut_in(struct call *c, int input, struct err *err);

/* "12.3 MB", as Docker writes it. */
void format_size(uint64_t bytes, char *ret, size_t size);
