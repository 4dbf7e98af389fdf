/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The two sockets that a gate starts with: its client's and its box's. */

#include "gate/gate.h"

/*
 * Waits for the first table; makes and sends the authority if a rule needs
 * one. Reads files of the machine, so it comes before the walls.
 */
int client_first_table(struct gate *g, struct err *err);
/* Listens to both from here on. */
int client_start(struct gate *g, struct err *err);
/* Says that no connection will be made, and why. */
void client_fail(struct gate *g, const struct err *err);
