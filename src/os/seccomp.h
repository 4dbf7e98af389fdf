/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The system call filters of a box; the rules are in filter-gen.c. */

#include "base/err.h"

/*
 * Installs both filters on the calling thread and what it starts. Needs
 * no_new_privs. There is no way back.
 */
int seccomp_install(struct err *err);
