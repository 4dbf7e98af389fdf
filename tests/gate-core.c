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
	if (h.event.reason == GATE_R_HTTP)
		hears_text(fd, "HTTP/1.1 400 ");
	else if (h.event.reason == GATE_R_HTTP_HOST)
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

/* All that comes, as text. */
static const char *hears_all(int fd)
{
	static char text[4096];
	size_t n = 0;

	while (n < sizeof(text) - 1 && is_ready(fd, WAIT_MS)) {
		ssize_t r = recv(fd, text + n, sizeof(text) - 1 - n, 0);

		if (r <= 0)
			break;
		n += (size_t)r;
	}
	text[n] = '\0';
	return text;
}

TEST(a_first_request_is_refused_in_words)
{
	static const struct {
		const char *request;
		const char *parts[4];
	} rows[] = {
		{ "PUT /a?k=v HTTP/1.1\r\nHost: evil.test\r\n\r\n",
		  { "HTTP/1.1 403 ", "\"method\":\"PUT\",\"path\":\"/a\"",
		    "the request is for 'evil.test:80', and its connection was "
		    "made for 'api.test:80'",
		    "\"reason\":\"http_host\"" } },
		{ "GET /b HTTP/1.1\r\nHost: api.test\r\nHost: b\r\n\r\n",
		  { "HTTP/1.1 400 ", "\"method\":\"GET\",\"path\":\"/b\"",
		    "no Host, two of them", "\"reason\":\"http_ambiguous\"" } },
		{ "GET /c HTTP/1.1\r\nHost: api.test\r\n x\r\n\r\n",
		  { "HTTP/1.1 400 ", "a folded line", "", "" } },
	};
	struct box b;

	box_init(&b);
	(void)box_allow(&b, "api.test", 80);
	box_run(&b);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *text = "";

		/* Late, on a busy machine, the gate had dialled before. */
		for (int k = 0; k < 10 && !*text; k++) {
			int fd = dial("api.test", 80);

			say_text(fd, rows[i].request);
			text = hears_all(fd);
			(void)close(fd);
		}
		for (size_t k = 0; k < ARRAY_SIZE(rows[i].parts); k++)
			CHECK_HAS(text, rows[i].parts[k]);
		CHECK(!strstr(text, "k=v"));
	}
}

#define CIPHER "\x14\x03\x03\x00\x01\x01"

/* A connection whose server was sent the first hello and wants another. */
static int begin_retry(struct box *b, int *ret_up, size_t record)
{
	int fd = dial("api.test", 443);
	uint8_t data[512];
	size_t n;

	(void)say_hello(fd, "api.test");
	*ret_up = reached(b, WAIT_MS);
	hears_hello(*ret_up, "api.test");
	n = hello_answer(data, sizeof(data), true, record);
	say(*ret_up, data, n);
	hears(fd, data, n);
	return fd;
}

/* Whatever is between, and in whatever pieces it comes. */
TEST(a_second_hello_must_agree_too)
{
	static const struct {
		struct hello again;
		enum gate_reason why;
		const char *detail;
	} rows[] = {
		{ { .name = "api.test" }, GATE_OK, "" },
		{ { .name = "API.test", .record = 7 }, GATE_OK, "" },
		{ { .name = "evil.test" }, GATE_R_SERVER_NAME, "evil.test" },
		{ { .name = "evil.test", .record = 7 },
		  GATE_R_SERVER_NAME,
		  "evil.test" },
		{ { .name = NULL }, GATE_R_NO_NAME, "" },
		{ { .name = "api.test", .is_hidden = true },
		  GATE_R_NO_NAME,
		  "api.test" },
		{ { .name = "api.test", .again = "evil.test" },
		  GATE_R_NO_NAME,
		  "a second hello" },
	};
	struct gate_event e;
	struct box b;

	box_init(&b);
	(void)box_allow(&b, "api.test", 443);
	box_run(&b);
	for (size_t i = 0; i < 2 * ARRAY_SIZE(rows); i++) {
		bool is_slow = i >= ARRAY_SIZE(rows);
		size_t k = i % ARRAY_SIZE(rows);
		uint8_t data[2048];
		size_t n;
		int up;
		int fd = begin_retry(&b, &up, is_slow ? 5 : 0);

		say(fd, CIPHER, 6);
		n = hello_make(&rows[k].again, data, sizeof(data));
		for (size_t at = 0; at < n; at += is_slow ? 11 : n) {
			(void)send(fd, data + at,
				   is_slow ? MIN((size_t)11, n - at) : n,
				   MSG_NOSIGNAL);
			(void)usleep(is_slow ? 1000 : 0);
		}
		if (rows[k].why == GATE_OK) {
			hears(up, CIPHER, 6);
			hears(up, data, n);
			say_text(up, "on");
			hears_text(fd, "on");
			(void)close(fd);
			(void)close(up);
			box_expect(&b, GATE_E_CLOSE, GATE_OK, &e);
			continue;
		}
		CHECK_INT(ends(fd), -ECONNRESET);
		box_expect(&b, GATE_E_CLOSE, rows[k].why, &e);
		CHECK_STR(e.detail, rows[k].detail);
		(void)close(fd);
		(void)close(up);
	}
}

/* Nobody can tell which of two hellos a server will take for its first. */
TEST(a_second_hello_is_not_sent_ahead)
{
	/* A change of cipher, and three bytes of early data. */
	static const uint8_t early[] = { 0x14, 3, 3, 0, 1,   1,   0x17,
					 3,    3, 0, 3, 'a', 'b', 'c' };
	uint8_t data[1024];
	struct box b;
	size_t n;
	int up;
	int fd;

	box_init(&b);
	(void)box_allow(&b, "api.test", 443);
	box_run(&b);
	fd = dial("api.test", 443);
	n = hello_make(&(struct hello){ .name = "api.test" }, data, 512);
	memcpy(data + n, early, sizeof(early));
	n += sizeof(early);
	n += hello_make(&(struct hello){ .name = "evil.test" }, data + n, 512);
	say(fd, data, n);
	up = reached(&b, WAIT_MS);
	CHECK_INT(ends(fd), -ECONNRESET);
	CHECK(ends(up) <= 0);
	box_expect(&b, GATE_E_CLOSE, GATE_R_NO_NAME, NULL);
	/* Early data may be, and after an ordinary answer there is no other. */
	fd = dial("api.test", 443);
	n = hello_make(&(struct hello){ .name = "api.test" }, data, 512);
	memcpy(data + n, early, sizeof(early));
	n += sizeof(early);
	say(fd, data, n);
	up = reached(&b, WAIT_MS);
	hears(up, data, n);
	n = hello_answer(data, sizeof(data), false, 0);
	say(up, data, n);
	hears(fd, data, n);
	(void)say_hello(fd, "evil.test");
	hears_hello(up, "evil.test");
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
	struct gate_event e;
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
	box_expect(&b, GATE_E_REQUEST, GATE_R_RESET, &e);
	CHECK_INT(e.flags, GATE_EVENT_OUT | GATE_EVENT_AGAIN);
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
	CHECK_INT((long long)(e.sent + e.received), 100);
	fd = dial("api.test", 80);
	CHECK_INT(ends(fd), -ECONNRESET);
}

#define POST                                                                   \
	"POST /p HTTP/1.1\r\nHost: api.test\r\n"                               \
	"Content-Length: 4\r\n\r\nbody"

/* One that the server has is on the record as let out, however it ends. */
TEST(a_request_that_is_broken_off_was_let_out)
{
	const struct linger now = { .l_onoff = 1, .l_linger = 0 };
	struct gate_event e;
	struct box b;
	char got[256];
	int up;
	int fd;

	box_init(&b);
	(void)box_allow(&b, "api.test", 80);
	box_run(&b);
	fd = dial("api.test", 80);
	say_text(fd, POST);
	up = reached(&b, WAIT_MS);
	for (size_t n = 0; n < strlen(POST); n += 1)
		CHECK_INT(recv(up, got, 1, 0), 1);
	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	(void)close(fd);
	box_expect(&b, GATE_E_REQUEST, GATE_R_RESET, &e);
	CHECK_INT(e.flags, GATE_EVENT_OUT | GATE_EVENT_AGAIN);
	CHECK_INT((long long)e.sent, (long long)strlen(POST));
	CHECK_INT((long long)e.received, 0);
	box_expect(&b, GATE_E_CLOSE, GATE_R_RESET, NULL);
}

/* Nor is one that reached the server before the quota was used up. */
TEST(a_request_before_the_end_of_a_quota_was_let_out)
{
	static char data[300000];
	struct gate_event e;
	uint64_t total = 0;
	struct box b;
	ssize_t n;
	int up;
	int fd;

	box_init(&b);
	box_allow(&b, "api.test", 80)->bytes = 100000;
	box_run(&b);
	fd = dial("api.test", 80);
	say_text(fd, "POST /p HTTP/1.1\r\nHost: api.test\r\n"
		     "Content-Length: 9999999\r\n\r\n");
	up = reached(&b, WAIT_MS);
	(void)send(fd, data, sizeof(data), MSG_NOSIGNAL | MSG_DONTWAIT);
	while (is_ready(up, WAIT_MS) &&
	       (n = recv(up, data, sizeof(data), 0)) > 0)
		total += (uint64_t)n;
	/* What is put in anew, a header, has a few bytes of its own. */
	CHECK(total > 50000 && total < 100100);
	box_expect(&b, GATE_E_REQUEST, GATE_R_BYTES, &e);
	CHECK_INT(e.flags, GATE_EVENT_OUT | GATE_EVENT_AGAIN);
	box_expect(&b, GATE_E_CLOSE, GATE_R_BYTES, &e);
	CHECK_INT(e.flags, 0);
	CHECK_INT((long long)(e.sent + e.received), 100000);
}

/* Who has closed is followed at once, and has its place back. */
TEST(who_has_left_is_not_waited_for)
{
	struct gate_event e;
	struct box b;
	int up;
	int fd;

	box_init(&b);
	box_allow(&b, "api.test", 80)->connections = 1;
	box_run(&b);
	for (int i = 0; i < 3; i++) {
		fd = dial("api.test", 80);
		say_text(fd, REQUEST);
		up = reached(&b, WAIT_MS);
		hears_text(up, "GET ");
		(void)close(fd);
		box_expect(&b, GATE_E_REQUEST, GATE_R_RESET, &e);
		CHECK(e.us < 2000000);
		box_expect(&b, GATE_E_CLOSE, GATE_R_RESET, NULL);
		(void)close(up);
	}
	/* One that has only said all that it wanted to hears its answer. */
	fd = dial("api.test", 80);
	say_text(fd, REQUEST);
	up = reached(&b, WAIT_MS);
	hears_text(up, "GET ");
	(void)shutdown(fd, SHUT_WR);
	(void)poll(NULL, 0, 1500);
	say_text(up, ANSWER);
	hears_text(fd, ANSWER);
	CHECK_INT(ends(fd), 0);
	box_expect(&b, GATE_E_REQUEST, GATE_OK, NULL);
	box_expect(&b, GATE_E_CLOSE, GATE_OK, NULL);
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

/* what nobody hears */

static int dial_udp(uint32_t address, uint16_t port)
{
	struct sockaddr_in a = at4(address, port);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int r = (int)sendto(fd, "x", 1, 0, (struct sockaddr *)&a, sizeof(a));

	(void)close(fd);
	return r;
}

TEST(what_nobody_hears_is_told)
{
	struct gate_event e;
	union heard h;
	uint32_t yes;
	struct box b;

	box_init(&b);
	(void)box_allow(&b, "yes.test", 443);
	b.is_watched = true;
	box_run(&b);
	yes = resolve4("yes.test");
	for (int i = 0; i < 2; i++) {
		CHECK_INT(dial4(yes, 22), -ECONNREFUSED);
		box_expect(&b, GATE_E_DENIED, GATE_R_PORT, &e);
		CHECK_STR(e.host, "yes.test");
		CHECK_INT(e.port, 22);
		CHECK_INT(e.address[15], 0);
	}
	/* A flow of UDP is told once, and another is another. */
	for (int i = 0; i < 3; i++)
		CHECK_INT(dial_udp(yes, 443), 1);
	CHECK_INT(dial_udp(yes, 53), 1);
	box_expect(&b, GATE_E_DENIED, GATE_R_UDP, &e);
	CHECK_STR(e.host, "yes.test");
	CHECK_INT(e.port, 443);
	box_expect(&b, GATE_E_DENIED, GATE_R_UDP, &e);
	CHECK_INT(e.port, 53);
	/* One that nobody was given. */
	CHECK_INT(dial4(GATE_NET4 + 4000, 22), -ECONNREFUSED);
	box_expect(&b, GATE_E_DENIED, GATE_R_PORT, &e);
	CHECK_STR(e.host, "198.18.15.160");
	/* The box's own is its own; what is listened on is told elsewhere. */
	CHECK_INT(dial4(INADDR_LOOPBACK, 22), -ECONNREFUSED);
	CHECK_INT(dial4(GATE_DNS4, 22), -ECONNREFUSED);
	CHECK_INT(dial_udp(INADDR_LOOPBACK, 9), 1);
	(void)say_hello(dial("yes.test", 443), "yes.test");
	CHECK(reached(&b, WAIT_MS) >= 0);
	CHECK_INT(box_hear(&b, &h, 50), 0);
}

TEST(what_nobody_hears_holds_nobody_up)
{
	union heard h;
	uint64_t n = 0;
	int told = 0;
	uint32_t yes;
	struct box b;

	box_init(&b);
	(void)box_allow(&b, "yes.test", 443);
	b.is_watched = true;
	box_run(&b);
	yes = resolve4("yes.test");
	for (int i = 0; i < 2000; i++)
		CHECK_INT(dial4(yes, 22), -ECONNREFUSED);
	(void)say_hello(dial("yes.test", 443), "yes.test");
	CHECK(reached(&b, WAIT_MS) >= 0);
	(void)shutdown(b.client, SHUT_WR);
	while (box_hear(&b, &h, WAIT_MS) == GATE_EVENT) {
		told += h.event.reason == GATE_R_PORT;
		n += h.event.kind == GATE_E_MORE ? h.event.count : 0;
	}
	/* Told as far as we listen, and counted. */
	CHECK(told >= 20 && told < 1000);
	CHECK(n > 0 && n + (uint64_t)told <= 2000);
	CHECK(n + (uint64_t)told > 256);
}

/* A first packet of our own, so that it can be sent again as it was. */
static void send_first(uint32_t address, uint16_t port, uint8_t number)
{
	uint8_t tcp[20] = { 0x9c, 0x40, (uint8_t)(port >> 8), (uint8_t)port };
	struct sockaddr_in a = at4(address, 0);
	int fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_TCP);

	tcp[7] = number;
	tcp[12] = 0x50;
	tcp[13] = 0x02;
	CHECK_INT(sendto(fd, tcp, sizeof(tcp), 0, (struct sockaddr *)&a,
			 sizeof(a)),
		  sizeof(tcp));
	(void)close(fd);
}

TEST(a_second_try_of_the_same_is_not_told)
{
	union heard h;
	uint32_t yes;
	struct box b;

	box_init(&b);
	(void)box_allow(&b, "yes.test", 443);
	b.is_watched = true;
	box_run(&b);
	yes = resolve4("yes.test");
	for (int i = 0; i < 3; i++)
		send_first(yes, 22, 1);
	box_expect(&b, GATE_E_DENIED, GATE_R_PORT, NULL);
	CHECK_INT(box_hear(&b, &h, 50), 0);
	send_first(yes, 22, 2);
	box_expect(&b, GATE_E_DENIED, GATE_R_PORT, NULL);
	CHECK_INT(box_hear(&b, &h, 50), 0);
}

TEST(another_socket_does_not_watch)
{
	union heard h;
	struct box b;

	box_init(&b);
	(void)box_allow(&b, "yes.test", 443);
	b.is_watched = b.is_watched_wrong = true;
	box_run(&b);
	CHECK_INT(box_hear(&b, &h, WAIT_MS), GATE_FAILED);
	CHECK_HAS(h.event.detail, "another one");
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

#define PLACE "CORDON-PLACEHOLDER-0001"

static void allow_secret(struct box *b)
{
	struct gate_rule *r = box_allow(b, "secret.test", 443);

	r->flags = GATE_RULE_INSPECT;
	r->placeholder = table_string(&b->m, PLACE);
	r->value = table_string(&b->m, "value-of-the-secret");
	r->name = table_string(&b->m, "KEY");
	r->header = table_string(&b->m, "*");
}

static void expect_placeholder(struct box *b)
{
	struct gate_event e;

	box_expect(b, GATE_E_SECRET, GATE_R_PLACEHOLDER, &e);
	CHECK_STR(e.detail, "KEY may not stand in what is relayed");
	/* One denial, though there are two records. */
	box_expect(b, GATE_E_CLOSE, GATE_R_PLACEHOLDER, &e);
	CHECK_INT(e.flags, GATE_EVENT_AGAIN);
}

/* Bytes that nobody looks into still have no placeholder in them. */
static void check_relayed(struct box *b, int fd, bool is_text)
{
	int up;

	say_text(fd, is_text ? "ping" : "\1\2ping\n");
	up = reached(b, WAIT_MS);
	hears_text(up, is_text ? "ping" : "\1\2ping\n");
	say_text(fd, "and CORDON-PLACE\n");
	hears_text(up, "and CORDON-PLACE\n");
	say_text(fd, "and CORDON-PLACE");
	hears_text(up, "and CORDON-PLACE");
	say_text(fd, "HOLDER-0001 more");
	CHECK_INT(ends(fd), -ECONNRESET);
	CHECK(ends(up) <= 0);
	expect_placeholder(b);
	(void)close(fd);
	(void)close(up);
}

TEST(a_placeholder_is_not_relayed)
{
	struct box b;
	int up;
	int fd;

	box_init(&b);
	allow_secret(&b);
	(void)box_allow(&b, "api.test", 7);
	(void)table_rule(&b.m, "127.0.0.1", b.server_port);
	box_run(&b);
	check_relayed(&b, dial("api.test", 7), false);
	check_relayed(&b, dial("api.test", 7), true);
	check_relayed(&b, dial4(INADDR_LOOPBACK, b.server_port), false);
	/* Also where it is all that is said, and could become a request. */
	fd = dial("api.test", 7);
	say_text(fd, PLACE);
	up = reached(&b, WAIT_MS);
	CHECK(ends(up) <= 0);
	CHECK_INT(ends(fd), -ECONNRESET);
	expect_placeholder(&b);
	(void)close(up);
	/* In TLS there is nothing to be seen. */
	fd = dial("api.test", 7);
	(void)say_hello(fd, "api.test");
	up = reached(&b, WAIT_MS);
	hears_hello(up, "api.test");
	say_text(fd, PLACE);
	hears_text(up, PLACE);
}

/* A server at an address may have any name; its requests are read. */
TEST(requests_to_an_address_where_there_are_secrets)
{
	static const char *const bad[] = {
		"GET / HTTP/1.1\r\nHost: any.test\r\nX-Key: " PLACE "\r\n\r\n",
		"GET /?k=%43ORDON-PLACEHOLDER-0001 HTTP/1.1\r\n"
		"Host: 127.0.0.1\r\n\r\n",
		"GET / HTTP/1.0\r\nAuthorization: Basic "
		"dTpDT1JET04tUExBQ0VIT0xERVItMDAwMQ==\r\n\r\n",
	};
	struct gate_event e;
	struct box b;
	int up;
	int fd;

	box_init(&b);
	allow_secret(&b);
	(void)table_rule(&b.m, "127.0.0.1", b.server_port);
	box_run(&b);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		fd = dial4(INADDR_LOOPBACK, b.server_port);
		say_text(fd, bad[i]);
		hears_text(fd, "HTTP/1.1 403 ");
		box_expect(&b, GATE_E_SECRET, GATE_R_PLACEHOLDER, &e);
		CHECK_STR(e.host, "127.0.0.1");
		(void)close(fd);
		up = reached(&b, WAIT_MS);
		CHECK(ends(up) <= 0);
		(void)close(up);
		box_expect(&b, GATE_E_CLOSE, GATE_OK, NULL);
	}
	fd = dial4(INADDR_LOOPBACK, b.server_port);
	say_text(fd, "GET / HTTP/1.1\r\nHost: any.test\r\n\r\n");
	up = reached(&b, WAIT_MS);
	hears_text(up, "GET / HTTP/1.1\r\nHost: any.test\r\n\r\n");
	say_text(up, ANSWER);
	hears_text(fd, ANSWER);
	box_expect(&b, GATE_E_REQUEST, GATE_OK, NULL);
}

/* Without a secret nobody reads them. */
TEST(requests_to_an_address_where_there_are_none)
{
	struct box b;
	int up;
	int fd;

	box_init(&b);
	(void)table_rule(&b.m, "127.0.0.1", b.server_port);
	box_run(&b);
	fd = dial4(INADDR_LOOPBACK, b.server_port);
	say_text(fd, "GET / HTTP/1.1\nX: " PLACE "\n\n");
	up = reached(&b, WAIT_MS);
	hears_text(up, "GET / HTTP/1.1\nX: " PLACE "\n\n");
}

/* A head that is longer than a look: its host is judged by who reads it. */
/* One more secret for an address, by a rule that is wider. */
static void address_secret(struct box *b, const char *host, const char *name)
{
	struct gate_rule *r = table_rule(&b->m, host, b->server_port);
	char place[32];

	(void)snprintf(place, sizeof(place), "PLACE-%s", name);
	r->flags = GATE_RULE_INSPECT;
	r->placeholder = table_string(&b->m, place);
	r->value = table_string(&b->m, "value-of-the-secret");
	r->name = table_string(&b->m, name);
	r->header = table_string(&b->m, name);
}

TEST(rules_for_an_address_add_up)
{
	struct box b;
	int up;
	int fd;

	box_init(&b);
	(void)table_rule(&b.m, "127.0.0.1", b.server_port);
	address_secret(&b, "127.0.0.1", "X-One");
	address_secret(&b, "127.0.0.1", "X-Two");
	b.m.t.rules[2].bits = 104; /* of 127.0.0.0/8 */
	box_run(&b);
	fd = dial4(INADDR_LOOPBACK, b.server_port);
	{
		char text[256];

		(void)snprintf(
			text, sizeof(text),
			"GET / HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n"
			"X-One: PLACE-X-One\r\nX-Two: PLACE-X-Two\r\n\r\n",
			b.server_port);
		say_text(fd, text);
		up = reached(&b, WAIT_MS);
		(void)snprintf(text, sizeof(text),
			       "GET / HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n"
			       "X-One: value-of-the-secret\r\n"
			       "X-Two: value-of-the-secret\r\n",
			       b.server_port);
		hears_text(up, text);
	}
	/* By the rule that says nothing of requests any host may be meant, but
	 * then no other rule counts. */
	fd = dial4(INADDR_LOOPBACK, b.server_port);
	say_text(fd, "GET / HTTP/1.1\r\nHost: any.test\r\n\r\n");
	up = reached(&b, WAIT_MS);
	hears_text(up, "GET / HTTP/1.1\r\nHost: any.test\r\n");
	fd = dial4(INADDR_LOOPBACK, b.server_port);
	say_text(fd, "GET / HTTP/1.1\r\nHost: any.test\r\n"
		     "X-One: PLACE-X-One\r\n\r\n");
	hears_text(fd, "HTTP/1.1 403 ");
}

TEST(a_first_request_with_a_long_head)
{
	static char line[40000];
	struct box b;
	int up;
	int fd;

	box_init(&b);
	(void)box_allow(&b, "api.test", 80);
	box_run(&b);
	memset(line, 'x', sizeof(line) - 1);
	fd = dial("api.test", 80);
	say_text(fd, "GET / HTTP/1.1\r\nX: ");
	say_text(fd, line);
	say_text(fd, "\r\nHost: api.test\r\n\r\n");
	up = reached(&b, WAIT_MS);
	hears_text(up, "GET / HTTP/1.1\r\nHost: api.test\r\nX: xxx");
	say_text(up, ANSWER);
	hears_text(fd, ANSWER);
	box_expect(&b, GATE_E_REQUEST, GATE_OK, NULL);
	(void)close(fd);
	(void)close(up);
	box_expect(&b, GATE_E_CLOSE, GATE_OK, NULL);
	fd = dial("api.test", 80);
	say_text(fd, "GET / HTTP/1.1\r\nX: ");
	say_text(fd, line);
	say_text(fd, "\r\nHost: evil.test\r\n\r\n");
	hears_text(fd, "HTTP/1.1 403 ");
	box_expect(&b, GATE_E_REQUEST, GATE_R_HTTP_HOST, NULL);
	up = reached(&b, WAIT_MS);
	CHECK(ends(up) <= 0);
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

/* Nor is anybody dialled for one that has said nothing at all. */
TEST(who_leaves_without_a_word_is_recorded_so)
{
	static const uint8_t none[16];
	struct gate_event e;
	struct box b;
	int up;
	int fd;

	box_init(&b);
	(void)box_allow(&b, "api.test", 443);
	box_allow(&b, "open.test", 443)->flags = GATE_RULE_INSPECT;
	box_run(&b);
	for (int i = 0; i < 2; i++) {
		(void)close(dial(i ? "open.test" : "api.test", 443));
		box_expect(&b, GATE_E_CLOSE, GATE_R_LEFT, &e);
		CHECK_INT((long long)(e.sent + e.received), 0);
		CHECK(memcmp(e.address, none, sizeof(none)) == 0);
		CHECK(reached(&b, 100) < 0);
	}
	/* One that only wants to hear has not left. */
	fd = dial("api.test", 443);
	(void)shutdown(fd, SHUT_WR);
	up = reached(&b, WAIT_MS);
	CHECK_INT(ends(up), 0);
	say_text(up, "the time is");
	hears_text(fd, "the time is");
	(void)close(up);
	CHECK_INT(ends(fd), 0);
	box_expect(&b, GATE_E_CLOSE, GATE_OK, NULL);
}

/* What cannot be looked into is refused, and told. */
TEST(http_2_alone_is_refused_where_requests_are_read)
{
	uint8_t data[512];
	struct box b;
	size_t n;
	int fd;

	box_init(&b);
	(void)box_allow(&b, "api.test", 443);
	box_allow(&b, "open.test", 443)->flags = GATE_RULE_INSPECT;
	box_run(&b);
	fd = dial("open.test", 443);
	n = hello_make(&(struct hello){ .name = "open.test", .alpn = "h2" },
		       data, sizeof(data));
	say(fd, data, n);
	CHECK_INT(ends(fd), -ECONNRESET);
	box_expect(&b, GATE_E_DENIED, GATE_R_NO_HTTP1, NULL);
	CHECK(reached(&b, 100) < 0);
	/* Elsewhere nobody minds. */
	fd = dial("api.test", 443);
	n = hello_make(&(struct hello){ .name = "api.test", .alpn = "h2" },
		       data, sizeof(data));
	say(fd, data, n);
	hears(reached(&b, WAIT_MS), data, n);
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

/* Of a daemon's: with a socket of its own for what it asks, or without. */
static void run_asking(struct box *b, bool has_desk)
{
	box_init(b);
	box_allow(b, "yes.test", 443)->flags = GATE_RULE_ASK;
	box_allow(b, "no.test", 443)->flags = GATE_RULE_ASK;
	b->m.t.is_final = true;
	b->m.t.ask_wait_ms = 20000;
	b->asks = has_desk;
	box_run(b);
}

static void desk_hears(struct box *b, uint32_t number, const char *host)
{
	struct gate_ask ask = { 0 };
	int fds[IO_MAX_FDS];
	int n = 0;

	CHECK(is_ready(b->desk, WAIT_MS));
	CHECK_INT(io_recv(b->desk, &ask, sizeof(ask), 0, fds, &n), sizeof(ask));
	CHECK_INT(ask.head.type, GATE_ASKED);
	CHECK_INT(ask.head.number, number);
	CHECK_INT(ask.port, 443);
	CHECK_STR(ask.host, host);
}

static void desk_says(struct box *b, uint32_t number, uint32_t is_allowed)
{
	const struct gate_answer a = { { GATE_ANSWER, number }, is_allowed };

	CHECK_INT(io_send(b->desk, &a, sizeof(a), NULL, 0), 0);
}

TEST(a_daemons_gate_asks_at_its_desk)
{
	union heard h;
	struct box b;
	int fd[2];

	run_asking(&b, true);
	for (int i = 0; i < 2; i++) {
		fd[i] = dial("yes.test", 443);
		(void)say_hello(fd[i], "yes.test");
	}
	desk_hears(&b, 1, "yes.test");
	/* Once, and not the client. */
	CHECK(!is_ready(b.desk, 50));
	CHECK_INT(box_hear(&b, &h, 50), 0);
	CHECK_INT(reached(&b, 20), -1);
	desk_says(&b, 2, 1); /* of what was not asked */
	CHECK_INT(reached(&b, 50), -1);
	desk_says(&b, 1, 1);
	for (int i = 0; i < 2; i++)
		hears_hello(reached(&b, WAIT_MS), "yes.test");
	/* What was said of 2 is not the answer to the second question. */
	fd[0] = dial("no.test", 443);
	desk_hears(&b, 2, "no.test");
	CHECK_INT(reached(&b, 50), -1);
	desk_says(&b, 2, 2); /* neither yes nor no */
	CHECK_INT(ends(fd[0]), -ECONNRESET);
	/* An answer is the last one. */
	desk_says(&b, 2, 1);
	fd[0] = dial("no.test", 443);
	CHECK_INT(ends(fd[0]), -ECONNRESET);
}

TEST(a_client_does_not_answer_for_the_desk)
{
	struct box b;
	int fd;

	run_asking(&b, true);
	fd = dial("yes.test", 443);
	(void)say_hello(fd, "yes.test");
	desk_hears(&b, 1, "yes.test");
	answer(&b, 1, true);
	check_fails(&b, "final");
	CHECK_INT(reached(&b, 50), -1);
	CHECK_INT(ends(fd), -ECONNRESET);
}

TEST(without_a_desk_nobody_is_asked)
{
	struct box b;
	int fd;

	run_asking(&b, false);
	fd = dial("yes.test", 443);
	CHECK_INT(ends(fd), -ECONNRESET);
	box_expect(&b, GATE_E_DENIED, GATE_R_NOT_APPROVED, NULL);
}

TEST(a_desk_that_is_gone_says_no)
{
	struct box b;
	int fd;

	run_asking(&b, true);
	fd = dial("yes.test", 443);
	desk_hears(&b, 1, "yes.test");
	(void)close(b.desk);
	CHECK_INT(ends(fd), -ECONNRESET);
	box_expect(&b, GATE_E_DENIED, GATE_R_NOT_APPROVED, NULL);
	fd = dial("no.test", 443);
	CHECK_INT(ends(fd), -ECONNRESET);
	box_expect(&b, GATE_E_DENIED, GATE_R_NOT_APPROVED, NULL);
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
