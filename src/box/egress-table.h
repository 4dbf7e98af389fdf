/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a box may reach, as the table that its gate obeys (gate/table.h).
 *
 *	if (egress_is_wanted(policy, spec))
 *		egress_table_make(policy, spec, run, &t, &err);
 *	...     t.fd to the gate, t.env into the box, t.ports to its init
 *	egress_table_done(&t);
 *
 * Without a policy, the hosts of --allow-host and --secret. With one, what it
 * allows and asks; where the request names hosts, only what both name, by the
 * policy's rules.
 *
 * Real values of secrets are in the memfd, and nowhere else: not in t.table,
 * whose `value` offsets are 0. A box, and its init, get neither of the two.
 */

#include "base/err.h"
#include "base/strv.h"
#include "box/spec.h"
#include "gate/table.h"
#include "policy/policy.h"

/* A block of addresses that a rule names: to be routed to lo. */
struct egress_block {
	uint8_t address[16]; /* IPv4 as ::ffff:a.b.c.d */
	uint8_t bits;        /* 0 to 128 */
};

struct egress_table {
	int fd;                   /* sealed */
	struct gate_table *table; /* the same without values of secrets */
	struct egress_block blocks[GATE_MAX_RULES];
	size_t n_blocks;
	bool inspects;     /* a GATE_CA will come */
	struct strv env;   /* NAME=placeholder, for the box */
	struct strv notes; /* secrets that are not there: to be told */
};

/* Whether the box gets a network at all; else it has none, as ever. */
bool egress_is_wanted(const struct policy *p, const struct cordon_spec *s);

/*
 * On failure nothing is left to release. Values come from our environment.
 * `before` is the table that this one replaces, or NULL: what the box has as
 * placeholders stays what they are.
 */
int egress_table_make(const struct policy *p, const struct cordon_spec *s,
		      const char *run, const struct egress_table *before,
		      struct egress_table *ret, struct err *err);
void egress_table_done(struct egress_table *t);

/* "api.test:443", for the ledger and result: one for each host and port. */
int egress_table_hosts(const struct egress_table *t, struct strv *ret);
