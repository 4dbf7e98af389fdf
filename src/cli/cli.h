/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The commands of `cordon`, one file each; the table is in main.c. */

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/say.h"

enum {
	EXIT_OURS = 125, /* Cordon's own failure, or a bad call */
};

struct command {
	const char *name;
	const char *usage; /* after the name */
	const char *help;
	int (*run)(int argc, char **argv);
};

/* NULL past the last. */
const struct command *command_at(int i);

/* The names of serve's flags; NULL past the last. */
const char *serve_flag_at(size_t i);

int cmd_run(int argc, char **argv);
int cmd_serve(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_completion(int argc, char **argv);
int cmd_version(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_desk(int argc, char **argv);  /* becomes cordon-desk */
int cmd_image(int argc, char **argv); /* becomes cordon-image */
int cmd_agent(int argc, char **argv); /* becomes cordon-agent */

/* What the daemon keeps (daemon.h). */
int cmd_ps(int argc, char **argv);
int cmd_exec(int argc, char **argv);
int cmd_attach(int argc, char **argv);
int cmd_logs(int argc, char **argv);
int cmd_cp(int argc, char **argv);
int cmd_life(int argc, char **argv); /* start stop kill rm ... */
int cmd_rename(int argc, char **argv);
int cmd_inspect(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_stats(int argc, char **argv);
int cmd_create(int argc, char **argv);

/* main.c: whether the command was started without standard input or output. */
bool stream_is_missing(int fd);
