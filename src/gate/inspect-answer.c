/* SPDX-License-Identifier: Apache-2.0 */

/* From upstream to the box: an answer is read, covered, written anew. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "gate/inspect-parts.h"

/* Answers of 100 to 199 before the one that counts. */
#define INTERIM_MAX 32
/* Room that the framing of a few pieces needs. */
#define PIECES_ROOM 1024

static bool fail(struct inspection *i, enum gate_reason reason,
		 const char *detail)
{
	struct inspect_no no = { .status = 502,
				 .reason = reason,
				 .detail = detail };

	inspect_refuse(i, &no);
	return true;
}

/* heads */

static void put_fields(const struct http_head *h, struct buf *out)
{
	for (size_t k = 0; k < h->n_fields; k++) {
		const struct http_field *f = &h->fields[k];

		if (http_is_ours(&f->name))
			continue;
		(void)buf_add(out, f->name.at, f->name.len);
		(void)buf_puts(out, ": ");
		(void)buf_add(out, f->value.at, f->value.len);
		(void)buf_puts(out, "\r\n");
	}
}

static void put_framing(struct inspection *i, const struct http_head *h,
			struct buf *out)
{
	bool is_empty = h->status < 200 || h->status == 204;

	if (i->put == HTTP_CHUNKED)
		(void)buf_puts(out, "Transfer-Encoding: chunked\r\n");
	else if (h->has_length && !is_empty)
		(void)buf_printf(out, "Content-Length: %llu\r\n",
				 (unsigned long long)h->length);
	if (h->status == 101)
		(void)buf_puts(out, "Connection: Upgrade\r\n"
				    "Upgrade: websocket\r\n");
	if (h->status < 200)
		return;
	if (i->is_last)
		(void)buf_puts(out, "Connection: close\r\n");
	else if (i->is_http0)
		(void)buf_puts(out, "Connection: keep-alive\r\n");
}

static void put_head(struct inspection *i, const struct http_head *h)
{
	struct buf *out = &i->box.out;
	size_t start = out->len;

	(void)buf_printf(out, "HTTP/1.%u %u ", h->minor, h->status);
	(void)buf_add(out, h->phrase.at, h->phrase.len);
	(void)buf_puts(out, "\r\n");
	put_fields(h, out);
	put_framing(i, h, out);
	(void)buf_puts(out, "\r\n");
	secret_masks_cover(&i->masks, out->data + start, out->len - start);
}

/* Only what was asked for, and agreed to in so many words. */
static bool take_switch(struct inspection *i, const struct http_head *h)
{
	bool may_extend = inspect_may_extend(i);

	if (!i->accept[0])
		return fail(i, GATE_R_HTTP, "the server changed the protocol");
	if (!ws_is_agreed(h, i->accept, may_extend))
		return fail(i, GATE_R_HTTP,
			    "the server changed to a protocol that is not the "
			    "WebSocket asked for");
	i->put = HTTP_NO_BODY;
	put_head(i, h);
	side_take(&i->up, h->size);
	inspect_tell(i, h->status);
	inspect_socket(i, may_extend);
	return true;
}

static bool take_interim(struct inspection *i, const struct http_head *h)
{
	if (h->status == 101)
		return take_switch(i, h);
	if (++i->n_interim > INTERIM_MAX)
		return fail(i, GATE_R_HTTP, "the server does not answer");
	i->put = HTTP_NO_BODY;
	if (!i->is_http0)
		put_head(i, h);
	side_take(&i->up, h->size);
	return true;
}

static bool take_final(struct inspection *i, const struct http_head *h)
{
	i->put = h->framing;
	/* Who speaks HTTP/1.0 knows no chunks. */
	if (i->put == HTTP_CHUNKED && i->is_http0)
		i->put = HTTP_TO_END;
	i->is_last = i->is_last || h->is_close || i->put == HTTP_TO_END;
	put_head(i, h);
	http_body_init(&i->got, h);
	i->got.is_answer = true;
	side_take(&i->up, h->size);
	i->answer = ANSWER_BODY;
	/* It is told when its bytes are known: at the end of the answer. */
	i->event.status = h->status;
	return true;
}

static bool take_head(struct inspection *i)
{
	struct http_head h;
	size_t len;
	const char *data = side_data(&i->up, &len);
	int r;

	if (side_room(&i->box) < HTTP_HEAD_MAX + PIECES_ROOM)
		return false;
	r = len > 0 ? http_read_answer(data, len, i->is_bare, &h) : 0;
	if (r < 0)
		return fail(i, GATE_R_HTTP,
			    r == -E2BIG ? "the answer's head is too large"
					: "the answer can be read in two ways");
	if (r == 1)
		return h.status < 200 ? take_interim(i, &h) : take_final(i, &h);
	if (i->up.is_ended || i->up.is_broken)
		return fail(i, GATE_R_RESET,
			    "the server broke the connection off");
	return false;
}

/* bodies */

static void put_piece(void *arg, const char *data, size_t len)
{
	struct inspection *i = arg;

	http_body_put(&i->box.out, i->put, data, len);
}

static bool end_body(struct inspection *i)
{
	secret_masks_flush(&i->masks, put_piece, i);
	http_body_end(&i->box.out, i->put);
	i->answer = ANSWER_WHOLE;
	return true;
}

/* It is told with the bytes that the box was sent, and not before. */
static bool take_next(struct inspection *i)
{
	if (!side_is_flushed(&i->box))
		return false;
	inspect_next(i);
	return true;
}

static size_t held(const struct inspection *i)
{
	return PIECES_ROOM + i->masks.n_held;
}

/* The end of a body that came too early, or as it should. */
static bool take_end(struct inspection *i)
{
	if (i->got.framing == HTTP_TO_END && i->up.is_ended) {
		i->got.is_done = true;
		return end_body(i);
	}
	if (!i->up.is_ended && !i->up.is_broken)
		return false;
	/* The box must see that it was cut: no proper end, of HTTP or TLS. */
	inspect_end(i, GATE_R_RESET);
	return true;
}

static bool take_body(struct inspection *i)
{
	bool moved = false;
	size_t len, room, need = held(i);
	const char *data = side_data(&i->up, &len);

	while (len > 0 && !i->got.is_done &&
	       (room = side_room(&i->box)) > need) {
		struct http_slice piece;
		ssize_t n = http_body_take(&i->got, data, MIN(len, room - need),
					   &piece);

		if (n < 0) {
			(void)snprintf(i->base.detail, sizeof(i->base.detail),
				       "an answer whose body is not framed as "
				       "it should");
			inspect_end(i, GATE_R_HTTP);
			return true;
		}
		secret_masks_feed(&i->masks, piece.at, piece.len, put_piece, i);
		side_take(&i->up, (size_t)n);
		data = side_data(&i->up, &len);
		need = held(i);
		moved = true;
	}
	if (i->got.is_done && side_room(&i->box) > need)
		return end_body(i);
	return moved || (len == 0 && take_end(i));
}

/*
 * Upstream between requests: bytes that nobody asked for, or an end. Before
 * the first request it is kept open, so that the request can be told why.
 */
static bool take_nothing(struct inspection *i)
{
	size_t len;

	(void)side_data(&i->up, &len);
	if (i->n_exchanges == 0 || i->request != REQUEST_HEAD ||
	    (len == 0 && !i->up.is_ended && !i->up.is_broken))
		return false;
	inspect_close(i);
	return true;
}

bool inspect_answer(struct inspection *i)
{
	static bool (*const take[])(struct inspection *) = {
		[ANSWER_NONE] = take_nothing,
		[ANSWER_HEAD] = take_head,
		[ANSWER_BODY] = take_body,
		[ANSWER_WHOLE] = take_next,
		[ANSWER_SOCKET] = inspect_socket_down,
	};

	bool moved = take[i->answer](i);

	/* An answer with bytes left out would look whole. */
	if (i->box.out.error && !i->is_over)
		inspect_end(i, GATE_R_FULL);
	return moved;
}
