/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The connections of a box. Each goes through these states, or ends:
 *
 *	asking	a person decides whether it may be made at all
 *	first	its first bytes tell which name is meant (conn-first.c)
 *	dialling	upstream.h makes the other half
 *	relaying	bytes go both ways (conn-relay.c)
 *	inspected	inspect.h has both descriptors
 *
 * A program that waits for the server to speak is dialled for after a short
 * silence; its own first bytes are judged when they come.
 *
 * Connections live in a fixed table. One that is over goes back there as soon
 * as the loop has let go of its handles.
 */

#include "gate/gate.h"
#include "gate/hellos.h"
#include "gate/inspect.h"
#include "gate/peek.h"
#include "gate/relay.h"
#include "gate/secret.h"
#include "gate/upstream.h"

/* Milliseconds. */
#define CONN_SILENCE_MS 50      /* who says nothing waits for the server */
#define CONN_FIRST_MS   10000   /* to say it all, from the first byte on */
#define CONN_IDLE_MS    3600000 /* nothing in either direction */
#define CONN_HALF_MS    300000  /* the same when one direction has ended */

/* Of each: the box and a race of dials, or two sockets. */
#define CONN_FDS       7
#define CONN_OTHER_FDS 256

enum conn_state {
	CONN_FREE,
	CONN_ASKING,
	CONN_FIRST,
	CONN_DIALLING,
	CONN_RELAYING,
	CONN_INSPECTED,
	CONN_OVER,
};

struct conn {
	struct gate *gate;
	enum conn_state state;
	uint32_t number;
	uint32_t question;
	int rule;
	uint16_t port;
	bool is_address;     /* dialled as one, so no name has to agree */
	bool is_counted;     /* in usage */
	bool is_open;        /* it was allowed and dialled */
	bool is_judged;      /* its first bytes agree */
	bool is_told;        /* why it ends, by an event of its own */
	enum peeked first;   /* what they are, then */
	uint8_t address[16]; /* that the box dialled, then ours */
	int64_t since;
	int64_t active;
	char host[GATE_HOST_MAX];
	char detail[128];

	int box;
	int up;
	uv_poll_t box_poll;
	uv_poll_t up_poll;
	int box_events;
	int up_events;
	uv_timer_t timer;
	int n_handles;

	/* First bytes: how many were seen, and those that went on already. */
	bool is_probed; /* there will be none; does it still listen? */
	size_t n_seen;
	uint8_t *early;
	size_t n_early;
	int64_t first_since;

	struct secret_watch watch; /* of what goes out in clear */
	struct hellos hellos;      /* of TLS that is relayed to a name */
	enum gate_reason again;    /* why its second hello was refused */
	struct dial *dial;
	struct inspection *inspection;
	struct flow out;
	struct flow in;
	uint64_t sent;
	uint64_t received;
};

struct conns *conns_new(void);
/* Judges a new connection; `fd` is its from here on. */
void conns_take(struct gate *g, int fd);
/* Somebody was answered: whoever waits for that goes on. */
void conns_answered(struct gate *g);
/* Another table is in force: each open one is judged again. */
void conns_judge_again(struct gate *g);
/*
 * The box is dead: what it has sent still goes out, then each one ends, and
 * with the last of them the process.
 */
void conns_drain(struct gate *g);
/* Every open one ends now, and is told; then the process ends. */
void conns_end(struct gate *g);

/* For the files of connections. */

/* Ends it: tells the client, closes both sides, breaking off unless GATE_OK. */
void conn_over(struct conn *c, enum gate_reason reason);
/* The same, also where inspect.h has it. */
void conn_cut(struct conn *c, enum gate_reason reason);
void conn_event(const struct conn *c, enum gate_event_kind kind,
		enum gate_reason reason, struct gate_event *ret);
void conn_timer(struct conn *c, uv_timer_cb cb, uint64_t ms);
/* How much may wait in one of its two sockets. */
void conn_bound(const struct conn *c, int fd);
/* Begins to watch `fd`; false: it cannot be. */
bool conn_watch(struct conn *c, uv_poll_t *poll, int fd);
void conn_unwatch(struct conn *c, uv_poll_t *poll);

bool conn_must_inspect(const struct conn *c);
/*
 * Whether bytes that go out as they are may: a placeholder in them, also one
 * that began in those before, is of no use to anybody there. What is TLS is not
 * looked at.
 */
bool conn_may_say(struct conn *c, const uint8_t *data, size_t len);
/* They may not: tells so and ends it. */
void conn_refuse_placeholder(struct conn *c);

void first_start(struct conn *c);
/* While it is relayed and its first bytes are still to be judged. */
void first_look(struct conn *c);
/*
 * What goes out of TLS that is relayed; false: another hello, which does not
 * agree, and c->again says why.
 */
bool first_may_say(struct conn *c, const uint8_t *data, size_t len);
void relay_dial(struct conn *c);
/* The first bytes agree: on with them. */
void relay_judged(struct conn *c);
/* Looks at what is relayed where the box has a secret, from now on. */
void relay_watch(struct conn *c);
/* Ends it when nothing moves for long, from now on. */
void relay_idle(struct conn *c);
