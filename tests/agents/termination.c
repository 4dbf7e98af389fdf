/* SPDX-License-Identifier: Apache-2.0 */

/* Conditions that end a run: each with its exact reason, and their state. */

#include "tests/tap.h"

#include "agent/team.h"

static json_t *parse(const char *text)
{
	json_error_t e;
	json_t *o = json_loads(text, 0, &e);

	if (!o) {
		printf("# not JSON: %s: %s\n", text, e.text);
		exit(1);
	}
	return o;
}

static struct termination *make(const char *config)
{
	struct termination *t = NULL;
	struct err err = { 0 };
	json_t *o = parse(config);

	if (termination_new(o, &t, &err) < 0) {
		printf("# %s: %s\n", config, err.text);
		exit(1);
	}
	json_decref(o);
	return t;
}

/* What it says to these messages; the caller frees it. */
static char *ask_facts(struct termination *t, const char *fresh,
		       struct stop_facts f)
{
	struct fault bad = { 0 };
	json_t *list = parse(fresh);
	char *why;

	f.fresh = list;
	why = termination_check(t, &f, &bad);
	if (bad.code) {
		why = bad.message ? strdup(bad.message) : NULL;
		fault_done(&bad);
	}
	json_decref(list);
	return why;
}

static char *ask(struct termination *t, const char *fresh)
{
	return ask_facts(t, fresh, (struct stop_facts){ 0 });
}

#define SAYS(t, fresh, want)                                                   \
	do {                                                                   \
		char *why_ = ask(t, fresh);                                    \
		CHECK_STR(why_, want);                                         \
		free(why_);                                                    \
	} while (0)
#define SILENT(t, fresh)                                                       \
	do {                                                                   \
		char *why_ = ask(t, fresh);                                    \
		CHECK(why_ == NULL);                                           \
		free(why_);                                                    \
	} while (0)

#define TEXT(who, text)                                                        \
	"{\"type\":\"TextMessage\",\"source\":\"" who "\",\"content\":\"" text \
	"\"}"
#define EVENT(who, text)                                                       \
	"{\"type\":\"ThoughtEvent\",\"source\":\"" who                         \
	"\",\"content\":\"" text "\"}"

TEST(max_messages_counts_messages)
{
	struct termination *t = make("{\"max_messages\":{\"n\":3}}");

	SILENT(t, "[" TEXT("a", "1") "," EVENT("a", "x") "]");
	SILENT(t, "[" TEXT("b", "2") "]");
	SAYS(t, "[" TEXT("a", "3") "," TEXT("b", "4") "]",
	     "Maximum number of messages 3 reached, current message count: 4");
	termination_free(t);

	t = make("{\"max_messages\":{\"n\":2,\"include_events\":true}}");
	SAYS(t, "[" TEXT("a", "1") "," EVENT("a", "x") "]",
	     "Maximum number of messages 2 reached, current message count: 2");
	termination_free(t);
}

TEST(fired_and_asked_again_is_an_error)
{
	struct termination *t = make("{\"max_messages\":1}");

	SAYS(t, "[" TEXT("a", "1") "]",
	     "Maximum number of messages 1 reached, current message count: 1");
	SAYS(t, "[]",
	     "the condition 'max_messages' has fired already; reset it first");
	termination_reset(t);
	SILENT(t, "[]");
	SAYS(t, "[" TEXT("a", "1") "]",
	     "Maximum number of messages 1 reached, current message count: 1");
	termination_free(t);
}

TEST(text_mention_by_source)
{
	struct termination *t = make("{\"text_mention\":{\"text\":\"DONE\","
				     "\"sources\":[\"b\"]}}");

	SILENT(t, "[" TEXT("a", "DONE") "]");
	SILENT(t, "[" EVENT("b", "DONE") "," TEXT("b", "done") "]");
	SAYS(t, "[" TEXT("b", "all DONE now") "]", "Text 'DONE' mentioned");
	termination_free(t);
}

/* D47: neither the task nor what a tool gave back has been said. */
TEST(d47_task_and_tools_do_not_mention)
{
	static const char task[] = "[" TEXT("user", "end with TERMINATE") "]";
	static const char tool[] =
		"[{\"type\":\"ToolCallExecutionEvent\",\"source\":\"a\","
		"\"content\":[{\"call_id\":\"1\",\"name\":\"f\",\"content\":"
		"\"TERMINATE\",\"is_error\":false}]},"
		"{\"type\":\"ToolCallSummaryMessage\",\"source\":\"a\","
		"\"content\":\"TERMINATE\",\"tool_calls\":[],\"results\":[]}]";
	struct stop_facts f = { .is_task = true };
	struct termination *t = make("{\"text_mention\":\"TERMINATE\"}");
	char *why = ask_facts(t, task, f);

	CHECK(why == NULL);
	SILENT(t, tool);
	SAYS(t, "[" TEXT("a", "TERMINATE") "]", "Text 'TERMINATE' mentioned");
	termination_free(t);

	t = make("{\"text_mention\":{\"text\":\"TERMINATE\","
		 "\"include_task\":true}}");
	why = ask_facts(t, task, f);
	CHECK_STR(why, "Text 'TERMINATE' mentioned");
	free(why);
	termination_free(t);

	t = make("{\"text_mention\":{\"text\":\"TERMINATE\","
		 "\"sources\":[\"user\"]}}");
	why = ask_facts(t, task, f);
	CHECK_STR(why, "Text 'TERMINATE' mentioned");
	free(why);
	termination_free(t);
}

TEST(text_message_from_whom)
{
	struct stop_facts f = { .is_task = true };
	struct termination *t = make("{\"text_message\":{}}");
	char *why = ask_facts(t, "[" TEXT("user", "hello") "]", f);

	CHECK(why == NULL);
	SILENT(t, "[{\"type\":\"StopMessage\",\"source\":\"a\",\"content\":"
		  "\"x\"}]");
	SAYS(t, "[" TEXT("a", "x") "]", "Text message received from 'a'");
	termination_free(t);

	t = make("{\"text_message\":{\"source\":\"b\"}}");
	SILENT(t, "[" TEXT("a", "x") "]");
	SAYS(t, "[" TEXT("b", "x") "]", "Text message received from 'b'");
	termination_free(t);

	t = make("{\"text_message\":\"user\"}");
	why = ask_facts(t, "[" TEXT("user", "hello") "]", f);
	CHECK_STR(why, "Text message received from 'user'");
	free(why);
	termination_free(t);
}

TEST(stop_message_stops)
{
	struct termination *t = make("{\"stop_message\":{}}");

	SILENT(t, "[" TEXT("a", "stop") "]");
	SAYS(t,
	     "[{\"type\":\"StopMessage\",\"source\":\"a\",\"content\":"
	     "\"x\"}]",
	     "Stop message received");
	termination_free(t);
}

#define USED(type, p, c)                                                       \
	"{\"type\":\"" type "\",\"source\":\"a\",\"content\":\"\","            \
	"\"models_usage\":{\"prompt_tokens\":" #p ",\"completion_tokens\":" #c \
	"}}"

TEST(token_usage_counts_events_too)
{
	struct termination *t = make("{\"token_usage\":{\"max_total\":30}}");

	SILENT(t, "[" USED("TextMessage", 10, 5) "," TEXT("b", "x") "]");
	SAYS(t, "[" USED("ThoughtEvent", 10, 7) "]",
	     "Token usage limit reached, total token count: 32, prompt token "
	     "count: 20, completion token count: 12.");
	termination_free(t);

	t = make("{\"token_usage\":{\"max_prompt\":100,"
		 "\"max_completion\":5}}");
	SILENT(t, "[" USED("TextMessage", 10, 4) "]");
	SAYS(t, "[" USED("TextMessage", 1, 1) "]",
	     "Token usage limit reached, total token count: 16, prompt token "
	     "count: 11, completion token count: 5.");
	termination_free(t);
}

TEST(handoff_to_target)
{
	struct termination *t = make("{\"handoff\":\"user\"}");

	SILENT(t, "[{\"type\":\"HandoffMessage\",\"source\":\"a\","
		  "\"target\":\"b\",\"content\":\"x\",\"context\":[]}]");
	SAYS(t,
	     "[{\"type\":\"HandoffMessage\",\"source\":\"a\",\"target\":"
	     "\"user\",\"content\":\"x\",\"context\":[]}]",
	     "Handoff to user from a detected.");
	termination_free(t);
}

TEST(timeout_counts_from_the_start_of_the_run)
{
	struct termination *t = make("{\"timeout\":{\"seconds\":1.5}}");
	struct stop_facts f = { .started = 10000000, .now = 11499999 };
	char *why = ask_facts(t, "[]", f);

	CHECK(why == NULL);
	CHECK_INT(termination_deadline(t, f.started), 11500000);
	f.now = 11500000;
	why = ask_facts(t, "[]", f);
	CHECK_STR(why, "Timeout of 1.5 seconds reached");
	free(why);
	termination_free(t);
	t = make("{\"timeout\":30}");
	f.now = 50000000;
	why = ask_facts(t, "[]", f);
	CHECK_STR(why, "Timeout of 30 seconds reached");
	free(why);
	termination_free(t);
}

TEST(deadline_of_groups)
{
	struct termination *t = make(
		"{\"any\":[{\"timeout\":9},{\"max_messages\":1},"
		"{\"timeout\":4}]}");

	CHECK_INT(termination_deadline(t, 1), 4000001);
	termination_free(t);
	t = make("{\"all\":[{\"timeout\":9},{\"max_messages\":1},"
		 "{\"timeout\":4}]}");
	CHECK_INT(termination_deadline(t, 1), 0);
	SILENT(t, "[" TEXT("a", "1") "]");
	CHECK_INT(termination_deadline(t, 1), 9000001);
	termination_free(t);
}

TEST(external_is_set_from_anywhere)
{
	struct termination *t = make(
		"{\"any\":[{\"max_messages\":9},{\"external\":{}}]}");

	SILENT(t, "[]");
	termination_set(t);
	SAYS(t, "[]", "External termination requested");
	termination_reset(t);
	SILENT(t, "[]");
	termination_free(t);
}

TEST(source_match_answers)
{
	struct stop_facts f = { .is_task = true };
	struct termination *t = make(
		"{\"source_match\":{\"sources\":[\"b\",\"user\"]}}");
	char *why = ask_facts(t, "[" TEXT("user", "hello") "]", f);

	CHECK(why == NULL);
	SILENT(t, "[" TEXT("a", "x") "," EVENT("b", "x") "]");
	SAYS(t, "[" TEXT("b", "x") "]", "'b' answered");
	termination_free(t);
}

#define RAN(name, error)                                                       \
	"[{\"type\":\"ToolCallExecutionEvent\",\"source\":\"a\",\"content\":"  \
	"[{\"call_id\":\"1\",\"name\":\"" name                                 \
	"\",\"content\":\"\",\"is_error\":" error "}]}]"

TEST(function_call_was_executed)
{
	struct termination *t = make("{\"function_call\":\"submit\"}");

	SILENT(t, RAN("other", "false"));
	SILENT(t, RAN("submit", "true"));
	SAYS(t, RAN("submit", "false"), "Function 'submit' was executed.");
	termination_free(t);
}

static bool is_long(void *arg, const json_t *fresh, struct fault *why)
{
	size_t *calls = arg;

	(*calls)++;
	if (json_array_size(fresh) > 2)
		fault_set(why, FAULT_HANDLER, "too long to say");
	return json_array_size(fresh) == 2;
}

TEST(functions_are_known_by_name)
{
	size_t calls = 0;
	struct err err = { 0 };
	json_t *bad = parse("{\"function\":{\"name\":\"nobody\"}}");
	struct termination *t = NULL;

	CHECK(termination_new(bad, &t, &err) < 0);
	CHECK_HAS(err.text, "'nobody'");
	json_decref(bad);
	CHECK(termination_register("is_long", is_long, &calls, &err) == 0);
	t = make("{\"function\":{\"name\":\"is_long\"}}");
	SILENT(t, "[]");
	SAYS(t, "[1,2,3]", "too long to say");
	SAYS(t, "[1,2]", "Functional termination condition met");
	CHECK_INT((long long)calls, 3);
	termination_free(t);
}

TEST(cordons_own)
{
	static const struct {
		const char *config, *want;
		struct stop_facts below, above;
	} rows[] = {
		{ "{\"cost\":0.5}",
		  "Cost limit reached: $0.5100 of $0.5",
		  { .cost = 0.49 },
		  { .cost = 0.51 } },
		{ "{\"errors\":3}",
		  "Error limit reached: 3",
		  { .errors = 2 },
		  { .errors = 4 } },
		{ "{\"tool_calls\":3}",
		  "Tool call limit reached: 3",
		  { .tool_calls = 2 },
		  { .tool_calls = 3 } },
		{ "{\"resource\":{\"cpu\":2}}",
		  "Resource limit reached: cpu 2.5 s of 2 s",
		  { .box_cpu_ms = 1999, .box_memory = 1LL << 40 },
		  { .box_cpu_ms = 2500 } },
		{ "{\"resource\":{\"cpu\":2,\"memory\":1048576}}",
		  "Resource limit reached: memory 2.0 MiB of 1.0 MiB",
		  { .box_memory = 1048575 },
		  { .box_memory = 2 << 20 } },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct termination *t = make(rows[i].config);
		char *why = ask_facts(t, "[]", rows[i].below);

		CHECK(why == NULL);
		why = ask_facts(t, "[]", rows[i].above);
		CHECK_STR(why, rows[i].want);
		free(why);
		termination_free(t);
	}
}

TEST(loops_are_found_also_between_two)
{
	struct termination *t = make("{\"loop\":{\"n\":3}}");

	SILENT(t, "[" TEXT("a", "x") "]");
	SILENT(t, "[" TEXT("b", "y") "]");
	SILENT(t, "[" TEXT("a", "x") "]");
	SILENT(t, "[" TEXT("b", "z") "]");
	SAYS(t, "[" TEXT("a", "x") "]",
	     "Loop detected: 3 equal messages from 'a'");
	termination_reset(t);
	SILENT(t, "[" TEXT("a", "x") "]");
	SILENT(t, "[" TEXT("a", "w") "]");
	SILENT(t, "[" TEXT("a", "x") "," TEXT("a", "x") "]");
	termination_free(t);
}

TEST(any_joins_the_reasons)
{
	struct termination *t = make(
		"{\"any\":[{\"max_messages\":2},"
		"{\"text_mention\":\"DONE\"},{\"stop_message\":{}}]}");

	SILENT(t, "[" TEXT("a", "x") "]");
	SAYS(t, "[" TEXT("a", "DONE") "]",
	     "Maximum number of messages 2 reached, current message count: 2, "
	     "Text 'DONE' mentioned");
	SAYS(t, "[]", "the condition 'any' has fired already; reset it first");
	termination_free(t);
}

TEST(all_waits_for_all_at_any_depth)
{
	struct termination *t = make(
		"{\"all\":[{\"text_mention\":\"A\"},{\"any\":[{\"all\":["
		"{\"text_mention\":\"B\"},{\"text_mention\":\"C\"}]},"
		"{\"stop_message\":{}}]}]}");

	SILENT(t, "[" TEXT("a", "C") "]");
	SILENT(t, "[" TEXT("a", "A") "]");
	/* One that has fired stays so, and is not asked again. */
	SILENT(t, "[" TEXT("a", "A") "]");
	SAYS(t, "[" TEXT("a", "B") "]",
	     "Text 'A' mentioned, Text 'B' mentioned, Text 'C' mentioned");
	termination_free(t);
}

/* D17: counters are part of the state. */
TEST(d17_state_goes_on_elsewhere)
{
	static const char config[] =
		"{\"any\":[{\"all\":[{\"max_messages\":4},"
		"{\"text_mention\":\"A\"}]},{\"loop\":{\"n\":3}},"
		"{\"token_usage\":{\"max_total\":99}},{\"external\":{}}]}";
	struct termination *t = make(config);
	struct termination *u = make(config);
	struct err err = { 0 };
	json_t *state;
	json_t *again;

	SILENT(t, "[" TEXT("a", "A") "," TEXT("b", "x") "]");
	SILENT(t, "[" USED("ThoughtEvent", 40, 50) "," TEXT("b", "x") "]");
	state = termination_save(t);
	CHECK(termination_load(u, state, &err) == 0);
	again = termination_save(u);
	CHECK(json_equal(state, again));
	SAYS(u, "[" USED("TextMessage", 4, 5) "," TEXT("b", "x") "]",
	     "Maximum number of messages 4 reached, current message count: 5, "
	     "Text 'A' mentioned, Loop detected: 3 equal messages from 'b', "
	     "Token usage limit reached, total token count: 99, prompt token "
	     "count: 44, completion token count: 55.");
	json_decref(again);
	json_decref(state);
	termination_free(t);
	termination_free(u);
}

TEST(state_of_another_is_refused_whole)
{
	static const char *const bad[] = {
		"{}",
		"[]",
		"{\"type\":\"all\",\"version\":1,\"reason\":null,\"parts\":[]}",
		"{\"type\":\"any\",\"version\":2,\"reason\":null,\"parts\":[]}",
		"{\"type\":\"any\",\"version\":1,\"parts\":[{\"type\":"
		"\"max_messages\",\"version\":1,\"count\":7}]}",
		"{\"type\":\"any\",\"version\":1,\"parts\":[{\"type\":"
		"\"max_messages\",\"version\":1,\"count\":7},{\"type\":"
		"\"stop_message\",\"version\":9}]}",
		"{\"type\":\"any\",\"version\":1,\"parts\":[{\"type\":"
		"\"max_messages\",\"version\":1,\"count\":-7},{\"type\":"
		"\"stop_message\",\"version\":1}]}",
	};
	struct termination *t = make(
		"{\"any\":[{\"max_messages\":3},{\"stop_message\":{}}]}");
	json_t *before = termination_save(t);

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct err err = { 0 };
		json_t *o = parse(bad[i]);
		json_t *after;

		CHECK(termination_load(t, o, &err) < 0);
		CHECK(err.text[0] != '\0');
		after = termination_save(t);
		CHECK(json_equal(before, after));
		json_decref(after);
		json_decref(o);
	}
	json_decref(before);
	termination_free(t);
}

/* D19: what was dumped and loaded dumps the same, for every kind. */
TEST(d19_dump_is_identical)
{
	static const char config[] =
		"{\"any\":[{\"max_messages\":{\"n\":3,\"include_events\":true}}"
		",{\"text_mention\":{\"text\":\"x\",\"sources\":[\"a\",\"b\"],"
		"\"include_task\":true}},{\"stop_message\":{}},"
		"{\"token_usage\":{\"max_total\":1,\"max_prompt\":2,"
		"\"max_completion\":3}},{\"handoff\":{\"target\":\"u\"}},"
		"{\"timeout\":{\"seconds\":1.5}},{\"external\":{}},"
		"{\"source_match\":{\"sources\":[\"a\"]}},{\"text_message\":"
		"{\"source\":\"a\",\"include_task\":false}},"
		"{\"function_call\":{\"name\":\"f\"}},{\"function\":{\"name\":"
		"\"is_long\"}},{\"cost\":{\"max\":0.25}},{\"loop\":{\"n\":3}},"
		"{\"errors\":{\"n\":3}},{\"tool_calls\":{\"n\":3}},"
		"{\"resource\":{\"cpu\":1,\"memory\":2}},{\"all\":[{\"all\":"
		"[{\"text_message\":{}}]}]}]}";
	size_t calls = 0;
	struct termination *t;
	json_t *want = parse(config);
	json_t *have;

	CHECK(termination_register("is_long", is_long, &calls, NULL) == 0);
	t = make(config);
	have = termination_dump(t);
	CHECK(json_equal(have, want));
	json_decref(have);
	termination_free(t);

	/* A bare value comes out spelled out. */
	t = make("{\"source_match\":\"a\"}");
	have = termination_dump(t);
	json_decref(want);
	want = parse("{\"source_match\":{\"sources\":[\"a\"]}}");
	CHECK(json_equal(have, want));
	json_decref(have);
	json_decref(want);
	termination_free(t);
}

TEST(wrong_configurations_say_where)
{
	static const struct {
		const char *config, *want;
	} rows[] = {
		{ "{}", "object with one name" },
		{ "[]", "object with one name" },
		{ "{\"max_messages\":1,\"external\":{}}",
		  "object with one name" },
		{ "{\"max_message\":1}", "'max_message'" },
		{ "{\"max_messages\":{}}", "'n' is missing" },
		{ "{\"max_messages\":0}", "max_messages: n: must be a whole" },
		{ "{\"max_messages\":\"9\"}", "max_messages: n: must be" },
		{ "{\"max_messages\":{\"n\":1,\"x\":1}}", "x: no such field" },
		{ "{\"timeout\":-1}", "seconds: must be a number" },
		{ "{\"timeout\":1e30}", "seconds: must be a number" },
		{ "{\"text_mention\":{\"text\":\"x\",\"sources\":[]}}",
		  "sources: must be a list of texts" },
		{ "{\"stop_message\":3}", "no such field" },
		{ "{\"token_usage\":{}}", "one limit at least" },
		{ "{\"any\":[]}", "list of 1 to" },
		{ "{\"any\":[{\"all\":[{\"external\":{}},{\"x\":1}]}]}",
		  "any[0]: all[1]: no such condition: 'x'" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct err err = { 0 };
		struct termination *t = NULL;
		json_t *o = parse(rows[i].config);

		CHECK(termination_new(o, &t, &err) < 0);
		CHECK_HAS(err.text, rows[i].want);
		json_decref(o);
	}
}

TEST(too_deep_is_refused)
{
	struct err err = { 0 };
	struct termination *t = NULL;
	json_t *o = parse("{\"external\":{}}");

	for (int i = 0; i < 150; i++)
		o = json_pack("{s:[o]}", i % 2 ? "any" : "all", o);
	CHECK(termination_new(o, &t, &err) == 0);
	termination_set(t);
	SAYS(t, "[]", "External termination requested");
	termination_free(t);
	for (int i = 0; i < 150; i++)
		o = json_pack("{s:[o]}", "any", o);
	CHECK(termination_new(o, &t, &err) < 0);
	json_decref(o);
}

TAP_MAIN()
