/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Landlock, the second wall: even if a mount were wrong, only the places
 * named here could be written, no TCP port used, and no process or abstract
 * socket outside reached. What the kernel's ABI does not know is left out.
 *
 *	landlock_open(&l); landlock_allow(&l, fd, write); ... landlock_enter(&l)
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct landlock {
	int fd;
	int abi;
	uint64_t fs; /* what is handled, and so denied unless allowed */
};

/* The kernel's ABI, 0 if it has no Landlock. */
int landlock_abi(void);

int landlock_open(struct landlock *l, struct err *err);
/* The same for who may use TCP: other walls say where to. */
int landlock_open_net(struct landlock *l, struct err *err);

/* MARKS: also character devices, since a mark of overlayfs is one (0:0). */
enum { LANDLOCK_RUN = 1, LANDLOCK_WRITE = 2, LANDLOCK_MARKS = 4 };

/* Allows reading below `fd`, and what the bits of `what` say. */
int landlock_allow(struct landlock *l, int fd, bool is_dir, int what,
		   struct err *err);

/*
 * A domain that knows only pipes and sockets, and with `links` symbolic links:
 * none can be made but below what landlock_allow_links() names.
 */
int landlock_open_links(struct landlock *l, bool links, struct err *err);
int landlock_allow_links(struct landlock *l, int fd, struct err *err);

/* Puts the rules in force for this thread and closes `l`. */
int landlock_enter(struct landlock *l, struct err *err);
