/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The name in a TLS hello (RFC 8446, 4.1.2; RFC 6066, 3). The hello may come in
 * several records; its bytes are put together first. Every length must fit
 * exactly, and nothing may come twice: what could be read in two ways is bad.
 */

#include <string.h>

#include "gate/peek.h"
#include "gate/plain.h"

enum {
	RECORD_HANDSHAKE = 0x16,
	CLIENT_HELLO = 1,
	EXT_SERVER_NAME = 0,
	EXT_ALPN = 16,
	EXT_ESNI = 0xffce, /* drafts before ECH */
	EXT_ECH = 0xfe0d,  /* RFC 9849 */
};

/* What is left to read; a read past its end makes it bad for ever. */
struct span {
	const uint8_t *at;
	size_t left;
	bool is_bad;
};

static const uint8_t *take(struct span *s, size_t n)
{
	const uint8_t *at = s->at;

	if (s->is_bad || n > s->left) {
		s->is_bad = true;
		return NULL;
	}
	s->at += n;
	s->left -= n;
	return at;
}

/* A number of one to three bytes. */
static size_t number(struct span *s, size_t bytes)
{
	const uint8_t *p = take(s, bytes);
	size_t v = 0;

	for (size_t i = 0; p && i < bytes; i++)
		v = v << 8 | p[i];
	return v;
}

/* What a length of so many bytes leads. */
static struct span vector(struct span *s, size_t bytes)
{
	size_t n = number(s, bytes);
	const uint8_t *p = take(s, n);

	return (struct span){ .at = p, .left = p ? n : 0, .is_bad = !p };
}

/* Puts the first message together; PEEK_TLS when it is whole. */
static enum peeked gather(const uint8_t *data, size_t len,
			  uint8_t whole[PEEK_MAX], size_t *ret_len)
{
	struct span in = { .at = data, .left = len };
	size_t n = 0;

	while (in.left >= 5) {
		size_t size = (size_t)in.at[3] << 8 | in.at[4];
		size_t have = in.left - 5 < size ? in.left - 5 : size;

		if (in.at[0] != RECORD_HANDSHAKE || in.at[1] != 3 ||
		    size == 0 || size > 16384 || n + have > PEEK_MAX)
			return PEEK_BAD;
		memcpy(whole + n, in.at + 5, have);
		n += have;
		if (n >= 1 && whole[0] != CLIENT_HELLO)
			return PEEK_BAD;
		*ret_len = 4;
		if (n >= 4)
			*ret_len += (size_t)whole[1] << 16 |
				    (size_t)whole[2] << 8 | whole[3];
		if (*ret_len > PEEK_MAX)
			return PEEK_BAD;
		if (n >= 4 && n >= *ret_len)
			return PEEK_TLS;
		(void)take(&in, 5 + have);
	}
	return PEEK_MORE;
}

static bool read_server_name(struct span ext, struct peek *ret)
{
	struct span list = vector(&ext, 2);
	size_t kind = number(&list, 1);
	struct span name = vector(&list, 2);

	return !list.is_bad && !name.is_bad && kind == 0 && list.left == 0 &&
	       ext.left == 0 &&
	       plain_name((const char *)name.at, name.left, ret->name) == 0;
}

static bool read_alpn(struct span ext, struct peek *ret)
{
	struct span list = vector(&ext, 2);

	ret->is_h1_offered = false;
	while (!list.is_bad && list.left > 0) {
		struct span p = vector(&list, 1);

		if (!p.is_bad && p.left == 8 &&
		    memcmp(p.at, "http/1.1", 8) == 0)
			ret->is_h1_offered = true;
	}
	return !list.is_bad && ext.left == 0;
}

static bool read_extensions(struct span all, struct peek *ret)
{
	bool had_name = false;

	while (!all.is_bad && all.left > 0) {
		size_t type = number(&all, 2);
		struct span ext = vector(&all, 2);

		if (ext.is_bad)
			return false;
		if (type == EXT_SERVER_NAME) {
			if (had_name || !read_server_name(ext, ret))
				return false;
			had_name = true;
		} else if (type == EXT_ALPN) {
			if (!read_alpn(ext, ret))
				return false;
		} else if (type == EXT_ECH || type == EXT_ESNI) {
			ret->is_hidden = true;
		}
	}
	return !all.is_bad;
}

static bool read_hello(struct span h, struct peek *ret)
{
	struct span session;
	struct span suites;
	struct span compression;
	struct span extensions;

	ret->is_h1_offered = true;
	(void)take(&h, 2 + 32); /* version, random */
	session = vector(&h, 1);
	suites = vector(&h, 2);
	compression = vector(&h, 1);
	if (h.is_bad || session.left > 32 || suites.left < 2 ||
	    suites.left % 2 || compression.left < 1)
		return false;
	if (h.left == 0)
		return true;
	extensions = vector(&h, 2);
	return !h.is_bad && h.left == 0 && read_extensions(extensions, ret);
}

enum peeked peek_tls(const uint8_t *data, size_t len, struct peek *ret)
{
	static uint8_t whole[PEEK_MAX];
	size_t size = 0;
	enum peeked p = gather(data, len, whole, &size);

	/* The first byte alone may be anybody's. */
	ret->is_begun = len > 1;
	if (p != PEEK_TLS)
		return p;
	if (read_hello((struct span){ .at = whole + 4, .left = size - 4 }, ret))
		return PEEK_TLS;
	ret->name[0] = '\0';
	return PEEK_BAD;
}
