/* SPDX-License-Identifier: Apache-2.0 */

/* What people see of a conversation, and what they must not. */

#include "tests/tap.h"

#include "agent/agent.h"
#include "agentcmd/console.h"

static struct console c;

static void begin(bool colour, bool stats)
{
	console_init(&c, colour, stats);
}

/* Shows it, and drops the reference. */
static void show(json_t *event)
{
	console_event(&c, event);
	json_decref(event);
}

static const char *said(void)
{
	return c.out.data ? c.out.data : "";
}

static json_t *result_event(const char *text, bool is_error, json_t *detail)
{
	return chat_new("ToolCallExecutionEvent", "coder",
			json_pack("{s:[{s:s, s:s, s:s, s:b, s:o*}]}", "content",
				  "call_id", "c1", "name", "run_python",
				  "content", text, "is_error", is_error,
				  "detail", detail));
}

TEST(who_speaks_and_what)
{
	begin(false, false);
	show(chat_text("writer", "Hello\nworld"));
	CHECK_STR(said(), "---------- TextMessage (writer) ----------\n"
			  "Hello\nworld\n");
	console_done(&c);
}

TEST(chunks_have_one_header)
{
	json_t *m = chat_text("writer", "One two.\nThree");
	const char *id = json_string_value(json_object_get(m, "id"));

	begin(false, false);
	for (int i = 0; i < 3; i++) {
		static const char *const parts[] = { "One ", "two.\nTh",
						     "ree" };

		show(chat_new("ModelClientStreamingChunkEvent", "writer",
			      json_pack("{s:s, s:s}", "content", parts[i],
					"full_message_id", id)));
	}
	show(m);
	CHECK_STR(said(), "---------- TextMessage (writer) ----------\n"
			  "One two.\nThree\n");
	CHECK_INT((int)c.turns, 1);
	console_done(&c);
}

/* The thought comes before the answer, its whole after the last chunk. */
TEST(thoughts_are_shown_once)
{
	json_t *m = chat_text("writer", "Yes.");
	json_t *thought = chat_new("ThoughtEvent", "writer",
				   json_pack("{s:s}", "content", "Hm, well."));

	begin(false, false);
	show(chat_new("ThoughtChunkEvent", "writer",
		      json_pack("{s:s, s:O}", "content", "Hm, ",
				"full_message_id",
				json_object_get(thought, "id"))));
	show(chat_new("ThoughtChunkEvent", "writer",
		      json_pack("{s:s, s:O}", "content", "well.",
				"full_message_id",
				json_object_get(thought, "id"))));
	show(chat_new("ModelClientStreamingChunkEvent", "writer",
		      json_pack("{s:s, s:O}", "content", "Yes.",
				"full_message_id", json_object_get(m, "id"))));
	show(thought);
	show(m);
	CHECK_STR(said(), "---------- ThoughtEvent (writer) ----------\n"
			  "Hm, well.\n"
			  "---------- TextMessage (writer) ----------\n"
			  "Yes.\n");
	show(chat_new("ThoughtEvent", "writer",
		      json_pack("{s:s}", "content", "Another.")));
	CHECK_HAS(said(), "Yes.\n---------- ThoughtEvent (writer) ----------\n"
			  "  Another.\n");
	console_done(&c);
}

/* Then the message itself is, as a filter left it. */
TEST(empty_chunks_are_not_shown)
{
	json_t *m = chat_text("writer", "[masked]");

	begin(false, false);
	show(chat_new("ModelClientStreamingChunkEvent", "writer",
		      json_pack("{s:s, s:O}", "content", "", "full_message_id",
				json_object_get(m, "id"))));
	show(m);
	CHECK_STR(said(), "---------- TextMessage (writer) ----------\n"
			  "[masked]\n");
	console_done(&c);
}

TEST(calls_are_shown_as_code)
{
	begin(false, false);
	show(chat_new("ToolCallRequestEvent", "coder",
		      json_pack("{s:[{s:s, s:s, s:s}]}", "content", "id", "c1",
				"name", "run_python", "arguments",
				"{\"code\":\"a = 1\\nprint(a)\\n\",\"n\":3}")));
	CHECK_HAS(said(), "run_python\n  code:\n  | a = 1\n  | print(a)\n"
			  "  n: 3\n");
	CHECK_INT((int)c.tool_calls, 1);
	console_done(&c);
}

TEST(the_box_and_its_verdict)
{
	begin(false, false);
	show(result_event("42\n", false,
			  json_pack("{s:s, s:i, s:i}", "cause", "exited",
				    "exit_code", 0, "execution_time_ms", 41)));
	CHECK_HAS(said(),
		  "run_python: allowed; box: exited, status 0, 41 ms\n  42\n");
	show(result_event("no", true, json_pack("{s:s}", "cause", "denied")));
	CHECK_HAS(said(), "run_python: denied; box: denied");
	show(result_event("Tool call was not approved. Reason: no", true,
			  NULL));
	show(result_event("Tool call was denied: not for you", true, NULL));
	show(result_event("Traceback", true, NULL));
	CHECK_HAS(said(), "run_python: error\n  Traceback\n");
	CHECK_INT((int)c.denials, 3);
	console_done(&c);
}

/* Escapes, other lines of text, bidi: written out, wherever they come in. */
TEST(nothing_steers_the_terminal)
{
	static const char evil[] = "a\033[31mb\r\xe2\x80\xae\x7f";

	begin(false, true);
	show(chat_text(evil, evil));
	show(chat_new(evil, evil, json_pack("{s:s}", "content", evil)));
	show(chat_new("ToolCallRequestEvent", evil,
		      json_pack("{s:[{s:s, s:s, s:s}]}", "content", "id", evil,
				"name", evil, "arguments", evil)));
	show(chat_new("ModelClientStreamingChunkEvent", "w",
		      json_pack("{s:s, s:s}", "content", evil,
				"full_message_id", "x")));
	show(result_event(evil, true, json_pack("{s:s}", "cause", evil)));
	show(chat_new("ErrorEvent", evil,
		      json_pack("{s:{s:s, s:s}}", "error", "code", evil,
				"message", evil)));
	show(chat_new("ApprovalRequestedEvent", evil,
		      json_pack("{s:{s:s, s:s}}", "approval", "id", evil,
				"tool", evil)));
	show(chat_new("ApprovalDecidedEvent", evil,
		      json_pack("{s:{s:b, s:s}}", "decision", "approved", 1,
				"reason", evil)));
	CHECK_HAS(said(), "a<U+001B>[31mb<U+000D><U+202E><U+007F>");
	for (const char *p = said(); *p; p++)
		CHECK((unsigned char)*p >= ' ' || *p == '\n');
	CHECK(!strstr(said(), "\xe2\x80\xae") && !strchr(said(), '\x7f'));
	console_done(&c);
}

TEST(tabs_and_windows_lines)
{
	begin(false, false);
	show(chat_text("w", "a\tb\r\n\tc"));
	CHECK_HAS(said(), "a    b\n    c\n");
	console_done(&c);
}

TEST(colour_only_where_wanted)
{
	begin(true, false);
	show(chat_text("w", "x"));
	CHECK_HAS(said(), "\033[1m---------- TextMessage");
	console_done(&c);
}

TEST(the_summary)
{
	json_t *r = json_pack(
		"{s:[], s:s, s:s, s:{s:i, s:i, s:f}, s:s, s:[{s:s}]}",
		"messages", "stop_reason", "Approval required: run_shell",
		"status", "suspended", "usage", "prompt_tokens", 812,
		"completion_tokens", 96, "cost", 0.00018, "checkpoint", "id-1",
		"pending", "id", "ab12");

	begin(false, true);
	console_result(&c, r, c.started + 1234567);
	CHECK_HAS(said(), "suspended: Approval required: run_shell\n");
	CHECK_HAS(said(), "812 prompt, 96 completion\n");
	CHECK_HAS(said(), "$0.00018\n");
	CHECK_HAS(said(), "1.23 s\n");
	CHECK_HAS(said(), "denied 0\n");
	CHECK_HAS(said(), "waits for   ab12\n");
	CHECK_HAS(said(), "cordon agent run --resume id-1\n");
	CHECK_HAS(said(), "Number of messages: 0\nFinish reason: Approval "
			  "required: run_shell\nTotal prompt tokens: 812\n"
			  "Total completion tokens: 96\nDuration: 1.23 "
			  "seconds\n");
	json_decref(r);
	console_done(&c);
}

TEST(stats_of_each_message)
{
	json_t *m = chat_text("w", "x");
	struct model_usage u = { .prompt = 7, .completion = 3 };

	begin(false, true);
	chat_set_usage(m, &u);
	show(m);
	CHECK_HAS(said(), "[Prompt tokens: 7, Completion tokens: 3]\n");
	CHECK_INT((int)c.prompt, 7);
	console_done(&c);
}

TAP_MAIN()
