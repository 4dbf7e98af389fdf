/* SPDX-License-Identifier: Apache-2.0 */

/* HTTP as the gate reads it, and secrets in it: the pure parts. */

#include <errno.h>
#include <http_parser.h>

#include "base/util.h"
#include "gate-rules.h"
#include "gate/http.h"
#include "gate/refuse.h"
#include "gate/secret.h"
#include "policy/values.h"
#include "tap.h"

static int read_text(const char *text, struct http_head *h)
{
	return http_read_request(text, strlen(text), h);
}

/* heads */

TEST(a_plain_request_is_read)
{
	static const char text[] = "POST /a/b?x=1&y HTTP/1.1\r\n"
				   "Host: api.test\r\n"
				   "Content-Length: 12\r\n"
				   "X-Empty:\r\n"
				   "X-Wide:  a\tb  \r\n\r\nbody";
	struct http_head h;

	CHECK_INT(read_text(text, &h), 1);
	CHECK_INT(h.size, sizeof(text) - 5);
	CHECK(http_is(&h.method, "POST"));
	CHECK(http_is(&h.path, "/a/b"));
	CHECK(http_is(&h.query, "x=1&y"));
	CHECK_INT(h.framing, HTTP_LENGTH);
	CHECK_INT(h.length, 12);
	CHECK_INT(h.n_fields, 4);
	CHECK(http_is(&h.fields[2].value, ""));
	CHECK(http_is(&h.fields[3].value, "a\tb"));
	CHECK(!h.is_close);
}

TEST(a_head_may_come_byte_by_byte)
{
	static const char text[] = "GET / HTTP/1.1\r\nHost: api.test\r\n\r\n";
	struct http_head h;

	for (size_t n = 0; n < sizeof(text) - 1; n++)
		CHECK_INT(http_read_request(text, n, &h), 0);
	CHECK_INT(http_read_request(text, sizeof(text) - 1, &h), 1);
}

#define LINE "GET / HTTP/1.1\r\nHost: api.test\r\n"

/* Each can be read in two ways by someone. */
static const char *const ambiguous[] = {
	LINE "Content-Length: 1\r\nContent-Length: 1\r\n\r\n",
	LINE "Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
	LINE "Content-Length: 1, 1\r\n\r\n",
	LINE "Content-Length: +1\r\n\r\n",
	LINE "Content-Length: 0x1\r\n\r\n",
	LINE "Content-Length: 1 1\r\n\r\n",
	LINE "Content-Length:\r\n\r\n",
	LINE "Content-Length: 99999999999999999999\r\n\r\n",
	LINE "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
	LINE "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
	LINE "Transfer-Encoding: gzip, chunked\r\n\r\n",
	LINE "Transfer-Encoding: chunked, identity\r\n\r\n",
	LINE "Transfer-Encoding: xchunked\r\n\r\n",
	LINE "Transfer-Encoding:\vchunked\r\n\r\n",
	LINE "Transfer-Encoding : chunked\r\n\r\n",
	LINE " Transfer-Encoding: chunked\r\n\r\n",
	LINE "X: a\r\n folded\r\n\r\n",
	LINE "X: a\nY: b\r\n\r\n",
	LINE "X: a\rY: b\r\n\r\n",
	LINE "X\r\n\r\n",
	LINE ": empty\r\n\r\n",
	LINE "X Y: b\r\n\r\n",
	LINE "X\x80: b\r\n\r\n",
	LINE "X: \x01\r\n\r\n",
	LINE "Expect: 200-maybe\r\n\r\n",
	"GET / HTTP/1.1\nHost: api.test\n\n",
	"\r\nGET / HTTP/1.1\r\nHost: api.test\r\n\r\n",
	" GET / HTTP/1.1\r\nHost: api.test\r\n\r\n",
	"GET  / HTTP/1.1\r\nHost: api.test\r\n\r\n",
	"GET / HTTP/1.1 \r\nHost: api.test\r\n\r\n",
	"GET /\tHTTP/1.1\r\nHost: api.test\r\n\r\n",
	"GET /a b HTTP/1.1\r\nHost: api.test\r\n\r\n",
	"GET /#x HTTP/1.1\r\nHost: api.test\r\n\r\n",
	"GET /a\\b HTTP/1.1\r\nHost: api.test\r\n\r\n",
	"GET /\xc3\xa9 HTTP/1.1\r\nHost: api.test\r\n\r\n",
	"GET / HTTP/2.0\r\nHost: api.test\r\n\r\n",
	"GET / HTTP/1.2\r\nHost: api.test\r\n\r\n",
	"GET / HTTP/01.1\r\nHost: api.test\r\n\r\n",
	"GET / http/1.1\r\nHost: api.test\r\n\r\n",
	"GET /\r\n\r\n",
	"get / HTTP/1.1\r\nHost: api.test\r\n\r\n",
	"G@T / HTTP/1.1\r\nHost: api.test\r\n\r\n",
	"GET * HTTP/1.1\r\nHost: api.test\r\n\r\n",
	"GET a HTTP/1.1\r\nHost: api.test\r\n\r\n",
	"GET ftp://api.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n",
	"GET http://a@api.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n",
	"GET http:///x HTTP/1.1\r\nHost: api.test\r\n\r\n",
	"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
	"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
};

TEST(what_can_be_read_in_two_ways_is_refused)
{
	static const char nul[] = LINE "X: a\0b\r\n\r\n";
	struct http_head h;

	for (size_t i = 0; i < ARRAY_SIZE(ambiguous); i++) {
		int r = read_text(ambiguous[i], &h);

		if (r != -EINVAL || !h.wrong)
			printf("# %d for %s\n", r, ambiguous[i]);
		CHECK_INT(r, -EINVAL);
	}
	CHECK_INT(http_read_request(nul, sizeof(nul) - 1, &h), -EINVAL);
}

TEST(a_bare_line_end_is_refused_before_the_head_ends)
{
	struct http_head h;

	CHECK_INT(read_text("GET / HTTP/1.1\nHost", &h), -EINVAL);
}

TEST(a_head_has_an_upper_size)
{
	char *text = malloc(2 * HTTP_HEAD_MAX);
	struct http_head h;
	int n;

	memset(text, 'a', 2 * HTTP_HEAD_MAX);
	memcpy(text, LINE "X: ", sizeof(LINE "X: ") - 1);
	CHECK_INT(http_read_request(text, 1000, &h), 0);
	CHECK_INT(http_read_request(text, HTTP_HEAD_MAX, &h), -E2BIG);
	n = sprintf(text, LINE);
	for (int i = 0; i < HTTP_FIELDS_MAX; i++)
		n += sprintf(text + n, "X: %d\r\n", i);
	n += sprintf(text + n, "\r\n");
	CHECK_INT(http_read_request(text, (size_t)n, &h), -E2BIG);
	free(text);
}

TEST(connections_and_offers)
{
	struct http_head h;

	CHECK_INT(read_text(LINE "Connection: x, Close\r\n\r\n", &h), 1);
	CHECK(h.is_close);
	CHECK_INT(read_text("GET / HTTP/1.0\r\n\r\n", &h), 1);
	CHECK(h.is_close);
	CHECK_INT(read_text("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
			    &h),
		  1);
	CHECK(!h.is_close);
	CHECK_INT(read_text(LINE "Connection: Upgrade\r\n"
				 "Upgrade: websocket\r\n\r\n",
			    &h),
		  1);
	CHECK(h.is_socket && h.is_switch && !h.is_upgrade);
	CHECK_INT(read_text(LINE "Upgrade: tcp\r\n\r\n", &h), 1);
	CHECK(h.is_upgrade && !h.is_socket && !h.is_switch);
	CHECK_INT(read_text(LINE "Connection: Upgrade, HTTP2-Settings\r\n"
				 "Upgrade: h2c\r\nHTTP2-Settings: A\r\n\r\n",
			    &h),
		  1);
	CHECK(!h.is_upgrade);
	CHECK_INT(read_text(LINE "Expect: 100-Continue\r\n\r\n", &h), 1);
	CHECK(h.is_waiting);
}

/* answers */

static int read_answer(const char *text, bool is_bare, struct http_head *h)
{
	return http_read_answer(text, strlen(text), is_bare, h);
}

TEST(answers_and_their_bodies)
{
	struct http_head h;

	CHECK_INT(read_answer("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n",
			      false, &h),
		  1);
	CHECK_INT(h.framing, HTTP_LENGTH);
	CHECK_INT(read_answer("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n",
			      true, &h),
		  1);
	CHECK_INT(h.framing, HTTP_NO_BODY);
	CHECK(h.has_length && h.length == 3);
	CHECK_INT(read_answer("HTTP/1.1 204 No Content\r\n\r\n", false, &h), 1);
	CHECK_INT(h.framing, HTTP_NO_BODY);
	CHECK_INT(read_answer("HTTP/1.1 304\r\n\r\n", false, &h), 1);
	CHECK_INT(h.framing, HTTP_NO_BODY);
	CHECK_INT(read_answer("HTTP/1.0 200 OK\r\n\r\n", false, &h), 1);
	CHECK_INT(h.framing, HTTP_TO_END);
	CHECK(h.is_close);
	CHECK_INT(read_answer("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n"
			      "Content-Length: 3\r\n\r\n",
			      false, &h),
		  -EINVAL);
	CHECK_INT(read_answer("HTTP/1.1 20 OK\r\n\r\n", false, &h), -EINVAL);
	CHECK_INT(read_answer("ICY 200 OK\r\n\r\n", false, &h), -EINVAL);
}

/* hosts */

static enum gate_reason host_of(const char *text, uint16_t port, bool is_tls)
{
	struct http_head h;

	if (read_text(text, &h) != 1)
		return GATE_REASONS;
	return http_check_host(&h, "api.test", port, is_tls);
}

TEST(the_host_must_be_the_one_that_was_resolved)
{
	static const struct {
		const char *text;
		enum gate_reason want;
	} cases[] = {
		{ LINE "\r\n", GATE_OK },
		{ "GET / HTTP/1.1\r\nHost: API.Test.\r\n\r\n", GATE_OK },
		{ "GET / HTTP/1.1\r\nHost: api.test:443\r\n\r\n", GATE_OK },
		{ "GET / HTTP/1.1\r\nHost: api.test:80\r\n\r\n",
		  GATE_R_HTTP_HOST },
		{ "GET / HTTP/1.1\r\nHost: api.test:\r\n\r\n",
		  GATE_R_HTTP_HOST },
		{ "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
		  GATE_R_HTTP_HOST },
		{ "GET / HTTP/1.1\r\nHost: api.test.evil\r\n\r\n",
		  GATE_R_HTTP_HOST },
		{ "GET / HTTP/1.1\r\nHost:\r\n\r\n", GATE_R_HTTP_HOST },
		{ "GET / HTTP/1.1\r\nHost: a@api.test\r\n\r\n",
		  GATE_R_HTTP_HOST },
		{ "GET / HTTP/1.1\r\nHost: api.test, b\r\n\r\n",
		  GATE_R_HTTP_HOST },
		{ "GET / HTTP/1.1\r\n\r\n", GATE_R_HTTP },
		{ LINE "Host: api.test\r\n\r\n", GATE_R_HTTP },
		{ LINE "Host: evil.test\r\n\r\n", GATE_R_HTTP },
		{ "GET https://api.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n",
		  GATE_OK },
		{ "GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n",
		  GATE_R_HTTP_HOST },
		{ "GET https://evil.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n",
		  GATE_R_HTTP_HOST },
		{ "GET https://api.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
		  GATE_R_HTTP_HOST },
		{ "GET / HTTP/1.0\r\n\r\n", GATE_OK },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		enum gate_reason have = host_of(cases[i].text, 443, true);

		if (have != cases[i].want)
			printf("# %s", cases[i].text);
		CHECK_INT(have, cases[i].want);
	}
}

TEST(an_address_is_a_host_too)
{
	struct http_head h;

	CHECK_INT(read_text("GET / HTTP/1.1\r\nHost: [::1]:8\r\n\r\n", &h), 1);
	CHECK_INT(http_check_host(&h, "::1", 8, false), GATE_OK);
	CHECK_INT(http_check_host(&h, "::2", 8, false), GATE_R_HTTP_HOST);
	CHECK_INT(read_text("GET / HTTP/1.1\r\nHost: [::1]\r\n\r\n", &h), 1);
	CHECK_INT(http_check_host(&h, "::1", 8, false), GATE_OK);
	CHECK_INT(read_text("GET / HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n", &h), 1);
	CHECK_INT(http_check_host(&h, "10.0.0.1", 80, false), GATE_OK);
}

/* bodies */

/* Feeds `text` in pieces of `step` bytes; the body, or false if refused. */
static bool body_from(bool is_answer, const char *text, size_t step, char *ret,
		      size_t *used)
{
	struct http_head h = { .framing = HTTP_CHUNKED };
	struct http_body b;
	size_t at = 0, len = strlen(text), n = 0;

	http_body_init(&b, &h);
	b.is_answer = is_answer;
	while (at < len && !b.is_done) {
		struct http_slice piece;
		ssize_t r = http_body_take(&b, text + at, MIN(step, len - at),
					   &piece);

		if (r < 0)
			return false;
		memcpy(ret + n, piece.at, piece.len);
		n += piece.len;
		at += (size_t)r;
	}
	ret[n] = '\0';
	*used = at;
	return b.is_done;
}

static bool body_of(const char *text, size_t step, char *ret, size_t *used)
{
	return body_from(false, text, step, ret, used);
}

TEST(chunks_are_read_at_any_split)
{
	static const char text[] = "5\r\nhello\r\n0A\r\n, chunks!!\r\n"
				   "0\r\nX-Trailer: a\r\n\r\nGET /";
	char body[64];
	size_t used;

	for (size_t step = 1; step < sizeof(text); step++) {
		CHECK(body_of(text, step, body, &used));
		CHECK_STR(body, "hello, chunks!!");
		CHECK_INT(used, sizeof(text) - 6);
	}
}

TEST(broken_chunks_are_refused)
{
	static const char *const bad[] = {
		"5\nhello\n0\n\n",
		"5\r\nhello0\r\n\r\n",
		"5\r\nhelloXX0\r\n\r\n",
		"5;ext\r\nhello\r\n0\r\n\r\n",
		"5 \r\nhello\r\n0\r\n\r\n",
		"-5\r\nhello\r\n0\r\n\r\n",
		"0x5\r\nhello\r\n0\r\n\r\n",
		"\r\nhello\r\n0\r\n\r\n",
		"1000000000000000\r\nhello\r\n",
		"0\r\nX: a\n\r\n",
		"0\r\n\n",
	};
	char body[64];
	size_t used;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (body_of(bad[i], 64, body, &used))
			printf("# %s\n", bad[i]);
		CHECK(!body_of(bad[i], 64, body, &used));
		CHECK(!body_of(bad[i], 1, body, &used));
	}
}

/* Servers may, and clients have to pass it over. */
TEST(chunks_of_an_answer_may_have_extensions)
{
	static const char *const good[] = {
		"5;a=b\r\nhello\r\n0\r\n\r\n",
		"5 \r\nhello\r\n0  \r\n\r\n",
		" \t5\r\nhello\r\n0\r\n\r\n",
		"5 \t;a=\"b; c\" ;d\r\nhello\r\n0;last\r\nX: y\r\n\r\n",
	};
	static const char *const bad[] = {
		"5;a=b\nhello\r\n0\r\n\r\n",     "5;a\rb\r\nhello\r\n0\r\n\r\n",
		"5;a\x01\r\nhello\r\n0\r\n\r\n", "5 5\r\nhello\r\n0\r\n\r\n",
		"5 a=b\r\nhello\r\n0\r\n\r\n",   ";a=b\r\nhello\r\n0\r\n\r\n",
		" \r\nhello\r\n0\r\n\r\n",       "5\x0b\r\nhello\r\n0\r\n\r\n",
	};
	char *text = malloc(3 * HTTP_EXTENSION_MAX);
	char body[64];
	size_t used;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		for (size_t step = 1; step < 8; step++) {
			CHECK(body_from(true, good[i], step, body, &used));
			CHECK_STR(body, "hello");
			CHECK_INT(used, strlen(good[i]));
			CHECK(!body_of(good[i], step, body, &used));
		}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (body_from(true, bad[i], 64, body, &used))
			printf("# %s\n", bad[i]);
		CHECK(!body_from(true, bad[i], 64, body, &used));
		CHECK(!body_from(true, bad[i], 1, body, &used));
	}
	(void)sprintf(text, "5;%0*d\r\nhello\r\n0\r\n\r\n",
		      HTTP_EXTENSION_MAX - 1, 0);
	CHECK(body_from(true, text, 64, body, &used));
	(void)sprintf(text, "5;%0*d\r\nhello\r\n0\r\n\r\n", HTTP_EXTENSION_MAX,
		      0);
	CHECK(!body_from(true, text, 64, body, &used));
	free(text);
}

TEST(a_trailer_has_an_upper_size)
{
	char *text = malloc(3 * HTTP_TRAILER_MAX), body[8];
	size_t used;
	int n = sprintf(text, "0\r\n");

	while (n < 2 * HTTP_TRAILER_MAX)
		n += sprintf(text + n, "X-Trailer: a\r\n");
	(void)sprintf(text + n, "\r\n");
	CHECK(!body_of(text, 65536, body, &used));
	free(text);
}

/* paths */

TEST(globs)
{
	static const struct {
		const char *glob, *text;
		bool is_match;
	} cases[] = {
		{ "/a", "/a", true },
		{ "/a", "/ab", false },
		{ "/a/*", "/a/b", true },
		{ "/a/*", "/a/", true },
		{ "/a/*", "/a/b/c", false },
		{ "/a/*/c", "/a/b/c", true },
		{ "/a/*/c", "/a/b/b/c", false },
		{ "/a/**", "/a/b/c", true },
		{ "/a/**", "/a", false },
		{ "/a/**", "/ab", false },
		{ "/a/**/z", "/a/b/c/z", true },
		{ "/a/**/z", "/a/b/c/zz", false },
		{ "/**/x-*.js", "/p/q/x-1.js", true },
		{ "/**/x-*.js", "/p/q/x-1/y.js", false },
		{ "/**/b/*/d", "/a/b/c/x/b/e/d", true },
		{ "/a?c", "/abc", true },
		{ "/a?c", "/a/c", false },
		{ "**", "/anything/at/all", true },
		{ "*", "/a", false },
		{ "", "", true },
		{ "", "/", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		bool have = http_glob(cases[i].glob, cases[i].text,
				      strlen(cases[i].text));

		if (have != cases[i].is_match)
			printf("# %s %s\n", cases[i].glob, cases[i].text);
		CHECK_INT(have, cases[i].is_match);
	}
}

TEST(every_reading_of_a_path_is_judged)
{
	static const struct rule rule = { .host = "api.test",
					  .paths = { "/repos/**", "/v/*" } };
	struct gate_table *t = rules_new(&rule, 1);
	static const struct {
		const char *path;
		bool is_allowed;
	} cases[] = {
		{ "/repos/a/b", true },
		{ "/repos/@s%2fname", true },
		{ "/repos/a%20b", true },
		{ "/repos/a..b/.c", true },
		{ "/admin", false },
		{ "/repos", false },
		{ "/repos/../admin", false },
		{ "/repos/..", false },
		{ "/repos/./x", false },
		{ "/repos/%2e%2e/admin", false },
		{ "/repos/.%2E/admin", false },
		{ "/repos/%252e%252e/admin", false },
		{ "/repos/x%2f..%2f..%2fadmin", false },
		{ "/repos/x%5c..%5c..%5cadmin", false },
		{ "/repos/..;/admin", false },
		{ "/repos/..;x=1/admin", false },
		{ "/repos/a%00b", false },
		{ "/repos/%25252525252e", false },
		/* overlong, as a lenient server reads it: a dot, a slash */
		{ "/repos/%c0%ae%c0%ae/admin", false },
		{ "/repos/%C0%2e./admin", false },
		{ "/repos/a%c1%9cb", false },
		{ "/repos/a%e0%80%afb", false },
		{ "/repos/a%f0%80%80%afb", false },
		{ "/repos/a%f8%80%80%80%afb", false },
		{ "/repos/a%fc%80%80%80%80%afb", false },
		{ "/repos/%25c0%25ae", false },
		{ "/repos/%c3%a9%e0%a4%85%f0%9f%98%80", true },
		/* as IIS reads it, and what Windows leaves out */
		{ "/repos/%u002e%u002e/admin", false },
		{ "/repos/%U002E./admin", false },
		{ "/repos/%25u002e%25u002e/admin", false },
		{ "/repos/a%u00zz", true },
		{ "/repos/..%20/admin", false },
		{ "/repos/..%09/x", false },
		{ "/repos/..%7f/x", false },
		{ "/repos/%20../x", false },
		{ "/repos/..%20%2e/x", false },
		{ "/repos/.../x", false },
		{ "/repos/..%00/x", false },
		{ "/repos/.%20;x/y", false },
		{ "/repos/%20/x", true },
		{ "/repos/main...dev", true },
		{ "/repos/a%5cb", true },
		{ "/v/a%5cb", false },
		{ "/v/a\\b", false },
		{ "/v/%255c", false },
		{ "/v/a", true },
		{ "/v/a%2fb", false },
		{ "/v//a", false },
		{ "//repos/a", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct http_slice s = { cases[i].path, strlen(cases[i].path) };
		bool have = http_path_allowed(s, t, &t->rules[0].paths);

		if (have != cases[i].is_allowed)
			printf("# %s\n", cases[i].path);
		CHECK_INT(have, cases[i].is_allowed);
	}
	free(t);
}

/* judging */

static const struct http_to api = { .host = "api.test", .port = 443 };

static enum gate_reason judge(const struct gate_table *t, const char *line,
			      int *rule)
{
	static struct http_verdict v;
	struct http_head h;
	char text[256];

	(void)snprintf(text, sizeof(text),
		       "%s HTTP/1.1\r\nHost: api.test\r\n\r\n", line);
	CHECK_INT(read_text(text, &h), 1);
	http_judge(t, &api, &h, &v);
	*rule = v.rule;
	return v.reason;
}

TEST(all_rules_for_a_host_count)
{
	static const struct rule rules[] = {
		{ .host = "api.test", .methods = { "GET" }, .paths = { "/a" } },
		{ .host = "api.test", .methods = { "PUT" }, .paths = { "/b" } },
		{ .host = "other.test" },
		{ .host = "api.test", .port = 80 },
		{ .host = "*.test", .paths = { "/c" }, .flags = GATE_RULE_ASK },
		{ .host = "*.test", .methods = { "GET" }, .paths = { "/d" } },
	};
	struct gate_table *t = rules_new(rules, ARRAY_SIZE(rules));
	int rule;

	CHECK_INT(judge(t, "GET /a", &rule), GATE_OK);
	CHECK_INT(rule, 0);
	CHECK_INT(judge(t, "PUT /b", &rule), GATE_OK);
	CHECK_INT(rule, 1);
	CHECK_INT(judge(t, "GET /b", &rule), GATE_R_METHOD);
	CHECK_INT(rule, 1);
	CHECK_INT(judge(t, "GET /c", &rule), GATE_R_PATH);
	CHECK_INT(judge(t, "GET /d", &rule), GATE_OK);
	CHECK_INT(judge(t, "CONNECT api.test:443", &rule), GATE_R_METHOD);
	CHECK_INT(judge(t, "TRACE /d", &rule), GATE_R_METHOD);
	free(t);
}

/* Those for addresses too, of whatever width. */
TEST(all_rules_for_an_address_count)
{
	static const struct rule rules[] = {
		{ .host = "10.0.0.1", .methods = { "GET" }, .paths = { "/a" } },
		{ .host = "10.0.0.1", .methods = { "PUT" }, .paths = { "/b" } },
		{ .host = "10.0.0.0/8", .paths = { "/c" } },
		{ .host = "10.0.0.0/8", .port = 80 },
		{ .host = "11.0.0.0/8" },
		{ .host = "10.0.0.1" }, /* of names: none has this one */
	};
	static const uint8_t ten[16] = { [10] = 0xff, 0xff, 10, 0, 0, 1 };
	static const struct http_to to = { .host = "10.0.0.1",
					   .address = ten,
					   .port = 443 };
	static const char *const lines[] = { "GET /a", "PUT /b", "GET /c",
					     "PUT /a", "GET /d" };
	static const int want[] = { 0, 1, 2, -1, -1 };
	struct gate_table *t = rules_new(rules, ARRAY_SIZE(rules));

	for (int i = 0; i < 5; i++) {
		t->rules[i].kind = GATE_ADDRESS;
		t->rules[i].bits = i < 2 ? 128 : 104;
		memcpy(t->rules[i].address, ten, 16);
		t->rules[i].address[12] = i == 4 ? 11 : 10;
	}
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		static struct http_verdict v;
		struct http_head h;
		char text[256];

		(void)snprintf(text, sizeof(text),
			       "%s HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n",
			       lines[i]);
		CHECK_INT(read_text(text, &h), 1);
		http_judge(t, &to, &h, &v);
		CHECK_INT(v.reason == GATE_OK ? v.rule : -1, want[i]);
	}
	free(t);
}

/* What a policy can say is what can be read, and nothing else. */
TEST(methods_of_a_policy_are_those_that_are_read)
{
	static const char *const names[] = {
#define XX(number, name, text) #text,
		HTTP_METHOD_MAP(XX)
#undef XX
			"QUERY",
		"FOO", "LIST", "get", "VERSION-CONTROL"
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		bool is_never = strcmp(names[i], "CONNECT") == 0 ||
				strcmp(names[i], "TRACE") == 0;
		struct http_head h;
		char text[256];
		bool is_read;

		(void)snprintf(text, sizeof(text),
			       "%s %s HTTP/1.1\r\nHost: api.test\r\n\r\n",
			       names[i],
			       strcmp(names[i], "CONNECT") == 0 ? "api.test:443"
								: "/");
		is_read = read_text(text, &h) == 1;
		CHECK_INT(value_is_method(names[i]), is_read && !is_never);
		if (!is_read)
			CHECK_STR(h.wrong, "a method that is not known");
	}
	CHECK(value_is_method("WEBSOCKET"));
}

/* The same for a request with a header more. */
static enum gate_reason judge_with(const struct gate_table *t, const char *line,
				   const char *header)
{
	static struct http_verdict v;
	struct http_head h;
	char text[256];

	(void)snprintf(text, sizeof(text),
		       "%s HTTP/1.1\r\nHost: api.test\r\n%s: /b\r\n\r\n", line,
		       header);
	CHECK_INT(read_text(text, &h), 1);
	http_judge(t, &api, &h, &v);
	return v.reason;
}

/* What a server would do instead was judged by nobody. */
TEST(headers_that_say_another_method_or_path)
{
	static const struct rule rules[] = {
		{ .host = "api.test", .methods = { "GET" } },
		{ .host = "api.test", .paths = { "/a" } },
	};
	static const char *const methods[] = { "X-HTTP-Method-Override",
					       "x-http-method",
					       "X-METHOD-Override",
					       "X_HTTP_Method_Override" };
	static const char *const paths[] = { "X-Original-URL",
					     "x-rewrite-url" };
	struct gate_table *by_method = rules_new(&rules[0], 1);
	struct gate_table *by_path = rules_new(&rules[1], 1);
	struct gate_table *both = rules_new(rules, 2);

	for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
		CHECK_INT(judge_with(by_method, "GET /a", methods[i]),
			  GATE_R_OVERRIDE);
		CHECK_INT(judge_with(by_path, "GET /a", methods[i]), GATE_OK);
	}
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		CHECK_INT(judge_with(by_path, "GET /a", paths[i]),
			  GATE_R_OVERRIDE);
		CHECK_INT(judge_with(by_method, "GET /a", paths[i]), GATE_OK);
	}
	/* Rules add up: what one of them does not restrict, it allows. */
	CHECK_INT(judge_with(both, "GET /a", methods[0]), GATE_OK);
	CHECK_INT(judge_with(both, "GET /c", methods[0]), GATE_R_OVERRIDE);
	CHECK_INT(judge_with(by_method, "GET /a", "X-HTTP-Method-Overrides"),
		  GATE_OK);
	free(by_method);
	free(by_path);
	free(both);
}

/* Whoever wrote one meant to allow little, and not everything. */
TEST(an_empty_list_allows_nothing)
{
	static const struct rule rules[] = {
		{ .host = "api.test", .flags = GATE_RULE_METHODS },
		{ .host = "api.test", .flags = GATE_RULE_PATHS },
	};
	struct gate_table *t = rules_new(rules, ARRAY_SIZE(rules));
	int rule;

	CHECK_INT(judge(t, "GET /a", &rule), GATE_R_METHOD);
	t->rules[0].flags = GATE_RULE_INSPECT | GATE_RULE_PATHS;
	CHECK_INT(judge(t, "GET /a", &rule), GATE_R_PATH);
	/* The control: a rule without lists. */
	t->rules[0].flags = GATE_RULE_INSPECT;
	CHECK_INT(judge(t, "GET /a", &rule), GATE_OK);
	free(t);
}

/* secrets */

#define PLACE "CORDON-PLACEHOLDER-0001"
#define VALUE "s3cr3t/value+with=signs"

static const struct rule secret_rules[] = {
	{ .host = "api.test",
	  .placeholder = PLACE,
	  .value = VALUE,
	  .name = "TOKEN",
	  .header = "Authorization" },
	{ .host = "other.test",
	  .placeholder = "CORDON-PLACEHOLDER-0002",
	  .value = "another-value-of-mine",
	  .name = "OTHER" },
};

static const bool first_applies[GATE_MAX_RULES] = { true };

static const char *checked(const char *text)
{
	struct gate_table *t = rules_new(secret_rules, 2);
	struct secret_fault fault;
	struct http_head h;

	CHECK_INT(read_text(text, &h), 1);
	secret_check_head(t, first_applies, &h, &fault);
	free(t);
	return fault.reason == GATE_OK ? "" : fault.where;
}

TEST(placeholders_stand_only_where_they_may)
{
	CHECK_STR(checked(LINE "Authorization: Bearer " PLACE "\r\n\r\n"), "");
	CHECK_STR(checked(LINE "X-Key: " PLACE "\r\n\r\n"), "a header");
	CHECK_STR(checked(LINE PLACE ": x\r\n\r\n"), "a header's name");
	CHECK_STR(checked("GET /" PLACE " HTTP/1.1\r\nHost: a\r\n\r\n"),
		  "the path");
	CHECK_STR(checked("GET /?k=" PLACE " HTTP/1.1\r\nHost: a\r\n\r\n"),
		  "the query");
	CHECK_STR(checked("GET /?k=%43ORDON-PLACEHOLDER-000%31 HTTP/1.1\r\n"
			  "Host: a\r\n\r\n"),
		  "the query");
	CHECK_STR(checked(LINE
			  "Authorization: CORDON-PLACEHOLDER-0002\r\n\r\n"),
		  "a header");
	/* Encoded it would go out as it is, also in its own header. */
	CHECK_STR(checked(LINE "X-Key: a%20%43ORDON-PLACEHOLDER-0001\r\n\r\n"),
		  "a header");
	CHECK_STR(checked(LINE "Authorization: Bearer "
			       "CORDON%2dPLACEHOLDER-0001\r\n\r\n"),
		  "a header");
	CHECK_STR(checked(LINE "Cookie: k=CORDON%2DPLACEHOLDER-0002\r\n\r\n"),
		  "a header");
	/* u:CORDON%2DPLACEHOLDER-0001 */
	CHECK_STR(checked(LINE "Authorization: Basic "
			       "dTpDT1JET04lMkRQTEFDRUhPTERFUi0wMDAx\r\n\r\n"),
		  "a header");
	/* u:CORDON-PLACEHOLDER-0002 */
	CHECK_STR(checked(LINE "Authorization: Basic "
			       "dTpDT1JET04tUExBQ0VIT0xERVItMDAwMg==\r\n\r\n"),
		  "a header");
}

/* A query has one field for it. */
TEST(placeholders_stand_only_in_their_field)
{
	static const struct {
		const char *query;
		const char *where;
	} rows[] = {
		{ "key=" PLACE, "" },
		{ "a=b&key=x" PLACE "y&c", "" },
		{ "key=" PLACE "&key=" PLACE, "" },
		{ "other=" PLACE, "the query" },
		{ "key=" PLACE "&other=" PLACE, "the query" },
		{ "k%65y=" PLACE, "the query" },
		{ PLACE, "the query" },
		{ "key&" PLACE, "the query" },
		{ PLACE "=key", "the query" },
		{ "key=%43ORDON-PLACEHOLDER-0001", "the query" },
		{ "key=CORDON-PLACEHOLDER-0002", "the query" },
	};
	struct rule rules[2] = { secret_rules[0], secret_rules[1] };
	struct gate_table *t;

	rules[0].header = NULL;
	rules[0].query = "key";
	t = rules_new(rules, 2);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct secret_fault fault;
		struct http_head h;
		char text[256];

		(void)snprintf(text, sizeof(text),
			       "GET /?%s HTTP/1.1\r\nHost: a\r\n\r\n",
			       rows[i].query);
		CHECK_INT(read_text(text, &h), 1);
		secret_check_head(t, first_applies, &h, &fault);
		CHECK_STR(fault.where ? fault.where : "", rows[i].where);
	}
	free(t);
}

static const char *put_header(const struct rule *rule, const char *value)
{
	static char text[1024];
	struct gate_table *t = rules_new(rule, 1);
	struct http_field f = { .name = { "Authorization", 13 },
				.value = { value, strlen(value) } };
	struct buf out;

	buf_init(&out, 1000);
	(void)secret_put_value(t, first_applies, &f, &out);
	(void)snprintf(text, sizeof(text), "%s", out.data ? out.data : "");
	buf_done(&out);
	free(t);
	return text;
}

TEST(values_are_put_into_headers)
{
	struct rule r = secret_rules[0];

	CHECK_STR(put_header(&r, "token " PLACE), "token " VALUE);
	CHECK_STR(put_header(&r, "token x"), "token x");
	/* u:CORDON-PLACEHOLDER-0001 and u:s3cr3t/value+with=signs */
	CHECK_STR(put_header(&r, "Basic dTpDT1JET04tUExBQ0VIT0xERVItMDAwMQ=="),
		  "Basic dTpzM2NyM3QvdmFsdWUrd2l0aD1zaWducw==");
	CHECK_STR(put_header(&r, "basic dTpDT1JET04tUExBQ0VIT0xERVItMDAwMQ"),
		  "Basic dTpzM2NyM3QvdmFsdWUrd2l0aD1zaWducw==");
	r.format = "Bearer {}";
	CHECK_STR(put_header(&r, PLACE), "Bearer " VALUE);
	r.header = "X-Key";
	CHECK_STR(put_header(&r, PLACE), PLACE);
	r.header = "*";
	CHECK_STR(put_header(&r, PLACE), "Bearer " VALUE);
	r.header = NULL;
	CHECK_STR(put_header(&r, PLACE), PLACE);
}

TEST(several_values_are_put_into_one_header)
{
	static const struct rule rules[] = {
		{ .host = "api.test",
		  .placeholder = "CORDON-PLACEHOLDER-0001",
		  .value = "user-value",
		  .header = "*",
		  .query = "k" },
		{ .host = "api.test",
		  .placeholder = "CORDON-PLACEHOLDER-0002",
		  .value = "pass/value",
		  .header = "*",
		  .query = "k" },
		/* One is the beginning of the other. */
		{ .host = "api.test",
		  .placeholder = "CORDON-PLACEHOLDER-00021",
		  .value = "third",
		  .header = "*" },
	};
	static const bool applies[GATE_MAX_RULES] = { true, true, true };
	static const struct {
		const char *have, *want;
	} cases[] = {
		{ "a=CORDON-PLACEHOLDER-0002; b=CORDON-PLACEHOLDER-0001; c",
		  "a=pass/value; b=user-value; c" },
		{ "CORDON-PLACEHOLDER-00021CORDON-PLACEHOLDER-0002",
		  "thirdpass/value" },
		/* CORDON-PLACEHOLDER-0001:CORDON-PLACEHOLDER-0002 */
		{ "Basic Q09SRE9OLVBMQUNFSE9MREVSLTAwMDE6Q09SRE9OLVBMQUNFSE9M"
		  "REVSLTAwMDI=",
		  "Basic dXNlci12YWx1ZTpwYXNzL3ZhbHVl" },
	};
	struct gate_table *t = rules_new(rules, ARRAY_SIZE(rules));
	struct http_head h;
	struct buf out;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct http_field f = { .name = { "Cookie", 6 },
					.value = { cases[i].have,
						   strlen(cases[i].have) } };

		buf_init(&out, 1000);
		CHECK(secret_put_value(t, applies, &f, &out));
		CHECK_STR(out.data, cases[i].want);
		buf_done(&out);
	}
	CHECK_INT(read_text("GET /?k=CORDON-PLACEHOLDER-0001:"
			    "CORDON-PLACEHOLDER-0002 HTTP/1.1\r\n"
			    "Host: api.test\r\n\r\n",
			    &h),
		  1);
	buf_init(&out, 1000);
	CHECK(secret_put_target(t, applies, &h, &out));
	CHECK_STR(out.data, "/?k=user-value:pass%2Fvalue");
	buf_done(&out);
	free(t);
}

TEST(values_are_put_into_queries)
{
	static const struct rule rule = { .host = "api.test",
					  .placeholder = PLACE,
					  .value = VALUE,
					  .query = "key" };
	struct gate_table *t = rules_new(&rule, 1);
	struct http_head h;
	struct buf out;

	CHECK_INT(read_text("GET /a?b=" PLACE "&key=" PLACE "&c HTTP/1.1\r\n"
			    "Host: api.test\r\n\r\n",
			    &h),
		  1);
	buf_init(&out, 1000);
	CHECK(secret_put_target(t, first_applies, &h, &out));
	CHECK_STR(out.data,
		  "/a?b=" PLACE "&key=s3cr3t%2Fvalue%2Bwith%3Dsigns&c");
	buf_done(&out);
	/* All else stays as it was. */
	CHECK_INT(read_text("GET /?&a&&b=& HTTP/1.1\r\nHost: a\r\n\r\n", &h),
		  1);
	buf_init(&out, 1000);
	CHECK(!secret_put_target(t, first_applies, &h, &out));
	CHECK_STR(out.data, "/?&a&&b=&");
	buf_done(&out);
	free(t);
}

static const char *put_body(bool is_json, const char *value, const char *body)
{
	static char text[1024];
	struct rule rule = { .host = "api.test",
			     .placeholder = PLACE,
			     .value = value,
			     .body = "key" };
	struct gate_table *t = rules_new(&rule, 1);
	struct buf out;
	int r = secret_put_body(t, first_applies, is_json, body, strlen(body),
				&out);

	(void)snprintf(text, sizeof(text), "%s", r < 0 ? "?" : out.data);
	buf_done(&out);
	free(t);
	return text;
}

TEST(values_are_put_into_bodies)
{
	CHECK_STR(put_body(false, "a b&c", "x=" PLACE "&key=" PLACE "&z"),
		  "x=" PLACE "&key=a%20b%26c&z");
	CHECK_STR(put_body(true, "a\"b\\c",
			   "{\"x\": \"" PLACE
			   "\", \"in\": {\"key\" : \"T " PLACE
			   "\"}, \"n\": 1.50}"),
		  "{\"x\": \"" PLACE
		  "\", \"in\": {\"key\" : \"T a\\\"b\\\\c\"}, \"n\": 1.50}");
	/* A string that looks like the member, and one that never ends. */
	CHECK_STR(put_body(true, "v", "[\"key\", \"" PLACE "\"]"),
		  "[\"key\", \"" PLACE "\"]");
	CHECK_STR(put_body(true, "v",
			   "{\"a\":\"\\\"key\\\":\",\"b\":\"" PLACE "\"}"),
		  "{\"a\":\"\\\"key\\\":\",\"b\":\"" PLACE "\"}");
	CHECK_STR(put_body(true, "v", "{\"key\":\"" PLACE), "{\"key\":\"v");
	CHECK_STR(put_body(true, "v", "\"\\"), "\"\\");
}

TEST(a_value_that_would_end_a_header_is_refused)
{
	struct rule r = secret_rules[0];
	struct secret_fault fault;
	struct gate_table *t;
	struct http_head h;

	r.value = "a\r\nX: b";
	t = rules_new(&r, 1);
	CHECK_INT(read_text(LINE "Authorization: " PLACE "\r\n\r\n", &h), 1);
	secret_check_head(t, first_applies, &h, &fault);
	CHECK_INT(fault.reason, GATE_R_PLACEHOLDER);
	free(t);
}

TEST(a_foreign_placeholder_is_found_at_any_split)
{
	static const char body[] = "some text CORDON-PLACEHOLDER-0002 more";
	struct gate_table *t = rules_new(secret_rules, 2);

	for (size_t step = 1; step < sizeof(body); step++) {
		struct secret_watch w = { .n = 0 };
		int found = -1;

		for (size_t at = 0; at < sizeof(body) - 1; at += step) {
			size_t n = MIN(step, sizeof(body) - 1 - at);
			int r = secret_watch_take(&w, t, first_applies,
						  body + at, n);

			found = r >= 0 ? r : found;
		}
		CHECK_INT(found, 1);
	}
	free(t);
}

static bool all_sent[GATE_MAX_RULES];

static void send_all(void)
{
	memset(all_sent, true, sizeof(all_sent));
}

static void collect(void *arg, const char *data, size_t len)
{
	(void)strncat(arg, data, len);
}

TEST(values_that_come_back_are_covered_at_any_split)
{
	static const char body[] = "a s3cr3t/s3cr3t/value+with=signs and "
				   "s3cr3t%2Fvalue%2Bwith%3Dsigns s3cr3t/val";
	struct gate_table *t = rules_new(secret_rules, 1);
	struct http_head h = { .n_fields = 0 };

	send_all();
	for (size_t step = 1; step < sizeof(body); step++) {
		char have[sizeof(body)] = "", copy[sizeof(body)];
		struct secret_masks m;

		memcpy(copy, body, sizeof(body));
		CHECK_INT(secret_masks_init(&m, t, all_sent, &h), 0);
		for (size_t at = 0; at < sizeof(body) - 1; at += step)
			secret_masks_feed(&m, copy + at,
					  MIN(step, sizeof(body) - 1 - at),
					  collect, have);
		secret_masks_flush(&m, collect, have);
		secret_masks_done(&m);
		CHECK_STR(have, "a s3cr3t/*********************** and "
				"***************************** s3cr3t/val");
	}
	free(t);
}

static void count_pieces(void *arg, const char *data, size_t len)
{
	unsigned int *n = arg;

	(void)data, (void)len;
	(*n)++;
}

/* Each rule of a full table; all are covered, in few pieces. */
TEST(values_of_all_rules_are_covered)
{
	static struct rule rules[GATE_MAX_RULES];
	static char values[GATE_MAX_RULES][32], body[65536];
	struct http_head h = { .n_fields = 0 };
	struct secret_masks m;
	struct gate_table *t;
	unsigned int n = 0;

	send_all();
	for (int i = 0; i < GATE_MAX_RULES; i++) {
		(void)snprintf(values[i], sizeof(values[i]), "value/%d/number",
			       i);
		rules[i] = (struct rule){ .host = "x.test",
					  .placeholder = PLACE,
					  .value = values[i] };
	}
	t = rules_new(rules, GATE_MAX_RULES);
	CHECK_INT(secret_masks_init(&m, t, all_sent, &h), 0);
	for (int i = 0; i < GATE_MAX_RULES; i++) {
		char text[64];

		(void)snprintf(text, sizeof(text), "<%.31s>", values[i]);
		secret_masks_cover(&m, text, strlen(text));
		CHECK(!strstr(text, "value") && text[0] == '<' &&
		      text[strlen(values[i]) + 1] == '>');
	}
	for (size_t i = 0; i < sizeof(body); i++)
		body[i] = "value/"[i % 6];
	for (int i = 0; i < 3; i++)
		secret_masks_feed(&m, body, sizeof(body), count_pieces, &n);
	secret_masks_flush(&m, count_pieces, &n);
	CHECK(n <= 3 * 5 + 1);
	secret_masks_done(&m);
	free(t);
}

/* One is the beginning of another, and one begins inside of another. */
TEST(values_that_overlap_are_covered_at_any_split)
{
	static const struct rule rules[] = {
		{ .host = "a.test", .placeholder = PLACE, .value = "abcdefgh" },
		{ .host = "b.test",
		  .placeholder = PLACE,
		  .value = "abcdefgh12345" },
		{ .host = "c.test",
		  .placeholder = PLACE,
		  .value = "ghghghabc" },
		{ .host = "d.test",
		  .placeholder = PLACE,
		  .value = "12345678-1234567890" },
	};
	static const char body[] = "[abcdefgh12345678-123] [ghghghabcdefgh!] "
				   "[abcdefgh1234] ghghghabcdefgh";
	struct gate_table *t = rules_new(rules, ARRAY_SIZE(rules));
	struct http_head h = { .n_fields = 0 };

	send_all();
	for (size_t step = 1; step < sizeof(body); step++) {
		char have[sizeof(body)] = "";
		struct secret_masks m;

		CHECK_INT(secret_masks_init(&m, t, all_sent, &h), 0);
		for (size_t at = 0; at < sizeof(body) - 1; at += step)
			secret_masks_feed(&m, body + at,
					  MIN(step, sizeof(body) - 1 - at),
					  collect, have);
		secret_masks_flush(&m, collect, have);
		secret_masks_done(&m);
		CHECK_STR(have, "[*************678-123] [**************!] "
				"[********1234] **************");
	}
	free(t);
}

/* Each form that the gate writes, and what others write for the same. */
TEST(each_form_of_a_value_is_covered)
{
	static const struct rule rule = { .host = "api.test",
					  .placeholder = PLACE,
					  .value = "?\"b\\c~d/e+f\xc3\xa9",
					  .header = "*" };
	static const char *const forms[] = {
		"?\"b\\c~d/e+f\xc3\xa9",       /* as it is */
		"%3F%22b%5Cc~d%2Fe%2Bf%C3%A9", /* of a query */
		"%3f%22b%5cc~d%2fe%2bf%c3%a9",
		"%3F%22b%5Cc%7Ed%2Fe%2Bf%C3%A9", /* of a form */
		"%3f%22b%5cc%7ed%2fe%2bf%c3%a9",
		"?\\\"b\\\\c~d/e+f\xc3\xa9", /* of JSON */
		"?\\\"b\\\\c~d\\/e+f\xc3\xa9",
		"dTo/ImJcY35kL2UrZsOp", /* of Basic */
		"dTo\\/ImJcY35kL2UrZsOp",
	};
	struct gate_table *t = rules_new(&rule, 1);
	struct http_head h;

	send_all();
	/* u:CORDON-PLACEHOLDER-0001 */
	CHECK_INT(read_text(LINE "Authorization: Basic "
				 "dTpDT1JET04tUExBQ0VIT0xERVItMDAwMQ==\r\n\r\n",
			    &h),
		  1);
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
		for (size_t step = 1; step < 40; step++) {
			char text[64], have[64] = "", want[64];
			size_t n = strlen(forms[i]);
			struct secret_masks m;

			(void)snprintf(text, sizeof(text), "<%s>", forms[i]);
			(void)snprintf(want, sizeof(want), "<%s>", forms[i]);
			memset(want + 1, '*', n);
			CHECK_INT(secret_masks_init(&m, t, all_sent, &h), 0);
			for (size_t at = 0; at < n + 2; at += step)
				secret_masks_feed(&m, text + at,
						  MIN(step, n + 2 - at),
						  collect, have);
			secret_masks_flush(&m, collect, have);
			secret_masks_done(&m);
			CHECK_STR(have, want);
		}
	free(t);
}

/* What another host is sent is not looked for, nor waited for. */
TEST(values_of_others_are_not_looked_for)
{
	static const bool sent[GATE_MAX_RULES] = { true };
	struct gate_table *t = rules_new(secret_rules, 2);
	struct http_head h = { .n_fields = 0 };
	char have[64] = "";
	struct secret_masks m;

	CHECK_INT(secret_masks_init(&m, t, sent, &h), 0);
	secret_masks_feed(&m, "another-value-of-m", 18, collect, have);
	CHECK_STR(have, "another-value-of-m");
	secret_masks_feed(&m, "ine, s3cr3t/val", 15, collect, have);
	CHECK_STR(have, "another-value-of-mine, ");
	secret_masks_done(&m);
	free(t);
}

static const char *sent_to(const struct gate_table *t, int own,
			   const char *host, const uint8_t address[16])
{
	const struct http_to to = { own, host, address, 443 };
	static bool sent[GATE_MAX_RULES];
	static char text[16];

	http_sent(t, &to, sent);
	for (uint32_t i = 0; i < t->n_rules; i++)
		text[i] = sent[i] ? 'x' : '-';
	text[t->n_rules] = '\0';
	return text;
}

TEST(whose_values_an_answer_is_searched_for)
{
	static const struct rule rules[] = {
		{ .host = "api.test", .paths = { "/a" } },
		{ .host = "api.test", .port = 8443, .methods = { "PUT" } },
		{ .host = "*.test" },
		{ .host = "other.test" },
		{ .host = "api.test", .flags = GATE_RULE_ASK },
		{ .host = "10.0.0.1" },
		{ .host = "10.0.0.0/8" },
		{ .host = "11.0.0.0/8" },
	};
	static const uint8_t none[16];
	static const uint8_t ten[16] = { [10] = 0xff, 0xff, 10, 0, 0, 1 };
	struct gate_table *t = rules_new(rules, ARRAY_SIZE(rules));

	for (int i = 5; i < 8; i++) {
		t->rules[i].kind = GATE_ADDRESS;
		t->rules[i].bits = i == 5 ? 128 : 104;
		memcpy(t->rules[i].address, ten, 16);
		t->rules[i].address[12] = i == 7 ? 11 : 10;
	}
	CHECK_STR(sent_to(t, 0, "api.test", none), "xxx-----");
	CHECK_STR(sent_to(t, 4, "api.test", none), "xxx-x---");
	CHECK_STR(sent_to(t, 3, "other.test", none), "--xx----");
	CHECK_STR(sent_to(t, 2, "third.test", none), "--x-----");
	CHECK_STR(sent_to(t, 5, "10.0.0.1", ten), "-----xx-");
	free(t);
}

/* refusals */

TEST(a_refusal_says_what_and_why)
{
	struct gate_table *t = rules_new(secret_rules, 1);
	struct refusal r = { .status = 403,
			     .reason = GATE_R_METHOD,
			     .table = t,
			     .host = "api.test",
			     .port = 443,
			     .method = { "PUT", 3 },
			     .path = { "/a\"b", 4 } };
	struct buf out;

	buf_init(&out, 8192);
	refuse_put(&r, &out);
	CHECK_INT(out.error, 0);
	CHECK_HAS(out.data, "HTTP/1.1 403 Forbidden\r\n");
	CHECK_HAS(out.data,
		  "\r\n\r\n{\"error\":\"denied\",\"layer\":\"net\",\"host\":"
		  "\"api.test\",\"port\":443,\"method\":\"PUT\",\"path\":"
		  "\"/a\\\"b\",\"reason\":\"method\",");
	CHECK_HAS(out.data, "\"rule\":\"cordon.yaml:12\",\"hint\":\"");
	CHECK_HAS(out.data, "needs this method");
	buf_done(&out);
	r.method = (struct http_slice){ "TRACE", 5 };
	buf_init(&out, 8192);
	refuse_put(&r, &out);
	CHECK_HAS(out.data, "no rule can allow this method");
	CHECK(!strstr(out.data, VALUE));
	buf_done(&out);
	free(t);
}

TAP_MAIN()
