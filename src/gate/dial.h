/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Connecting to the first of some addresses that answers (RFC 8305): IPv6 and
 * IPv4 by turns, the next one a moment after the last, or at once when one
 * fails. Addresses may come while it runs. What is added was judged.
 */

#include <uv.h>

#include "gate/upstream.h"

struct race;

/* fd: connected, the caller's; -1: every one failed, and no more will come. */
typedef void raced_fn(void *arg, int fd, const uint8_t address[16]);

struct race *race_new(uv_loop_t *loop, uint16_t port, raced_fn *fn, void *arg);
/* More than it can hold is left out. */
void race_add(struct race *r, const uint8_t address[16]);
/*
 * Begins, or goes on with what was added; is_last: no more will be. From now
 * on the function is called once, never from inside; by then the race is
 * gone.
 */
void race_run(struct race *r, bool is_last);
void race_free(struct race *r); /* NULL is fine */
