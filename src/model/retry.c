/* SPDX-License-Identifier: Apache-2.0 */
#include "model/retry.h"

#include <curl/curl.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/util.h"

enum { MOST_DOUBLINGS = 4 };

bool retry_is_worth(int status)
{
	return status == 0 || status == 408 || status == 409 || status == 429 ||
	       (status >= 500 && status <= 599);
}

int64_t retry_asked(const char *header, time_t now)
{
	uint64_t ms;
	time_t at;

	if (!header[0])
		return -1;
	if (header[strspn(header, "0123456789.")] == '\0') {
		/* So long that it is no number any more is too long. */
		if (num_parse_milli(header, &ms) < 0 || ms > INT32_MAX)
			return INT64_MAX;
		return (int64_t)ms * 1000;
	}
	at = curl_getdate(header, NULL);
	if (at < 0)
		return -1;
	return at <= now ? 0 : (int64_t)(at - now) * 1000000;
}

int64_t retry_wait(const struct retry *r, int failures, int64_t asked_us,
		   uint32_t chance)
{
	int64_t wait = r->base_us << MIN(failures - 1, MOST_DOUBLINGS);

	if (failures > r->most || asked_us > RETRY_MOST_US)
		return -1;
	/* Between a half and the whole of it. */
	wait = wait / 2 + wait / 2 * (int64_t)(chance >> 16) / 0x10000;
	if (asked_us >= 0)
		wait = MAX(asked_us, 0) + wait / 4;
	return MIN(wait, RETRY_MOST_US + RETRY_MOST_US / 4);
}

uint32_t retry_random(void)
{
	uint32_t n;

	if (getrandom(&n, sizeof(n), GRND_NONBLOCK) != (ssize_t)sizeof(n))
		n = (uint32_t)clock_us() * 2654435761u;
	return n;
}
