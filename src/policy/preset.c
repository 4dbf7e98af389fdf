/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/preset.h"

#include <string.h>

const struct preset *preset_find(const char *name)
{
	for (const struct preset *p = presets; p->name; p++)
		if (strcmp(p->name, name) == 0)
			return p;
	return NULL;
}
