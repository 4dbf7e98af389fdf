/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A standing answer to a request: a deny of either kind, else an allow for
 * ever, else one of the session. Rules that cannot be read may have a deny
 * among them, so without them nothing is allowed.
 */

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "desk/ask.h"
#include "desk/desk.h"

/* As if somebody had just given it. The use counts before it is told. */
static int conclude(struct asking *a, const struct rule *rule, enum scope scope,
		    struct err *err)
{
	struct entry e = { .state = rule_is_deny(rule) ? ENTRY_DENIED
						       : ENTRY_ALLOWED,
			   .scope = scope,
			   .reason = rule->reason,
			   .by = rule->by };
	int r = uses_add(&a->store, rule->id, err);

	if (r < 0)
		return asking_fail(a, err);
	if (rule_is_deny(rule) && !*rule->reason)
		e.reason = (char *)"denied before";
	(void)snprintf(e.id, sizeof(e.id), "%s", rule->id);
	(void)strcpy(e.content, a->content);
	return asking_conclude(a, &e);
}

static int choose(struct asking *a, const struct rules lists[2],
		  int *ret_status, struct err *err)
{
	static const enum scope scopes[] = { SCOPE_ALWAYS, SCOPE_SESSION };
	struct request_frames frames;
	const struct rule_subject s = approvals_subject(&a->request, a->content,
							store_now(), &frames);

	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < ARRAY_SIZE(scopes); i++) {
			const struct rule *r = rules_find(&lists[i], &s,
							  pass == 0);

			if (!r)
				continue;
			*ret_status = conclude(a, r, scopes[i], err);
			return 1;
		}
	return 0;
}

int asking_standing(struct asking *a, int *ret_status, struct err *err)
{
	struct rules lists[2] = { 0 };
	int r = rules_load(&a->store.state, &lists[0], err);

	if (r < 0) {
		say("%s; nothing is allowed by it", err->text);
		return 0;
	}
	r = grants_load(&a->store, a->session, &lists[1], err);
	if (r == 0)
		r = choose(a, lists, ret_status, err);
	rules_done(&lists[0]);
	rules_done(&lists[1]);
	return r;
}
