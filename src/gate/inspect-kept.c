/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A body with a declared field of a secret: it is kept until it is whole, with
 * the head that came before it, since its length has to be said first.
 */

#include <openssl/crypto.h>

#include "base/util.h"
#include "gate/inspect-parts.h"

size_t inspect_kept_max = 32U << 20;
/* Of all connections together. */
static size_t n_kept;

static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";

static const struct inspect_no too_large = {
	.status = 413,
	.reason = GATE_R_HTTP,
	.detail = "a body with a secret's field has 1 MiB at most",
};

static const struct inspect_no too_many = {
	.status = 503,
	.reason = GATE_R_FULL,
	.detail = "too many bodies with a secret's field at the same time",
};

/* What this one has now, as it counts for all; false: that is too much. */
static bool count_kept(struct inspection *i)
{
	size_t n = i->kept.cap + i->whole.len;

	n_kept = n_kept - i->n_kept + n;
	i->n_kept = n;
	return n_kept <= inspect_kept_max;
}

void inspect_forget_kept(struct inspection *i)
{
	if (i->whole.data)
		OPENSSL_cleanse(i->whole.data, i->whole.len);
	buf_done(&i->whole);
	buf_done(&i->kept);
	i->whole_at = 0;
	n_kept -= i->n_kept;
	i->n_kept = 0;
}

bool inspect_keep(struct inspection *i, const char *data)
{
	if (i->head.framing == HTTP_LENGTH &&
	    i->head.length > SECRET_BODY_MAX) {
		inspect_refuse(i, &too_large);
		return true;
	}
	buf_init(&i->kept, HTTP_HEAD_MAX + SECRET_BODY_MAX);
	if (buf_add(&i->kept, data, i->head.size) < 0) {
		inspect_refuse(i, &too_large);
		return true;
	}
	if (!count_kept(i)) {
		inspect_refuse(i, &too_many);
		return true;
	}
	i->kept_head = i->head.size;
	if (i->head.is_waiting)
		(void)buf_puts(&i->box.out, go_on);
	http_body_init(&i->sent, &i->head);
	i->request = REQUEST_KEPT;
	side_take(&i->box, i->head.size);
	return true;
}

/* The table may be another by now, so the head is read and judged again. */
static bool send_kept(struct inspection *i)
{
	struct inspect_no no = { .status = 413, .reason = GATE_R_HTTP };
	const struct http_field *type;
	struct http_slice none = { "", 0 };
	int r;

	r = http_read_request(i->kept.data, i->kept_head, &i->head);
	if (r != 1 || !inspect_judge(i, &no)) {
		inspect_refuse(i, &no);
		return true;
	}
	if (!inspect_reaches(i, &no)) {
		if (no.reason != GATE_OK)
			inspect_refuse(i, &no);
		return no.reason != GATE_OK;
	}
	type = http_find(&i->head, "content-type");
	r = secret_put_body(i->table, i->verdict.applies,
			    secret_is_json(type ? &type->value : &none),
			    i->kept.data + i->kept_head,
			    i->kept.len - i->kept_head, &i->whole);
	if (r < 0 || !count_kept(i)) {
		inspect_refuse(i, r < 0 ? &too_large : &too_many);
		return true;
	}
	if (inspect_begin(i, &i->whole))
		i->request = REQUEST_LEFT;
	return true;
}

/* One piece of it; false: refused. */
static bool keep_piece(struct inspection *i, struct http_slice piece)
{
	static const struct inspect_no foreign = {
		.status = 403,
		.reason = GATE_R_PLACEHOLDER,
		.detail = "a placeholder that may not stand in this body",
	};

	if (i->kept.len - i->kept_head + piece.len > SECRET_BODY_MAX ||
	    buf_add(&i->kept, piece.at, piece.len) < 0)
		inspect_refuse(i, &too_large);
	else if (!count_kept(i))
		inspect_refuse(i, &too_many);
	else if (secret_watch_take(&i->watch, i->table, i->verdict.applies,
				   piece.at, piece.len) >= 0)
		inspect_refuse(i, &foreign);
	else
		return true;
	return false;
}

bool inspect_kept(struct inspection *i)
{
	bool moved = false;
	size_t len;
	const char *data = side_data(&i->box, &len);

	while (len > 0 && !i->sent.is_done) {
		struct http_slice piece;
		ssize_t n = http_body_take(&i->sent, data, len, &piece);

		if (n < 0)
			inspect_refuse(i, &inspect_broken);
		if (n < 0 || !keep_piece(i, piece))
			return true;
		side_take(&i->box, (size_t)n);
		data = side_data(&i->box, &len);
		moved = true;
	}
	return i->sent.is_done ? send_kept(i) : moved;
}

bool inspect_left(struct inspection *i)
{
	size_t n = MIN(side_room(&i->up), i->whole.len - i->whole_at);

	(void)buf_add(&i->up.out, i->whole.data + i->whole_at, n);
	i->up.has_secret = true;
	i->whole_at += n;
	if (i->whole_at == i->whole.len)
		i->request = REQUEST_DONE;
	return n > 0 || i->request == REQUEST_DONE;
}
