/* SPDX-License-Identifier: Apache-2.0 */

/* Ids that nobody can guess, and names that people can say. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/util.h"
#include "front/front.h"

static void fill(void *data, size_t len)
{
	/* Up to 256 bytes it is never cut, once the kernel has started. */
	if (getrandom(data, len, 0) != (ssize_t)len)
		abort();
}

void id_make(char *ret, size_t n)
{
	static const char hex[] = "0123456789abcdef";
	unsigned char bytes[32];

	fill(bytes, n / 2);
	for (size_t i = 0; i < n / 2; i++) {
		ret[2 * i] = hex[bytes[i] >> 4];
		ret[2 * i + 1] = hex[bytes[i] & 15];
	}
	ret[n] = '\0';
}

void name_make(char *ret, size_t size)
{
	static const char *const how[] = {
		"amber", "brisk", "calm",  "dry",    "even",  "firm",
		"glad",  "hazel", "ivory", "jolly",  "keen",  "light",
		"mild",  "neat",  "olive", "plain",  "quiet", "ready",
		"sound", "tidy",  "upper", "violet", "warm",  "young"
	};
	static const char *const what[] = {
		"acorn",  "birch", "cedar", "dune",  "elm",     "fern",
		"gable",  "heron", "inlet", "jetty", "kestrel", "larch",
		"meadow", "nut",   "otter", "pine",  "quartz",  "reed",
		"stone",  "tern",  "umber", "vale",  "willow",  "yarrow"
	};
	uint32_t r[3];

	fill(r, sizeof(r));
	(void)snprintf(ret, size, "%s_%s_%04x", how[r[0] % ARRAY_SIZE(how)],
		       what[r[1] % ARRAY_SIZE(what)], r[2] & 0xffff);
}

bool name_check(const char *name)
{
	static const char first[] = "abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	static const char rest[] = "abcdefghijklmnopqrstuvwxyz"
				   "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
	size_t len = strlen(name);

	return len >= 2 && len <= 128 && strchr(first, name[0]) &&
	       strspn(name, rest) == len;
}

bool id_check(const char *text, size_t n)
{
	return text && strlen(text) == n &&
	       strspn(text, "0123456789abcdef") == n;
}
