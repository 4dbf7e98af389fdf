/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A TLS hello for tests, with one name and what else is wanted in it. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct hello {
	const char *name;  /* NULL: none */
	const char *again; /* a second name, NULL: none */
	const char *alpn;  /* one protocol, NULL: no ALPN */
	bool is_hidden;    /* ECH */
	size_t record;     /* bytes in each record, 0: one record */
};

static size_t hello_put(uint8_t *to, size_t at, size_t bytes, size_t v)
{
	for (size_t i = 0; i < bytes; i++)
		to[at + i] = (uint8_t)(v >> (8 * (bytes - 1 - i)));
	return at + bytes;
}

static size_t hello_text(uint8_t *to, size_t at, const char *text)
{
	while (*text)
		to[at++] = (uint8_t)*text++;
	return at;
}

static size_t hello_name(uint8_t *to, size_t at, const char *name)
{
	size_t n = strlen(name);

	at = hello_put(to, at, 2, 0);
	at = hello_put(to, at, 2, n + 5);
	at = hello_put(to, at, 2, n + 3);
	at = hello_put(to, at, 1, 0);
	at = hello_put(to, at, 2, n);
	return hello_text(to, at, name);
}

static size_t hello_extensions(const struct hello *h, uint8_t *to, size_t at)
{
	size_t n = h->alpn ? strlen(h->alpn) : 0;

	if (h->name)
		at = hello_name(to, at, h->name);
	if (h->again)
		at = hello_name(to, at, h->again);
	if (h->alpn) {
		at = hello_put(to, at, 2, 16);
		at = hello_put(to, at, 2, n + 3);
		at = hello_put(to, at, 2, n + 1);
		at = hello_put(to, at, 1, n);
		at = hello_text(to, at, h->alpn);
	}
	if (h->is_hidden) {
		at = hello_put(to, at, 2, 0xfe0d);
		at = hello_put(to, at, 2, 1);
		at = hello_put(to, at, 1, 0);
	}
	return at;
}

/* A message in records of so many bytes (0: one); 0 where there is no room. */
static inline size_t hello_cut(const uint8_t *m, size_t len, size_t record,
			       uint8_t *to, size_t size)
{
	size_t n = 0;

	for (size_t done = 0; done < len;) {
		size_t part = record ? record : len;

		part = part < len - done ? part : len - done;
		if (n + 5 + part > size)
			return 0;
		n = hello_put(to, n, 3, 0x160301);
		n = hello_put(to, n, 2, part);
		memcpy(to + n, m + done, part);
		n += part;
		done += part;
	}
	return n;
}

/* The message, cut into records; its length. */
static size_t hello_make(const struct hello *h, uint8_t *to, size_t size)
{
	uint8_t m[1024] = { 1 };
	size_t at = hello_put(m, 4, 2, 0x0303) + 32;
	size_t extensions;

	at = hello_put(m, at, 1, 0);      /* session */
	at = hello_put(m, at, 2, 2);      /* suites */
	at = hello_put(m, at, 2, 0x1301); /* one of them */
	at = hello_put(m, at, 2, 0x0100); /* compression */
	extensions = at;
	at = hello_extensions(h, m, at + 2);
	(void)hello_put(m, extensions, 2, at - extensions - 2);
	(void)hello_put(m, 1, 3, at - 4);
	return hello_cut(m, at, h->record, to, size);
}

/*
 * The beginning of a server's hello, with the random of one that wants another
 * hello, or not; each record has so many bytes (0: one record).
 */
static inline size_t hello_answer(uint8_t *to, size_t size, bool is_retry,
				  size_t record)
{
	static const uint8_t retry[32] = {
		0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11,
		0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
		0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e,
		0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
	};
	uint8_t m[42] = { 2, 0, 0, 38, 3, 3 };

	memcpy(m + 6, retry, sizeof(retry));
	m[6] ^= !is_retry;
	return hello_cut(m, sizeof(m), record, to, size);
}
