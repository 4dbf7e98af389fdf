/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the kinds of tools share. */

#include "tool/tool.h"

/* Fills in what every tool has; 0, or -errno and nothing is held. */
int tool_init(struct tool *t, const struct tool_ops *ops, const char *name,
	      const char *description, const json_t *schema, struct err *err);
