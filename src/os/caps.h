/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Capabilities, by system call: two structures and three prctls. libcap would
 * be linked into two static programs for them.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* Whether CAP_SYS_ADMIN is in force. */
bool caps_has_sys_admin(void);

/*
 * Keeps the capabilities that set-up needs across one exec (ambient). In a
 * child that borrows its parent's memory (os/clone.h); -errno on failure.
 */
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

/*
 * What init keeps in a box that has many users: to start programs as one of
 * them, and to signal those. None is ever in force but for one call.
 */
#define CAPS_OVER_USERS (1U << 5 | 1U << 6 | 1U << 7) /* KILL SETGID SETUID */
/* And to give files to them: CHOWN DAC_OVERRIDE FOWNER. */
#define CAPS_OVER_OWNERS (1U << 0 | 1U << 1 | 1U << 3)

/* As caps_drop_all(), but these are kept, out of force. */
int caps_drop_all_but(uint32_t keep, struct err *err);
/* Puts those of them in force that are kept, and no others; 0: none. */
int caps_in_force(uint32_t which);
/* Gives up all that is kept but these. */
int caps_keep_only(uint32_t keep);
