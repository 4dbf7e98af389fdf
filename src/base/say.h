/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How our programs speak to the person at the terminal. */

#include "base/err.h"

/*
 * One line on standard error, "cordon: ...". What could steer a terminal or
 * show it in another order is written out (visible.h).
 */
void say(const char *fmt, ...) PRINTF(1, 2);

/* Whether to use colour on this descriptor. */
int use_colour(int fd);
