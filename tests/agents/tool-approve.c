/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A person is asked about a call: section 9 of the specification of agents,
 * and D34. Between a suspension and its answer the toolset is made anew, as
 * another process would.
 */

#include "tool-asked.h"

#include <pty.h>

TEST(what_acts_on_the_host_suspends_and_resumes)
{
	struct try t;
	struct tried d = { 0 };
	char id[16];
	char *ledger;

	try_open(&t, NULL);
	try_add(&t, make("touch"));
	suspend(&t, "{ \"path\": \"a\" }", &d, id);
	CHECK_INT(n_made, 0);
	CHECK_STR(text(d.pending, "kind"), "approval");
	CHECK_STR(text(d.pending, "tool"), "touch");
	CHECK_STR(text(d.pending, "agent"), "coder");
	CHECK_STR(text(d.pending, "team"), "t");
	CHECK_STR(text(d.pending, "run"), "r1");
	CHECK_STR(text(d.pending, "arguments"), "{ \"path\": \"a\" }");
	CHECK(text(d.pending, "expires_at") && text(d.pending, "requested_at"));
	CHECK_INT((int)strlen(text(d.pending, "digest")), 64);
	CHECK_INT((int)t.n_events, 1);
	CHECK_STR(text(t.events[0], "type"), "ApprovalRequestedEvent");
	/* Nobody answered: it suspends again, under the same id. */
	restart(&t);
	call(&t, "{\"path\":\"a\"}", id, &d);
	CHECK_INT(d.end, TOOL_SUSPENDED);
	CHECK_STR(text(d.pending, "id"), id);
	CHECK_INT(desk("show %s", id), 0);
	CHECK_HAS(desk_said(), "touch");
	CHECK_HAS(said, "coder");
	CHECK_HAS(said, "\"path\": \"a\"");
	CHECK_INT(desk("approve %s --reason fine", id), 0);
	restart(&t);
	call(&t, "{\"path\":\"a\"}", id, &d);
	CHECK_INT(d.end, TOOL_RESULT);
	CHECK(!d.is_error);
	CHECK_STR(d.text, "{\"path\":\"a\"}");
	CHECK_INT(n_made, 1);
	CHECK_INT((int)t.n_events, 1);
	CHECK_STR(text(t.events[0], "type"), "ApprovalDecidedEvent");
	/* Used once. */
	restart(&t);
	call(&t, "{\"path\":\"a\"}", id, &d);
	CHECK(d.is_error);
	CHECK_HAS(d.text, "Tool call was not made again. It was approved, and "
			  "the answer to '");
	CHECK_HAS(d.text, "' was used already; the outcome of that call is "
			  "unknown");
	CHECK_INT(n_made, 1);
	CHECK_INT((int)t.n_events, 1);
	{
		const json_t *e = json_object_get(t.events[0], "content");

		CHECK_STR(text(t.events[0], "type"), "ApprovalDecidedEvent");
		CHECK(json_is_true(json_object_get(e, "approved")));
		CHECK_STR(text(e, "outcome"), "unknown");
	}
	ledger = try_ledger(&t);
	CHECK_INT(try_count(ledger, "\"status\":\"unknown\""), 1);
	CHECK_INT(try_count(ledger, "\"status\":\"denied\""), 0);
	CHECK_HAS(ledger, "\"approval.request\"");
	CHECK_HAS(ledger, "\"approval.answer\"");
	CHECK_INT(try_count(ledger, "\"approved_by\""), 1);
	free(ledger);
	(void)desk_said();
	tried_done(&d);
	try_close(&t);
}

/* D34: with real processes, one that asks and one that resumes. */
TEST(another_process_resumes)
{
	struct try t;
	struct tried d = { 0 };
	char id[16] = "";
	int pair[2];
	pid_t pid;

	try_open(&t, NULL);
	CHECK_INT(pipe2(pair, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		/* A loop is not for two processes. */
		CHECK_INT(loop_new(&t.loop, NULL), 0);
		t.set = NULL;
		restart(&t);
		suspend(&t, "{\"path\":\"a\"}", &d, id);
		(void)!write(pair[1], id, sizeof(id));
		_exit(tap_bad);
	}
	CHECK_INT((int)read(pair[0], id, sizeof(id)), (int)sizeof(id));
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	CHECK_INT(desk("approve %s", id), 0);
	restart(&t);
	call(&t, "{\"path\":\"a\"}", id, &d);
	CHECK_INT(d.end, TOOL_RESULT);
	CHECK(!d.is_error);
	CHECK_INT(n_made, 1);
	(void)desk_said();
	tried_done(&d);
	try_close(&t);
}

TEST(an_answer_is_for_what_was_asked)
{
	struct try t;
	struct tried d = { 0 };
	char id[16];

	try_open(&t, NULL);
	try_add(&t, make("touch"));
	suspend(&t, "{\"path\":\"a\"}", &d, id);
	CHECK_INT(desk("approve %s", id), 0);
	/* Other arguments, another agent, another tool: void. */
	restart(&t);
	call(&t, "{\"path\":\"b\"}", id, &d);
	CHECK(d.is_error);
	CHECK_HAS(d.text, "was for something else");
	{
		const struct tool_want w = { .id = "c",
					     .name = "touch",
					     .arguments = "{\"path\":\"a\"}",
					     .agent = "other",
					     .approval = id };

		try_want(&t, &w, &d);
		CHECK_HAS(d.text, "was for something else");
	}
	CHECK_INT(n_made, 0);
	/* The very same: it holds still. */
	call(&t, "{\"path\":\"a\"}", id, &d);
	CHECK(!d.is_error);
	CHECK_INT(n_made, 1);
	/* An id that nobody gave. */
	call(&t, "{\"path\":\"a\"}", "zzzzzz", &d);
	CHECK(d.is_error);
	CHECK_INT(n_made, 1);
	(void)desk_said();
	tried_done(&d);
	try_close(&t);
}

/* Section 9, 4: calls of one answer are asked about one by one. */
TEST(calls_beside_each_other_are_asked_one_by_one)
{
	static const char *const args[] = { "{\"path\":\"a\"}",
					    "{\"path\":\"b\"}" };
	struct tried d[2] = { 0 };
	char id[2][16];
	struct try t;

	try_open(&t, NULL);
	try_add(&t, make("touch"));
	for (int i = 0; i < 2; i++) {
		const struct tool_want w = { .id = args[i],
					     .name = "touch",
					     .arguments = args[i],
					     .agent = "coder" };

		toolset_call(t.set, &w, tried_take, &d[i]);
	}
	for (int i = 0; i < 2; i++) {
		(void)loop_run(t.loop, tried_over, &d[i]);
		CHECK_INT(d[i].end, TOOL_SUSPENDED);
		(void)snprintf(id[i], sizeof(id[i]), "%s",
			       text(d[i].pending, "id"));
	}
	CHECK(strcmp(id[0], id[1]) != 0);
	CHECK_INT(desk("approve %s", id[1]), 0);
	CHECK_INT(desk("deny %s", id[0]), 0);
	restart(&t);
	call(&t, args[0], id[0], &d[0]);
	call(&t, args[1], id[1], &d[1]);
	CHECK(d[0].is_error);
	CHECK(!d[1].is_error);
	CHECK_INT(n_made, 1);
	(void)desk_said();
	tried_done(&d[0]);
	tried_done(&d[1]);
	try_close(&t);
}

TEST(a_no_is_told_with_its_reason)
{
	struct try t;
	struct tried d = { 0 };
	char id[16];

	try_open(&t, NULL);
	try_add(&t, make("touch"));
	suspend(&t, "{}", &d, id);
	CHECK_INT(desk("deny %s --reason 'not on a Friday'", id), 0);
	/* The first answer counts. */
	CHECK_INT(desk("approve %s", id), 1);
	restart(&t);
	call(&t, "{}", id, &d);
	CHECK_INT(d.end, TOOL_RESULT);
	CHECK(d.is_error);
	CHECK_STR(d.text, "Tool call was not approved. Reason: not on a "
			  "Friday");
	CHECK_INT(n_made, 0);
	(void)desk_said();
	tried_done(&d);
	try_close(&t);
}

TEST(a_request_expires)
{
	struct try t;
	struct tried d = { 0 };
	char id[16];

	try_open(&t, "version: 1\nextends: strict\n"
		     "approvals: {expire: 300ms}\n");
	try_add(&t, make("touch"));
	suspend(&t, "{}", &d, id);
	(void)usleep(400000);
	restart(&t);
	call(&t, "{}", id, &d);
	CHECK(d.is_error);
	CHECK_HAS(d.text, "not approved. Reason: nobody answered in time");
	CHECK_INT(desk("approve %s", id), 1);
	CHECK_INT(n_made, 0);
	(void)desk_said();
	tried_done(&d);
	try_close(&t);
}

TEST(always_is_remembered_for_the_same_call)
{
	struct try t;
	struct tried d = { 0 };
	char id[16];

	try_open(&t, NULL);
	try_add(&t, make("touch"));
	suspend(&t, "{\"path\":\"a\"}", &d, id);
	CHECK_INT(desk("approve %s --scope always", id), 0);
	restart(&t);
	call(&t, "{\"path\":\"a\"}", NULL, &d);
	CHECK_INT(d.end, TOOL_RESULT);
	CHECK(!d.is_error);
	call(&t, "{\"path\":\"b\"}", NULL, &d);
	CHECK_INT(d.end, TOOL_SUSPENDED);
	CHECK_INT(n_made, 1);
	/* And can be taken back. */
	CHECK_INT(desk("rules remove %s", id), 0);
	restart(&t);
	call(&t, "{\"path\":\"a\"}", NULL, &d);
	CHECK_INT(d.end, TOOL_SUSPENDED);
	CHECK_INT(n_made, 1);
	(void)desk_said();
	tried_done(&d);
	try_close(&t);
}

/* Answers from a process of its own, in a moment. */
static pid_t answer_later(const char *words)
{
	pid_t pid = fork();
	char line[600];

	if (pid != 0)
		return pid;
	(void)snprintf(line, sizeof(line),
		       "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.2; "
		       "id=$(%s/cordon-desk approvals list --json | "
		       "sed -n 's/.*\"id\":\"\\([a-z0-9]*\\)\".*/\\1/p' | "
		       "head -1); [ -z \"$id\" ] || { %s/cordon-desk approvals "
		       "%s >/dev/null; exit 0; }; done",
		       getenv("CORDON_LIBEXEC"), getenv("CORDON_LIBEXEC"),
		       words);
	(void)execl("/bin/sh", "sh", "-c", line, (char *)NULL);
	_exit(127);
}

TEST(who_is_interactive_waits_and_the_loop_does_not)
{
	struct try t;
	struct tried d = { 0 };
	pid_t pid;

	try_open(&t, NULL);
	try_set(&t, true);
	try_add(&t, make("touch"));
	pid = answer_later("approve $id --reason yes");
	call(&t, "{}", NULL, &d);
	CHECK_INT(d.end, TOOL_RESULT);
	CHECK(!d.is_error);
	CHECK_INT(n_made, 1);
	CHECK_INT((int)t.n_events, 2);
	CHECK_STR(text(t.events[0], "type"), "ApprovalRequestedEvent");
	CHECK_STR(text(t.events[1], "type"), "ApprovalDecidedEvent");
	(void)waitpid(pid, NULL, 0);
	tried_done(&d);
	try_close(&t);
}

/* At a terminal: the question is shown there, and the answer typed. */
TEST(who_sits_at_a_terminal_is_asked_there)
{
	char shown[8192] = "";
	size_t n = 0;
	bool is_answered = false;
	int status = -1;
	int tty = -1;
	pid_t pid = forkpty(&tty, NULL, NULL, NULL);

	if (pid == 0) {
		struct try t;
		struct tried d = { 0 };

		try_open(&t, NULL);
		try_set(&t, true);
		try_add(&t, make("touch"));
		call(&t, "{\"path\":\"a\"}", NULL, &d);
		CHECK(!d.is_error);
		CHECK_INT(n_made, 1);
		tried_done(&d);
		try_close(&t);
		_exit(tap_bad ? 1 : 0);
	}
	for (;;) {
		ssize_t got = read(tty, shown + n, sizeof(shown) - 1 - n);

		if (got <= 0 || (n += (size_t)got) + 1 >= sizeof(shown))
			break;
		shown[n] = '\0';
		if (is_answered || !strstr(shown, "Allow this?"))
			continue;
		is_answered = true;
		(void)!write(tty, "y\n", 2);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK_INT(status, 0);
	CHECK(is_answered);
	CHECK_HAS(shown, "touch");
	CHECK_HAS(shown, "outside of any box");
	if (tap_bad)
		printf("# %s\n", shown);
	(void)close(tty);
}

struct later {
	struct timer timer;
	struct cancel *cancel;
	int fired;
};

static void fire_later(struct timer *t)
{
	struct later *l = (struct later *)t;

	l->fired++;
	cancel_fire(l->cancel, "enough");
}

/* Section 9, 4: cancelling withdraws the request. */
TEST(cancelling_withdraws_the_request)
{
	struct later l = { .timer = { .fire = fire_later } };
	struct tool_want w = {
		.id = "c", .name = "touch", .arguments = "{}", .agent = "coder"
	};
	struct try t;
	struct tried d = { 0 };

	try_open(&t, NULL);
	try_set(&t, true);
	try_add(&t, make("touch"));
	l.cancel = cancel_new(t.loop, NULL, 0);
	w.cancel = l.cancel;
	CHECK_INT(timer_set(t.loop, &l.timer, clock_us() + 700000), 0);
	try_want(&t, &w, &d);
	CHECK_INT(l.fired, 1);
	CHECK_STR(d.text, "Tool call was cancelled: enough");
	/* The desk ends by itself, and nobody is told a second time. */
	(void)loop_run(t.loop, NULL, NULL);
	CHECK_INT(d.n, 1);
	CHECK_INT(desk("list --json"), 0);
	CHECK(strstr(desk_said(), "touch") == NULL);
	CHECK_INT(n_made, 0);
	cancel_unref(l.cancel);
	tried_done(&d);
	try_close(&t);
}

TEST(who_cannot_be_asked_says_no)
{
	struct try t;
	struct tried d = { 0 };

	/* On a terminal alone, and there is none. */
	try_open(&t, "version: 1\nextends: strict\n"
		     "approvals: {ask: [terminal]}\n");
	try_add(&t, make("touch"));
	call(&t, "{}", NULL, &d);
	CHECK_INT(d.end, TOOL_RESULT);
	CHECK(d.is_error);
	CHECK_HAS(d.text, "not approved. Reason: the policy asks on a terminal "
			  "alone");
	/* No desk at all. */
	try_write(t.policy, "version: 1\nextends: strict\n");
	restart(&t);
	(void)setenv("CORDON_LIBEXEC", "/nonexistent", 1);
	call(&t, "{}", NULL, &d);
	CHECK(d.is_error);
	CHECK_HAS(d.text, "Tool call was not approved. Reason:");
	CHECK_INT(n_made, 0);
	tried_done(&d);
	try_close(&t);
}

/* Whether a call of a tool with these settings asks. */
static bool asks(const char *policy, enum tool_approval approval,
		 bool is_read_only)
{
	struct try t;
	struct tried d = { 0 };
	struct tool *tool = make("touch");
	bool ret;

	try_open(&t, policy);
	tool->approval = approval;
	tool->is_read_only = is_read_only;
	try_add(&t, tool);
	call(&t, "{}", NULL, &d);
	ret = d.end == TOOL_SUSPENDED;
	if (!ret)
		CHECK(!d.is_error);
	tried_done(&d);
	try_close(&t);
	return ret;
}

#define RULE(approval)                                                         \
	"version: 1\nextends: strict\ntools:\n  touch: {agents: ['*'], "       \
	"approval: " approval "}\n"

TEST(who_may_tighten_and_who_may_not)
{
	/* The default rules. */
	CHECK(asks(NULL, APPROVAL_POLICY, false));
	CHECK(!asks(NULL, APPROVAL_POLICY, true));
	/* A configuration may tighten, and not loosen. */
	CHECK(asks(NULL, APPROVAL_ALWAYS, true));
	CHECK(asks(NULL, APPROVAL_NEVER, false));
	CHECK(asks(RULE("policy"), APPROVAL_NEVER, false));
	/* The operator may do both. */
	CHECK(asks(RULE("always"), APPROVAL_NEVER, true));
	CHECK(!asks(RULE("never"), APPROVAL_POLICY, false));
	CHECK(!asks(RULE("never"), APPROVAL_NEVER, false));
	CHECK(asks(RULE("never"), APPROVAL_ALWAYS, false));
	/* What is stated for all is not loosened for one. */
	CHECK(asks("version: 1\nextends: cautious\ntools:\n  touch: {agents: "
		   "['*'], approval: policy}\n",
		   APPROVAL_POLICY, true));
}

TEST(an_agent_may_have_each_call_asked)
{
	struct tool_want w = { .id = "c",
			       .name = "touch",
			       .arguments = "{}",
			       .agent = "coder",
			       .must_ask = true };
	struct tool *tool = make("touch");
	struct try t;
	struct tried d = { 0 };

	try_open(&t, RULE("never"));
	tool->is_read_only = true;
	try_add(&t, tool);
	try_want(&t, &w, &d);
	CHECK_INT(d.end, TOOL_SUSPENDED);
	w.must_ask = false;
	try_want(&t, &w, &d);
	CHECK_INT(d.end, TOOL_RESULT);
	tried_done(&d);
	try_close(&t);
}

/* code */

static struct tool *code_tool(struct try *t, const char *name,
			      const char *settings)
{
	json_t *s = settings ? json_loads(settings, 0, NULL) : NULL;
	const struct tool_box box = { .loop = t->loop,
				      .settings = s,
				      .policy = t->policy };
	struct tool *tool = NULL;
	struct err err = { 0 };

	CHECK_INT(tool_code(&box, name, &tool, &err), 0);
	json_decref(s);
	return tool;
}

TEST(code_that_a_box_contains_does_not_ask_and_cautious_does)
{
	struct try t;
	struct tried d = { 0 };
	char id[16];

	try_open(&t, "version: 1\nextends: cautious\n");
	try_add(&t, code_tool(&t, "run_python", NULL));
	try_call(&t, "run_python", "{\"code\":\"print(1)\\nprint(2)\"}", &d);
	CHECK_INT(d.end, TOOL_SUSPENDED);
	(void)snprintf(id, sizeof(id), "%s", text(d.pending, "id"));
	CHECK_STR(text(d.pending, "shown"), "print(1)\nprint(2)");
	/* The person reads the code, not its escapes. */
	CHECK_INT(desk("show %s", id), 0);
	CHECK_HAS(desk_said(), "| print(1)\n");
	CHECK_HAS(said, "timeout 30000 ms");
	CHECK_INT(desk("approve %s", id), 0);
	try_set(&t, false);
	try_add(&t, code_tool(&t, "run_python", NULL));
	{
		const struct tool_want w = {
			.id = "call_1",
			.name = "run_python",
			.arguments = "{\"code\":\"print(1)\\nprint(2)\"}",
			.agent = "coder",
			.approval = id
		};
		char *ledger;

		try_want(&t, &w, &d);
		CHECK(!d.is_error);
		CHECK_HAS(d.text, "1\\n2\\n");
		ledger = try_ledger(&t);
		/* The run says which answer it had. */
		CHECK_HAS(ledger, "\"run.start\"");
		CHECK(try_count(ledger, "\"approved_by\"") >= 2);
		free(ledger);
	}
	tried_done(&d);
	try_close(&t);
}

TEST(a_writable_volume_asks_and_is_bound_to_the_answer)
{
	struct try t;
	struct tried d = { 0 };
	char policy[600];
	char settings[300];
	char id[16];
	char dir[200];

	try_open(&t, NULL);
	(void)snprintf(dir, sizeof(dir), "%s/out", t.dir);
	(void)mkdir(dir, 0755);
	(void)snprintf(t.policy, sizeof(t.policy), "%s/cordon.yaml", t.dir);
	(void)snprintf(policy, sizeof(policy),
		       "version: 1\nsandbox:\n  mount_roots: [%s]\n", dir);
	try_write(t.policy, policy);
	(void)snprintf(settings, sizeof(settings),
		       "{\"volumes\":{\"%s\":{\"bind\":\"/workspace/out\","
		       "\"mode\":\"rw\"}}}",
		       dir);
	try_set(&t, false);
	try_add(&t, code_tool(&t, "run_python", settings));
	try_call(&t, "run_python", "{\"code\":\"print(1)\"}", &d);
	CHECK_INT(d.end, TOOL_SUSPENDED);
	CHECK_HAS(text(d.pending, "why"), "it can change");
	(void)snprintf(id, sizeof(id), "%s", text(d.pending, "id"));
	CHECK_INT(desk("approve %s", id), 0);
	/* With other limits it is something else. */
	{
		struct tool_want w = { .id = "call_1",
				       .name = "run_python",
				       .arguments = "{\"code\":\"print(1)\"}",
				       .agent = "coder",
				       .approval = id };

		(void)snprintf(settings, sizeof(settings),
			       "{\"memory\":\"100m\",\"volumes\":{\"%s\":{"
			       "\"bind\":\"/workspace/out\",\"mode\":\"rw\"}}}",
			       dir);
		try_set(&t, false);
		try_add(&t, code_tool(&t, "run_python", settings));
		try_want(&t, &w, &d);
		CHECK(d.is_error);
		CHECK_HAS(d.text, "was for something else");
	}
	(void)desk_said();
	tried_done(&d);
	try_close(&t);
}

/* A read-only one does not ask. */
TEST(a_volume_that_can_only_be_read_does_not_ask)
{
	struct try t;
	struct tried d = { 0 };
	char text_[600];
	char dir[200];

	try_open(&t, NULL);
	(void)snprintf(dir, sizeof(dir), "%s/data", t.dir);
	(void)mkdir(dir, 0755);
	(void)chmod(t.dir, 0755);
	(void)snprintf(text_, sizeof(text_), "%s/a", dir);
	try_write(text_, "hello");
	(void)snprintf(t.policy, sizeof(t.policy), "%s/cordon.yaml", t.dir);
	(void)snprintf(text_, sizeof(text_),
		       "version: 1\nsandbox:\n  mount_roots: [%s]\n", dir);
	try_write(t.policy, text_);
	(void)snprintf(text_, sizeof(text_),
		       "{\"volumes\":{\"%s\":{\"bind\":\"/workspace/data\","
		       "\"mode\":\"ro\"}}}",
		       dir);
	try_set(&t, false);
	try_add(&t, code_tool(&t, "run_python", text_));
	try_call(&t, "run_python",
		 "{\"code\":\"print(open('/workspace/data/a').read())\"}", &d);
	CHECK_INT(d.end, TOOL_RESULT);
	CHECK(!d.is_error);
	CHECK_HAS(d.text, "hello");
	tried_done(&d);
	try_close(&t);
}

/* What the policy denies, nobody is asked about. */
TEST(what_is_denied_is_not_asked)
{
	struct try t;
	struct tried d = { 0 };
	struct tool *tool;

	try_open(&t, NULL);
	tool = code_tool(&t, "run_python", "{\"memory\":\"8g\"}");
	tool->approval = APPROVAL_ALWAYS;
	try_add(&t, tool);
	try_call(&t, "run_python", "{\"code\":\"print(1)\"}", &d);
	CHECK_INT(d.end, TOOL_RESULT);
	CHECK_HAS(d.text, "denied");
	tried_done(&d);
	try_close(&t);
}

TAP_MAIN()
