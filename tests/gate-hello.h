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

/* The message, cut into records; its length. */
static size_t hello_make(const struct hello *h, uint8_t *to, size_t size)
{
	uint8_t m[1024] = { 1 };
	size_t at = hello_put(m, 4, 2, 0x0303) + 32;
	size_t extensions;
	size_t n = 0;

	at = hello_put(m, at, 1, 0);      /* session */
	at = hello_put(m, at, 2, 2);      /* suites */
	at = hello_put(m, at, 2, 0x1301); /* one of them */
	at = hello_put(m, at, 2, 0x0100); /* compression */
	extensions = at;
	at = hello_extensions(h, m, at + 2);
	(void)hello_put(m, extensions, 2, at - extensions - 2);
	(void)hello_put(m, 1, 3, at - 4);
	for (size_t done = 0; done < at;) {
		size_t part = h->record ? h->record : at;

		part = part < at - done ? part : at - done;
		if (n + 5 + part > size)
			return 0;
		n = hello_put(to, n, 1, 0x16);
		n = hello_put(to, n, 2, 0x0301);
		n = hello_put(to, n, 2, part);
		memcpy(to + n, m + done, part);
		n += part;
		done += part;
	}
	return n;
}
