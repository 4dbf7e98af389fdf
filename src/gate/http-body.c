/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bodies, as they come: a length counted down, or chunks. Chunks of a request
 * have no extensions here (nobody sends them but who wants to be misread);
 * servers send them, and blanks around a size, and RFC 9112 (7.1.1) has them
 * passed over. A trailer is read and left out. Whatever came, what is written
 * is plain.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "gate/http.h"

enum chunk_state {
	CHUNK_SIZE,
	CHUNK_EXTRA, /* behind a size: blanks, then extensions */
	CHUNK_SIZE_LF,
	CHUNK_DATA,
	CHUNK_DATA_CR,
	CHUNK_DATA_LF,
	CHUNK_TRAILER,
	CHUNK_TRAILER_LF,
};

void http_body_init(struct http_body *b, const struct http_head *h)
{
	*b = (struct http_body){ .framing = h->framing };
	if (h->framing == HTTP_LENGTH)
		b->left = h->length;
	b->is_done = h->framing == HTTP_NO_BODY ||
		     (h->framing == HTTP_LENGTH && h->length == 0);
}

static int digit(char c)
{
	char l = c | 0x20;

	if (c >= '0' && c <= '9')
		return c - '0';
	return l >= 'a' && l <= 'f' ? l - 'a' + 10 : -1;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static int take_size(struct http_body *b, char c)
{
	int d = digit(c);

	if (d >= 0 && b->digits < 15) {
		b->left = b->left * 16 + (uint64_t)d;
		b->digits++;
		return 0;
	}
	if (b->is_answer && (is_blank(c) || (c == ';' && b->digits > 0))) {
		b->state = b->digits > 0 ? CHUNK_EXTRA : CHUNK_SIZE;
		b->has_extension = c == ';';
		return ++b->n_line > HTTP_EXTENSION_MAX ? -EINVAL : 0;
	}
	if (c != '\r' || b->digits == 0)
		return -EINVAL;
	b->state = CHUNK_SIZE_LF;
	return 0;
}

static int take_extra(struct http_body *b, char c)
{
	if (c == '\r') {
		b->state = CHUNK_SIZE_LF;
		return 0;
	}
	b->has_extension |= c == ';';
	if (++b->n_line > HTTP_EXTENSION_MAX || c == 0x7f ||
	    ((unsigned char)c < ' ' && c != '\t') ||
	    (!b->has_extension && !is_blank(c)))
		return -EINVAL;
	return 0;
}

static int take_trailer(struct http_body *b, char c)
{
	if (++b->n_trailer > HTTP_TRAILER_MAX)
		return -EINVAL;
	if (c == '\r') {
		b->state = CHUNK_TRAILER_LF;
		return 0;
	}
	if ((unsigned char)c < ' ' && c != '\t')
		return -EINVAL;
	b->n_line++;
	return 0;
}

static int take_lf(struct http_body *b, unsigned int next, char c)
{
	b->state = next;
	return c == '\n' ? 0 : -EINVAL;
}

/* One byte that is no data. */
static int take_mark(struct http_body *b, char c)
{
	switch (b->state) {
	case CHUNK_SIZE:
		return take_size(b, c);
	case CHUNK_EXTRA:
		return take_extra(b, c);
	case CHUNK_SIZE_LF:
		b->n_line = 0;
		return take_lf(b, b->left > 0 ? CHUNK_DATA : CHUNK_TRAILER, c);
	case CHUNK_DATA_CR:
		b->state = CHUNK_DATA_LF;
		return c == '\r' ? 0 : -EINVAL;
	case CHUNK_DATA_LF:
		b->digits = 0;
		b->left = 0;
		return take_lf(b, CHUNK_SIZE, c);
	case CHUNK_TRAILER:
		return take_trailer(b, c);
	case CHUNK_TRAILER_LF:
		b->is_done = b->n_line == 0;
		b->n_line = 0;
		return take_lf(b, CHUNK_TRAILER, c);
	default:
		return -EINVAL;
	}
}

static size_t take_data(struct http_body *b, const char *data, size_t len,
			struct http_slice *ret)
{
	size_t n = b->left < len ? (size_t)b->left : len;

	*ret = (struct http_slice){ data, n };
	b->left -= n;
	return n;
}

static ssize_t take_chunked(struct http_body *b, const char *data, size_t len,
			    struct http_slice *ret)
{
	size_t at = 0;

	while (at < len && !b->is_done) {
		if (b->state == CHUNK_DATA) {
			at += take_data(b, data + at, len - at, ret);
			if (b->left == 0)
				b->state = CHUNK_DATA_CR;
			break;
		}
		if (take_mark(b, data[at++]) < 0)
			return -EINVAL;
	}
	return (ssize_t)at;
}

ssize_t http_body_take(struct http_body *b, const char *data, size_t len,
		       struct http_slice *ret)
{
	*ret = (struct http_slice){ data, 0 };
	if (b->is_done)
		return 0;
	if (b->framing == HTTP_CHUNKED)
		return take_chunked(b, data, len, ret);
	if (b->framing == HTTP_TO_END)
		b->left = len;
	len = take_data(b, data, len, ret);
	b->is_done = b->framing == HTTP_LENGTH && b->left == 0;
	return (ssize_t)len;
}

void http_body_put(struct buf *out, enum http_framing framing, const char *data,
		   size_t len)
{
	if (len == 0)
		return; /* an empty chunk would be the end */
	if (framing == HTTP_CHUNKED)
		(void)buf_printf(out, "%zx\r\n", len);
	(void)buf_add(out, data, len);
	if (framing == HTTP_CHUNKED)
		(void)buf_puts(out, "\r\n");
}

void http_body_end(struct buf *out, enum http_framing framing)
{
	if (framing == HTTP_CHUNKED)
		(void)buf_puts(out, "0\r\n\r\n");
}
