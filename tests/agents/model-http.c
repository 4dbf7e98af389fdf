/* SPDX-License-Identifier: Apache-2.0 */

/* The client against a server that does as each test says. */

#include "tests/tap.h"

#include "base/util.h"
#include "model-server.h"
#include "model.h"

#define KEY "sk-do-not-show-this-0123456789"

#define DELTA(t)                                                               \
	"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" t         \
	"\"}}]}\n\n"
#define STOP                                                                   \
	"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
#define USAGE                                                                  \
	"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":11,"               \
	"\"completion_tokens\":3}}\n\n"
#define DONE  "data: [DONE]\n\n"
#define HELLO DELTA("Hel") DELTA("lo") STOP USAGE DONE
#define DOC                                                                    \
	"{\"id\":\"x1\",\"choices\":[{\"index\":0,\"message\":{\"role\":"      \
	"\"assistant\",\"content\":\"Hello\"},\"finish_reason\":\"stop\"}],"   \
	"\"usage\":{\"prompt_tokens\":1000000,\"completion_tokens\":2000000}}"

static const char json[] = "application/json";

/* More of the configuration, ending with a comma. */
static struct model *model_at(const char *url, const char *more)
{
	char text[1024];
	struct model *m = NULL;
	struct err err = { 0 };
	json_t *config;

	(void)setenv("THE_KEY", KEY, 1);
	(void)setenv("no_proxy", "*", 1);
	(void)snprintf(text, sizeof(text),
		       "{%s\"model\":\"gpt-4o\",\"base_url\":\"%s\","
		       "\"retry_delay\":0.01,\"api_key\":{\"env\":\"THE_KEY\"}"
		       "}",
		       more, url);
	config = json_loads(text, 0, NULL);
	CHECK(model_openai(the_loop(), config, &m, &err) == 0);
	if (err.code)
		printf("# %s\n", err.text);
	json_decref(config);
	return m;
}

/* One question to a server with these replies. */
static struct said asked(const struct reply *r, size_t n, bool is_stream,
			 unsigned int *ret_requests)
{
	struct server s = serve(r, n);
	struct model *m = model_at(s.url, "");
	struct said a = ask(m, "hi", is_stream);

	model_unref(m);
	if (ret_requests)
		*ret_requests = s.seen->requests;
	server_end(&s);
	CHECK_INT(a.n_ends, 1);
	if (a.why.message)
		CHECK(!strstr(a.why.message, KEY));
	return a;
}

TEST(a_plain_answer)
{
	static const struct reply r[] = { { 200, json, DOC, NULL, 0, 0 } };
	struct server s = serve(r, 1);
	struct model *m = model_at(s.url, "\"temperature\":0.25,\"info\":{"
					  "\"price_prompt\":2.5,"
					  "\"price_completion\":10},");
	struct said a = ask(m, "a question", false);

	CHECK_STR(a.r.content, "Hello");
	CHECK_STR(a.r.raw_id, "x1");
	CHECK_INT((int)a.r.finish, FINISH_STOP);
	CHECK_INT(a.n_chunks, 0);
	CHECK(!a.r.is_estimated);
	/* 2.50 and 10 dollars a million. */
	CHECK(a.r.usage.cost > 22.49 && a.r.usage.cost < 22.51);
	CHECK_INT(model_total(m)->calls, 1);
	CHECK(model_total(m)->cost > 22.49);
	CHECK(!strstr(s.seen->log, "Expect:"));
	CHECK_HAS(s.seen->log, "POST /v1/chat/completions HTTP/1.1\r\n");
	CHECK_HAS(s.seen->log, "Authorization: Bearer " KEY "\r\n");
	CHECK_HAS(s.seen->log, "Content-Type: application/json\r\n");
	CHECK_HAS(s.seen->log, "\"temperature\":0.25");
	CHECK_HAS(s.seen->log, "\"content\":\"a question\"");
	said_done(&a);
	model_unref(m);
	server_end(&s);
}

TEST(a_stream)
{
	static const unsigned int ways[] = { 0, SLOWLY };

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		const struct reply r[] = { { 200, NULL, HELLO, NULL, ways[i],
					     0 } };
		struct said a = asked(r, 1, true, NULL);

		CHECK_STR(a.r.content, "Hello");
		CHECK_STR(a.chunks, "[Hel][lo]");
		CHECK_INT(a.r.usage.prompt, 11);
		said_done(&a);
	}
}

TEST(connections_are_used_again)
{
	static const struct reply r[] = { { 200, NULL, HELLO, NULL, 0, 0 },
					  { 200, json, DOC, NULL, 0, 0 },
					  { 200, NULL, HELLO, NULL, 0, 0 } };
	struct server s = serve(r, 3);
	struct model *m = model_at(s.url, "");
	struct model *n = model_at(s.url, "");

	for (int i = 0; i < 3; i++) {
		struct said a = ask(i == 1 ? n : m, "hi", i != 1);

		CHECK_STR(a.r.content, "Hello");
		said_done(&a);
	}
	CHECK_INT(s.seen->requests, 3);
	CHECK_INT(s.seen->connections, 1);
	model_unref(m);
	model_unref(n);
	server_end(&s);
}

TEST(usage_is_estimated_where_none_is_told)
{
	static const struct reply r[] = { { 200, NULL, DELTA("Hello") STOP DONE,
					    NULL, 0, 0 } };
	struct said a = asked(r, 1, true, NULL);

	CHECK(a.r.is_estimated);
	CHECK(a.r.usage.prompt > 0);
	CHECK(a.r.usage.completion > 0);
	said_done(&a);
}

/* --- retries --- */

TEST(what_the_server_does_not_take_is_tried_again)
{
	static const int codes[] = { 408, 409, 429, 500, 502, 503, 529 };

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
		const struct reply r[] = { { codes[i], json,
					     "{\"error\":{\"message\":\"no\"}}",
					     NULL, 0, 0 },
					   { 200, NULL, HELLO, NULL, 0, 0 } };
		unsigned int n;
		struct said a = asked(r, 2, true, &n);

		CHECK_STR(a.r.content, "Hello");
		CHECK_INT(n, 2);
		said_done(&a);
	}
}

TEST(three_retries_and_no_more)
{
	static const struct reply no = {
		503, json, "{\"error\":{\"message\":\"full\"}}", NULL, 0, 0
	};
	const struct reply r[] = { no, no, no, no, no, no };
	unsigned int n;
	struct said a = asked(r, 6, false, &n);

	CHECK_INT(n, 4);
	CHECK_INT((int)a.why.code, FAULT_UNAVAILABLE);
	CHECK_HAS(a.why.message, "full");
	CHECK_HAS(a.why.message, "503");
	said_done(&a);
}

TEST(what_will_not_get_better_is_not_tried_again)
{
	static const struct {
		int status;
		enum fault_code code;
	} cases[] = {
		{ 400, FAULT_REJECTED },     { 401, FAULT_UNAUTHORIZED },
		{ 403, FAULT_UNAUTHORIZED }, { 404, FAULT_NOT_FOUND },
		{ 413, FAULT_TOO_LARGE },    { 422, FAULT_REJECTED },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct reply r[] = {
			{ cases[i].status, json,
			  "{\"error\":{\"message\":\"never\"}}", NULL, 0, 0 },
			{ 200, NULL, HELLO, NULL, 0, 0 }
		};
		unsigned int n;
		struct said a = asked(r, 2, true, &n);

		CHECK_INT(n, 1);
		CHECK_INT((int)a.why.code, (int)cases[i].code);
		CHECK_HAS(a.why.message, "never");
		said_done(&a);
	}
}

static int64_t time_of(const char *headers, struct said *ret)
{
	const struct reply r[] = {
		{ 429, json, "{}", headers, 0, 0 },
		{ 200, NULL, HELLO, NULL, 0, 0 },
	};
	int64_t before = clock_us();

	*ret = asked(r, 2, true, NULL);
	return clock_us() - before;
}

TEST(retry_after_is_honoured)
{
	char date[128];
	struct tm tm;
	time_t at;
	struct said a;

	CHECK(time_of("Retry-After: 1\r\n", &a) >= 1000000);
	CHECK_STR(a.r.content, "Hello");
	said_done(&a);
	at = time(NULL) + 2;
	(void)strftime(date, sizeof(date),
		       "Retry-After: %a, %d %b %Y %H:%M:%S GMT\r\n",
		       gmtime_r(&at, &tm));
	/* Between one and two seconds from now. */
	CHECK(time_of(date, &a) >= 1000000);
	CHECK_STR(a.r.content, "Hello");
	said_done(&a);
	/* So long nobody waits: it ends at once. */
	CHECK(time_of("Retry-After: 3600\r\n", &a) < 5000000);
	CHECK_INT((int)a.why.code, FAULT_OVERLOADED);
	CHECK(a.why.is_retryable);
	said_done(&a);
}

TEST(a_wait_beyond_the_deadline_is_not_begun)
{
	static const struct reply r[] = {
		{ 429, json, "{\"error\":{\"message\":\"later\"}}",
		  "Retry-After: 30\r\n", 0, 0 },
	};
	struct server s = serve(r, 1);
	struct model *m = model_at(s.url, "");
	struct said a = { 0 };
	int64_t before = clock_us();

	a.cancel = cancel_new(the_loop(), NULL, before + 10000000);
	begin(&a, m, "hi", false);
	wait_for(&a);
	CHECK(clock_us() - before < 2000000);
	CHECK_HAS(a.why.message, "later");
	said_done(&a);
	model_unref(m);
	server_end(&s);
}

TEST(connections_that_fail_before_the_first_byte)
{
	static const unsigned int ways[] = { RESET, MUTE };

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		const struct reply r[] = { { 0, NULL, "", NULL, ways[i], 0 },
					   { 0, NULL, "", NULL, ways[i], 0 },
					   { 200, NULL, HELLO, NULL, 0, 0 } };
		struct said a = asked(r, 3, true, NULL);

		CHECK_STR(a.r.content, "Hello");
		said_done(&a);
	}
}

TEST(nobody_listens)
{
	int port;
	int fd = listen_here(&port);
	char url[64];
	struct model *m;
	struct said a;

	(void)close(fd);
	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%d/v1", port);
	m = model_at(url, "");
	a = ask(m, "hi", true);
	CHECK_INT((int)a.why.code, FAULT_UNAVAILABLE);
	CHECK(a.why.is_retryable);
	CHECK_HAS(a.why.message, "cannot be reached");
	said_done(&a);
	model_unref(m);
}

/* --- answers that are none --- */

/* The first of two replies is a fault, and the second is not asked for. */
static void fails_at_once(const struct reply *r, size_t i, bool stream)
{
	unsigned int n;
	struct said a = asked(r, 2, stream, &n);

	CHECK(a.r.content == NULL);
	CHECK(a.why.code != FAULT_NONE);
	CHECK_INT(n, 1);
	if (tap_bad)
		printf("# case %zu, stream %d: %s\n", i, (int)stream,
		       a.why.message ? a.why.message : a.r.content);
	said_done(&a);
}

TEST(after_the_first_byte_nothing_is_tried_again)
{
	static const struct reply cases[] = {
		/* Cut within the framing. */
		{ 200, NULL, DELTA("half"), NULL, CUT, 0 },
		{ 200, NULL, DELTA("half") STOP, NULL, CUT, 0 },
		{ 200, NULL, "", NULL, CUT, 0 },
		{ 200, json, DOC, NULL, CUT, 0 },
		{ 0, NULL,
		  "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"choi", NULL,
		  RAW, 0 },
		{ 0, NULL, "HTTP/1.1 200 OK\r\nContent-Ty", NULL, RAW, 0 },
		/* Ended in order, but not whole. */
		{ 200, NULL, DELTA("half"), NULL, 0, 0 },
		{ 200, NULL, "", NULL, 0, 0 },
		{ 200, json, "{\"choices\":[{\"mess", NULL, 0, 0 },
		{ 0, NULL, "HTTP/1.1 200 OK\r\n\r\n" DELTA("half"), NULL, RAW,
		  0 },
		/* Nonsense. */
		{ 200, NULL, "data: {not json\n\n" HELLO, NULL, 0, 0 },
		{ 200, NULL, DELTA("a") "data: ~~~\n\n" STOP DONE, NULL, 0, 0 },
		{ 200, "text/html", "<html>Welcome</html>", NULL, 0, 0 },
		{ 0, NULL, "SSH-2.0-OpenSSH_9.2\r\n", NULL, RAW, 0 },
		/* An error in the middle. */
		{ 200, NULL,
		  DELTA("a") "data: {\"error\":{\"message\":\"broke\"}}\n\n",
		  NULL, 0, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct reply r[] = { cases[i],
					   { 200, NULL, HELLO, NULL, 0, 0 } };

		fails_at_once(r, i, false);
		fails_at_once(r, i, true);
	}
}

TEST(the_end_was_told_before_the_cut)
{
	static const struct reply r[] = { { 200, NULL, HELLO, NULL, CUT, 0 } };
	static const struct reply open[] = { { 200, NULL, HELLO, NULL, HOLD,
					       0 } };
	struct said a = asked(r, 1, true, NULL);
	int64_t before = clock_us();

	CHECK_STR(a.r.content, "Hello");
	said_done(&a);
	/* A server that does not end its answer is not waited for. */
	a = asked(open, 1, true, NULL);
	CHECK_STR(a.r.content, "Hello");
	CHECK(clock_us() - before < 2000000);
	said_done(&a);
}

TEST(servers_that_stream_or_not_as_they_like)
{
	static const struct reply doc[] = { { 200, json, DOC, NULL, 0, 0 } };
	static const struct reply sse[] = { { 200, NULL, HELLO, NULL, 0, 0 } };
	static const struct reply bare[] = { { 200, "text/plain", HELLO, NULL,
					       0, 0 } };
	struct said a = asked(doc, 1, true, NULL);

	CHECK_STR(a.r.content, "Hello");
	CHECK_STR(a.chunks, "[Hello]");
	said_done(&a);
	a = asked(sse, 1, false, NULL);
	CHECK_STR(a.r.content, "Hello");
	CHECK_INT(a.n_chunks, 0);
	said_done(&a);
	a = asked(bare, 1, true, NULL);
	CHECK_STR(a.r.content, "Hello");
	said_done(&a);
}

TEST(redirects_are_not_followed)
{
	static const struct reply r[] = {
		{ 302, json, "{}", "Location: /v1/elsewhere\r\n", 0, 0 },
		{ 200, json, DOC, NULL, 0, 0 },
	};
	unsigned int n;
	struct said a = asked(r, 2, false, &n);

	CHECK_INT((int)a.why.code, FAULT_REJECTED);
	CHECK_INT(n, 1);
	said_done(&a);
}

/* 17 MiB, as text of an error and as an answer. */
TEST(an_endless_answer_has_an_end)
{
	size_t len = (size_t)17 << 20;
	char *big = malloc(len + 1);

	memset(big, 'x', len);
	big[len] = '\0';
	for (int i = 0; i < 3; i++) {
		struct reply r[] = { { i ? 200 : 400, i == 2 ? NULL : json, big,
				       NULL, 0, 0 } };
		struct said a;

		memcpy(big, i == 2 ? "data: " : "xxxxxx", 6);
		a = asked(r, 1, i == 2, NULL);
		CHECK_INT((int)a.why.code,
			  i ? FAULT_TOO_LARGE : FAULT_REJECTED);
		CHECK(strlen(a.why.message) < 1000);
		said_done(&a);
	}
	free(big);
}

/* --- times --- */

static struct said late(const struct reply *r, const char *more,
			int64_t *ret_us)
{
	struct server s = serve(r, 1);
	struct model *m = model_at(s.url, more);
	int64_t before = clock_us();
	struct said a = ask(m, "hi", true);

	*ret_us = clock_us() - before;
	model_unref(m);
	server_end(&s);
	return a;
}

TEST(each_time_has_its_limit)
{
	static const struct reply mute[] = { { 200, NULL, HELLO, NULL, 0,
					       3000 } };
	static const struct reply half[] = { { 200, NULL, DELTA("a"), NULL,
					       HOLD, 0 } };
	int64_t us;
	struct said a = late(mute, "\"first_byte_timeout\":0.1,", &us);

	CHECK_INT((int)a.why.code, FAULT_DEADLINE);
	CHECK_HAS(a.why.message, "no answer came in time");
	CHECK(us >= 100000 && us < 2500000);
	said_done(&a);
	a = late(half, "\"idle_timeout\":0.1,", &us);
	CHECK_INT((int)a.why.code, FAULT_DEADLINE);
	CHECK_HAS(a.why.message, "cut off");
	CHECK(us >= 100000 && us < 2500000);
	said_done(&a);
	a = late(half, "\"timeout\":0.15,", &us);
	CHECK_INT((int)a.why.code, FAULT_DEADLINE);
	CHECK_HAS(a.why.message, "within its timeout");
	CHECK(us >= 150000 && us < 2500000);
	said_done(&a);
}

/* The idle time begins anew with each byte. */
TEST(a_slow_answer_is_not_a_late_one)
{
	static const struct reply r[] = { { 200, NULL, HELLO, NULL, HALTS,
					    0 } };
	struct said a;
	int64_t us;

	a = late(r, "\"idle_timeout\":1,", &us);
	CHECK_STR(a.r.content, "Hello");
	CHECK(us > 1000000);
	said_done(&a);
}

/* D24's basis: the server sees the client leave. */
static void cancel_in(const struct reply *r, bool is_stream, int64_t after_us)
{
	struct server s = serve(r, 1);
	struct model *m = model_at(s.url, "");
	struct said a = { 0 };
	int64_t fired;

	a.cancel = cancel_new(the_loop(), NULL, clock_us() + after_us);
	begin(&a, m, "hi", is_stream);
	wait_for(&a);
	fired = clock_us();
	CHECK_INT((int)a.why.code, FAULT_DEADLINE);
	for (int i = 0; i < 1000 && !s.seen->left_at; i++)
		nap(1);
	CHECK(s.seen->left_at != 0);
	CHECK(s.seen->left_at - fired < 1000000);
	said_done(&a);
	/* The loop has nothing left of it. */
	CHECK(!loop_run(the_loop(), NULL, NULL));
	model_unref(m);
	server_end(&s);
}

TEST(cancelling_closes_the_connection)
{
	static const struct reply half[] = { { 200, NULL, DELTA("a"), NULL,
					       HOLD, 0 } };
	static const struct reply none[] = { { 0, NULL, "", NULL, HOLD | RAW,
					       0 } };

	cancel_in(half, true, 100000);
	cancel_in(none, false, 100000);
}

TEST(cancelling_ends_a_wait_for_the_next_attempt)
{
	static const struct reply r[] = { { 503, json, "{}",
					    "Retry-After: 20\r\n", 0, 0 } };
	struct server s = serve(r, 1);
	struct model *m = model_at(s.url, "");
	struct said a = { 0 };
	int64_t before = clock_us();

	a.cancel = cancel_new(the_loop(), NULL, 0);
	begin(&a, m, "hi", false);
	while (clock_us() - before < 200000 && !a.is_over) {
		struct said tick = { .is_over = true };

		(void)loop_run(the_loop(), said_is_over, &tick);
		if (s.seen->requests)
			break;
		nap(1);
	}
	cancel_fire(a.cancel, "enough");
	wait_for(&a);
	CHECK(clock_us() - before < 2000000);
	CHECK_INT((int)a.why.code, FAULT_CANCELLED);
	CHECK_HAS(a.why.message, "enough");
	said_done(&a);
	model_unref(m);
	server_end(&s);
}

TEST(a_call_is_dropped_or_cancelled_within_a_chunk)
{
	static const struct reply r[] = { { 200, NULL, HELLO, NULL, 0, 0 } };
	struct said drop = { .drop_at = 1 };
	struct said end = { .cancel_at = 1 };

	for (int i = 0; i < 2; i++) {
		struct server s = serve(r, 1);
		struct model *m = model_at(s.url, "");
		struct said *a = i ? &end : &drop;

		a->cancel = cancel_new(the_loop(), NULL, 0);
		begin(a, m, "hi", true);
		wait_for(a);
		CHECK_STR(a->chunks, "[Hel]");
		CHECK_INT(a->n_ends, i);
		if (i)
			CHECK_INT((int)a->why.code, FAULT_CANCELLED);
		/* What is freed from the loop is. */
		CHECK(!loop_run(the_loop(), NULL, NULL));
		said_done(a);
		model_unref(m);
		server_end(&s);
	}
}

/* --- keys --- */

/* Servers that repeat the key, in every place where we take their words. */
TEST(the_key_is_in_no_error_and_no_recording)
{
	static const struct reply cases[] = {
		{ 401, json,
		  "{\"error\":{\"message\":\"Incorrect API key: " KEY
		  "\",\"code\":\"" KEY "\"}}",
		  NULL, 0, 0 },
		{ 400, json, "{\"error\":\"" KEY KEY "\"}", NULL, 0, 0 },
		{ 200, NULL,
		  DELTA("a") "data: {\"error\":{\"message\":\"" KEY "\"}}\n\n",
		  NULL, 0, 0 },
		{ 200, json, "{\"error\":{\"message\":\"" KEY "\"}}", NULL, 0,
		  0 },
		{ 404, json,
		  "{\"detail\":\"\\u0073k-do-not-show-this-0123456789\"}", NULL,
		  0, 0 },
	};
	char path[] = "/tmp/cordon-record-XXXXXX";
	int fd = mkstemp(path);
	char command[128];

	(void)close(fd);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct server s = serve(&cases[i], 1);
		struct model *m = NULL;
		struct err err = { 0 };
		struct said a;

		CHECK(model_record(the_loop(), model_at(s.url, ""), path, &m,
				   &err) == 0);
		a = ask(m, "hi", i == 2);
		CHECK(a.why.code != FAULT_NONE);
		CHECK(a.why.message && !strstr(a.why.message, "do-not-show"));
		CHECK_HAS(s.seen->log, KEY);
		said_done(&a);
		model_unref(m);
		server_end(&s);
		(void)snprintf(command, sizeof(command),
			       "grep -q fault %s && ! grep -q do-not-show %s",
			       path, path);
		CHECK(system(command) == 0);
	}
	(void)unlink(path);
}

/* Its beginning does not stay where the text is cut to its length. */
TEST(no_part_of_the_key_is_in_an_error)
{
	char body[1024];

	for (size_t pad = 370; pad < 620; pad += 3) {
		struct reply r = { 400, json, body, NULL, 0, 0 };
		struct said a;
		size_t n = (size_t)snprintf(body, sizeof(body),
					    "{\"error\":\"");

		memset(body + n, 'x', pad);
		(void)snprintf(body + n + pad, sizeof(body) - n - pad,
			       KEY "\"}");
		a = asked(&r, 1, false, NULL);
		CHECK(a.why.message && !strstr(a.why.message, "sk-d"));
		said_done(&a);
	}
}

TEST(a_key_that_a_server_repeats_is_in_no_answer)
{
	static const struct reply r[] = {
		{ 200, json,
		  "{\"choices\":[{\"finish_reason\":\"tool_calls\",\"message\":"
		  "{"
		  "\"content\":\"it is " KEY "\",\"reasoning_content\":\"" KEY
		  "\",\"tool_calls\":[{\"id\":\"c\",\"type\":\"function\","
		  "\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":"
		  "\\\"" KEY "\\\"}\"}}]}}]}",
		  NULL, 0, 0 },
	};
	struct said a = asked(r, 1, false, NULL);
	char *calls = json_dumps(a.r.calls, 0);

	CHECK_HAS(a.r.content, "it is ****");
	CHECK(a.r.thought && !strstr(a.r.thought, "sk-d"));
	CHECK(calls && !strstr(calls, "sk-d"));
	CHECK_HAS(calls, "****");
	free(calls);
	said_done(&a);
}

TEST(without_a_key_there_is_no_call)
{
	static const struct reply r[] = { { 200, json, DOC, NULL, 0, 0 } };
	struct server s = serve(r, 1);
	struct model *m = model_at(s.url, "");
	struct said a;

	(void)unsetenv("THE_KEY");
	a = ask(m, "hi", false);
	CHECK_INT((int)a.why.code, FAULT_UNAUTHORIZED);
	CHECK_HAS(a.why.message, "THE_KEY");
	CHECK_INT(s.seen->requests, 0);
	said_done(&a);
	model_unref(m);
	server_end(&s);
}

TEST(a_server_named_in_a_document_does_not_get_the_usual_key)
{
	static const struct reply r[] = { { 200, json, DOC, NULL, 0, 0 } };
	struct server s = serve(r, 1);
	struct model *m = NULL;
	struct err err = { 0 };
	struct said a;
	json_t *config = json_pack("{s:s, s:s}", "model", "m", "base_url",
				   s.url);

	(void)setenv("OPENAI_API_KEY", KEY, 1);
	(void)setenv("no_proxy", "*", 1);
	(void)unsetenv("OPENAI_BASE_URL");
	CHECK(model_openai(the_loop(), config, &m, &err) == 0);
	a = ask(m, "hi", false);
	CHECK_STR(a.r.content, "Hello");
	CHECK(!strstr(s.seen->log, "Authorization"));
	said_done(&a);
	model_unref(m);
	json_decref(config);
	server_end(&s);
}

/* --- TLS --- */

/* Until it listens, or ten seconds. */
static void wait_for_port(int port)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	for (int i = 0; i < 1000; i++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		int r = connect(fd, (struct sockaddr *)&at, sizeof(at));

		(void)close(fd);
		if (r == 0)
			return;
		nap(10);
	}
}

/* `how`: what it does with a connection. */
static pid_t tls_server(const char *dir, int port, const char *how)
{
	char command[1024];
	pid_t pid;

	(void)snprintf(
		command, sizeof(command),
		"cd %s && openssl req -x509 -newkey ec -pkeyopt "
		"ec_paramgen_curve:P-256 -nodes -keyout k -out c -days 2 -subj "
		"/CN=localhost -addext subjectAltName=DNS:localhost "
		"2>/dev/null",
		dir);
	if (system(command) != 0)
		SKIP("there is no openssl");
	(void)snprintf(command, sizeof(command),
		       "cd %s && exec openssl s_server -accept 127.0.0.1:%d "
		       "-key k -cert c %s -quiet >log 2>&1 </dev/null",
		       dir, port, how);
	(void)fflush(NULL);
	pid = fork();
	if (pid == 0) {
		(void)execl("/bin/sh", "sh", "-c", command, NULL);
		_exit(127);
	}
	wait_for_port(port);
	return pid;
}

TEST(certificates_are_checked)
{
	char dir[] = "/tmp/cordon-tls-XXXXXX";
	char url[64];
	char more[256];
	char command[64];
	struct model *m;
	struct said a = { 0 };
	int port;
	pid_t pid;

	(void)close(listen_here(&port));
	CHECK(mkdtemp(dir) != NULL);
	pid = tls_server(dir, port, "-rev");
	(void)snprintf(url, sizeof(url), "https://localhost:%d/v1", port);

	/* With its own certificate as the authority it is reached, and says
	 * back what it hears. */
	(void)snprintf(more, sizeof(more),
		       "\"max_retries\":1,\"ca_file\":\"%s/c\",", dir);
	m = model_at(url, more);
	a = ask(m, "hi", false);
	CHECK_HAS(a.why.message, "HTTP/0.9");
	said_done(&a);
	model_unref(m);
	/* By another name. */
	(void)snprintf(command, sizeof(command), "https://127.0.0.1:%d", port);
	m = model_at(command, more);
	a = ask(m, "hi", false);
	CHECK_INT((int)a.why.code, FAULT_UNAVAILABLE);
	CHECK_HAS(a.why.message, "cannot be reached");
	said_done(&a);
	model_unref(m);
	/* With the system's authorities only. */
	m = model_at(url, "");
	a = ask(m, "hi", false);
	CHECK_HAS(a.why.message, "cannot be reached");
	CHECK_HAS(a.why.message, "certificate");
	said_done(&a);
	model_unref(m);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	(void)snprintf(command, sizeof(command), "rm -rf %s", dir);
	CHECK(system(command) == 0);
}

/* Closed, by TLS, while a large request is being sent. */
TEST(a_server_that_hangs_up_on_a_request)
{
	char dir[] = "/tmp/cordon-tls-XXXXXX";
	char more[256];
	char url[64];
	char command[64];
	size_t len = (size_t)4 << 20;
	char *big = malloc(len + 1);
	struct model *m;
	struct said a;
	int port;
	pid_t pid;

	memset(big, 'x', len);
	big[len] = '\0';
	(void)close(listen_here(&port));
	CHECK(mkdtemp(dir) != NULL);
	pid = tls_server(dir, port, "");
	(void)snprintf(url, sizeof(url), "https://localhost:%d/v1", port);
	(void)snprintf(more, sizeof(more),
		       "\"max_retries\":1,\"ca_file\":\"%s/c\",", dir);
	m = model_at(url, more);
	a = ask(m, big, false);
	CHECK_HAS(a.why.message, "cannot be reached");
	said_done(&a);
	model_unref(m);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	(void)snprintf(command, sizeof(command), "rm -rf %s", dir);
	CHECK(system(command) == 0);
	free(big);
}

TAP_MAIN()
