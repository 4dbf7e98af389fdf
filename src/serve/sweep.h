/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Names that a box made in a writable volume and must not have (box/guard.h).
 *
 * The guard that knows which were missing ends with the preparer, long before
 * the box does. So its watches go to the front with the answer, and come back
 * with a request when the box is dead. The front could have been taken over
 * meanwhile: each watch is sealed with a key that the parent alone has, and
 * for the user whose volume it is, so that nothing can be swept that was not
 * mounted writable for that user by this daemon.
 */

#include "base/json.h"
#include "base/strv.h"
#include "box/guard.h"
#include "serve/request.h"

#define SWEEP_KEY 32

/* The member `watches` of an answer. */
void sweep_put(struct json *j, const struct guard *g, const unsigned char *key,
	       int64_t peer);

/* What was found, or could not be looked for, a line for each. */
void sweep_all(const struct request *r, const unsigned char *key, int64_t peer,
	       struct strv *ret);
