/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a gate says to who started it, and hears from it and from its box.
 *
 *	client -- SEQPACKET, descriptor 3 --> gate
 *	init   -- SEQPACKET, descriptor 4 --> gate
 *	desk   -- SEQPACKET, descriptor 5 --> gate, of a daemon's alone
 *
 * A gate serves one box. The client starts cordon-gate with both sockets and
 * sends a table; init, which makes the sockets inside the box's network
 * namespace while it still may, sends them as soon as the program is about
 * to start, and closes its end. What connects before is kept by the kernel.
 * The gate ends when the client's end is closed, and takes every connection
 * with it. A client that wants the last records says shutdown(SHUT_WR) and
 * reads to the end: each open connection is told as closed before.
 *
 * Where the table is final the client is not obeyed, so neither does it answer
 * questions: a gate of a daemon's puts them to who started the process, over a
 * socket that no other process has. Without one, nobody can be asked, and the
 * answer is no.
 */

#include <stdint.h>

#include "gate/table.h"

#define GATE_FD_CLIENT 3
#define GATE_FD_BOX    4
#define GATE_FD_DESK   5

/* Its second argument, where it has that one. */
#define GATE_HAS_DESK "desk"

#define GATE_MAX_QUESTIONS 64 /* destinations that people were asked about */

enum gate_type {
	/* client -> gate */
	GATE_TABLE = 1, /* fd: a table; again: it replaces the first */
	GATE_ANSWER,    /* struct gate_answer */
	/* gate -> client */
	GATE_CA,    /* fd: PEM of the box's own authority; see gate_ca */
	GATE_EVENT, /* struct gate_event */
	/*
	 * Wants an answer to its `number`: a struct gate_event, or to the desk
	 * a struct gate_ask.
	 */
	GATE_ASKED,
	GATE_FAILED, /* struct gate_event, `why`: no connection will be made */
	/* init -> gate */
	GATE_SOCKETS, /* struct gate_sockets; fds as it says */
	/* gate -> client */
	GATE_TAKEN, /* struct gate_head: the table of this number is in force */
	/* client -> gate */
	GATE_CUT, /* struct gate_head: what is open ends with the client's end,
		   * also what the box has sent and is still to go out */
};

struct gate_head {
	uint32_t type;
	uint32_t number;
};

/* GATE_CA: only if a rule inspects, after the first table. */
struct gate_ca {
	struct gate_head head;
	uint32_t subject_hash; /* as OpenSSL names files in a directory */
};

struct gate_answer {
	struct gate_head head; /* `number` of what was asked */
	uint32_t is_allowed;
};

/* Numbers rise from 1, and each is asked about once. */
struct gate_ask {
	struct gate_head head;
	uint32_t port;
	char host[GATE_HOST_MAX]; /* a name, or the text of an address */
};

/*
 * Sockets in order: DNS over UDP and TCP, for IPv4 and then IPv6, then for
 * each port of the table the same two, all TCP listeners; then, where
 * `has_watch` says so, those that see what none of these hears (unheard.h): TCP
 * and UDP, for IPv4 and then IPv6. Where the machine has no IPv6, those are
 * left out.
 */
struct gate_sockets {
	struct gate_head head;
	uint32_t n_ports;
	uint32_t has_ipv6;
	uint32_t has_watch;
};

enum gate_event_kind {
	GATE_E_NAME,    /* a name that was refused by the resolver */
	GATE_E_OPEN,    /* only in GATE_ASKED: one that would be made */
	GATE_E_CLOSE,   /* the end of one: bytes, time, why */
	GATE_E_DENIED,  /* a connection that was refused */
	GATE_E_REQUEST, /* one HTTP request of an inspected connection */
	GATE_E_SECRET,  /* a placeholder was sent where it is not meant for */
	GATE_E_MORE,    /* `count` refusals that were not told one by one */
	GATE_EVENT_KINDS,
};

/* Why; text for people and programs is in gate/reason.h. */
enum gate_reason {
	GATE_OK,
	GATE_R_NO_RULE,    /* no rule names host and port */
	GATE_R_METADATA,   /* never, whatever a policy says */
	GATE_R_PRIVATE,    /* the name leads to an address that is not public */
	GATE_R_NOT_A_NAME, /* bytes that no host name has */
	GATE_R_RESOLVE,    /* outside, the name could not be resolved */
	GATE_R_UNREACHABLE,  /* nobody answered at its addresses */
	GATE_R_SERVER_NAME,  /* TLS is for another name */
	GATE_R_NO_NAME,      /* TLS without a name, or one that is hidden */
	GATE_R_HTTP_HOST,    /* HTTP is for another host */
	GATE_R_HTTP,         /* HTTP that can be read in two ways */
	GATE_R_METHOD,       /* no rule allows this method */
	GATE_R_PATH,         /* no rule allows this path */
	GATE_R_OVERRIDE,     /* a header that says another method or path */
	GATE_R_BYTES,        /* quota */
	GATE_R_CONNECTIONS,  /* quota */
	GATE_R_RATE,         /* quota */
	GATE_R_TIME,         /* too slow to say what it wants */
	GATE_R_CERTIFICATE,  /* upstream's could not be verified */
	GATE_R_PLACEHOLDER,  /* a secret's placeholder where it may not be */
	GATE_R_CLEAR,        /* a secret's host, without TLS */
	GATE_R_NOT_APPROVED, /* asked, and refused or not answered */
	GATE_R_REPLACED,     /* a new policy does not allow it any more */
	GATE_R_FULL,         /* the gate's own tables are full */
	GATE_R_RESET,        /* one side broke it off */
	GATE_R_LEFT,         /* before it was let through; nothing was sent */
	GATE_R_PORT,         /* a port that nobody listens on */
	GATE_R_UDP,          /* there is none */
	GATE_R_ADDRESS,      /* one without a route; `count` of them */
	GATE_R_NO_HTTP1,     /* TLS offers other protocols alone */
	GATE_REASONS,
};

enum gate_event_flag {
	/* GATE_E_REQUEST, GATE_E_SECRET: at least the request's head went out;
	 * the reason is what ended it. */
	GATE_EVENT_OUT = 1,
	/* Another event of the same connection says the same: one denial. */
	GATE_EVENT_AGAIN = 2,
};

struct gate_event {
	struct gate_head head; /* `number`: of the connection, 0: none */
	uint8_t kind;          /* enum gate_event_kind */
	uint8_t reason;        /* enum gate_reason */
	uint16_t port;
	int32_t rule;        /* of the table, -1: none */
	uint8_t address[16]; /* that was dialled, or refused; 0: none */
	uint64_t sent;       /* by the box */
	uint64_t received;
	uint64_t us;     /* how long it was open */
	uint64_t count;  /* GATE_E_MORE, GATE_R_ADDRESS: how many */
	uint32_t status; /* GATE_E_REQUEST: of the answer, 403 if it is ours */
	uint32_t flags;  /* enum gate_event_flag */
	char host[GATE_HOST_MAX]; /* as resolved; text of an address */
	char method[16];
	char path[512];   /* never with a query */
	char detail[128]; /* which name TLS was for, which secret ... */
};
