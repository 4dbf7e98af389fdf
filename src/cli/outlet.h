/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Our own standard output, or error: who reads it may be slow or stand still,
 * and nobody else is to wait for that.
 *
 *	struct outlet o;
 *
 *	outlet_init(&o, 1, most);
 *	outlet_put(&o, data, len);
 *	while (outlet_waits(&o))
 *		poll for POLLOUT, then outlet_push(&o);
 *	outlet_done(&o);
 *
 * What is not taken at once is kept, at most `most` bytes of it. Whoever puts
 * more while something waits has not looked; it is an error as any other. The
 * flags of the descriptor are others' too, and stay as they are.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct outlet {
	int fd;
	struct buf kept;
	size_t at; /* of it, how much is written */
	int error; /* an errno: nothing is written any more */
};

void outlet_init(struct outlet *o, int fd, size_t most);
void outlet_done(struct outlet *o);

void outlet_put(struct outlet *o, const void *data, size_t len);
/* Writes of what is kept as much as is taken; takes some milliseconds. */
void outlet_push(struct outlet *o);
bool outlet_waits(const struct outlet *o);
/* Gives up what is kept; `why` is an errno. */
void outlet_fail(struct outlet *o, int why);
