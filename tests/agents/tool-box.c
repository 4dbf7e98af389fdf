/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Tools in real boxes: run_python, run_shell, run_code, programs. Also as an
 * ordinary user.
 */

#include "tool-try.h"

#include <dirent.h>

static struct tool *code_tool(struct try *t, const char *name,
			      const char *settings)
{
	json_t *s = settings ? json_loads(settings, 0, NULL) : NULL;
	const struct tool_box box = { .loop = t->loop,
				      .settings = s,
				      .policy = t->policy };
	struct tool *tool = NULL;
	struct err err = { 0 };

	if (tool_code(&box, name, &tool, &err) < 0) {
		printf("# %s\n", err.text);
		exit(1);
	}
	json_decref(s);
	return tool;
}

/* A member of the JSON text that the model reads. */
static json_t *read_text(const struct tried *d)
{
	json_t *o = json_loads(d->text, 0, NULL);

	CHECK(o != NULL);
	return o;
}

static void check_text(const struct tried *d, bool success, const char *cause,
		       const char *output)
{
	json_t *o = read_text(d);

	CHECK_INT(d->is_error, !success);
	CHECK_INT(json_is_true(json_object_get(o, "success")), success);
	CHECK_STR(json_string_value(json_object_get(o, "cause")), cause);
	CHECK_HAS(json_string_value(json_object_get(o, "output")), output);
	CHECK_INT((int)json_object_size(o), 4);
	json_decref(o);
}

/* T1, T2, T3 of the code executor's cases. */
TEST(python)
{
	struct try t;
	struct tried d = { 0 };
	char told[64] = "";
	char *ledger;

	try_open(&t, NULL);
	try_add(&t, code_tool(&t, "run_python", NULL));
	try_call(&t, "run_python", "{\"code\":\"print(6 * 7)\"}", &d);
	check_text(&d, true, "exited", "42\n");
	CHECK_STR(json_string_value(json_object_get(d.detail, "stdout")),
		  "42\n");
	CHECK(json_is_object(json_object_get(d.detail, "limits")));
	/* Progress is what it printed, in one piece or in several. */
	for (size_t i = 0; i < t.n_events; i++)
		(void)strncat(told,
			      json_string_value(
				      json_object_get(t.events[i], "text")),
			      sizeof(told) - strlen(told) - 1);
	CHECK_STR(told, "42\n");
	try_call(&t, "run_python", "{\"code\":\"print(nothing)\"}", &d);
	check_text(&d, false, "exited", "NameError");
	try_call(&t, "run_python", "{\"cod\":1}", &d);
	CHECK_HAS(d.text, "'code' is missing");
	ledger = try_ledger(&t);
	CHECK_INT(try_count(ledger, "\"run.start\""), 2);
	CHECK_INT(try_count(ledger, "\"tool.call\""), 3);
	CHECK_INT(try_count(ledger, "\"agent\":\"coder\""), 5);
	free(ledger);
	tried_done(&d);
	try_close(&t);
}

TEST(shell_lines_are_classified)
{
	struct try t;
	struct tried d = { 0 };

	try_open(&t, "version: 1\nextends: shell-tools\n"
		     "commands: {deny: [date]}\n");
	try_add(&t, code_tool(&t, "run_shell", NULL));
	try_call(&t, "run_shell", "{\"command\":\"echo b a | wc -w && true\"}",
		 &d);
	check_text(&d, true, "exited", "2\n");
	try_call(&t, "run_shell", "{\"command\":\"date\"}", &d);
	check_text(&d, false, "denied", "date");
	try_call(&t, "run_shell", "{\"command\":\"echo $(id)\"}", &d);
	check_text(&d, false, "denied", "");
	try_call(&t, "run_shell", "{\"command\":\"rm -rf /\"}", &d);
	check_text(&d, false, "denied", "rm");
	CHECK_STR(json_string_value(json_object_get(d.detail, "cause")),
		  "denied");
	tried_done(&d);
	try_close(&t);
}

/* Without a list of commands a line is only taken apart. */
TEST(shell_lines_without_a_list)
{
	struct try t;
	struct tried d = { 0 };

	try_open(&t, NULL);
	try_add(&t, code_tool(&t, "run_shell", NULL));
	try_call(&t, "run_shell", "{\"command\":\"id -u; cat /etc/shadow\"}",
		 &d);
	check_text(&d, false, "exited", "65534\n");
	try_call(&t, "run_shell", "{\"command\":\"cat < /etc/passwd\"}", &d);
	check_text(&d, false, "denied", "only plain words");
	tried_done(&d);
	try_close(&t);
}

TEST(code_in_blocks)
{
	struct try t;
	struct tried d = { 0 };

	try_open(&t, NULL);
	try_add(&t, code_tool(&t, "run_code", NULL));
	try_call(&t, "run_code", "{\"code\":\"print(1)\"}", &d);
	check_text(&d, true, "exited", "1\n");
	try_call(&t, "run_code", "{\"code\":\"echo hi\",\"language\":\"sh\"}",
		 &d);
	check_text(&d, true, "exited", "hi\n");
	try_call(&t, "run_code",
		 "{\"blocks\":[{\"language\":\"python\",\"code\":\"X = 5\\n"
		 "print(X)\",\"filename\":\"m.py\"},{\"language\":\"sh\","
		 "\"code\":\"python3 -c 'import m'; exit 3\"},{\"code\":"
		 "\"print('never')\"}]}",
		 &d);
	check_text(&d, false, "exited", "5\n5\n");
	CHECK_INT((int)json_array_size(json_object_get(d.detail, "runs")), 2);
	try_call(&t, "run_code", "{\"code\":\"x\",\"language\":\"brainfuck\"}",
		 &d);
	check_text(&d, false, "not_found", "brainfuck");
	try_call(&t, "run_code", "{}", &d);
	CHECK_HAS(d.text, "The arguments are wrong");
	tried_done(&d);
	try_close(&t);
}

/* 4.2 of the code executor, by the field and by the first line. */
TEST(file_names_are_refused_as_results)
{
	static const struct {
		const char *args, *cause, *text;
	} rows[] = {
		{ "{\"code\":\"print(1)\",\"filename\":\"../x.py\"}", "denied",
		  "Filename is not in the workspace" },
		{ "{\"code\":\"print(1)\",\"filename\":\"/x.py\"}", "denied",
		  "Filename is not in the workspace" },
		{ "{\"code\":\"# filename: /x.py\\nprint(1)\"}", "denied",
		  "Filename is not in the workspace" },
		{ "{\"code\":\"print(1)\",\"filename\":\"a/\"}", "denied",
		  "Filename is not valid" },
	};
	struct try t;
	struct tried d = { 0 };

	try_open(&t, NULL);
	try_add(&t, code_tool(&t, "run_code", NULL));
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		try_call(&t, "run_code", rows[i].args, &d);
		check_text(&d, false, rows[i].cause, rows[i].text);
	}
	tried_done(&d);
	try_close(&t);
}

/* A name of its own does not get round the rule for what it is. */
TEST(a_renamed_tool_is_what_it_was)
{
	struct try t;
	struct tried d = { 0 };
	struct tool *tool;
	json_t *list;
	char *ledger;

	try_open(&t, "version: 1\nextends: strict\ntools:\n"
		     "  look: {agents: ['*']}\n  look2: {agents: ['*']}\n"
		     "  run_shell: {agents: [boss]}\n"
		     "  run_python: {agents: ['*'], sandbox: {memory: 64m}}\n");
	tool = code_tool(&t, "run_shell", NULL);
	(void)strcpy(tool->name, "look");
	try_add(&t, tool);
	tool = code_tool(&t, "run_python", NULL);
	(void)strcpy(tool->name, "look2");
	try_add(&t, tool);
	try_call(&t, "look", "{\"command\":\"ls\"}", &d);
	CHECK(d.is_error);
	CHECK_HAS(d.text, "tool 'run_shell' is not given to agent 'coder'");
	try_call(&t, "look2", "{\"code\":\"print(1)\"}", &d);
	CHECK_INT(json_integer_value(
			  json_object_get(json_object_get(d.detail, "limits"),
					  "memory")),
		  64 << 20);
	list = toolset_list_for(t.set, "coder");
	CHECK_INT((int)json_array_size(list), 1);
	json_decref(list);
	list = toolset_list_for(t.set, "boss");
	CHECK_INT((int)json_array_size(list), 2);
	json_decref(list);
	ledger = try_ledger(&t);
	CHECK_INT(try_count(ledger, "\"tool_kind\":\"run_shell\""), 1);
	free(ledger);
	tried_done(&d);
	try_close(&t);
}

TEST(limits_of_a_tool_are_narrower)
{
	struct try t;
	struct tried d = { 0 };

	try_open(&t, "version: 1\nextends: strict\ntools:\n"
		     "  run_python: {agents: ['*'], sandbox: {memory: 64m, "
		     "timeout: 1s}}\n  '*': {agents: ['*'], sandbox: "
		     "{memory: 32m}}\n");
	try_add(&t, code_tool(&t, "run_python", NULL));
	try_call(&t, "run_python",
		 "{\"code\":\"x = bytearray(200 << 20)\\nprint(len(x))\"}", &d);
	check_text(&d, false, "memory", "memory");
	CHECK_INT(json_integer_value(
			  json_object_get(json_object_get(d.detail, "limits"),
					  "memory")),
		  32 << 20);
	try_call(&t, "run_python",
		 "{\"code\":\"import time\\ntime.sleep(20)\"}", &d);
	check_text(&d, false, "timeout", "Timeout");
	tried_done(&d);
	try_close(&t);
}

TEST(settings_may_not_pass_the_ceiling)
{
	struct try t;
	struct tried d = { 0 };

	try_open(&t, "version: 1\nextends: strict\ntools:\n"
		     "  run_python: {agents: ['*'], sandbox: {memory: 64m}}\n"
		     "  run_code: {agents: ['*']}\n");
	try_add(&t, code_tool(&t, "run_python", "{\"memory\":\"128m\"}"));
	try_add(&t, code_tool(&t, "run_code",
			      "{\"memory\":\"1g\",\"policy\":\"build\"}"));
	try_call(&t, "run_python", "{\"code\":\"print(1)\"}", &d);
	check_text(&d, false, "denied", "memory is above the ceiling 64m");
	try_call(&t, "run_code", "{\"code\":\"print(1)\"}", &d);
	check_text(&d, false, "denied", "is above the ceiling 256m");
	tried_done(&d);
	try_close(&t);
}

TEST(wrong_settings_are_found_when_the_tool_is_made)
{
	struct try t;
	struct err err = { 0 };
	struct tool *tool = NULL;
	json_t *s = json_pack("{s:s}", "memroy", "1g");

	try_open(&t, NULL);
	{
		const struct tool_box box = { .loop = t.loop, .settings = s };

		CHECK(tool_code(&box, "run_python", &tool, &err) < 0);
		CHECK_HAS(err.text, "memroy");
		CHECK_INT(tool_code(&box, "run_perl", &tool, &err), -ENOENT);
	}
	json_decref(s);
	try_close(&t);
}

TEST(long_output_is_cut_and_is_json_still)
{
	struct try t;
	struct tried d = { 0 };
	struct tool *tool;

	try_open(&t, NULL);
	tool = code_tool(&t, "run_python", NULL);
	tool->max_result = 2000;
	try_add(&t, tool);
	try_call(&t, "run_python",
		 "{\"code\":\"print('\\\\n' * 50000 + '\\\"' * 50000)\"}", &d);
	check_text(&d, true, "exited", "bytes left out");
	CHECK(strlen(d.text) <= 2000);
	CHECK(json_string_length(json_object_get(d.detail, "stdout")) > 90000);
	tried_done(&d);
	try_close(&t);
}

struct later {
	struct timer timer;
	struct cancel *cancel;
};

static void fire_later(struct timer *t)
{
	cancel_fire(((struct later *)t)->cancel, "enough");
}

/* Processes that have this word in their command line. */
static int count_processes(const char *word)
{
	DIR *proc = opendir("/proc");
	struct dirent *e;
	int n = 0;

	while (proc && (e = readdir(proc))) {
		char path[300];
		char line[4096];
		ssize_t len;
		int fd;

		(void)snprintf(path, sizeof(path), "/proc/%s/cmdline",
			       e->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		len = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
		fd_close(&fd);
		if (len > 0)
			n += memmem(line, (size_t)len, word, strlen(word)) !=
			     NULL;
	}
	if (proc)
		(void)closedir(proc);
	return n;
}

/* D27's part: nothing of the box is left, and the next call works. */
TEST(cancelling_kills_the_box)
{
	struct later l = { .timer = { .fire = fire_later } };
	struct tool_want w = { .id = "c", .name = "run_shell", .agent = "a" };
	struct try t;
	struct tried d = { 0 };
	char args[100];
	char word[40];
	int64_t begin;

	(void)snprintf(word, sizeof(word), "1000%d", (int)getpid());
	(void)snprintf(args, sizeof(args), "{\"command\":\"sleep %s\"}", word);
	try_open(&t, NULL);
	try_add(&t, code_tool(&t, "run_shell", NULL));
	l.cancel = cancel_new(t.loop, NULL, 0);
	w.cancel = l.cancel;
	w.arguments = args;
	begin = clock_us();
	CHECK_INT(timer_set(t.loop, &l.timer, begin + 300000), 0);
	try_want(&t, &w, &d);
	CHECK(clock_us() - begin < 3000000);
	check_text(&d, false, "cancelled", "");
	CHECK_STR(json_string_value(json_object_get(d.detail, "cancel_reason")),
		  "enough");
	CHECK_INT(count_processes(word), 0);
	cancel_unref(l.cancel);
	try_call(&t, "run_shell", "{\"command\":\"echo on\"}", &d);
	check_text(&d, true, "exited", "on\n");
	tried_done(&d);
	try_close(&t);
}

TEST(a_toolset_that_goes_ends_its_boxes)
{
	struct tried d = { 0 };
	struct try t;
	char args[100];
	char word[40];
	const struct tool_want w = {
		.id = "c", .name = "run_shell", .arguments = args, .agent = "a"
	};
	struct tried once = { 0 };

	(void)snprintf(word, sizeof(word), "1000%d", (int)getpid());
	(void)snprintf(args, sizeof(args), "{\"command\":\"sleep %s\"}", word);
	try_open(&t, NULL);
	try_add(&t, code_tool(&t, "run_shell", NULL));
	toolset_call(t.set, &w, tried_take, &d);
	try_call(&t, "run_shell", "{\"command\":\"echo on\"}", &once);
	CHECK_INT(d.n, 0);
	try_close(&t);
	CHECK_INT(d.n, 1);
	CHECK_INT(count_processes(word), 0);
	tried_done(&d);
	tried_done(&once);
}

/* D28 with boxes: all at once, one handle, one result each. */
TEST(boxes_run_beside_each_other)
{
	enum { N = 6 };
	struct tried *d = calloc(N, sizeof(*d));
	struct try t;
	int64_t begin;
	int n = 0;

	if (!d)
		exit(1);
	try_open(&t, NULL);
	try_add(&t, code_tool(&t, "run_shell", NULL));
	begin = clock_us();
	for (int i = 0; i < N; i++) {
		char args[64];
		const struct tool_want w = { .id = "c",
					     .name = "run_shell",
					     .arguments = args,
					     .agent = "a" };

		(void)snprintf(args, sizeof(args),
			       "{\"command\":\"sleep 1; echo n%d\"}", i);
		toolset_call(t.set, &w, tried_take, &d[i]);
	}
	for (int i = 0; i < N; i++)
		while (d[i].n == 0)
			(void)loop_run(t.loop, tried_over, &d[i]);
	/* One after the other would take six seconds. */
	CHECK(clock_us() - begin < 4500000);
	for (int i = 0; i < N; i++) {
		char want[16];

		(void)snprintf(want, sizeof(want), "n%d\n", i);
		check_text(&d[i], true, "exited", want);
		n += d[i].n;
		tried_done(&d[i]);
	}
	CHECK_INT(n, N);
	free(d);
	try_close(&t);
}

/* programs as tools */

static int program(struct try *t, const char *name, const char *text,
		   const char *about, struct tool **ret, struct err *err)
{
	const struct tool_box box = { .loop = t->loop, .policy = t->policy };
	char path[300];
	char beside[310];

	(void)snprintf(path, sizeof(path), "%s/%s", t->dir, name);
	(void)snprintf(beside, sizeof(beside), "%s.json", path);
	try_write(path, text);
	try_write(beside, about);
	return tool_program(&box, path, ret, err);
}

#define COUNT                                                                  \
	"{\"name\":\"count\",\"description\":\"counts words\","                \
	"\"parameters\":{\"type\":\"object\",\"properties\":{\"text\":{"       \
	"\"type\":\"string\"}},\"required\":[\"text\"]},\"timeout\":10}"

TEST(a_script_is_a_tool)
{
	struct try t;
	struct tried d = { 0 };
	struct tool *tool = NULL;
	struct err err = { 0 };

	try_open(&t, NULL);
	CHECK_INT(program(&t, "count.py",
			  "import json, sys\n"
			  "a = json.load(sys.stdin)\n"
			  "if not a['text']: sys.exit('no text')\n"
			  "print(len(a['text'].split()))\n",
			  COUNT, &tool, &err),
		  0);
	try_add(&t, tool);
	CHECK_INT(program(&t, "where",
			  "#!/usr/bin/env -S python3\nimport os\n"
			  "print(__file__, os.getuid(), os.listdir('/home') if "
			  "os.path.exists('/home') else [])\n",
			  "{\"name\":\"where\",\"description\":\"d\","
			  "\"parameters\":{\"type\":\"object\"}}",
			  &tool, &err),
		  0);
	try_add(&t, tool);
	try_call(&t, "count", "{\"text\":\"one two three\"}", &d);
	CHECK(!d.is_error);
	CHECK_STR(d.text, "3\n");
	CHECK(json_is_object(d.detail));
	try_call(&t, "count", "{\"text\":\"\"}", &d);
	check_text(&d, false, "exited", "no text");
	try_call(&t, "count", "{}", &d);
	CHECK_HAS(d.text, "'text' is missing");
	/* In a box, as nobody. */
	try_call(&t, "where", "{}", &d);
	CHECK_STR(d.text, "/workspace/where 65534 []\n");
	tried_done(&d);
	try_close(&t);
}

/* What is no script is mounted, if the policy gives that. */
TEST(a_program_is_a_tool)
{
	struct try t;
	struct tried d = { 0 };
	struct tool *tool = NULL;
	struct err err = { 0 };
	char path[200];
	char line[600];

	try_open(&t, NULL);
	(void)chmod(t.dir, 0755);
	(void)snprintf(path, sizeof(path), "%s/bin", t.dir);
	(void)mkdir(path, 0755);
	(void)snprintf(line, sizeof(line), "cp /bin/cat %s/echo", path);
	CHECK_INT(system(line), 0);
	(void)snprintf(line, sizeof(line), "%s/echo.json", path);
	try_write(line, "{\"name\":\"echo\",\"description\":\"d\","
			"\"parameters\":{\"type\":\"object\"}}");
	(void)snprintf(path, sizeof(path), "%s/bin/echo", t.dir);
	for (int i = 0; i < 2; i++) {
		struct tool_box box = { .loop = t.loop };

		if (i == 1) {
			(void)snprintf(t.policy, sizeof(t.policy),
				       "%s/cordon.yaml", t.dir);
			(void)snprintf(line, sizeof(line),
				       "version: 1\nsandbox:\n  mount_roots: "
				       "[%s/bin]\n",
				       t.dir);
			try_write(t.policy, line);
			try_set(&t, false);
		}
		box.policy = t.policy;
		CHECK_INT(tool_program(&box, path, &tool, &err), 0);
		try_add(&t, tool);
		try_call(&t, "echo", "{\"a\":[1]}", &d);
		if (i == 0)
			check_text(&d, false, "denied", "mount");
		else
			CHECK_STR(d.text, "{\"a\":[1]}");
	}
	/* Another one in its place is not the one that was given. */
	(void)snprintf(line, sizeof(line), "cp --remove-destination /bin/id %s",
		       path);
	CHECK_INT(system(line), 0);
	try_call(&t, "echo", "{\"a\":[1]}", &d);
	CHECK_HAS(d.text, "is not what it was");
	tried_done(&d);
	try_close(&t);
}

TEST(what_is_beside_a_program_is_checked)
{
	static const struct {
		const char *about, *why;
	} bad[] = {
		{ "{\"name\":\"x\",\"description\":\"d\"}", "'parameters'" },
		{ "{\"name\":\"x\",\"description\":\"d\",\"parameters\":{"
		  "\"if\":1}}",
		  "the keyword 'if'" },
		{ "{\"name\":\"x\",\"description\":\"d\",\"parameters\":{},"
		  "\"aproval\":\"never\"}",
		  "'aproval' is not known" },
		{ "{\"name\":\"x\",\"description\":\"d\",\"parameters\":{},"
		  "\"approval\":\"no\"}",
		  "approval: not" },
		{ "{\"name\":\"x\",\"description\":\"d\",\"parameters\":{},"
		  "\"timeout\":\"1\"}",
		  "timeout: not" },
		{ "{\"name\":\"x\",\"description\":\"d\",\"parameters\":{},"
		  "\"language\":\"latin\"}",
		  "'latin' is not known" },
		{ "{\n\"name\"", "x.py.json:2:" },
		{ "[]", "not an object" },
	};
	struct try t;

	try_open(&t, NULL);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct err err = { 0 };
		struct tool *tool = NULL;

		CHECK(program(&t, "x.py", "print(1)", bad[i].about, &tool,
			      &err) < 0);
		CHECK_HAS(err.text, bad[i].why);
	}
	try_close(&t);
}

TAP_MAIN()
