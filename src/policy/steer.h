/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Variables that make a program do something else than its arguments say:
 * load a library or a module, run a file first, read options, take another
 * program. Where a policy lists commands, such a variable would go around the
 * list; only the policy itself may set one (sandbox.env, env_from_host).
 */

#include <stdbool.h>
#include <stddef.h>

/* Ended by NULL; "LD_*" is every name that begins so. */
extern const char *const steering[];

/* Whether a variable, given as NAME or NAME=VALUE, is one of them. */
bool steers(const char *variable);
