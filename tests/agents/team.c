/* SPDX-License-Identifier: Apache-2.0 */

/* Teams: turns, ends, limits, errors, state. */

#include "tests/tap.h"

#include "team.h"

#define TEAM(s, kind, config, stop, ...)                                       \
	do {                                                                   \
		struct agent *agents_[] = { __VA_ARGS__ };                     \
		scene_team(s, kind, agents_, ARRAY_SIZE(agents_), config,      \
			   stop, NULL);                                        \
	} while (0)

static struct fake *fake(struct scene *s, const char *name)
{
	return (struct fake *)team_agent(s->team, name);
}

static const char *heard(struct scene *s, const char *name)
{
	static char text[4096];
	size_t n = 0;
	size_t i;
	json_t *v;

	text[0] = '\0';
	json_array_foreach(fake(s, name)->history, i, v)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s",
				      n ? "," : "", json_string_value(v));
	return text;
}

TEST(two_agents_until_max_messages)
{
	struct scene s;

	scene_init(&s);
	TEAM(&s, &team_round_robin, NULL, "{\"max_messages\":5}",
	     FAKE(s.loop, "a", "a1", "a2"), FAKE(s.loop, "b", "=2 b1", "b2"));
	scene_run(&s, "go");
	RESULT(&s, "completed",
	       "Maximum number of messages 5 reached, current message count: 5",
	       "user:go a:a1 b:* b:* b:b1 a:a2 b:b2");
	/* The stream is the same, in the same order. */
	CHECK_STR(told(s.events), "user:go a:a1 b:* b:* b:b1 a:a2 b:b2");
	CHECK_STR(heard(&s, "a"), "go,a1,b1,a2");
	CHECK_STR(heard(&s, "b"), "go,a1,b1,a2,b2");
	CHECK(json_is_null(json_object_get(s.result, "error")));
	CHECK_INT(json_integer_value(
			  json_object_get(json_object_get(s.result, "usage"),
					  "turns")),
		  4);
	CHECK_INT(json_integer_value(
			  json_object_get(json_object_get(s.result, "usage"),
					  "prompt_tokens")),
		  20);
	scene_done(&s);
}

TEST(one_participant_is_a_team)
{
	struct scene s;

	scene_init(&s);
	TEAM(&s, &team_round_robin, NULL, "{\"text_mention\":\"TERMINATE\"}",
	     FAKE(s.loop, "a", "x", "TERMINATE"));
	/* D47: the task says the word, and that is not enough. */
	scene_run(&s, "end with TERMINATE");
	RESULT(&s, "completed", "Text 'TERMINATE' mentioned",
	       "user:end with TERMINATE a:x a:TERMINATE");
	scene_done(&s);
}

TEST(a_stop_goes_on_where_it_was)
{
	struct scene s;

	scene_init(&s);
	TEAM(&s, &team_round_robin, NULL, "{\"max_messages\":2}",
	     FAKE(s.loop, "a", "a1", "a2"), FAKE(s.loop, "b", "b1", "b2"));
	scene_run(&s, "go");
	RESULT(&s, "completed",
	       "Maximum number of messages 2 reached, current message count: 2",
	       "user:go a:a1");
	/* No task: the conditions begin anew, the conversation goes on. */
	scene_run(&s, NULL);
	RESULT(&s, "completed",
	       "Maximum number of messages 2 reached, current message count: 2",
	       "b:b1 a:a2");
	CHECK_STR(heard(&s, "b"), "go,a1,b1");
	scene_run(&s, "more");
	RESULT(&s, "completed",
	       "Maximum number of messages 2 reached, current message count: 2",
	       "user:more b:b2");
	CHECK_STR(heard(&s, "b"), "go,a1,b1,a2,more,b2");
	scene_done(&s);
}

TEST(reset_forgets_everything)
{
	struct scene s;

	scene_init(&s);
	TEAM(&s, &team_round_robin, NULL, "{\"max_messages\":2}",
	     FAKE(s.loop, "a", "a1"), FAKE(s.loop, "b", "b1"));
	scene_run(&s, "go");
	CHECK(team_reset(s.team, &s.err) == 0);
	CHECK_STR(heard(&s, "a"), "");
	scene_run(&s, "again");
	RESULT(&s, "completed",
	       "Maximum number of messages 2 reached, current message count: 2",
	       "user:again a:a1");
	CHECK_STR(heard(&s, "a"), "again,a1");
	scene_done(&s);
}

TEST(max_turns_exactly)
{
	struct scene s;

	scene_init(&s);
	TEAM(&s, &team_round_robin, "{\"max_turns\":3}", NULL,
	     FAKE(s.loop, "a", "a1"), FAKE(s.loop, "b", "b1"));
	scene_run(&s, "go");
	RESULT(&s, "completed", "Maximum number of turns 3 reached.",
	       "user:go a:a1 b:b1 a:a1");
	scene_run(&s, NULL);
	RESULT(&s, "completed", "Maximum number of turns 3 reached.",
	       "b:b1 a:a1 b:b1");
	scene_done(&s);
}

TEST(the_task_is_checked_first)
{
	struct scene s;

	scene_init(&s);
	TEAM(&s, &team_round_robin, NULL, "{\"max_messages\":1}",
	     FAKE(s.loop, "a", "a1"));
	scene_run(&s, "go");
	RESULT(&s, "completed",
	       "Maximum number of messages 1 reached, current message count: 1",
	       "user:go");
	CHECK_INT((long long)fake(&s, "a")->turns, 0);
	scene_done(&s);
}

TEST(output_without_the_task)
{
	struct scene s;

	scene_init(&s);
	TEAM(&s, &team_round_robin,
	     "{\"max_turns\":1,\"output_task_messages\":false}", NULL,
	     FAKE(s.loop, "a", "a1"));
	scene_run(&s, "go");
	RESULT(&s, "completed", "Maximum number of turns 1 reached.", "a:a1");
	CHECK_STR(told(s.events), "a:a1");
	CHECK_STR(heard(&s, "a"), "go,a1");
	scene_done(&s);
}

/* D32: what was said before an error is not lost, nor is its cause. */
TEST(d32_failure_keeps_messages_and_cause)
{
	struct scene s;
	json_t *error;

	scene_init(&s);
	TEAM(&s, &team_round_robin, "{\"max_turns\":4}", NULL,
	     FAKE(s.loop, "a", "a1", "a2"), FAKE(s.loop, "b", "!broken", "b2"));
	scene_run(&s, "go");
	RESULT(&s, "failed", "Error: handler_failed: broken",
	       "user:go a:a1 b:*");
	error = json_object_get(s.result, "error");
	CHECK_STR(field(error, "code"), "handler_failed");
	CHECK_STR(field(error, "agent"), "b");
	CHECK_STR(field(json_object_get(error, "cause"), "code"),
		  "unavailable");
	CHECK_STR(heard(&s, "b"), "");
	/* The turn has not happened: it is b's again. */
	scene_run(&s, NULL);
	RESULT(&s, "completed", "Maximum number of turns 4 reached.",
	       "b:b2 a:a2 b:b2 a:a2");
	CHECK_STR(heard(&s, "b"), "go,a1,b2,a2,b2");
	scene_done(&s);
}

TEST(errors_are_skipped)
{
	struct scene s;

	scene_init(&s);
	TEAM(&s, &team_round_robin,
	     "{\"max_turns\":4,\"on_agent_error\":\"skip\"}", NULL,
	     FAKE(s.loop, "a", "a1", "a2"), FAKE(s.loop, "b", "!broken", "b2"));
	scene_run(&s, "go");
	/* Its event, what is said of the error, and on. */
	RESULT(&s, "completed", "Maximum number of turns 4 reached.",
	       "user:go a:a1 b:* b:* a:a2 b:b2");
	CHECK_INT(json_integer_value(
			  json_object_get(json_object_get(s.result, "usage"),
					  "errors")),
		  1);
	CHECK_STR(heard(&s, "b"), "go,a1,a2,b2");
	scene_done(&s);
}

TEST(errors_are_retried_so_often)
{
	struct scene s;

	scene_init(&s);
	TEAM(&s, &team_round_robin,
	     "{\"max_turns\":2,\"on_agent_error\":\"retry\"}", NULL,
	     FAKE(s.loop, "a", "!x", "!y", "a3", "!1", "!2", "!3", "a7"));
	scene_run(&s, "go");
	CHECK_STR(field(s.result, "status"), "failed");
	CHECK_STR(field(s.result, "stop_reason"), "Error: handler_failed: 3");
	CHECK_STR(heard(&s, "a"), "go,a3");
	scene_run(&s, NULL);
	CHECK_STR(heard(&s, "a"), "go,a3,a7,a7");
	scene_done(&s);
}

static bool breaks(void *arg, const json_t *fresh, struct fault *why)
{
	(void)arg;
	if (json_array_size(fresh) > 0 &&
	    strcmp(chat_source(json_array_get(fresh, 0)), "a") == 0)
		fault_set(why, FAULT_HANDLER, "the condition broke");
	return false;
}

TEST(a_condition_that_fails)
{
	struct scene s;

	CHECK(termination_register("breaks", breaks, NULL, NULL) == 0);
	scene_init(&s);
	TEAM(&s, &team_round_robin, NULL,
	     "{\"function\":{\"name\":\"breaks\"}}", FAKE(s.loop, "a", "a1"));
	scene_run(&s, "go");
	RESULT(&s, "failed", "Error: handler_failed: the condition broke",
	       "user:go a:a1");
	scene_done(&s);
}

TEST(errors_condition_counts)
{
	struct scene s;

	scene_init(&s);
	TEAM(&s, &team_round_robin, "{\"on_agent_error\":\"skip\"}",
	     "{\"errors\":2}", FAKE(s.loop, "a", "!x"));
	scene_run(&s, "go");
	CHECK_STR(field(s.result, "stop_reason"), "Error limit reached: 2");
	scene_done(&s);
}

/* --- limits --- */

TEST(token_budget_cuts_the_turn)
{
	struct scene s;

	scene_init(&s);
	TEAM(&s, &team_round_robin, "{\"budget\":{\"tokens\":40}}", NULL,
	     FAKE(s.loop, "a", "=9 a1"), FAKE(s.loop, "b", "b1"));
	scene_run(&s, "go");
	/* The third event is one too many: 45 tokens. */
	RESULT(&s, "cancelled", "Budget exceeded: tokens",
	       "user:go a:* a:* a:*");
	CHECK_STR(heard(&s, "a"), "");
	scene_done(&s);
}

TEST(money_is_a_budget_and_a_condition)
{
	struct scene s;
	struct scene t;

	scene_init(&s);
	TEAM(&s, &team_round_robin, "{\"budget\":{\"cost\":0.25}}", NULL,
	     FAKE(s.loop, "a", "=2 a1", "=9 a2"));
	scene_run(&s, "go");
	RESULT(&s, "cancelled", "Budget exceeded: cost",
	       "user:go a:* a:* a:a1 a:*");
	scene_done(&s);
	scene_init(&t);
	TEAM(&t, &team_round_robin, NULL, "{\"cost\":0.25}",
	     FAKE(t.loop, "a", "=2 a1", "=2 a2"));
	scene_run(&t, "go");
	RESULT(&t, "completed", "Cost limit reached: $0.4000 of $0.25",
	       "user:go a:* a:* a:a1 a:* a:* a:a2");
	scene_done(&t);
}

TEST(tool_call_budget_cuts_the_turn)
{
	struct scene s;

	scene_init(&s);
	TEAM(&s, &team_round_robin, "{\"budget\":{\"tool_calls\":5}}", NULL,
	     FAKE(s.loop, "a", "#3 a1", "#2 a2", "#1 a3"));
	scene_run(&s, "go");
	RESULT(&s, "cancelled", "Budget exceeded: tool_calls",
	       "user:go a:* a:a1 a:* a:a2 a:*");
	scene_done(&s);
}

TEST(tool_calls_condition_stops_after_the_turn)
{
	struct scene s;

	scene_init(&s);
	TEAM(&s, &team_round_robin, NULL, "{\"tool_calls\":4}",
	     FAKE(s.loop, "a", "#3 a1", "#2 a2"));
	scene_run(&s, "go");
	RESULT(&s, "completed", "Tool call limit reached: 4",
	       "user:go a:* a:a1 a:* a:a2");
	scene_done(&s);
}

TEST(wall_budget_cuts_what_hangs)
{
	struct scene s;
	int64_t begin = clock_us();

	scene_init(&s);
	TEAM(&s, &team_round_robin, "{\"budget\":{\"wall_seconds\":0.1}}", NULL,
	     FAKE(s.loop, "a", "a1"), FAKE(s.loop, "b", "~", "b2"));
	scene_run(&s, "go");
	RESULT(&s, "cancelled", "Budget exceeded: wall_seconds",
	       "user:go a:a1");
	CHECK(clock_us() - begin < 2000000);
	/* b has not had its turn. */
	scene_run(&s, NULL);
	CHECK_STR(chat_source(json_array_get(s.events, 0)), "b");
	scene_done(&s);
}

/* D18: from the start of the run, and hard. */
TEST(d18_timeout_is_hard_and_counts_from_the_run)
{
	struct scene s;
	int64_t begin;

	scene_init(&s);
	TEAM(&s, &team_round_robin, NULL, "{\"timeout\":{\"seconds\":0.3}}",
	     FAKE(s.loop, "a", "~"));
	(void)usleep(400000);
	begin = clock_us();
	scene_run(&s, "go");
	RESULT(&s, "completed", "Timeout of 0.3 seconds reached", "user:go");
	CHECK(clock_us() - begin >= 300000);
	CHECK(clock_us() - begin < 2000000);
	scene_done(&s);
}

TEST(a_deaf_agent_is_left_behind)
{
	struct scene s;
	int64_t begin = clock_us();

	scene_init_with(&s,
			&(struct runtime_options){ .cancel_grace = 200000 });
	TEAM(&s, &team_round_robin, NULL, "{\"timeout\":{\"seconds\":0.1}}",
	     FAKE(s.loop, "a", "~"));
	fake(&s, "a")->is_deaf = true;
	scene_run(&s, "go");
	RESULT(&s, "completed", "Timeout of 0.1 seconds reached", "user:go");
	CHECK(clock_us() - begin < 1500000);
	scene_done(&s);
}

/* --- much at once --- */

TEST(a_long_turn_is_larger_than_a_message)
{
	struct scene s;

	scene_init(&s);
	TEAM(&s, &team_round_robin, "{\"max_turns\":2}", NULL,
	     FAKE(s.loop, "a", "%40 100 a1", "a2"));
	scene_run(&s, "go");
	CHECK_STR(field(s.result, "status"), "completed");
	CHECK_INT((long long)json_array_size(
			  json_object_get(s.result, "messages")),
		  43);
	scene_done(&s);
}

/* More than all mailboxes hold: the rest waits, nothing is lost. */
TEST(a_burst_of_events_arrives)
{
	struct scene s;

	scene_init(&s);
	TEAM(&s, &team_round_robin, "{\"max_turns\":1}", NULL,
	     FAKE(s.loop, "a", "%9000 0 a1"));
	scene_run(&s, "go");
	CHECK_STR(field(s.result, "status"), "completed");
	CHECK_INT((long long)json_array_size(s.events), 9002);
	CHECK_INT((long long)json_array_size(
			  json_object_get(s.result, "messages")),
		  9002);
	scene_done(&s);
}

/* One that is too large for a message is missed, and that is said. */
TEST(an_event_too_large_is_said)
{
	struct scene s;
	json_t *e;

	scene_init(&s);
	TEAM(&s, &team_round_robin, "{\"max_turns\":1}", NULL,
	     FAKE(s.loop, "a", "%2 1100 a1"));
	scene_run(&s, "go");
	CHECK_STR(told(json_object_get(s.result, "messages")),
		  "user:go a:* a:a1");
	e = json_array_get(s.events, 1);
	CHECK_STR(chat_type(e), "ErrorEvent");
	CHECK_STR(field(json_object_get(e, "error"), "code"), "too_large");
	scene_done(&s);
}

/* What somebody has not heard yet is one message. */
TEST(a_task_larger_than_a_message)
{
	const struct runtime_options o = { .max_message = 8 << 20 };
	char *task = calloc(1, 2 << 20);

	memset(task, 'x', (2 << 20) - 1);
	for (int i = 0; i < 2; i++) {
		struct scene s;

		scene_init_with(&s, i ? &o : NULL);
		TEAM(&s, &team_round_robin, "{\"max_turns\":1}", NULL,
		     FAKE(s.loop, "a", "a1"));
		scene_run(&s, task);
		CHECK_STR(field(s.result, "status"),
			  i ? "completed" : "failed");
		if (!i)
			CHECK_STR(field(json_object_get(s.result, "error"),
					"code"),
				  "too_large");
		scene_done(&s);
	}
	free(task);
}

/* --- cancelling --- */

TEST(cancel_says_why)
{
	struct scene s;

	scene_init(&s);
	s.cancel = cancel_new(s.loop, NULL, 0);
	s.cancel_after = 2;
	TEAM(&s, &team_round_robin, "{\"max_turns\":9}", NULL,
	     FAKE(s.loop, "a", "a1"), FAKE(s.loop, "b", "=5 b1"));
	scene_run(&s, "go");
	CHECK_STR(field(s.result, "status"), "cancelled");
	CHECK_STR(field(s.result, "stop_reason"), "Cancelled: enough");
	scene_done(&s);
}

static bool count_down(void *arg)
{
	return --*(int *)arg < 0;
}

/* Its history is a part of the thread's beginning. */
static void check_history(const struct fake *f, const json_t *thread)
{
	size_t n = json_array_size(f->history);

	for (size_t i = 0; i < n; i++) {
		const json_t *heard = json_array_get(f->history, i);
		char *text = chat_to_text(json_array_get(thread, i));

		CHECK_STR(json_string_value(heard), text ? text : "");
		free(text);
	}
	CHECK(n == 0 || n - 1 < json_array_size(thread));
}

/*
 * D33: whenever it is cancelled, the next run is right: everybody hears
 * everything once, in order, and nobody is left out.
 */
static void check_thread(struct scene *s, const json_t *state)
{
	const json_t *thread = json_object_get(state, "thread");
	size_t n = json_array_size(thread);
	char who = 0;

	for (size_t i = 0; i < n; i++) {
		const char *source = chat_source(json_array_get(thread, i));

		if (strcmp(source, "user") == 0)
			continue;
		/* Round robin, over all runs. */
		if (who)
			CHECK(source[0] == (who == 'c' ? 'a' : who + 1));
		who = source[0];
	}
	for (size_t i = 0; i < team_size(s->team); i++)
		check_history(fake(s, team_member(s->team, i)), thread);
}

TEST(d33_cancel_at_a_hundred_points)
{
	unsigned int seed = 33;

	for (int i = 0; i < 100; i++) {
		int after = 1 + (int)(rand_r(&seed) % 18);
		struct scene s;
		json_t *state;

		scene_init(&s);
		TEAM(&s, &team_round_robin, NULL, "{\"max_messages\":6}",
		     FAKE(s.loop, "a", "=3 a1", "=3 a2", "=3 a3"),
		     FAKE(s.loop, "b", "=3 b1", "b2", "b3"),
		     FAKE(s.loop, "c", "c1", "=3 c2", "c3"));
		s.cancel = cancel_new(s.loop, NULL, 0);
		s.cancel_after = after;
		scene_run(&s, "go");
		if (after <= 10)
			CHECK_STR(field(s.result, "status"), "cancelled");
		state = team_save(s.team);
		CHECK(json_is_null(json_object_get(state, "run")));
		check_thread(&s, state);
		json_decref(state);
		cancel_unref(s.cancel);
		s.cancel = NULL;
		s.cancel_after = 0;
		scene_run(&s, "again");
		CHECK_STR(field(s.result, "status"), "completed");
		CHECK_STR(field(s.result, "stop_reason"),
			  "Maximum number of messages 6 reached, current "
			  "message count: 6");
		state = team_save(s.team);
		check_thread(&s, state);
		json_decref(state);
		CHECK_INT(s.overs, 2);
		scene_done(&s);
	}
}

static int was_cancelled(const struct scene *s)
{
	if (strcmp(field(s->result, "status"), "cancelled") != 0)
		return 0;
	CHECK_STR(field(s->result, "stop_reason"), "Cancelled: now");
	return 1;
}

/* At each step of the loop there is, also while somebody is chosen. */
TEST(d33_cancel_at_every_step)
{
	int cancelled = 0;

	for (int n = 0; n < 150; n++) {
		struct scene s;
		int steps = n;
		json_t *state;

		scene_init(&s);
		TEAM(&s, &team_round_robin, NULL, "{\"max_messages\":5}",
		     FAKE(s.loop, "a", "=2 a1", "a2"),
		     FAKE(s.loop, "b", "b1", "=2 b2"),
		     FAKE(s.loop, "c", "=1 c1"));
		s.cancel = cancel_new(s.loop, NULL, 0);
		scene_start(&s, "go");
		(void)loop_run(s.loop, count_down, &steps);
		cancel_fire(s.cancel, "now");
		scene_wait(&s);
		cancelled += was_cancelled(&s);
		cancel_unref(take_ptr(s.cancel));
		scene_run(&s, "again");
		CHECK_STR(field(s.result, "stop_reason"),
			  "Maximum number of messages 5 reached, current "
			  "message count: 5");
		state = team_save(s.team);
		check_thread(&s, state);
		json_decref(state);
		scene_done(&s);
	}
	CHECK(cancelled > 20 && cancelled < 150);
}

/* The same by time instead of by events, and with the team freed at once. */
TEST(freed_at_any_time)
{
	unsigned int seed = 7;
	size_t turns = 0;

	for (int i = 0; i < 100; i++) {
		struct scene s;
		int alive = 2;
		int steps = (int)(rand_r(&seed) % 60);

		scene_init(&s);
		TEAM(&s, &team_round_robin, NULL, NULL,
		     FAKE(s.loop, "a", "=3 a1"), FAKE(s.loop, "b", "b1"));
		fake(&s, "a")->alive = &alive;
		fake(&s, "b")->alive = &alive;
		scene_start(&s, "go");
		CHECK(loop_run(s.loop, count_down, &steps));
		turns += fake(&s, "a")->turns + fake(&s, "b")->turns;
		scene_done(&s);
		CHECK_INT(alive, 0);
		CHECK_INT(s.overs, 0);
	}
	CHECK(turns > 100); /* it was not always at the beginning */
}

static void free_at_event(void *arg, json_t *event)
{
	struct scene *s = arg;

	if (strcmp(chat_source(event), "a") != 0)
		return;
	team_free(take_ptr(s->team));
	s->is_over = true;
}

static void free_at_end(void *arg, json_t *result)
{
	struct scene *s = arg;

	CHECK_STR(field(result, "status"), "completed");
	team_free(take_ptr(s->team));
	s->is_over = true;
}

TEST(freed_by_its_own_callback)
{
	static const struct team_events ways[] = {
		{ .event = free_at_event, .over = scene_over },
		{ .event = scene_event, .over = free_at_end },
	};

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		struct scene s;
		json_t *task = json_pack("[o]", chat_text("user", "go"));
		int alive = 1;

		scene_init(&s);
		TEAM(&s, &team_round_robin, "{\"max_turns\":2}", NULL,
		     FAKE(s.loop, "a", "=3 a1"));
		fake(&s, "a")->alive = &alive;
		CHECK(team_run(s.team, task, NULL, &ways[i], &s, &s.err) == 0);
		scene_wait(&s);
		CHECK_INT(alive, 0);
		CHECK(s.team == NULL);
		json_decref(task);
		scene_done(&s);
	}
}

/* --- one thing at a time --- */

TEST(a_team_runs_once)
{
	struct scene s;
	struct err err = { 0 };

	scene_init(&s);
	TEAM(&s, &team_round_robin, "{\"max_turns\":1}", NULL,
	     FAKE(s.loop, "a", "a1"));
	scene_start(&s, "go");
	CHECK_INT(team_run(s.team, NULL, NULL, &scene_events, &s, &err),
		  -EBUSY);
	CHECK_INT(team_reset(s.team, &err), -EBUSY);
	scene_wait(&s);
	CHECK_STR(field(s.result, "status"), "completed");
	scene_done(&s);
}

TEST(wrong_tasks_and_teams)
{
	static const struct {
		const char *config, *want;
	} rows[] = {
		{ "{\"max_turn\":1}", "max_turn" },
		{ "{\"max_turns\":0}", "max_turns" },
		{ "{\"on_agent_error\":\"cry\"}", "cry" },
		{ "{\"budget\":{\"money\":1}}", "money" },
		{ "{\"budget\":{\"tokens\":-1}}", "tokens" },
	};
	struct scene s;
	struct err err = { 0 };
	json_t *task = parse("[]");
	struct agent *agents[] = { NULL, NULL };

	scene_init(&s);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		agents[0] = FAKE(s.loop, "a", "a1");
		CHECK(scene_try(&s, &team_round_robin, agents, 1,
				rows[i].config, NULL, NULL) < 0);
		CHECK_HAS(s.err.text, rows[i].want);
		agent_free(agents[0]); /* the caller's still */
	}
	agents[0] = FAKE(s.loop, "a", "a1");
	agents[1] = FAKE(s.loop, "a", "a1");
	CHECK(scene_try(&s, &team_round_robin, agents, 2, NULL, NULL, NULL) <
	      0);
	CHECK_HAS(s.err.text, "two participants");
	CHECK(scene_try(&s, &team_round_robin, agents, 0, NULL, NULL, NULL) <
	      0);
	agent_free(agents[1]);
	scene_team(&s, &team_round_robin, agents, 1, NULL, NULL, NULL);
	CHECK_INT(team_run(s.team, task, NULL, &scene_events, &s, &err),
		  -EINVAL);
	json_decref(task);
	scene_done(&s);
}

/* D36: between turns nothing begins while it is paused. */
static void unpause(struct timer *t);
static struct scene *paused_scene;
static size_t turns_while_paused;
static struct timer pause_timer = { .fire = unpause };

static void unpause(struct timer *t)
{
	(void)t;
	turns_while_paused = fake(paused_scene, "a")->turns;
	team_unpause(paused_scene->team);
}

TEST(d36_pause_between_turns)
{
	struct scene s;

	scene_init(&s);
	TEAM(&s, &team_round_robin, "{\"max_turns\":2}", NULL,
	     FAKE(s.loop, "a", "a1"));
	paused_scene = &s;
	team_pause(s.team);
	scene_start(&s, "go");
	CHECK(timer_set(s.loop, &pause_timer, clock_us() + 100000) == 0);
	scene_wait(&s);
	CHECK_INT((long long)turns_while_paused, 0);
	CHECK_STR(field(s.result, "stop_reason"),
		  "Maximum number of turns 2 reached.");
	scene_done(&s);
}

TEST(cancel_while_paused)
{
	struct scene s;

	scene_init(&s);
	s.cancel = cancel_new(s.loop, NULL, clock_us() + 50000);
	TEAM(&s, &team_round_robin, "{\"max_turns\":2}", NULL,
	     FAKE(s.loop, "a", "a1"));
	team_pause(s.team);
	scene_run(&s, "go");
	CHECK_STR(field(s.result, "status"), "cancelled");
	scene_done(&s);
}

static bool is_third_turn(void *arg)
{
	return fake(arg, "a")->turns == 3;
}

TEST(external_stop_ends_after_the_turn)
{
	struct scene s;
	struct agent *agents[1];
	json_t *config = parse("{\"external\":{}}");
	struct team_options o = { .name = "crew", .kind = &team_round_robin };
	struct termination *stop = NULL;

	scene_init(&s);
	CHECK(termination_new(config, &stop, &s.err) == 0);
	agents[0] = FAKE(s.loop, "a", "a1");
	o.runtime = s.runtime;
	o.agents = agents;
	o.n_agents = 1;
	o.stop = stop;
	CHECK(team_new(&o, &s.team, &s.err) == 0);
	scene_start(&s, "go");
	CHECK(loop_run(s.loop, is_third_turn, &s));
	termination_set(stop);
	scene_wait(&s);
	RESULT(&s, "completed", "External termination requested",
	       "user:go a:a1 a:a1 a:a1");
	json_decref(config);
	scene_done(&s);
}

/* Masks what participants say, wherever it passes. */
static enum filter_act mask(struct filter *f, const struct filter_view *v,
			    struct filter_verdict *ret)
{
	char *text = json_dumps(v->message->data, 0);
	char *at = strstr(text, "hunter2");

	(void)f;
	if (!at) {
		free(text);
		return FILTER_PASS;
	}
	for (; at; at = strstr(at, "hunter2"))
		memset(at, '*', 7);
	ret->message = message_new(v->message->type, json_loads(text, 0, NULL));
	free(text);
	return FILTER_REPLACE;
}

TEST(filters_see_every_word)
{
	static struct filter f = { .name = "mask", .judge = mask };
	struct scene s;
	char *all;

	scene_init(&s);
	runtime_add_filter(s.runtime, &f);
	TEAM(&s, &team_round_robin, "{\"max_turns\":3}", NULL,
	     FAKE(s.loop, "a", "a1 hunter2"), FAKE(s.loop, "b", "!hunter2"));
	scene_run(&s, "the password is hunter2");
	CHECK_STR(field(s.result, "stop_reason"),
		  "Error: handler_failed: *******");
	all = json_dumps(s.result, 0);
	CHECK(!strstr(all, "hunter2"));
	free(all);
	all = json_dumps(s.events, 0);
	CHECK(!strstr(all, "hunter2"));
	free(all);
	CHECK_STR(heard(&s, "a"), "the password is *******,a1 hunter2");
	scene_done(&s);
}

static enum filter_act reject(struct filter *f, const struct filter_view *v,
			      struct filter_verdict *ret)
{
	(void)f;
	if (v->hook != ON_RESPONSE ||
	    strcmp(v->message->type, "cordon.team.Answer") != 0)
		return FILTER_PASS;
	(void)snprintf(ret->reason, sizeof(ret->reason), "not today");
	return FILTER_REJECT;
}

TEST(a_rejected_answer_fails_the_run)
{
	static struct filter f = { .name = "no", .judge = reject };
	struct scene s;

	scene_init(&s);
	runtime_add_filter(s.runtime, &f);
	TEAM(&s, &team_round_robin, "{\"max_turns\":3}", NULL,
	     FAKE(s.loop, "a", "a1"));
	scene_run(&s, "go");
	CHECK_STR(field(s.result, "status"), "failed");
	CHECK_STR(field(json_object_get(s.result, "error"), "code"),
		  "rejected");
	/* Nobody has heard it, so it was not said. */
	CHECK_STR(heard(&s, "a"), "");
	scene_done(&s);
}

static enum filter_act drop_all(struct filter *f, const struct filter_view *v,
				struct filter_verdict *ret)
{
	(void)f;
	(void)v;
	(void)snprintf(ret->reason, sizeof(ret->reason), "silence");
	return FILTER_DROP;
}

TEST(a_filter_that_drops_everything_still_ends_it)
{
	static struct filter f = { .name = "silence", .judge = drop_all };
	struct scene s;

	scene_init(&s);
	runtime_add_filter(s.runtime, &f);
	TEAM(&s, &team_round_robin, NULL, NULL, FAKE(s.loop, "a", "a1"));
	scene_run(&s, "go");
	CHECK_STR(field(s.result, "status"), "failed");
	scene_done(&s);
}

TAP_MAIN()
