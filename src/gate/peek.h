/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The first bytes of a connection, looked at without being taken: is it a TLS
 * hello, and for which name; is it HTTP, and for which host? Pure.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gate/table.h"

enum peeked {
	PEEK_MORE,  /* cannot be told yet */
	PEEK_TLS,   /* `name` is its server name, "" if there is none */
	PEEK_HTTP,  /* `name` is its host, without the port */
	PEEK_OTHER, /* neither: the name that was resolved must do */
	PEEK_BAD,   /* TLS or HTTP, but broken or ambiguous */
};

struct peek {
	char name[GATE_HOST_MAX];
	uint16_t port;      /* of an HTTP host; 0: not said */
	bool is_hidden;     /* TLS with an encrypted hello */
	bool is_h1_offered; /* ALPN, or no ALPN at all */
	/* PEEK_MORE: TLS or HTTP has begun, so what is missing must come. */
	bool is_begun;
	/* PEEK_HTTP: too long to find its host here; who reads all of it must.
	 */
	bool is_long;
};

/*
 * More than this is not looked at: what is not told by then is PEEK_BAD, but
 * for a request, whose head may be longer.
 */
#define PEEK_MAX 16384

enum peeked peek(const uint8_t *data, size_t len, struct peek *ret);
/* Its parts, for tests and fuzzers. */
enum peeked peek_tls(const uint8_t *data, size_t len, struct peek *ret);
enum peeked peek_http(const uint8_t *data, size_t len, struct peek *ret);
