/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the client is told. Each event is sent as it happens, and the gate
 * waits where the client is slow: no record is lost, and a box that makes many
 * has to wait itself. A client that is gone ends the gate.
 */

#include "gate/gate.h"

/* `e` has everything but its type. */
void events_send(struct gate *g, const struct gate_event *e);
/* The same, as a question. */
void events_ask(struct gate *g, const struct gate_event *e);

/* The same, unless that would mean to wait: then false, and it is not sent. */
bool events_send_now(struct gate *g, const struct gate_event *e);

/*
 * Whether one more denial may be told now. For those that nobody waits for:
 * what may not be told is counted.
 */
bool events_may_tell(struct gate *g);

/*
 * After a denial was sent: 0, or for how many milliseconds nothing more may be
 * taken from the box, lest it fills the ledger.
 */
uint64_t events_denial_pause(struct gate *g);
