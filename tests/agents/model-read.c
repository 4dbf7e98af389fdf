/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Answers of OpenAI-compatible servers, whole and streamed, with everything
 * that they do otherwise. Each stream is read at once, and again byte by byte:
 * both give the same.
 */

#include "tests/tap.h"

#include <errno.h>

#include "base/util.h"
#include "model/openai.h"
#include "model/sse.h"

struct seen {
	struct answer a;
	struct sse sse;
	struct model_result r;
	struct fault why;
	char chunks[4096];
	bool is_bad;
};

static void on_chunk(void *arg, bool is_thought, const char *text, size_t len)
{
	struct seen *s = arg;
	size_t n = strlen(s->chunks);

	(void)snprintf(s->chunks + n, sizeof(s->chunks) - n,
		       is_thought ? "<%.*s>" : "[%.*s]", (int)len, text);
}

static void on_event(void *arg, const char *name, const char *data, size_t len)
{
	struct seen *s = arg;

	(void)name;
	if (!s->is_bad && answer_event(&s->a, data, len, &s->why) < 0)
		s->is_bad = true;
}

static void finish(struct seen *s)
{
	if (!s->is_bad && answer_end(&s->a, &s->r, &s->why) < 0)
		s->is_bad = true;
	answer_done(&s->a);
}

static struct seen *begin(void)
{
	static struct seen s;

	result_done(&s.r);
	fault_done(&s.why);
	memset(&s, 0, sizeof(s));
	answer_init(&s.a, on_chunk, &s);
	return &s;
}

/* In pieces of this size. */
static struct seen *stream(const char *text, size_t piece)
{
	struct seen *s = begin();
	size_t len = strlen(text);

	sse_init(&s->sse, 1 << 20, on_event, s);
	for (size_t i = 0; i < len; i += piece)
		CHECK(sse_feed(&s->sse, text + i, MIN(piece, len - i)) == 0);
	CHECK(sse_end(&s->sse) == 0);
	sse_done(&s->sse);
	finish(s);
	return s;
}

static struct seen *document(const char *text)
{
	struct seen *s = begin();

	s->is_bad = answer_document(&s->a, text, strlen(text), &s->why) < 0;
	finish(s);
	return s;
}

static const char *call(const struct seen *s, size_t i, const char *field)
{
	return json_string_value(
		json_object_get(json_array_get(s->r.calls, i), field));
}

#define DELTA(d) "data: {\"choices\":[{\"index\":0,\"delta\":{" d "}}]}\n\n"
#define END(name)                                                              \
	"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"" name          \
	"\"}]}\n\n"
#define DONE    "data: [DONE]\n\n"
#define CALL(c) DELTA("\"tool_calls\":[" c "]")

/* Whole and byte by byte. */
#define EACH_WAY(s, text)                                                      \
	for (size_t way_ = 0; way_ < 3; way_++)                                \
		if (((s) = stream(text, way_ == 0   ? SIZE_MAX / 2             \
					: way_ == 1 ? 1                        \
						    : 7)))

TEST(text_is_joined)
{
	struct seen *s;

	EACH_WAY(s,
		 DELTA("\"role\":\"assistant\",\"content\":\"\"")
			 DELTA("\"content\":\"Hel\"")
				 DELTA("\"content\":\"lo\"") END("stop") DONE)
	{
		CHECK(!s->is_bad);
		CHECK_STR(s->r.content, "Hello");
		CHECK_STR(s->chunks, "[Hel][lo]");
		CHECK_INT((int)s->r.finish, FINISH_STOP);
		CHECK(s->r.calls == NULL);
	}
}

TEST(a_document)
{
	struct seen *s = document(
		"{\"id\":\"chatcmpl-1\",\"model\":\"gpt-4o-2024\",\"choices\":["
		"{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":"
		"\"Hi\",\"refusal\":null},\"finish_reason\":\"stop\"}],"
		"\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2,"
		"\"prompt_tokens_details\":{\"cached_tokens\":4},"
		"\"completion_tokens_details\":{\"reasoning_tokens\":1}}}");

	CHECK(!s->is_bad);
	CHECK_STR(s->r.content, "Hi");
	CHECK_STR(s->r.raw_id, "chatcmpl-1");
	CHECK_STR(s->r.model, "gpt-4o-2024");
	CHECK_INT(s->r.usage.prompt, 9);
	CHECK_INT(s->r.usage.completion, 2);
	CHECK_INT(s->r.usage.cached, 4);
	CHECK_INT(s->r.usage.reasoning, 1);
	/* Whole documents are no chunks of a stream, but text all the same. */
	CHECK_STR(s->chunks, "[Hi]");
}

TEST(calls_are_joined_by_index)
{
	struct seen *s;

	EACH_WAY(s, CALL("{\"index\":0,\"id\":\"a\",\"type\":\"function\","
			 "\"function\":{\"name\":\"f\",\"arguments\":\"\"}}")
			    CALL("{\"index\":1,\"id\":\"b\",\"function\":{"
				 "\"name\":\"g\","
				 "\"arguments\":\"{\\\"y\\\":\"}}")
				    CALL("{\"index\":0,\"function\":{"
					 "\"arguments\":\"{"
					 "\\\"x\\\":1}\"}},{\"index\":1,"
					 "\"function\":{"
					 "\"arguments\":\"2}\"}}")
					    END("tool_calls") DONE)
	{
		CHECK(!s->is_bad);
		CHECK_INT((int)json_array_size(s->r.calls), 2);
		CHECK_STR(call(s, 0, "id"), "a");
		CHECK_STR(call(s, 0, "name"), "f");
		CHECK_STR(call(s, 0, "arguments"), "{\"x\":1}");
		CHECK_STR(call(s, 1, "name"), "g");
		CHECK_STR(call(s, 1, "arguments"), "{\"y\":2}");
		CHECK_INT((int)s->r.finish, FINISH_CALLS);
		CHECK(s->r.content == NULL);
	}
}

TEST(calls_without_index_go_by_id_or_order)
{
	struct seen *s;

	EACH_WAY(s,
		 CALL("{\"id\":\"a\",\"function\":{\"name\":\"f\","
		      "\"arguments\":\"{\\\"x\\\"\"}}")
			 CALL("{\"function\":{\"arguments\":\":1}\"}}") CALL(
				 "{\"id\":\"b\",\"function\":{\"name\":\"g\","
				 "\"arguments\":\"{\"}}")
				 CALL("{\"id\":\"b\",\"function\":{"
				      "\"arguments\":\"}\"}}") END("tool_calls")
					 DONE)
	{
		CHECK_INT((int)json_array_size(s->r.calls), 2);
		CHECK_STR(call(s, 0, "arguments"), "{\"x\":1}");
		CHECK_STR(call(s, 1, "id"), "b");
		CHECK_STR(call(s, 1, "arguments"), "{}");
	}
	/* All with index 0, told apart by ids alone. */
	s = stream(
		CALL("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\","
		     "\"arguments\":\"{}\"}}")
			CALL("{\"index\":0,\"id\":\"b\",\"function\":{"
			     "\"name\":\"f\",\"arguments\":\"{\\\"n\\\":2}\"}"
			     "}") END("stop") DONE,
		4096);
	CHECK_INT((int)json_array_size(s->r.calls), 2);
	CHECK_STR(call(s, 1, "arguments"), "{\"n\":2}");
	/* The id and the name with each piece. */
	s = stream(
		CALL("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\","
		     "\"arguments\":\"{\"}}")
			CALL("{\"index\":0,\"id\":\"a\",\"function\":{"
			     "\"name\":\"f\",\"arguments\":\"}\"}}") END("stop")
				DONE,
		4096);
	CHECK_INT((int)json_array_size(s->r.calls), 1);
	CHECK_STR(call(s, 0, "name"), "f");
	CHECK_STR(call(s, 0, "arguments"), "{}");
}

TEST(finish_stop_with_calls_is_calls)
{
	struct seen *s = stream(CALL("{\"index\":0,\"id\":\"a\",\"function\":{"
				     "\"name\":\"f\",\"arguments\":\"{}\"}}")
					END("stop") DONE,
				4096);

	CHECK_INT((int)s->r.finish, FINISH_CALLS);
	s = document("{\"choices\":[{\"message\":{\"content\":null,"
		     "\"tool_calls\":[{\"id\":\"a\",\"function\":{\"name\":"
		     "\"f\",\"arguments\":\"{}\"}}]},\"finish_reason\":"
		     "\"stop\"}]}");
	CHECK_INT((int)s->r.finish, FINISH_CALLS);
	CHECK(s->r.content == NULL);
	/* One that was cut short by its length is not made whole by this. */
	s = stream(
		CALL("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\","
		     "\"arguments\":\"{\\\"a\"}}") END("length") DONE,
		4096);
	CHECK_INT((int)s->r.finish, FINISH_LENGTH);
}

TEST(a_missing_id_is_made)
{
	struct seen *s = document(
		"{\"choices\":[{\"message\":{\"tool_calls\":[{\"function\":{"
		"\"name\":\"f\",\"arguments\":\"{}\"}},{\"id\":\"\","
		"\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]},"
		"\"finish_reason\":\"tool_calls\"}]}");
	const char *a = call(s, 0, "id");
	const char *b = call(s, 1, "id");

	CHECK_HAS(a, "call_");
	CHECK_HAS(b, "call_");
	CHECK(a && b && strcmp(a, b) != 0);
}

TEST(empty_arguments_are_an_empty_object)
{
	struct seen *s = stream(
		CALL("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\"}}")
			CALL("{\"index\":1,\"id\":\"b\",\"function\":{\"name\":"
			     "\"f\",\"arguments\":\"  \"}}")
				CALL("{\"index\":2,\"id\":\"c\",\"function\":{"
				     "\"name\":\"f\",\"arguments\":{\"k\":true}"
				     "}}") END("stop") DONE,
		4096);

	CHECK_STR(call(s, 0, "arguments"), "{}");
	CHECK_STR(call(s, 1, "arguments"), "{}");
	CHECK_STR(call(s, 2, "arguments"), "{\"k\":true}");
}

TEST(usage_comes_without_choices)
{
	struct seen *s;

	EACH_WAY(
		s,
		DELTA("\"content\":\"x\"") END(
			"stop") "data: {\"choices\":[],\"usage\":{\"prompt_"
				"tokens\":7,\"completion_tokens\":1}}\n\n" DONE)
	{
		CHECK(!s->is_bad);
		CHECK_INT(s->r.usage.prompt, 7);
		CHECK_STR(s->r.content, "x");
	}
	/* Null, negative and absurd numbers count as nothing. */
	s = stream(
		DELTA("\"content\":\"x\"") END(
			"stop") "data: "
				"{\"choices\":null,\"usage\":{\"prompt_tokens"
				"\":-5,\"completion_tokens\":"
				"9000000000000000000}}"
				"\n\n" DONE,
		4096);
	CHECK(!s->is_bad);
	CHECK_INT(s->r.usage.prompt, 0);
	CHECK_INT(s->r.usage.completion, 0);
}

TEST(content_null_and_absent)
{
	struct seen *s = stream(DELTA("\"role\":\"assistant\",\"content\":null")
					DELTA("") END("stop") DONE,
				4096);

	/* The model stopped and said nothing: that is an answer. */
	CHECK(!s->is_bad);
	CHECK_STR(s->r.content, "");
	s = document("{\"choices\":[{\"message\":{\"content\":null},"
		     "\"finish_reason\":\"stop\"}]}");
	CHECK(!s->is_bad);
	CHECK_STR(s->r.content, "");
}

/* Where a line ends, the text has a bar. */
static void check_ends(const char *text, const char *end)
{
	char real[1024] = "";
	struct seen *s;

	for (; *text; text++) {
		size_t n = strlen(real);

		(void)snprintf(real + n, sizeof(real) - n, "%.*s",
			       *text == '|' ? 2 : 1, *text == '|' ? end : text);
	}
	EACH_WAY(s, real)
	{
		CHECK(!s->is_bad);
		CHECK_STR(s->r.content, "ab");
	}
}

TEST(comments_and_line_ends)
{
	static const char text[] =
		"\xef\xbb\xbf: keep-alive||:|data:{\"choices\":[{\"delta\":{"
		"\"content\":\"a\"}}]}||: ping||event: message|id: 7|retry: 10|"
		"data: {\"choices\":[{\"delta\":{\"content\":\"b\"},"
		"\"finish_reason\":\"stop\"}]}||data: [DONE]||";

	check_ends(text, "\n");
	check_ends(text, "\r\n");
	check_ends(text, "\r");
}

TEST(documents_without_empty_lines_between_them)
{
	struct seen *s;

	EACH_WAY(s, "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n"
		    "data: {\"choices\":[{\"delta\":{\"content\":\"b\"},"
		    "\"finish_reason\":\"stop\"}]}\ndata: [DONE]\n")
	{
		CHECK(!s->is_bad);
		CHECK_STR(s->r.content, "ab");
	}
	/* One document over several data lines. */
	s = stream("data: {\"choices\":[{\"delta\":\ndata: {\"content\":\"a\"}"
		   ",\"finish_reason\":\"stop\"}]}\n\n" DONE,
		   4096);
	CHECK(!s->is_bad);
	CHECK_STR(s->r.content, "a");
}

TEST(characters_split_over_chunks)
{
	struct seen *s;

	/* Over pieces of the connection: way 1 and 2 of this one. */
	EACH_WAY(s, DELTA("\"content\":\"gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80\"")
			    END("stop") DONE)
	{
		CHECK_STR(s->r.content, "gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80");
	}
	/* Over deltas: each of them alone is no UTF-8. */
	s = stream(DELTA("\"content\":\"a\xf0\x9f\"")
			   DELTA("\"content\":\"\x98\"")
				   DELTA("\"content\":\"\x80z\"") END("stop")
					   DONE,
		   4096);
	CHECK(!s->is_bad);
	CHECK_STR(s->r.content, "a\xf0\x9f\x98\x80z");
	CHECK_STR(s->chunks, "[a][\xf0\x9f\x98\x80z]");
	/* Within arguments. */
	s = stream(
		CALL("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\","
		     "\"arguments\":\"{\\\"q\\\":\\\"\xc3\"}}")
			CALL("{\"index\":0,\"function\":{\"arguments\":\"\xbc"
			     "\\\"}\"}}") END("tool_calls") DONE,
		4096);
	CHECK_STR(call(s, 0, "arguments"), "{\"q\":\"\xc3\xbc\"}");
	/* What never becomes a character is replaced, not lost. */
	s = stream(DELTA("\"content\":\"a\xff"
			 "b\xc3\"") END("stop") DONE,
		   4096);
	CHECK_STR(s->r.content, "a\xef\xbf\xbd"
				"b\xef\xbf\xbd");
	s = stream(DELTA("\"content\":\"a\\u0000b\"") END("stop") DONE, 4096);
	CHECK_STR(s->r.content, "a\xef\xbf\xbd"
				"b");
}

TEST(thoughts)
{
	struct seen *s = stream(
		DELTA("\"reasoning_content\":\"hm\",\"content\":null")
			DELTA("\"reasoning\":\", so\"")
				DELTA("\"content\":\"42\"") END("stop") DONE,
		4096);

	CHECK_STR(s->r.thought, "hm, so");
	CHECK_STR(s->r.content, "42");
	CHECK_STR(s->chunks, "<hm><, so>[42]");
	s = document("{\"choices\":[{\"message\":{\"reasoning_content\":\"why\""
		     ",\"reasoning\":\"why\",\"content\":\"x\"},"
		     "\"finish_reason\":\"stop\"}]}");
	CHECK_STR(s->r.thought, "why");
	/* As parts of the content. */
	s = document("{\"choices\":[{\"message\":{\"content\":[{\"type\":"
		     "\"thinking\",\"thinking\":[{\"type\":\"text\",\"text\":"
		     "\"t\"}]},{\"type\":\"text\",\"text\":\"c\"}]},"
		     "\"finish_reason\":\"stop\"}]}");
	CHECK_STR(s->r.thought, "t");
	CHECK_STR(s->r.content, "c");
}

TEST(an_error_within_the_stream)
{
	struct seen *s;

	EACH_WAY(s, DELTA("\"content\":\"half of\"") "data: "
						     "{\"error\":{\"message\":"
						     "\"the GPU is "
						     "gone\",\"type\":\"server_"
						     "error\"}}\n\n" DONE)
	{
		CHECK(s->is_bad);
		CHECK_INT((int)s->why.code, FAULT_UNAVAILABLE);
		CHECK_HAS(s->why.message, "the GPU is gone");
		CHECK_HAS(s->why.message, "server_error");
	}
	s = stream("event: error\ndata: {\"error\":{\"message\":\"slow down\","
		   "\"code\":\"rate_limit_exceeded\"}}\n\n",
		   4096);
	CHECK_INT((int)s->why.code, FAULT_OVERLOADED);
	s = document("{\"error\":\"just words\"}");
	CHECK(s->is_bad);
	CHECK_HAS(s->why.message, "just words");
	/* A field that is there and null is no error. */
	s = document("{\"error\":null,\"choices\":[{\"message\":{\"content\":"
		     "\"x\"},\"finish_reason\":\"stop\"}]}");
	CHECK(!s->is_bad);
}

TEST(what_is_cut_is_a_fault)
{
	static const char *const streams[] = {
		"",
		DELTA("\"content\":\"half\""),
		DELTA("\"content\":\"half\"") "data: {\"choices\":[{\"del",
		CALL("{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\","
		     "\"arguments\":\"{\"}}"),
		": keep-alive\n\n",
		DONE,                   /* nothing came before it */
		END("tool_calls") DONE, /* calls are promised, none came */
		"data: not json\n\n" DONE,
		"data: 17\n\n" DONE,
		"<html>502</html>",
		CALL("{\"index\":0,\"id\":\"a\",\"function\":{\"arguments\":"
		     "\"{}\"}}") END("tool_calls") DONE, /* of no tool */
	};
	static const char *const documents[] = {
		"",
		"{",
		"[]",
		"{}",
		"{\"choices\":[]}",
		"{\"choices\":[{\"message\":{\"content\":\"ha",
		"{\"choices\":[{\"finish_reason\":\"stop\"}]}",
	};
	struct seen *s;

	for (size_t i = 0; i < ARRAY_SIZE(streams); i++)
		EACH_WAY(s, streams[i])
		{
			CHECK(s->is_bad);
			CHECK(s->why.code != FAULT_NONE);
			CHECK(s->r.content == NULL);
		}
	for (size_t i = 0; i < ARRAY_SIZE(documents); i++) {
		s = document(documents[i]);
		CHECK(s->is_bad);
		CHECK(s->why.code != FAULT_NONE);
	}
}

TEST(done_may_be_missing_where_an_end_was_told)
{
	struct seen *s = stream(DELTA("\"content\":\"x\"") END("stop"), 4096);

	CHECK(!s->is_bad);
	CHECK_STR(s->r.content, "x");
}

TEST(other_ends)
{
	struct seen *s = stream(DELTA("\"content\":\"x\"") END("content_filter")
					DONE,
				4096);

	CHECK_INT((int)s->r.finish, FINISH_FILTER);
	s = stream(DELTA("\"content\":\"x\"") END("length") DONE, 4096);
	CHECK_INT((int)s->r.finish, FINISH_LENGTH);
	s = stream(DELTA("\"content\":\"x\"") END("new_one") DONE, 4096);
	CHECK_INT((int)s->r.finish, FINISH_UNKNOWN);
	s = stream(DELTA("\"refusal\":\"I will not\"") END("stop") DONE, 4096);
	CHECK_INT((int)s->r.finish, FINISH_FILTER);
	CHECK_STR(s->r.content, "I will not");
	/* A second choice was not asked for. */
	s = stream(DELTA("\"content\":\"x\"") "data: "
					      "{\"choices\":[{\"index\":1,"
					      "\"delta\":{"
					      "\"content\":\"y\"}}]}\n\n" END(
						      "stop") DONE,
		   4096);
	CHECK_STR(s->r.content, "x");
}

TEST(nothing_grows_without_end)
{
	struct seen *s = begin();
	char event[256];

	for (int i = 0; i < ANSWER_CALLS + 1 && !s->is_bad; i++) {
		(void)snprintf(event, sizeof(event),
			       "{\"choices\":[{\"delta\":{\"tool_calls\":[{"
			       "\"index\":%d,\"function\":{\"name\":\"f\"}}]}}"
			       "]}",
			       i);
		on_event(s, "", event, strlen(event));
		CHECK(s->is_bad == (i == ANSWER_CALLS));
	}
	CHECK_INT((int)s->why.code, FAULT_TOO_LARGE);
	answer_done(&s->a);
	sse_init(&s->sse, 100, on_event, s);
	CHECK(sse_feed(&s->sse, "data: ", 6) == 0);
	for (int i = 0; i < 9; i++)
		CHECK(sse_feed(&s->sse, "0123456789", 10) == 0);
	CHECK(sse_feed(&s->sse, "0123456789", 10) == -E2BIG);
	sse_done(&s->sse);
}

TEST(texts_of_errors)
{
	static const struct {
		const char *body;
		enum fault_code code;
		const char *says;
	} cases[] = {
		{ "{\"error\":{\"message\":\"bad key\",\"code\":"
		  "\"invalid_api_key\"}}",
		  FAULT_UNAUTHORIZED, "bad key" },
		{ "{\"error\":{\"message\":\"too long\",\"code\":"
		  "\"context_length_exceeded\"}}",
		  FAULT_TOO_LARGE, "too long" },
		{ "[{\"error\":{\"message\":\"in a list\"}}]", FAULT_REJECTED,
		  "in a list" },
		{ "{\"message\":\"bare\"}", FAULT_REJECTED, "bare" },
		{ "{\"detail\":\"of FastAPI\"}", FAULT_REJECTED, "of FastAPI" },
		{ "<html>", FAULT_REJECTED, "answers with an error" },
		{ "", FAULT_REJECTED, "answers with an error" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fault why = { 0 };

		answer_error(cases[i].body, strlen(cases[i].body),
			     FAULT_REJECTED, &why);
		CHECK_INT((int)why.code, (int)cases[i].code);
		CHECK_HAS(why.message, cases[i].says);
		fault_done(&why);
	}
}

TAP_MAIN()
