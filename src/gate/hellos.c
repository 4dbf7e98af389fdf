/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation: a server that wants another hello takes the next
 * message of the handshake that comes in clear, and steps over everything else
 * (a change of cipher for the sake of middleboxes, early data). So does this.
 * Which of two hellos a server was sent first cannot be told from what it says,
 * so no further message may come before it has said something: no program sends
 * one, since all that may follow a hello at once is early data.
 *
 * After an ordinary answer what follows belongs to one handshake, whose name is
 * known, and is encrypted soon.
 */

#include "gate/hellos.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"

enum {
	RECORD_FIRST = 0x14, /* types of records: from a change of cipher ... */
	RECORD_HANDSHAKE = 0x16,
	RECORD_LAST = 0x18, /* ... to a heartbeat */
	SERVER_HELLO = 2,
};

/* SHA-256 of "HelloRetryRequest": the random of a server that wants one. */
static const uint8_t retry[32] = {
	0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c,
	0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb,
	0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
};

void hellos_start(struct hellos *h)
{
	hellos_done(h);
	h->state = HELLOS_FIRST;
}

void hellos_done(struct hellos *h)
{
	free(h->again);
	*h = (struct hellos){ .state = HELLOS_OVER };
}

/* A piece of one record. */
struct piece {
	const uint8_t *at;
	size_t len;
	bool is_head; /* all of its head came with this */
	bool is_last;
};

/* The next one; false: there is nothing more in `data`. */
static bool next_piece(struct records *r, const uint8_t **data, size_t *len,
		       struct piece *ret)
{
	*ret = (struct piece){ 0 };
	while (r->left == 0 && *len > 0 && !ret->is_head) {
		r->head[r->n_head++] = **data;
		(*data)++;
		(*len)--;
		if (r->n_head < sizeof(r->head))
			continue;
		r->n_head = 0;
		r->left = (uint32_t)r->head[3] << 8 | r->head[4];
		ret->is_head = true;
	}
	ret->at = *data;
	ret->len = MIN(*len, (size_t)r->left);
	*data += ret->len;
	*len -= ret->len;
	r->left -= (uint32_t)ret->len;
	ret->is_last = r->left == 0;
	return ret->len > 0 || ret->is_head;
}

static bool is_record(const struct records *r)
{
	return r->head[1] == 3 ||
	       (r->head[0] >= RECORD_FIRST && r->head[0] <= RECORD_LAST);
}

static bool is_handshake(const struct records *r)
{
	return r->head[0] == RECORD_HANDSHAKE;
}

/* The first hello was judged: it is counted, and must be alone. */
static enum hellos_seen take_first(struct hellos *h, const struct piece *p)
{
	for (size_t i = 0; i < p->len; i++) {
		if (h->state != HELLOS_FIRST)
			return HELLOS_BAD;
		if (h->n_first >= 1 && h->n_first <= 3)
			h->of_first = h->of_first << 8 | p->at[i];
		h->n_first++;
		if (h->n_first >= 4 && h->n_first == 4 + h->of_first)
			h->state = HELLOS_ANSWER;
	}
	return HELLOS_PASS;
}

static bool keep(struct hellos *h, const void *data, size_t len)
{
	if (!h->again)
		h->again = malloc(PEEK_MAX);
	if (!h->again || len > PEEK_MAX - h->n_again)
		return false;
	memcpy(h->again + h->n_again, data, len);
	h->n_again += len;
	return true;
}

/* No server acts on a record before it has all of it. */
static enum hellos_seen take_again(struct hellos *h, const struct piece *p,
				   struct peek *ret)
{
	if ((p->is_head && !keep(h, h->box.head, sizeof(h->box.head))) ||
	    (p->len > 0 && !keep(h, p->at, p->len)))
		return HELLOS_BAD;
	if (!p->is_last)
		return HELLOS_PASS;
	*ret = (struct peek){ 0 };
	switch (peek_tls(h->again, h->n_again, ret)) {
	case PEEK_MORE:
		return HELLOS_PASS;
	case PEEK_TLS:
		return HELLOS_JUDGE;
	case PEEK_HTTP:
	case PEEK_OTHER:
	case PEEK_BAD:
		break;
	}
	return HELLOS_BAD;
}

static enum hellos_seen take_piece(struct hellos *h, const struct piece *p,
				   struct peek *ret)
{
	/* No server goes on after what is no record. */
	if (!is_record(&h->box)) {
		hellos_done(h);
		return HELLOS_PASS;
	}
	if (!is_handshake(&h->box))
		return HELLOS_PASS;
	switch (h->state) {
	case HELLOS_FIRST:
		return take_first(h, p);
	case HELLOS_ANSWER:
		return HELLOS_BAD;
	case HELLOS_AGAIN:
		return take_again(h, p, ret);
	case HELLOS_OVER:
		break;
	}
	return HELLOS_PASS;
}

enum hellos_seen hellos_box(struct hellos *h, const uint8_t *data, size_t len,
			    struct peek *ret)
{
	struct piece p;

	while (h->state != HELLOS_OVER &&
	       next_piece(&h->box, &data, &len, &p)) {
		enum hellos_seen s = take_piece(h, &p, ret);

		if (s == HELLOS_PASS)
			continue;
		hellos_done(h);
		return s;
	}
	return HELLOS_PASS;
}

/* Enough of its first message is there. */
static void read_said(struct hellos *h)
{
	if (memcmp(h->said + 6, retry, sizeof(retry)) != 0) {
		hellos_done(h);
		return;
	}
	h->state = HELLOS_AGAIN;
}

void hellos_up(struct hellos *h, const uint8_t *data, size_t len)
{
	struct piece p;

	while (hellos_want_up(h) && next_piece(&h->up, &data, &len, &p)) {
		size_t n;

		h->is_odd = !is_record(&h->up);
		if (h->is_odd || !is_handshake(&h->up))
			continue;
		n = MIN(p.len, sizeof(h->said) - h->n_said);
		memcpy(h->said + h->n_said, p.at, n);
		h->n_said = (uint8_t)(h->n_said + n);
		h->is_odd = h->n_said > 0 && h->said[0] != SERVER_HELLO;
		if (!h->is_odd && h->n_said == sizeof(h->said))
			read_said(h);
	}
}
