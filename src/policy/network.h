/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a policy says about one connection. Pure: names are not resolved. */

#include "policy/policy.h"

struct network_judgement {
	enum decision decision;
	const struct policy_host *rule; /* NULL: none names it */
	bool is_never; /* or cannot be read: no policy could allow it */
	char why[256];
};

/*
 * `endpoint` is HOST:PORT, where the host may also be a pattern or a block: all
 * of it must be named by one rule. One that cannot be read is denied. */
void network_judge(const struct policy *p, const char *endpoint,
		   struct network_judgement *ret);

/*
 * The next rule of network.allow behind `after` (NULL: the first) that names
 * all of it, NULL: none. Requests that are read may use each of them.
 */
const struct policy_host *network_next(const struct policy *p,
				       const char *endpoint,
				       const struct policy_host *after);

/* Whether everything that `host` (or pattern, or block) means is in `rule`. */
bool network_covers(const char *rule, const char *host);

/* Whether it is one that no rule opens: a metadata service. */
bool network_is_never(const char *host);

/* Whether the policy itself sends this secret to HOST[:PORT]. */
bool network_gives(const struct policy *p, const char *secret,
		   const char *endpoint);
