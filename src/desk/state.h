/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The state directory: CORDON_STATE_DIR, else /var/lib/cordon for root, else
 * $XDG_STATE_HOME/cordon or ~/.local/state/cordon. It is made with mode 0700.
 *
 * It and what is in it belong to the caller and nobody else may write there;
 * anything else, a link among it, is refused and named.
 */

#include <limits.h>
#include <stddef.h>

#include "base/err.h"

struct state {
	int fd;
	char path[PATH_MAX - 64]; /* without links */
};

int desk_state_open(struct state *s, struct err *err);
void state_close(struct state *s);

/*
 * Opens a file in it, as openat(2) with mode 0600, and checks it. Returns the
 * descriptor, or -errno (-ENOENT without O_CREAT where there is none).
 */
int state_file(const struct state *s, const char *name, int flags,
	       struct err *err);
