/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is to be run, held against a policy's list of commands.
 *
 * A command line is taken apart and judged; what comes out is what init will
 * execute, program by program: no shell sees the text. A command given as
 * words is judged as one simple command, code as a call of its interpreter.
 * Under a list only its programs exist in the box (programs.h).
 */

#include "base/err.h"
#include "box/spec.h"
#include "policy/commands.h"

/*
 * Judges and, unless it is denied, fills in spec->line and spec->programs.
 * `given` may be NULL: then a command line is only taken apart. 0 with the
 * judgement, or -errno for what is wrong on our side.
 */
int line_judge(struct cordon_spec *s, const struct command_rules *given,
	       struct judgement *ret, struct err *err);
