/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A short list of system calls for a process of ours that needs few, without a
 * library: everything else fails with EPERM.
 */

#include <stddef.h>

#include "base/err.h"

#define ALLOW_MAX 64

/*
 * `call` only where its argument number `arg` is one of `values`, as 32 bits;
 * else EPERM. Before allow_calls(), which takes the right to do this away.
 */
int allow_only(int call, int arg, const unsigned int *values, size_t n,
	       struct err *err);

/* Needs no_new_privs; there is no way back. At most ALLOW_MAX calls. */
int allow_calls(const int *calls, size_t n, struct err *err);
