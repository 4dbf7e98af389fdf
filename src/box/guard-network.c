/* SPDX-License-Identifier: Apache-2.0 */

/* Whether a box has a network, and patterns of hosts that are too wide. */

#include <stdio.h>
#include <string.h>

#include "box/egress-table.h"
#include "box/guard-parts.h"
#include "box/policy-load.h"
#include "policy/values.h"

/* What a pattern means is judged with a policy's file; here it is a flag. */
static int check_patterns(struct guard *g, const struct strv *list,
			  struct err *err)
{
	for (size_t i = 0; !g->policy && i < list->n; i++) {
		const char *at = strchr(list->v[i], '@');
		char host[256];
		uint16_t port;

		if (value_target(at ? at + 1 : list->v[i], host, &port) == 0 &&
		    policy_check_host(host, err) < 0) {
			g->refused = REFUSED_INVALID;
			return err_wrap(err, "allow-host");
		}
	}
	return 0;
}

int guard_network(struct guard *g, struct err *err)
{
	const struct cordon_spec *s = g->given;

	g->spec->has_network = egress_is_wanted(g->policy, s);
	if (s->wants_network && !g->spec->has_network) {
		(void)snprintf(g->verdict.why, sizeof(g->verdict.why),
			       "%s: there is no open network; hosts are "
			       "allowed one by one, with allow-host or a "
			       "policy's network.allow",
			       s->wants_network);
		return guard_denied(g, err, g->verdict.why);
	}
	if (check_patterns(g, &s->allow_hosts, err) < 0)
		return -err->code;
	return check_patterns(g, &s->secrets, err);
}
