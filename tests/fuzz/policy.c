/* SPDX-License-Identifier: Apache-2.0 */

/* The flat form of a policy: any bytes, and what is accepted can be used. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "policy/decide.h"
#include "policy/network.h"
#include "policy/policy.h"

/* Walks everything that a reader of a policy would. */
static void use(const struct policy *p)
{
	struct policy_request req = { .is_code = true };
	struct policy_verdict v;
	struct network_judgement j;
	size_t total = 0;

	for (size_t i = 0; i < p->mount_roots.n; i++)
		MUST(p->mount_roots.v[i][0] == '/');
	for (size_t i = 0; i < p->n_mounts; i++)
		MUST(p->mounts[i].from[0] == '/' && p->mounts[i].to);
	for (size_t i = 0; i < p->commands.n_allow; i++)
		total += strlen(p->commands.allow[i].name);
	for (size_t i = 0; i < p->commands.n_deny; i++)
		total += strlen(p->commands.deny[i].name);
	for (size_t i = 0; i < p->n_tools; i++)
		total += strlen(p->tools[i].name);
	for (size_t i = 0; i < p->n_tests; i++)
		total += strlen(p->tests[i].name);
	MUST(total <= FLAT_MAX);
	policy_decide(p, &req, &v);
	MUST(v.decision != DECISION_DENY || v.why[0]);
	network_judge(p, "169.254.169.254:80", &j);
	MUST(j.decision == DECISION_DENY);
	network_judge(p, "a.example.org:443", &j);
	MUST(j.decision == DECISION_DENY || j.rule);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = { 0 };
	struct policy *p = policy_parse((const char *)data, size, &err);

	if (!p) {
		MUST(err.code > 0 && err.text[0]);
		return 0;
	}
	use(p);
	policy_free(p);
	return 0;
}
