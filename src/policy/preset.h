/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The presets that `extends` knows: the files of presets/, put into the
 * programs at build time by tools/embed.
 */

#include <stddef.h>

struct preset {
	const char *name;
	const char *text;
	size_t len;
};

/* Ended by a NULL name. */
extern const struct preset presets[];

/* NULL if there is none of that name. */
const struct preset *preset_find(const char *name);
