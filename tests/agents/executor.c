/* SPDX-License-Identifier: Apache-2.0 */

/* The code executor agent (10.2): A1 to A12 of the executor's cases. */

#include "tests/tap.h"

#include "tests/agents/fakes.h"

#define PY(code) "Here:\n\n```python\n" code "\n```\n"

static struct agent *make(const char *config, struct model *m,
			  struct toolset *t)
{
	struct err err = { 0 };
	json_t *c = doc(config);
	struct agent *a = NULL;

	CHECK_INT(agent_executor(the_loop(), "box", c, m, t, &a, &err), 0);
	CHECK_STR(err.text, "");
	json_decref(c);
	return a;
}

static struct toolset *tools(const char *result)
{
	struct toolset *t = fake_tools(the_loop(), "run_code");

	t->detail = result ? doc(result) : NULL;
	return t;
}

static size_t history(struct agent *a)
{
	json_t *state = agent_save(a);
	size_t n = json_array_size(
		json_object_get(json_object_get(state, "context"), "messages"));

	json_decref(state);
	return n;
}

static const char good[] = "{'status':'success','cause':'exited',"
			   "'exit_code':0,'output':'3\\n'}";
static const char bad[] = "{'status':'error','cause':'exited','exit_code':1,"
			  "'output':'NameError'}";

TEST(a1_a_block_is_run_and_its_output_is_the_answer)
{
	struct toolset *t = tools(good);
	struct agent *a = make("{}", NULL, t);
	struct heard h = { 0 };

	ask(a, PY("print(1+2)"), &h);
	CHECK_STR(types(&h), "CodeExecutionEvent");
	CHECK_STR(chat_type(h.chat), "TextMessage");
	CHECK_STR(text_of(h.chat), "3\n");
	CHECK_INT((long long)json_array_size(t->made), 1);
	/* Exactly the block, and nothing that the parser adds for itself. */
	CHECK_STR(json_string_value(json_array_get(t->made, 0)),
		  "run_code {\"blocks\":[{\"language\":\"python\","
		  "\"code\":\"print(1+2)\\n\"}]}");
	CHECK(json_equal(json_object_get(event_of(&h, "CodeExecutionEvent"),
					 "result"),
			 t->detail));
	heard_done(&h);
	agent_free(a);
}

static const struct {
	const char *result, *said;
} reports[] = {
	{ "{'status':'success','cause':'exited','exit_code':0,'output':' \\n'}",
	  "The POSIX exit code was: 0" },
	{ "{'status':'error','cause':'exited','exit_code':3,'output':''}",
	  "The POSIX exit code was: 3" },
	{ "{'status':'error','cause':'exited','exit_code':1,'output':'oh'}",
	  "The script ran, then exited with an error (POSIX exit code: 1)\n"
	  "Its output was:\noh" },
	{ "{'status':'timeout','cause':'timeout','exit_code':124,"
	  "'output':'x\\nTimeout'}",
	  "The script ran, then exited with an error (POSIX exit code: 124)" },
	{ "{'status':'error','cause':'denied','exit_code':126,"
	  "'output':'Filename is not in the workspace'}",
	  "Filename is not in the workspace" },
	{ "{'status':'error','cause':'not_found','exit_code':127,"
	  "'output':'unknown language cobol'}",
	  "unknown language cobol" },
	{ "{'status':'error','cause':'setup','exit_code':125,'output':''}",
	  "The code did not run (setup)." },
};

TEST(a5_what_is_said_of_a_run)
{
	for (size_t i = 0; i < ARRAY_SIZE(reports); i++) {
		struct agent *a = make("{}", NULL, tools(reports[i].result));
		struct heard h = { 0 };

		ask(a, PY("x"), &h);
		CHECK_HAS(text_of(h.chat), reports[i].said);
		heard_done(&h);
		agent_free(a);
	}
}

TEST(a7_no_block_is_said_with_a_hint)
{
	struct toolset *t = tools(good);
	struct agent *a = make("{}", NULL, t);
	struct heard h = { 0 };

	ask(a, "no code here", &h);
	CHECK_HAS(text_of(h.chat), "No code blocks found in the thread.");
	CHECK_HAS(text_of(h.chat), "```python");
	CHECK_INT((long long)json_array_size(t->made), 0);
	heard_done(&h);
	agent_free(a);
}

TEST(only_the_named_sources_are_read)
{
	struct toolset *t = tools(good);
	struct agent *a = make("{'sources':['coder']}", NULL, t);
	struct heard h = { 0 };

	ask(a, PY("evil()"), &h);
	CHECK_INT((long long)json_array_size(t->made), 0);
	ask_list(a,
		 json_pack("[o, o]", chat_text("coder", PY("good()")),
			   chat_text("eve", PY("evil()"))),
		 NULL, &h);
	CHECK_INT((long long)json_array_size(t->made), 1);
	CHECK(strstr(json_string_value(json_array_get(t->made, 0)), "evil") ==
	      NULL);
	heard_done(&h);
	agent_free(a);
}

TEST(a8_blocks_of_all_messages_are_one_request)
{
	struct toolset *t = tools(good);
	struct agent *a = make("{}", NULL, t);
	struct heard h = { 0 };

	ask_list(a,
		 json_pack("[o, o]", chat_text("coder", PY("one")),
			   chat_text("coder", PY("two") PY("three"))),
		 NULL, &h);
	CHECK_INT((long long)json_array_size(t->made), 1);
	CHECK_HAS(json_string_value(json_array_get(t->made, 0)), "three");
	heard_done(&h);
	agent_free(a);
}

/* --- with a model --- */

TEST(a2_generated_code_is_run_and_answered)
{
	static const struct say script[] = {
		{ .content = PY("print(3)"), .prompt = 5 },
		{ .content = "it is three", .prompt = 9 },
	};
	struct model *m = fake_model(the_loop(), script);
	struct agent *a = make("{}", m, tools(good));
	struct heard h = { 0 };
	json_t *seen;

	ask(a, "add", &h);
	CHECK_STR(types(&h), "CodeGenerationEvent CodeExecutionEvent");
	CHECK_STR(text_of(h.chat), "it is three");
	CHECK_INT((long long)json_array_size(
			  json_object_get(event_of(&h, "CodeGenerationEvent"),
					  "code_blocks")),
		  1);
	/* system, add, code, output (as data), the question */
	seen = asked(m, 1);
	CHECK_INT((long long)json_array_size(seen), 5);
	CHECK_HAS(json_string_value(
			  json_object_get(json_array_get(seen, 3), "content")),
		  "<untrusted from=\"code execution\">\n3");
	CHECK_INT((long long)history(a), 4);
	heard_done(&h);
	agent_free(a);
	model_unref(m);
}

TEST(a3_no_code_is_a_plain_reply)
{
	static const struct say script[] = { { .content = "I think not" } };
	struct model *m = fake_model(the_loop(), script);
	struct toolset *t = tools(good);
	struct agent *a = make("{}", m, t);
	struct heard h = { 0 };

	ask(a, "add", &h);
	CHECK_STR(types(&h), "");
	CHECK_STR(text_of(h.chat), "I think not");
	CHECK_INT((long long)json_array_size(t->made), 0);
	heard_done(&h);
	agent_free(a);
	model_unref(m);
}

static const struct say retries[] = {
	{ .content = PY("pritn(3)") },
	{ .content = "{\"retry\":true,\"reason\":\"a slip\"}" },
	{ .content = PY("print(3)") },
	{ .content = "{\"retry\":false,\"reason\":\"hopeless\"}" },
	{ .content = "sorry" },
};

TEST(a4_failing_code_is_corrected_within_the_retries)
{
	struct model *m = fake_model(the_loop(), retries);
	struct toolset *t = tools(bad);
	struct agent *a = make("{'max_retries_on_error':3}", m, t);
	struct heard h = { 0 };

	ask(a, "add", &h);
	CHECK_STR(types(&h), "CodeGenerationEvent CodeExecutionEvent "
			     "ThoughtEvent CodeGenerationEvent "
			     "CodeExecutionEvent ThoughtEvent");
	CHECK_STR(text_of(event_of(&h, "ThoughtEvent")), "Retry: a slip");
	CHECK_STR(text_of(h.chat), "sorry");
	CHECK_INT((long long)json_array_size(t->made), 2);
	CHECK_INT(json_integer_value(
			  json_object_get(json_array_get(h.events, 3),
					  "retry_attempt")),
		  1);
	CHECK(json_object_get(json_array_get(m->requests, 1), "schema"));
	heard_done(&h);
	agent_free(a);
	model_unref(m);
}

TEST(a4_no_more_retries_than_allowed)
{
	static const struct say script[] = {
		{ .content = PY("a") },
		{ .content = "{\"retry\":true,\"reason\":\"again\"}" },
		{ .content = PY("b") },
		{ .content = "I give up" },
	};
	struct model *m = fake_model(the_loop(), script);
	struct toolset *t = tools(bad);
	struct agent *a = make("{'max_retries_on_error':1}", m, t);
	struct heard h = { 0 };

	ask(a, "add", &h);
	CHECK_STR(text_of(h.chat), "I give up");
	CHECK_INT((long long)json_array_size(t->made), 2);
	heard_done(&h);
	agent_free(a);
	model_unref(m);
}

TEST(d29_a_failed_model_call_leaves_the_history)
{
	static const struct say script[] = {
		{ .content = PY("a") },
		{ .fault = FAULT_UNAVAILABLE },
		{ .content = "fine" },
	};
	struct model *m = fake_model(the_loop(), script);
	struct agent *a = make("{}", m, tools(good));
	struct heard h = { 0 };

	ask(a, "add", &h);
	CHECK_INT((int)h.why.code, FAULT_UNAVAILABLE);
	CHECK_INT((long long)history(a), 0);
	ask(a, "add", &h);
	CHECK_STR(text_of(h.chat), "fine");
	heard_done(&h);
	agent_free(a);
	model_unref(m);
}

/* --- approval --- */

TEST(a10_approval_suspends_and_goes_on_after_a_restart)
{
	static const struct say first[] = { { .content = PY("rm()") } };
	static const struct say second[] = { { .content = "gone" } };
	struct model *m = fake_model(the_loop(), first);
	struct toolset *t = tools(good);
	struct agent *a = make("{'approval':'always'}", m, t);
	struct heard h = { 0 };
	json_t *pending;
	char *text;

	ask(a, "clean", &h);
	CHECK_STR(types(&h), "CodeGenerationEvent ApprovalRequestedEvent");
	CHECK_STR(json_string_value(json_object_get(h.pending, "kind")),
		  "approval");
	CHECK_HAS(json_string_value(json_object_get(
			  json_object_get(h.pending, "approval"), "arguments")),
		  "rm()");
	CHECK_INT((long long)json_array_size(t->made), 0);
	text = json_dumps(h.pending, 0);
	pending = json_loads(text, 0, NULL);
	agent_free(a);
	model_unref(m);

	m = fake_model(the_loop(), second);
	t = tools(good);
	t->yes = json_string_value(json_object_get(pending, "id"));
	a = make("{'approval':'always'}", m, t);
	resume(a, pending, "{\"approved\":true}", &h);
	CHECK_STR(types(&h), "ApprovalDecidedEvent CodeExecutionEvent");
	CHECK_STR(text_of(h.chat), "gone");
	CHECK_HAS(json_string_value(json_array_get(t->made, 0)), "rm()");
	CHECK_INT((long long)history(a), 4);
	free(text);
	json_decref(pending);
	heard_done(&h);
	agent_free(a);
	model_unref(m);
}

TEST(a11_a_denial_is_said_with_its_reason)
{
	struct toolset *t = tools(NULL);
	struct agent *a = make("{'approval':'always'}", NULL, t);
	struct heard h = { 0 };
	json_t *pending;

	ask(a, PY("rm()"), &h);
	pending = json_incref(h.pending);
	resume(a, pending, "{\"approved\":false,\"reason\":\"too bold\"}", &h);
	CHECK_STR(text_of(h.chat),
		  "Code execution was not approved. Reason: too bold");
	CHECK_STR(json_string_value(json_object_get(
			  json_object_get(event_of(&h, "CodeExecutionEvent"),
					  "result"),
			  "cause")),
		  "denied");
	CHECK_INT((long long)json_array_size(t->made), 0);
	json_decref(pending);
	heard_done(&h);
	agent_free(a);
}

/* --- cancel, pause, settings --- */

TEST(d27_cancel_while_code_runs)
{
	struct toolset *t = fake_tools(the_loop(), "hang");
	struct agent *a = make("{'tool':'hang'}", NULL, t);
	struct cancel *c = cancel_new(the_loop(), NULL, clock_us() + 20000);
	struct heard h = { 0 };

	ask_list(a, json_pack("[o]", chat_text("user", PY("x"))), c, &h);
	CHECK_INT((int)h.why.code, FAULT_DEADLINE);
	CHECK_STR(types(&h), "CodeExecutionEvent");
	ask(a, "nothing", &h);
	CHECK_HAS(text_of(h.chat), "No code blocks");
	cancel_unref(c);
	heard_done(&h);
	agent_free(a);
}

static bool never(void *arg)
{
	(void)arg;
	return false;
}

TEST(d36_no_code_runs_while_paused)
{
	struct toolset *t = tools(good);
	struct agent *a = make("{}", NULL, t);
	json_t *list = json_pack("[o]", chat_text("user", PY("x")));
	struct heard h = { 0 };

	heard_begin(&h);
	agent_pause(a);
	(void)turn_begin(a, list,
			 &(struct turn_asker){ "t", "r", NULL, &hears, &h });
	(void)loop_run(the_loop(), never, NULL);
	CHECK_INT((long long)json_array_size(t->made), 0);
	agent_unpause(a);
	(void)loop_run(the_loop(), is_heard, &h);
	CHECK_STR(text_of(h.chat), "3\n");
	json_decref(list);
	heard_done(&h);
	agent_free(a);
}

TEST(a9_dump_and_load_keep_everything)
{
	static const char config[] =
		"{'languages':['python'],'sources':['coder'],"
		"'approval':'always','description':'runs code'}";
	struct agent *a = make(config, NULL, tools(good));
	json_t *want = doc(config);
	json_t *have = agent_dump(a);
	json_t *state = agent_save(a);
	struct err err = { 0 };

	CHECK(json_equal(have, want));
	CHECK_INT(agent_load(a, state, &err), 0);
	json_decref(have);
	json_decref(want);
	json_decref(state);
	agent_free(a);
}

TEST(settings_that_cannot_be_are_refused)
{
	static const char *const wrong[][2] = {
		{ "{'tool':'nothing'}", "there is no tool 'nothing'" },
		{ "{'languages':[1]}", "/languages/0" },
		{ "{'max_retries_on_error':2}", "needs a model" },
		{ "{'docker':true}", "/docker" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct toolset *t = tools(good);
		struct agent *a = NULL;
		struct err err = { 0 };
		json_t *c = doc(wrong[i][0]);

		CHECK(agent_executor(the_loop(), "box", c, NULL, t, &a, &err) <
		      0);
		CHECK_HAS(err.text, wrong[i][1]);
		json_decref(c);
		toolset_free(t);
	}
}

TAP_MAIN()
