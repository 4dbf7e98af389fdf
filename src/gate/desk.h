/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where a gate of a daemon's has people asked (wire.h): its own socket to the
 * process that started it, which knows for whom it did. The daemon's front,
 * which is the client, has no part in it.
 */

#include "gate/gate.h"

/* Listens from here on; nothing where there is none. */
int desk_start(struct gate *g, struct err *err);
/* 0: an answer will come, or the desk's end. -errno: nobody was asked. */
int desk_ask(struct gate *g, uint32_t number, const char *host, uint16_t port);
