/* SPDX-License-Identifier: Apache-2.0 */

/* Turns of the assistant that are cancelled, paused, suspended or dropped. */

#include "tests/tap.h"

#include "tests/agents/fakes.h"

#define CALL(id, name)                                                         \
	"{\"id\":\"" id "\",\"name\":\"" name "\","                            \
	"\"arguments\":\"{\\\"n\\\": " id "}\"}"

static struct agent *make(const char *config, struct model *m,
			  struct toolset *t)
{
	struct err err = { 0 };
	json_t *c = doc(config);
	struct agent *a = NULL;

	CHECK_INT(agent_assistant(the_loop(), "ann", c, m, t, &a, &err), 0);
	CHECK_STR(err.text, "");
	json_decref(c);
	return a;
}

static size_t history(struct agent *a)
{
	json_t *state = agent_save(a);
	size_t n = json_array_size(
		json_object_get(json_object_get(state, "context"), "messages"));

	json_decref(state);
	return n;
}

struct alarm_clock {
	struct timer timer;
	struct cancel *cancel;
	struct agent *agent;
	bool rang;
};

static void ring(struct timer *t)
{
	struct alarm_clock *c = (struct alarm_clock *)t;

	c->rang = true;
	if (c->cancel)
		cancel_fire(c->cancel, "enough");
	else if (c->agent)
		agent_unpause(c->agent);
}

static void ring_in(struct alarm_clock *c, int64_t ms)
{
	c->timer.fire = ring;
	(void)timer_set(the_loop(), &c->timer, clock_us() + ms * 1000);
}

/* --- cancel --- */

static const struct say calls_then_text[] = {
	{ .calls = "[" CALL("1", "echo") "," CALL("2", "hang") "]" },
	{ .content = "well again" },
};

TEST(d27_cancel_in_a_tool_call_ends_the_turn)
{
	struct model *m = fake_model(the_loop(), calls_then_text);
	struct toolset *t = fake_tools(the_loop(), "echo hang");
	struct agent *a = make("{}", m, t);
	struct cancel *c = cancel_new(the_loop(), NULL, 0);
	struct alarm_clock clock = { .cancel = c };
	struct heard h = { 0 };
	int64_t began = clock_us();
	json_t *r;

	ring_in(&clock, 30);
	ask_list(a, json_pack("[o]", chat_text("user", "go")), c, &h);
	CHECK(clock_us() - began < 1000000);
	CHECK_INT(h.ends, 1);
	CHECK_INT((int)h.why.code, FAULT_CANCELLED);
	CHECK_HAS(h.why.message, "enough");
	CHECK_INT((long long)history(a), 0);
	/* Every call has its result nevertheless. */
	r = json_object_get(event_of(&h, "ToolCallExecutionEvent"), "content");
	CHECK_INT((long long)json_array_size(r), 2);
	/* And the next turn works. */
	ask(a, "again", &h);
	CHECK_STR(text_of(h.chat), "well again");
	CHECK_INT((long long)history(a), 2);
	cancel_unref(c);
	heard_done(&h);
	agent_free(a);
	model_unref(m);
}

TEST(d27_a_tool_that_does_not_stop_is_left_behind)
{
	static const struct say script[] = {
		{ .calls = "[" CALL("1", "echo") "," CALL("2", "stuck") "]" },
		{ .content = "well again" },
	};
	struct model *m = fake_model(the_loop(), script);
	struct toolset *t = fake_tools(the_loop(), "echo stuck");
	struct agent *a = make("{}", m, t);
	struct cancel *c = cancel_new(the_loop(), NULL, 0);
	struct alarm_clock clock = { .cancel = c };
	struct heard h = { 0 };
	int64_t began = clock_us();
	json_t *r;

	ring_in(&clock, 10);
	ask_list(a, json_pack("[o]", chat_text("user", "go")), c, &h);
	CHECK(clock_us() - began < 3000000);
	CHECK_INT((int)h.why.code, FAULT_CANCELLED);
	r = json_object_get(event_of(&h, "ToolCallExecutionEvent"), "content");
	CHECK_INT((long long)json_array_size(r), 2);
	CHECK_INT((long long)history(a), 0);
	ask(a, "again", &h);
	CHECK_STR(text_of(h.chat), "well again");
	cancel_unref(c);
	heard_done(&h);
	agent_free(a);
	model_unref(m);
}

TEST(cancel_in_a_model_call_ends_the_turn)
{
	static const struct say script[] = {
		{ .hangs = true },
		{ .content = "well again" },
	};
	struct model *m = fake_model(the_loop(), script);
	struct agent *a = make("{}", m, NULL);
	struct cancel *c = cancel_new(the_loop(), NULL, clock_us() + 20000);
	struct heard h = { 0 };

	ask_list(a, json_pack("[o]", chat_text("user", "go")), c, &h);
	CHECK_INT((int)h.why.code, FAULT_DEADLINE);
	CHECK_INT((long long)history(a), 0);
	ask(a, "again", &h);
	CHECK_STR(text_of(h.chat), "well again");
	cancel_unref(c);
	heard_done(&h);
	agent_free(a);
	model_unref(m);
}

TEST(a_token_that_has_fired_asks_nobody)
{
	static const struct say script[] = { { .content = "no" } };
	struct model *m = fake_model(the_loop(), script);
	struct agent *a = make("{}", m, NULL);
	struct cancel *c = cancel_new(the_loop(), NULL, 0);
	struct heard h = { 0 };

	cancel_fire(c, "before");
	ask_list(a, json_pack("[o]", chat_text("user", "go")), c, &h);
	CHECK_INT((int)h.why.code, FAULT_CANCELLED);
	CHECK_INT((long long)m->at, 0);
	cancel_unref(c);
	heard_done(&h);
	agent_free(a);
	model_unref(m);
}

TEST(one_turn_at_a_time)
{
	static const struct say script[] = {
		{ .content = "one" },
		{ .content = "two" },
	};
	struct model *m = fake_model(the_loop(), script);
	struct agent *a = make("{}", m, NULL);
	struct heard h = { 0 };
	struct heard g = { 0 };
	json_t *list = json_pack("[o]", chat_text("user", "go"));

	heard_begin(&h);
	heard_begin(&g);
	(void)turn_begin(a, list,
			 &(struct turn_asker){ "t", "r", NULL, &hears, &h });
	(void)turn_begin(a, list,
			 &(struct turn_asker){ "t", "r", NULL, &hears, &g });
	(void)loop_run(the_loop(), is_heard, &h);
	CHECK_STR(text_of(h.chat), "one");
	CHECK_INT((int)g.why.code, FAULT_REJECTED);
	ask(a, "more", &h);
	CHECK_STR(text_of(h.chat), "two");
	json_decref(list);
	heard_done(&h);
	heard_done(&g);
	agent_free(a);
	model_unref(m);
}

static bool never(void *arg)
{
	(void)arg;
	return false;
}

/* After so many looks. */
static bool is_counted(void *arg)
{
	return (*(int *)arg)-- <= 0;
}

static bool is_asked(void *arg)
{
	return ((struct model *)arg)->at > 0;
}

static bool is_made(void *arg)
{
	return json_array_size(((struct toolset *)arg)->made) > 0;
}

/* Whoever asked has gone, at any point: nothing is heard, nothing is kept. */
TEST(a_turn_can_be_dropped_at_any_point)
{
	static const struct say script[] = {
		{ .calls = "[" CALL("1", "slow") "," CALL("2", "echo") "]" },
		{ .content = "end" },
		{ .calls = "[" CALL("1", "slow") "," CALL("2", "echo") "]" },
		{ .content = "end" },
	};

	for (int rounds = 0; rounds < 25; rounds++) {
		struct model *m = fake_model(the_loop(), script);
		struct toolset *t = fake_tools(the_loop(), "slow echo");
		struct agent *a = make("{'max_tool_iterations':2}", m, t);
		json_t *list = json_pack("[o]", chat_text("user", "go"));
		struct heard h = { 0 };
		int left = rounds;
		struct turn *turn;

		heard_begin(&h);
		turn = turn_begin(a, list,
				  &(struct turn_asker){ "t", "r", NULL, &hears,
							&h });
		(void)loop_run(the_loop(), is_counted, &left);
		if (!h.ends)
			turn_drop(turn);
		else
			CHECK_STR(text_of(h.chat), "end");
		(void)loop_run(the_loop(), never, NULL);
		CHECK(h.ends == 0 || h.chat);
		/* Not at all, or as a whole. */
		CHECK(history(a) == 0 || history(a) == 4);
		json_decref(list);
		heard_done(&h);
		agent_free(a);
		model_unref(m);
	}
}

TEST(an_agent_can_go_in_the_middle_of_a_turn)
{
	struct model *m = fake_model(the_loop(), calls_then_text);
	struct toolset *t = fake_tools(the_loop(), "echo");
	struct agent *a = make("{}", m, t);
	json_t *list = json_pack("[o]", chat_text("user", "go"));
	struct heard h = { 0 };

	heard_begin(&h);
	(void)turn_begin(a, list,
			 &(struct turn_asker){ "t", "r", NULL, &hears, &h });
	agent_free(a);
	(void)loop_run(the_loop(), never, NULL);
	CHECK_INT(h.ends, 0);
	json_decref(list);
	heard_done(&h);
	model_unref(m);
}

/* Saved in the middle, a turn is not there at all. */
TEST(state_in_the_middle_of_a_turn_is_that_before_it)
{
	static const struct say script[] = {
		{ .calls = "[" CALL("1", "slow") "," CALL("2", "echo") "]" },
		{ .content = "end" },
	};
	struct model *m = fake_model(the_loop(), script);
	struct toolset *t = fake_tools(the_loop(), "slow echo");
	struct agent *a = make("{'max_tool_iterations':2}", m, t);
	json_t *list = json_pack("[o]", chat_text("user", "go"));
	struct heard h = { 0 };
	struct err err = { 0 };
	json_t *state;

	heard_begin(&h);
	(void)turn_begin(a, list,
			 &(struct turn_asker){ "t", "r", NULL, &hears, &h });
	(void)loop_run(the_loop(), is_made, t);
	CHECK_INT((long long)history(a), 0);
	state = agent_save(a);
	CHECK(agent_load(a, state, &err) < 0);
	CHECK_HAS(err.text, "has a turn");
	(void)loop_run(the_loop(), is_heard, &h);
	CHECK_STR(text_of(h.chat), "end");
	CHECK_INT((long long)history(a), 4);
	CHECK_INT(agent_load(a, state, &err), 0);
	CHECK_INT((long long)history(a), 0);
	json_decref(state);
	json_decref(list);
	heard_done(&h);
	agent_free(a);
	model_unref(m);
}

TEST(a_reset_ends_the_turn)
{
	struct model *m = fake_model(the_loop(), calls_then_text);
	struct toolset *t = fake_tools(the_loop(), "echo hang");
	struct agent *a = make("{}", m, t);
	json_t *list = json_pack("[o]", chat_text("user", "go"));
	struct heard h = { 0 };

	heard_begin(&h);
	(void)turn_begin(a, list,
			 &(struct turn_asker){ "t", "r", NULL, &hears, &h });
	(void)loop_run(the_loop(), is_made, t);
	agent_reset(a);
	(void)loop_run(the_loop(), is_heard, &h);
	CHECK_INT((int)h.why.code, FAULT_CANCELLED);
	CHECK_HAS(h.why.message, "reset");
	CHECK_INT((long long)history(a), 0);
	ask(a, "again", &h);
	CHECK_STR(text_of(h.chat), "well again");
	json_decref(list);
	heard_done(&h);
	agent_free(a);
	model_unref(m);
}

/* --- pause --- */

TEST(d36_nothing_starts_while_paused)
{
	static const struct say script[] = {
		{ .calls = "[" CALL("1", "echo") "]" },
		{ .content = "end" },
	};
	struct model *m = fake_model(the_loop(), script);
	struct toolset *t = fake_tools(the_loop(), "echo");
	struct agent *a = make("{'max_tool_iterations':2}", m, t);
	json_t *list = json_pack("[o]", chat_text("user", "go"));
	struct heard h = { 0 };

	heard_begin(&h);
	agent_pause(a);
	(void)turn_begin(a, list,
			 &(struct turn_asker){ "t", "r", NULL, &hears, &h });
	(void)loop_run(the_loop(), never, NULL);
	CHECK_INT((long long)json_array_size(m->requests), 0);
	CHECK_INT(h.ends, 0);

	/* It is paused again once the model has been asked. */
	agent_unpause(a);
	(void)loop_run(the_loop(), is_asked, m);
	agent_pause(a);
	(void)loop_run(the_loop(), never, NULL);
	CHECK_INT((long long)json_array_size(m->requests), 1);
	CHECK_INT((long long)json_array_size(t->made), 0);
	CHECK_STR(types(&h), "ToolCallRequestEvent");

	/* And once more after the call. */
	agent_unpause(a);
	(void)loop_run(the_loop(), is_made, t);
	agent_pause(a);
	(void)loop_run(the_loop(), never, NULL);
	CHECK_INT((long long)json_array_size(m->requests), 1);
	CHECK_INT(h.ends, 0);

	agent_unpause(a);
	(void)loop_run(the_loop(), is_heard, &h);
	CHECK_STR(text_of(h.chat), "end");
	json_decref(list);
	heard_done(&h);
	agent_free(a);
	model_unref(m);
}

TEST(d36_a_paused_turn_can_be_cancelled)
{
	static const struct say script[] = { { .content = "end" } };
	struct model *m = fake_model(the_loop(), script);
	struct agent *a = make("{}", m, NULL);
	struct cancel *c = cancel_new(the_loop(), NULL, 0);
	struct alarm_clock clock = { .cancel = c };
	struct heard h = { 0 };
	int64_t began = clock_us();

	agent_pause(a);
	ring_in(&clock, 10);
	ask_list(a, json_pack("[o]", chat_text("user", "go")), c, &h);
	CHECK_INT((int)h.why.code, FAULT_CANCELLED);
	CHECK(clock_us() - began < 1000000);
	CHECK_INT((long long)m->at, 0);
	agent_unpause(a);
	ask(a, "again", &h);
	CHECK_STR(text_of(h.chat), "end");
	cancel_unref(c);
	heard_done(&h);
	agent_free(a);
	model_unref(m);
}

/* --- suspension --- */

static const struct say ask_three[] = {
	{ .calls = "[" CALL("1", "echo") "," CALL("2",
						  "ask") "," CALL("3",
								  "ask2") "]",
	  .prompt = 7 },
};
static const struct say after_three[] = { { .content = "all done" } };

#define THREE "{'max_tool_iterations':2}"

TEST(s9_a_suspended_turn_goes_on_in_another_process)
{
	struct model *m = fake_model(the_loop(), ask_three);
	struct toolset *t = fake_tools(the_loop(), "echo ask ask2");
	struct agent *a = make(THREE, m, t);
	struct heard h = { 0 };
	json_t *pending;
	json_t *state;
	char *text;
	struct err err = { 0 };

	ask(a, "go", &h);
	CHECK(h.chat == NULL && h.pending);
	CHECK_STR(types(&h), "ToolCallRequestEvent ApprovalRequestedEvent "
			     "ApprovalRequestedEvent");
	CHECK_INT((long long)json_array_size(t->made), 1);
	CHECK_STR(json_string_value(json_object_get(h.pending, "kind")),
		  "approval");
	CHECK_STR(json_string_value(json_object_get(h.pending, "id")),
		  "appr-2");
	CHECK_STR(json_string_value(json_object_get(h.pending, "tool")), "ask");
	/* It is not known whether the answer ever comes. */
	CHECK_INT((long long)history(a), 0);

	/* Everything that is left is two texts on a disk. */
	text = json_dumps(h.pending, 0);
	state = agent_save(a);
	agent_free(a);
	model_unref(m);
	pending = json_loads(text, 0, NULL);
	free(text);

	m = fake_model(the_loop(), after_three);
	t = fake_tools(the_loop(), "echo ask ask2");
	t->yes = "appr-2";
	a = make(THREE, m, t);
	CHECK_INT(agent_load(a, state, &err), 0);
	resume(a, pending, "{\"id\":\"appr-2\",\"approved\":true}", &h);
	/* The second is asked about next, and is no news. */
	CHECK_STR(types(&h), "ApprovalDecidedEvent");
	CHECK_STR(json_string_value(json_object_get(h.pending, "id")),
		  "appr-3");
	/* Exactly the stored arguments, and nothing a second time. */
	CHECK_INT((long long)json_array_size(t->made), 1);
	CHECK_STR(json_string_value(json_array_get(t->made, 0)),
		  "ask {\"n\": 2}");
	json_decref(pending);
	pending = json_incref(h.pending);

	t->yes = "appr-2 appr-3";
	resume(a, pending, "{\"id\":\"appr-3\",\"approved\":true}", &h);
	CHECK_INT((long long)json_array_size(t->made), 2);
	CHECK_STR(types(&h), "ApprovalDecidedEvent ToolCallExecutionEvent");
	CHECK_STR(text_of(h.chat), "all done");
	CHECK_INT((long long)json_array_size(json_object_get(
			  event_of(&h, "ToolCallExecutionEvent"), "content")),
		  3);
	CHECK_INT((long long)history(a), 4);
	/* system, go, calls, results */
	CHECK_INT((long long)json_array_size(asked(m, 0)), 4);
	json_decref(pending);
	json_decref(state);
	heard_done(&h);
	agent_free(a);
	model_unref(m);
}

TEST(s9_a_no_is_an_error_that_the_model_reads)
{
	static const struct say script[] = {
		{ .calls = "[" CALL("1", "ask") "]" },
		{ .content = "then not" },
	};
	struct model *m = fake_model(the_loop(), script);
	struct toolset *t = fake_tools(the_loop(), "ask");
	struct agent *a = make(THREE, m, t);
	struct heard h = { 0 };
	json_t *pending;

	ask(a, "go", &h);
	pending = json_incref(h.pending);
	resume(a, pending,
	       "{\"id\":\"appr-1\",\"approved\":false,\"reason\":\"too "
	       "dear\"}",
	       &h);
	CHECK_STR(text_of(event_of(&h, "ToolCallExecutionEvent")),
		  "Tool call was not approved. Reason: too dear");
	CHECK_STR(text_of(h.chat), "then not");
	CHECK_INT((long long)json_array_size(t->made), 0);
	json_decref(pending);
	heard_done(&h);
	agent_free(a);
	model_unref(m);
}

/* A yes that the store does not know of is none. */
TEST(s9_a_yes_is_not_believed)
{
	static const struct say script[] = {
		{ .calls = "[" CALL("1", "ask") "]" },
	};
	struct model *m = fake_model(the_loop(), script);
	struct toolset *t = fake_tools(the_loop(), "ask");
	struct agent *a = make("{}", m, t);
	struct heard h = { 0 };
	json_t *pending;

	ask(a, "go", &h);
	pending = json_incref(h.pending);
	resume(a, pending, "{\"id\":\"appr-1\",\"approved\":true}", &h);
	CHECK(h.pending != NULL);
	CHECK_INT((long long)json_array_size(t->made), 0);
	json_decref(pending);
	heard_done(&h);
	agent_free(a);
	model_unref(m);
}

TEST(s9_an_agent_can_ask_about_every_call)
{
	static const struct say script[] = {
		{ .calls = "[" CALL("1", "echo") "]" },
	};
	struct model *m = fake_model(the_loop(), script);
	struct toolset *t = fake_tools(the_loop(), "echo");
	struct agent *a = make("{'approval':'always'}", m, t);
	struct heard h = { 0 };

	ask(a, "go", &h);
	CHECK(h.pending != NULL);
	CHECK_INT((long long)json_array_size(t->made), 0);
	heard_done(&h);
	agent_free(a);
	model_unref(m);
}

TEST(s9_one_after_the_other_waits_at_the_question)
{
	struct model *m = fake_model(the_loop(), ask_three);
	struct toolset *t = fake_tools(the_loop(), "echo ask ask2");
	struct agent *a = make("{'parallel':false}", m, t);
	struct heard h = { 0 };
	json_t *pending;

	ask(a, "go", &h);
	CHECK_STR(types(&h), "ToolCallRequestEvent ApprovalRequestedEvent");
	pending = json_incref(h.pending);
	t->yes = "appr-2 appr-3";
	resume(a, pending, "{\"approved\":true}", &h);
	/* The third was never asked about before. */
	CHECK_STR(json_string_value(json_object_get(h.pending, "id")),
		  "appr-3");
	json_decref(pending);
	pending = json_incref(h.pending);
	resume(a, pending, "{\"approved\":true}", &h);
	CHECK_STR(text_of(h.chat), "{\"n\": 1}\n{\"n\": 2}\n{\"n\": 3}");
	CHECK_INT((long long)json_array_size(t->made), 3);
	json_decref(pending);
	heard_done(&h);
	agent_free(a);
	model_unref(m);
}

TEST(s9_what_is_no_suspended_turn_is_refused)
{
	static const char *const bad[] = {
		"{'kind':'approval','id':'x'}",
		"{'kind':'approval','id':'x','state':{'type':'other',"
		"'version':1}}",
		"{'kind':'approval','id':'x','state':{'type':'assistant.turn',"
		"'version':1,'calls':[]}}",
		"{'kind':'approval','id':'x','state':{'type':'assistant.turn',"
		"'version':1,'calls':[{}],'results':[null],'approvals':[],"
		"'details':[null]}}",
		"{'kind':'approval','id':'x','state':{'type':'assistant.turn',"
		"'version':7,'calls':[{}],'results':[null],'approvals':[null],"
		"'details':[null]}}",
	};
	struct model *m = fake_model(the_loop(), after_three);
	struct toolset *t = fake_tools(the_loop(), "echo");
	struct agent *a = make("{}", m, t);
	struct heard h = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		json_t *pending = doc(bad[i]);

		resume(a, pending, "{\"approved\":true}", &h);
		CHECK_INT((int)h.why.code, FAULT_CANT_HANDLE);
		CHECK_INT((long long)history(a), 0);
		json_decref(pending);
	}
	CHECK_INT((long long)json_array_size(t->made), 0);
	heard_done(&h);
	agent_free(a);
	model_unref(m);
}

TAP_MAIN()
