/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Cancellation: a token with a reason, a deadline and a parent.
 *
 * Cancelling a parent cancels its children; a child never touches its parent.
 * A child's deadline is the sooner of its own and its parent's. When a
 * deadline passes the token is cancelled by itself, with `is_late`.
 *
 * Callbacks run once each, last registered first, directly from
 * cancel_fire(); one may use the token, remove others, or drop the last
 * reference. Registering on a token that has fired runs the callback at once.
 */

#include <stdbool.h>
#include <stdint.h>

#include "loop/fault.h"
#include "loop/loop.h"

struct cancel;

struct cancel_hook {
	void (*fired)(struct cancel_hook *h, struct cancel *c);
	struct cancel_hook *next, *prev;
	struct cancel *token; /* while it is registered */
};

/*
 * deadline_us: on the monotonic clock, 0: none. parent may be NULL. A child
 * of one that has fired is born fired. NULL when memory is short: since NULL
 * is a token that never fires, the caller must not go on with it.
 */
struct cancel *cancel_new(struct loop *l, struct cancel *parent,
			  int64_t deadline_us);
struct cancel *cancel_ref(struct cancel *c); /* NULL is fine */
void cancel_unref(struct cancel *c);

void cancel_fire(struct cancel *c, const char *reason);
/* All of these take NULL, a token that never fires. */
bool cancel_is_fired(const struct cancel *c);
bool cancel_is_late(const struct cancel *c);
const char *cancel_reason(const struct cancel *c); /* NULL: not fired */
int64_t cancel_deadline(const struct cancel *c);   /* 0: none */
/* `cancelled` or `deadline_exceeded`, with the reason. */
void cancel_fault(const struct cancel *c, struct fault *ret);

void cancel_hook(struct cancel *c, struct cancel_hook *h);
void cancel_unhook(struct cancel_hook *h);
