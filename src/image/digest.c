/* SPDX-License-Identifier: Apache-2.0 */
#include "image/digest.h"

#include <string.h>

#define PREFIX     "sha256:"
#define PREFIX_LEN (sizeof(PREFIX) - 1)

size_t image_digest_digits(const char *text)
{
	return strspn(text, "0123456789abcdef");
}

bool image_digest_check(const char *text)
{
	return strncmp(text, PREFIX, PREFIX_LEN) == 0 &&
	       image_digest_digits(text + PREFIX_LEN) == 64 &&
	       text[PREFIX_LEN + 64] == '\0';
}

const char *image_digest_hex(const char *digest)
{
	return strncmp(digest, PREFIX, PREFIX_LEN) == 0 ? digest + PREFIX_LEN
							: digest;
}

void image_digest_end(struct sha256 *s, char ret[IMAGE_DIGEST])
{
	static const char digit[] = "0123456789abcdef";
	unsigned char sum[SHA256_SIZE];
	char *p = ret + PREFIX_LEN;

	sha256_end(s, sum);
	memcpy(ret, PREFIX, PREFIX_LEN);
	for (size_t i = 0; i < sizeof(sum); i++) {
		*p++ = digit[sum[i] >> 4];
		*p++ = digit[sum[i] & 15];
	}
	*p = '\0';
}

void image_digest_of(const void *data, size_t len, char ret[IMAGE_DIGEST])
{
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, data, len);
	image_digest_end(&s, ret);
}
