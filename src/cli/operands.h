/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What `cordon run` is to run: code of -c or of a file, or a command. */

#include <stdbool.h>

#include <cordon/cordon.h>

#include "base/err.h"
#include "cli/flags.h"

/* From the flags and the rest of the line into the spec; 0 or -errno. */
int operands_take(struct cordon_spec *spec, const struct run_flags *f,
		  char **rest, bool dashes, struct err *err);
