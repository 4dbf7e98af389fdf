/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Resolving and dialling, against a nameserver and listeners of this process,
 * and in network namespaces of its own where an address must be public.
 */

#include <malloc.h>

#include "gate-upstream.h"

TEST(u1_resolves_and_dials)
{
	uint16_t port = 0;

	start("");
	(void)listener("127.0.0.1", &port);
	(void)listener("::1", &port);
	table_set(port);
	expect("ok.test", port, GATE_OK, "127.0.0.1");
	expect("six.test", port, GATE_OK, "::1");
	expect("both.test", port, GATE_OK, "::1");
	expect("half.test", port, GATE_OK, "127.0.0.1");
	expect("alias.test", port, GATE_OK, "127.0.0.1");
	expect("forged.test", port, GATE_OK, "127.0.0.1");
	expect("mixed.test", port, GATE_OK, "127.0.0.1");
	CHECK_INT(atomic_load(&dns.n_tcp), 0);
	expect("big.test", port, GATE_OK, "127.0.0.1");
	CHECK_INT(atomic_load(&dns.n_tcp), 1);
}

TEST(u2_fails_closed)
{
	uint16_t port = 0;

	start("");
	(void)listener("127.0.0.1", &port);
	table_set(port);
	expect("nowhere.test", port, GATE_R_RESOLVE, "::");
	expect("loop.test", port, GATE_R_RESOLVE, "::");
	expect("long.test", port, GATE_R_RESOLVE, "::");
	expect("stranger.test", port, GATE_R_RESOLVE, "::");
	expect("fail.test", port, GATE_R_RESOLVE, "::");
	expect("silent.test", port, GATE_R_RESOLVE, "::");
	expect("garbage.test", port, GATE_R_RESOLVE, "::");
	expect("cut.test", port, GATE_R_RESOLVE, "::");
	expect("hang.test", port, GATE_R_RESOLVE, "::");
	expect("huge.test", port, GATE_R_RESOLVE, "::");
}

TEST(u3_judges_each_address)
{
	uint16_t port = 0;

	start("");
	(void)listener("127.0.0.1", &port);
	table_set(port);
	expect("private.test", port, GATE_R_PRIVATE, "192.168.1.1");
	expect("private6.test", port, GATE_R_PRIVATE, "64:ff9b::7f00:1");
	expect("meta.test", port, GATE_R_METADATA, "168.63.129.16");
	/* Allowed at this port only, and it is not forgotten by the cache. */
	expect("ok.test", port, GATE_OK, "127.0.0.1");
	expect("ok.test", (uint16_t)(port + 1), GATE_R_PRIVATE, "127.0.0.1");
	table.t.rules[0].flags = GATE_RULE_ASK;
	expect("ok.test", port, GATE_R_PRIVATE, "127.0.0.1");
	table.t.n_rules = 0;
	expect("ok.test", port, GATE_R_PRIVATE, "127.0.0.1");
	expect("both.test", port, GATE_R_PRIVATE, NULL);
}

TEST(u4_names_that_are_none)
{
	/* 64 bytes: one more than a label may have */
	static const char long_label[] = "0123456789abcdef0123456789abcdef"
					 "0123456789abcdef0123456789abcdef.x";
	static const char *const bad[] = {
		"",
		".",
		"a..b",
		".a",
		"a.",
		"127.0.0.1",
		"2130706433",
		"0x7f000001",
		"0177.0.0.1",
		"127.1",
		"a.0x1",
		"::1",
		"a b",
		"a\tb",
		"A.test",
		"a\\065.test",
		"\xe2\x91\xa0.test",
		"a:1",
		"[::1]",
		"a@b",
		"a%b",
		"a/b",
		long_label,
	};
	char long_name[300];
	uint16_t port = 0;

	start("127.0.0.1 127.1 2130706433\n");
	(void)listener("127.0.0.1", &port);
	table_set(port);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		expect(bad[i], port, GATE_R_NOT_A_NAME, "::");
	for (size_t i = 0; i < 254; i++)
		long_name[i] = i % 2 ? '.' : 'a';
	long_name[254] = '\0';
	long_name[253] = 'a';
	CHECK(!resolve_may_ask(long_name));
	long_name[253] = '\0';
	CHECK(resolve_may_ask(long_name));
	CHECK(resolve_may_ask("_dmarc.a-b.xn--p1ai"));
	CHECK(resolve_may_ask("1.2.3.4.example"));
	CHECK_INT(atomic_load(&dns.n_udp), 0);
}

TEST(u5_hosts_and_names_of_this_machine)
{
	uint16_t port = 0;

	start("127.0.0.1 one.test # 127.0.0.2 no.test\r\n"
	      "::1\tsix.local Six2.Local.\n"
	      "bad line\n10.0.0.1 intern.test one.test.example\n"
	      "169.254.169.254 meta.hosts.test\n127.0.0.1 last.test");
	(void)listener("127.0.0.1", &port);
	(void)listener("::1", &port);
	table_set(port);
	expect("one.test", port, GATE_OK, "127.0.0.1");
	expect("last.test", port, GATE_OK, "127.0.0.1");
	expect("six2.local", port, GATE_OK, "::1");
	expect("intern.test", port, GATE_R_PRIVATE, "10.0.0.1");
	expect("meta.hosts.test", port, GATE_R_METADATA, "169.254.169.254");
	expect("localhost", port, GATE_OK, NULL);
	expect("x.localhost", port, GATE_OK, NULL);
	expect("a.onion", port, GATE_R_RESOLVE, NULL);
	CHECK_INT(atomic_load(&dns.n_udp), 0);
	expect("no.test", port, GATE_R_RESOLVE, NULL);
	CHECK_INT(atomic_load(&dns.n_udp), 2);
	table.t.n_rules = 0;
	expect("localhost", port, GATE_R_PRIVATE, NULL);
	expect("x.localhost", port, GATE_R_PRIVATE, NULL);
}

TEST(u6_the_policys_own_word)
{
	struct told t = { 0 };
	uint16_t port = 0;
	uint8_t meta[16] = { [10] = 0xff, 0xff, 169, 254, 169, 254 };
	uint8_t local[16] = { [10] = 0xff, 0xff, 127, 0, 0, 9 };

	start("");
	(void)listener("127.0.0.9", &port);
	table_set(1);
	table.t.n_resolve = 1;
	table.t.resolve[0] = (struct gate_resolve){ .host = sizeof(table.t),
						    .port = 443,
						    .to_port = port };
	memcpy(table.t.resolve[0].address, local, 16);
	t = dial("api.test", 443);
	CHECK_INT(t.d.reason, GATE_OK);
	CHECK_INT(t.d.port, port);
	CHECK_STR(t.address, "127.0.0.9");
	fd_close(&t.d.fd);
	/* Only that port of it; and never there. */
	expect("api.test", 80, GATE_R_RESOLVE, NULL);
	memcpy(table.t.resolve[0].address, meta, 16);
	expect("api.test", 443, GATE_R_METADATA, "169.254.169.254");
	t.n = 0;
	CHECK(dial_address(meta, 80, on_dialled, &t) != NULL);
	(void)uv_run(loop, UV_RUN_DEFAULT);
	CHECK_INT(t.d.reason, GATE_R_METADATA);
	CHECK(dial_address(local, port, on_dialled, &t) != NULL);
	(void)uv_run(loop, UV_RUN_DEFAULT);
	CHECK_INT(t.d.reason, GATE_OK);
	fd_close(&t.d.fd);
	CHECK_INT(t.n, 2);
	CHECK(dial_address(local, 1, on_dialled, &t) != NULL);
	(void)uv_run(loop, UV_RUN_DEFAULT);
	CHECK_INT(t.d.reason, GATE_R_UNREACHABLE);
}

TEST(u7_remembers_as_long_as_it_may)
{
	uint16_t port = 0;

	start("");
	(void)listener("127.0.0.1", &port);
	table_set(port);
	expect("ok.test", port, GATE_OK, "127.0.0.1");
	expect("ok.test", port, GATE_OK, "127.0.0.1");
	CHECK_INT(atomic_load(&dns.n_udp), 2);
	expect("zero.test", port, GATE_OK, "127.0.0.1");
	expect("zero.test", port, GATE_OK, "127.0.0.1");
	CHECK_INT(atomic_load(&dns.n_udp), 6);
	/* Half an answer is used, not kept. */
	expect("half.test", port, GATE_OK, "127.0.0.1");
	expect("half.test", port, GATE_OK, "127.0.0.1");
	CHECK(atomic_load(&dns.n_udp) >= 6 + 4);
}

TEST(u8_another_server_when_one_is_not_there)
{
	uint16_t port = 0;

	start("");
	conf.servers[1] = conf.servers[0];
	conf.servers[0].in4.sin_port = htons(1);
	conf.n_servers = 2;
	CHECK_INT(upstream_setup(loop, &conf, "", 0, NULL), 0);
	(void)listener("127.0.0.1", &port);
	table_set(port);
	CHECK(dial("ok.test", port).ms < 150);
	expect("big.test", port, GATE_OK, "127.0.0.1");
	conf.is_tcp = true;
	CHECK_INT(upstream_setup(loop, &conf, "", 0, NULL), 0);
	expect("ok.test", port, GATE_OK, "127.0.0.1");
}

/* IPv6 that is not answered does not hold IPv4 up. */
TEST(u9_late_ipv6)
{
	struct told t;
	uint16_t port = 0;

	start("");
	(void)listener("127.0.0.1", &port);
	table_set(port);
	t = dial("slow6.test", port);
	CHECK_INT(t.d.reason, GATE_OK);
	CHECK(t.ms >= 45 && t.ms < 190);
}

static int lowest_free(void)
{
	int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);

	(void)close(fd);
	return fd;
}

/* No descriptor is left; the nameserver's own are closed in a moment. */
static bool is_none_left(int lowest)
{
	for (int i = 0; i < 100 && lowest_free() > lowest; i++)
		(void)usleep(10000);
	if (lowest_free() > lowest)
		printf("# descriptor %d is left\n", lowest);
	return lowest_free() <= lowest;
}

/* Each name, cancelled after so many steps of the loop. */
static void cancel_all(uint16_t port)
{
	static const char *const names[] = { "ok.test",   "silent.test",
					     "big.test",  "slow6.test",
					     "hang.test", "127.0.0.1",
					     "localhost", "private.test" };
	struct told t = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(names) * 6; i++) {
		struct dial *d = dial_name(&table.t, names[i / 6], port,
					   on_dialled, &t);

		t.n = 0;
		for (size_t s = 0; s < i % 6 && !t.n; s++)
			(void)uv_run(loop, UV_RUN_NOWAIT);
		if (t.n)
			fd_close(&t.d.fd);
		else
			dial_cancel(d);
	}
	t.n = 0;
	(void)uv_run(loop, UV_RUN_DEFAULT);
	CHECK_INT(t.n, 0);
	CHECK_INT(uv_loop_alive(loop), 0);
}

TEST(u10_cancel_at_any_time)
{
	uint16_t port = 0;
	size_t most = 12 * 1024; /* less than a dial a round */
	size_t grown = most;
	int lowest;

	start("");
	(void)listener("127.0.0.1", &port);
	table_set(port);
	for (int i = 0; i < 4; i++)
		cancel_all(port);
	lowest = lowest_free();
	/* What is lost is lost each time; what is kept comes once. */
	for (int k = 0; k < 4 && grown >= most; k++) {
		size_t before = mallinfo2().uordblks;

		for (int i = 0; i < 16; i++)
			cancel_all(port);
		grown = MAX(mallinfo2().uordblks, before) - before;
	}
	CHECK(grown < most);
	CHECK(is_none_left(lowest));
}

TEST(u11_so_many_and_no_more)
{
	static struct dial *held[DIAL_MAX];
	struct told t = { 0 };

	start("");
	table_set(1);
	for (int i = 0; i < DIAL_MAX; i++) {
		held[i] = dial_name(&table.t, "a.onion", 1, on_dialled, &t);
		CHECK(held[i] != NULL);
	}
	CHECK(dial_name(&table.t, "a.onion", 1, on_dialled, &t) == NULL);
	for (int i = 0; i < DIAL_MAX; i++)
		dial_cancel(held[i]);
	CHECK(dial_name(&table.t, "a.onion", 1, on_dialled, &t) != NULL);
	(void)uv_run(loop, UV_RUN_DEFAULT);
	CHECK_INT(t.n, 1);
}

TEST(u12_resolv_conf)
{
	static const char text[] =
		"# a comment\nsearch a.example b.example\ndomain c\n"
		"nameserver 192.0.2.53 ; and one\r\n nameserver\t2001:db8::53\n"
		"nameserver not-an-address\nnameserver fe80::1%lo\n"
		"nameserver 192.0.2.54\noptions ndots:5 timeout:9999 attempts:0"
		" rotate\noptions use-vc";
	struct resolve_conf c;

	resolve_conf_parse(&c, text, sizeof(text) - 1);
	CHECK_INT(c.n_servers, 3);
	CHECK_INT(c.servers[0].in4.sin_family, AF_INET);
	CHECK_INT(ntohs(c.servers[0].in4.sin_port), 53);
	CHECK_INT(c.servers[1].in6.sin6_family, AF_INET6);
	CHECK_INT(c.servers[2].in6.sin6_scope_id, 1);
	CHECK_INT(c.timeout_ms, 10000);
	CHECK_INT(c.attempts, 1);
	CHECK(c.is_tcp);
	resolve_conf_parse(&c, "", 0);
	CHECK_INT(c.n_servers, 1);
	CHECK_INT(ntohl(c.servers[0].in4.sin_addr.s_addr), INADDR_LOOPBACK);
	CHECK(c.timeout_ms && c.attempts && !c.is_tcp);
}

/* The linker gives us these names. NOLINTBEGIN(bugprone-reserved-identifier) */
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);

static _Thread_local long fail_at; /* which one from now on; 0: none */

void *__wrap_malloc(size_t size)
{
	return fail_at && --fail_at == 0 ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fail_at && --fail_at == 0 ? NULL : __real_calloc(n, size);
}
/* NOLINTEND(bugprone-reserved-identifier) */

/* Dials with the nth allocation failing; false: there are not so many. */
static bool dial_short(const char *name, uint16_t port, long n)
{
	struct told t = { 0 };
	struct dial *d;

	fail_at = n;
	d = dial_name(&table.t, name, port, on_dialled, &t);
	(void)uv_run(loop, UV_RUN_DEFAULT);
	CHECK_INT(t.n, d ? 1 : 0);
	CHECK_INT(uv_loop_alive(loop), 0);
	if (t.n)
		fd_close(&t.d.fd);
	n = fail_at;
	fail_at = 0;
	return n == 0;
}

TEST(u14_no_memory)
{
	static const char *const names[] = { "both.test", "hang.test",
					     "localhost", "127.0.0.1" };
	uint16_t port = 0;
	int lowest;

	start("");
	conf.timeout_ms = 20;
	CHECK_INT(upstream_setup(loop, &conf, "", 0, NULL), 0);
	(void)listener("127.0.0.1", &port);
	table_set(port);
	expect("both.test", port, GATE_OK, "127.0.0.1");
	lowest = lowest_free();
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		long n = 1;

		/* What is remembered would be found without an allocation. */
		for (; n < 100 && dial_short(names[i], port, n); n++)
			CHECK_INT(upstream_setup(loop, &conf, "", 0, NULL), 0);
		CHECK(n > 3 && n < 100);
	}
	CHECK(is_none_left(lowest));
	expect("both.test", port, GATE_OK, "127.0.0.1");
}

/* A site's own NAT64 is learnt, and what is behind it is judged. */
TEST(u15_the_sites_own_nat64)
{
	uint16_t port = FAR_PORT;

	own_namespaces();
	CHECK(far_side() == 0);
	start("");
	table_set(1);
	dns.rows = no_site_rows;
	expect("nat64-lan.test", port, GATE_R_UNREACHABLE, "::");
	dns.rows = site_rows;
	CHECK_INT(upstream_setup(loop, &conf, "", 0, NULL), 0);
	expect("nat64-lan.test", port, GATE_R_PRIVATE, "2a00:64:64::a00:1");
	expect("nat64-public.test", port, GATE_R_UNREACHABLE, "::");
	/* Nobody says: it is as if there were none. */
	dns.rows = mute_rows;
	CHECK_INT(upstream_setup(loop, &conf, "", 0, NULL), 0);
	expect("nat64-lan.test", port, GATE_R_UNREACHABLE, "::");
}

TEST(u13_public_addresses)
{
	struct told t;
	uint16_t port = FAR_PORT;

	own_namespaces();
	CHECK(far_side() == 0);
	start("");
	(void)listener("11.0.0.1", &port);
	(void)listener("2600::1", &port);
	table_set(1);
	expect("public.test", port, GATE_OK, "2600::2");
	expect("public.test", (uint16_t)(port + 1), GATE_R_UNREACHABLE, "::");
	/* The machine's own addresses are not the world's. */
	expect("own.test", port, GATE_R_PRIVATE, "11.0.0.1");
	expect("own6.test", port, GATE_R_PRIVATE, "2600::1");
	/* Nobody is at the first address: the second one's turn comes. */
	t = dial("dark6.test", port);
	CHECK_INT(t.d.reason, GATE_OK);
	CHECK_STR(t.address, "11.0.0.2");
	CHECK(t.ms >= 240 && t.ms < 600);
	fd_close(&t.d.fd);
	/* An address that comes while the first one is being dialled. */
	t = dial("late4.test", port);
	CHECK_INT(t.d.reason, GATE_OK);
	CHECK_STR(t.address, "11.0.0.2");
	CHECK(t.ms < 600);
	fd_close(&t.d.fd);
}

TAP_MAIN()
