/* SPDX-License-Identifier: Apache-2.0 */

/* Teams of the agents that people use, with a model and tools that are told
 * what to do. */

#include "tests/tap.h"

#include "fakes.h"
#include "scene.h"

#define SCRIPT(...) ((const struct say[]){ __VA_ARGS__, { .is_end = true } })
#define CALL(id, name, args)                                                   \
	"[{\"id\":\"" id "\",\"name\":\"" name "\",\"arguments\":\"" args "\"" \
	"}]"

struct cast {
	struct scene s;
	struct model *model;
	struct toolset *tools; /* the assistant's */
};

/* An assistant "a" with these tools, and a user proxy "u" where wanted. */
static void cast_init(struct cast *c, const struct say *script,
		      const char *tools, const char *config, const char *stop,
		      bool has_user)
{
	json_t *settings = parse("{\"max_tool_iterations\":4}");
	struct agent *agents[2];
	struct err err = { 0 };

	scene_init(&c->s);
	c->model = fake_model(c->s.loop, script);
	c->tools = fake_tools(c->s.loop, tools);
	CHECK(agent_assistant(c->s.loop, "a", settings, c->model, c->tools,
			      &agents[0], &err) == 0);
	if (has_user)
		CHECK(agent_user(c->s.loop, "u", NULL, NULL, &agents[1],
				 &err) == 0);
	scene_team(&c->s, &team_round_robin, agents, has_user ? 2 : 1, config,
		   stop, NULL);
	json_decref(settings);
}

static void cast_done(struct cast *c)
{
	scene_done(&c->s);
	model_unref(c->model);
}

static const char *types_of(const json_t *list)
{
	static char text[4096];
	size_t n = 0;
	size_t i;
	json_t *m;

	text[0] = '\0';
	json_array_foreach((json_t *)list, i, m)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s",
				      n ? " " : "", chat_type(m));
	return text;
}

static const char *result_types(const struct cast *c)
{
	return types_of(json_object_get(c->s.result, "messages"));
}

/* D47: what a tool gave back is not said by anybody. */
TEST(d47_tools_in_a_team)
{
	struct cast c;

	cast_init(&c,
		  SCRIPT({ .calls = CALL("1", "echo", "{\\\"x\\\":1}"),
			   .prompt = 10,
			   .completion = 2 },
			 { .content = "it said that", .prompt = 20 },
			 { .content = "so TERMINATE" }),
		  "echo", NULL, "{\"text_mention\":\"TERMINATE\"}", false);
	c.tools->output = "TERMINATE";
	scene_run(&c.s, "end with TERMINATE");
	CHECK_STR(field(c.s.result, "stop_reason"),
		  "Text 'TERMINATE' mentioned");
	CHECK_STR(result_types(&c),
		  "TextMessage ToolCallRequestEvent ToolCallExecutionEvent "
		  "TextMessage TextMessage");
	CHECK_INT((long long)json_array_size(c.tools->made), 1);
	CHECK_INT(json_integer_value(
			  json_object_get(json_object_get(c.s.result, "usage"),
					  "tool_calls")),
		  1);
	CHECK_INT(json_integer_value(
			  json_object_get(json_object_get(c.s.result, "usage"),
					  "prompt_tokens")),
		  30);
	cast_done(&c);
}

TEST(function_call_condition)
{
	struct cast c;

	cast_init(&c,
		  SCRIPT({ .calls = CALL("1", "echo", "{}") },
			 { .content = "done" }),
		  "echo", NULL, "{\"function_call\":\"echo\"}", false);
	scene_run(&c.s, "go");
	CHECK_STR(field(c.s.result, "stop_reason"),
		  "Function 'echo' was executed.");
	cast_done(&c);
}

/* A hard limit: the call that is one too many is not made. */
TEST(tool_call_budget_is_hard)
{
	struct cast c;

	cast_init(&c,
		  SCRIPT({ .calls = CALL("1", "echo", "{}") },
			 { .calls = CALL("2", "echo", "{}") },
			 { .calls = CALL("3", "echo", "{}") },
			 { .content = "done" }),
		  "echo", "{\"budget\":{\"tool_calls\":2}}", NULL, false);
	scene_run(&c.s, "go");
	CHECK_STR(field(c.s.result, "status"), "cancelled");
	CHECK_STR(field(c.s.result, "stop_reason"),
		  "Budget exceeded: tool_calls");
	CHECK_INT((long long)json_array_size(c.tools->made), 2);
	CHECK_INT((long long)c.model->at, 3);
	cast_done(&c);
}

TEST(money_is_a_hard_limit)
{
	struct cast c;

	cast_init(&c,
		  SCRIPT({ .calls = CALL("1", "echo", "{}"), .cost = 0.3 },
			 { .calls = CALL("2", "echo", "{}"), .cost = 0.3 },
			 { .content = "done" }),
		  "echo", "{\"budget\":{\"cost\":0.5}}", NULL, false);
	scene_run(&c.s, "go");
	CHECK_STR(field(c.s.result, "stop_reason"), "Budget exceeded: cost");
	CHECK_INT((long long)json_array_size(c.tools->made), 1);
	cast_done(&c);
}

/* D18, D27: a tool that hangs is cut, and the next run works. */
TEST(d27_hanging_tool_is_cut)
{
	struct cast c;
	int64_t begin = clock_us();

	cast_init(&c,
		  SCRIPT({ .calls = CALL("1", "hang", "{}") },
			 { .content = "better" }),
		  "hang", "{\"max_turns\":1}",
		  "{\"timeout\":{\"seconds\":0.1}}", false);
	scene_run(&c.s, "go");
	CHECK_STR(field(c.s.result, "stop_reason"),
		  "Timeout of 0.1 seconds reached");
	CHECK(clock_us() - begin < 3000000);
	scene_run(&c.s, "again");
	CHECK_STR(field(c.s.result, "stop_reason"),
		  "Maximum number of turns 1 reached.");
	/* The cut turn is not in its history; its task is. */
	CHECK_INT((long long)json_array_size(asked(c.model, 1)), 3);
	cast_done(&c);
}

/* A failed call of the model leaves no trace, and is tried again. */
TEST(d29_retry_after_a_failed_call)
{
	struct cast c;

	cast_init(&c,
		  SCRIPT({ .fault = FAULT_UNAVAILABLE },
			 { .content = "there" }),
		  "", "{\"max_turns\":1,\"on_agent_error\":\"retry\"}", NULL,
		  false);
	scene_run(&c.s, "go");
	CHECK_STR(field(c.s.result, "status"), "completed");
	CHECK_STR(result_types(&c), "TextMessage ErrorEvent TextMessage");
	CHECK(json_equal(asked(c.model, 0), asked(c.model, 1)));
	cast_done(&c);
}

static json_t *saved(struct cast *c)
{
	json_t *o = team_save(c->s.team);
	char *text = json_dumps(o, 0);
	json_t *back = parse(text);

	json_decref(o);
	free(text);
	return back;
}

TEST(approval_after_a_restart)
{
	struct cast c;
	struct cast d;
	json_t *state;
	json_t *pending;
	char answers[256];

	cast_init(&c, SCRIPT({ .calls = CALL("7", "ask", "{\\\"n\\\":7}") }),
		  "ask", "{\"max_turns\":1}", NULL, false);
	scene_run(&c.s, "go");
	CHECK_STR(field(c.s.result, "status"), "suspended");
	CHECK_STR(field(c.s.result, "stop_reason"), "Approval required: ask");
	pending = json_array_get(json_object_get(c.s.result, "pending"), 0);
	(void)snprintf(answers, sizeof(answers), "{\"%s\":{\"approved\":true}}",
		       field(pending, "id"));
	CHECK_INT((long long)json_array_size(c.tools->made), 0);
	state = saved(&c);
	cast_done(&c);

	cast_init(&d, SCRIPT({ .content = "all is well" }), "ask",
		  "{\"max_turns\":1}", NULL, false);
	CHECK(team_load(d.s.team, state, &d.s.err) == 0);
	d.tools->yes = "appr-7";
	scene_resume(&d.s, answers);
	CHECK_STR(field(d.s.result, "status"), "completed");
	CHECK_STR(json_string_value(json_array_get(d.tools->made, 0)),
		  "ask {\"n\":7}");
	CHECK_HAS(told(json_object_get(d.s.result, "messages")),
		  "a:all is well");
	json_decref(state);
	cast_done(&d);
}

/* D35: a person answers the next day. */
TEST(d35_user_answers_after_a_restart)
{
	static const char stop[] = "{\"text_mention\":\"BYE\"}";
	struct cast c;
	struct cast d;
	json_t *state;
	json_t *pending;
	char answers[256];

	cast_init(&c, SCRIPT({ .content = "which one?" }), "", NULL, stop,
		  true);
	scene_run(&c.s, "go");
	CHECK_STR(field(c.s.result, "status"), "suspended");
	CHECK_STR(field(c.s.result, "stop_reason"), "Input required: u");
	pending = json_array_get(json_object_get(c.s.result, "pending"), 0);
	(void)snprintf(answers, sizeof(answers), "{\"%s\":\"the red one\"}",
		       field(pending, "id"));
	state = saved(&c);
	cast_done(&c);

	cast_init(&d, SCRIPT({ .content = "red it is. BYE" }), "", NULL, stop,
		  true);
	CHECK(team_load(d.s.team, state, &d.s.err) == 0);
	scene_resume(&d.s, answers);
	CHECK_STR(field(d.s.result, "stop_reason"), "Text 'BYE' mentioned");
	CHECK_HAS(told(json_object_get(d.s.result, "messages")),
		  "u:the red one a:red it is. BYE");
	json_decref(state);
	cast_done(&d);
}

/* D36: inside a turn, too: no call starts while it is paused. */
static struct cast *paused;
static size_t calls_while_paused;

static void go_on(struct timer *t)
{
	(void)t;
	calls_while_paused = paused->model->at;
	team_unpause(paused->s.team);
}

static void pause_at_request(void *arg, json_t *event)
{
	struct cast *c = arg;

	if (strcmp(chat_type(event), "ToolCallRequestEvent") == 0 &&
	    c->model->at == 1)
		team_pause(c->s.team);
}

static void pause_over(void *arg, json_t *result)
{
	scene_over(&((struct cast *)arg)->s, result);
}

TEST(d36_pause_within_a_turn)
{
	static struct timer timer = { .fire = go_on };
	static const struct team_events events = { .event = pause_at_request,
						   .over = pause_over };
	struct cast c;
	json_t *task = json_pack("[o]", chat_text("user", "go"));

	cast_init(&c,
		  SCRIPT({ .calls = CALL("1", "slow", "{}") },
			 { .calls = CALL("2", "slow", "{}") },
			 { .content = "done" }),
		  "slow", "{\"max_turns\":1}", NULL, false);
	paused = &c;
	CHECK(team_run(c.s.team, task, NULL, &events, &c, &c.s.err) == 0);
	json_decref(task);
	CHECK(timer_set(c.s.loop, &timer, clock_us() + 150000) == 0);
	scene_wait(&c.s);
	/* The tool had begun and has ended meanwhile; the model waits. */
	CHECK_INT((long long)calls_while_paused, 1);
	CHECK_INT((long long)c.model->at, 3);
	CHECK_STR(field(c.s.result, "status"), "completed");
	cast_done(&c);
}

TAP_MAIN()
