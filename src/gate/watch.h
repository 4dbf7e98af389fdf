/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Descriptors and moments that a libuv loop watches, each with one owner who
 * may drop it at any time, also from inside its own function: libuv keeps the
 * memory of a handle for a while, and here that is nobody's concern.
 */

#include <uv.h>

struct watch;
struct tick;

typedef void watch_fn(void *arg, int fd);
typedef void tick_fn(void *arg);

/*
 * Calls `fn` while `fd` has one of `events` (UV_READABLE, UV_WRITABLE), or is
 * broken. The descriptor is taken; NULL: it could not be, and is closed.
 */
struct watch *watch_new(uv_loop_t *loop, int fd, int events, watch_fn *fn,
			void *arg);
/* Other events and another function from now on; 0 or -1. */
int watch_turn(struct watch *w, int events, watch_fn *fn);
/* Gives the descriptor back; frees the rest. */
int watch_take(struct watch *w);
/* Closes the descriptor too. NULL is fine. */
void watch_free(struct watch *w);

struct tick *tick_new(uv_loop_t *loop, tick_fn *fn, void *arg);
/* Once, after `ms` from now; 0: when the loop comes round. */
void tick_set(struct tick *t, uint64_t ms);
void tick_stop(struct tick *t);
void tick_free(struct tick *t); /* NULL is fine */
