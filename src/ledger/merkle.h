/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The tree hash of RFC 6962, 2.1, over leaf hashes that come one by one.
 *
 * A node is SHA-256 of 0x01 and its two children; a leaf (line_hash()) begins
 * with 0x00, so that no record can pass for a node. It needs one hash for
 * each level: 64 hold any number of leaves.
 */

#include <stdint.h>

#include "base/sha256.h"

struct merkle {
	uint64_t n;
	unsigned char level[64][SHA256_SIZE]; /* level[i]: 2^i leaves */
};

void merkle_init(struct merkle *m);
void merkle_add(struct merkle *m, const unsigned char leaf[SHA256_SIZE]);
/* The root of what was added so far; of nothing, the hash of nothing. */
void merkle_root(const struct merkle *m, unsigned char ret[SHA256_SIZE]);
