/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The first packet of what a box begins: whatever it is, what is taken for one
 * is the beginning of a TCP connection or UDP, and is all in the bytes.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "gate/first-packet.h"

static void check(const struct first_packet *p, const uint8_t *data,
		  size_t size)
{
	size_t least = p->is_udp ? 8 : 14;

	MUST(size >= least);
	MUST(p->from_port == (data[0] << 8 | data[1]));
	MUST(p->port == (data[2] << 8 | data[3]));
	MUST(p->is_udp || (data[13] & 0x12) == 0x02);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Of its exact size, so that a byte too far is seen. */
	uint8_t *copy = calloc(1, size ? size : 1);
	struct first_packet p = { .is_udp = false };
	int r;

	if (!copy)
		abort();
	if (size > 0)
		memcpy(copy, data, size);
	r = first_packet_v4(copy, size, &p);
	MUST(r == 0 || r == -EINVAL);
	if (r == 0) {
		size_t head = (size_t)(copy[0] & 15) * 4;

		MUST(head >= 20 && head <= size);
		MUST(copy[9] == (p.is_udp ? 17 : 6));
		MUST(memcmp(p.to + 12, copy + 16, 4) == 0);
		check(&p, copy + head, size - head);
	}
	for (int is_udp = 0; is_udp < 2; is_udp++) {
		r = first_packet_v6(copy, size, is_udp, &p);
		MUST(r == 0 || r == -EINVAL);
		if (r == 0)
			check(&p, copy, size);
	}
	free(copy);
	return 0;
}
