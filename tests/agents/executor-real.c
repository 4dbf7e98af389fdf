/* SPDX-License-Identifier: Apache-2.0 */

/* The code executor agent with real boxes: what a person reads of a run. */

#include "tool-try.h"

#include "agent/agent.h"

struct ears {
	json_t *chat, *result;
	int ends;
};

static void on_event(void *arg, json_t *event)
{
	struct ears *e = arg;

	if (strcmp(chat_type(event), "CodeExecutionEvent") == 0) {
		json_decref(e->result);
		e->result = json_incref(json_object_get(event, "result"));
	}
}

static void on_over(void *arg, json_t *chat, const struct fault *why,
		    json_t *pending)
{
	struct ears *e = arg;

	(void)pending;
	if (why)
		printf("# %s\n", why->message);
	e->ends++;
	e->chat = json_incref(chat);
}

static const struct turn_events events = { on_event, on_over };

static bool is_over(void *arg)
{
	return ((struct ears *)arg)->ends > 0;
}

static struct agent *start(struct try *t, struct model *m, const char *config)
{
	const struct tool_box box = { .loop = t->loop, .policy = t->policy };
	struct tool *tool = NULL;
	struct agent *a = NULL;
	struct err err = { 0 };
	json_t *c = json_loads(config, 0, NULL);

	CHECK_INT(tool_code(&box, "run_code", &tool, &err), 0);
	try_add(t, tool);
	CHECK_INT(agent_executor(t->loop, "box", c, m, t->set, &a, &err), 0);
	CHECK_STR(err.text, "");
	t->set = NULL;
	json_decref(c);
	return a;
}

static void ask(struct try *t, struct agent *a, const char *text,
		struct ears *e)
{
	json_t *list = json_pack("[o]", chat_text("user", text));
	const struct turn_asker who = {
		.team = "team", .run = "run", .events = &events, .arg = e
	};

	json_decref(e->chat);
	json_decref(e->result);
	memset(e, 0, sizeof(*e));
	(void)turn_begin(a, list, &who);
	(void)loop_run(t->loop, is_over, e);
	CHECK_INT(e->ends, 1);
	json_decref(list);
}

static const char *text(const json_t *o, const char *name)
{
	return json_string_value(json_object_get(o, name));
}

TEST(blocks_run_in_a_box_and_are_reported)
{
	static const char *const cases[][3] = {
		{ "```python\nprint(1 + 2)\n```", "3\n", "exited" },
		{ "```sh\necho a\n```\nand\n```py\nprint('b')\n```", "a\nb\n",
		  "exited" },
		{ "```sh\nexit 3\n```", "The POSIX exit code was: 3",
		  "exited" },
		{ "```python\nprint(nothing)\n```",
		  "exited with an error (POSIX exit code: 1)", "exited" },
		{ "```python\nprint(nothing)\n```", "NameError", "exited" },
		{ "```python\n# filename: /etc/x.py\nprint(1)\n```",
		  "Filename is not in the workspace", "denied" },
	};
	struct try t;
	struct ears e = { 0 };
	struct agent *a;

	try_open(&t, NULL);
	a = start(&t, NULL, "{}");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		ask(&t, a, cases[i][0], &e);
		CHECK_HAS(text(e.chat, "content"), cases[i][1]);
		CHECK_STR(text(e.result, "cause"), cases[i][2]);
	}
	ask(&t, a, "```json\n{}\n```", &e);
	CHECK_HAS(text(e.chat, "content"), "No code blocks found");
	json_decref(e.chat);
	json_decref(e.result);
	agent_free(a);
	try_close(&t);
}

TEST(a_model_corrects_its_code)
{
	static const char recording[] =
		"{\"recording\":1,\"model\":\"gpt-4o\"}\n"
		"{\"result\":{\"content\":\"```python\\npritn(3)\\n```\"}}\n"
		"{\"result\":{\"content\":"
		"\"{\\\"retry\\\":true,\\\"reason\\\":\\\"a slip\\\"}\"}}\n"
		"{\"result\":{\"content\":\"```python\\nprint(3)\\n```\"}}\n"
		"{\"result\":{\"content\":\"it is three\"}}\n";
	struct try t;
	struct ears e = { 0 };
	struct err err = { 0 };
	struct model *m = NULL;
	struct agent *a;
	char path[256];

	try_open(&t, NULL);
	(void)snprintf(path, sizeof(path), "%s/recording", t.dir);
	try_write(path, recording);
	CHECK_INT(model_replay(t.loop, path, &m, &err), 0);
	a = start(&t, m, "{\"max_retries_on_error\":2}");
	ask(&t, a, "three, please", &e);
	CHECK_STR(text(e.chat, "content"), "it is three");
	CHECK_STR(text(e.result, "status"), "success");
	json_decref(e.chat);
	json_decref(e.result);
	agent_free(a);
	model_unref(m);
	try_close(&t);
}

TAP_MAIN()
