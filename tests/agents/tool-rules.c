/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Answers that are remembered, section 9, 5 of the specification of agents:
 * patterns of arguments, expiry, counts, denials; and code, which a pattern
 * never allows unless the operator's policy has its class.
 */

#include "tool-asked.h"

/* The answer to a call of `touch`, in a toolset that is made anew. */
static enum tool_end ask_again(struct try *t, const char *args, bool *ret_ok)
{
	struct tried d = { 0 };
	enum tool_end end;

	restart(t);
	call(t, args, NULL, &d);
	end = d.end;
	if (ret_ok)
		*ret_ok = d.end == TOOL_RESULT && !d.is_error;
	tried_done(&d);
	return end;
}

static bool is_allowed(struct try *t, const char *args)
{
	bool ok = false;

	(void)ask_again(t, args, &ok);
	return ok;
}

static bool is_denied(struct try *t, const char *args)
{
	bool ok = false;

	return ask_again(t, args, &ok) == TOOL_RESULT && !ok;
}

static bool is_asked(struct try *t, const char *args)
{
	return ask_again(t, args, NULL) == TOOL_SUSPENDED;
}

/* Asks about it, and answers so. */
static void answer(struct try *t, const char *args, const char *words)
{
	struct tried d = { 0 };
	char id[16];

	restart(t);
	suspend(t, args, &d, id);
	if (desk("%.7s %s %s", words, id, strchr(words, ' ')) != 0)
		printf("# %s\n", desk_said());
	CHECK_INT(desk("show %s", id), 0);
	tried_done(&d);
}

TEST(a_pattern_allows_what_it_covers)
{
	struct try t;

	try_open(&t, NULL);
	answer(&t, "{\"path\":\"src/a.c\",\"n\":1}",
	       "approve --scope always --glob '$.path=src/*.c' "
	       "--equals '$.n=1'");
	CHECK(is_allowed(&t, "{\"path\":\"src/b.c\",\"n\":1}"));
	CHECK(is_allowed(&t, "{\"n\":1,\"path\":\"src/b.c\"}"));
	CHECK_INT(n_made, 2);
	/* 1 is not "1", a key more or less, a place elsewhere. */
	CHECK(is_asked(&t, "{\"path\":\"src/b.c\",\"n\":\"1\"}"));
	CHECK(is_asked(&t, "{\"path\":\"src/b.c\",\"n\":1.0}"));
	CHECK(is_asked(&t, "{\"path\":\"src/b.c\",\"n\":1,\"x\":0}"));
	CHECK(is_asked(&t, "{\"path\":\"src/b.c\"}"));
	CHECK(is_asked(&t, "{\"path\":\"src/x/b.c\",\"n\":1}"));
	CHECK(is_asked(&t, "{\"path\":\"src/../b.c\",\"n\":1}"));
	CHECK(is_asked(&t, "{\"path\":[\"src/b.c\"],\"n\":1}"));
	CHECK(is_denied(&t, "{\"path\":\"src/b.c\",\"n\":1,\"n\":2}"));
	CHECK_INT(n_made, 2);
	try_close(&t);
}

TEST(a_pattern_is_for_its_agent_and_tool)
{
	struct tool_want w = { .id = "c",
			       .name = "touch",
			       .arguments = "{\"path\":\"a\"}",
			       .agent = "other" };
	struct try t;
	struct tried d = { 0 };

	try_open(&t, NULL);
	answer(&t, "{\"path\":\"a\"}", "approve --scope always --any '$.path'");
	CHECK(is_allowed(&t, "{\"path\":\"b\"}"));
	try_want(&t, &w, &d);
	CHECK_INT(d.end, TOOL_SUSPENDED);
	try_add(&t, make("touch2"));
	w.name = "touch2";
	w.agent = "coder";
	try_want(&t, &w, &d);
	CHECK_INT(d.end, TOOL_SUSPENDED);
	/* By another rule of the policy it is another question. */
	restart(&t);
	w.name = "touch";
	w.must_ask = true;
	try_want(&t, &w, &d);
	CHECK_INT(d.end, TOOL_SUSPENDED);
	CHECK_INT(n_made, 1);
	tried_done(&d);
	try_close(&t);
}

TEST(a_remembered_no_wins)
{
	struct try t;
	struct tried d = { 0 };
	char *ledger;

	try_open(&t, NULL);
	answer(&t, "{\"path\":\"etc/a\"}",
	       "deny    --scope always --glob '$.path=etc/**' --reason never");
	answer(&t, "{\"path\":\"b\"}", "approve --scope always --any '$.path'");
	CHECK(is_allowed(&t, "{\"path\":\"b\"}"));
	CHECK(is_denied(&t, "{\"path\":\"etc/passwd\"}"));
	CHECK(is_denied(&t, "{\"path\":\"./etc//passwd\"}"));
	CHECK(is_denied(&t, "{\"path\":\"x/../etc/passwd\",\"more\":1}"));
	restart(&t);
	call(&t, "{\"path\":\"etc/x\"}", NULL, &d);
	CHECK_STR(d.text, "Tool call was not approved. Reason: never");
	CHECK_INT(n_made, 1);
	ledger = try_ledger(&t);
	CHECK_HAS(ledger, "\"pattern\":\"[{\\\"path\\\":\\\"$.path\\\"");
	free(ledger);
	tried_done(&d);
	try_close(&t);
}

TEST(rules_are_listed_counted_and_taken_back)
{
	struct try t;
	struct tried d = { 0 };
	char id[16];
	char *ledger;

	try_open(&t, NULL);
	try_add(&t, make("touch"));
	suspend(&t, "{\"path\":\"a\"}", &d, id);
	CHECK_INT(desk("approve %s --scope always --any '$.path' --expires 1h "
		       "--reason fine",
		       id),
		  0);
	CHECK(is_allowed(&t, "{\"path\":\"b\"}"));
	CHECK(is_allowed(&t, "{\"path\":\"c\"}"));
	CHECK_INT(desk("rules list"), 0);
	CHECK_HAS(desk_said(), id);
	CHECK_HAS(said, "coder: tool touch where $.path any  (fine)");
	CHECK_INT(desk("rules list --json"), 0);
	CHECK_HAS(desk_said(), "\"uses\":2");
	CHECK_HAS(said, "\"scope\":\"always\",\"decision\":\"allow\"");
	CHECK_HAS(said, "\"agent\":\"coder\"");
	CHECK_HAS(said, "\"user\":\"");
	CHECK_HAS(said, "\"arguments\":[{\"path\":\"$.path\",\"any\":true}]");
	CHECK_HAS(said, "\"expires\":\"20");
	CHECK_INT(desk("rules remove %s", id), 0);
	CHECK(is_asked(&t, "{\"path\":\"b\"}"));
	ledger = try_ledger(&t);
	CHECK_HAS(ledger, "\"decision\":\"revoke\"");
	free(ledger);
	(void)desk_said();
	tried_done(&d);
	try_close(&t);
}

TEST(a_session_has_patterns_of_its_own)
{
	struct try t;

	(void)setenv("CORDON_SESSION", "one", 1);
	try_open(&t, NULL);
	answer(&t, "{\"path\":\"a\"}",
	       "approve --scope session --glob '$.path=*'");
	CHECK(is_allowed(&t, "{\"path\":\"b\"}"));
	(void)setenv("CORDON_SESSION", "two", 1);
	CHECK(is_asked(&t, "{\"path\":\"b\"}"));
	(void)setenv("CORDON_SESSION", "one", 1);
	/* A no of the session wins over a yes for ever, and the reverse. */
	answer(&t, "{\"path\":1}", "deny    --scope session");
	answer(&t, "{\"path\":\"x/y\"}",
	       "approve --scope always --any '$.path'");
	CHECK(is_denied(&t, "{\"path\":1}"));
	(void)setenv("CORDON_SESSION", "two", 1);
	CHECK(is_allowed(&t, "{\"path\":1}"));
	try_close(&t);
}

TEST(a_rule_expires)
{
	struct try t;

	try_open(&t, NULL);
	answer(&t, "{\"path\":\"a\"}",
	       "approve --scope always --any '$.path' --expires 1s");
	(void)usleep(1100000);
	CHECK(is_asked(&t, "{\"path\":\"a\"}"));
	try_close(&t);
}

TEST(answers_that_are_no_rule)
{
	static const struct {
		const char *words, *why;
	} rows[] = {
		{ "--any '$.path'", "--scope session or always" },
		{ "--expires 1h", "--scope session or always" },
		{ "--scope always --expires 2001-01-01T00:00:00Z",
		  "over already" },
		{ "--scope always --expires soon", "a time such as 2h" },
		{ "--scope always --any path", "takes $.PATH" },
		{ "--scope always --equals '$.path=a'", "stands in quotes" },
		{ "--scope always --glob '$.path=[a]'", "has no meaning" },
		/* It must fit the call that it is said of, and all of it. */
		{ "--scope always --glob '$.path=b'", "does not fit" },
		{ "--scope always --any '$.other'", "must be told of" },
	};
	struct try t;
	struct tried d = { 0 };
	char id[16];

	try_open(&t, NULL);
	try_add(&t, make("touch"));
	suspend(&t, "{\"path\":\"a\"}", &d, id);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CHECK_INT(desk("approve %s %s", id, rows[i].words), 125);
		CHECK_HAS(desk_said(), rows[i].why);
	}
	/* It waits still, and nothing was kept. */
	CHECK_INT(desk("rules list"), 0);
	CHECK_HAS(desk_said(), "no answer stands");
	CHECK_INT(desk("approve %s", id), 0);
	(void)desk_said();
	tried_done(&d);
	try_close(&t);
}

/* code */

static void use_code(struct try *t, const char *name)
{
	const struct tool_box box = { .loop = t->loop, .policy = t->policy };
	struct tool *tool = NULL;
	struct err err = { 0 };

	try_set(t, false);
	CHECK_INT(tool_code(&box, name, &tool, &err), 0);
	try_add(t, tool);
}

TEST(code_is_remembered_by_its_hash_alone)
{
	struct try t;
	struct tried d = { 0 };
	char id[16];

	try_open(&t, "version: 1\nextends: cautious\n");
	use_code(&t, "run_python");
	try_call(&t, "run_python", "{\"code\":\"print(1)\"}", &d);
	CHECK_INT(d.end, TOOL_SUSPENDED);
	(void)snprintf(id, sizeof(id), "%s", text(d.pending, "id"));
	CHECK_INT(desk("approve %s --scope always --any '$.code'", id), 125);
	CHECK_HAS(desk_said(), "approvals.code_patterns");
	/* A no may have a pattern: it opens nothing. */
	CHECK_INT(desk("approve %s --scope always", id), 0);
	use_code(&t, "run_python");
	try_call(&t, "run_python", "{\"code\":\"print(1)\"}", &d);
	CHECK_INT(d.end, TOOL_RESULT);
	CHECK_HAS(d.text, "1\\n");
	try_call(&t, "run_python", "{\"code\":\"print(2)\"}", &d);
	CHECK_INT(d.end, TOOL_SUSPENDED);
	(void)snprintf(id, sizeof(id), "%s", text(d.pending, "id"));
	CHECK_INT(desk("deny %s --scope always --glob '$.code=print(2**'", id),
		  0);
	try_call(&t, "run_python", "{\"code\":\"print(22)\"}", &d);
	CHECK_HAS(d.text, "not approved. Reason: denied before");
	(void)desk_said();
	tried_done(&d);
	try_close(&t);
}

#define CONTAINED                                                              \
	"version: 1\nextends: cautious\napprovals: {code_patterns: "           \
	"[contained]}\n"

TEST(a_class_of_code_that_the_policy_allows)
{
	struct try t;
	struct tried d = { 0 };
	char id[16];

	try_open(&t, CONTAINED);
	use_code(&t, "run_python");
	try_call(&t, "run_python", "{\"code\":\"print(1)\"}", &d);
	(void)snprintf(id, sizeof(id), "%s", text(d.pending, "id"));
	CHECK_INT(desk("show %s", id), 0);
	CHECK_HAS(desk_said(), "class      contained");
	CHECK_INT(desk("approve %s --scope always --any '$.code'", id), 0);
	use_code(&t, "run_python");
	try_call(&t, "run_python", "{\"code\":\"print(2)\"}", &d);
	CHECK_INT(d.end, TOOL_RESULT);
	CHECK_HAS(d.text, "2\\n");
	/* The operator takes the class back: the rule holds no more. */
	try_write(t.policy, "version: 1\nextends: cautious\n");
	use_code(&t, "run_python");
	try_call(&t, "run_python", "{\"code\":\"print(3)\"}", &d);
	CHECK_INT(d.end, TOOL_SUSPENDED);
	(void)desk_said();
	tried_done(&d);
	try_close(&t);
}

/* What can be written on the host is in no class. */
TEST(code_that_crosses_the_wall_is_in_no_class)
{
	struct try t;
	struct tried d = { 0 };
	char words[600];
	char dir[200];
	char id[16];
	json_t *settings;

	try_open(&t, NULL);
	(void)snprintf(dir, sizeof(dir), "%s/out", t.dir);
	(void)mkdir(dir, 0755);
	(void)snprintf(t.policy, sizeof(t.policy), "%s/cordon.yaml", t.dir);
	(void)snprintf(words, sizeof(words),
		       "version: 1\nsandbox:\n  mount_roots: [%s]\n"
		       "approvals: {code_patterns: [contained]}\n",
		       dir);
	try_write(t.policy, words);
	settings = json_pack("{s:{s:{s:s, s:s}}}", "volumes", dir, "bind",
			     "/workspace/out", "mode", "rw");
	{
		const struct tool_box box = { .loop = t.loop,
					      .settings = settings,
					      .policy = t.policy };
		struct tool *tool = NULL;
		struct err err = { 0 };

		try_set(&t, false);
		CHECK_INT(tool_code(&box, "run_python", &tool, &err), 0);
		try_add(&t, tool);
	}
	try_call(&t, "run_python", "{\"code\":\"print(1)\"}", &d);
	CHECK_INT(d.end, TOOL_SUSPENDED);
	(void)snprintf(id, sizeof(id), "%s", text(d.pending, "id"));
	CHECK_INT(desk("approve %s --scope always --any '$.code'", id), 125);
	(void)desk_said();
	json_decref(settings);
	tried_done(&d);
	try_close(&t);
}

/* Files: the path is the arguments', the directory the limits'. */
TEST(writing_files_by_a_pattern)
{
	struct try t;
	struct tried d = { 0 };
	struct tool *tool = NULL;
	struct err err = { 0 };
	char dir[200];
	char id[16];
	int fd;

	try_open(&t, NULL);
	(void)snprintf(dir, sizeof(dir), "%s/work", t.dir);
	(void)mkdir(dir, 0755);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_INT(tool_files(t.loop, fd, "write_file", &tool, &err), 0);
	try_add(&t, tool);
	try_call(&t, "write_file", "{\"path\":\"a.txt\",\"content\":\"x\"}",
		 &d);
	CHECK_INT(d.end, TOOL_SUSPENDED);
	(void)snprintf(id, sizeof(id), "%s", text(d.pending, "id"));
	CHECK_INT(desk("approve %s --scope always --glob '$.path=*.txt' --any "
		       "'$.content'",
		       id),
		  0);
	try_call(&t, "write_file", "{\"path\":\"b.txt\",\"content\":\"yy\"}",
		 &d);
	CHECK_INT(d.end, TOOL_RESULT);
	CHECK(!d.is_error);
	try_call(&t, "write_file", "{\"path\":\"b.sh\",\"content\":\"yy\"}",
		 &d);
	CHECK_INT(d.end, TOOL_SUSPENDED);
	(void)desk_said();
	tried_done(&d);
	try_close(&t);
	(void)close(fd);
}

/* A box with a way out is in no class, and where it goes is told. */
TEST(what_a_box_can_reach_is_bound_to_the_answer)
{
	struct try t;
	struct tried d = { 0 };
	char id[16];

	try_open(&t, CONTAINED "network: {allow: [{host: api.example.org}]}\n");
	use_code(&t, "run_python");
	try_call(&t, "run_python", "{\"code\":\"print(1)\"}", &d);
	CHECK_INT(d.end, TOOL_SUSPENDED);
	(void)snprintf(id, sizeof(id), "%s", text(d.pending, "id"));
	CHECK_INT(desk("show %s", id), 0);
	CHECK_HAS(desk_said(), "may api.example.org:443");
	CHECK(!strstr(said, "network none"));
	CHECK(!strstr(said, "class "));
	CHECK_INT(desk("approve %s --scope always --any '$.code'", id), 125);
	CHECK_INT(desk("approve %s", id), 0);
	/* Another host is another question. */
	try_write(t.policy,
		  CONTAINED "network: {allow: [{host: evil.example.org}]}\n");
	use_code(&t, "run_python");
	{
		const struct tool_want w = {
			.id = "call_1",
			.name = "run_python",
			.arguments = "{\"code\":\"print(1)\"}",
			.agent = "coder",
			.approval = id
		};

		try_want(&t, &w, &d);
		CHECK_HAS(d.text, "was for something else");
	}
	(void)desk_said();
	tried_done(&d);
	try_close(&t);
}

/* Section 9, 7: nobody who could be asked is a no, whoever waits. */
TEST(a_policy_that_names_no_approver_loads_and_denies)
{
	struct try t;
	struct tried d = { 0 };

	try_open(&t, "version: 1\nextends: strict\napprovals: {ask: []}\n");
	for (int interactive = 0; interactive < 2; interactive++) {
		try_set(&t, interactive);
		try_add(&t, make("touch"));
		call(&t, "{}", NULL, &d);
		CHECK_INT(d.end, TOOL_RESULT);
		CHECK(d.is_error);
		CHECK_HAS(d.text, "Tool call was not approved. Reason:");
	}
	CHECK_INT(n_made, 0);
	CHECK_INT(desk("list"), 0);
	CHECK_HAS(desk_said(), "nothing waits");
	tried_done(&d);
	try_close(&t);
}

/* Section 9, 6: who answers is who the kernel says, and never a box. */
TEST(an_approver_is_who_the_kernel_says)
{
	struct try t;
	struct tried d = { 0 };
	char id[16];

	try_open(&t, NULL);
	try_add(&t, make("touch"));
	suspend(&t, "{}", &d, id);
	(void)setenv("USER", "mallory", 1);
	(void)setenv("LOGNAME", "mallory", 1);
	CHECK_INT(desk("approve %s", id), 0);
	CHECK_INT(desk("show %s --json", id), 0);
	CHECK_HAS(desk_said(), "\"by\":\"");
	CHECK(!strstr(said, "mallory"));
	tried_done(&d);
	try_close(&t);
}

TEST(code_in_a_box_cannot_answer)
{
	struct try t;
	struct tried d = { 0 };
	char args[900];
	char id[16];

	try_open(&t, NULL);
	try_add(&t, make("touch"));
	suspend(&t, "{}", &d, id);
	use_code(&t, "run_python");
	(void)snprintf(args, sizeof(args),
		       "{\"code\":\"import os, shutil\\nd = '%s'\\n"
		       "print(os.path.exists(d), 'CORDON_STATE_DIR' in "
		       "os.environ, shutil.which('cordon'))\\ntry:\\n"
		       " os.makedirs(d); open(d + '/rules.json', 'w')\\n"
		       "except OSError: print('no')\"}",
		       getenv("CORDON_STATE_DIR"));
	try_call(&t, "run_python", args, &d);
	CHECK_INT(d.end, TOOL_RESULT);
	CHECK_HAS(d.text, "False False");
	CHECK_INT(desk("rules list"), 0);
	CHECK_HAS(desk_said(), "no answer stands");
	CHECK_INT(desk("show %s", id), 0);
	CHECK_HAS(desk_said(), "state      waiting");
	tried_done(&d);
	try_close(&t);
}

TAP_MAIN()
