/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The gate's own walls, put up once everything that takes a file was read:
 *
 *	who	no capability, no new ones; never root: a user of its own
 *	files	none (Landlock), nor a call that opens one
 *	calls	a short list; sockets of TCP and UDP alone
 *	size	descriptors, memory, no core
 */

#include "base/err.h"

/* `ret_nofile`: how many descriptors it may have. */
int gate_confine(unsigned long *ret_nofile, struct err *err);
