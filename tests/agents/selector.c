/* SPDX-License-Identifier: Apache-2.0 */

/* The selector: names in a model's answers, attempts, who may be next. */

#include "tests/tap.h"

#include "agent/selector.h"
#include "policy/policy.h"
#include "runtime/filter-policy.h"
#include "team.h"

static const char *const names[] = { "coder", "data_analyst", "data", "me" };

static const char *find(const char *text)
{
	size_t at = 0;
	size_t n = selector_name_find(text, names, ARRAY_SIZE(names), &at);

	if (n == 1)
		return names[at];
	return n == 0 ? "none" : "several";
}

TEST(names_are_words)
{
	CHECK_STR(find("coder"), "coder");
	CHECK_STR(find("The next one: **coder**."), "coder");
	CHECK_STR(find("coder, I mean coder"), "coder");
	CHECK_STR(find("decoder"), "none");
	CHECK_STR(find("coders"), "none");
	CHECK_STR(find("Coder"), "none");
	CHECK_STR(find(""), "none");
	CHECK_STR(find("somebody"), "none");
	CHECK_STR(find("coder or me"), "several");
	/* '_', '\_' and a blank are the same; the longer name counts. */
	CHECK_STR(find("data_analyst"), "data_analyst");
	CHECK_STR(find("data\\_analyst"), "data_analyst");
	CHECK_STR(find("data analyst"), "data_analyst");
	CHECK_STR(find("data"), "data");
	CHECK_STR(find("data analysts"), "data");
	CHECK_STR(find("data_analysts"), "none");
	CHECK_STR(find("name"), "none");
	CHECK_STR(find("me\xc3\xa9"), "none");
}

static void three(struct scene *s, struct fake_model *m, const char *config)
{
	struct agent *agents[3];

	agents[0] = FAKE(s->loop, "a", "from a");
	agents[1] = FAKE(s->loop, "b", "from b");
	agents[2] = FAKE(s->loop, "c_d", "from c");
	scene_team(s, &team_selector, agents, 3, config, NULL, &m->model);
}

TEST(the_model_says_who_is_next)
{
	struct scene s;
	struct fake_model *m;

	scene_init(&s);
	m = FAKE_MODEL(s.loop, "c d", "a", "b");
	three(&s, m, "{\"max_turns\":3}");
	scene_run(&s, "go {roles}");
	RESULT(&s, "completed", "Maximum number of turns 3 reached.",
	       "user:go {roles} c_d:from c a:from a b:from b");
	CHECK_INT((long long)m->calls, 3);
	/* The last question had all of it. */
	CHECK_HAS(m->last, "user: go {roles}");
	CHECK_HAS(m->last, "c_d: from c");
	CHECK_HAS(m->last, "b: one of the team");
	CHECK_HAS(m->last, "[\"b\", \"c_d\"]"); /* a has just spoken */
	/* Choosing costs as well. */
	CHECK_INT(json_integer_value(
			  json_object_get(json_object_get(s.result, "usage"),
					  "prompt_tokens")),
		  21);
	scene_done(&s);
}

TEST(a_prompt_of_ones_own)
{
	struct scene s;
	struct fake_model *m;

	scene_init(&s);
	m = FAKE_MODEL(s.loop, "a");
	three(&s, m,
	      "{\"max_turns\":1,\"prompt\":\"{participants}|{history}|"
	      "{roles}|{x}\"}");
	scene_run(&s, "go");
	CHECK_STR(m->last, "[user] [\"a\", \"b\", \"c_d\"]|user: go|"
			   "a: one of the team\nb: one of the team\n"
			   "c_d: one of the team|{x}\n");
	scene_done(&s);
}

/* The policy's filters on the system's words hold for the prompt, too. */
TEST(a_prompt_is_filtered)
{
	static const char text[] =
		"cordon-policy\t2\t0.1.0\t"
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcd"
		"ef\t/p\nversion\t1\tp:1:1\n"
		"filters.0.on.0\tsystem\tp:2:1\n"
		"filters.0.match.0\tsecrets\tp:2:1\n"
		"filters.0.do\tmask\tp:2:1\n";
	struct err err = { 0 };
	struct policy *p = policy_parse(text, sizeof(text) - 1, &err);
	struct screen *screen = NULL;
	struct fake_model *m;
	struct scene s;

	CHECK_STR(err.text, "");
	CHECK_INT(screen_new(&(struct screen_options){ .policy = p }, &screen,
			     &err),
		  0);
	scene_init(&s);
	m = FAKE_MODEL(s.loop, "a", "b");
	three(&s, m,
	      "{\"prompt\":\"AKIAIOSFODNN7EXAMPLE {participants}\","
	      "\"max_turns\":1}");
	agent_set_screen(team_agent(s.team, "a"), screen);
	scene_run(&s, "go");
	CHECK(strstr(m->last, "[masked: secret]") != NULL);
	CHECK(!strstr(m->last, "AKIA"));
	scene_done(&s);
	screen_unref(screen);
	policy_free(p);
}

TEST(success_after_two_attempts)
{
	struct scene s;
	struct fake_model *m;

	scene_init(&s);
	m = FAKE_MODEL(s.loop, "I would say a, or b", "b");
	three(&s, m, "{\"max_turns\":1}");
	scene_run(&s, "go");
	CHECK_STR(told(json_object_get(s.result, "messages")),
		  "user:go b:from b");
	CHECK_INT((long long)m->calls, 2);
	CHECK_HAS(m->last, "[assistant] I would say a, or b");
	CHECK_HAS(m->last, "[user] More than one name");
	scene_done(&s);
}

/* D23: nobody speaks twice, also not by falling back. */
TEST(d23_falls_back_to_the_first_candidate)
{
	struct scene s;
	struct fake_model *m;

	scene_init(&s);
	m = FAKE_MODEL(s.loop, "a", "nobody", "whoever", "a", "b");
	three(&s, m, "{\"max_turns\":3}");
	scene_run(&s, "go");
	/* a; then none, none, a again (forbidden): the first candidate. */
	CHECK_STR(told(json_object_get(s.result, "messages")),
		  "user:go a:from a b:from b a:from a");
	CHECK_INT((long long)m->calls, 7);
	CHECK_HAS(m->last, "That participant has just spoken");
	scene_done(&s);
}

TEST(falls_back_to_the_previous_speaker)
{
	struct scene s;
	struct fake_model *m;

	scene_init(&s);
	m = FAKE_MODEL(s.loop, "b", "nobody");
	three(&s, m,
	      "{\"max_turns\":2,\"allow_repeated_speaker\":true,"
	      "\"max_selector_attempts\":2}");
	scene_run(&s, "go");
	CHECK_STR(told(json_object_get(s.result, "messages")),
		  "user:go b:from b b:from b");
	CHECK_INT((long long)m->calls, 3);
	scene_done(&s);
}

TEST(one_participant_needs_no_model)
{
	struct scene s;
	struct agent *agents[1];

	scene_init(&s);
	agents[0] = FAKE(s.loop, "a", "from a");
	scene_team(&s, &team_selector, agents, 1, "{\"max_turns\":2}", NULL,
		   NULL);
	scene_run(&s, "go");
	CHECK_STR(told(json_object_get(s.result, "messages")),
		  "user:go a:from a a:from a");
	scene_done(&s);
}

TEST(two_take_turns_without_asking)
{
	struct scene s;
	struct fake_model *m;
	struct agent *agents[2];

	scene_init(&s);
	m = FAKE_MODEL(s.loop, "b");
	agents[0] = FAKE(s.loop, "a", "from a");
	agents[1] = FAKE(s.loop, "b", "from b");
	scene_team(&s, &team_selector, agents, 2, "{\"max_turns\":3}", NULL,
		   &m->model);
	scene_run(&s, "go");
	CHECK_STR(told(json_object_get(s.result, "messages")),
		  "user:go b:from b a:from a b:from b");
	CHECK_INT((long long)m->calls, 1);
	scene_done(&s);
}

/* --- functions of the program --- */

static const char *picks[8];
static size_t n_picked;

static json_t *pick(void *arg, const json_t *thread, struct fault *why)
{
	const char *name = picks[n_picked++];

	(void)arg;
	(void)thread;
	if (name && *name == '!')
		fault_set(why, FAULT_HANDLER, "%s", name + 1);
	return name && *name != '!' ? json_pack("[s]", name) : NULL;
}

static json_t *all_but_a(void *arg, const json_t *thread, struct fault *why)
{
	(void)arg;
	(void)thread;
	(void)why;
	return json_pack("[s, s]", "b", "c_d");
}

/* D22: what the function chose is the previous speaker. */
TEST(d22_function_is_remembered)
{
	struct scene s;
	struct fake_model *m;

	CHECK(selector_register("pick", pick, NULL, NULL) == 0);
	picks[0] = "b";
	scene_init(&s);
	/* b may not be repeated, though the model wants it. */
	m = FAKE_MODEL(s.loop, "b", "b", "b");
	three(&s, m, "{\"max_turns\":2,\"selector_func\":\"pick\"}");
	scene_run(&s, "go");
	CHECK_STR(told(json_object_get(s.result, "messages")),
		  "user:go b:from b a:from a");
	CHECK_INT((long long)m->calls, 3);
	scene_done(&s);
}

TEST(functions_can_fail)
{
	struct scene s;

	CHECK(selector_register("pick", pick, NULL, NULL) == 0);
	scene_init(&s);
	picks[0] = "!no idea";
	picks[1] = "stranger";
	three(&s, FAKE_MODEL(s.loop, "a"), "{\"selector_func\":\"pick\"}");
	scene_run(&s, "go");
	CHECK_STR(field(s.result, "stop_reason"),
		  "Error: handler_failed: no idea");
	scene_run(&s, NULL);
	CHECK_STR(field(s.result, "stop_reason"),
		  "Error: not_found: 'pick' names 'stranger', who is no "
		  "participant");
	scene_done(&s);
}

TEST(candidates_by_function)
{
	struct scene s;
	struct fake_model *m;

	CHECK(selector_register("all_but_a", all_but_a, NULL, NULL) == 0);
	scene_init(&s);
	m = FAKE_MODEL(s.loop, "a", "c_d");
	three(&s, m, "{\"max_turns\":1,\"candidate_func\":\"all_but_a\"}");
	scene_run(&s, "go");
	CHECK_STR(told(json_object_get(s.result, "messages")),
		  "user:go c_d:from c");
	CHECK_HAS(m->last, "That participant cannot speak now");
	scene_done(&s);
}

TEST(wrong_settings)
{
	static const char *const bad[] = {
		"{\"selector_func\":\"unknown\"}",
		"{\"candidate_func\":\"unknown\"}",
		"{\"max_selector_attempts\":0}",
		"{\"promt\":\"x\"}",
	};
	struct scene s;
	struct agent *agents[2];

	scene_init(&s);
	agents[0] = FAKE(s.loop, "a", "from a");
	agents[1] = FAKE(s.loop, "b", "from b");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		CHECK(scene_try(&s, &team_selector, agents, 2, bad[i], NULL,
				NULL) < 0);
	CHECK(scene_try(&s, &team_selector, agents, 2, NULL, NULL, NULL) < 0);
	CHECK_HAS(s.err.text, "needs a model");
	agent_free(agents[0]);
	agent_free(agents[1]);
	scene_done(&s);
}

/* --- cancelling, budgets, state --- */

static void fire(struct timer *t);
static struct cancel *to_fire;
static struct timer firing = { .fire = fire };

static void fire(struct timer *t)
{
	(void)t;
	cancel_fire(to_fire, "enough");
}

/* D24: the model's call ends with the run. */
TEST(d24_cancel_while_choosing)
{
	struct scene s;
	struct fake_model *m;
	int64_t begin;

	scene_init(&s);
	s.cancel = to_fire = cancel_new(s.loop, NULL, 0);
	m = FAKE_MODEL(s.loop, "~", "b");
	three(&s, m, "{\"max_turns\":1}");
	begin = clock_us();
	CHECK(timer_set(s.loop, &firing, begin + 50000) == 0);
	scene_run(&s, "go");
	RESULT(&s, "cancelled", "Cancelled: enough", "user:go");
	CHECK(clock_us() - begin < 1000000);
	CHECK(m->stopped > 0);
	cancel_unref(s.cancel);
	s.cancel = NULL;
	scene_run(&s, NULL);
	CHECK_STR(told(json_object_get(s.result, "messages")), "b:from b");
	scene_done(&s);
}

TEST(choosing_counts_for_the_budget)
{
	struct scene s;
	struct fake_model *m;

	scene_init(&s);
	m = FAKE_MODEL(s.loop, "nobody", "nobody", "a");
	three(&s, m, "{\"budget\":{\"tokens\":15}}");
	scene_run(&s, "go");
	RESULT(&s, "cancelled", "Budget exceeded: tokens", "user:go");
	CHECK_INT((long long)m->calls, 2);
	scene_done(&s);
}

TEST(events_of_the_team)
{
	struct scene s;
	json_t *e;

	scene_init(&s);
	three(&s, FAKE_MODEL(s.loop, "it is b"),
	      "{\"max_turns\":1,\"emit_team_events\":true}");
	scene_run(&s, "go");
	CHECK_STR(told(s.events), "user:go crew:* crew:* b:from b");
	e = json_array_get(s.events, 1);
	CHECK_STR(chat_type(e), "SelectorEvent");
	CHECK_STR(field(e, "content"), "it is b");
	CHECK(chat_check(e, &s.err) == 0);
	e = json_array_get(s.events, 2);
	CHECK_STR(chat_type(e), "SelectSpeakerEvent");
	CHECK(chat_check(e, &s.err) == 0);
	scene_done(&s);
}

TEST(the_previous_speaker_is_part_of_the_state)
{
	struct scene s;
	struct scene t;
	struct fake_model *m;
	json_t *state;

	scene_init(&s);
	three(&s, FAKE_MODEL(s.loop, "b"), "{\"max_turns\":1}");
	scene_run(&s, "go");
	state = team_save(s.team);
	scene_init(&t);
	m = FAKE_MODEL(t.loop, "b", "c_d");
	three(&t, m, "{\"max_turns\":1}");
	CHECK(team_load(t.team, state, &t.err) == 0);
	scene_run(&t, NULL);
	CHECK_STR(told(json_object_get(t.result, "messages")), "c_d:from c");
	CHECK_INT((long long)m->calls, 2);
	json_decref(state);
	scene_done(&s);
	scene_done(&t);
}

TAP_MAIN()
