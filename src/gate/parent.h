/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <uv.h>

#include "base/err.h"

/*
 * The gate ends with who started it, whose pid this is: its socket alone does
 * not tell, since a child that it forked may hold that open after its death.
 */
int parent_watch(uv_loop_t *loop, const char *pid, struct err *err);
