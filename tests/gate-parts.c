/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The gate's parts without its process: names, DNS, first bytes, quotas, the
 * relay.
 */

#include <ldns/ldns.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"
#include "gate-hello.h"
#include "gate-table.h"
#include "gate/dns.h"
#include "gate/events.h"
#include "gate/peek.h"
#include "gate/plain.h"
#include "gate/questions.h"
#include "gate/relay.h"
#include "gate/first-packet.h"
#include "gate/hellos.h"
#include "gate/usage.h"
#include "tap.h"

TEST(plain_names)
{
	static const struct {
		const char *text;
		size_t len;
		const char *want; /* NULL: none */
	} rows[] = {
		{ "API.Example.COM.", 16, "api.example.com" },
		{ "a_b-1.test", 10, "a_b-1.test" },
		{ "evil\0.api.test", 14, NULL },
		{ "", 0, NULL },
		{ ".", 1, NULL },
		{ "a..b", 4, NULL },
		{ ".a", 2, NULL },
		{ "a b", 3, NULL },
		{ "a.test:443", 10, NULL },
		{ "[::1]", 5, NULL },
		{ "u@a.test", 8, NULL },
		{ "127\xe3\x80\x82"
		  "0.0.1",
		  11, NULL },
		{ "a.test..", 8, NULL },
	};
	char name[GATE_HOST_MAX];
	char lengthy[300];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int r = plain_name(rows[i].text, rows[i].len, name);

		CHECK_INT(r, rows[i].want ? 0 : -EINVAL);
		CHECK_STR(name, rows[i].want ? rows[i].want : "");
	}
	memset(lengthy, 'a', sizeof(lengthy));
	CHECK(plain_name(lengthy, 64, name) < 0);
	CHECK(plain_name(lengthy, 63, name) == 0);
	CHECK(plain_name(lengthy, sizeof(lengthy), name) < 0);
}

TEST(names_have_addresses)
{
	struct names *n = names_new();
	uint8_t a[16] = { [10] = 0xff, [11] = 0xff };
	char text[64];
	int first = names_take(n, "a.test");

	CHECK_INT(first, GATE_FIRST);
	CHECK_INT(names_take(n, "b.test"), GATE_FIRST + 1);
	CHECK_INT(names_take(n, "a.test"), GATE_FIRST);
	CHECK_STR(names_get(n, GATE_FIRST + 1), "b.test");
	CHECK(!names_get(n, GATE_FIRST + 2));
	CHECK(!names_get(n, 1));
	names_address4(GATE_FIRST + 1, a + 12);
	CHECK_STR(inet_ntop(AF_INET, a + 12, text, sizeof(text)), "198.18.1.1");
	CHECK_INT(names_number(a), GATE_FIRST + 1);
	names_address6(GATE_FIRST + 1, a);
	CHECK_STR(inet_ntop(AF_INET6, a, text, sizeof(text)), "2001:2::101");
	CHECK_INT(names_number(a), GATE_FIRST + 1);
	/* In the net, but nobody's; outside; not the same bytes in front. */
	a[8] = 1;
	CHECK_INT(names_number(a), 0);
	CHECK(inet_pton(AF_INET6, "2001:3::101", a) == 1);
	CHECK_INT(names_number(a), -1);
	CHECK(inet_pton(AF_INET6, "::ffff:198.20.1.0", a) == 1);
	CHECK_INT(names_number(a), -1);
	names_free(n);
}

TEST(names_have_a_ceiling)
{
	struct names *n = names_new();
	char name[32];

	for (int i = 0; i < GATE_NAMES; i++) {
		(void)snprintf(name, sizeof(name), "n%d.test", i);
		CHECK_INT(names_take(n, name), GATE_FIRST + i);
	}
	CHECK_INT(names_take(n, "more.test"), -ENOSPC);
	CHECK_INT(names_take(n, "n4095.test"), GATE_FIRST + 4095);
	names_free(n);
}

/* DNS */

struct asked {
	struct made_table m;
	struct dns_view v;
	struct dns_refusal refusal;
	ldns_pkt *answer;
};

static void asked_init(struct asked *a)
{
	memset(a, 0, sizeof(*a));
	table_init(&a->m);
	(void)table_rule(&a->m, "api.test", 443);
	(void)table_rule(&a->m, "*.wide.test", 443);
	a->v = (struct dns_view){ .table = &a->m.t,
				  .names = names_new(),
				  .has_ipv6 = true };
}

static void send_query(struct asked *a, const uint8_t *q, size_t len)
{
	uint8_t out[DNS_MAX_ANSWER];
	size_t n = dns_answer(&a->v, q, len, out, &a->refusal);

	ldns_pkt_free(a->answer);
	a->answer = NULL;
	if (n > 0)
		CHECK(ldns_wire2pkt(&a->answer, out, n) == LDNS_STATUS_OK);
}

static void ask(struct asked *a, const char *name, ldns_rr_type type)
{
	ldns_pkt *p = ldns_pkt_query_new(ldns_dname_new_frm_str(name), type,
					 LDNS_RR_CLASS_IN, LDNS_RD);
	uint8_t *wire = NULL;
	size_t len = 0;

	ldns_pkt_set_id(p, 4711);
	ldns_pkt_set_edns_udp_size(p, 1232);
	CHECK(ldns_pkt2wire(&wire, p, &len) == LDNS_STATUS_OK);
	send_query(a, wire, len);
	free(wire);
	ldns_pkt_free(p);
	CHECK(a->answer && ldns_pkt_id(a->answer) == 4711 &&
	      ldns_pkt_qr(a->answer) && ldns_pkt_edns(a->answer) &&
	      ldns_pkt_qdcount(a->answer) == 1);
}

static const char *first_answer(const struct asked *a)
{
	static char text[128];
	ldns_rr_list *l = ldns_pkt_answer(a->answer);
	char *s;

	if (ldns_rr_list_rr_count(l) != 1)
		return "none, or more than one";
	s = ldns_rdf2str(ldns_rr_rdf(ldns_rr_list_rr(l, 0), 0));
	(void)snprintf(text, sizeof(text), "%s", s);
	free(s);
	return text;
}

TEST(dns_names_that_a_rule_names)
{
	struct asked a;

	asked_init(&a);
	ask(&a, "API.test.", LDNS_RR_TYPE_A);
	CHECK_INT(ldns_pkt_get_rcode(a.answer), LDNS_RCODE_NOERROR);
	CHECK_STR(first_answer(&a), "198.18.1.0");
	CHECK_INT(a.refusal.reason, GATE_OK);
	ask(&a, "api.test.", LDNS_RR_TYPE_AAAA);
	CHECK_STR(first_answer(&a), "2001:2::100");
	ask(&a, "x.wide.test.", LDNS_RR_TYPE_A);
	CHECK_STR(first_answer(&a), "198.18.1.1");
	/* No such data, which is not the same as no such name. */
	ask(&a, "api.test.", LDNS_RR_TYPE_TXT);
	CHECK_INT(ldns_pkt_get_rcode(a.answer), LDNS_RCODE_NOERROR);
	CHECK_INT(ldns_pkt_ancount(a.answer), 0);
	a.v.has_ipv6 = false;
	ask(&a, "api.test.", LDNS_RR_TYPE_AAAA);
	CHECK_INT(ldns_pkt_get_rcode(a.answer), LDNS_RCODE_NOERROR);
	CHECK_INT(ldns_pkt_ancount(a.answer), 0);
}

TEST(dns_other_names)
{
	static const char *const names[] = {
		"other.test.", "wide.test.", "xapi.test.",     "api.test.evil.",
		"x.api.test.", "test.",      "b.a.xwide.test", "api\\046test.x",
	};
	struct asked a;

	asked_init(&a);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		ask(&a, names[i], LDNS_RR_TYPE_A);
		CHECK_INT(ldns_pkt_get_rcode(a.answer), LDNS_RCODE_NXDOMAIN);
		CHECK_INT(ldns_pkt_ancount(a.answer), 0);
		CHECK(a.refusal.reason != GATE_OK);
	}
	/* A dot within a label is not the dot between two. */
	ask(&a, "api\\046test.", LDNS_RR_TYPE_A);
	CHECK_INT(ldns_pkt_get_rcode(a.answer), LDNS_RCODE_NXDOMAIN);
	CHECK_INT(a.refusal.reason, GATE_R_NOT_A_NAME);
	CHECK_STR(a.refusal.host, "api\\.test");
	ask(&a, "a\\092b.test.", LDNS_RR_TYPE_A);
	CHECK_STR(a.refusal.host, "a\\\\b.test");
	ask(&a, ".", LDNS_RR_TYPE_A);
	CHECK_INT(a.refusal.reason, GATE_R_NOT_A_NAME);
	CHECK_STR(a.refusal.host, ".");
	ask(&a, "evil\\000.wide.test.", LDNS_RR_TYPE_A);
	CHECK_INT(a.refusal.reason, GATE_R_NOT_A_NAME);
	CHECK_STR(a.refusal.host, "evil?.wide.test");
}

TEST(dns_a_box_can_fill_only_so_much)
{
	struct asked a;
	char name[64];

	asked_init(&a);
	for (int i = 0; i < GATE_NAMES; i++) {
		(void)snprintf(name, sizeof(name), "n%d.wide.test", i);
		(void)names_take(a.v.names, name);
	}
	ask(&a, "more.wide.test.", LDNS_RR_TYPE_A);
	CHECK_INT(ldns_pkt_get_rcode(a.answer), LDNS_RCODE_SERVFAIL);
	CHECK_INT(a.refusal.reason, GATE_R_FULL);
}

TEST(dns_packets_that_are_no_question)
{
	struct asked a;
	uint8_t q[64] = { 1, 2, 0x01, 0 };

	asked_init(&a);
	send_query(&a, q, 11); /* too short for a header */
	CHECK(!a.answer);
	q[2] = 0x81; /* an answer */
	send_query(&a, q, 12);
	CHECK(!a.answer);
	q[2] = 0x01;
	send_query(&a, q, 12); /* no question */
	CHECK(a.answer && ldns_pkt_get_rcode(a.answer) == LDNS_RCODE_FORMERR);
	q[5] = 1; /* one that is not there */
	send_query(&a, q, 12);
	CHECK(a.answer && ldns_pkt_get_rcode(a.answer) == LDNS_RCODE_FORMERR);
	q[2] = 0x29; /* UPDATE, of one zone */
	q[12] = 1, q[13] = 'a', q[16] = 6, q[18] = 1;
	send_query(&a, q, 19);
	CHECK(a.answer && ldns_pkt_get_rcode(a.answer) == LDNS_RCODE_NOTIMPL);
}

/* first bytes */

static void check_tls(const struct hello *h, enum peeked want, const char *name)
{
	uint8_t data[4096];
	size_t n = hello_make(h, data, sizeof(data));
	struct peek p;

	CHECK(n > 0);
	CHECK_INT(peek(data, n, &p), want);
	CHECK_STR(p.name, name);
	CHECK(p.is_hidden == h->is_hidden);
	/* Each beginning of it is only that. */
	for (size_t i = 0; i < n; i++)
		CHECK_INT(peek(data, i, &p), PEEK_MORE);
}

TEST(tls_names)
{
	struct peek p;
	uint8_t old[] = { 0x80, 0x2e, 1, 3, 1, 0, 3 };

	check_tls(&(struct hello){ .name = "API.test" }, PEEK_TLS, "api.test");
	check_tls(&(struct hello){ .name = "api.test", .record = 7 }, PEEK_TLS,
		  "api.test");
	check_tls(&(struct hello){ 0 }, PEEK_TLS, "");
	check_tls(&(struct hello){ .name = "api.test", .is_hidden = true },
		  PEEK_TLS, "api.test");
	CHECK_INT(peek(old, sizeof(old), &p), PEEK_TLS);
	CHECK_STR(p.name, "");
}

TEST(tls_that_is_broken)
{
	uint8_t data[4096] = { 0 };
	struct peek p;
	size_t n = hello_make(&(struct hello){ .name = "api.test",
					       .again = "evil.test" },
			      data, sizeof(data));

	CHECK_INT(peek(data, n, &p), PEEK_BAD);
	CHECK_STR(p.name, "");
	n = hello_make(&(struct hello){ .name = "api.test/x" }, data,
		       sizeof(data));
	CHECK_INT(peek(data, n, &p), PEEK_BAD);
	/* Every byte of a length changed: another name, or none. */
	n = hello_make(&(struct hello){ .name = "api.test" }, data,
		       sizeof(data));
	for (size_t i = 43; i < n - 8; i++) {
		enum peeked got;

		data[i]++;
		got = peek(data, n, &p);
		CHECK(got != PEEK_HTTP && got != PEEK_OTHER);
		data[i]--;
	}
	/* A hello that does not end within what is looked at. */
	memset(data, 0, sizeof(data));
	(void)hello_put(data, 0, 5, 0x1603013fffULL);
	(void)hello_put(data, 5, 4, 0x0100ffffU);
	CHECK_INT(peek(data, sizeof(data), &p), PEEK_BAD);
}

/* Bytes that may have a zero in them. */
struct bytes {
	const char *at;
	size_t len;
	enum peeked want;
};

#define B(text, want)                                                          \
	{                                                                      \
		text, sizeof(text) - 1, want                                   \
	}

/* However they are cut: a part never says more than the whole. */
static void check_bytes(const struct bytes *b)
{
	for (size_t n = 0; n <= b->len; n++) {
		struct peek p;
		enum peeked got = peek((const uint8_t *)b->at, n, &p);

		if (n == b->len && got != b->want)
			printf("# %.*s\n", (int)b->len, b->at);
		CHECK(got == b->want || (n < b->len && got == PEEK_MORE));
		CHECK(!p.is_begun || b->want != PEEK_OTHER);
	}
}

TEST(tls_records_that_some_servers_take)
{
	static const struct bytes rows[] = {
		/* any version */
		B("\x16\2\1\0\x80\1\0\0\x7c", PEEK_BAD),
		B("\x16\0\0\0\x80\1\0\0\x7c", PEEK_BAD),
		B("\x16\x0f\xff\0\1\1\x16\x0f\xff", PEEK_BAD),
		/* something before the hello */
		B("\x15\3\1\0\2\1\x5a\x16\3\1", PEEK_BAD),
		B("\x15\0\0\0\2\1\x5a\x16\3\1", PEEK_BAD),
		B("\x14\3\3\0\1\1\x16\3\1", PEEK_BAD),
		B("\x17\3\3\0\0\x16\3\1", PEEK_BAD),
		B("\x18\3\3\0\3\1\0\0\x16\3\1", PEEK_BAD),
		/* not told yet */
		B("\x16", PEEK_MORE),
		B("\x15\0\0\0\2", PEEK_MORE),
		/* a length, then a packet of another protocol */
		B("\x15\0\0\0\x64\xff\xff\0\x20\0\0\10\0"
		  "9P2000.L",
		  PEEK_OTHER),
		B("\x16\0\xfd\5\17mc.example.test\x63\xdd\1", PEEK_OTHER),
		B("\x17\0\0\0\3user\0", PEEK_OTHER),
		B("\x16\x20\3\1\0\1\xff", PEEK_OTHER),
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check_bytes(&rows[i]);
}

/* Both directions in steps of so many bytes; what the last hello was. */
static enum hellos_seen see_hellos(const uint8_t *first, size_t n_first,
				   const uint8_t *answer, size_t n_answer,
				   size_t step, const struct hello *again)
{
	enum hellos_seen s = HELLOS_PASS;
	struct hellos h = { 0 };
	uint8_t data[512];
	size_t n = hello_make(again, data, sizeof(data));
	struct peek p;

	hellos_start(&h);
	for (size_t i = 0; i < n_first && s == HELLOS_PASS; i += step)
		s = hellos_box(&h, first + i, MIN(step, n_first - i), &p);
	for (size_t i = 0; i < n_answer; i += step)
		hellos_up(&h, answer + i, MIN(step, n_answer - i));
	for (size_t i = 0; i < n && s == HELLOS_PASS; i += step)
		s = hellos_box(&h, data + i, MIN(step, n - i), &p);
	if (s == HELLOS_JUDGE)
		CHECK_STR(p.name, again->name);
	hellos_done(&h);
	return s;
}

TEST(second_hellos)
{
	const struct hello api = { .name = "api.test" };
	const struct hello evil = { .name = "evil.test", .record = 40 };
	uint8_t first[600] = { 0 };
	uint8_t said[600] = "\x15\3\3\0\2\1\x70";
	size_t n = hello_make(&api, first, 512);

	for (size_t step = 1; step < 300; step = step * 3 + 1) {
		size_t m = hello_answer(said + 7, sizeof(said) - 7, true, 9) +
			   7;

		/* A warning, then the wish for another. */
		CHECK_INT(see_hellos(first, n, said, m, step, &evil),
			  HELLOS_JUDGE);
		m = hello_answer(said + 7, sizeof(said) - 7, false, 9) + 7;
		CHECK_INT(see_hellos(first, n, said, m, step, &evil),
			  HELLOS_PASS);
		/* Not all of it is there; no TLS at all. */
		CHECK_INT(see_hellos(first, n, said, 20, step, &evil),
			  HELLOS_BAD);
		CHECK_INT(see_hellos(first, n, (const uint8_t *)"HTTP/1.1", 8,
				     step, &evil),
			  HELLOS_BAD);
		/* One byte more in the first one's record. */
		first[n] = 1;
		first[4]++;
		m = hello_answer(said + 7, sizeof(said) - 7, true, 0) + 7;
		CHECK_INT(see_hellos(first, n + 1, said, m, step, &api),
			  HELLOS_BAD);
		first[4]--;
	}
}

TEST(tls_offers)
{
	uint8_t data[512];
	struct peek p;
	size_t n = hello_make(&(struct hello){ .name = "a.test", .alpn = "h2" },
			      data, sizeof(data));

	CHECK_INT(peek(data, n, &p), PEEK_TLS);
	CHECK(!p.is_h1_offered);
	n = hello_make(&(struct hello){ .name = "a.test", .alpn = "http/1.1" },
		       data, sizeof(data));
	CHECK_INT(peek(data, n, &p), PEEK_TLS);
	CHECK(p.is_h1_offered);
	n = hello_make(&(struct hello){ .name = "a.test" }, data, sizeof(data));
	CHECK_INT(peek(data, n, &p), PEEK_TLS);
	CHECK(p.is_h1_offered);
}

#define H1 " HTTP/1.1\r\n"

static const struct {
	const char *text;
	enum peeked want;
	const char *name;
	uint16_t port;
} requests[] = {
	{ "GET /" H1 "Host: API.test\r\n\r\n", PEEK_HTTP, "api.test", 0 },
	{ "GET /" H1 "x: y\r\nhOsT:api.test:8080 \r\n\r\nrest", PEEK_HTTP,
	  "api.test", 8080 },
	{ "BREW /" H1 "Host: api.test\r\n\r\n", PEEK_HTTP, "api.test", 0 },
	{ "\r\n\r\nGET /" H1 "Host: evil.test\r\n\r\n", PEEK_HTTP, "evil.test",
	  0 },
	{ "GET / HTTP/1.0\r\nHost: api.test\r\n\r\n", PEEK_HTTP, "api.test",
	  0 },
	{ "GET http://api.test/x" H1 "Host: api.test\r\n\r\n", PEEK_HTTP,
	  "api.test", 0 },
	{ "OPTIONS *" H1 "Host: api.test\r\n\r\n", PEEK_HTTP, "api.test", 0 },
	/* two hosts */
	{ "GET http://evil.test/x" H1 "Host: api.test\r\n\r\n", PEEK_BAD, "",
	  0 },
	{ "GET http://api.test@evil.test/" H1 "Host: api.test\r\n\r\n",
	  PEEK_BAD, "", 0 },
	{ "CONNECT evil.test:443" H1 "Host: api.test\r\n\r\n", PEEK_BAD, "",
	  0 },
	{ "GET /" H1 "Host: api.test\r\nHost: evil.test\r\n\r\n", PEEK_BAD, "",
	  0 },
	{ "GET ftp://api.test/" H1 "Host: api.test\r\n\r\n", PEEK_BAD, "", 0 },
	/* no host, or none that is one */
	{ "GET /" H1 "\r\n", PEEK_BAD, "", 0 },
	{ "GET /" H1 "Host:\r\n\r\n", PEEK_BAD, "", 0 },
	{ "GET /" H1 "Host: a b\r\n\r\n", PEEK_BAD, "", 0 },
	{ "GET /" H1 "Host: a.test, b.test\r\n\r\n", PEEK_BAD, "", 0 },
	{ "GET /" H1 "Host: a.test:70000\r\n\r\n", PEEK_BAD, "", 0 },
	{ "GET /" H1 "Host: a.test:\r\n\r\n", PEEK_BAD, "", 0 },
	{ "GET /" H1 "Host: [::1]\r\n\r\n", PEEK_BAD, "", 0 },
	/* what servers read, each in its own way */
	{ "GET /" H1 "Host: api.test\n\r\n", PEEK_BAD, "", 0 },
	{ "GET / HTTP/1.1\nHost: api.test\r\n\r\n", PEEK_BAD, "", 0 },
	{ "GET /" H1 "x: y\r\n Host: z\r\nHost: api.test\r\n\r\n", PEEK_BAD, "",
	  0 },
	{ "GET /" H1 "Host : api.test\r\n\r\n", PEEK_BAD, "", 0 },
	{ "GET /" H1 "x\r\nHost: api.test\r\n\r\n", PEEK_BAD, "", 0 },
	{ "GET  /" H1 "Host: api.test\r\n\r\n", PEEK_BAD, "", 0 },
	{ "GET\t/" H1 "Host: api.test\r\n\r\n", PEEK_BAD, "", 0 },
	{ "GET / HTTP/1.1 x\r\nHost: api.test\r\n\r\n", PEEK_BAD, "", 0 },
	{ "GET / http/1.1\r\nHost: api.test\r\n\r\n", PEEK_BAD, "", 0 },
	{ " GET /" H1 "Host: evil.test\r\n\r\n", PEEK_HTTP, "evil.test", 0 },
	{ "\vGET /" H1 "Host: evil.test\r\n\r\n", PEEK_HTTP, "evil.test", 0 },
	{ "GET /\r\n", PEEK_BAD, "", 0 },
	{ "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", PEEK_BAD, "", 0 },
	{ "PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\nGET /" H1 "Host: a\r\n\r\n",
	  PEEK_BAD, "", 0 },
	/* others */
	{ "SSH-2.0-OpenSSH_9.2\r\n", PEEK_OTHER, "", 0 },
	{ "*1\r\n$4\r\nPING\r\n", PEEK_OTHER, "", 0 },
	{ "EHLO box\r\n", PEEK_OTHER, "", 0 },
	{ "\x01\x02\xff", PEEK_OTHER, "", 0 },
	/* not told yet */
	{ "", PEEK_MORE, "", 0 },
	{ "hello", PEEK_MORE, "", 0 },
	{ "\x01\x02", PEEK_MORE, "", 0 },
	{ "GET / HTTP/1.1", PEEK_MORE, "", 0 },
	{ "GET /" H1 "Host: api.test\r\n", PEEK_MORE, "", 0 },
};

TEST(http_hosts)
{
	for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
		struct peek p;
		enum peeked got = peek((const uint8_t *)requests[i].text,
				       strlen(requests[i].text), &p);

		if (got != requests[i].want)
			printf("# %s\n", requests[i].text);
		CHECK_INT(got, requests[i].want);
		CHECK_STR(p.name, requests[i].name);
		if (got == PEEK_HTTP)
			CHECK_INT(p.port, requests[i].port);
	}
}

static void check_parts(const char *text, enum peeked want)
{
	for (size_t n = 0; n < strlen(text); n++) {
		struct peek p;
		enum peeked got = peek((const uint8_t *)text, n, &p);

		CHECK(got == PEEK_MORE || got == want);
	}
}

/* However it is cut: a part never says more than the whole. */
TEST(http_in_parts)
{
	for (size_t i = 0; i < ARRAY_SIZE(requests); i++)
		check_parts(requests[i].text, requests[i].want);
}

#define EVIL "\r\nHost: evil.test\r\n\r\n"

TEST(http_that_some_servers_take)
{
	static const struct bytes rows[] = {
		/* any byte in the target */
		B("GET /\1 HTTP/1.1" EVIL, PEEK_BAD),
		B("GET /\0 HTTP/1.1" EVIL, PEEK_BAD),
		B("GET \1/ HTTP/1.1" EVIL, PEEK_BAD),
		B("get \1/ HTTP/1.1" EVIL, PEEK_BAD),
		B("BREW \1/ HTTP/1.1" EVIL, PEEK_BAD),
		B("X a\1/ HTTP/1.1" EVIL, PEEK_BAD),
		B("GET\t/\1\tHTTP/1.1" EVIL, PEEK_BAD),
		B("GET\r/\1\rHTTP/1.1" EVIL, PEEK_BAD),
		B("BREW\xa0/\1\xa0HTTP/1.1" EVIL, PEEK_BAD),
		B("GET / HTTP/1.1\0" EVIL, PEEK_BAD),
		/* any byte before the request */
		B("\0\1GET / HTTP/1.1" EVIL, PEEK_BAD),
		B("\r\n\0\n\x7f GET / HTTP/1.1" EVIL, PEEK_BAD),
		B("\x16\x16GET / HTTP/1.1" EVIL, PEEK_BAD),
		B("\x80\x81\x82\x83GET / HTTP/1.1" EVIL, PEEK_BAD),
		B("\0GET /\1 HTTP/1.1" EVIL, PEEK_BAD),
		B("\r\n \tGET / HTTP/1.1" EVIL, PEEK_HTTP),
		B("\xa0GET / HTTP/1.1" EVIL, PEEK_HTTP),
		/* lower case, another gap, another end, another version */
		B("get / HTTP/1.1" EVIL, PEEK_HTTP),
		B("get / http/1.1" EVIL, PEEK_BAD),
		B("GET\t/ HTTP/1.1" EVIL, PEEK_BAD),
		B("GET\xa0/\xa0HTTP/1.1" EVIL, PEEK_BAD),
		B("GET / HTTP/1.1\nHost: evil.test\n\n", PEEK_BAD),
		B("POST / X" EVIL, PEEK_BAD),
		B("GET http://evil.test/\n", PEEK_BAD),
		B("GET\thttp://evil.test/\r\n", PEEK_BAD),
		B("get http://evil.test/\r\n", PEEK_BAD),
		B("head \t HTTPS://evil.test/\r\n", PEEK_BAD),
		B("connect evil.test:443\r\n", PEEK_BAD),
		/* something before the request; another HTTP */
		B("PROXY UNKNOWN" EVIL, PEEK_BAD),
		B("\r\n\r\n\0\r\nQUIT\n\x20\0\0\0\x16\3\1", PEEK_BAD),
		B("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4", PEEK_BAD),
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check_bytes(&rows[i]);
}

/* Held until its end, which may be the stream's: it is not let go in parts. */
TEST(http_that_has_begun)
{
	static const char *const rows[] = {
		"GET ",      "GET http://evil.test/", "PROXY ", "POST /",
		"x / HTTP/", "connect evil.test:443", "get /",
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct peek p;

		CHECK_INT(peek((const uint8_t *)rows[i], strlen(rows[i]), &p),
			  PEEK_MORE);
		CHECK(p.is_begun);
	}
}

TEST(other_protocols_pass)
{
	static const struct bytes rows[] = {
		B("SSH-2.0-OpenSSH_9.2\r\n\0\0\5\x14\6\x14", PEEK_OTHER),
		B("GETX key\r\n", PEEK_OTHER),
		B("EHLO box\r\nMAIL FROM:<a@b.test>\r\n", PEEK_OTHER),
		B("*100\r\n$3\r\nGET\r\n", PEEK_OTHER), /* Redis */
		B("get key\r\n", PEEK_OTHER),           /* memcached */
		B("CONNECT {\"verbose\":false}\r\n", PEEK_OTHER), /* NATS */
		B("CONNECT\nhost:a.test\n\n\0", PEEK_OTHER),      /* STOMP */
		B("OPTIONS rtsp://a.test/ RTSP/1.0\r\n", PEEK_OTHER),
		B("0032git-upload-pack /p.git\0host=a.test\0"
		  "0098want\n",
		  PEEK_OTHER),
		B("\0\0\0\10\4\xd2\x16\x2f", PEEK_OTHER), /* PostgreSQL */
		B("\0\0\0T\0\3\0\0user\0me\0", PEEK_OTHER),
		B("U\0\0\1\x85\xa6\xff\1", PEEK_OTHER),        /* MySQL */
		B("0\f\2\1\1`\7\2\1\3\4\0\x80\0", PEEK_OTHER), /* LDAP */
		B("0 \2\1\1`\x1b\2\1\3\4\17cn=me", PEEK_OTHER),
		B("\x10\x1b\0\4MQTT\4\2", PEEK_OTHER),
		B("AMQP\0\0\x09\1", PEEK_OTHER),
		B("\0\0\0\x1c\0\x12\0\3\0\0\0\1\0\2me\0",
		  PEEK_OTHER), /* Kafka */
		B("\5\1\0\5\1\0\3\x06"
		  "a.test\0P",
		  PEEK_OTHER),                      /* SOCKS */
		B("\4\0\0\0\5\0\0\0\0", PEEK_MORE), /* Cassandra */
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check_bytes(&rows[i]);
}

TEST(http_has_an_end)
{
	static char text[PEEK_MAX + 1] = "GET /" H1 "Host: a.test\r\nx: ";
	struct peek p;

	memset(text + strlen(text), 'x', sizeof(text) - strlen(text) - 1);
	CHECK_INT(peek((uint8_t *)text, PEEK_MAX - 1, &p), PEEK_MORE);
	CHECK(p.is_begun);
	CHECK(!p.is_long);
	/* The rest is for whoever reads it all; its host is not known here. */
	CHECK_INT(peek((uint8_t *)text, PEEK_MAX, &p), PEEK_HTTP);
	CHECK(p.is_long);
	CHECK_STR(p.name, "");
	/* What could be anything has no such end. */
	memset(text, 'x', PEEK_MAX);
	CHECK_INT(peek((uint8_t *)text, PEEK_MAX, &p), PEEK_BAD);
	CHECK(!p.is_long);
}

/* first packets */

static const uint8_t syn[] = { 0x9c, 0x40, 0, 22, 0, 0,    0x30,
			       0x39, 0,    0, 0,  0, 0x50, 0x02,
			       0xff, 0xff, 0, 0,  0, 0 };

/* With so many words of options; its length. */
static size_t put_head4(uint8_t *to, unsigned int options, uint8_t protocol)
{
	static const uint8_t from[4] = { 198, 18, 0, 7 };
	static const uint8_t name[4] = { 198, 18, 1, 0 };

	memset(to, 1, 60);
	to[0] = (uint8_t)(0x45 + options);
	to[9] = protocol;
	memcpy(to + 12, from, sizeof(from));
	memcpy(to + 16, name, sizeof(name));
	return 20 + 4U * options;
}

TEST(first_packets)
{
	struct first_packet p;
	uint8_t data[128];

	for (unsigned int options = 0; options <= 10; options++) {
		size_t at = put_head4(data, options, 6);

		memcpy(data + at, syn, sizeof(syn));
		CHECK_INT(first_packet_v4(data, at + sizeof(syn), &p), 0);
		CHECK(!p.is_udp && p.port == 22 && p.from_port == 40000);
		CHECK_INT(p.number, 12345);
		CHECK_INT(p.to[14], 1);
		CHECK_INT(p.from[15], 7);
		CHECK_INT(p.to[11], 0xff);
		/* As far as its flags, and not a byte less. */
		CHECK_INT(first_packet_v4(data, at + 14, &p), 0);
		for (size_t n = 0; n < at + 14; n++)
			CHECK_INT(first_packet_v4(data, n, &p), -EINVAL);
		/* An answer, and the end of one. */
		data[at + 13] = 0x12;
		CHECK_INT(first_packet_v4(data, at + 20, &p), -EINVAL);
		data[at + 13] = 0x04;
		CHECK_INT(first_packet_v4(data, at + 20, &p), -EINVAL);
	}
	CHECK_INT((long long)put_head4(data, 0, 17), 20);
	memcpy(data + 20, syn, 8);
	CHECK_INT(first_packet_v4(data, 28, &p), 0);
	CHECK(p.is_udp && p.port == 22);
	CHECK_INT(first_packet_v4(data, 27, &p), -EINVAL);
	/* ICMP; a header that is too short; another version. */
	data[9] = 1;
	CHECK_INT(first_packet_v4(data, 28, &p), -EINVAL);
	data[9] = 17;
	data[0] = 0x44;
	CHECK_INT(first_packet_v4(data, 28, &p), -EINVAL);
	data[0] = 0x65;
	CHECK_INT(first_packet_v4(data, 28, &p), -EINVAL);
	CHECK_INT(first_packet_v6(syn, sizeof(syn), false, &p), 0);
	CHECK_INT(p.port, 22);
	CHECK_INT(first_packet_v6(syn, 13, false, &p), -EINVAL);
	CHECK_INT(first_packet_v6(syn, 8, true, &p), 0);
	CHECK_INT(first_packet_v6(syn, 7, true, &p), -EINVAL);
}

/* quotas */

TEST(quotas_of_a_rule)
{
	struct usage *u = usage_new();
	struct made_table m;
	struct gate_rule *r;

	table_init(&m);
	r = table_rule(&m, "a.test", 443);
	(void)table_rule(&m, "b.test", 443);
	r->connections = 2;
	m.t.connections = 3;
	CHECK_INT(usage_open(u, &m.t, 0, 1), GATE_OK);
	CHECK_INT(usage_open(u, &m.t, 0, 1), GATE_OK);
	CHECK_INT(usage_open(u, &m.t, 0, 1), GATE_R_CONNECTIONS);
	CHECK_INT(usage_open(u, &m.t, 1, 1), GATE_OK);
	CHECK_INT(usage_open(u, &m.t, 1, 1), GATE_R_CONNECTIONS);
	usage_close(u, 0);
	CHECK_INT(usage_open(u, &m.t, 0, 1), GATE_OK);
	usage_close(u, 0);
	r->bytes = 10;
	CHECK_INT((long long)usage_left(u, &m.t, 0), 10);
	CHECK(usage_add(u, &m.t, 0, 9));
	CHECK(!usage_add(u, &m.t, 0, 1));
	CHECK_INT(usage_open(u, &m.t, 0, 1), GATE_R_BYTES);
	CHECK(usage_left(u, &m.t, 1) == UINT64_MAX);
	/* A quota of nothing is not no quota. */
	m.t.rules[1].flags |= GATE_RULE_BYTES;
	CHECK_INT((long long)usage_left(u, &m.t, 1), 0);
	CHECK_INT(usage_open(u, &m.t, 1, 1), GATE_R_BYTES);
	usage_free(u);
}

static struct gate_rule *rated(struct made_table *m, uint32_t rate,
			       uint32_t seconds)
{
	struct gate_rule *r;

	table_init(m);
	r = table_rule(m, "a.test", 443);
	r->rate = rate;
	r->rate_seconds = seconds;
	return r;
}

/* How many are let in when one tries each millisecond for so long. */
static int tried(struct usage *u, const struct gate_table *t, int64_t from_ms,
		 int64_t ms)
{
	int n = 0;

	for (int64_t i = from_ms; i < from_ms + ms; i++)
		if (usage_open(u, t, 0, (i + 1) * 1000) == GATE_OK) {
			n++;
			usage_close(u, 0);
		}
	return n;
}

/* As many at once as the rate has, and then as many in its time. */
TEST(rates_of_each_kind)
{
	static const struct {
		uint32_t rate;
		uint32_t seconds;
	} rows[] = { { 2, 1 }, { 10, 60 }, { 100, 3600 }, { 1, 3600 } };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int64_t ms = rows[i].seconds * 1000LL;
		struct usage *u = usage_new();
		struct made_table m;

		(void)rated(&m, rows[i].rate, rows[i].seconds);
		CHECK_INT(tried(u, &m.t, 0, ms / rows[i].rate), rows[i].rate);
		CHECK_INT(tried(u, &m.t, ms / rows[i].rate, ms), rows[i].rate);
		usage_free(u);
	}
}

TEST(rates)
{
	const int64_t second = 1000000;
	struct usage *u = usage_new();
	struct made_table m;

	(void)rated(&m, 2, 60);
	CHECK_INT(usage_open(u, &m.t, 0, second), GATE_OK);
	CHECK_INT(usage_open(u, &m.t, 0, second), GATE_OK);
	CHECK_INT(usage_open(u, &m.t, 0, second), GATE_R_RATE);
	CHECK_INT(usage_open(u, &m.t, 0, 30 * second), GATE_R_RATE);
	CHECK_INT(usage_open(u, &m.t, 0, 32 * second), GATE_OK);
	CHECK_INT(usage_open(u, &m.t, 0, 32 * second), GATE_R_RATE);
	CHECK_INT(usage_open(u, &m.t, 0, 200 * second), GATE_OK);
	CHECK_INT(usage_open(u, &m.t, 0, 200 * second), GATE_OK);
	CHECK_INT(usage_open(u, &m.t, 0, 200 * second), GATE_R_RATE);
	usage_free(u);
}

TEST(quotas_outlive_a_table)
{
	struct usage *u = usage_new();
	struct made_table m;
	struct made_table n;

	table_init(&m);
	table_rule(&m, "a.test", 443)->bytes = 10;
	table_init(&n);
	(void)table_rule(&n, "b.test", 443);
	table_rule(&n, "a.test", 443)->bytes = 10;
	CHECK(usage_add(u, &m.t, 0, 6));
	usage_replace(u, &m.t, &n.t);
	CHECK_INT((long long)usage_left(u, &n.t, 1), 4);
	CHECK(usage_left(u, &n.t, 0) == UINT64_MAX);
	usage_free(u);
}

/* However many there were, nobody waits for longer than a second. */
TEST(refusals_have_a_longest_pause)
{
	struct gate g = { .client = -1 };
	uint64_t longest = 0;

	CHECK_INT((long long)events_denial_pause(&g), 0);
	for (int i = 0; i < 10000; i++)
		longest = MAX(longest, events_denial_pause(&g));
	CHECK(longest > 500 && longest <= 1001);
}

TEST(a_question_is_asked_once)
{
	struct questions *q = questions_new();
	bool is_new = false;
	char name[32];

	CHECK_INT(questions_take(q, "a.test", 443, &is_new), 1);
	CHECK(is_new);
	CHECK_INT(questions_take(q, "a.test", 443, &is_new), 1);
	CHECK(!is_new);
	CHECK_INT(questions_take(q, "a.test", 80, &is_new), 2);
	CHECK_INT(questions_state(q, 1), ANSWER_NONE);
	CHECK(questions_answer(q, 1, true));
	CHECK(!questions_answer(q, 1, false));
	CHECK_INT(questions_state(q, 1), ANSWER_YES);
	CHECK(!questions_answer(q, 3, true));
	CHECK(!questions_answer(q, 0, true));
	for (int i = 2; i < 64; i++) {
		(void)snprintf(name, sizeof(name), "n%d", i);
		CHECK_INT(questions_take(q, name, 1, &is_new), i + 1);
	}
	CHECK_INT(questions_take(q, "more", 1, &is_new), -ENOSPC);
	questions_free(q);
}

/* A flow between two pairs: who writes into one reads from the other. */
struct line {
	struct flow flow;
	int in[2];
	int out[2];
};

static void line_open(struct line *l)
{
	const int type = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
	const int size = 16 << 10;

	CHECK_INT(socketpair(AF_UNIX, type, 0, l->in), 0);
	CHECK_INT(socketpair(AF_UNIX, type, 0, l->out), 0);
	/* More comes in at once than goes out. */
	CHECK_INT(setsockopt(l->out[0], SOL_SOCKET, SO_SNDBUF, &size,
			     sizeof(size)),
		  0);
	flow_init(&l->flow, l->in[1], l->out[0]);
}

static void line_close(struct line *l)
{
	flow_done(&l->flow);
	for (int i = 0; i < 2; i++) {
		fd_close(&l->in[i]);
		fd_close(&l->out[i]);
	}
}

static uint8_t nth_byte(size_t i)
{
	return (uint8_t)(i * 31 + i / 257);
}

/* As many as go in, of bytes that tell their place from `at` on. */
static size_t write_some(int fd, size_t at, size_t most)
{
	uint8_t data[4096];
	size_t done = 0;

	while (done < most) {
		size_t len = MIN(sizeof(data), most - done);
		ssize_t n;

		for (size_t i = 0; i < len; i++)
			data[i] = nth_byte(at + done + i);
		n = write(fd, data, len);
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	return done;
}

/* All that is there; each byte is what its place says. */
static size_t read_some(int fd, size_t at)
{
	uint8_t data[4096];
	size_t done = 0;
	ssize_t n;

	while ((n = read(fd, data, sizeof(data))) > 0) {
		for (ssize_t i = 0; i < n; i++)
			if (data[i] != nth_byte(at + done + (size_t)i))
				CHECK(!"a byte at its place");
		done += (size_t)n;
	}
	return done;
}

/* While it holds, it takes nothing more and says no end. */
static void check_holding(struct flow *f)
{
	uint64_t taken = f->moved;

	CHECK(f->held <= 256 << 10);
	CHECK(!flow_wants_read(f));
	CHECK_INT(flow_pump(f, UINT64_MAX), FLOW_ON);
	CHECK_INT(f->moved, taken);
	CHECK(!f->is_shut);
}

TEST(a_flow_holds_what_its_sink_does_not_take)
{
	const size_t all = 3 << 20;
	struct line l;
	size_t sent = 0;
	size_t got = 0;
	int n_held = 0;

	line_open(&l);
	for (int i = 0; i < 1000 && got < all; i++) {
		sent += write_some(l.in[0], sent, all - sent);
		if (sent == all)
			(void)shutdown(l.in[0], SHUT_WR);
		CHECK_INT(flow_pump(&l.flow, UINT64_MAX), FLOW_ON);
		if (l.flow.held > 0) {
			n_held++;
			check_holding(&l.flow);
		}
		got += read_some(l.out[1], got);
	}
	CHECK(n_held > 0);
	CHECK_INT(got, all);
	CHECK_INT(flow_pump(&l.flow, UINT64_MAX), FLOW_ON);
	CHECK(l.flow.is_shut);
	CHECK(!l.flow.rest);
	line_close(&l);
}

TEST(a_flow_ends_at_its_quota)
{
	struct line l;

	line_open(&l);
	CHECK_INT(write_some(l.in[0], 0, 1000), 1000);
	/* All that is allowed is no more than allowed. */
	CHECK_INT(flow_pump(&l.flow, 1000), FLOW_ON);
	CHECK_INT(read_some(l.out[1], 0), 1000);
	CHECK_INT(write_some(l.in[0], 1000, 10), 10);
	CHECK_INT(flow_pump(&l.flow, 5), FLOW_QUOTA);
	CHECK_INT(l.flow.moved, 1005);
	CHECK_INT(read_some(l.out[1], 1000), 5);
	line_close(&l);
}

TEST(a_flow_ends_with_its_sink)
{
	struct line l;

	line_open(&l);
	fd_close(&l.out[1]);
	CHECK_INT(write_some(l.in[0], 0, 10), 10);
	CHECK_INT(flow_pump(&l.flow, UINT64_MAX), FLOW_BROKEN);
	line_close(&l);
}

TAP_MAIN()
