/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the commands of `cordon policy` share. */

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "policy/policy.h"

/* A policy that was read, checked and compiled. */
struct compiled {
	char *file; /* as given or found */
	struct buf flat;
	struct policy *policy;
};

/*
 * `file` may be NULL: then the one that applies here, and an error if there
 * is none. Says what is wrong and returns -errno.
 */
int compiled_open(const char *file, struct compiled *ret);
void compiled_done(struct compiled *c);

int policy_cmd_show(const struct compiled *c, bool as_json); /* -show.c */
void policy_cmd_never(bool as_json);
int policy_cmd_explain(int argc, char **argv); /* policy-explain.c */
int policy_cmd_test(const struct compiled *c); /* policy-test.c */
int policy_cmd_schema(void);                   /* policy-schema.c */
int policy_cmd_keys(void);
