/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A host name in its plain form: lower case, no final dot, labels of letters,
 * digits, "-" and "_". Anything else (a NUL, a space, a letter of another
 * alphabet) is no name, so no two readers can see two names in it. Pure.
 */

#include <stddef.h>

#include "gate/table.h"

/* 0, or -EINVAL and `ret` is "". */
int plain_name(const char *text, size_t len, char ret[GATE_HOST_MAX]);
