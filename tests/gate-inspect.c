/* SPDX-License-Identifier: Apache-2.0 */

/* Connections that a gate looks into, with real TLS on both sides. */

#include "gate-inspect.h"

#define OK_BODY "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#define GET_A   "GET /a?q=1 HTTP/1.1\r\nHost: api.test\r\n\r\n"
#define PLACE   "CORDON-PLACEHOLDER-0001"
#define OTHER   "CORDON-PLACEHOLDER-0002"
#define VALUE   "s3cr3t-value-of-this-test"

static const struct rule any[] = { { .host = HOST } };

static const struct rule gets[] = {
	{ .host = HOST,
	  .methods = { "GET", "HEAD" },
	  .paths = { "/a/**", "/a" } },
};

static const struct rule secret[] = {
	{ .host = HOST,
	  .placeholder = PLACE,
	  .value = VALUE,
	  .name = "TOKEN",
	  .header = "Authorization",
	  .query = "key",
	  .body = "token" },
	{ .host = "other.test",
	  .placeholder = OTHER,
	  .value = "value-for-the-other-host",
	  .name = "OTHER_TOKEN" },
};

/* TLS */

TEST(a_request_goes_through)
{
	struct lab *l = LAB(.answers = { OK_BODY });

	CHECK(lab_start(l, any, 1));
	box_say(l, GET_A);
	CHECK_HAS(box_hear(l, "ok"), "HTTP/1.1 200 OK\r\n");
	lab_end(l);
	CHECK_STR(l->got, "GET /a?q=1 HTTP/1.1\r\nHost: api.test\r\n\r\n");
	CHECK_STR(l->server_sni, HOST);
	CHECK_INT(l->n_events, 1);
	CHECK_INT(l->events[0].kind, GATE_E_REQUEST);
	CHECK_INT(l->events[0].status, 200);
	CHECK_INT(l->events[0].reason, GATE_OK);
	CHECK_STR(l->events[0].method, "GET");
	CHECK_STR(l->events[0].path, "/a");
	CHECK_STR(l->events[0].host, HOST);
	CHECK_INT(l->over.reason, GATE_OK);
}

TEST(the_authority_can_be_named_and_is_the_same_all_the_time)
{
	struct err err;
	size_t len, again;
	const char *pem;

	CHECK_INT(authority_make(&err), 0);
	pem = authority_pem(&len);
	CHECK(strncmp(pem, "-----BEGIN CERTIFICATE-----\n", 28) == 0);
	CHECK_INT(len, strlen(pem));
	CHECK(authority_subject_hash() != 0);
	CHECK_INT(authority_make(&err), 0);
	CHECK(authority_pem(&again) == pem && again == len);
}

TEST(http_1_is_chosen_where_h2_is_offered)
{
	static const unsigned char both[] = "\x02h2\x08http/1.1";
	struct lab *l = LAB(.answers = { OK_BODY }, .alpn = both,
			    .n_alpn = sizeof(both) - 1);
	const unsigned char *alpn;
	unsigned int len;

	CHECK(lab_start(l, any, 1));
	SSL_get0_alpn_selected(l->box.ssl, &alpn, &len);
	CHECK(len == 8 && memcmp(alpn, "http/1.1", 8) == 0);
	box_say(l, GET_A);
	CHECK_HAS(box_hear(l, "ok"), " 200 ");
	lab_end(l);
}

TEST(h2_alone_is_no_protocol)
{
	static const unsigned char h2[] = "\x02h2";
	struct lab *l = LAB(.alpn = h2, .n_alpn = sizeof(h2) - 1);

	CHECK(!lab_start(l, any, 1));
	lab_end(l);
	CHECK_INT(l->n_got, 0);
	CHECK_INT(l->over.reason, GATE_R_NO_HTTP1);
}

TEST(tls_for_another_name_is_ended)
{
	struct lab *l = LAB(.sni = "evil.test");

	(void)lab_start(l, any, 1);
	box_say(l, GET_A);
	CHECK_STR(box_hear(l, NULL), "");
	lab_end(l);
	CHECK_INT(l->over.reason, GATE_R_SERVER_NAME);
	CHECK_INT(l->n_got, 0);
}

TEST(tls_without_a_name_is_ended)
{
	struct lab *l = LAB(.sni = "");

	(void)lab_start(l, any, 1);
	box_say(l, GET_A);
	CHECK_STR(box_hear(l, NULL), "");
	lab_end(l);
	CHECK_INT(l->over.reason, GATE_R_NO_NAME);
	CHECK_INT(l->n_got, 0);
}

static void refused_certificate(struct lab *l)
{
	CHECK(lab_start(l, any, 1));
	box_say(l, GET_A);
	CHECK_HAS(box_hear(l, NULL), "HTTP/1.1 502 Bad Gateway\r\n");
	CHECK_HAS(l->text, "\"reason\":\"certificate\"");
	lab_end(l);
	CHECK_INT(l->n_got, 0);
	CHECK_INT(l->n_events, 1);
	CHECK_INT(l->events[0].reason, GATE_R_CERTIFICATE);
}

TEST(an_upstream_certificate_for_another_host_is_refused)
{
	refused_certificate(LAB(.server_name = "evil.test"));
}

TEST(an_upstream_certificate_of_nobody_is_refused)
{
	refused_certificate(LAB(.is_untrusted = true));
}

TEST(plain_http_too_and_what_came_early)
{
	struct lab *l = LAB(.is_plain = true, .port = 80,
			    .answers = { OK_BODY },
			    .early = "GET /a HTTP/1.1\r\nHo");
	static const struct rule rule = { .host = HOST, .port = 80 };

	CHECK(lab_start(l, &rule, 1));
	box_say(l, "st: api.test:80\r\n\r\n");
	CHECK_HAS(box_hear(l, "ok"), " 200 ");
	lab_end(l);
	CHECK_STR(l->got, "GET /a HTTP/1.1\r\nHost: api.test:80\r\n\r\n");
}

static struct lab *plain_with_secret(uint16_t port, bool is_local)
{
	struct lab *l = LAB(.is_plain = true, .port = port,
			    .is_local = is_local, .answers = { OK_BODY });
	struct rule rule = secret[0];
	char text[256];

	rule.port = port;
	CHECK(lab_start(l, &rule, 1));
	(void)snprintf(text, sizeof(text),
		       "GET /a HTTP/1.1\r\nHost: api.test:%u\r\n"
		       "Authorization: " PLACE "\r\n"
		       "Connection: close\r\n\r\n",
		       (unsigned int)port);
	box_say(l, text);
	(void)box_hear(l, NULL);
	lab_end(l);
	return l;
}

TEST(no_secret_in_the_clear_but_where_it_is_meant)
{
	static const uint16_t ports[] = { 443, 8080, 8443 };
	struct lab *l;

	for (size_t i = 0; i < ARRAY_SIZE(ports); i++) {
		l = plain_with_secret(ports[i], false);
		CHECK_HAS(l->text, " 403 ");
		CHECK_HAS(l->text, "\"reason\":\"secret_in_clear\"");
		CHECK_INT(l->n_got, 0);
		CHECK_INT(l->events[0].reason, GATE_R_CLEAR);
	}
	l = plain_with_secret(80, false);
	CHECK_HAS(l->got, "Authorization: " VALUE "\r\n");
	l = plain_with_secret(8080, true);
	CHECK_HAS(l->got, "Authorization: " VALUE "\r\n");
}

/* rules */

TEST(a_method_is_refused_and_the_next_request_is_not)
{
	struct lab *l = LAB(.answers = { OK_BODY });

	CHECK(lab_start(l, gets, 1));
	box_say(l, "DELETE /a HTTP/1.1\r\nHost: api.test\r\n\r\n");
	CHECK_HAS(box_hear(l, "}\n"), "HTTP/1.1 403 Forbidden\r\n");
	CHECK_HAS(l->text, "{\"error\":\"denied\",\"layer\":\"net\",\"host\":"
			   "\"api.test\",\"port\":443,\"method\":\"DELETE\","
			   "\"path\":\"/a\",\"reason\":\"method\"");
	CHECK_HAS(l->text, "\"rule\":\"cordon.yaml:12\"");
	CHECK_HAS(l->text, "\"box\":\"box-1\"");
	box_say(l, GET_A);
	CHECK_HAS(box_hear(l, "ok"), " 200 ");
	lab_end(l);
	CHECK(!strstr(l->got, "DELETE"));
	CHECK_INT(l->n_events, 2);
	CHECK_INT(l->events[0].reason, GATE_R_METHOD);
	CHECK_INT(l->events[0].status, 403);
	CHECK_INT(l->events[1].reason, GATE_OK);
}

TEST(a_path_is_refused_however_it_is_written)
{
	static const char *const paths[] = { "/b", "/a/../b", "/a/%2e%2e/b",
					     "/a/..%2fb", "/a/%252e%252e/b" };

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		struct lab *l = LAB(.answers = { OK_BODY });
		char text[256];

		CHECK(lab_start(l, gets, 1));
		(void)snprintf(text, sizeof(text),
			       "GET %s?secret=query HTTP/1.1\r\n"
			       "Host: api.test\r\n\r\n",
			       paths[i]);
		box_say(l, text);
		CHECK_HAS(box_hear(l, "}\n"), " 403 ");
		CHECK_HAS(l->text, "\"reason\":\"path\"");
		CHECK(!strstr(l->text, "query="));
		lab_end(l);
		CHECK_INT(l->n_got, 0);
		CHECK_STR(l->events[0].path, paths[i]);
	}
}

TEST(a_refused_body_is_not_waited_for)
{
	struct lab *l = LAB(.answers = { OK_BODY });

	CHECK(lab_start(l, gets, 1));
	box_say(l, "POST /a HTTP/1.1\r\nHost: api.test\r\n"
		   "Expect: 100-continue\r\nContent-Length: 1000\r\n\r\n");
	CHECK_HAS(box_hear(l, NULL), " 403 ");
	CHECK_HAS(l->text, "Connection: close\r\n");
	CHECK(!strstr(l->text, " 100 "));
	lab_end(l);
	CHECK_INT(l->n_got, 0);
}

/* ambiguity */

static const char *const smuggled[] = {
	"Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
	"Content-Length: 5\r\nContent-Length: 5\r\n\r\nabcde",
	"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
	"Transfer-Encoding: identity\r\n\r\n",
	"Transfer-Encoding: chunked\r\nTransfer-encoding: x\r\n\r\n0\r\n\r\n",
	"X: a\r\n b\r\n\r\n",
	"X: a\nContent-Length: 3\r\n\r\n",
	"X: a\rContent-Length: 3\r\n\r\n",
	"Content-Length : 3\r\n\r\nabc",
	"Host: evil.test\r\n\r\n",
};

TEST(what_can_be_read_in_two_ways_is_answered_with_400)
{
	for (size_t i = 0; i < ARRAY_SIZE(smuggled); i++) {
		struct lab *l = LAB(.answers = { OK_BODY });

		CHECK(lab_start(l, any, 1));
		box_say(l, "POST / HTTP/1.1\r\nHost: api.test\r\n");
		box_say(l, smuggled[i]);
		box_say(l, GET_A);
		CHECK_HAS(box_hear(l, NULL), "HTTP/1.1 400 Bad Request\r\n");
		CHECK_HAS(l->text, "Connection: close\r\n");
		CHECK(!strstr(l->text, " 200 "));
		lab_end(l);
		CHECK_INT(l->n_got, 0);
		CHECK_INT(l->n_events, 1);
		CHECK_INT(l->events[0].reason, GATE_R_HTTP);
	}
}

TEST(a_broken_body_ends_both_sides)
{
	struct lab *l = LAB(.answers = { OK_BODY });

	CHECK(lab_start(l, any, 1));
	box_say(l, "POST / HTTP/1.1\r\nHost: api.test\r\n"
		   "Transfer-Encoding: chunked\r\n\r\n"
		   "3\r\nabc\r\n0\r\n\n" GET_A);
	CHECK_HAS(box_hear(l, NULL), " 400 ");
	lab_end(l);
	CHECK(!strstr(l->got, "GET"));
	CHECK(!strstr(l->got, "0\r\n\r\n"));
}

TEST(each_of_several_requests_is_judged)
{
	struct lab *l = LAB(.answers = { OK_BODY, OK_BODY, OK_BODY });

	CHECK(lab_start(l, gets, 1));
	box_say(l, GET_A "GET /b HTTP/1.1\r\nHost: api.test\r\n\r\n" GET_A
			 "GET /a HTTP/1.1\r\nHost: evil.test\r\n\r\n" GET_A);
	CHECK_HAS(box_hear(l, NULL), " 200 ");
	CHECK_HAS(l->text, "\"reason\":\"path\"");
	CHECK_HAS(l->text, "\"reason\":\"http_host\"");
	lab_end(l);
	CHECK_STR(l->got, GET_A GET_A);
	CHECK_INT(l->n_events, 4);
	/* Each has its own bytes, though all came at once. */
	CHECK_INT((long long)l->events[0].sent, sizeof(GET_A) - 1);
	CHECK_INT((long long)l->events[2].sent, sizeof(GET_A) - 1);
	CHECK_INT((long long)l->events[2].received,
		  (long long)l->events[0].received);
	CHECK_INT(l->events[1].reason, GATE_R_PATH);
	CHECK_INT(l->events[3].reason, GATE_R_HTTP_HOST);
}

TEST(an_absolute_target_is_for_this_host_or_refused)
{
	struct lab *l = LAB(.answers = { OK_BODY });

	CHECK(lab_start(l, any, 1));
	box_say(l, "GET https://api.test/x HTTP/1.1\r\nHost: api.test\r\n\r\n");
	CHECK_HAS(box_hear(l, "ok"), " 200 ");
	box_say(l, "GET https://evil.test/x HTTP/1.1\r\n"
		   "Host: api.test\r\n\r\n");
	CHECK_HAS(box_hear(l, NULL), " 400 ");
	lab_end(l);
	CHECK_STR(l->got, "GET /x HTTP/1.1\r\nHost: api.test\r\n\r\n");
}

TEST(no_tunnel_and_no_other_protocol)
{
	static const char *const heads[] = {
		"CONNECT api.test:443 HTTP/1.1\r\nHost: api.test\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: api.test\r\nConnection: Upgrade\r\n"
		"Upgrade: tcp\r\n\r\n",
		"TRACE / HTTP/1.1\r\nHost: api.test\r\n\r\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
		struct lab *l = LAB(.answers = { OK_BODY });

		CHECK(lab_start(l, any, 1));
		box_say(l, heads[i]);
		CHECK_HAS(box_hear(l, "}\n"), " 403 ");
		lab_end(l);
		CHECK_INT(l->n_got, 0);
	}
}

/* No query is ever recorded, whatever it stands behind. */
TEST(a_tunnels_query_is_not_recorded)
{
	struct lab *l = LAB(.answers = { OK_BODY });

	CHECK(lab_start(l, any, 1));
	box_say(l, "CONNECT api.test:443?q=SAID HTTP/1.1\r\n"
		   "Host: api.test\r\n\r\n");
	(void)box_hear(l, "}\n");
	lab_end(l);
	CHECK(!strstr(l->text, "SAID"));
	CHECK_INT(l->n_got, 0);
	CHECK_INT(l->n_events, 1);
	CHECK_STR(l->events[0].path, "api.test:443");
}

TEST(an_offer_of_h2c_is_passed_over)
{
	struct lab *l = LAB(.answers = { OK_BODY });

	CHECK(lab_start(l, any, 1));
	box_say(l, "GET / HTTP/1.1\r\nHost: api.test\r\n"
		   "Connection: Upgrade, HTTP2-Settings\r\n"
		   "Upgrade: h2c\r\nHTTP2-Settings: AAA\r\n\r\n");
	CHECK_HAS(box_hear(l, "ok"), " 200 ");
	lab_end(l);
	CHECK_STR(l->got, "GET / HTTP/1.1\r\nHost: api.test\r\n\r\n");
}

TEST(a_head_that_is_too_large)
{
	struct lab *l = LAB(.answers = { OK_BODY });
	char line[1024];

	CHECK(lab_start(l, any, 1));
	box_say(l, "GET / HTTP/1.1\r\nHost: api.test\r\n");
	memset(line, 'a', sizeof(line));
	line[0] = 'X';
	line[1] = ':';
	memcpy(line + sizeof(line) - 3, "\r\n", 3);
	for (int i = 0; i < 70; i++)
		box_say(l, line);
	CHECK_HAS(box_hear(l, NULL), " 431 ");
	lab_end(l);
	CHECK_INT(l->n_got, 0);
}

/* answers */

TEST(answers_of_all_kinds)
{
	struct lab *l =
		LAB(.answers = { "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n",
				 "HTTP/1.1 204 No Content\r\n\r\n",
				 "HTTP/1.1 304 Not Modified\r\n"
				 "Content-Length: 7\r\n\r\n",
				 "HTTP/1.1 200 OK\r\nTransfer-Encoding: "
				 "chunked\r\n"
				 "\r\n4\r\nabcd\r\n3\r\nefg\r\n0\r\nT: "
				 "x\r\n\r\n",
				 "HTTP/1.1 200 OK\r\n\r\nuntil the end" },
		    .is_leaving = true);

	CHECK(lab_start(l, any, 1));
	box_say(l, "HEAD /a HTTP/1.1\r\nHost: api.test\r\n\r\n");
	CHECK_HAS(box_hear(l, "\r\n\r\n"), "Content-Length: 9\r\n\r\n");
	box_say(l, GET_A);
	CHECK_STR(box_hear(l, "\r\n\r\n"), "HTTP/1.1 204 No Content\r\n\r\n");
	box_say(l, GET_A);
	CHECK_STR(box_hear(l, "\r\n\r\n"), "HTTP/1.1 304 Not Modified\r\n"
					   "Content-Length: 7\r\n\r\n");
	box_say(l, GET_A);
	CHECK_HAS(box_hear(l, "0\r\n\r\n"), "Transfer-Encoding: chunked\r\n");
	CHECK(strstr(l->text, "abcd") && !strstr(l->text, "T: x"));
	box_say(l, "GET /a HTTP/1.1\r\nHost: api.test\r\n"
		   "Connection: close\r\n\r\n");
	CHECK_HAS(box_hear(l, NULL), "Connection: close\r\n\r\nuntil the end");
	CHECK_INT(SSL_get_shutdown(l->box.ssl) & SSL_RECEIVED_SHUTDOWN,
		  SSL_RECEIVED_SHUTDOWN);
	lab_end(l);
	CHECK_INT(l->n_events, 5);
	CHECK_INT(l->events[1].status, 204);
}

TEST(chunks_of_an_answer_are_written_anew)
{
	static const struct {
		const char *body;
		enum gate_reason why;
	} rows[] = {
		{ "4;a=b\r\nabcd\r\n0 \r\n\r\n", GATE_OK },
		{ "4;a\nabcd\r\n0\r\n\r\n", GATE_R_HTTP },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char text[128];
		struct lab *l = LAB(.answers = { text });

		(void)snprintf(text, sizeof(text),
			       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked"
			       "\r\n\r\n%s",
			       rows[i].body);
		CHECK(lab_start(l, any, 1));
		box_say(l, "GET /a HTTP/1.1\r\nHost: api.test\r\n"
			   "Connection: close\r\n\r\n");
		(void)box_hear(l, NULL);
		if (rows[i].why == GATE_OK)
			CHECK_HAS(l->text, "\r\n\r\n4\r\nabcd\r\n0\r\n\r\n");
		lab_end(l);
		CHECK_INT(l->over.reason, rows[i].why);
		if (rows[i].why != GATE_OK)
			CHECK_HAS(l->over.detail, "an answer whose body");
	}
}

TEST(who_speaks_http_1_0_gets_no_chunks)
{
	struct lab *l = LAB(.answers = { "HTTP/1.1 200 OK\r\n"
					 "Transfer-Encoding: chunked\r\n\r\n"
					 "4\r\nabcd\r\n0\r\n\r\n" });

	CHECK(lab_start(l, any, 1));
	box_say(l, "GET /a HTTP/1.0\r\nHost: api.test\r\n\r\n");
	CHECK_HAS(box_hear(l, NULL), "\r\n\r\nabcd");
	CHECK(!strstr(l->text, "chunked"));
	lab_end(l);
}

TEST(waiting_for_100)
{
	struct lab *l = LAB(.answers = { "HTTP/1.1 100 Continue\r\n\r\n",
					 OK_BODY });

	CHECK(lab_start(l, any, 1));
	box_say(l, "PUT /a HTTP/1.1\r\nHost: api.test\r\n"
		   "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n");
	CHECK_STR(box_hear(l, "\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
	box_say(l, "abc");
	CHECK_HAS(box_hear(l, "ok"), " 200 ");
	lab_end(l);
	CHECK_HAS(l->got, "Expect: 100-continue\r\n");
	CHECK_HAS(l->got, "\r\n\r\nabc");
	CHECK_INT(l->n_events, 1);
}

TEST(answers_that_are_refused)
{
	static const char *const bad[] = {
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
		("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n"
		 "Transfer-Encoding: chunked\r\n\r\n"),
		"HTTP/1.1 200 OK\nContent-Length: 1\n\n",
		"SSH-2.0-x\r\n\r\n",
		"",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct lab *l = LAB(.answers = { bad[i], NULL });

		CHECK(lab_start(l, any, 1));
		box_say(l, GET_A);
		if (!*bad[i]) /* a second one makes it leave */
			(void)shutdown(l->far.fd, SHUT_RDWR);
		CHECK_HAS(box_hear(l, NULL), " 502 ");
		lab_end(l);
		CHECK_INT(l->events[0].status, 502);
	}
}

TEST(a_server_that_leaves_between_requests_is_followed)
{
	struct lab *l = LAB(.answers = { OK_BODY }, .is_leaving = true);

	CHECK(lab_start(l, any, 1));
	box_say(l, GET_A);
	CHECK_HAS(box_hear(l, "ok"), " 200 ");
	box_say(l, GET_A);
	/* No answer at all: a client tries again on a new connection. */
	CHECK_STR(box_hear(l, NULL), "");
	lab_end(l);
	CHECK_STR(l->got, GET_A);
}

TEST(an_answer_that_is_cut_has_no_proper_end)
{
	struct lab *l = LAB(.answers = { "HTTP/1.1 200 OK\r\n"
					 "Content-Length: 9\r\n\r\ncut",
					 NULL });

	CHECK(lab_start(l, any, 1));
	box_say(l, GET_A "GET /more HTTP/1.1\r\nHost: api.test\r\n\r\n");
	(void)box_hear(l, "cut");
	(void)shutdown(l->far.fd, SHUT_RDWR);
	(void)box_hear(l, NULL);
	CHECK_INT(SSL_get_shutdown(l->box.ssl) & SSL_RECEIVED_SHUTDOWN, 0);
	lab_end(l);
	CHECK_INT(l->over.reason, GATE_R_RESET);
}

static void fail_box(struct lab *l)
{
	l->inspection->box.out.error = -ENOMEM;
	l->errand = NULL;
}

TEST(an_answer_that_has_no_room_is_not_passed_for_whole)
{
	static const struct rule rule = { .host = HOST, .port = 80 };
	struct lab *l = LAB(.is_plain = true, .port = 80,
			    .answers = { "HTTP/1.1 200 OK\r\n"
					 "Content-Length: 8\r\n\r\nhalf" });

	CHECK(lab_start(l, &rule, 1));
	box_say(l, "GET /a HTTP/1.1\r\nHost: api.test\r\n"
		   "Connection: close\r\n\r\n");
	CHECK_HAS(box_hear(l, "half"), " 200 ");
	lab_errand(l, fail_box, "the answer to have no room");
	CHECK(send(l->far.fd, "rest", 4, MSG_NOSIGNAL) == 4);
	CHECK_STR(box_hear(l, NULL), "");
	lab_end(l);
	CHECK_INT(l->over.reason, GATE_R_FULL);
}

/* streams */

#define LARGE (24U << 20)

TEST(a_large_answer_streams)
{
	struct lab *l = LAB(.answers = { "HTTP/1.1 200 OK\r\n"
					 "Content-Length: 25165824\r\n\r\n" },
			    .n_stream = LARGE);
	static char block[65536];
	size_t n = 0;

	CHECK(lab_start(l, any, 1));
	box_say(l, GET_A);
	while (n < LARGE) {
		ssize_t r = stream_read(&l->box, block, sizeof(block));

		if (r <= 0)
			break;
		n += (size_t)r;
	}
	CHECK(n >= LARGE && n < LARGE + 200);
	lab_end(l);
	CHECK(l->over.received >= LARGE);
	/* The record of the request has its answer in it, and its time. */
	CHECK_INT(l->n_events, 1);
	CHECK_INT(l->events[0].status, 200);
	CHECK_INT(l->events[0].reason, GATE_OK);
	CHECK(l->events[0].received >= LARGE);
	CHECK_INT((long long)l->events[0].sent, sizeof(GET_A) - 1);
	CHECK(l->events[0].us > 0);
}

TEST(a_large_body_streams)
{
	struct lab *l = LAB(.answers = { OK_BODY }, .is_counting = true);
	static char block[65536];

	CHECK(lab_start(l, any, 1));
	box_say(l, "PUT /a HTTP/1.1\r\nHost: api.test\r\n"
		   "Content-Length: 25165824\r\n\r\n");
	for (size_t n = 0; n < LARGE; n += sizeof(block))
		CHECK(stream_write(&l->box, block, sizeof(block)));
	CHECK_HAS(box_hear(l, "ok"), " 200 ");
	lab_end(l);
	CHECK_INT(l->n_counted, LARGE);
	CHECK(l->over.sent >= LARGE);
	CHECK(l->events[0].sent >= LARGE && l->events[0].received < 200);
}

#define QUOTA 300000

/* No byte more than the quota has, either way, over TLS as well. */
TEST(a_quota_holds_for_an_answer)
{
	struct lab *l = LAB(.answers = { "HTTP/1.1 200 OK\r\n"
					 "Content-Length: 25165824\r\n\r\n" },
			    .n_stream = LARGE, .quota = QUOTA);
	static char block[65536];
	size_t n = 0;
	ssize_t r;

	CHECK(lab_start(l, any, 1));
	box_say(l, GET_A);
	while ((r = stream_read(&l->box, block, sizeof(block))) > 0)
		n += (size_t)r;
	lab_end(l);
	CHECK_INT(l->over.reason, GATE_R_BYTES);
	CHECK_INT(n, QUOTA - strlen(GET_A));
	CHECK_INT(l->over.sent + l->over.received, QUOTA);
	/* The record of the request has what the box was sent. */
	CHECK_INT(l->n_events, 1);
	CHECK_INT(l->events[0].received, l->over.received);
}

TEST(a_quota_holds_for_a_body)
{
	struct lab *l = LAB(.answers = { OK_BODY }, .is_counting = true,
			    .quota = QUOTA);
	static char block[65536];

	CHECK(lab_start(l, any, 1));
	box_say(l, "PUT /a HTTP/1.1\r\nHost: api.test\r\n"
		   "Content-Length: 25165824\r\n\r\n");
	for (size_t n = 0; n < LARGE; n += sizeof(block))
		if (!stream_write(&l->box, block, sizeof(block)))
			break;
	lab_end(l);
	CHECK_INT(l->over.reason, GATE_R_BYTES);
	CHECK_INT(l->over.sent + l->over.received, QUOTA);
	CHECK(l->n_counted > 0 && l->n_counted < QUOTA);
	CHECK_INT(l->n_events, 1);
	CHECK_INT(l->events[0].reason, GATE_R_BYTES);
	CHECK_INT(l->events[0].flags, GATE_EVENT_OUT | GATE_EVENT_AGAIN);
}

/* What exactly fits is not cut. */
TEST(a_quota_may_be_used_up)
{
	struct lab *l = LAB(.answers = { OK_BODY },
			    .quota = strlen(GET_A) + strlen(OK_BODY));

	CHECK(lab_start(l, any, 1));
	box_say(l, GET_A);
	CHECK_STR(box_hear(l, "ok"), OK_BODY);
	lab_end(l);
	CHECK_INT(l->over.reason, GATE_OK);
	CHECK_INT(l->events[0].reason, GATE_OK);
}

static void cut_it(struct lab *l)
{
	const struct inspection *i = l->inspection;

	/* The box takes nothing, and bytes wait for it. */
	if (i->answer != ANSWER_BODY || side_room(&i->box) > 4096)
		return;
	inspect_end(l->inspection, GATE_R_REPLACED);
	l->errand = NULL;
}

TEST(a_cut_answer_has_the_bytes_that_were_sent)
{
	struct lab *l = LAB(.answers = { "HTTP/1.1 200 OK\r\n"
					 "Content-Length: 25165824\r\n\r\n" },
			    .n_stream = LARGE);

	CHECK(lab_start(l, any, 1));
	box_say(l, GET_A);
	lab_errand(l, cut_it, "the answer to be cut");
	lab_end(l);
	CHECK_INT(l->over.reason, GATE_R_REPLACED);
	CHECK_INT(l->n_events, 1);
	CHECK_INT(l->events[0].received, l->over.received);
}

TEST(chunks_go_up_as_chunks)
{
	struct lab *l = LAB(.answers = { OK_BODY, OK_BODY });

	CHECK(lab_start(l, any, 1));
	box_say(l, "PUT /a HTTP/1.1\r\nHost: api.test\r\n"
		   "Transfer-Encoding: chunked\r\n\r\n");
	box_say(l, "3\r\nabc\r\n");
	box_say(l, "0004\r\ndefg\r\n0\r\nTrailer: x\r\n\r\n" GET_A);
	CHECK_HAS(box_hear(l, "ok"), " 200 ");
	CHECK_HAS(box_hear(l, "ok"), " 200 ");
	lab_end(l);
	CHECK_HAS(l->got, "Transfer-Encoding: chunked\r\n\r\n");
	CHECK_HAS(l->got, "4\r\ndefg\r\n0\r\n\r\nGET /a?q=1");
	CHECK(!strstr(l->got, "Trailer"));
}

/* secrets */

TEST(a_value_takes_its_placeholders_place)
{
	struct lab *l = LAB(.answers = { OK_BODY, OK_BODY });

	CHECK(lab_start(l, secret, 2));
	box_say(l, "GET /a?key=" PLACE "&x=1 HTTP/1.1\r\nHost: api.test\r\n"
		   "Authorization: Bearer " PLACE "\r\n\r\n");
	CHECK_HAS(box_hear(l, "ok"), " 200 ");
	/* u:CORDON-PLACEHOLDER-0001 */
	box_say(l, "GET /b HTTP/1.1\r\nHost: api.test\r\nAuthorization: Basic "
		   "dTpDT1JET04tUExBQ0VIT0xERVItMDAwMQ==\r\n\r\n");
	CHECK_HAS(box_hear(l, "ok"), " 200 ");
	lab_end(l);
	CHECK_HAS(l->got, "GET /a?key=" VALUE "&x=1 HTTP/1.1\r\n");
	CHECK_HAS(l->got, "Authorization: Bearer " VALUE "\r\n");
	/* u:s3cr3t-value-of-this-test */
	CHECK_HAS(l->got, "Authorization: Basic "
			  "dTpzM2NyM3QtdmFsdWUtb2YtdGhpcy10ZXN0\r\n");
	CHECK(!strstr(l->got, PLACE));
	for (unsigned int i = 0; i < l->n_events; i++)
		CHECK(!memmem(&l->events[i], sizeof(l->events[i]), VALUE,
			      strlen(VALUE)));
	CHECK_STR(l->events[0].path, "/a");
}

#define IDENTITY "Accept-Encoding: identity\r\n"

TEST(a_header_that_a_rule_describes_is_added)
{
	static const struct rule rule = { .host = HOST,
					  .placeholder = PLACE,
					  .value = VALUE,
					  .header = "Authorization",
					  .format = "Bearer {}" };
	struct lab *l = LAB(.answers = { OK_BODY, OK_BODY, OK_BODY });

	CHECK(lab_start(l, &rule, 1));
	box_say(l, GET_A "GET /b HTTP/1.1\r\nHost: api.test\r\n"
			 "Authorization: " PLACE "\r\n\r\n"
			 "GET /c HTTP/1.1\r\nHost: api.test\r\n"
			 "Authorization: its own\r\n"
			 "Connection: close\r\n\r\n");
	(void)box_hear(l, NULL);
	lab_end(l);
	CHECK_STR(l->got, "GET /a?q=1 HTTP/1.1\r\nHost: api.test\r\n"
			  "Authorization: Bearer " VALUE "\r\n" IDENTITY "\r\n"
			  "GET /b HTTP/1.1\r\nHost: api.test\r\n"
			  "Authorization: Bearer " VALUE "\r\n" IDENTITY "\r\n"
			  "GET /c HTTP/1.1\r\nHost: api.test\r\n"
			  "Authorization: its own\r\n" IDENTITY
			  "Connection: close\r\n\r\n");
}

TEST(a_value_in_a_body_changes_its_length)
{
	struct lab *l = LAB(.answers = { OK_BODY, OK_BODY });

	CHECK(lab_start(l, secret, 2));
	box_say(l, "POST /form HTTP/1.1\r\nHost: api.test\r\n"
		   "Content-Type: application/x-www-form-urlencoded\r\n"
		   "Content-Length: 33\r\n\r\na=1&token=" PLACE);
	CHECK_HAS(box_hear(l, "ok"), " 200 ");
	box_say(l, "POST /json HTTP/1.1\r\nHost: api.test\r\n"
		   "Content-Type: application/json; charset=utf-8\r\n"
		   "Expect: 100-continue\r\n"
		   "Transfer-Encoding: chunked\r\n\r\n");
	CHECK_STR(box_hear(l, "\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
	box_say(l, "12\r\n{\"token\":\"CORDON-P\r\n");
	box_say(l, "11\r\nLACEHOLDER-0001\"}\r\n0\r\n\r\n");
	CHECK_HAS(box_hear(l, "ok"), " 200 ");
	lab_end(l);
	CHECK_HAS(l->got, "Content-Length: 35\r\n\r\na=1&token=" VALUE "POST");
	CHECK_HAS(l->got,
		  "Content-Length: 37\r\n\r\n{\"token\":\"" VALUE "\"}");
	CHECK(!strstr(l->got, "chunked"));
	CHECK(!strstr(l->got, "Expect"));
}

#define POST_JSON                                                              \
	"POST /json HTTP/1.1\r\nHost: api.test\r\n"                            \
	"Content-Type: application/json\r\n"

/* No value can be put into it, and what is sent would not be what is meant. */
TEST(a_compressed_body_where_a_field_is_declared)
{
	static const struct rule plain[] = {
		{ .host = HOST, .placeholder = PLACE, .value = VALUE },
	};
	struct lab *l = LAB(.answers = { OK_BODY, OK_BODY });

	CHECK(lab_start(l, secret, 2));
	box_say(l, POST_JSON "Content-Encoding: gzip\r\n"
			     "Content-Length: 2\r\n\r\n\x1f\x8b");
	CHECK_HAS(box_hear(l, NULL), " 415 ");
	lab_end(l);
	CHECK_INT(l->n_got, 0);
	CHECK_INT(l->events[0].status, 415);
	/* What says that it is not compressed is not. */
	l = LAB(.answers = { OK_BODY });
	CHECK(lab_start(l, secret, 2));
	box_say(l, POST_JSON "Content-Encoding: identity\r\n"
			     "Content-Length: 35\r\n\r\n"
			     "{\"token\":\"" PLACE "\"}");
	CHECK_HAS(box_hear(l, "ok"), " 200 ");
	lab_end(l);
	CHECK_HAS(l->got, "{\"token\":\"" VALUE "\"}");
	/* Where no field is declared nothing would be put in: it goes on. */
	l = LAB(.answers = { OK_BODY });
	CHECK(lab_start(l, plain, 1));
	box_say(l, POST_JSON "Content-Encoding: gzip\r\n"
			     "Content-Length: 2\r\n\r\n\x1f\x8b");
	CHECK_HAS(box_hear(l, "ok"), " 200 ");
	lab_end(l);
	CHECK_HAS(l->got, "Content-Encoding: gzip\r\n");
}

TEST(a_kept_body_has_an_upper_size)
{
	struct lab *l = LAB(.answers = { OK_BODY });

	CHECK(lab_start(l, secret, 2));
	box_say(l, "POST /json HTTP/1.1\r\nHost: api.test\r\n"
		   "Content-Type: application/json\r\n"
		   "Content-Length: 1048577\r\n\r\n");
	CHECK_HAS(box_hear(l, NULL), " 413 ");
	lab_end(l);
	CHECK_INT(l->n_got, 0);
}

/* A body of 128 KiB, or the first half of it. */
static void say_kept(struct lab *l, size_t n)
{
	static char body[131072];

	box_say(l, "POST /json HTTP/1.1\r\nHost: api.test\r\n"
		   "Content-Type: application/json\r\n"
		   "Content-Length: 131072\r\n\r\n");
	memset(body, ' ', sizeof(body));
	(void)stream_write(&l->box, body, n);
}

static void note_kept(struct lab *l)
{
	const struct inspection *i = l->inspection;

	if (i->kept.len == i->kept_head + 65536)
		l->errand = NULL;
}

TEST(kept_bodies_have_an_upper_size_together)
{
	struct lab *l = LAB(.answers = { OK_BODY, OK_BODY, OK_BODY });
	struct lab *more = LAB(.answers = { OK_BODY });

	inspect_kept_max = 400000;
	CHECK(lab_start(l, secret, 2));
	for (int i = 0; i < 2; i++) { /* one after the other they fit */
		say_kept(l, 131072);
		CHECK_HAS(box_hear(l, "ok"), " 200 ");
	}
	say_kept(l, 65536);
	lab_errand(l, note_kept, "half of a body to be kept");
	inspect_kept_max = 150000;
	CHECK(lab_start(more, secret, 2));
	say_kept(more, 131072);
	CHECK_HAS(box_hear(more, "\r\n\r\n"), " 503 ");
	lab_end(more);
	CHECK_INT(more->n_got, 0);
	CHECK_INT(more->events[0].reason, GATE_R_FULL);
	lab_end(l);
	/* And all of it is free again. */
	more = LAB(.answers = { OK_BODY });
	inspect_kept_max = 400000;
	CHECK(lab_start(more, secret, 2));
	say_kept(more, 131072);
	CHECK_HAS(box_hear(more, "ok"), " 200 ");
	lab_end(more);
	inspect_kept_max = 32U << 20;
}

static void placeholder_is_blocked(const char *text)
{
	struct lab *l = LAB(.answers = { OK_BODY });

	CHECK(lab_start(l, secret, 2));
	box_say(l, text);
	CHECK_HAS(box_hear(l, NULL), " 403 ");
	CHECK_HAS(l->text, "\"reason\":\"placeholder\"");
	CHECK(!strstr(l->text, VALUE));
	lab_end(l);
	CHECK(!strstr(l->got, OTHER));
	CHECK(!strstr(l->got, VALUE));
	CHECK_INT(l->n_events, 1);
	CHECK_INT(l->events[0].kind, GATE_E_SECRET);
	CHECK_INT(l->events[0].reason, GATE_R_PLACEHOLDER);
}

TEST(a_placeholder_of_another_host_is_blocked)
{
	placeholder_is_blocked("GET / HTTP/1.1\r\nHost: api.test\r\n"
			       "Authorization: Bearer " OTHER "\r\n\r\n");
	/* u:CORDON-PLACEHOLDER-0002 */
	placeholder_is_blocked("GET / HTTP/1.1\r\nHost: api.test\r\n"
			       "Authorization: Basic "
			       "dTpDT1JET04tUExBQ0VIT0xERVItMDAwMg==\r\n\r\n");
	placeholder_is_blocked("GET /?x=" OTHER " HTTP/1.1\r\n"
			       "Host: api.test\r\n\r\n");
	placeholder_is_blocked("POST / HTTP/1.1\r\nHost: api.test\r\n"
			       "Content-Length: 25\r\n\r\na=" OTHER);
	placeholder_is_blocked("POST / HTTP/1.1\r\nHost: api.test\r\n"
			       "Transfer-Encoding: chunked\r\n\r\n"
			       "8\r\nCORDON-P\r\nF\r\nLACEHOLDER-0002\r\n"
			       "0\r\n\r\n");
	placeholder_is_blocked("POST / HTTP/1.1\r\nHost: api.test\r\n"
			       "Content-Type: application/json\r\n"
			       "Content-Length: 27\r\n\r\n"
			       "[\"" OTHER "\"]");
	/* And one of its own, where it may not stand. */
	placeholder_is_blocked("GET / HTTP/1.1\r\nHost: api.test\r\n"
			       "X-Other: " PLACE "\r\n\r\n");
}

TEST(a_value_that_is_sent_back_is_covered)
{
	struct lab *l = LAB(.is_echo = true);

	CHECK(lab_start(l, secret, 2));
	box_say(l, "GET /a?key=" PLACE " HTTP/1.1\r\nHost: api.test\r\n"
		   "Authorization: Bearer " PLACE "\r\n\r\n");
	CHECK_HAS(box_hear(l, "\r\n\r\nGET"), " 200 ");
	box_say(l, "GET /end HTTP/1.1\r\nHost: api.test\r\n"
		   "Accept-Encoding: gzip\r\n"
		   "Connection: close\r\nAuthorization: Basic "
		   "dTpDT1JET04tUExBQ0VIT0xERVItMDAwMQ==\r\n\r\n");
	CHECK_HAS(box_hear(l, NULL), "GET /end");
	CHECK(!strstr(l->text, VALUE));
	CHECK(!strstr(l->text, "dTpzM2NyM3QtdmFsdWUt"));
	CHECK_HAS(l->text, "Authorization: Basic ****");
	CHECK_HAS(l->text, "Accept-Encoding: identity\r\n");
	lab_end(l);
	CHECK_HAS(l->got, VALUE);
}

/* The box asks one path for what another was sent; hosts are apart. */
TEST(a_value_that_comes_from_elsewhere_is_covered)
{
	static const struct rule rules[] = {
		{ .host = HOST, .paths = { "/open" } },
		{ .host = HOST,
		  .paths = { "/api/**" },
		  .placeholder = PLACE,
		  .value = VALUE,
		  .header = "Authorization" },
		{ .host = "other.test",
		  .placeholder = OTHER,
		  .value = "value-for-the-other-host" },
	};
	struct lab *l = LAB(.answers = { "HTTP/1.1 200 OK\r\nX: " VALUE
					 "\r\nContent-Length: 61\r\n\r\n"
					 "last: " VALUE
					 " value-for-the-other-host end." });

	CHECK(lab_start(l, rules, ARRAY_SIZE(rules)));
	box_say(l, "GET /open HTTP/1.1\r\nHost: api.test\r\n"
		   "Range: bytes=9-\r\nIf-Range: \"x\"\r\n"
		   "Accept-Encoding: gzip\r\n\r\n");
	CHECK_HAS(box_hear(l, "end."), "last: *************************"
				       " value-for-the-other-host end.");
	CHECK_HAS(l->text, "X: *************************\r\n");
	lab_end(l);
	CHECK_STR(l->got, "GET /open HTTP/1.1\r\nHost: api.test\r\n"
			  "Accept-Encoding: identity\r\n\r\n");
}

/* Nothing in an answer waits because another host's value begins so. */
TEST(an_answer_tells_nothing_of_another_hosts_value)
{
	struct lab *l = LAB(.answers = { "HTTP/1.1 200 OK\r\n"
					 "Content-Length: 100\r\n\r\n"
					 "!value-for-the-o" },
			    .is_leaving = true);

	CHECK(lab_start(l, secret, 2));
	box_say(l, GET_A);
	CHECK_HAS(box_hear(l, "!value-for-the-o"), "!value-for-the-o");
	lab_end(l);
}

/* time, and the policy replaced */

TEST(a_slow_head_is_ended)
{
	struct lab *l = LAB(.answers = { OK_BODY });

	inspect_times.head_ms = 200;
	inspect_times.tick_ms = 50;
	CHECK(lab_start(l, any, 1));
	box_say(l, "GET / HTTP/1.1\r\nHo");
	CHECK_HAS(box_hear(l, NULL), " 408 ");
	lab_end(l);
	CHECK_INT(l->events[0].reason, GATE_R_TIME);
}

TEST(a_still_connection_is_ended)
{
	struct lab *l = LAB(.answers = { OK_BODY });

	inspect_times.idle_ms = 200;
	inspect_times.tick_ms = 50;
	CHECK(lab_start(l, any, 1));
	CHECK_STR(box_hear(l, NULL), "");
	lab_end(l);
	CHECK_INT(l->n_events, 0);
}

static void end_it(struct lab *l)
{
	if (l->inspection->answer != ANSWER_HEAD)
		return;
	inspect_end(l->inspection, GATE_R_BYTES);
	l->errand = NULL;
}

TEST(it_can_be_ended_at_once)
{
	struct lab *l = LAB(.answers = { "" });

	CHECK(lab_start(l, any, 1));
	box_say(l, GET_A);
	lab_errand(l, end_it, "the request to be on its way");
	CHECK_STR(box_hear(l, NULL), "");
	lab_end(l);
	CHECK_INT(l->over.reason, GATE_R_BYTES);
	CHECK_INT(l->n_events, 1);
	CHECK_INT(l->events[0].reason, GATE_R_BYTES);
}

static void replace_table(struct lab *l)
{
	static const struct rule none[] = { { .host = HOST,
					      .methods = { "PUT" } } };

	memset(l->table, 0, sizeof(*l->table));
	l->table = rules_new(none, 1);
	inspect_table(l->inspection, l->table, 0);
	l->errand = NULL;
}

TEST(a_new_table_holds_from_the_next_request_on)
{
	struct lab *l = LAB(.answers = { OK_BODY, OK_BODY });

	CHECK(lab_start(l, any, 1));
	box_say(l, GET_A);
	CHECK_HAS(box_hear(l, "ok"), " 200 ");
	lab_errand(l, replace_table, "the table to be replaced");
	box_say(l, GET_A);
	CHECK_HAS(box_hear(l, "}\n"), " 403 ");
	lab_end(l);
	CHECK_STR(l->got, GET_A);
}

TAP_MAIN()
