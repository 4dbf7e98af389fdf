/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"

#include <errno.h>

/* What a digit stands for; -1: it is none. */
static int digit_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '+')
		return 62;
	return c == '/' ? 63 : -1;
}

int base64_add(struct buf *out, const char *text, size_t len)
{
	unsigned int bits = 0;
	int n = 0;

	while (len > 0 && text[len - 1] == '=')
		len--;
	for (; len > 0; text++, len--) {
		int value = digit_value(*text);
		char byte;

		if (value < 0)
			return -EINVAL;
		bits = bits << 6 | (unsigned int)value;
		n += 6;
		if (n < 8)
			continue;
		n -= 8;
		byte = (char)(bits >> n);
		if (buf_add(out, &byte, 1) < 0)
			return out->error;
	}
	return 0;
}
