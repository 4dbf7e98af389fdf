/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Filters that need no policy: who may write to whom, how large, how often,
 * how much in all, and secrets masked for everybody. All reject with a
 * reason; answers to requests that were let through are only measured.
 * NULL from any of these: no memory.
 */

#include <stddef.h>
#include <stdint.h>

#include "runtime/runtime.h"

/* Each a name, a beginning with '*' behind it, or NULL for any. */
struct allow_row {
	const char *from; /* "" is from outside */
	const char *to;   /* an actor, or a topic */
	const char *type; /* of the message */
};
/* Only what a row allows. The rows live longer. */
struct filter *filter_allow(const struct allow_row *rows, size_t n);

/* No message is larger, in bytes of JSON. */
struct filter *filter_size(size_t max);

struct rate_limit {
	double per_second;    /* of each sender */
	double burst;         /* at once after a silence; 0 is 1 */
	int64_t (*now)(void); /* us; NULL: the monotonic clock */
};
/* Of each sender; beyond RATE_SENDERS of them, all others as one. */
#define RATE_SENDERS 1024
struct filter *filter_rate(const struct rate_limit *r);

/* So many messages, so many bytes, and no more for ever. 0: any. */
struct filter *filter_budget(uint64_t messages, uint64_t bytes);

/* Secrets are masked in every message, as by the policy's filters. */
struct filter *filter_redact(void);
