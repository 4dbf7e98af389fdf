/* SPDX-License-Identifier: Apache-2.0 */

/* Agents as tools of agents: turns within turns, and what is left of them. */

#include "tool-try.h"

#include "agent/agent.h"
#include "agent/chat.h"

#define ANSWER(text)                                                           \
	"{\"result\":{\"finish_reason\":\"stop\",\"content\":\"" text "\","    \
	"\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2}}}\n"
#define CALL(id, task)                                                         \
	"{\"id\":\"" id                                                        \
	"\",\"name\":\"helper\",\"arguments\":{\"task\":\"" task "\"}}"
#define CALLS(list)                                                            \
	"{\"result\":{\"finish_reason\":\"function_calls\",\"calls\":[" list   \
	"]}}\n"

struct ears {
	json_t *events;
	json_t *chat, *pending;
	struct fault why;
	int ends;
	struct agent *pauses; /* at its first event */
};

static void on_event(void *arg, json_t *event)
{
	struct ears *e = arg;

	(void)json_array_append(e->events, event);
	if (e->pauses)
		agent_pause(take_ptr(e->pauses));
}

static void on_over(void *arg, json_t *chat, const struct fault *why,
		    json_t *pending)
{
	struct ears *e = arg;

	e->ends++;
	e->chat = json_incref(chat);
	e->pending = json_incref(pending);
	if (why)
		fault_copy(&e->why, why);
}

static const struct turn_events events = { on_event, on_over };

static bool is_over(void *arg)
{
	return ((struct ears *)arg)->ends > 0;
}

static void ears_open(struct ears *e)
{
	memset(e, 0, sizeof(*e));
	e->events = json_array();
}

static void ears_done(struct ears *e)
{
	json_decref(e->events);
	json_decref(e->chat);
	json_decref(e->pending);
	fault_done(&e->why);
	memset(e, 0, sizeof(*e));
}

static struct model *model(struct try *t, const char *name, const char *text)
{
	struct model *m = NULL;
	struct err err = { 0 };
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", t->dir, name);
	try_write(path, text);
	CHECK_INT(model_replay(t->loop, path, &m, &err), 0);
	CHECK_STR(err.text, "");
	return m;
}

/* An agent that says what the text has; it takes the set over. */
static struct agent *agent(struct try *t, const char *name, const char *text,
			   struct toolset *set)
{
	json_t *config = json_pack("{s:i}", "max_tool_iterations", 3);
	struct model *m = model(t, name, text);
	struct agent *a = NULL;
	struct err err = { 0 };

	CHECK_INT(agent_assistant(t->loop, name, config, m, set, &a, &err), 0);
	CHECK_STR(err.text, "");
	model_unref(m);
	json_decref(config);
	return a;
}

/* boss, with helper as its only tool. */
static struct agent *pair(struct try *t, const char *boss, const char *helper,
			  struct agent **ret)
{
	struct tool *tool = NULL;
	struct err err = { 0 };

	*ret = agent(t, "helper", helper, NULL);
	CHECK_INT(tool_agent(*ret, &tool, &err), 0);
	if (!t->set)
		try_set(t, false);
	try_add(t, tool);
	return agent(t, "boss", boss, take_ptr(t->set));
}

static void begin(struct agent *a, struct cancel *cancel, struct ears *e)
{
	const struct turn_asker who = { .team = "t",
					.run = "r",
					.cancel = cancel,
					.events = &events,
					.arg = e };
	json_t *list = json_pack("[o]", chat_text("user", "go"));

	CHECK(turn_begin(a, list, &who) != NULL);
	json_decref(list);
}

static size_t history(struct agent *a)
{
	json_t *state = agent_save(a);
	size_t n = json_array_size(
		json_object_get(json_object_get(state, "context"), "messages"));

	json_decref(state);
	return n;
}

/* "Type/Type(source)" of the events within the calls. */
static const char *inner_types(const struct ears *e)
{
	static char text[1024];
	size_t n = 0;
	size_t i;
	json_t *o;

	text[0] = '\0';
	json_array_foreach(e->events, i, o)
	{
		const json_t *in = json_object_get(o, "content");

		if (strcmp(chat_type(o), "InnerEvent") == 0)
			n += (size_t)snprintf(text + n, sizeof(text) - n,
					      "%s%s(%s)", n ? " " : "",
					      chat_type(in), chat_source(in));
	}
	return text;
}

static json_t *result_of(const struct ears *e, size_t i)
{
	size_t k;
	json_t *o;

	json_array_foreach(e->events, k, o)
	{
		if (strcmp(chat_type(o), "ToolCallExecutionEvent") == 0)
			return json_array_get(json_object_get(o, "content"), i);
	}
	return NULL;
}

static const char *text_of(const json_t *o)
{
	const char *s = json_string_value(json_object_get(o, "content"));

	return s ? s : "";
}

TEST(calls_at_once_are_one_conversation)
{
	struct agent *helper;
	struct agent *boss;
	struct ears e;
	struct try t;

	try_open(&t, NULL);
	boss = pair(&t, CALLS(CALL("1", "a") "," CALL("2", "b")) ANSWER("ok"),
		    ANSWER("first") ANSWER("second"), &helper);
	ears_open(&e);
	begin(boss, NULL, &e);
	CHECK(loop_run(t.loop, is_over, &e));
	CHECK_STR(text_of(e.chat), "ok");
	CHECK_STR(text_of(result_of(&e, 0)), "first");
	CHECK_STR(text_of(result_of(&e, 1)), "second");
	CHECK_STR(inner_types(&e), "TextMessage(helper) TextMessage(helper)");
	CHECK_INT(history(helper), 4);
	CHECK_INT(history(boss), 4);
	ears_done(&e);
	agent_free(boss);
	try_close(&t);
}

TEST(a_failure_is_a_result_and_leaves_no_trace_in_the_other)
{
	struct agent *helper;
	struct agent *boss;
	struct ears e;
	struct try t;

	try_open(&t, NULL);
	boss = pair(&t, CALLS(CALL("1", "a")) ANSWER("pity"), "", &helper);
	ears_open(&e);
	begin(boss, NULL, &e);
	CHECK(loop_run(t.loop, is_over, &e));
	CHECK_STR(text_of(e.chat), "pity");
	CHECK(json_is_true(json_object_get(result_of(&e, 0), "is_error")));
	CHECK_HAS(text_of(result_of(&e, 0)), "The agent 'helper' has failed: ");
	CHECK_INT(history(helper), 0);
	ears_done(&e);
	agent_free(boss);
	try_close(&t);
}

TEST(a_turn_that_fails_takes_the_others_words_back)
{
	struct agent *helper;
	struct agent *boss;
	struct ears e;
	struct try t;

	try_open(&t, NULL);
	/* The boss has nothing to say after the helper has answered. */
	boss = pair(&t, CALLS(CALL("1", "a")), ANSWER("here"), &helper);
	ears_open(&e);
	begin(boss, NULL, &e);
	CHECK(loop_run(t.loop, is_over, &e));
	CHECK(e.why.code != FAULT_NONE);
	CHECK_STR(text_of(result_of(&e, 0)), "here");
	CHECK_INT(history(boss), 0);
	CHECK_INT(history(helper), 0);
	ears_done(&e);
	agent_free(boss);
	try_close(&t);
}

TEST(state_goes_along)
{
	struct err err = { 0 };
	struct agent *helper;
	struct agent *boss;
	json_t *state;
	struct ears e;
	struct try t;

	try_open(&t, NULL);
	boss = pair(&t, CALLS(CALL("1", "a")) ANSWER("ok"), ANSWER("here"),
		    &helper);
	ears_open(&e);
	begin(boss, NULL, &e);
	CHECK(loop_run(t.loop, is_over, &e));
	ears_done(&e);
	state = agent_save(boss);
	agent_free(boss);
	boss = pair(&t, "", "", &helper);
	CHECK_INT(history(helper), 0);
	CHECK_INT(agent_load(boss, state, &err), 0);
	CHECK_INT(history(helper), 2);
	CHECK_INT(history(boss), 4);
	agent_reset(boss);
	CHECK_INT(history(helper), 0);
	json_decref(state);
	agent_free(boss);
	try_close(&t);
}

/* A tool of the helper's that never ends by itself. */
static struct tool_call *stuck;
static bool was_stuck;

static void stuck_call(struct tool *t, struct tool_call *c)
{
	(void)t;
	stuck = c;
	was_stuck = true;
}

static void stuck_free(struct tool *t)
{
	free(t);
}

static const struct tool_ops stuck_ops = { .call = stuck_call,
					   .free = stuck_free };

static struct tool *stuck_tool(void)
{
	struct tool *t = calloc(1, sizeof(*t));

	t->ops = &stuck_ops;
	(void)strcpy(t->name, "wait");
	t->description = strdup("");
	t->schema = json_object();
	t->is_read_only = true;
	was_stuck = false;
	return t;
}

static bool is_stuck(void *arg)
{
	(void)arg;
	return was_stuck;
}

/* boss > helper, which calls what never ends. */
static struct agent *stuck_pair(struct try *t, struct agent **ret)
{
	struct tool *tool = NULL;
	struct err err = { 0 };

	if (!t->set)
		try_set(t, false);
	try_add(t, stuck_tool());
	*ret = agent(t, "helper",
		     CALLS("{\"id\":\"w\",\"name\":\"wait\",\"arguments\":{}}")
			     ANSWER("through"),
		     take_ptr(t->set));
	CHECK_INT(tool_agent(*ret, &tool, &err), 0);
	try_set(t, false);
	try_add(t, tool);
	return agent(t, "boss",
		     CALLS(CALL("1", "a") "," CALL("2", "b")) ANSWER("later"),
		     take_ptr(t->set));
}

TEST(a_cancel_reaches_the_innermost_call)
{
	struct agent *helper;
	struct cancel *token;
	struct agent *boss;
	struct ears e;
	struct try t;

	try_open(&t, NULL);
	boss = stuck_pair(&t, &helper);
	token = cancel_new(t.loop, NULL, 0);
	ears_open(&e);
	begin(boss, token, &e);
	CHECK(loop_run(t.loop, is_stuck, NULL));
	CHECK(!cancel_is_fired(stuck->cancel));
	cancel_fire(token, "enough");
	CHECK(cancel_is_fired(stuck->cancel));
	tool_done_text(stuck, true, "stopped");
	CHECK(loop_run(t.loop, is_over, &e));
	CHECK_INT(e.why.code, FAULT_CANCELLED);
	CHECK_INT(history(boss), 0);
	CHECK_INT(history(helper), 0);
	ears_done(&e);
	/* And the next turn works. */
	ears_open(&e);
	begin(boss, NULL, &e);
	CHECK(loop_run(t.loop, is_over, &e));
	CHECK_STR(text_of(e.chat), "later");
	ears_done(&e);
	cancel_unref(token);
	agent_free(boss);
	try_close(&t);
}

TEST(an_agent_goes_with_a_call_that_goes_on)
{
	struct agent *helper;
	struct agent *boss;
	struct ears e;
	struct try t;

	try_open(&t, NULL);
	boss = stuck_pair(&t, &helper);
	ears_open(&e);
	begin(boss, NULL, &e);
	CHECK(loop_run(t.loop, is_stuck, NULL));
	agent_free(boss);
	CHECK_INT(e.ends, 0);
	ears_done(&e);
	try_close(&t);
}

TEST(a_deadline_of_the_tool_ends_the_other)
{
	struct tool *tool = NULL;
	struct err err = { 0 };
	struct tried d = { 0 };
	struct agent *helper;
	struct try t;

	try_open(&t, NULL);
	try_add(&t, stuck_tool());
	helper = agent(&t, "helper",
		       CALLS("{\"id\":\"w\",\"name\":\"wait\",\"arguments\":{}"
			     "}"),
		       take_ptr(t.set));
	CHECK_INT(tool_agent(helper, &tool, &err), 0);
	tool->timeout = 50 * 1000;
	try_set(&t, false);
	try_add(&t, tool);
	try_call(&t, "helper", "{\"task\":\"x\"}", &d);
	CHECK(d.is_error);
	CHECK_HAS(d.text, "deadline_exceeded");
	tried_done(&d);
	try_close(&t);
}

static bool has_come_round(void *arg)
{
	return --*(int *)arg == 0;
}

TEST(a_pause_holds_the_other_too)
{
	struct agent *helper;
	struct agent *boss;
	struct ears e;
	struct try t;

	try_open(&t, NULL);
	boss = pair(&t, CALLS(CALL("1", "a")) ANSWER("ok"), ANSWER("here"),
		    &helper);
	agent_pause(boss);
	CHECK(helper->is_paused);
	agent_unpause(boss);
	CHECK(!helper->is_paused);
	ears_open(&e);
	e.pauses = boss;
	begin(boss, NULL, &e);
	/* Nothing is left to do while it is paused. */
	CHECK(!loop_run(t.loop, has_come_round, &(int){ 1000000 }) ||
	      e.ends == 0);
	CHECK_INT(e.ends, 0);
	agent_unpause(boss);
	CHECK(loop_run(t.loop, is_over, &e));
	CHECK_STR(text_of(e.chat), "ok");
	ears_done(&e);
	agent_free(boss);
	try_close(&t);
}

/* A new one that has the one before as its tool. */
static struct agent *around(struct try *t, const char *name,
			    struct agent *inner)
{
	struct tool *tool = NULL;
	struct err err = { 0 };

	if (inner) {
		CHECK_INT(tool_agent(inner, &tool, &err), 0);
		try_set(t, false);
		try_add(t, tool);
	}
	return agent(t, name, "", take_ptr(t->set));
}

TEST(no_more_than_four_within_each_other)
{
	static const char *const names[] = { "a", "b", "c", "d", "e" };
	struct agent *inner = NULL;
	struct tool *tool = NULL;
	struct err err = { 0 };
	struct try t;

	try_open(&t, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		inner = around(&t, names[i], inner);
		CHECK_INT(inner->depth, i);
	}
	CHECK_INT(tool_agent(inner, &tool, &err), -E2BIG);
	CHECK_STR(err.text, "the agent 'e' would be more than 4 agents deep");
	agent_free(inner);
	try_close(&t);
}

TEST(an_agent_that_waits_is_forged_for_no_other_tool)
{
	json_t *forged = json_pack("{s:s}", "id", "x");
	struct tool_want w = { .id = "c",
			       .name = "touch",
			       .arguments = "{}",
			       .agent = "coder",
			       .suspended = forged };
	struct tool *tool = stuck_tool();
	struct tried d = { 0 };
	struct try t;

	try_open(&t, NULL);
	(void)strcpy(tool->name, "touch");
	tool->is_read_only = false;
	try_add(&t, tool);
	try_want(&t, &w, &d);
	/* It asks as ever. */
	CHECK_INT(d.end, TOOL_SUSPENDED);
	CHECK(!was_stuck);
	tried_done(&d);
	json_decref(forged);
	try_close(&t);
}

TAP_MAIN()
