/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * When a call that failed is tried again. Pure but for retry_random().
 *
 * Only where nothing of an answer has come: the server did not take it (408,
 * 409, 429, 5xx) or was not reached. The waits double, each shortened by
 * chance, so that many callers do not come back at once. A server that says
 * when (Retry-After, in seconds or as a date) is not asked sooner; one that
 * asks for more than RETRY_MOST_US is not waited for.
 */

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define RETRY_MOST_US ((int64_t)60 * 1000000)

struct retry {
	int most;        /* attempts after the first one */
	int64_t base_us; /* the first wait, at most */
};

/* 0 is: no answer at all. */
bool retry_is_worth(int status);
/* What the header asks for, in us; -1: nothing that can be understood. */
int64_t retry_asked(const char *header, time_t now);
/* The wait after `failures` of them; -1: enough. chance: any number. */
int64_t retry_wait(const struct retry *r, int failures, int64_t asked_us,
		   uint32_t chance);
uint32_t retry_random(void);
