/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What tests of the way out share: names, a table of rules, one dial. */

#include "base/clock.h"
#include "base/util.h"
#include "gate-dns.h"
#include "gate-lab.h"
#include "gate/dial.h"
#include "gate/resolve.h"
#include "gate/upstream.h"
#include "tap.h"

#define A    LDNS_RR_TYPE_A
#define AAAA LDNS_RR_TYPE_AAAA

static const struct dns_row rows[] = {
	{ "ok.test", A, DNS_SAYS, "ok.test. 60 IN A 127.0.0.1" },
	{ "ok.test", AAAA, DNS_SAYS, "" },
	{ "zero.test", A, DNS_SAYS, "zero.test. 0 IN A 127.0.0.1" },
	{ "zero.test", AAAA, DNS_SAYS, "" },
	{ "six.test", A, DNS_SAYS, "" },
	{ "six.test", AAAA, DNS_SAYS, "six.test. 60 IN AAAA ::1" },
	{ "both.test", A, DNS_SAYS, "both.test. 60 IN A 127.0.0.1" },
	{ "both.test", AAAA, DNS_SAYS, "both.test. 60 IN AAAA ::1" },
	{ "half.test", A, DNS_SAYS, "half.test. 60 IN A 127.0.0.1" },
	{ "half.test", AAAA, DNS_FAILS, "" },
	{ "slow6.test", A, DNS_SAYS, "slow6.test. 60 IN A 127.0.0.1" },
	{ "slow6.test", AAAA, DNS_SILENT, "" },
	{ "alias.test", A, DNS_SAYS,
	  "Alias.Test. 60 IN CNAME b.test.\nb.test. 60 IN CNAME c.test.\n"
	  "c.test. 60 IN A 127.0.0.1\nd.test. 60 IN A 127.0.0.2" },
	{ "loop.test", A, DNS_SAYS,
	  "loop.test. 60 IN CNAME loop2.test.\n"
	  "loop2.test. 60 IN CNAME loop.test." },
	{ "long.test", A, DNS_SAYS,
	  "long.test. 60 IN CNAME 1.x.\n1.x. 60 IN CNAME 2.x.\n"
	  "2.x. 60 IN CNAME 3.x.\n3.x. 60 IN CNAME 4.x.\n"
	  "4.x. 60 IN CNAME 5.x.\n5.x. 60 IN CNAME 6.x.\n"
	  "6.x. 60 IN CNAME 7.x.\n7.x. 60 IN CNAME 8.x.\n"
	  "8.x. 60 IN CNAME 9.x.\n9.x. 60 IN A 127.0.0.1" },
	{ "stranger.test", A, DNS_SAYS, "other.test. 60 IN A 127.0.0.1" },
	{ "fail.test", 0, DNS_FAILS, "" },
	{ "silent.test", 0, DNS_SILENT, "" },
	{ "garbage.test", 0, DNS_GARBAGE, "garbage.test. 60 IN A 127.0.0.1" },
	{ "big.test", A, DNS_TRUNCATES, "big.test. 60 IN A 127.0.0.1" },
	{ "cut.test", 0, DNS_ALWAYS_TRUNCATES, "" },
	{ "hang.test", 0, DNS_HANGS_UP, "hang.test. 60 IN A 127.0.0.1" },
	{ "huge.test", 0, DNS_HUGE, "huge.test. 60 IN A 127.0.0.1" },
	{ "forged.test", A, DNS_FORGED_BEFORE,
	  "forged.test. 60 IN A 127.0.0.1" },
	{ "private.test", A, DNS_SAYS,
	  "private.test. 60 IN A 10.1.2.3\n"
	  "private.test. 60 IN A 192.168.1.1" },
	{ "private6.test", AAAA, DNS_SAYS,
	  "private6.test. 60 IN AAAA 64:ff9b::7f00:1" },
	{ "meta.test", A, DNS_SAYS,
	  "meta.test. 60 IN A 127.0.0.9\nmeta.test. 60 IN A 168.63.129.16" },
	{ "mixed.test", A, DNS_SAYS,
	  "mixed.test. 60 IN A 10.1.2.3\nmixed.test. 60 IN A 127.0.0.1" },
	{ "public.test", A, DNS_SAYS, "public.test. 60 IN A 11.0.0.2" },
	{ "public.test", AAAA, DNS_SAYS, "public.test. 60 IN AAAA 2600::2" },
	{ "dark6.test", A, DNS_SAYS, "dark6.test. 60 IN A 11.0.0.2" },
	{ "dark6.test", AAAA, DNS_SAYS, "dark6.test. 60 IN AAAA 2600::dead" },
	{ "late4.test", A, DNS_LATE, "late4.test. 60 IN A 11.0.0.2" },
	{ "late4.test", AAAA, DNS_SAYS, "late4.test. 60 IN AAAA 2600::dead" },
	{ "own.test", A, DNS_SAYS, "own.test. 60 IN A 11.0.0.1" },
	{ "own6.test", AAAA, DNS_SAYS, "own6.test. 60 IN AAAA 2600::1" },
	{ NULL, 0, 0, NULL },
};

static struct dns dns;
/* Where addresses are translated, by a prefix of 96 bits. */
#define NAT64_ROWS                                                             \
	{ "nat64-lan.test", A, DNS_SAYS, "" },                                 \
		{ "nat64-lan.test", AAAA, DNS_SAYS,                            \
		  "nat64-lan.test. 60 IN AAAA 2a00:64:64::a00:1" },            \
		{ "nat64-public.test", A, DNS_SAYS, "" },                      \
	{                                                                      \
		"nat64-public.test", AAAA, DNS_SAYS,                           \
			"nat64-public.test. 60 IN AAAA 2a00:64:64::808:808"    \
	}

static const struct dns_row no_site_rows[] = {
	NAT64_ROWS,
	{ NULL, 0, DNS_NX, NULL },
};

static const struct dns_row site_rows[] = {
	NAT64_ROWS,
	{ "ipv4only.arpa", AAAA, DNS_SAYS,
	  "ipv4only.arpa. 60 IN AAAA 2a00:64:64::c000:aa\n"
	  "ipv4only.arpa. 60 IN AAAA 2a00:64:64::c000:ab" },
	{ NULL, 0, DNS_NX, NULL },
};

static const struct dns_row mute_rows[] = {
	NAT64_ROWS,
	{ "ipv4only.arpa", AAAA, DNS_SILENT, "" },
	{ NULL, 0, DNS_NX, NULL },
};

static struct resolve_conf conf;
static uv_loop_t *loop;

/* A table that allows 127.0.0.0/30 and ::1 at `port`. */
static struct {
	struct gate_table t;
	char text[64];
} table;

static inline void table_rule(const uint8_t address[16], unsigned int bits,
			      uint16_t port)
{
	struct gate_rule *r = &table.t.rules[table.t.n_rules++];

	*r = (struct gate_rule){ .kind = GATE_ADDRESS,
				 .bits = (uint8_t)bits,
				 .n_ports = 1,
				 .host = sizeof(table.t),
				 .ports = { port } };
	memcpy(r->address, address, 16);
}

static inline void table_set(uint16_t port)
{
	static const uint8_t v4[16] = { [10] = 0xff, 0xff, 127 };
	static const uint8_t v6[16] = { [15] = 1 };

	memset(&table, 0, sizeof(table));
	table.t.magic = GATE_TABLE_MAGIC;
	table.t.size = sizeof(table);
	(void)strcpy(table.text, "api.test");
	table_rule(v4, 126, port);
	table_rule(v6, 128, port);
}

static inline void start(const char *hosts)
{
	struct err err = { 0 };

	CHECK(dns_start(&dns, rows));
	conf = (struct resolve_conf){ .n_servers = 1,
				      .timeout_ms = 200,
				      .attempts = 2 };
	conf.servers[0].in4.sin_family = AF_INET;
	conf.servers[0].in4.sin_port = htons(dns.port);
	conf.servers[0].in4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	loop = uv_default_loop();
	CHECK_INT(upstream_setup(loop, &conf, hosts, strlen(hosts), &err), 0);
}

struct told {
	int n;
	struct dialled d;
	char address[64];
	int64_t ms;
};

static inline void on_dialled(void *arg, const struct dialled *d)
{
	struct told *t = arg;

	t->n++;
	t->d = *d;
	address_text(d->address, t->address);
}

/* Nothing stays behind: a loop that ends has no handle that is active. */
static inline struct told dial(const char *name, uint16_t port)
{
	struct told t = { 0 };
	int64_t begin = clock_us();

	CHECK(dial_name(&table.t, name, port, on_dialled, &t) != NULL);
	CHECK_INT(t.n, 0);
	(void)uv_run(loop, UV_RUN_DEFAULT);
	t.ms = (clock_us() - begin) / 1000;
	CHECK_INT(t.n, 1);
	CHECK((t.d.fd >= 0) == (t.d.reason == GATE_OK));
	return t;
}

static inline void expect(const char *name, uint16_t port,
			  enum gate_reason want, const char *address)
{
	struct told t = dial(name, port);

	if (t.d.reason != want ||
	    (address && strcmp(t.address, address) != 0)) {
		printf("# %s: %d at %s, not %d at %s\n", name, (int)t.d.reason,
		       t.address, (int)want, address ? address : "any");
		tap_bad++;
	}
	fd_close(&t.d.fd);
}
