/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which addresses are public. Pure. All are 16 bytes, IPv4 as ::ffff:a.b.c.d;
 * where IPv6 carries an IPv4 address in any known way, that one is judged.
 */

#include <stdbool.h>
#include <stdint.h>

#include "gate/wire.h"

/* Why a name must not lead there: METADATA, PRIVATE; GATE_OK: it is public. */
enum gate_reason address_judge(const uint8_t address[16]);

/*
 * A site's own NAT64 prefixes (RFC 6052), as told by the addresses that
 * ipv4only.arpa has there (RFC 7050). An address behind one is judged as the
 * IPv4 address in it.
 */
#define ADDRESS_PREFIXES 8

struct address_site {
	unsigned int n;
	struct {
		uint8_t net[16];
		uint8_t form;
	} prefixes[ADDRESS_PREFIXES];
};

void address_learn(struct address_site *s, const uint8_t found[16]);
enum gate_reason address_judge_at(const struct address_site *s,
				  const uint8_t address[16]);

/* Never, even if a rule names it. */
bool address_is_metadata(const uint8_t address[16]);
/* The kind of block it lies in ("loopback"), for people; NULL: public. */
const char *address_block(const uint8_t address[16]);
/* As people write it, IPv4 in its own form; at most 46 bytes. */
void address_text(const uint8_t address[16], char ret[64]);
