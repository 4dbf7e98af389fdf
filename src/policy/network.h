/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a policy says about one connection. Pure: names are not resolved. */

#include "policy/policy.h"

struct network_judgement {
	enum decision decision;
	const struct policy_host *rule; /* NULL: none names it */
	char why[256];
};

/* `endpoint` is HOST:PORT; one that cannot be read is denied. */
void network_judge(const struct policy *p, const char *endpoint,
		   struct network_judgement *ret);
