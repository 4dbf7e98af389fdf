/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Functions of the program that say who is next or who can be, known by their
 * names: a configuration never holds code.
 */

#include <string.h>

#include "agent/named.h"
#include "agent/selector.h"
#include "agent/team-parts.h"
#include "base/util.h"

static struct named functions[NAMED_MAX];

int selector_register(const char *name, speaker_fn *fn, void *arg,
		      struct err *err)
{
	return named_add(functions, name, (named_fn *)fn, arg, err);
}

bool selector_has_function(const char *name)
{
	return named_find(functions, name);
}

json_t *selector_call(struct team *t, const char *function,
		      const json_t *thread, struct fault *why)
{
	const struct named *f = named_find(functions, function);
	json_t *names = NULL;
	size_t at;
	json_t *one;

	if (!f)
		fault_set(why, FAULT_NOT_FOUND, "no function '%s'", function);
	else
		names = ((speaker_fn *)f->fn)(f->arg, thread, why);
	json_array_foreach(names, at, one)
	{
		const char *name = json_string_value(one);

		if (why->code || (name && team_find(t, name)))
			continue;
		fault_set(why, FAULT_NOT_FOUND,
			  "'%s' names '%s', who is no participant", function,
			  name ? name : "");
	}
	if (!why->code && json_array_size(names) > 0)
		return names;
	json_decref(names);
	return NULL;
}
