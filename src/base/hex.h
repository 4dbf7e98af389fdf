/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

/* Two small digits for each byte, and a NUL behind them. */
static inline void hex_format(const unsigned char *data, size_t len, char *ret)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < len; i++) {
		ret[2 * i] = digits[data[i] >> 4];
		ret[2 * i + 1] = digits[data[i] & 15];
	}
	ret[2 * len] = '\0';
}
