/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to what cordon/agent.h is made of: api.c, functions.c. */

#include <cordon/agent.h>

#include "base/err.h"

/* As the program sees it; `to` may be NULL. Returns -code. */
int api_give(struct cordon_error *to, const struct err *from);
