/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The gate of a box, from the front's side: what it says is recorded by the
 * clerk, and what it refused is told. It comes with the blobs, since the box
 * may be made with its authority, and is used for one wall: then both are
 * prepared anew. The front cannot change what a gate lets through: its table
 * is final, and was never here.
 */

#include "front/front.h"

/* Takes the two sockets; `doc` is the answer's member `gate`. */
int gate_take(struct box *b, uint32_t number, int *socks, const json_t *doc,
	      struct err *err);
/* The wall stands: its init gives the gate the box's sockets. */
int gate_begin(struct box *b, struct err *err);
/* The box is dead, and tried so many addresses that nothing leads to. */
void gate_unrouted(struct box *b, uint64_t n);
/*
 * The box is dead, or is ended now. The last words are heard, then comes
 * box_gate_over(). What the box sent before is let out unless is_cut.
 */
void gate_close(struct box *b, bool is_cut);
/* It is there, and may have something to say. */
bool gate_is_open(const struct box *b);
/* Without a word; nothing of it is left. */
void gate_drop(struct box *b);
