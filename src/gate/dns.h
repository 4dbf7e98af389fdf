/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The box's resolver, one question at a time and without forwarding any: a name
 * that a rule names gets its synthetic address, each other one does not exist.
 * Packets are taken apart and put together by ldns. Pure but for `names`.
 */

#include "gate/names.h"
#include "gate/wire.h"

#define DNS_MAX_QUERY  1232 /* more is no question */
#define DNS_MAX_ANSWER 1232
#define DNS_TTL        60

struct dns_view {
	const struct gate_table *table;
	struct names *names;
	bool has_ipv6;
};

/* What was refused, for an event; reason GATE_OK: nothing was. */
struct dns_refusal {
	enum gate_reason reason;
	int rule;
	char host[GATE_HOST_MAX];
};

/* The length of the answer; 0: what came deserves none. */
size_t dns_answer(const struct dns_view *v, const uint8_t *query, size_t len,
		  uint8_t ret[DNS_MAX_ANSWER], struct dns_refusal *ret_refusal);
