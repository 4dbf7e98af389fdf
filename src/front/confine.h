/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The front shuts itself in: it reads what anybody may send, and has no right
 * of the machine's to lose.
 *
 * Afterwards it can use what it holds (listeners, the sockets to the others,
 * its own directory), and nothing else: no file of the host but libraries and
 * time zones, no socket of its own making, no other program, no other user.
 * What it does not need but might meet in a library fails with EPERM; what only
 * somebody who has taken it over would try ends it.
 */

#include "base/err.h"

/*
 * Once, with one thread, before the first byte of a client is read and after
 * the libraries are set up. `state` is the front's own directory. 0 or -errno:
 * then it must not go on.
 */
int front_confine(int state, struct err *err);
