/* SPDX-License-Identifier: Apache-2.0 */

/* WebSockets through a connection that a gate looks into. */

#include "gate-inspect.h"
#include "gate/websocket.h"

#define PLACE "CORDON-PLACEHOLDER-0001"
#define VALUE "s3cr3t-value-of-this-test"

/* The key and its answer are those of RFC 6455, 1.3. */
#define ASK                                                                    \
	"GET /live/a HTTP/1.1\r\nHost: api.test\r\n"                           \
	"Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"            \
	"Sec-WebSocket-Version: 13\r\n"
#define KEY     "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define WORD    "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
#define DEFLATE "Sec-WebSocket-Extensions: permessage-deflate\r\n"
#define SWITCH  "HTTP/1.1 101 Switching Protocols\r\n"
#define AGREED                                                                 \
	SWITCH "Connection: Upgrade\r\nUpgrade: websocket\r\n" WORD "\r\n"

static const struct rule any[] = { { .host = HOST } };

static const struct rule live[] = {
	{ .host = HOST, .methods = { "WEBSOCKET" }, .paths = { "/live/**" } },
};

static const struct rule secret[] = {
	{ .host = HOST,
	  .placeholder = PLACE,
	  .value = VALUE,
	  .name = "TOKEN",
	  .header = "Authorization" },
};

/* frames */

/* One from a client; how long it is. */
static size_t frame(char *ret, unsigned char first, const char *text)
{
	static const char mask[4] = { 0x11, 0x22, 0x33, 0x44 };
	size_t n = strlen(text);

	ret[0] = (char)first;
	ret[1] = (char)(0x80 | n);
	memcpy(ret + 2, mask, sizeof(mask));
	for (size_t i = 0; i < n; i++)
		ret[6 + i] = (char)(text[i] ^ ret[2 + i % 4]);
	return n + 6;
}

static void box_frame(struct lab *l, unsigned char first, const char *text)
{
	char data[256];

	(void)stream_write(&l->box, data, frame(data, first, text));
}

static bool read_whole(struct lab *l, char *data, size_t len)
{
	size_t n = 0;

	while (n < len) {
		ssize_t r = stream_read(&l->far, data + n, len - n);

		if (r <= 0)
			return false;
		n += (size_t)r;
	}
	return true;
}

/* Says every short frame back, and keeps what was in it. */
static void echo(struct lab *l)
{
	char head[6], text[128];

	while (read_whole(l, head, sizeof(head))) {
		size_t n = head[1] & 0x7f;

		if (!read_whole(l, text, n))
			return;
		for (size_t i = 0; i < n; i++)
			text[i] = (char)(text[i] ^ head[2 + i % 4]);
		memcpy(l->got + l->n_got, text, n);
		l->n_got += n;
		head[1] = (char)n;
		if (!stream_write(&l->far, head, 2) ||
		    !stream_write(&l->far, text, n))
			return;
	}
}

/* Sends the value, in one frame, behind another frame's beginning. */
static void leak(struct lab *l)
{
	(void)stream_write(&l->far, "\x81\x1b<s3cr3t-value-of-this-test>", 29);
	(void)stream_write(&l->far, "\x81\x06s3cr3t", 8);
	echo(l);
}

static void babble(struct lab *l)
{
	(void)stream_write(&l->far, "HTTP/1.1 200 OK\r\n\r\n", 19);
	echo(l);
}

static void leave(struct lab *l)
{
	(void)stream_write(&l->far,
			   "\x81\x03"
			   "bye",
			   5);
}

/* tests */

TEST(frames_go_both_ways)
{
	struct lab *l = LAB(.answers = { AGREED }, .serve = echo);

	CHECK(lab_start(l, live, 1));
	box_say(l, ASK KEY DEFLATE "\r\n");
	CHECK_STR(box_hear(l, "\r\n\r\n"), SWITCH WORD
		  "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
	box_frame(l, 0x81, "hello");
	CHECK_STR(box_hear(l, "hello"), "\x81\x05hello");
	box_frame(l, 0x89, "ping");
	box_frame(l, 0x82, "world");
	CHECK_STR(box_hear(l, "world"), "\x89\x04ping\x82\x05world");
	lab_end(l);
	CHECK_HAS(l->got, "GET /live/a HTTP/1.1\r\n");
	CHECK_HAS(l->got, "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
	CHECK_HAS(l->got, DEFLATE);
	CHECK_HAS(l->got, "hellopingworld");
	CHECK_INT(l->n_events, 1);
	CHECK_INT(l->events[0].kind, GATE_E_REQUEST);
	CHECK_INT(l->events[0].status, 101);
	CHECK_INT(l->events[0].reason, GATE_OK);
	CHECK_STR(l->events[0].path, "/live/a");
	CHECK_INT(l->over.reason, GATE_OK);
}

TEST(frames_may_come_before_the_answer_and_in_pieces)
{
	struct lab *l = LAB(.answers = { AGREED }, .serve = echo,
			    .is_plain = true, .port = 80);
	static const struct rule rule = { .host = HOST, .port = 80 };
	char data[256];
	size_t n;

	CHECK(lab_start(l, &rule, 1));
	n = frame(data, 0x81, "early");
	box_say(l, ASK KEY "\r\n");
	for (size_t i = 0; i < n; i++)
		CHECK(stream_write(&l->box, data + i, 1));
	CHECK_HAS(box_hear(l, "early"), "\r\n\r\n\x81\x05"
					"early");
	lab_end(l);
}

TEST(its_request_is_judged_as_any)
{
	static const struct rule put = { .host = HOST, .methods = { "PUT" } };
	static const struct rule get = { .host = HOST, .methods = { "GET" } };
	static const struct rule path = { .host = HOST, .paths = { "/x" } };
	const struct rule *rules[] = { &put, &get, &path };

	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		struct lab *l = LAB(.answers = { AGREED }, .serve = echo);

		CHECK(lab_start(l, rules[i], 1));
		box_say(l, ASK KEY "\r\n");
		CHECK_HAS(box_hear(l, "}\n"), " 403 ");
		lab_end(l);
		CHECK_INT(l->n_got, 0);
	}
}

TEST(a_method_named_like_the_word_is_none)
{
	static const struct rule word = { .host = HOST,
					  .methods = { "WEBSOCKET" } };
	static const char *const requests[] = {
		"WEBSOCKET / HTTP/1.1\r\nHost: api.test\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: api.test\r\n\r\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
		struct lab *l = LAB(.answers = { AGREED }, .serve = echo);

		CHECK(lab_start(l, &word, 1));
		box_say(l, requests[i]);
		CHECK_HAS(box_hear(l, "}\n"), i == 0 ? " 40" : " 403 ");
		lab_end(l);
		CHECK_INT(l->n_got, 0);
	}
}

static void is_refused(const char *request, const char *status)
{
	struct lab *l = LAB(.answers = { AGREED }, .serve = echo);

	CHECK(lab_start(l, any, 1));
	box_say(l, request);
	CHECK_HAS(box_hear(l, NULL), status);
	lab_end(l);
	CHECK_INT(l->n_got, 0);
	CHECK_INT(l->events[0].reason, GATE_R_HTTP);
}

#define GET "GET / HTTP/1.1\r\nHost: api.test\r\nConnection: Upgrade\r\n"

TEST(what_else_is_asked_for_is_refused)
{
	is_refused(GET "Upgrade: tcp\r\n\r\n", " 403 ");
	is_refused(GET "Upgrade: websocket, h2c\r\n\r\n", " 403 ");
	is_refused(GET "Upgrade: TLS/1.0\r\nUpgrade: h2c\r\n\r\n", " 403 ");
	is_refused(GET "Upgrade: h2c\r\nUpgrade: websocket\r\n" KEY
		       "Sec-WebSocket-Version: 13\r\n\r\n",
		   " 403 ");
	is_refused(ASK KEY "Upgrade: websocket\r\n\r\n", " 403 ");
	is_refused(ASK "\r\n", " 400 ");
	is_refused(ASK KEY KEY "\r\n", " 400 ");
	is_refused(ASK "Sec-WebSocket-Key: short\r\n\r\n", " 400 ");
	is_refused(ASK KEY "Sec-WebSocket-Version: 8\r\n\r\n", " 400 ");
	is_refused(ASK KEY "Content-Length: 2\r\n\r\nab", " 400 ");
	is_refused(ASK KEY "Connection: close\r\n\r\n", " 400 ");
	is_refused(GET "Upgrade: websocket\r\n" KEY
		       "Sec-WebSocket-Version: 8\r\n\r\n",
		   " 400 ");
	is_refused("POST / HTTP/1.1\r\nHost: api.test\r\n"
		   "Connection: Upgrade\r\nUpgrade: websocket\r\n" KEY
		   "Sec-WebSocket-Version: 13\r\n\r\n",
		   " 400 ");
	is_refused("GET / HTTP/1.1\r\nHost: api.test\r\n"
		   "Upgrade: websocket\r\n" KEY
		   "Sec-WebSocket-Version: 13\r\n\r\n",
		   " 400 ");
}

static void is_broken_off(const struct rule *rule, const char *request,
			  const char *answer)
{
	struct lab *l = LAB(.answers = { answer }, .serve = echo);

	CHECK(lab_start(l, rule, 1));
	box_say(l, request);
	CHECK_HAS(box_hear(l, NULL), " 502 ");
	CHECK(!strstr(l->text, " 101 "));
	lab_end(l);
	CHECK_INT(l->events[0].status, 502);
	CHECK_INT(l->events[0].reason, GATE_R_HTTP);
}

TEST(a_server_must_agree_to_that_very_question)
{
	static const char *const bad[] = {
		SWITCH "\r\n",
		SWITCH "Connection: Upgrade\r\n" WORD "\r\n",
		SWITCH "Upgrade: websocket\r\n" WORD "\r\n",
		SWITCH "Connection: Upgrade\r\nUpgrade: h2c\r\n" WORD "\r\n",
		(SWITCH "Connection: Upgrade\r\nUpgrade: websocket\r\n"
			"Upgrade: tcp\r\n" WORD "\r\n"),
		SWITCH "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
		(SWITCH
		 "Connection: Upgrade\r\nUpgrade: websocket\r\n" WORD WORD
		 "\r\n"),
		(SWITCH "Connection: Upgrade\r\nUpgrade: websocket\r\n"
			"Sec-WebSocket-Accept: S3pPLMBiTxaQ9kYGzzhZRbK+xOo="
			"\r\n\r\n"),
		(SWITCH "Connection: Upgrade\r\nUpgrade: websocket\r\n"
			"Content-Length: 5\r\n" WORD "\r\n"),
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		is_broken_off(any, ASK KEY "\r\n", bad[i]);
	/* Nobody asked. */
	is_broken_off(any, "GET / HTTP/1.1\r\nHost: api.test\r\n\r\n", AGREED);
	is_broken_off(any, GET "Upgrade: h2c\r\n\r\n",
		      SWITCH "Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n");
	is_broken_off(any, "GET / HTTP/1.1\r\nHost: api.test\r\n" KEY "\r\n",
		      AGREED);
	/* Compressed, where that was not asked for any more. */
	is_broken_off(
		secret, ASK KEY DEFLATE "\r\n",
		SWITCH
		"Connection: Upgrade\r\nUpgrade: websocket\r\n" WORD DEFLATE
		"\r\n");
}

/* Any other answer, and the next request is judged as ever. */
TEST(a_server_that_does_not_agree)
{
	struct lab *l = LAB(.answers = { "HTTP/1.1 426 Upgrade Required\r\n"
					 "Content-Length: 2\r\n\r\nno" });

	CHECK(lab_start(l, live, 1));
	box_say(l, ASK KEY "\r\nGET /other HTTP/1.1\r\nHost: api.test\r\n\r\n");
	CHECK_HAS(box_hear(l, "}\n"), " 426 ");
	CHECK_HAS(l->text, " 403 ");
	lab_end(l);
	CHECK(!strstr(l->got, "/other"));
}

/* bytes that are no frames */

static void is_no_frame(const char *data, size_t len)
{
	struct lab *l = LAB(.answers = { AGREED }, .serve = echo);

	CHECK(lab_start(l, any, 1));
	box_say(l, ASK KEY "\r\n");
	(void)box_hear(l, "\r\n\r\n");
	CHECK(stream_write(&l->box, data, len));
	CHECK_STR(box_hear(l, NULL), "");
	lab_end(l);
	CHECK_INT(l->over.reason, GATE_R_HTTP);
	CHECK_INT(l->n_events, 2);
	CHECK_INT(l->events[1].reason, GATE_R_HTTP);
	CHECK_HAS(l->events[1].detail, "no frame");
	CHECK(!strstr(l->got, "evil"));
}

#define NO_FRAME(text) is_no_frame(text, sizeof(text) - 1)

TEST(what_is_no_frame_is_not_passed_on)
{
	NO_FRAME("GET /evil HTTP/1.1\r\nHost: api.test\r\n\r\n");
	NO_FRAME("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
	NO_FRAME("\x81\x04"
		 "evil"); /* not masked */
	NO_FRAME("\x83\x80\1\2\3\4");
	NO_FRAME("\x09\x80\1\2\3\4"); /* a ping in pieces */
	NO_FRAME("\x89\xfe\0\x80\1\2\3\4");
	NO_FRAME("\x81\xfe\0\5\1\2\3\4"); /* two ways to say 5 */
	NO_FRAME("\x81\xff\0\0\0\0\0\0\xff\xff\1\2\3\4");
	NO_FRAME("\x81\xff\x80\0\0\0\0\0\0\0\1\2\3\4");
}

TEST(a_server_that_sends_no_frames)
{
	struct lab *l = LAB(.answers = { AGREED }, .serve = babble);

	CHECK(lab_start(l, any, 1));
	box_say(l, ASK KEY "\r\n");
	CHECK_HAS(box_hear(l, NULL), " 101 ");
	CHECK(!strstr(l->text, " 200 "));
	lab_end(l);
	CHECK_INT(l->over.reason, GATE_R_HTTP);
}

/* secrets */

TEST(a_value_stands_in_its_request_and_nowhere_else)
{
	struct lab *l = LAB(.answers = { AGREED }, .serve = leak);

	CHECK(lab_start(l, secret, 1));
	box_say(l, ASK KEY DEFLATE "Authorization: Bearer " PLACE "\r\n\r\n");
	/* The value is covered, and what only begins so is not kept back. */
	CHECK_HAS(box_hear(l, "\x81\x06s3cr3t"),
		  "\r\n\r\n\x81\x1b<*************************>\x81\x06s3cr3t");
	box_frame(l, 0x01, "CORDON-PLACE");
	box_frame(l, 0x89, "between");
	CHECK_HAS(box_hear(l, "between"), "CORDON-PLACE");
	box_frame(l, 0x80, "HOLDER-0001");
	CHECK_STR(box_hear(l, NULL), "");
	lab_end(l);
	CHECK_HAS(l->got, "Authorization: Bearer " VALUE "\r\n");
	CHECK(!strstr(l->got, DEFLATE));
	CHECK(!strstr(l->got, "HOLDER-0001"));
	CHECK_INT(l->over.reason, GATE_R_PLACEHOLDER);
	CHECK_INT(l->n_events, 2);
	CHECK_INT(l->events[1].kind, GATE_E_SECRET);
	CHECK_STR(l->events[1].detail, "TOKEN may not stand in a WebSocket");
}

/* Compressed frames cannot be searched; nobody may send them uninvited. */
TEST(where_there_are_secrets_frames_are_plain)
{
	struct lab *l = LAB(.answers = { AGREED }, .serve = echo);

	CHECK(lab_start(l, secret, 1));
	box_say(l, ASK KEY "\r\n");
	(void)box_hear(l, "\r\n\r\n");
	box_frame(l, 0xc1, "deflated");
	CHECK_STR(box_hear(l, NULL), "");
	lab_end(l);
	CHECK_INT(l->over.reason, GATE_R_HTTP);
	CHECK(!strstr(l->got, "deflated"));
}

/* the end */

TEST(a_server_that_leaves)
{
	struct lab *l = LAB(.answers = { AGREED }, .serve = leave);

	CHECK(lab_start(l, any, 1));
	box_say(l, ASK KEY "\r\n");
	CHECK_HAS(box_hear(l, NULL), "\x81\x03"
				     "bye");
	CHECK_INT(SSL_get_shutdown(l->box.ssl) & SSL_RECEIVED_SHUTDOWN,
		  SSL_RECEIVED_SHUTDOWN);
	lab_end(l);
	CHECK_INT(l->over.reason, GATE_OK);
}

TEST(a_still_one_is_ended)
{
	struct lab *l = LAB(.answers = { AGREED }, .serve = echo);

	inspect_times.socket_ms = 300;
	inspect_times.tick_ms = 50;
	CHECK(lab_start(l, any, 1));
	box_say(l, ASK KEY "\r\n");
	CHECK_HAS(box_hear(l, NULL), " 101 ");
	lab_end(l);
	CHECK_INT(l->over.reason, GATE_R_TIME);
}

static void replace_table(struct lab *l)
{
	inspect_table(l->inspection, l->table, 0);
	l->errand = NULL;
}

TEST(a_new_table_ends_it)
{
	struct lab *l = LAB(.answers = { AGREED }, .serve = echo);

	CHECK(lab_start(l, any, 1));
	box_say(l, ASK KEY "\r\n");
	CHECK_HAS(box_hear(l, "\r\n\r\n"), " 101 ");
	lab_errand(l, replace_table, "the table to be replaced");
	CHECK_STR(box_hear(l, NULL), "");
	lab_end(l);
	CHECK_INT(l->over.reason, GATE_R_REPLACED);
}

TEST(much_is_moved_and_counted)
{
	static char data[14 + 65536];
	struct lab *l = LAB(.answers = { AGREED }, .serve = echo,
			    .is_plain = true, .port = 80);
	static const struct rule rule = { .host = HOST, .port = 80 };

	CHECK(lab_start(l, &rule, 1));
	box_say(l, ASK KEY "\r\n");
	(void)box_hear(l, "\r\n\r\n");
	for (int i = 0; i < 200; i++)
		box_frame(l, 0x82, "a hundred times the same, or twice that");
	for (int n = 0; n < 200 * 41;) {
		ssize_t r = stream_read(&l->box, data, sizeof(data));

		CHECK(r > 0);
		if (r <= 0)
			break;
		n += (int)r;
	}
	lab_end(l);
	CHECK(l->over.sent >= 200 * 45 && l->over.received >= 200 * 41);
}

/* As with requests, no byte more than the quota has. */
TEST(a_quota_holds_for_frames)
{
	static char data[65536];
	struct lab *l = LAB(.answers = { AGREED }, .serve = echo,
			    .quota = 20000);

	CHECK(lab_start(l, live, 1));
	box_say(l, ASK KEY "\r\n");
	(void)box_hear(l, "\r\n\r\n");
	for (int i = 0; i < 400; i++)
		box_frame(l, 0x82, "a hundred times the same, or twice that");
	while (stream_read(&l->box, data, sizeof(data)) > 0)
		;
	lab_end(l);
	CHECK_INT(l->over.reason, GATE_R_BYTES);
	CHECK_INT(l->over.sent + l->over.received, 20000);
}

/* The same frames, whole and byte by byte. */
TEST(frames_are_read_the_same_in_any_pieces)
{
	static const uint8_t middle[] = { 0x82, 0xfe, 1, 0, 1, 2, 3, 4 };
	static const uint8_t large[] = { 0x82, 0xff, 0, 0, 0, 0, 0,
					 1,    0,    0, 1, 2, 3, 4 };
	static char data[4 + 65536 + 64];
	struct ws_frames whole = { .is_masked = true };
	struct ws_frames bytes = { .is_masked = true };
	size_t n = frame(data, 0x81, "one"), sum[2] = { 0 };
	struct http_slice s;

	memcpy(data + n, middle, sizeof(middle));
	n += sizeof(middle) + 256;
	memcpy(data + n, large, sizeof(large));
	n += sizeof(large) + 65536 - 1024;
	for (size_t at = 0; at < n;) {
		ssize_t r = ws_frames_take(&whole, data + at, n - at, &s);

		CHECK(r > 0);
		if (r <= 0)
			break;
		at += (size_t)r;
		sum[0] += s.len;
	}
	for (size_t at = 0; at < n; at++) {
		CHECK_INT(ws_frames_take(&bytes, data + at, 1, &s), 1);
		sum[1] += s.len;
	}
	CHECK_INT(sum[0], 3 + 256 + 65536 - 1024);
	CHECK_INT(sum[1], sum[0]);
	CHECK_INT(whole.left, 1024);
	CHECK_INT(bytes.left, 1024);
}

TAP_MAIN()
