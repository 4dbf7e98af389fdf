/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Bytes that hog writes and a test expects: all 256 values, no period that a
 * pipe or a buffer could hide. Stream and seed choose the sequence.
 */

#include <stddef.h>
#include <stdint.h>

struct noise {
	uint64_t state;
};

static inline void noise_init(struct noise *n, uint64_t seed, int stream)
{
	n->state = (seed + 1) * 0x9e3779b97f4a7c15ULL + (uint64_t)stream;
}

static inline void noise_fill(struct noise *n, unsigned char *to, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		n->state ^= n->state << 13;
		n->state ^= n->state >> 7;
		n->state ^= n->state << 17;
		to[i] = (unsigned char)(n->state >> 32);
	}
}
