/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Capabilities, by system call: two structures and three prctls. libcap would
 * be linked into two static programs for them.
 */

#include <stdbool.h>

#include "base/err.h"

/* Whether CAP_SYS_ADMIN is in force. */
bool caps_has_sys_admin(void);

/* Keeps the capabilities that set-up needs across one exec (ambient). */
int caps_keep_over_exec(void);

/*
 * Takes the capabilities that override permissions of files out of force, or
 * puts them back. Nothing else changes.
 */
int caps_over_files(bool in_force);

/*
 * The sets that are a process's own to empty, without any rights: all but the
 * bounding set, which no_new_privs makes harmless.
 */
int caps_drop_held(struct err *err);

/* Empties all five sets and locks them so: no exec can give one back. */
int caps_drop_all(struct err *err);
