/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which policy holds for a crew.
 *
 * Whoever runs an agent decides: by --policy, else by the policy that applies
 * where they are, as for cordon run. An agent's file may name one too, but it
 * may come from anywhere, so that counts only where nobody has said anything;
 * where somebody has, and it is another one, the person is asked to choose.
 * Even then it lets nothing through the wall of the box but what lies beside
 * the agent's file: who wants more of it says so by --policy. A run that is
 * resumed goes on under the policy that it began with.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentcmd/crew.h"
#include "base/util.h"
#include "box/policy-load.h"
#include "policy/decide.h"
#include "policy/preset.h"

/* A name that means the same from another directory. */
static char *lasting(const char *name)
{
	char *real = preset_find(name) ? NULL : realpath(name, NULL);

	return real ? real : strdup(name);
}

static int differ(const char *whose, const char *theirs, const char *here,
		  struct err *err)
{
	return err_set(err, EPERM,
		       "%s names the policy '%.150s', and here '%.150s' "
		       "applies; choose one of them by --policy",
		       whose, theirs, here);
}

/* What of a host's directory is more than what came with the agent's file. */
static bool is_elsewhere(const char *path, const char *beside)
{
	_cleanup_free_ char *real = realpath(path, NULL);

	return !beside || !path_is_below(real ? real : path, beside);
}

/* What it lets through the wall without a question; NULL: nothing. */
static const char *reach(const struct policy *p, const char *beside,
			 struct origin *ret)
{
	for (size_t i = 0; i < p->n_mounts; i++) {
		*ret = p->mounts[i].at;
		if (is_elsewhere(p->mounts[i].from, beside))
			return "a directory that is not beside it";
	}
	for (size_t i = 0; i < p->mount_roots.n; i++) {
		*ret = p->mount_roots.origins[i];
		if (is_elsewhere(p->mount_roots.v[i], beside))
			return "a directory that is not beside it";
	}
	for (size_t i = 0; i < p->n_tools; i++) {
		*ret = p->tools[i].at;
		if (p->tools[i].never_asks)
			return "calls of tools that nobody is asked about";
	}
	if (p->n_allow_hosts > 0) {
		*ret = p->allow_hosts[0].at;
		return "the network";
	}
	*ret = p->env_from_host.at;
	return p->env_from_host.n > 0 ? "variables of this machine" : NULL;
}

/* What came with the agent's file, and nobody here has said. */
static int check_brought(const struct crew_options *o, const char *name,
			 struct err *err)
{
	_cleanup_free_ char *beside = realpath(o->config->dir, NULL);
	struct policy *p = NULL;
	struct origin at = { 0 };
	const char *what;
	int e = policy_load(name, &p, err);

	what = e == 0 ? reach(p, beside, &at) : NULL;
	if (what)
		e = err_set(err, EPERM,
			    "the agent's file brings the policy '%.150s', "
			    "which gives %s (line %u); read it, and say "
			    "--policy '%.150s' if you want that",
			    name, what, at.line, name);
	policy_free(p);
	return e;
}

int crew_choose_policy(const struct crew_options *o, const json_t *team,
		       char **ret, struct err *err)
{
	_cleanup_free_ char *own = crew_policy(o->config, team);
	_cleanup_free_ char *own_lasts = own ? lasting(own) : NULL;
	_cleanup_free_ char *found = NULL;
	_cleanup_free_ char *here = NULL;
	const char *before = o->was_policy ? o->was_policy : own_lasts;

	if (o->policy) {
		*ret = lasting(o->policy);
		return *ret ? 0 : err_set(err, ENOMEM, "out of memory");
	}
	if (policy_find(getenv("CORDON_POLICY"), &found, err) < 0)
		return -err->code;
	here = found ? lasting(found) : NULL;
	if (here && before && strcmp(here, before) != 0)
		return differ(o->was_policy ? "the run" : "the agent's file",
			      before, here, err);
	if (own_lasts && !here && !o->was_policy &&
	    check_brought(o, own_lasts, err) < 0)
		return -err->code;
	if (!before)
		before = here ? here : "strict";
	*ret = strdup(before);
	return *ret ? 0 : err_set(err, ENOMEM, "out of memory");
}
