/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Digests as text: "sha256:" and 64 small hexadecimal digits. */

#include <stdbool.h>

#include "base/sha256.h"
#include "image/image.h"

/* Whether it is one. No other algorithm is known. */
bool image_digest_check(const char *text);

/* So many digits of an id are no name by chance. */
#define IMAGE_ID_SHORT 6

/* How many small hexadecimal digits it begins with. */
size_t image_digest_digits(const char *text);

/* The digits alone, also of a text without "sha256:". */
const char *image_digest_hex(const char *digest);

void image_digest_end(struct sha256 *s, char ret[IMAGE_DIGEST]);
void image_digest_of(const void *data, size_t len, char ret[IMAGE_DIGEST]);
