/* SPDX-License-Identifier: Apache-2.0 */

/* Teams that stop in one place and go on in another. */

#include "tests/tap.h"

#include "team.h"

static char dir[] = "/tmp/cordon-team-XXXXXX";

static void make_dir(void)
{
	if (strstr(dir, "XXXXXX") && !mkdtemp(dir))
		exit(1);
}

static void clean(void)
{
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -rf %s", dir);
	CHECK(system(command) == 0);
}

static void two(struct scene *s, const char *stop)
{
	struct agent *agents[2];

	scene_init(s);
	agents[0] = FAKE(s->loop, "a", "a1", "=1 a2", "a3", "a4", "a5", "a6");
	agents[1] = FAKE(s->loop, "b", "b1", "b2", "b3", "b4", "b5", "b6");
	scene_team(s, &team_round_robin, agents, 2, NULL, stop, NULL);
}

/* What another process would get: text. */
static json_t *through_text(json_t *o)
{
	char *text = json_dumps(o, 0);
	json_t *back = parse(text);

	free(text);
	return back;
}

static json_t *saved(struct scene *s)
{
	json_t *o = team_save(s->team);
	json_t *back = through_text(o);

	json_decref(o);
	return back;
}

static void load(struct scene *s, const json_t *state)
{
	if (team_load(s->team, state, &s->err) == 0)
		return;
	printf("# cannot load: %s\n", s->err.text);
	exit(1);
}

/* Who said what; ids and times differ from run to run. */
static void same_thread(const json_t *a, const json_t *b)
{
	char one[65536];

	(void)snprintf(one, sizeof(one), "%s",
		       told(json_object_get(a, "thread")));
	CHECK_STR(told(json_object_get(b, "thread")), one);
}

/* --- what a newer version wrote --- */

static void put(json_t *state, const char *path, const char *value)
{
	char copy[200];
	char *rest = copy;
	char *key;
	json_t *at = state;

	(void)snprintf(copy, sizeof(copy), "%s", path);
	while ((key = strsep(&rest, "/")))
		if (json_is_array(at))
			at = json_array_get(at, strtoul(key, NULL, 10));
		else if (rest)
			at = json_object_get(at, key);
		else
			CHECK(json_object_set_new(at, key, parse(value)) == 0);
}

static const char *const newer[] = {
	"later",          "members/a/later",   "members/b/agent/later",
	"own/later",      "termination/later", "termination/parts/1/later",
	"thread/0/later", "run/later",         "run/used/later",
};

static json_t *from_later(struct scene *s)
{
	json_t *state = saved(s);

	/* As a checkpoint in the middle of a run has it. */
	put(state, "run",
	    "{\"id\":\"r\",\"turns\":1,\"elapsed_us\":5,\"messages\":[],"
	    "\"fresh\":[],\"used\":{\"prompt_tokens\":1,"
	    "\"completion_tokens\":0,\"tool_calls\":0,\"errors\":0,"
	    "\"box_cpu_ms\":0,\"box_memory\":0,\"cost\":0.0}}");
	for (size_t i = 0; i < ARRAY_SIZE(newer); i++)
		put(state, newer[i], "{\"x\":[1,{\"y\":null}]}");
	return state;
}

TEST(unknown_fields_are_kept_at_every_depth)
{
	static const char stop[] = "{\"any\":[{\"max_messages\":9},"
				   "{\"text_mention\":\"x\"}]}";
	struct scene s;
	struct scene t;
	json_t *state;
	json_t *again;

	two(&s, stop);
	scene_run(&s, "go");
	state = from_later(&s);
	two(&t, stop);
	load(&t, state);
	again = saved(&t);
	CHECK(json_equal(state, again));
	json_decref(again);
	/* They stay while it goes on; those of the run end with it. */
	scene_resume(&t, NULL);
	again = saved(&t);
	CHECK(json_object_get(again, "later") != NULL);
	CHECK(json_object_get(json_object_get(again, "own"), "later") != NULL);
	CHECK(json_is_null(json_object_get(again, "run")));
	json_decref(again);
	scene_start(&t, "more");
	again = saved(&t);
	CHECK(json_is_object(json_object_get(again, "run")));
	CHECK(!json_object_get(json_object_get(again, "run"), "later"));
	CHECK(json_object_get(again, "later") != NULL);
	json_decref(again);
	scene_wait(&t);
	/* A reset begins anew. */
	CHECK_INT(team_reset(t.team, &t.err), 0);
	again = saved(&t);
	CHECK(!json_object_get(again, "later"));
	json_decref(again);
	json_decref(state);
	scene_done(&s);
	scene_done(&t);
}

TEST(a_state_that_is_refused_leaves_the_rest)
{
	static const char stop[] = "{\"max_messages\":4}";
	struct scene s;
	json_t *state;
	json_t *again;

	two(&s, stop);
	state = saved(&s);
	put(state, "later", "1");
	load(&s, state);
	put(state, "later", "2");
	put(state, "own/next", "77");
	CHECK(team_load(s.team, state, &s.err) < 0);
	again = saved(&s);
	CHECK_INT(json_integer_value(json_object_get(again, "later")), 1);
	json_decref(again);
	json_decref(state);
	scene_done(&s);
}

TEST(goes_on_in_a_second_team)
{
	static const char stop[] = "{\"max_messages\":4}";
	struct scene s;
	struct scene t;
	json_t *first;
	json_t *second;

	two(&s, stop);
	scene_run(&s, "go");
	first = saved(&s);
	two(&t, stop);
	load(&t, first);
	second = saved(&t);
	CHECK(json_equal(first, second));
	json_decref(first);
	json_decref(second);
	scene_run(&s, NULL);
	scene_run(&t, NULL);
	CHECK_STR(told(json_object_get(t.result, "messages")),
		  "b:b2 a:a3 b:b3 a:a4");
	first = saved(&s);
	second = saved(&t);
	same_thread(first, second);
	CHECK(json_equal(json_object_get(first, "own"),
			 json_object_get(second, "own")));
	CHECK(json_equal(json_object_get(first, "members"),
			 json_object_get(second, "members")));
	json_decref(first);
	json_decref(second);
	scene_done(&s);
	scene_done(&t);
}

static bool has_three(void *arg)
{
	return json_array_size(((struct scene *)arg)->events) >= 4;
}

/* D17: a run that is cut in two counts on; max_messages(10) stops at 10. */
TEST(d17_split_over_two_processes)
{
	static const char stop[] = "{\"max_messages\":10}";
	struct scene s;
	struct scene t;
	struct scene whole;
	json_t *state;
	char want[4096];

	two(&whole, stop);
	scene_run(&whole, "go");
	(void)snprintf(want, sizeof(want), "%s",
		       told(json_object_get(whole.result, "messages")));
	two(&s, stop);
	scene_start(&s, "go");
	CHECK(loop_run(s.loop, has_three, &s));
	state = saved(&s); /* in the middle, and then it is killed */
	scene_done(&s);
	two(&t, stop);
	load(&t, state);
	scene_resume(&t, NULL);
	CHECK_STR(field(t.result, "stop_reason"),
		  "Maximum number of messages 10 reached, current message "
		  "count: 10");
	CHECK_STR(told(json_object_get(t.result, "messages")), want);
	json_decref(state);
	scene_done(&t);
	scene_done(&whole);
}

static bool count_down(void *arg)
{
	return --*(int *)arg < 0;
}

/* The same at each step there is. */
TEST(killed_at_any_step)
{
	static const char stop[] = "{\"max_messages\":6}";
	int resumed = 0;

	for (int n = 2; n < 80; n++) {
		struct scene s;
		struct scene t;
		json_t *state;
		int steps;

		two(&s, stop);
		scene_start(&s, "go");
		steps = n;
		(void)loop_run(s.loop, count_down, &steps);
		state = saved(&s);
		if (s.is_over || json_is_null(json_object_get(state, "run")) ||
		    json_array_size(json_object_get(state, "thread")) == 0) {
			json_decref(state);
			scene_done(&s);
			continue;
		}
		scene_done(&s);
		two(&t, stop);
		load(&t, state);
		scene_resume(&t, NULL);
		CHECK_STR(told(json_object_get(t.result, "messages")),
			  "user:go a:a1 b:b1 a:* a:a2 b:b2 a:a3");
		CHECK_STR(field(t.result, "stop_reason"),
			  "Maximum number of messages 6 reached, current "
			  "message count: 6");
		json_decref(state);
		scene_done(&t);
		resumed++;
	}
	CHECK(resumed > 20);
}

static void asking(struct scene *s, const char *what)
{
	static const char *script[1];
	struct agent *agents[2];

	scene_init(s);
	script[0] = what;
	agents[0] = FAKE(s->loop, "a", "a1", "a2");
	agents[1] = fake_new(s->loop, "b", script, 1);
	scene_team(s, &team_round_robin, agents, 2, NULL,
		   "{\"max_messages\":4}", NULL);
}

TEST(input_is_waited_for)
{
	struct scene s;
	struct scene t;
	json_t *state;
	json_t *pending;

	asking(&s, "?");
	scene_run(&s, "go");
	RESULT(&s, "suspended", "Input required: b", "user:go a:a1 b:*");
	pending = json_array_get(json_object_get(s.result, "pending"), 0);
	CHECK_STR(field(pending, "id"), "ask-1");
	CHECK_STR(field(pending, "agent"), "b");
	CHECK(json_object_get(pending, "state") == NULL);
	state = saved(&s);
	/* Here, */
	scene_resume(&s, "{\"ask-1\":\"forty-two\"}");
	RESULT(&s, "completed",
	       "Maximum number of messages 4 reached, current message count: 4",
	       "user:go a:a1 b:* b:forty-two a:a2");
	CHECK_INT((long long)json_array_size(
			  json_object_get(s.result, "pending")),
		  0);
	scene_done(&s);
	/* and the next day, somewhere else. */
	asking(&t, "?");
	load(&t, state);
	scene_resume(&t, "{\"ask-1\":\"forty-two\"}");
	RESULT(&t, "completed",
	       "Maximum number of messages 4 reached, current message count: 4",
	       "user:go a:a1 b:* b:forty-two a:a2");
	CHECK_STR(told(t.events), "b:forty-two a:a2");
	json_decref(state);
	scene_done(&t);
}

TEST(approval_is_waited_for)
{
	struct scene s;

	asking(&s, "$run_shell");
	scene_run(&s, "go");
	RESULT(&s, "suspended", "Approval required: run_shell",
	       "user:go a:a1 b:*");
	/* Nothing was answered here: the agent looks for itself. */
	scene_resume(&s, NULL);
	RESULT(&s, "completed",
	       "Maximum number of messages 4 reached, current message count: 4",
	       "user:go a:a1 b:* b:nobody answered a:a2");
	scene_done(&s);
}

TEST(a_new_task_gives_up_what_waits)
{
	struct scene s;
	struct fake *b;

	asking(&s, "?");
	scene_run(&s, "go");
	CHECK_STR(field(s.result, "status"), "suspended");
	b = (struct fake *)team_agent(s.team, "b");
	b->turns = 0;
	b->script = (const char *const[]){ "b1" };
	scene_run(&s, "something else");
	/* b has not spoken, so it is b's turn. */
	RESULT(&s, "completed",
	       "Maximum number of messages 4 reached, current message count: 4",
	       "user:something else b:b1 a:a2 b:b1");
	scene_done(&s);
}

TEST(time_while_it_waits_is_not_counted)
{
	struct scene s;
	struct agent *agents[1];

	scene_init(&s);
	agents[0] = FAKE(s.loop, "a", "?");
	scene_team(&s, &team_round_robin, agents, 1, "{\"max_turns\":1}",
		   "{\"timeout\":{\"seconds\":0.2}}", NULL);
	scene_run(&s, "go");
	CHECK_STR(field(s.result, "status"), "suspended");
	(void)usleep(300000);
	scene_resume(&s, "{\"ask-1\":\"yes\"}");
	CHECK_STR(field(s.result, "stop_reason"),
		  "Maximum number of turns 1 reached.");
	scene_done(&s);
}

TEST(wrong_states_change_nothing)
{
	static const char *const bad[] = {
		"{}",
		"{\"type\":\"team\",\"version\":9}",
		"{\"type\":\"team\",\"version\":1,\"kind\":\"selector\"}",
		"{\"type\":\"team\",\"version\":1,\"kind\":\"round_robin\","
		"\"thread\":[],\"members\":{}}",
		"{\"type\":\"team\",\"version\":1,\"kind\":\"round_robin\","
		"\"thread\":[],\"members\":{\"a\":{\"heard\":9},\"b\":{}}}",
		"{\"type\":\"team\",\"version\":1,\"kind\":\"round_robin\","
		"\"thread\":[1],\"members\":{\"a\":{},\"b\":{}}}",
		"{\"type\":\"team\",\"version\":1,\"kind\":\"round_robin\","
		"\"thread\":[],\"members\":{\"a\":{},\"b\":{}},\"run\":{}}",
		"{\"type\":\"team\",\"version\":1,\"kind\":\"round_robin\","
		"\"thread\":[],\"own\":{\"type\":\"round_robin\",\"version\":1,"
		"\"next\":7},\"members\":{\"a\":{},\"b\":{}},\"run\":null}",
		/* Only the last agent's part is wrong. */
		"{\"type\":\"team\",\"version\":1,\"kind\":\"round_robin\","
		"\"thread\":[],\"members\":{\"a\":{\"agent\":{\"history\":[]}},"
		"\"b\":{\"agent\":{}}},\"run\":null}",
	};
	struct scene s;
	json_t *before;

	two(&s, "{\"max_messages\":4}");
	scene_run(&s, "go");
	before = saved(&s);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		json_t *o = parse(bad[i]);
		json_t *after;

		CHECK(team_load(s.team, o, &s.err) < 0);
		CHECK_HAS(s.err.text, "team 'crew'");
		after = saved(&s);
		CHECK(json_equal(before, after));
		json_decref(after);
		json_decref(o);
	}
	json_decref(before);
	scene_done(&s);
}

/* --- checkpoints --- */

static json_t *read_back(struct checkpoints *c, const char *id)
{
	struct err err = { 0 };
	json_t *doc = NULL;

	if (!id || checkpoints_read(c, id, &doc, &err) < 0) {
		printf("# no checkpoint %s: %s\n", id ? id : "", err.text);
		exit(1);
	}
	return doc;
}

TEST(a_checkpoint_after_each_turn)
{
	struct checkpoints *c = NULL;
	struct scene s;
	struct scene t;
	json_t *about = parse("{\"file\":\"crew.yaml\"}");
	json_t *list;
	json_t *doc;
	json_t *parent;

	make_dir();
	two(&s, "{\"max_messages\":4}");
	CHECK(checkpoints_open(dir, 0, &c, &s.err) == 0);
	team_keep(s.team, c, about);
	scene_run(&s, "go");
	list = checkpoints_list(c, &s.err);
	CHECK_INT((long long)json_array_size(list), 3);
	doc = json_array_get(list, 0);
	CHECK_STR(field(doc, "id"), field(s.result, "checkpoint"));
	CHECK_STR(field(doc, "parent"), field(json_array_get(list, 1), "id"));
	CHECK_STR(field(doc, "reason"), field(s.result, "stop_reason"));
	CHECK_STR(field(json_array_get(list, 1), "reason"), "turn");
	CHECK(json_equal(json_object_get(doc, "about"), about));
	/* As after a crash: the one before the last. */
	parent = read_back(c, field(doc, "parent"));
	two(&t, "{\"max_messages\":4}");
	load(&t, json_object_get(parent, "state"));
	team_keep(t.team, c, about);
	team_set_checkpoint(t.team, field(parent, "id"));
	scene_resume(&t, NULL);
	CHECK_STR(told(json_object_get(t.result, "messages")),
		  "user:go a:a1 b:b1 a:* a:a2");
	doc = read_back(c, field(t.result, "checkpoint"));
	json_decref(doc);
	json_decref(parent);
	json_decref(list);
	json_decref(about);
	scene_done(&s);
	scene_done(&t);
	checkpoints_close(c);
	clean();
}

TEST(suspended_runs_have_one)
{
	struct checkpoints *c = NULL;
	struct scene s;
	struct scene t;
	json_t *doc;

	make_dir();
	asking(&s, "?");
	CHECK(checkpoints_open(dir, 0, &c, &s.err) == 0);
	team_keep(s.team, c, NULL);
	scene_run(&s, "go");
	doc = read_back(c, field(s.result, "checkpoint"));
	scene_done(&s);
	asking(&t, "?");
	load(&t, json_object_get(doc, "state"));
	scene_resume(&t, "{\"ask-1\":\"yes\"}");
	RESULT(&t, "completed",
	       "Maximum number of messages 4 reached, current message count: 4",
	       "user:go a:a1 b:* b:yes a:a2");
	json_decref(doc);
	scene_done(&t);
	checkpoints_close(c);
	clean();
}

TEST(no_room_for_a_checkpoint_is_said)
{
	struct checkpoints *c = NULL;
	struct scene s;
	struct err err = { 0 };
	bool is_said = false;
	size_t i;
	json_t *e;

	make_dir();
	CHECK(checkpoints_open(dir, 0, &c, &err) == 0);
	clean();
	two(&s, "{\"max_messages\":3}");
	team_keep(s.team, c, NULL);
	scene_run(&s, "go");
	CHECK_STR(field(s.result, "status"), "completed");
	CHECK(json_is_null(json_object_get(s.result, "checkpoint")));
	json_array_foreach(s.events, i, e)
		is_said |= strcmp(chat_type(e), "ErrorEvent") == 0;
	CHECK(is_said);
	scene_done(&s);
	checkpoints_close(c);
}

TAP_MAIN()
