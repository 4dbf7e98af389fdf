/* SPDX-License-Identifier: Apache-2.0 */

/* What holds a box, and words for what is always so or never is. */

#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "box/settings-set.h"
#include "box/wire.h"

SETTER(set_policy)
{
	if (!*v)
		return err_set(err, EINVAL, "the name of a file is missing");
	return put_text(&s->policy, v, err);
}

SETTER(set_ledger)
{
	if (strcmp(v, "on") != 0 && strcmp(v, "off") != 0)
		return err_set(err, EINVAL, "'%s' is neither on nor off", v);
	s->no_ledger = strcmp(v, "off") == 0;
	return 0;
}

SETTER(set_isolation)
{
	s->stated |= SPEC_STATED_ISOLATION;
	if (strcmp(v, "native") == 0)
		return 0;
	return err_set(err, EOPNOTSUPP,
		       "isolation '%s' is not in this build; 'native' is", v);
}

SETTER(set_best_effort)
{
	static const struct {
		const char *name;
		uint32_t bits;
	} layers[] = {
		{ "cgroup",
		  1U << WIRE_L_MEMORY | 1U << WIRE_L_CPU | 1U << WIRE_L_PIDS },
		{ "memory", 1U << WIRE_L_MEMORY },
		{ "cpu", 1U << WIRE_L_CPU },
		{ "pids", 1U << WIRE_L_PIDS },
		{ "landlock", 1U << WIRE_L_LANDLOCK },
	};

	for (size_t i = 0; i < ARRAY_SIZE(layers); i++)
		if (strcmp(v, layers[i].name) == 0) {
			s->best_effort |= layers[i].bits;
			return 0;
		}
	return err_set(err, EINVAL,
		       "'%s' is not a layer that can be missing: cgroup, "
		       "memory, cpu, pids, landlock",
		       v);
}

static int later(struct err *err)
{
	return err_set(err, EOPNOTSUPP, "not in this build");
}

/* Words of others that ask for what is always so, or for what never is. */
SETTER(set_security_opt)
{
	(void)s;
	if (strcmp(v, "no-new-privileges") == 0 ||
	    strcmp(v, "no-new-privileges:true") == 0 ||
	    strcmp(v, "no-new-privileges=true") == 0)
		return 0;
	return err_set(err, EINVAL,
		       "security option '%s' is refused; no-new-privileges is "
		       "always in force",
		       v);
}

SETTER(set_remove)
{
	bool remove = false;

	(void)s;
	if (put_bool(v, &remove, err) < 0)
		return -err->code;
	return remove ? 0 : later(err);
}

SETTER(set_refused)
{
	(void)s;
	(void)v;
	return err_set(err, EPERM,
		       "refused: a box has no capabilities, devices or "
		       "namespaces of the host");
}

/* Not to be so is what is always so. */
SETTER(set_privileged)
{
	bool is_asked = false;

	if (put_bool(v, &is_asked, err) < 0)
		return -err->code;
	return is_asked ? set_refused(s, v, err) : 0;
}
