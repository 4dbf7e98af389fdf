/* SPDX-License-Identifier: Apache-2.0 */

/* Paths and queries of requests: "PATH?QUERY". */

#include <stdlib.h>
#include <string.h>

#include "face/route.h"
#include "fuzz.h"

static const char *const patterns[] = {
	"/",           "/v1/boxes/{}",   "/images/{*}/json",
	"/images/{*}", "/{}/{*}/{}/end", "/a/{}/b/{}",
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size);
	char *mark = text ? strchr(text, '?') : NULL;
	unsigned int i = 0;
	struct query q;

	if (!text)
		return 0;
	if (mark)
		*mark = '\0';
	for (size_t k = 0; k < sizeof(patterns) / sizeof(*patterns); k++) {
		struct route_params p;

		if (route_match(patterns[k], text, &p) > 0)
			for (unsigned int n = 0; n < p.n; n++)
				if (!p.v[n] || !*p.v[n])
					abort();
		route_params_done(&p);
	}
	if (mark) {
		(void)query_parse(mark + 1, strlen(mark + 1), &q);
		(void)query_next(&q, "a", &i);
		query_done(&q);
	}
	free(text);
	return 0;
}
