/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the two parts of narrow.h know of each other. */

#include "base/err.h"
#include "policy/policy.h"

/* -EPERM, and what is looser. */
int narrow_looser(struct err *err, const char *fmt, ...) PRINTF(2, 3);
/* The same of `what`, which has a word that the other policy lacks. */
int narrow_miss(struct err *err, const char *what, const char *word,
		const struct policy *without);

/* The file, for messages. */
const char *narrow_name(const struct policy *p);
/* Of two texts, each of which may be missing. */
bool narrow_same(const char *a, const char *b);

/* narrow-hosts.c: network, which is a matter of rules and their order */
int narrow_network(struct policy *p, const struct policy *o, struct err *err);
