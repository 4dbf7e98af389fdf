/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Output of a program as Docker frames it: a byte that is 1 or 2, three zeros,
 * the length in four bytes, big-endian, and the bytes.
 */

#include <stddef.h>
#include <stdint.h>

/* Takes frames apart, also where reads cut them. */
struct frames {
	unsigned char head[8];
	unsigned int have; /* of the head */
	uint32_t left;     /* of the payload */
	int stream;
};

/* Calls put() for each piece; 0, its error, or -EPROTO. */
int frames_take(struct frames *f, const char *data, size_t len,
		int (*put)(void *arg, int stream, const char *data, size_t len),
		void *arg);
