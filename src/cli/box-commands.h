/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The commands that speak to the daemon, with their flags; for completions. */

#include "cli/opts.h"

extern const struct opts ps_opts, inspect_opts, top_opts, stats_opts;
extern const struct opts exec_opts, attach_opts, log_opts, cp_opts, rename_opts;

/* Those of life.c; false past the last. */
bool life_opts(size_t i, const char **ret_name, struct opts *ret);

/* All; false past the last. */
bool box_command(size_t i, const char **ret_name, struct opts *ret);

/*
 * exec.c: whether a name that no box has is the id of a program in one; then
 * *err is empty again.
 */
bool may_be_exec(const char *name, struct err *err);
