/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Policies that a request may name, by a label of Docker's or the setting
 * `policy`: the presets, and the files NAME.yaml of one directory. Each is put
 * under the daemon's own (policy/narrow.h); one that is looser in anything is
 * known, and refused to whoever asks for it.
 *
 * They are read with the daemon's policy, and go with it.
 */

#include "base/err.h"
#include "policy/policy.h"

#define NAMED_MAX  64
#define NAMED_NAME 65

struct named_policy {
	char name[NAMED_NAME];
	char *file;            /* as it was found; NULL: a preset */
	struct policy *policy; /* NULL: it cannot be had, */
	struct err why;        /* and why */
};

struct named {
	struct named_policy v[NAMED_MAX];
	size_t n;
	/* Those that can be had, NULL-ended. */
	const struct policy *all[NAMED_MAX + 1];
	char *dir;      /* without links; NULL: there is none */
	char *dir_name; /* as it was given, absolute */
};

/*
 * `dir` may be NULL. What cannot be read there is an error, and nothing is left
 * to release; what is looser than `outer` is none.
 */
int named_load(struct named *ret, const char *dir, const struct policy *outer,
	       struct err *err);
void named_done(struct named *n);

/*
 * -ENOENT and which there are, or -EPERM and why it is not given; *ret is the
 * one of that name.
 */
int named_find(const struct named *n, const char *name,
	       const struct named_policy **ret, struct err *err);
