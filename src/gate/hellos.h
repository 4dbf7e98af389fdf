/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The second hello of a TLS connection that is relayed. A server that cannot
 * use what the first one offers asks for another (HelloRetryRequest, RFC 8446,
 * 4.1.4), and takes the name from that: it must be judged as the first was.
 *
 * Both directions are shown to this, from the box's first byte on, until the
 * server has said which it is: an ordinary answer is the end of it, and that
 * is the first packet that comes back. Pure but for the memory of a second
 * hello.
 */

#include "gate/peek.h"

#define HELLOS_RANDOM 38 /* a server's hello up to the end of its random */

/* Records of TLS, in whatever pieces they come. */
struct records {
	uint8_t head[5];
	uint8_t n_head;
	uint32_t left; /* of the record whose head is there */
};

enum hellos_state {
	HELLOS_OVER,   /* nothing is to be seen any more */
	HELLOS_FIRST,  /* the first hello goes out */
	HELLOS_ANSWER, /* its server has not said enough yet */
	HELLOS_AGAIN,  /* it wants another */
};

struct hellos {
	enum hellos_state state;
	struct records box;
	struct records up;
	uint32_t n_first;  /* of the first hello, so many are through ... */
	uint32_t of_first; /* ... of so many */
	uint8_t said[HELLOS_RANDOM];
	uint8_t n_said;
	bool is_odd; /* what the server says is no TLS */
	uint8_t *again;
	size_t n_again;
};

enum hellos_seen {
	HELLOS_PASS,
	HELLOS_JUDGE, /* the second one is whole, and to be judged */
	HELLOS_BAD,   /* one that nobody asked for, or that cannot be read */
};

void hellos_start(struct hellos *h);
void hellos_done(struct hellos *h);

/* What the box says next, before it goes on. */
enum hellos_seen hellos_box(struct hellos *h, const uint8_t *data, size_t len,
			    struct peek *ret);
/* What the server says next, before it goes on. */
void hellos_up(struct hellos *h, const uint8_t *data, size_t len);

static inline bool hellos_want_box(const struct hellos *h)
{
	return h->state != HELLOS_OVER;
}

static inline bool hellos_want_up(const struct hellos *h)
{
	return (h->state == HELLOS_FIRST || h->state == HELLOS_ANSWER) &&
	       !h->is_odd;
}
