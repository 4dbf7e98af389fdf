/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which addresses a name must not lead to. Two tables: blocks that are not
 * public (the IANA special-purpose registries for IPv4 and IPv6, RFC 6890, and
 * what older RFCs reserve), and forms of IPv6 that carry an IPv4 address, which
 * is then judged itself.
 *
 * Where the registry says "globally reachable" but the nearest router answers
 * instead of the name's owner (PCP, TURN and AS112 anycast, AMT), a block is
 * refused too. A third table has the forms of a site's own NAT64. Of IPv6 only
 * 2000::/3 is handed out: the rest is refused as a whole, so that a range
 * reserved tomorrow is refused today.
 */
#include "gate/address.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/util.h"
#include "policy/never.h"

struct block4 {
	uint32_t net;
	uint8_t bits;
	const char *what;
};

static const struct block4 blocks4[] = {
	{ 0x00000000, 8, "this network" },
	{ 0x0a000000, 8, "private" },
	{ 0x64400000, 10, "shared by a carrier" },
	{ 0x7f000000, 8, "loopback" },
	{ 0xa9fe0000, 16, "link-local" },
	{ 0xac100000, 12, "private" },
	{ 0xc0000000, 24, "protocol assignments" },
	{ 0xc0000200, 24, "documentation" },
	{ 0xc01fc400, 24, "AS112" },
	{ 0xc034c100, 24, "automatic multicast tunnels" },
	{ 0xc0586300, 24, "6to4 relays" },
	{ 0xc0a80000, 16, "private" },
	{ 0xc0af3000, 24, "AS112" },
	{ 0xc6120000, 15, "benchmarking" },
	{ 0xc6336400, 24, "documentation" },
	{ 0xcb007100, 24, "documentation" },
	{ 0xe0000000, 4, "multicast" },
	{ 0xffffffff, 32, "broadcast" },
	{ 0xf0000000, 4, "reserved" },
};

struct block6 {
	uint8_t net[16];
	uint8_t bits;
	const char *what;
};

/* The narrower before the wider. What carries IPv4 was looked at before. */
static const struct block6 blocks6[] = {
	{ { 0 }, 128, "unspecified" },
	{ { [15] = 1 }, 128, "loopback" },
	{ { 0 }, 96, "IPv4-compatible" },
	{ { [8] = 0xff, 0xff }, 96, "IPv4-translated" },
	{ { 0, 0x64, 0xff, 0x9b, 0, 1 }, 48, "local NAT64" },
	{ { 1 }, 64, "discard-only" },
	{ { 1, [7] = 1 }, 64, "dummy" },
	{ { 0x20, 0x01, 0, 2 }, 48, "benchmarking" },
	{ { 0x20, 0x01, 0, 0x10 }, 28, "ORCHID" },
	{ { 0x20, 0x01, 0, 0x20 }, 28, "ORCHID" },
	{ { 0x20, 0x01 }, 23, "protocol assignments" },
	{ { 0x20, 0x01, 0x0d, 0xb8 }, 32, "documentation" },
	{ { 0x26, 0x20, 0, 0x4f, 0x80 }, 48, "AS112" },
	{ { 0x3f, 0xfe }, 16, "6bone" },
	{ { 0x3f, 0xff }, 20, "documentation" },
	{ { 0x5f }, 16, "segment routing" },
	{ { 0xfc }, 7, "private" },
	{ { 0xfe, 0x80 }, 10, "link-local" },
	{ { 0xfe, 0xc0 }, 10, "site-local" },
	{ { 0xff }, 8, "multicast" },
};

/* All that is handed out to anybody, and so all that is public. */
static const struct block6 unicast6 = { { 0x20 }, 3, NULL };

struct carrier {
	struct block6 block;
	uint8_t at[4];  /* which bytes are the IPv4 address */
	uint8_t flip;   /* they are stored with these bits turned */
	bool is_public; /* if the address in it is; or never, by blocks6[] */
};

/* RFC 6052 2.2: where a prefix of 48 bits leaves IPv4 depends on the site. */
static const struct carrier carriers[] = {
	{ { { [10] = 0xff, 0xff }, 96, "" }, { 12, 13, 14, 15 }, 0, true },
	{ { { 0 }, 96, "" }, { 12, 13, 14, 15 }, 0, false },
	{ { { [8] = 0xff, 0xff }, 96, "" }, { 12, 13, 14, 15 }, 0, false },
	{ { { 0, 0x64, 0xff, 0x9b }, 96, "" }, { 12, 13, 14, 15 }, 0, true },
	{ { { 0x20, 0x02 }, 16, "" }, { 2, 3, 4, 5 }, 0, true },
	/* Teredo: its server, and the client behind a NAT. */
	{ { { 0x20, 0x01 }, 32, "" }, { 4, 5, 6, 7 }, 0, true },
	{ { { 0x20, 0x01 }, 32, "" }, { 12, 13, 14, 15 }, 0xff, true },
};

static bool is_in(const uint8_t address[16], const struct block6 *b)
{
	unsigned int whole = b->bits / 8;
	unsigned int rest = b->bits % 8;
	unsigned int mask = (0xff00U >> rest) & 0xff;

	return memcmp(address, b->net, whole) == 0 &&
	       (rest == 0 || ((address[whole] ^ b->net[whole]) & mask) == 0);
}

static uint32_t take4(const uint8_t address[16], const uint8_t at[4],
		      uint8_t flip)
{
	uint32_t v = 0;

	for (unsigned int i = 0; i < 4; i++)
		v = v << 8 | (uint8_t)(address[at[i]] ^ flip);
	return v;
}

static const char *block4_of(uint32_t v)
{
	for (size_t i = 0; i < ARRAY_SIZE(blocks4); i++)
		if ((v ^ blocks4[i].net) >> (32 - blocks4[i].bits) == 0)
			return blocks4[i].what;
	return NULL;
}

/* ISATAP (RFC 5214): any prefix, and IPv4 behind 5efe. */
static bool is_isatap(const uint8_t a[16])
{
	return (a[8] & 0xfc) == 0 && a[9] == 0 && a[10] == 0x5e &&
	       a[11] == 0xfe;
}

static const char *carried(const uint8_t address[16], bool *ret_is_public)
{
	const char *what = NULL;

	for (size_t i = 0; !what && i < ARRAY_SIZE(carriers); i++) {
		const struct carrier *c = &carriers[i];

		if (!is_in(address, &c->block))
			continue;
		what = block4_of(take4(address, c->at, c->flip));
		*ret_is_public = c->is_public;
	}
	if (!what && is_isatap(address))
		what = block4_of(take4(address, carriers[0].at, 0));
	return what;
}

static const char *block6_of(const uint8_t address[16])
{
	for (size_t i = 0; i < ARRAY_SIZE(blocks6); i++)
		if (is_in(address, &blocks6[i]))
			return blocks6[i].what;
	return is_in(address, &unicast6) ? NULL : "not assigned";
}

const char *address_block(const uint8_t address[16])
{
	bool is_public = false;
	bool is_self = is_in(address, &blocks6[0]) ||
		       is_in(address, &blocks6[1]);
	const char *what = is_self ? NULL : carried(address, &is_public);

	if (what || is_public)
		return what;
	return block6_of(address);
}

bool address_is_metadata(const uint8_t address[16])
{
	return never_reached(address);
}

enum gate_reason address_judge(const uint8_t address[16])
{
	if (address_is_metadata(address))
		return GATE_R_METADATA;
	return address_block(address) ? GATE_R_PRIVATE : GATE_OK;
}

/* RFC 6052 2.2: byte 8 is always 0 and carries nothing. */
static const struct {
	uint8_t bits;
	uint8_t at[4];
} forms[] = {
	{ 32, { 4, 5, 6, 7 } },    { 40, { 5, 6, 7, 9 } },
	{ 48, { 6, 7, 9, 10 } },   { 56, { 7, 9, 10, 11 } },
	{ 64, { 9, 10, 11, 12 } }, { 96, { 12, 13, 14, 15 } },
};

/* Where the well-known address stands in several ways, all are believed. */
void address_learn(struct address_site *s, const uint8_t found[16])
{
	const uint32_t known = 0xc00000aa; /* 192.0.0.170 and .171 */

	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		if ((take4(found, forms[i].at, 0) | 1) != (known | 1) ||
		    s->n == ADDRESS_PREFIXES)
			continue;
		memcpy(s->prefixes[s->n].net, found, 16);
		s->prefixes[s->n++].form = (uint8_t)i;
	}
}

enum gate_reason address_judge_at(const struct address_site *s,
				  const uint8_t address[16])
{
	enum gate_reason reason = address_judge(address);

	for (unsigned int i = 0; reason == GATE_OK && i < s->n; i++) {
		uint8_t form = s->prefixes[i].form;
		const uint8_t *at = forms[form].at;
		struct block6 block = { .bits = forms[form].bits };
		uint8_t inner[16] = { [10] = 0xff, 0xff };

		memcpy(block.net, s->prefixes[i].net, sizeof(block.net));
		if (!is_in(address, &block))
			continue;
		for (unsigned int k = 0; k < 4; k++)
			inner[12 + k] = address[at[k]];
		reason = address_judge(inner);
	}
	return reason;
}

void address_text(const uint8_t address[16], char ret[64])
{
	bool is_4 = is_in(address, &carriers[0].block);

	if (!inet_ntop(is_4 ? AF_INET : AF_INET6, is_4 ? address + 12 : address,
		       ret, 64))
		ret[0] = '\0';
}
