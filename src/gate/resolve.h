/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Names to addresses, outside of the box: the machine's hosts file, then its
 * nameservers, over UDP and, where an answer does not fit, TCP. Packets are
 * made and read by ldns. `search` is not obeyed: what a rule names is whole.
 *
 * Each question has an id, a socket and so a port of its own, both random;
 * the socket is connected, so only that server's answers arrive, and an answer
 * counts only if it repeats the question.
 *
 * Before the first IPv6 address is told, the site is asked whether it
 * translates some of them to IPv4 (RFC 7050).
 */

#include <uv.h>

#include "gate/address.h"
#include "gate/endpoint.h"
#include "gate/table.h"

#define RESOLVE_SERVERS   3 /* as many as the C library uses */
#define RESOLVE_FAMILY    8 /* addresses of one kind that are kept */
#define RESOLVE_ADDRESSES (2 * RESOLVE_FAMILY)
#define RESOLVE_CHAIN     8 /* CNAME after CNAME */
#define RESOLVE_HOSTS_MAX                                                      \
	(1 << 20)              /* bytes of a hosts file; the rest is not       \
				*/
#define RESOLVE_CACHE     32   /* names that are remembered ... */
#define RESOLVE_CACHE_TTL 60   /* ... for this many seconds at most */
#define RESOLVE_PACKET    4096 /* the longest answer that is read */

/* resolve-files.c: pure but for names of interfaces (fe80::1%eth0). */
struct resolve_conf {
	union endpoint servers[RESOLVE_SERVERS];
	unsigned int n_servers; /* never 0 after parsing: 127.0.0.1 */
	unsigned int timeout_ms;
	unsigned int attempts; /* of each server */
	bool is_tcp;           /* options use-vc */
};

struct addresses {
	unsigned int n;
	uint32_t ttl; /* the smallest, in seconds */
	uint8_t address[RESOLVE_ADDRESSES][16];
};

void resolve_conf_parse(struct resolve_conf *ret, const char *text, size_t len);
/* Adds what the text of a hosts file says about a name, both families. */
void hosts_find(const char *text, size_t len, const char *name,
		struct addresses *ret);

/* resolve-packet.c: pure. */
struct question {
	char name[GATE_HOST_MAX];
	uint16_t type; /* LDNS_RR_TYPE_A, LDNS_RR_TYPE_AAAA */
	uint16_t id;
};

#define QUESTION_MAX 512

enum answered {
	ANSWER_FOUND,
	ANSWER_NONE,      /* there is no such name, or it has no such address */
	ANSWER_FAILED,    /* the server cannot tell: ask another */
	ANSWER_TRUNCATED, /* ask over TCP */
	ANSWER_NOT_OURS,  /* no answer to this question */
};

/* The packet's length, or -errno. */
int question_write(const struct question *q, uint8_t ret[QUESTION_MAX]);
enum answered answer_read(const struct question *q, const uint8_t *packet,
			  size_t len, struct addresses *ret);

/* resolve-ask.c: one question to the servers, until one answers. */
struct ask;

/* `how` is FOUND, NONE or FAILED. */
typedef void asked_fn(void *arg, enum answered how,
		      const struct addresses *found);

/* Called once, never from inside; by then the ask is gone. NULL: no memory. */
struct ask *ask_start(uv_loop_t *loop, const struct resolve_conf *conf,
		      const char *name, uint16_t type, asked_fn *fn, void *arg);
void ask_cancel(struct ask *a); /* NULL is fine */

/* resolve.c */
struct resolve;

/*
 * An answer is remembered as long as it says, and at most a minute; what is
 * remembered is judged again each time.
 *
 * Called once or twice, never from inside; `is_last` for the last time, and
 * by then the resolve is gone. IPv6 is told as soon as it is known, IPv4 only
 * if IPv6 is late (RFC 8305 section 3).
 */
typedef void resolved_fn(void *arg, const struct addresses *found,
			 bool is_last);

/* What to obey; the hosts text is copied. Again: it replaces the first. */
int resolve_setup(uv_loop_t *loop, const struct resolve_conf *conf,
		  const char *hosts, size_t len, struct err *err);
struct resolve *resolve_start(const char *name, resolved_fn *fn, void *arg);
void resolve_cancel(struct resolve *r); /* NULL is fine */
/* The site's NAT64, as far as it is known: asked for with the first AAAA. */
const struct address_site *resolve_site(void);
/* A name in its plain form that can be asked for, and is no address. */
bool resolve_may_ask(const char *name);
