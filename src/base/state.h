/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where Cordon keeps what outlives a run: CORDON_STATE_DIR, else for root
 * /var/lib/cordon, else $XDG_STATE_HOME/cordon, else ~/.local/state/cordon.
 */

#include <stddef.h>

#include "base/err.h"

/* Its path, always absolute; nothing is made. 0 or -errno. */
int state_path(char *ret, size_t size, struct err *err);

/*
 * Where sockets and what does not outlive the machine's run are:
 * CORDON_RUNTIME_DIR, else for root /run/cordon, else $XDG_RUNTIME_DIR/cordon,
 * else /tmp/cordon-UID. Nothing is made.
 */
int runtime_path(char *ret, size_t size, struct err *err);

/*
 * A directory below the state directory, made where it is missing (mode 0700),
 * as a descriptor, and its path. -EPERM if somebody else owns it or may write
 * to it.
 */
int state_open(const char *name, char *ret_path, size_t size, struct err *err);
