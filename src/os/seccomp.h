/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The system call filter of a box; the rules are in filter-rules.c. */

#include <stdbool.h>

#include "base/err.h"

/*
 * Installs the filter on the calling thread and what it starts. Needs
 * no_new_privs. There is no way back. With `egress` there are sockets for TCP
 * and UDP; else there is none.
 */
int seccomp_install(bool egress, struct err *err);

/*
 * The same with clone3(2), for the init of a box that stays; its children add
 * the ordinary one.
 */
int seccomp_install_stays(bool egress, struct err *err);

/*
 * The same, but socket(2) waits for whoever holds the descriptor that comes
 * back (seccomp_unotify(2)); that one must answer, and never ask itself.
 */
int seccomp_install_witness(int *ret_fd, struct err *err);

/* One more, for a box with a list of commands: no file without a name. */
int seccomp_forbid_memfd(struct err *err);
