/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * SHA-256 (FIPS 180-4), for names of files made from their content and for the
 * ledger's chain. Here and not from a library, because the command is static
 * and made with musl, for which the distribution has none. It uses the
 * processor's instructions for it where there are some.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHA256_SIZE 32

struct sha256 {
	uint32_t state[8];
	uint64_t len;
	unsigned char block[64];
};

void sha256_init(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *data, size_t len);
void sha256_end(struct sha256 *s, unsigned char ret[SHA256_SIZE]);

/* Whether the processor has them; with them it has SSE 4.2. */
bool sha256_has_instructions(void);

/* For tests: never the processor's own instructions. */
extern bool sha256_is_plain;
