/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Time that no one can set: every deadline is on the monotonic clock. */

#include <stdint.h>
#include <time.h>

static inline int64_t clock_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}
