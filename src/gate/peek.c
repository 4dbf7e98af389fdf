/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/peek.h"

#include <string.h>

/*
 * A hello in the form of SSL 2, which servers with OpenSSL still take; it
 * has no room for a name. RFC 5246, E.2: length with its first bit set, 1
 * (a hello), version 3.x.
 */
static bool is_old_hello(const uint8_t *data, size_t len)
{
	return len > 3 && data[0] & 0x80 && data[2] == 1 && data[3] == 3;
}

/*
 * The beginning of a record. Go and GnuTLS take any old version in the first
 * one, and Go a warning before the hello; what only looks like that, such as a
 * short length in front of a packet, differs in the rest of the header. The
 * types are those from a change of ciphers (0x14) to a heartbeat (0x18).
 */
static enum peeked choose_record(const uint8_t *data, size_t len,
				 struct peek *ret)
{
	size_t size;

	if (len > 1 && data[1] == 3) {
		ret->is_begun = true;
		return data[0] == 0x16 ? peek_tls(data, len, ret) : PEEK_BAD;
	}
	if (len > 1 && data[1] >= 0x10)
		return PEEK_OTHER;
	if (len < 6)
		return PEEK_MORE;
	size = (size_t)data[3] << 8 | data[4];
	if (data[0] == 0x16 && size > 0 && size < 0x4800 && data[5] == 1)
		return PEEK_BAD;
	if (data[0] == 0x15 && size == 2 && (data[5] == 1 || data[5] == 2))
		return PEEK_BAD;
	return PEEK_OTHER;
}

/* The PROXY protocol's second version; its first is a line of text. */
static bool is_proxy(const uint8_t *data, size_t len)
{
	static const char sign[] = "\r\n\r\n\0\r\nQUIT\n";

	return len >= sizeof(sign) - 1 &&
	       memcmp(data, sign, sizeof(sign) - 1) == 0;
}

static bool is_record_type(uint8_t b)
{
	return b >= 0x14 && b <= 0x18;
}

static enum peeked choose(const uint8_t *data, size_t len, struct peek *ret)
{
	enum peeked p;

	if (len == 0)
		return PEEK_MORE;
	if (is_record_type(data[0])) {
		p = choose_record(data, len, ret);
		if (p != PEEK_OTHER)
			return p;
	}
	if (data[0] & 0x80 && len <= 3)
		return PEEK_MORE;
	if (is_old_hello(data, len))
		return PEEK_TLS;
	if (is_proxy(data, len))
		return PEEK_BAD;
	return peek_http(data, len, ret);
}

enum peeked peek(const uint8_t *data, size_t len, struct peek *ret)
{
	enum peeked p;

	memset(ret, 0, sizeof(*ret));
	p = choose(data, len < PEEK_MAX ? len : PEEK_MAX, ret);
	if (p != PEEK_MORE || len < PEEK_MAX)
		return p;
	ret->is_long = ret->is_begun && !is_record_type(data[0]);
	return ret->is_long ? PEEK_HTTP : PEEK_BAD;
}
