/* SPDX-License-Identifier: Apache-2.0 */

/* The real gate, with a test that plays its client, its box and the world. */

#include <pthread.h>

#include "gate-box.h"

TEST(relays_what_agrees)
{
	struct gate_event e;
	struct box b;
	size_t n;
	int up;
	int fd;

	box_init(&b);
	(void)box_allow(&b, "api.test", 443);
	box_run(&b);
	fd = dial("API.test.", 443);
	n = say_hello(fd, "api.test");
	up = reached(&b, WAIT_MS);
	hears_hello(up, "api.test");
	say_text(up, "answer");
	hears_text(fd, "answer");
	/* One direction ends, the other goes on. */
	(void)shutdown(fd, SHUT_WR);
	CHECK_INT(ends(up), 0);
	say_text(up, "more");
	hears_text(fd, "more");
	(void)close(up);
	CHECK_INT(ends(fd), 0);
	box_expect(&b, GATE_E_CLOSE, GATE_OK, &e);
	CHECK_INT((long long)e.sent, (long long)n);
	CHECK_INT((long long)e.received, 10);
	CHECK(e.us > 0);
	CHECK_STR(e.host, "api.test");
	CHECK_INT(e.port, 443);
	CHECK_INT(e.rule, 0);
	CHECK_INT(e.address[12], 127);
}

TEST(ipv6_too)
{
	struct sockaddr_in6 a = { .sin6_family = AF_INET6,
				  .sin6_port = htons(443) };
	uint8_t answer[1024];
	struct box b;
	int up;
	int fd;

	box_init(&b);
	(void)box_allow(&b, "api.test", 443);
	box_run(&b);
	if (!b.has_ipv6)
		SKIP("this machine has no IPv6");
	CHECK(ask_dns("api.test", LDNS_RR_TYPE_AAAA, answer, sizeof(answer),
		      true) > 0);
	(void)inet_pton(AF_INET6, "2001:2::100", &a.sin6_addr);
	fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK_INT(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	(void)say_hello(fd, "api.test");
	up = reached(&b, WAIT_MS);
	hears_hello(up, "api.test");
}

TEST(dns_over_tcp)
{
	uint8_t answer[1024];
	struct box b;

	box_init(&b);
	(void)box_allow(&b, "api.test", 443);
	box_run(&b);
	CHECK(ask_dns("api.test", LDNS_RR_TYPE_A, answer, sizeof(answer),
		      true) > 40);
	/* Also when each of its clients is one that says nothing. */
	for (int i = 0; i < 16; i++)
		(void)dial4(GATE_DNS4, 53);
	CHECK(resolve4("api.test") != 0);
}

TEST(other_names_and_ports_fail_at_once)
{
	struct gate_event e;
	struct box b;
	int64_t since = clock_us();

	box_init(&b);
	(void)box_allow(&b, "api.test", 443);
	(void)box_allow(&b, "other.test", 80);
	box_run(&b);
	CHECK_INT(resolve4("evil.test"), 0);
	box_expect(&b, GATE_E_NAME, GATE_R_NO_RULE, &e);
	CHECK_STR(e.host, "evil.test");
	/* Nobody listens; no route; a listener, but not for this name. */
	CHECK_INT(dial("api.test", 81), -ECONNREFUSED);
	CHECK_INT(dial4(0x5db8d822, 443), -ENETUNREACH);
	CHECK_INT(ends(dial("api.test", 80)), -ECONNRESET);
	box_expect(&b, GATE_E_DENIED, GATE_R_NO_RULE, &e);
	CHECK_STR(e.host, "api.test");
	CHECK_INT(e.port, 80);
	/* An address of the net that no name has, and the box's own lo. */
	CHECK_INT(ends(dial4(GATE_NET4 + 4000, 443)), -ECONNRESET);
	box_expect(&b, GATE_E_DENIED, GATE_R_NO_RULE, &e);
	CHECK_STR(e.host, "198.18.15.160");
	CHECK_INT(ends(dial4(INADDR_LOOPBACK, 443)), -ECONNRESET);
	box_expect(&b, GATE_E_DENIED, GATE_R_NO_RULE, &e);
	CHECK_STR(e.host, "127.0.0.1");
	CHECK_INT(reached(&b, 0), -1);
	CHECK(clock_us() - since < 2000000);
}

/* One try; false: this process was so late that the gate had dialled. */
static bool try_refused(struct box *b, const void *first, size_t n,
			struct gate_event *ret)
{
	int fd = dial("api.test", 443);
	union heard h;

	say(fd, first, n);
	CHECK_INT(box_hear(b, &h, WAIT_MS), GATE_EVENT);
	if (h.event.kind == GATE_E_CLOSE) {
		(void)close(reached(b, WAIT_MS));
		(void)close(fd);
		return false;
	}
	*ret = h.event;
	/* Who speaks HTTP is told in words. */
	if (h.event.reason == GATE_R_HTTP || h.event.reason == GATE_R_HTTP_HOST)
		hears_text(fd, "HTTP/1.1 403 ");
	else
		CHECK_INT(ends(fd), -ECONNRESET);
	(void)close(fd);
	return true;
}

static void check_refused(struct box *b, const void *first, size_t n,
			  enum gate_reason why, const char *detail)
{
	struct gate_event e = { 0 };
	int tries = 0;

	while (!try_refused(b, first, n, &e) && ++tries < 10)
		;
	CHECK_INT(e.kind, GATE_E_DENIED);
	CHECK_INT(e.reason, why);
	CHECK_STR(e.detail, detail);
	CHECK_INT(reached(b, 0), -1);
}

TEST(first_bytes_must_agree)
{
	const char *evil = "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n";
	const char *two = "GET / HTTP/1.1\r\nHost: api.test\r\nHost: b\r\n\r\n";
	uint8_t data[512];
	struct box b;
	size_t n;

	box_init(&b);
	(void)box_allow(&b, "api.test", 443);
	box_run(&b);
	n = hello_make(&(struct hello){ .name = "evil.test" }, data,
		       sizeof(data));
	check_refused(&b, data, n, GATE_R_SERVER_NAME, "evil.test");
	n = hello_make(&(struct hello){ 0 }, data, sizeof(data));
	check_refused(&b, data, n, GATE_R_NO_NAME, "");
	n = hello_make(&(struct hello){ .name = "api.test", .is_hidden = true },
		       data, sizeof(data));
	check_refused(&b, data, n, GATE_R_NO_NAME, "api.test");
	check_refused(&b, evil, strlen(evil), GATE_R_HTTP_HOST,
		      "evil.test:443");
	check_refused(&b, two, strlen(two), GATE_R_HTTP, "");
}

#define REQUEST "GET /a?b HTTP/1.1\r\nHost: api.test\r\n\r\n"
#define ANSWER  "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

/* Plain HTTP: each request for itself, not the first alone. */
TEST(requests_are_judged_one_by_one)
{
	struct gate_event e;
	struct box b;
	int up;
	int fd;

	box_init(&b);
	(void)box_allow(&b, "api.test", 80);
	box_run(&b);
	fd = dial("api.test", 80);
	say_text(fd, REQUEST "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n");
	up = reached(&b, WAIT_MS);
	hears_text(up, "GET /a?b HTTP/1.1\r\n");
	say_text(up, ANSWER);
	hears_text(fd, ANSWER "HTTP/1.1 403 ");
	box_expect(&b, GATE_E_REQUEST, GATE_OK, &e);
	CHECK_STR(e.path, "/a");
	CHECK_INT(e.status, 200);
	box_expect(&b, GATE_E_REQUEST, GATE_R_HTTP_HOST, &e);
	CHECK_INT(e.status, 403);
	(void)close(fd);
	(void)close(up);
	box_expect(&b, GATE_E_CLOSE, GATE_OK, &e);
	CHECK_INT((long long)e.sent, 72);
	CHECK(e.received > strlen(ANSWER) + 100);
}

TEST(requests_that_reach_nobody)
{
	char got[16] = "";
	struct box b;

	box_init(&b);
	(void)box_allow(&b, "api.test", 80);
	(void)close(b.server);
	box_run(&b);
	/* Late, on a busy machine, the gate has heard of no request. */
	for (int i = 0; i < 10 && !got[0]; i++) {
		int fd = dial("api.test", 80);

		say_text(fd, REQUEST);
		box_expect(&b, GATE_E_DENIED, GATE_R_UNREACHABLE, NULL);
		CHECK(is_ready(fd, WAIT_MS));
		(void)!recv(fd, got, 13, MSG_DONTWAIT);
		(void)close(fd);
	}
	CHECK_STR(got, "HTTP/1.1 502 ");
}

/* What is looked into is told at the end too. */
TEST(requests_end_with_the_client)
{
	union heard h;
	struct box b;
	int status;
	int fd;

	box_init(&b);
	(void)box_allow(&b, "api.test", 80);
	box_run(&b);
	fd = dial("api.test", 80);
	say_text(fd, REQUEST);
	hears_text(reached(&b, WAIT_MS), "GET ");
	(void)shutdown(b.client, SHUT_WR);
	box_expect(&b, GATE_E_REQUEST, GATE_R_RESET, NULL);
	box_expect(&b, GATE_E_CLOSE, GATE_R_RESET, NULL);
	CHECK(box_hear(&b, &h, WAIT_MS) == (uint32_t)-1);
	CHECK_INT(waitpid(b.gate, &status, 0), b.gate);
	CHECK_INT(status, 0);
}

/* Bytes of requests count as others do. */
TEST(quota_of_requests)
{
	struct gate_event e;
	struct box b;
	int up;
	int fd;

	box_init(&b);
	box_allow(&b, "api.test", 80)->bytes = 100;
	box_run(&b);
	fd = dial("api.test", 80);
	say_text(fd, REQUEST);
	up = reached(&b, WAIT_MS);
	hears_text(up, "GET ");
	say_text(up, "HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"
		     "0123456789012345678901234567890123456789");
	/* The request itself was allowed, and answered so far. */
	box_expect(&b, GATE_E_REQUEST, GATE_OK, NULL);
	box_expect(&b, GATE_E_CLOSE, GATE_R_BYTES, &e);
	CHECK(e.sent + e.received >= 100);
	fd = dial("api.test", 80);
	CHECK_INT(ends(fd), -ECONNRESET);
}

/* A hello that comes byte by byte, with a pause in it. */
TEST(first_bytes_in_parts)
{
	union heard h = { 0 };
	uint8_t data[512];
	struct box b;
	size_t n;
	int fd;

	box_init(&b);
	(void)box_allow(&b, "api.test", 443);
	box_run(&b);
	n = hello_make(&(struct hello){ .name = "api.test" }, data,
		       sizeof(data));
	fd = dial("api.test", 443);
	for (size_t i = 0; i < n; i++) {
		say(fd, data + i, 1);
		(void)usleep(i == 20 ? 120000 : 100);
	}
	hears_hello(reached(&b, WAIT_MS), "api.test");
	/* Another name, which is not known before its last byte. */
	n = hello_make(&(struct hello){ .name = "evil.test" }, data,
		       sizeof(data));
	fd = dial("api.test", 443);
	for (size_t i = 0; i < n; i++) {
		say(fd, data + i, 1);
		(void)usleep(i == 20 ? 120000 : 100);
	}
	CHECK_INT(ends(fd), -ECONNRESET);
	while (h.event.reason != GATE_R_SERVER_NAME &&
	       box_hear(&b, &h, WAIT_MS) == GATE_EVENT)
		;
	CHECK_INT(h.event.reason, GATE_R_SERVER_NAME);
	CHECK_STR(h.event.detail, "evil.test");
}

TEST(servers_that_speak_first)
{
	struct gate_event e;
	struct box b;
	int up;
	int fd;

	box_init(&b);
	(void)box_allow(&b, "api.test", 25);
	box_run(&b);
	fd = dial("api.test", 25);
	up = reached(&b, WAIT_MS);
	say_text(up, "220 hello\r\n");
	hears_text(fd, "220 hello\r\n");
	say_text(fd, "EHLO box\r\n");
	hears_text(up, "EHLO box\r\n");
	say_text(up, "250 ok\r\n");
	hears_text(fd, "250 ok\r\n");
	(void)close(fd);
	CHECK_INT(ends(up), 0);
	(void)close(up);
	box_expect(&b, GATE_E_CLOSE, GATE_OK, &e);
	CHECK_INT((long long)e.sent, 10);
	CHECK_INT((long long)e.received, 19);
	/* Its first bytes are judged all the same. */
	fd = dial("api.test", 25);
	up = reached(&b, WAIT_MS);
	say_text(up, "220 hello\r\n");
	hears_text(fd, "220 hello\r\n");
	(void)say_hello(fd, "evil.test");
	CHECK_INT(ends(fd), -ECONNRESET);
	CHECK(ends(up) <= 0);
	box_expect(&b, GATE_E_CLOSE, GATE_R_SERVER_NAME, &e);
	CHECK_INT((long long)e.sent, 0);
}

/* Text that could still become a request goes on after a silence. */
TEST(text_without_an_end)
{
	struct box b;
	int up;
	int fd;

	box_init(&b);
	(void)box_allow(&b, "api.test", 7);
	box_run(&b);
	fd = dial("api.test", 7);
	say_text(fd, "ping");
	up = reached(&b, WAIT_MS);
	hears_text(up, "ping");
	say_text(up, "pong");
	hears_text(fd, "pong");
	say_text(fd, " again\n and more");
	hears_text(up, " again\n and more");
	/* But a request is not hidden by that. */
	fd = dial("api.test", 7);
	say_text(fd, "GE");
	up = reached(&b, WAIT_MS);
	hears_text(up, "GE");
	say_text(fd, "T / HTTP/1.1\r\nHost: evil.test\r\n\r\n");
	CHECK_INT(ends(fd), -ECONNRESET);
	CHECK(ends(up) <= 0);
}

static void check_quota(const char *first)
{
	static char data[3000];
	struct gate_event e;
	struct box b;
	int up;
	int fd;

	box_init(&b);
	box_allow(&b, "api.test", 7)->bytes = 2000;
	box_run(&b);
	fd = dial("api.test", 7);
	say_text(fd, first);
	up = reached(&b, WAIT_MS);
	hears_text(up, first);
	say(up, data, 1000);
	hears(fd, data, 1000);
	say(fd, data, 1500);
	box_expect(&b, GATE_E_CLOSE, GATE_R_BYTES, &e);
	CHECK_INT((long long)(e.sent + e.received), 2000);
	/* And none after that. */
	fd = dial("api.test", 7);
	CHECK_INT(ends(fd), -ECONNRESET);
	box_expect(&b, GATE_E_DENIED, GATE_R_BYTES, NULL);
}

TEST(quota_of_bytes)
{
	check_quota("\x01\xff");
}

/* Of what could still become a request too. */
TEST(quota_of_bytes_that_are_not_judged_yet)
{
	check_quota("\x01");
}

TEST(many_connections)
{
	struct box b;
	uint32_t address;
	int last = 0;

	box_init(&b);
	(void)box_allow(&b, "api.test", 7);
	b.m.t.connections = 40;
	box_run(&b);
	address = resolve4("api.test");
	for (int i = 0; i < 60; i++)
		last = dial4(address, 7);
	CHECK_INT(ends(last), -ECONNRESET);
	for (int i = 0; i < 20; i++)
		box_expect(&b, GATE_E_DENIED, GATE_R_CONNECTIONS, NULL);
	for (int i = 0; i < 40; i++)
		CHECK(reached(&b, WAIT_MS) >= 0);
	CHECK_INT(reached(&b, 0), -1);
}

/* More than the gate has room for, whatever the policy says. */
TEST(too_many_connections)
{
	struct box b;
	uint32_t address;
	int last = 0;

	box_init(&b);
	(void)box_allow(&b, "api.test", 7);
	b.m.t.connections = 4000;
	box_run(&b);
	address = resolve4("api.test");
	for (int i = 0; i < 520; i++)
		last = dial4(address, 7);
	for (int i = 0; i < 8; i++)
		box_expect(&b, GATE_E_DENIED, GATE_R_CONNECTIONS, NULL);
	for (int i = 0; i < 512; i++)
		CHECK(reached(&b, WAIT_MS) >= 0);
	CHECK_INT(reached(&b, 0), -1);
	CHECK_INT(ends(last), -ECONNRESET);
}

TEST(a_new_table)
{
	union heard h;
	struct box b;
	int stays;
	int goes;
	int up;

	box_init(&b);
	(void)box_allow(&b, "stays.test", 443);
	(void)box_allow(&b, "goes.test", 443);
	box_run(&b);
	stays = dial("stays.test", 443);
	(void)say_hello(stays, "stays.test");
	up = reached(&b, WAIT_MS);
	hears_hello(up, "stays.test");
	goes = dial("goes.test", 443);
	(void)say_hello(goes, "goes.test");
	hears_hello(reached(&b, WAIT_MS), "goes.test");

	table_init(&b.m);
	(void)box_allow(&b, "new.test", 443);
	(void)box_allow(&b, "stays.test", 443);
	box_send_table(&b, 2);
	box_expect(&b, GATE_E_CLOSE, GATE_R_REPLACED, &h.event);
	CHECK_STR(h.event.host, "goes.test");
	CHECK_INT(box_hear(&b, &h, WAIT_MS), GATE_TAKEN);
	CHECK_INT(h.head.number, 2);
	CHECK_INT(ends(goes), -ECONNRESET);
	say_text(stays, "still");
	hears_text(up, "still");
	(void)close(stays);
	(void)close(up);
	box_expect(&b, GATE_E_CLOSE, GATE_OK, &h.event);
	CHECK_INT(h.event.rule, 1);
	CHECK_INT(resolve4("goes.test"), 0);
	CHECK(resolve4("new.test") != 0);
}

static void answer(struct box *b, uint32_t number, bool is_allowed)
{
	const struct gate_answer a = { { GATE_ANSWER, number }, is_allowed };

	CHECK_INT(io_send(b->client, &a, sizeof(a), NULL, 0), 0);
}

TEST(people_are_asked)
{
	union heard h;
	struct box b;
	int fd[3];

	box_init(&b);
	box_allow(&b, "yes.test", 443)->flags = GATE_RULE_ASK;
	box_allow(&b, "no.test", 443)->flags = GATE_RULE_ASK;
	b.m.t.ask_wait_ms = 5000;
	box_run(&b);
	for (int i = 0; i < 2; i++) {
		fd[i] = dial("yes.test", 443);
		(void)say_hello(fd[i], "yes.test");
	}
	CHECK_INT(box_hear(&b, &h, WAIT_MS), GATE_ASKED);
	CHECK_STR(h.event.host, "yes.test");
	CHECK_INT(h.event.port, 443);
	CHECK_INT(reached(&b, 20), -1);
	answer(&b, h.head.number, true);
	for (int i = 0; i < 2; i++)
		hears_hello(reached(&b, WAIT_MS), "yes.test");
	fd[2] = dial("no.test", 443);
	CHECK_INT(box_hear(&b, &h, WAIT_MS), GATE_ASKED);
	answer(&b, h.head.number, false);
	CHECK_INT(ends(fd[2]), -ECONNRESET);
	box_expect(&b, GATE_E_DENIED, GATE_R_NOT_APPROVED, NULL);
	/* Both answers hold. */
	fd[2] = dial("no.test", 443);
	CHECK_INT(ends(fd[2]), -ECONNRESET);
	box_expect(&b, GATE_E_DENIED, GATE_R_NOT_APPROVED, NULL);
	fd[2] = dial("yes.test", 443);
	(void)say_hello(fd[2], "yes.test");
	CHECK(reached(&b, WAIT_MS) >= 0);
}

TEST(nobody_is_waited_for)
{
	union heard h;
	struct box b;
	int fd;

	box_init(&b);
	box_allow(&b, "yes.test", 443)->flags = GATE_RULE_ASK;
	box_run(&b);
	fd = dial("yes.test", 443);
	CHECK_INT(box_hear(&b, &h, WAIT_MS), GATE_ASKED);
	CHECK_INT(ends(fd), -ECONNRESET);
	box_expect(&b, GATE_E_DENIED, GATE_R_NOT_APPROVED, NULL);
	/* An answer that comes late is for the next one. */
	answer(&b, h.head.number, true);
	fd = dial("yes.test", 443);
	(void)say_hello(fd, "yes.test");
	CHECK(reached(&b, WAIT_MS) >= 0);
}

TEST(an_address_that_a_rule_names)
{
	struct gate_event e;
	struct box b;
	int up;
	int fd;

	box_init(&b);
	(void)table_rule(&b.m, "127.0.0.1", b.server_port);
	box_run(&b);
	/* In the box it is the gate that has it. */
	fd = dial4(INADDR_LOOPBACK, b.server_port);
	(void)say_hello(fd, "any.test");
	up = reached(&b, WAIT_MS);
	hears_hello(up, "any.test");
	(void)close(fd);
	(void)close(up);
	box_expect(&b, GATE_E_CLOSE, GATE_OK, &e);
	CHECK_STR(e.host, "127.0.0.1");
	/* Only that one. */
	fd = dial4(INADDR_LOOPBACK + 1, b.server_port);
	CHECK_INT(ends(fd), -ECONNRESET);
	box_expect(&b, GATE_E_DENIED, GATE_R_NO_RULE, &e);
}

TEST(nobody_outside)
{
	struct gate_event e;
	struct box b;
	int fd;

	box_init(&b);
	(void)box_allow(&b, "api.test", 443);
	(void)close(b.server);
	box_run(&b);
	fd = dial("api.test", 443);
	(void)say_hello(fd, "api.test");
	CHECK_INT(ends(fd), -ECONNRESET);
	box_expect(&b, GATE_E_DENIED, GATE_R_UNREACHABLE, &e);
	CHECK_STR(e.host, "api.test");
}

/* Refusals cost the box its own time, not the ledger's room. */
TEST(many_refusals)
{
	int64_t since;
	union heard h;
	struct box b;
	char name[64];
	int n = 0;

	box_init(&b);
	(void)box_allow(&b, "api.test", 443);
	box_run(&b);
	since = clock_us();
	for (int i = 0; i < 290; i++) {
		(void)snprintf(name, sizeof(name), "n%d.evil.test", i);
		CHECK_INT(resolve4(name), 0);
		while (box_hear(&b, &h, 0) == GATE_EVENT)
			n++;
	}
	while (n < 290 && box_hear(&b, &h, WAIT_MS) == GATE_EVENT)
		n++;
	CHECK_INT(n, 290);
	CHECK(clock_us() - since > 400000);
}

/* `begin`, an urgent byte, `rest`: none of it is taken for something else. */
static void check_urgent(struct box *b, const uint8_t *begin, size_t n,
			 const void *rest, size_t n_rest)
{
	int fd = dial("api.test", 443);
	uint8_t first[8] = { 0 };
	union heard h;
	int up;

	memcpy(first, begin, n);
	first[n] = '!';
	CHECK_INT(send(fd, first, n + 1, MSG_OOB), (long long)n + 1);
	/* Broken off, which this may be told first. */
	if (send(fd, rest, n_rest, MSG_NOSIGNAL) > 0)
		CHECK_INT(ends(fd), -ECONNRESET);
	CHECK_INT(box_hear(b, &h, WAIT_MS), GATE_EVENT);
	CHECK_INT(h.event.reason, GATE_R_HTTP);
	CHECK_STR(h.event.detail, "urgent data");
	/* Late, on a busy machine, the gate had dialled; no byte came. */
	up = reached(b, 0);
	CHECK(up < 0 || ends(up) <= 0);
	(void)close(up);
	(void)close(fd);
}

TEST(urgent_bytes_hide_nothing)
{
	const char *evil = "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n";
	uint8_t data[512];
	struct box b;
	size_t n;

	box_init(&b);
	(void)box_allow(&b, "api.test", 443);
	box_run(&b);
	n = hello_make(&(struct hello){ .name = "evil.test" }, data,
		       sizeof(data));
	for (size_t i = 0; i < 4; i++) {
		check_urgent(&b, data, i, data + i, n - i);
		check_urgent(&b, (const uint8_t *)evil, i, evil + i,
			     strlen(evil) - i);
	}
}

/* Text that could still become a request is all that it will be. */
TEST(text_with_an_end)
{
	union heard h;
	struct box b;
	int up;
	int fd;

	box_init(&b);
	(void)box_allow(&b, "api.test", 7);
	box_run(&b);
	fd = dial("api.test", 7);
	say_text(fd, "ping");
	(void)shutdown(fd, SHUT_WR);
	up = reached(&b, WAIT_MS);
	hears_text(up, "ping");
	CHECK_INT(ends(up), 0);
	say_text(up, "pong");
	hears_text(fd, "pong");
	(void)close(up);
	CHECK_INT(ends(fd), 0);
	box_expect(&b, GATE_E_CLOSE, GATE_OK, NULL);
	/* A request that has begun is refused with its end. */
	fd = dial("api.test", 7);
	say_text(fd, "GET / HTTP/1.1\r\nHost: api.test\r\n");
	(void)shutdown(fd, SHUT_WR);
	CHECK_INT(box_hear(&b, &h, WAIT_MS), GATE_EVENT);
	CHECK_INT(h.event.reason, GATE_R_HTTP);
}

/* Nobody can pass on what comes after it, so nobody waits for that. */
TEST(who_leaves_before_a_word_is_recorded_so)
{
	const struct linger now = { .l_onoff = 1, .l_linger = 0 };
	struct gate_event e;
	struct box b;

	box_init(&b);
	(void)box_allow(&b, "api.test", 443);
	box_run(&b);
	for (int i = 0; i < 2; i++) {
		int fd = dial("api.test", 443);

		/* The beginning of a hello, so that nobody is dialled. */
		say_text(fd, "\x16\x03");
		if (i == 1)
			(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now,
					 sizeof(now));
		(void)close(fd);
		box_expect(&b, i ? GATE_E_CLOSE : GATE_E_DENIED,
			   i ? GATE_R_LEFT : GATE_R_NO_NAME, &e);
		CHECK_INT((long long)e.sent, 0);
	}
}

TEST(urgent_bytes_end_a_relay)
{
	struct box b;
	int end[2];

	box_init(&b);
	(void)box_allow(&b, "api.test", 443);
	box_run(&b);
	for (int i = 0; i < 2; i++) {
		end[0] = dial("api.test", 443);
		(void)say_hello(end[0], "api.test");
		end[1] = reached(&b, WAIT_MS);
		hears_hello(end[1], "api.test");
		CHECK_INT(send(end[i], "!", 1, MSG_OOB), 1);
		(void)send(end[i], "more", 4, MSG_NOSIGNAL);
		CHECK_INT(ends(end[!i]), -ECONNRESET);
		box_expect(&b, GATE_E_CLOSE, GATE_R_RESET, NULL);
		(void)close(end[0]);
		(void)close(end[1]);
	}
}

/* Thousandths of a second, as the kernel counts them for a process. */
static long cpu_ms(pid_t pid)
{
	unsigned long user = 0;
	unsigned long kernel = 0;
	char text[1024] = "";
	char path[64];
	const char *at;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	(void)io_read_file(AT_FDCWD, path, text, sizeof(text));
	at = strrchr(text, ')');
	CHECK(at && sscanf(at,
			   ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u "
			   "%lu %lu",
			   &user, &kernel) == 2);
	return (long)((user + kernel) * 1000 /
		      (unsigned long)sysconf(_SC_CLK_TCK));
}

/* Who reads it, the resolver and what looks into requests, goes on to wait. */
TEST(urgent_bytes_wake_nobody_for_ever)
{
	struct box b;
	long before;
	int fd[3];

	box_init(&b);
	(void)box_allow(&b, "api.test", 80);
	box_run(&b);
	fd[0] = dial4(GATE_DNS4, 53);
	fd[1] = dial("api.test", 80);
	say_text(fd[1], REQUEST);
	fd[2] = reached(&b, WAIT_MS);
	hears_text(fd[2], "GET /a?b");
	for (int i = 0; i < 3; i++) {
		CHECK_INT(send(fd[i], "\0!", 2, MSG_OOB), 2);
		CHECK_INT(send(fd[i], "!", 1, MSG_OOB), 1);
	}
	(void)usleep(20000);
	before = cpu_ms(b.gate);
	(void)usleep(300000);
	CHECK(cpu_ms(b.gate) - before < 100);
}

/* So many refusals come, and not all at once. */
static void check_waits(struct box *b, int n, int64_t since)
{
	union heard h;

	for (int i = 0; i < n; i++) {
		CHECK_INT(box_hear(b, &h, WAIT_MS), GATE_EVENT);
		CHECK(h.event.reason != GATE_OK);
	}
	CHECK(clock_us() - since > 400000);
}

/* Also those of one connection to the resolver ... */
TEST(many_refusals_over_one_connection)
{
	uint8_t framed[600];
	int64_t since;
	struct box b;
	int fd;

	box_init(&b);
	(void)box_allow(&b, "api.test", 443);
	box_run(&b);
	fd = dial4(GATE_DNS4, 53);
	since = clock_us();
	for (int i = 0; i < 290; i++) {
		char name[64];

		(void)snprintf(name, sizeof(name), "n%d.evil.test", i);
		say(fd, framed, frame_query(name, LDNS_RR_TYPE_A, framed));
	}
	check_waits(&b, 290, since);
	/* Who waited is answered. */
	CHECK(resolve4("api.test") != 0);
}

/* ... and those of requests, which new connections wait for as well. */
TEST(many_refused_requests)
{
	struct gate_rule *r;
	int64_t since;
	struct box b;
	int fd;

	box_init(&b);
	r = box_allow(&b, "api.test", 80);
	r->methods.off = table_string(&b.m, "GET");
	r->methods.count = 1;
	r->flags = GATE_RULE_INSPECT;
	box_run(&b);
	fd = dial("api.test", 80);
	since = clock_us();
	for (int i = 0; i < 290; i++)
		say_text(fd, "DELETE / HTTP/1.1\r\nHost: api.test\r\n\r\n");
	check_waits(&b, 290, since);
	hears_text(fd, "HTTP/1.1 403 ");
}

#define BULK (24U << 20)

static uint8_t bulk_byte(size_t i)
{
	return (uint8_t)(i * 2654435761U >> 13);
}

static void *say_bulk(void *arg)
{
	static const size_t part = 1 << 16;
	int fd = *(int *)arg;
	uint8_t *data = malloc(part);

	for (size_t at = 0; at < BULK; at += part) {
		for (size_t i = 0; i < part; i++)
			data[i] = bulk_byte(at + i);
		if (io_send_all(fd, data, part) < 0)
			break;
	}
	(void)shutdown(fd, SHUT_WR);
	free(data);
	return NULL;
}

/* How many came, as they were sent. */
static size_t hear_bulk(int fd)
{
	static uint8_t data[1 << 16];
	size_t at = 0;

	while (is_ready(fd, WAIT_MS)) {
		ssize_t n = recv(fd, data, sizeof(data), 0);

		if (n <= 0)
			break;
		for (ssize_t i = 0; i < n; i++)
			if (data[i] != bulk_byte(at + (size_t)i))
				return at + (size_t)i;
		at += (size_t)n;
	}
	return at;
}

/* As much as the kernel takes while nobody reads. */
static size_t say_all(int fd)
{
	static const uint8_t data[1 << 16];
	size_t at = 0;
	ssize_t n;

	while ((n = send(fd, data, sizeof(data), MSG_DONTWAIT)) > 0)
		at += (size_t)n;
	return at;
}

/* Whoever is refused and has much more to say is not read to the end. */
TEST(refused_and_not_silent)
{
	uint8_t got[4096];
	struct box b;
	ssize_t n = 1;
	int fd;

	box_init(&b);
	(void)box_allow(&b, "api.test", 80);
	box_run(&b);
	CHECK(resolve4("api.test") != 0);
	(void)kill(b.gate, SIGSTOP);
	fd = dial4(GATE_NET4 + GATE_FIRST, 80);
	say_text(fd, "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n");
	CHECK(say_all(fd) > 1U << 19);
	(void)kill(b.gate, SIGCONT);
	box_expect(&b, GATE_E_DENIED, GATE_R_HTTP_HOST, NULL);
	while (n > 0 && is_ready(fd, WAIT_MS))
		n = recv(fd, got, sizeof(got), 0);
	CHECK(n < 0 && errno == ECONNRESET);
}

TEST(much_in_both_directions)
{
	struct gate_event e;
	pthread_t t[2];
	struct box b;
	int up;
	int fd;

	box_init(&b);
	(void)box_allow(&b, "api.test", 7);
	box_run(&b);
	fd = dial("api.test", 7);
	say_text(fd, "\x01");
	up = reached(&b, WAIT_MS);
	hears_text(up, "\x01");
	(void)pthread_create(&t[0], NULL, say_bulk, &fd);
	(void)pthread_create(&t[1], NULL, say_bulk, &up);
	/* One direction is stuck until the other has gone through. */
	CHECK_INT((long long)hear_bulk(up), BULK);
	CHECK_INT((long long)hear_bulk(fd), BULK);
	(void)pthread_join(t[0], NULL);
	(void)pthread_join(t[1], NULL);
	box_expect(&b, GATE_E_CLOSE, GATE_OK, &e);
	CHECK_INT((long long)e.sent, BULK + 1);
	CHECK_INT((long long)e.received, BULK);
}

/* Whether the gate's pace becomes this one, or stays it, in a while. */
static bool has_pace(const struct box *b, int pace)
{
	for (int i = 0; i < 200; i++) {
		if (sched_getscheduler(b->gate) == pace)
			return true;
		(void)usleep(1000);
	}
	return false;
}

/* Many bytes at once from the server; the last of them may come alone. */
static bool streams(const struct box *b, int up, int fd, int pace)
{
	static char data[128 << 10];

	for (int i = 0; i < 50; i++) {
		size_t got = 0;
		ssize_t n;

		CHECK_INT(send(up, data, sizeof(data), MSG_NOSIGNAL),
			  sizeof(data));
		while (got < sizeof(data) &&
		       (n = recv(fd, data, sizeof(data) - got, 0)) > 0)
			got += (size_t)n;
		CHECK_INT(got, sizeof(data));
		if (has_pace(b, pace))
			return true;
	}
	return false;
}

TEST(a_stream_gives_way_and_small_pieces_do_not)
{
	/* Who is started to give way anyway keeps to that. */
	int own = sched_getscheduler(0);
	struct box b;
	int up;
	int fd;

	box_init(&b);
	(void)box_allow(&b, "api.test", 7);
	box_run(&b);
	fd = dial("api.test", 7);
	say_text(fd, "\x01");
	up = reached(&b, WAIT_MS);
	hears_text(up, "\x01");
	CHECK(has_pace(&b, own));
	CHECK(streams(&b, up, fd, own == SCHED_OTHER ? SCHED_BATCH : own));
	say_text(up, "\x02");
	hears_text(fd, "\x02");
	CHECK(has_pace(&b, own));
}

TEST(ends_with_its_client)
{
	struct gate_event e;
	union heard h;
	struct box b;
	int status;
	int fd;

	box_init(&b);
	(void)box_allow(&b, "api.test", 7);
	box_run(&b);
	fd = dial("api.test", 7);
	say_text(fd, "\x01");
	hears_text(reached(&b, WAIT_MS), "\x01");
	(void)shutdown(b.client, SHUT_WR);
	box_expect(&b, GATE_E_CLOSE, GATE_R_RESET, &e);
	CHECK_INT((long long)e.sent, 1);
	CHECK(box_hear(&b, &h, WAIT_MS) == (uint32_t)-1);
	CHECK_INT(waitpid(b.gate, &status, 0), b.gate);
	CHECK_INT(status, 0);
	CHECK_INT(ends(fd), -ECONNRESET);
}

static void check_fails(struct box *b, const char *why)
{
	union heard h;
	uint32_t type = box_hear(b, &h, WAIT_MS);
	int status;

	if (type == GATE_TAKEN)
		type = box_hear(b, &h, WAIT_MS);
	CHECK_INT(type, GATE_FAILED);
	CHECK_HAS(h.event.detail, why);
	CHECK_INT(waitpid(b->gate, &status, 0), b->gate);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

TEST(tables_that_are_none)
{
	const struct gate_head head = { GATE_TABLE, 1 };
	struct box b;
	int fd;

	box_init(&b);
	box_start(&b);
	fd = memfd_create("table", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	CHECK_INT(io_write_all(fd, &b.m, sizeof(b.m)), 0);
	CHECK_INT(io_send(b.client, &head, sizeof(head), &fd, 1), 0);
	check_fails(&b, "not sealed");
	box_start(&b);
	b.m.t.magic++;
	box_send_table(&b, 1);
	check_fails(&b, "");
	/* Also where one was good before. */
	box_init(&b);
	(void)box_allow(&b, "api.test", 7);
	box_run(&b);
	b.m.t.n_rules = GATE_MAX_RULES + 1;
	box_send_table(&b, 2);
	check_fails(&b, "");
}

/* Who hears a gate of the daemon may not decide for it. */
static void run_final(struct box *b)
{
	box_init(b);
	(void)box_allow(b, "api.test", 7);
	b->m.t.is_final = true;
	box_run(b);
}

TEST(a_final_table_is_not_replaced)
{
	struct box b;

	run_final(&b);
	CHECK(resolve4("api.test") != 0);
	(void)box_allow(&b, "more.test", 7);
	box_send_table(&b, 2);
	check_fails(&b, "final");
}

TEST(a_final_table_takes_no_answer)
{
	struct box b;

	run_final(&b);
	answer(&b, 1, true);
	check_fails(&b, "final");
}

TEST(sockets_that_are_others)
{
	struct gate_sockets s = { .head = { GATE_SOCKETS, 0 }, .n_ports = 1 };
	int fds[3];
	struct box b;

	box_init(&b);
	(void)box_allow(&b, "api.test", 7);
	box_start(&b);
	box_send_table(&b, 1);
	box_enter(&b);
	fds[0] = listen4(GATE_DNS4, 53, SOCK_DGRAM);
	fds[1] = listen4(GATE_DNS4, 53, SOCK_STREAM);
	fds[2] = listen4(INADDR_ANY, 8, SOCK_STREAM);
	CHECK_INT(io_send(b.init, &s, sizeof(s), fds, 3), 0);
	check_fails(&b, "socket 2");
	box_init(&b);
}

static void has_line(const char *status, const char *key, const char *want)
{
	const char *at = strstr(status, key);

	CHECK(at && strncmp(at + strlen(key), want, strlen(want)) == 0);
}

TEST(has_no_rights)
{
	char status[4096];
	char path[64];
	struct box b;
	unsigned int uid = 0;

	box_init(&b);
	(void)box_allow(&b, "api.test", 7);
	box_run(&b);
	CHECK(resolve4("api.test") != 0);
	(void)snprintf(path, sizeof(path), "/proc/%d/status", b.gate);
	CHECK(io_read_file(AT_FDCWD, path, status, sizeof(status)) > 0);
	has_line(status, "\nCapEff:\t", "0000000000000000\n");
	has_line(status, "\nCapPrm:\t", "0000000000000000\n");
	has_line(status, "\nNoNewPrivs:\t", "1\n");
	has_line(status, "\nSeccomp:\t", "2\n");
	has_line(status, "\nThreads:\t", "1\n");
	CHECK(sscanf(strstr(status, "\nUid:"), "\nUid:\t%u", &uid) == 1);
	if (geteuid() == 0) {
		CHECK(uid > 65534);
		has_line(status, "\nGroups:\t", " \n");
	}
}

TAP_MAIN()
