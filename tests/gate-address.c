/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which addresses a name may lead to: the first, the last and the neighbours of
 * each special block, and every way of putting IPv4 into IPv6.
 */

#include <arpa/inet.h>

#include "base/util.h"
#include "gate/address.h"
#include "policy/never.h"
#include "tap.h"

static void parse(const char *text, uint8_t ret[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff };

	memcpy(ret, mapped, sizeof(mapped));
	if (inet_pton(AF_INET, text, ret + 12) != 1 &&
	    inet_pton(AF_INET6, text, ret) != 1) {
		printf("# '%s' is no address\n", text);
		exit(1);
	}
}

static void expect(const char *text, enum gate_reason want)
{
	uint8_t address[16];
	enum gate_reason have;

	parse(text, address);
	have = address_judge(address);
	if (have != want) {
		printf("# %s is %d, not %d\n", text, (int)have, (int)want);
		tap_bad++;
	}
	/* A reason and a word for it go together. */
	CHECK((address_block(address) == NULL) == (have == GATE_OK) ||
	      have == GATE_R_METADATA);
}

static void expect_at(const struct address_site *site, const char *text,
		      enum gate_reason want)
{
	uint8_t address[16];
	enum gate_reason have;

	parse(text, address);
	have = address_judge_at(site, address);
	if (have != want) {
		printf("# %s is %d, not %d\n", text, (int)have, (int)want);
		tap_bad++;
	}
}

static void learn(struct address_site *site, const char *text)
{
	uint8_t address[16];

	parse(text, address);
	address_learn(site, address);
}

static void expect_all(const char *const *list, size_t n, enum gate_reason want)
{
	for (size_t i = 0; i < n; i++)
		expect(list[i], want);
}

static const char *const private4[] = {
	"0.0.0.0",         "0.255.255.255",   "10.0.0.0",
	"10.255.255.255",  "100.64.0.0",      "100.127.255.255",
	"127.0.0.1",       "127.255.255.255", "169.254.0.0",
	"169.254.255.255", "172.16.0.0",      "172.31.255.255",
	"192.0.0.0",       "192.0.0.255",     "192.0.2.0",
	"192.0.2.255",     "192.31.196.1",    "192.52.193.1",
	"192.88.99.1",     "192.168.0.0",     "192.168.255.255",
	"192.175.48.1",    "198.18.0.0",      "198.18.0.1",
	"198.19.255.255",  "198.51.100.0",    "198.51.100.255",
	"203.0.113.0",     "203.0.113.255",   "224.0.0.0",
	"239.255.255.255", "240.0.0.0",       "255.255.255.254",
	"255.255.255.255",
};

static const char *const public4[] = {
	"1.0.0.0",         "1.1.1.1",     "9.255.255.255",   "11.0.0.0",
	"100.63.255.255",  "100.128.0.0", "126.255.255.255", "128.0.0.0",
	"169.253.255.255", "169.255.0.0", "172.15.255.255",  "172.32.0.0",
	"192.0.1.0",       "192.0.3.0",   "192.167.255.255", "192.169.0.0",
	"198.17.255.255",  "198.20.0.0",  "198.51.99.255",   "198.51.101.0",
	"203.0.112.255",   "203.0.114.0", "223.255.255.255", "8.8.8.8",
	"93.184.216.34",
};

static const char *const private6[] = {
	/* the registry */
	"::",
	"::1",
	"100::",
	"100::ffff:ffff:ffff:ffff",
	"100:0:0:1::",
	"2001:1::1",
	"2001:1::2",
	"2001:2::",
	"2001:2::1",
	"2001:2:0:ffff:ffff:ffff:ffff:ffff",
	"2001:3::",
	"2001:4:112::",
	"2001:10::",
	"2001:20::",
	"2001:30::",
	"2001:1ff:ffff::",
	"2001:db8::",
	"2001:db8:ffff:ffff::1",
	"2620:4f:8000::",
	"3fff::",
	"3fff:fff:ffff::",
	"5f00::",
	"fc00::",
	"fd00::1",
	"fdff:ffff::",
	"fe80::",
	"fe80::1",
	"febf:ffff::",
	"fec0::",
	"feff::1",
	"ff00::",
	"ff02::1",
	"ffff::",
	/* never handed out */
	"3ffe::1",
	"4000::",
	"8000::1",
	"c000::",
	"e000::",
	"f000::",
	"1fff::",
	"200::1",
	"400::1",
	"0:1::",
};

static const char *const public6[] = {
	"2000::",
	"2001:200::",
	"2001:4860:4860::8888",
	"2606:4700::1111",
	"2001:db7:ffff::",
	"2001:db9::",
	"2003::",
	"2620:4f:7fff::",
	"2620:4f:8001::",
	"2a00:1450:4001::1",
	"3ffd:ffff::",
	"3fff:1000::",
	"2001:200:0:8002::1",
};

/* The same IPv4 address in each form; what is meant must not differ. */
static const char *const loopback_in[] = {
	"::ffff:127.0.0.1",
	"::127.0.0.1",
	"::ffff:0:127.0.0.1",
	"64:ff9b::127.0.0.1",
	"64:ff9b:1::127.0.0.1",
	"2002:7f00:1::",
	"2002:7f00:1::1",
	/* Teredo: as its server; as its client, every bit turned */
	"2001:0:7f00:1:0:0:f7f7:f7f7",
	"2001:0:808:808:0:0:80ff:fffe",
	/* ISATAP, behind a prefix that is public */
	"2a00:1450::5efe:7f00:1",
	"2a00:1450::200:5efe:7f00:1",
	"64:ff9b::a00:1",
	"64:ff9b::c0a8:101",
	"2002:c0a8:101::",
	"::ffff:10.0.0.1",
	"::ffff:198.18.0.1",
	"64:ff9b::c612:1",
};

/* Public inside: so are translated and 6to4, but nothing that is obsolete. */
static const char *const public_in[] = {
	"::ffff:8.8.8.8",          "64:ff9b::8.8.8.8",
	"2002:808:808::1",         "2001:0:808:808:0:0:f7f7:f7f7",
	"2a00:1450::5efe:808:808",
};

static const char *const obsolete[] = {
	"::8.8.8.8",          "::ffff:0:8.8.8.8",
	"64:ff9b:1::8.8.8.8", "64:ff9b:1:808:8:800::",
	"64:ff9b:2::1",       "64:ff9b::1:808:808",
};

TEST(a1_special_ipv4)
{
	expect_all(private4, ARRAY_SIZE(private4), GATE_R_PRIVATE);
	expect_all(public4, ARRAY_SIZE(public4), GATE_OK);
}

TEST(a2_special_ipv6)
{
	expect_all(private6, ARRAY_SIZE(private6), GATE_R_PRIVATE);
	expect_all(public6, ARRAY_SIZE(public6), GATE_OK);
}

TEST(a3_ipv4_inside)
{
	expect_all(loopback_in, ARRAY_SIZE(loopback_in), GATE_R_PRIVATE);
	expect_all(public_in, ARRAY_SIZE(public_in), GATE_OK);
	expect_all(obsolete, ARRAY_SIZE(obsolete), GATE_R_PRIVATE);
}

/* Every /24 of IPv4 has the same answer in each form that can be public. */
TEST(a4_forms_agree)
{
	for (uint32_t v = 0; v < 1U << 24; v += 7) {
		uint8_t b[3] = { v >> 16, v >> 8, v };
		uint8_t plain[16] = { [10] = 0xff, 0xff, b[0], b[1], b[2], 77 };
		uint8_t nat64[16] = {
			0, 0x64, 0xff, 0x9b, [12] = b[0], b[1], b[2], 77
		};
		uint8_t sixto4[16] = { 0x20, 0x02, b[0], b[1], b[2], 77 };
		enum gate_reason want = address_judge(plain);

		if (address_judge(nat64) != want ||
		    address_judge(sixto4) != want) {
			printf("# %u.%u.%u.77 differs\n", b[0], b[1], b[2]);
			tap_bad++;
			break;
		}
	}
}

static const char *const metadata[] = {
	"169.254.169.254",
	"169.254.170.2",
	"169.254.170.23",
	"100.100.100.200",
	"168.63.129.16",
	"192.0.0.192",
	"fd00:ec2::254",
	"fd00:ec2::23",
	"fd20:ce::254",
	/* by any translator */
	"::ffff:169.254.169.254",
	"::169.254.169.254",
	"::ffff:0:169.254.169.254",
	"64:ff9b::a9fe:a9fe",
	"64:ff9b:1::a9fe:a9fe",
	"64:ff9b:1:a9fe:a9:fe00::",
	"2002:a9fe:a9fe::1",
	"2001:0:a9fe:a9fe::f7f7:f7f7",
	"2001:0:808:808::5601:5601",
	"2a00:1450:4001::a9fe:a9fe",
	"2a00:1450:a9fe:a9fe::",
	"2a00:1450:40a9:fea9:fe::",
	"2a00:1450:4001:a9fe:a9:fe00::",
	"2a00:1450:4001:40a9:fe:a9fe::",
	"2a00:1450:4001:4002:a9:fea9:fe00:0",
	"64:ff9b::a83f:8110",
	"2002:a83f:8110::",
	/* where clouds put it in IPv6 */
	"fe80::a9fe:a9fe",
	"fd00:c1::a9fe:a9fe",
};

TEST(a5_metadata)
{
	uint8_t address[16];

	expect_all(metadata, ARRAY_SIZE(metadata), GATE_R_METADATA);
	for (size_t i = 0; never_addresses[i]; i++) {
		parse(never_addresses[i], address);
		CHECK(address_is_metadata(address));
	}
	parse("168.63.129.17", address);
	CHECK(!address_is_metadata(address));
	parse("169.254.169.253", address);
	CHECK(!address_is_metadata(address));
}

static void expect_text(const char *in, const char *want)
{
	uint8_t address[16];
	char text[64];

	parse(in, address);
	address_text(address, text);
	CHECK_STR(text, want);
}

TEST(a6_text)
{
	uint8_t address[16];

	expect_text("127.0.0.1", "127.0.0.1");
	expect_text("::ffff:10.1.2.3", "10.1.2.3");
	expect_text("2001:DB8:0::1", "2001:db8::1");
	expect_text("64:ff9b::7f00:1", "64:ff9b::7f00:1");
	parse("10.1.2.3", address);
	CHECK_STR(address_block(address), "private");
	parse("64:ff9b::7f00:1", address);
	CHECK_STR(address_block(address), "loopback");
	parse("255.255.255.255", address);
	CHECK_STR(address_block(address), "broadcast");
	parse("4000::", address);
	CHECK_STR(address_block(address), "not assigned");
}

/* RFC 6052 2.4 has these for 192.0.2.33, RFC 7050 those that teach them. */
TEST(a9_a_sites_own_nat64)
{
	static const struct {
		const char *teaches;
		const char *lan, *metadata, *public, *other;
	} rows[] = {
		{ "2a01:db8:c000:aa::", "2a01:db8:a00:1::",
		  "2a01:db8:a9fe:a9fe::", "2a01:db8:808:808::",
		  "2a01:db9:a00:1::" },
		{ "2a01:db8:1c0:0:aa::", "2a01:db8:10a:0:1::",
		  "2a01:db8:1a9:fea9:fe::", "2a01:db8:108:808:8::",
		  "2a01:db8:20a:0:1::" },
		{ "2a01:db8:122:c000:0:aa00::", "2a01:db8:122:a00:0:100::",
		  "2a01:db8:122:a9fe:a9:fe00::", "2a01:db8:122:808:8:800::",
		  "2a01:db8:123:a00:0:100::" },
		{ "2a01:db8:122:3c0:0:aa::", "2a01:db8:122:30a:0:1::",
		  "2a01:db8:122:3a9:fe:a9fe::", "2a01:db8:122:308:8:808::",
		  "2a01:db8:122:40a:0:1::" },
		{ "2a01:db8:122:344:c0:0:aa00:0", "2a01:db8:122:344:a:0:100:0",
		  "2a01:db8:122:344:a9:fea9:fe00:0",
		  "2a01:db8:122:344:8:808:800:0",
		  "2a01:db8:122:345:a:0:100:0" },
		{ "2a01:db8:122:344::c000:ab", "2a01:db8:122:344::a00:1",
		  "2a01:db8:122:344::a9fe:a9fe", "2a01:db8:122:344::808:808",
		  "2a01:db8:122:344:1::a00:1" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct address_site site = { 0 };

		expect_at(&site, rows[i].lan, GATE_OK);
		learn(&site, rows[i].teaches);
		CHECK_INT(site.n, 1);
		expect_at(&site, rows[i].lan, GATE_R_PRIVATE);
		expect_at(&site, rows[i].metadata, GATE_R_METADATA);
		expect_at(&site, rows[i].public, GATE_OK);
		expect_at(&site, rows[i].other, GATE_OK);
	}
}

TEST(a10_what_teaches_nothing)
{
	struct address_site site = { 0 };

	learn(&site, "2a01:db8::1");
	learn(&site, "192.0.0.172");
	CHECK_INT(site.n, 0);
	for (int i = 0; i < 2 * ADDRESS_PREFIXES; i++)
		learn(&site, "2a01:db8::c000:aa");
	CHECK_INT(site.n, ADDRESS_PREFIXES);
	expect_at(&site, "2a01:db8::7f00:1", GATE_R_PRIVATE);
}

TAP_MAIN()
