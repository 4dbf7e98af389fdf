/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A short list of system calls for a process of ours that needs few, without a
 * library: everything else fails with EPERM.
 */

#include <stddef.h>

#include "base/err.h"

/* Calls and values of arguments, all together. */
#define ALLOW_MAX 80

/* `call` only where its argument number `arg` is one of these, as 32 bits. */
struct allow_only {
	int call;
	int arg;
	const unsigned int *values;
	size_t n;
};

/* Needs no_new_privs; there is no way back. */
int allow_calls(const int *calls, size_t n, const struct allow_only *only,
		size_t n_only, struct err *err);
