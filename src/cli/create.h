/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* cordon create, and cordon run --detach: a box that the daemon keeps. */

#include <stdbool.h>

#include "cli/flags.h"

/* `rest` is the command. Prints the box's id; the exit status. */
int create_box(struct cordon_spec *spec, const struct run_flags *f, char **rest,
	       bool has_dashes, bool start);
