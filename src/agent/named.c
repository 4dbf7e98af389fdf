/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/named.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

const struct named *named_find(const struct named *table, const char *name)
{
	for (int i = 0; i < NAMED_MAX; i++)
		if (table[i].fn && strcmp(table[i].name, name) == 0)
			return &table[i];
	return NULL;
}

int named_add(struct named *table, const char *name, named_fn *fn, void *arg,
	      struct err *err)
{
	struct named *at = (struct named *)named_find(table, name);

	for (int i = 0; !at && i < NAMED_MAX; i++)
		if (!table[i].fn)
			at = &table[i];
	if (!at)
		return err_set(err, ENOSPC, "more than %d functions",
			       NAMED_MAX);
	if (!name[0] || strlen(name) >= sizeof(at->name))
		return err_set(err, EINVAL, "no name of a function: '%s'",
			       name);
	(void)strcpy(at->name, name);
	at->fn = fn;
	at->arg = arg;
	return 0;
}
