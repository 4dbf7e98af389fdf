/* SPDX-License-Identifier: Apache-2.0 */
#include "face/docker/stream.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>
#include <sys/uio.h>

void frame_make(unsigned char ret[FRAME_HEAD], int stream, size_t len)
{
	memset(ret, 0, FRAME_HEAD);
	ret[0] = (unsigned char)stream;
	for (int i = 0; i < 4; i++)
		ret[4 + i] = (unsigned char)(len >> (24 - 8 * i));
}

static size_t write_pipe(struct out *o, int stream, const char *data,
			 size_t len)
{
	unsigned char head[FRAME_HEAD];
	size_t room = pipe_room(o->p);
	size_t skip = o->is_framed ? 0 : 1;
	struct iovec v[2] = { { head, FRAME_HEAD }, { (void *)data, 0 } };

	if (o->is_framed && room <= FRAME_HEAD)
		return 0;
	room -= o->is_framed ? FRAME_HEAD : 0;
	v[1].iov_len = MIN(MIN(len, room), FRAME_MAX);
	if (v[1].iov_len == 0)
		return 0;
	frame_make(head, stream, v[1].iov_len);
	(void)pipe_write(o->p, v + skip, (int)(2 - skip));
	return v[1].iov_len;
}

static size_t write_answer(struct out *o, int stream, const char *data,
			   size_t len)
{
	size_t n = MIN(len, FRAME_MAX);
	unsigned char head[FRAME_HEAD];
	size_t sent;

	if (!o->is_framed)
		return http_write(o->r, data, len);
	frame_make(head, stream, n);
	o->rest = malloc(FRAME_HEAD + n);
	if (!o->rest)
		abort();
	memcpy(o->rest, head, FRAME_HEAD);
	memcpy(o->rest + FRAME_HEAD, data, n);
	o->rest_at = 0;
	o->rest_len = FRAME_HEAD + n;
	sent = http_write(o->r, o->rest, o->rest_len);
	if (sent == 0) {
		/* Nothing of it went: it may come again as it was. */
		free(o->rest);
		o->rest = NULL;
		return 0;
	}
	o->rest_at = sent;
	(void)out_flush(o);
	return n;
}

size_t out_write(struct out *o, int stream, const char *data, size_t len)
{
	if (len == 0 || !out_flush(o))
		return 0;
	return o->p ? write_pipe(o, stream, data, len)
		    : write_answer(o, stream, data, len);
}

bool out_flush(struct out *o)
{
	if (!o->rest)
		return true;
	if (o->rest_at < o->rest_len)
		o->rest_at += http_write(o->r, o->rest + o->rest_at,
					 o->rest_len - o->rest_at);
	if (o->rest_at < o->rest_len)
		return false;
	free(o->rest);
	o->rest = NULL;
	return true;
}

void out_end(struct out *o)
{
	struct http_pipe *p = o->p;
	struct http_request *r = o->r;

	/* The owner of `o` may be gone after this. */
	o->p = NULL;
	o->r = NULL;
	if (p)
		pipe_end(p);
	else if (r)
		http_end(r);
}

void out_done(struct out *o)
{
	free(o->rest);
	o->rest = NULL;
}

const char *stream_type(unsigned int version, bool is_framed)
{
	return is_framed && version >= VERSION(1, 42)
		       ? "application/vnd.docker.multiplexed-stream"
		       : "application/vnd.docker.raw-stream";
}

/* ---- keys ---- */

/* "a" or "ctrl-a"; -1. */
static int key_parse(const char *text, size_t len)
{
	int c;

	if (len == 1 && (unsigned char)text[0] >= 0x20)
		return text[0];
	if (len != 6 || strncasecmp(text, "ctrl-", 5) != 0)
		return -1;
	c = tolower((unsigned char)text[5]);
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 1;
	switch (c) {
	case '@':
		return 0;
	case '[':
		return 27;
	case '\\':
		return 28;
	case ']':
		return 29;
	case '^':
		return 30;
	case '_':
		return 31;
	default:
		return -1;
	}
}

int keys_parse(const char *text, struct keys *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (!*text)
		text = "ctrl-p,ctrl-q";
	while (*text) {
		/* A comma by itself is a key, too. */
		size_t len = *text == ',' ? 1 : strcspn(text, ",");
		int c = key_parse(text, len);

		if (c < 0 || ret->n == KEYS_MAX)
			return -1;
		ret->sequence[ret->n++] = (char)c;
		text += len;
		if (*text == ',' && text[1])
			text++;
		else if (*text == ',')
			return -1;
	}
	return 0;
}

size_t keys_filter(struct keys *k, const char *data, size_t len, char *ret,
		   bool *ret_detach)
{
	size_t n = 0;

	*ret_detach = false;
	for (size_t i = 0; i < len; i++) {
		if (k->n > 0 && data[i] == k->sequence[k->at]) {
			if (++k->at < k->n)
				continue;
			*ret_detach = true;
			return n;
		}
		/* What looked like the beginning was not. */
		memcpy(ret + n, k->sequence, k->at);
		n += k->at;
		k->at = 0;
		if (k->n > 0 && data[i] == k->sequence[0] && k->n > 1)
			k->at = 1;
		else
			ret[n++] = data[i];
	}
	return n;
}
