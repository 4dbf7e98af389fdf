/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/websocket.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/sha.h>

#include "base/util.h"

/* 16 bytes in base64. */
#define KEY_LEN     24
#define CONTROL_MAX 125

/* heads */

/* The field of this name; NULL: there is none, or more than one. */
static const struct http_field *find_only(const struct http_head *h,
					  const char *name)
{
	const struct http_field *f = http_find(h, name);

	for (size_t i = 0; i < h->n_fields; i++)
		if (&h->fields[i] != f && http_is(&h->fields[i].name, name))
			return NULL;
	return f;
}

static bool is_key(struct http_slice s)
{
	unsigned char raw[KEY_LEN];

	return s.len == KEY_LEN && s.at[KEY_LEN - 1] == '=' &&
	       s.at[KEY_LEN - 2] == '=' &&
	       EVP_DecodeBlock(raw, (const unsigned char *)s.at, KEY_LEN) ==
		       KEY_LEN / 4 * 3;
}

static void make_accept(struct http_slice key, char ret[WS_ACCEPT_SIZE])
{
	static const char id[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
	char text[KEY_LEN + sizeof(id)];
	unsigned char hash[SHA_DIGEST_LENGTH];

	memcpy(text, key.at, KEY_LEN);
	memcpy(text + KEY_LEN, id, sizeof(id));
	(void)SHA1((unsigned char *)text, sizeof(text) - 1, hash);
	(void)EVP_EncodeBlock((unsigned char *)ret, hash, sizeof(hash));
}

bool ws_is_asked(const struct http_head *h, char ret_accept[WS_ACCEPT_SIZE])
{
	const struct http_field *key = find_only(h, "sec-websocket-key");
	const struct http_field *version = find_only(h,
						     "sec-websocket-version");

	ret_accept[0] = '\0';
	if (!h->is_socket || h->is_upgrade || !h->is_switch || h->is_close ||
	    h->minor < 1 || !http_is(&h->method, "GET") ||
	    h->framing != HTTP_NO_BODY || h->is_waiting || !key || !version ||
	    !is_key(key->value) || !http_is(&version->value, "13"))
		return false;
	make_accept(key->value, ret_accept);
	return true;
}

bool ws_is_agreed(const struct http_head *h, const char *accept,
		  bool may_extend)
{
	const struct http_field *f = find_only(h, "sec-websocket-accept");

	return *accept && h->status == 101 && h->minor >= 1 && h->is_socket &&
	       !h->is_upgrade && h->is_switch && !h->has_length &&
	       !http_find(h, "transfer-encoding") && f &&
	       f->value.len == strlen(accept) &&
	       memcmp(f->value.at, accept, f->value.len) == 0 &&
	       (may_extend || !http_find(h, "sec-websocket-extensions"));
}

/* frames */

/* Bytes of the head that begins so; two of them are there. */
static unsigned int head_size(const uint8_t *head)
{
	unsigned int n = head[1] & 0x7f;
	unsigned int size = 2;

	if (n == 126)
		size += 2;
	else if (n == 127)
		size += 8;
	return size + (head[1] & 0x80 ? 4 : 0);
}

static uint64_t payload_size(const uint8_t *head)
{
	unsigned int short_size = head[1] & 0x7f;
	unsigned int n = short_size == 126 ? 2 : 8;
	uint64_t size = 0;

	if (short_size < 126)
		return short_size;
	for (unsigned int i = 0; i < n; i++)
		size = size << 8 | head[2 + i];
	return size;
}

static bool is_known(uint8_t opcode)
{
	return opcode <= 2 || (opcode >= 8 && opcode <= 10);
}

/* A frame that two programs could read differently is none. */
static int begin_frame(struct ws_frames *f)
{
	const uint8_t *h = f->head;
	uint64_t size = payload_size(h);
	unsigned int short_size = h[1] & 0x7f;

	if (!is_known(h[0] & 0x0f) || (h[0] & 0x70 && !f->may_extend) ||
	    ((h[1] & 0x80) != 0) != f->is_masked)
		return -EINVAL;
	if ((short_size == 126 && size < 126) ||
	    (short_size == 127 && (size <= UINT16_MAX || size > INT64_MAX)))
		return -EINVAL;
	f->is_control = h[0] & 0x08;
	if (f->is_control && (size > CONTROL_MAX || !(h[0] & 0x80)))
		return -EINVAL;
	if (f->is_masked)
		memcpy(f->mask, h + f->n_head - 4, 4);
	f->left = size;
	f->at = 0;
	f->n_head = 0;
	return 0;
}

static ssize_t take_head(struct ws_frames *f, const char *data, size_t len)
{
	size_t n = 0;

	while (n < len) {
		f->head[f->n_head++] = (uint8_t)data[n++];
		if (f->n_head < 2 || f->n_head < head_size(f->head))
			continue;
		if (begin_frame(f) < 0)
			return -EINVAL;
		break;
	}
	return (ssize_t)n;
}

ssize_t ws_frames_take(struct ws_frames *f, const char *data, size_t len,
		       struct http_slice *ret)
{
	size_t n = f->left < len ? (size_t)f->left : len;

	*ret = (struct http_slice){ data, n };
	if (f->left == 0)
		return take_head(f, data, len);
	f->at += n;
	f->left -= n;
	return (ssize_t)n;
}

void ws_unmask(const struct ws_frames *f, struct http_slice s, char *ret)
{
	uint64_t at = f->at - s.len;

	for (size_t i = 0; i < s.len; i++)
		ret[i] = (char)(s.at[i] ^ f->mask[(at + i) & 3]);
}
