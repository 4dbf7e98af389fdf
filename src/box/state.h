/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/err.h"

/*
 * A directory below the state directory (base/state.h), made where it is
 * missing (mode 0700), as a descriptor. -EPERM if somebody else owns it or
 * may write to it.
 */
int state_open(const char *name, struct err *err);
