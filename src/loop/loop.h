/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The event loop of agents: tasks, timers, descriptors. One thread.
 *
 * Nothing here calls back from within the call that asked for it: what is to
 * be done soon is queued and run by the loop, first come, first served. So a
 * caller never finds its own state changed under its feet, and a program with
 * the same inputs takes the same steps.
 *
 * Tasks, timers and watches are parts of their owner's structure; the owner
 * stops them before it goes.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct loop;
struct uv_loop_s;

int loop_new(struct loop **ret, struct err *err);
/* Nothing may be queued, set or watched any more. */
void loop_free(struct loop *l);
/* For libraries that know libuv, such as libcurl's adapter. */
struct uv_loop_s *loop_uv(struct loop *l);
/*
 * The monotonic clock in us, as it was when this round began: for deadlines,
 * where asking the clock for each message would cost more than it tells.
 */
int64_t loop_now(const struct loop *l);

struct task {
	void (*run)(struct task *t);
	struct task *next, *prev;
	struct loop *loop; /* while it is queued */
};

/* Runs it once, from the loop. One that is queued already stays where it is. */
void loop_soon(struct loop *l, struct task *t);
/* Takes it back; nothing happens where it is not queued. */
void task_drop(struct task *t);

struct timer {
	void (*fire)(struct timer *t);
	struct loop *loop; /* while it is set */
	int64_t at;        /* on the monotonic clock, in us */
	uint64_t order; /* of two with the same time the first set is first */
	uint32_t place; /* in the loop's heap */
};

/*
 * Set again, it fires at the new time only. A time that has passed: soon.
 * Returns 0, or -ENOMEM and then it is not set.
 */
int timer_set(struct loop *l, struct timer *t, int64_t at_us);
void timer_stop(struct timer *t);

struct watch {
	void (*ready)(struct watch *w);
	void *handle; /* libuv's */
};

/*
 * Calls `ready` whenever fd can be read, has ended or failed; it is made
 * non-blocking. Returns 0 or -errno (-EPERM: a regular file never waits).
 */
int watch_start(struct loop *l, struct watch *w, int fd);
void watch_stop(struct watch *w);

/*
 * Runs until `is_over` says so (looked at after each task and each round), or
 * nothing is left that could happen. Returns whether it is over. `is_over`
 * may be NULL. From within itself it does nothing and returns false.
 */
bool loop_run(struct loop *l, bool (*is_over)(void *arg), void *arg);
