/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A captured stream in pieces: two bytes of limit, then pieces, each a byte
 * of length and its bytes. What is kept is the beginning and the end.
 */

#include <stdlib.h>
#include <string.h>

#include "box/capture.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct capture c;
	size_t limit;
	size_t total = 0;
	size_t len;
	size_t cut;
	char *all;
	char *kept;

	if (size < 2)
		return 0;
	limit = (size_t)data[0] | (size_t)data[1] << 8;
	all = malloc(size);
	if (!all)
		abort();
	capture_init(&c, limit);
	for (size_t at = 2; at < size;) {
		size_t n = data[at++];

		n = n < size - at ? n : size - at;
		capture_add(&c, (const char *)data + at, n);
		memcpy(all + total, data + at, n);
		total += n;
		at += n;
	}
	MUST(c.total == total);
	MUST(capture_missing(&c) == (total > limit ? total - limit : 0));
	kept = capture_take(&c, &len, &cut);
	MUST(kept && len == (total > limit ? limit : total) && cut <= len);
	MUST(memcmp(kept, all, cut) == 0);
	MUST(memcmp(kept + cut, all + total - (len - cut), len - cut) == 0);
	free(kept);
	free(all);
	return 0;
}
