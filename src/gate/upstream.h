/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The way out: a name is resolved once, outside, each address is judged, and
 * only a judged address is dialled (first IPv6 and IPv4 by turns, RFC 8305).
 * Nothing here reads a file after upstream_init().
 */

#include <uv.h>

#include "gate/address.h"
#include "gate/table.h"
#include "gate/wire.h"

/* Reads resolv.conf and hosts of the machine, now and never again. */
int upstream_init(uv_loop_t *loop, struct err *err);
/* The same with another's; the hosts text is copied. For tests. */
struct resolve_conf;
int upstream_setup(uv_loop_t *loop, const struct resolve_conf *conf,
		   const char *hosts, size_t len, struct err *err);

/* Connections that one box has on the way at the same time. */
#define DIAL_MAX 512
/* Descriptors that each of them has at most: six connects, or two questions. */
#define DIAL_MAX_FDS 6

struct dial;

struct dialled {
	int fd; /* connected, not blocking; -1: see `reason` */
	enum gate_reason reason;
	uint8_t address[16]; /* dialled; or the first that was refused */
	uint16_t port;
};

typedef void dialled_fn(void *arg, const struct dialled *d);

/*
 * Dials `name`, which a rule of the table allows. The function is called
 * once, never from inside, unless dial_cancel() comes first; `d` is gone when
 * it is called, and so is the dial. NULL: no memory, or too many already.
 *
 * A name may lead to an address that is not public only where a rule of the
 * table allows that address and port by itself, or network.resolve says so.
 * `t` is looked at until then: cancel before it goes.
 */
struct dial *dial_name(const struct gate_table *t, const char *name,
		       uint16_t port, dialled_fn *fn, void *arg);
/* An address that a rule names explicitly. */
struct dial *dial_address(const uint8_t address[16], uint16_t port,
			  dialled_fn *fn, void *arg);
void dial_cancel(struct dial *d); /* NULL is fine */
