/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a box begins and no socket hears: a connection to a port that nobody
 * listens on, and UDP. The kernel refuses it, at once and by itself; this sees
 * the first packet of it (os/net-watch.h) and tells which host was meant.
 *
 * It lets nothing through and holds nothing up. What is too much to be told
 * one by one is counted, and the number is told at the end; what is too fast
 * even for that is not in it.
 */

#include "gate/gate.h"

struct unheard;

struct unheard *unheard_new(struct gate *g);

/* Takes the last descriptors of GATE_SOCKETS; each must be what it should. */
int unheard_take(struct gate *g, const int *fds, int n_fds, struct err *err);

/* Takes what a box that is dead has left, and tells the number. */
void unheard_rest(struct gate *g);
