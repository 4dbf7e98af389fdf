/* SPDX-License-Identifier: Apache-2.0 */

/* Histories that a model summarises: the context, and an agent that has one. */

#include "tests/tap.h"

#include "agent/parts.h"
#include "tests/agents/fakes.h"

/* --- the context by itself --- */

static struct context *make_context(const char *config)
{
	struct err err = { 0 };
	json_t *c = doc(config);
	struct context *ret = NULL;

	CHECK_INT(context_new(c, NULL, &ret, &err), 0);
	CHECK_STR(err.text, "");
	json_decref(c);
	return ret;
}

static void add(struct context *c, const char *what)
{
	for (; *what; what++)
		context_add(c,
			    *what == 'c'   ? doc("{'role':'assistant','source':"
						   "'ann','content':null,'calls':["
						   "{'id':'1','name':'look',"
						   "'arguments':'{}'}]}")
			    : *what == 't' ? doc("{'role':'tool','results':["
						 "{'call_id':'1','name':'look',"
						 "'content':'seen','is_error':"
						 "false}]}")
			    : *what == 'a'
				    ? doc("{'role':'assistant','source':"
					  "'ann','content':'yes'}")
				    : doc("{'role':'user','source':'eve',"
					  "'content':'why'}"));
}

/* u, c, t, a; S is a summary, # a note. */
static const char *seen(const struct context *c)
{
	static char line[128];
	json_t *list = context_messages(c);
	size_t i;
	json_t *m;

	line[0] = '\0';
	json_array_foreach(list, i, m)
	{
		const char *source = setting_text(m, "source", "");
		const char *text = setting_text(m, "content", "");

		line[i] = json_object_get(m, "calls")
				  ? 'c'
				  : setting_text(m, "role", "")[0];
		if (strcmp(source, "context") == 0)
			line[i] = strstr(text, "<untrusted") ? 'S' : '#';
		line[i + 1] = '\0';
	}
	json_decref(list);
	return line;
}

static const struct {
	const char *config, *history;
	int due;
	const char *before, *after;
} cases[] = {
	{ "{'kind':'summary','messages':4}", "uaua", 0, "uaua", "uaua" },
	{ "{'kind':'summary','messages':4}", "uauau", 3, "#auau", "Sau" },
	{ "{'kind':'summary','messages':4,'keep':1}", "uauau", 4, "#auau",
	  "Su" },
	/* Calls stay with their results, on either side. */
	{ "{'kind':'summary','messages':4,'keep':2}", "uactu", 4, "#actu",
	  "Su" },
	{ "{'kind':'summary','messages':4,'keep':2}", "uauct", 3, "#auct",
	  "Sct" },
	{ "{'kind':'summary','messages':3,'keep':1}", "uctt", 1, "#ctt",
	  "Sctt" },
	{ "{'kind':'summary','messages':2}", "ctt", 0, "ctt", "ctt" },
	/* Ten tokens a message. */
	{ "{'kind':'summary','tokens':40}", "uauau", 3, "#auau", "Sau" },
	{ "{'kind':'summary','tokens':40}", "uaua", 0, "uaua", "uaua" },
	{ "{'kind':'summary','tokens':40,'keep':1}", "uauau", 4, "#auau",
	  "Su" },
	{ "{'kind':'summary','tokens':30,'messages':9}", "uauau", 4, "#uau",
	  "Su" },
	{ "{'kind':'summary','tokens':5}", "uct", 1, "#ct", "Sct" },
};

static void check_case(size_t i)
{
	struct context *c = make_context(cases[i].config);
	ssize_t due;

	printf("# %s of %s\n", cases[i].config, cases[i].history);
	add(c, cases[i].history);
	due = context_due(c);
	CHECK_INT(due, cases[i].due);
	CHECK_STR(seen(c), cases[i].before);
	if (due > 0)
		CHECK(context_sum_up(c, (size_t)due, "so far") == 0);
	CHECK_INT(context_due(c), 0);
	CHECK_STR(seen(c), cases[i].after);
	context_free(c);
}

TEST(the_beginning_is_due_and_groups_stay_whole)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check_case(i);
}

/* Whether it has all of each group, at the beginning, too. */
static bool is_whole(const char *line)
{
	return line[0] != 't' && !strstr(line, "St") && !strstr(line, "#t") &&
	       !strstr(line, "cu") && !strstr(line, "ca");
}

static void check_some_history(int round, unsigned int *seed)
{
	static const char *const groups[] = { "u", "a", "ct" };
	struct context *c;
	char config[80];

	(void)snprintf(config, sizeof(config), "{'kind':'summary','%s':%d}",
		       round % 2 ? "messages" : "tokens",
		       round % 2 ? 2 + round % 7 : 10 + round % 70);
	c = make_context(config);
	for (int i = 0; i < 24; i++) {
		ssize_t due;

		*seed = *seed * 1103515245 + 12345;
		add(c, groups[(*seed >> 16) % 3]);
		due = context_due(c);
		CHECK(due >= 0);
		if (due > 0 && i % 3)
			CHECK(context_sum_up(c, (size_t)due, "s") == 0);
		CHECK(is_whole(seen(c)));
	}
	context_free(c);
}

/* Whatever the history: never a result first, and no call without it. */
TEST(no_summary_is_followed_by_a_result)
{
	unsigned int seed = 11;

	for (int round = 0; round < 200; round++)
		check_some_history(round, &seed);
}

TEST(the_request_has_all_of_it_as_data)
{
	struct context *c = make_context("{'kind':'summary','messages':2,"
					 "'prompt':'be short'}");
	json_t *big = json_pack("{s:s, s:s}", "role", "user", "content", "");
	char *text = malloc(60001);
	json_t *q;
	const char *said;

	/* Two bytes each: no half of one is left where it is cut. */
	for (int i = 0; i < 60000; i += 2)
		memcpy(text + i, "\xc3\xa4", 2);
	text[60000] = '\0';
	(void)json_object_set_new(big, "content", json_string(text));
	free(text);
	add(c, "uct");
	CHECK_INT(context_sum_up(c, 1, "they met"), 0);
	context_add(c, big);
	add(c, "u");
	q = context_ask(c, 4);
	CHECK_STR(setting_text(json_array_get(q, 0), "content", ""),
		  "be short");
	said = setting_text(json_array_get(q, 1), "content", "");
	CHECK_HAS(said, "<untrusted from=\"conversation\">");
	CHECK_HAS(said, "[summary of what was before]\nthey met");
	CHECK_HAS(said, "[ann]\ncalls look with {}");
	CHECK_HAS(said, "result of look: seen");
	CHECK_HAS(said, "bytes left out]");
	CHECK(strlen(said) < 20000);
	CHECK(!strstr(said, "[eve]")); /* summed up already */
	json_decref(q);
	context_free(c);
}

TEST(a_turn_takes_its_summaries_back)
{
	struct context *c = make_context("{'kind':'summary','messages':3}");
	json_t *now;
	json_t *then;
	size_t mark;

	add(c, "uaua");
	CHECK_INT(context_sum_up(c, 2, "one"), 0);
	mark = context_mark(c);
	then = context_save(c);
	add(c, "uau");
	CHECK_INT(context_sum_up(c, 6, "two"), 0);
	CHECK_STR(seen(c), "Su");
	/* What is saved in the middle of it is what was before. */
	now = context_save_before(c, mark);
	CHECK(json_equal(now, then));
	json_decref(now);
	context_rewind(c, mark);
	CHECK_STR(seen(c), "Sua");
	now = context_save(c);
	CHECK(json_equal(now, then));
	json_decref(now);
	context_clear(c);
	CHECK_STR(seen(c), "");
	now = context_save(c);
	CHECK(!json_object_get(now, "summary"));
	json_decref(now);
	json_decref(then);
	context_free(c);
}

TEST(a_summary_is_saved_and_loaded)
{
	static const char *const bad[] = { "{'upto':9,'text':'x'}",
					   "{'upto':0,'text':'x'}",
					   "{'upto':2}", "7" };
	struct context *a = make_context("{'kind':'summary','messages':3}");
	struct context *b = make_context("{'kind':'summary','messages':3}");
	struct err err = { 0 };
	json_t *s;
	json_t *t;

	add(a, "uaua");
	CHECK_INT(context_sum_up(a, 2, "so far"), 0);
	s = context_save(a);
	CHECK_INT(context_load(b, s, &err), 0);
	CHECK_STR(seen(b), "Sua");
	t = context_save(b);
	CHECK(json_equal(s, t));
	json_decref(t);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		(void)json_object_set_new(s, "summary", doc(bad[i]));
		CHECK(context_load(b, s, &err) < 0);
		CHECK_HAS(err.text, "summary");
		CHECK_STR(seen(b), "Sua");
	}
	json_decref(s);
	context_free(a);
	context_free(b);
}

TEST(a_very_long_summary_is_cut)
{
	struct context *c = make_context("{'kind':'summary','messages':2}");
	char *text = malloc(100001);
	json_t *list;

	memset(text, 'x', 100000);
	text[100000] = '\0';
	add(c, "uau");
	CHECK_INT(context_sum_up(c, 2, text), 0);
	list = context_messages(c);
	CHECK(strlen(setting_text(json_array_get(list, 0), "content", "")) <
	      34000);
	CHECK_HAS(setting_text(json_array_get(list, 0), "content", ""),
		  "[cut short]");
	json_decref(list);
	free(text);
	context_free(c);
}

/* --- an agent that has one --- */

#define CONTEXT "'context':{'kind':'summary','messages':4,'keep':1}"
#define CALL(id, name)                                                         \
	"[{\"id\":\"" id "\",\"name\":\"" name "\",\"arguments\":\"{}\"}]"

struct set {
	struct model *model;
	struct agent *agent;
	struct heard heard;
};

static void make(struct set *s, const char *config, const char *tools,
		 const struct say *script)
{
	struct err err = { 0 };
	json_t *c = doc(config);

	memset(s, 0, sizeof(*s));
	s->model = fake_model(the_loop(), script);
	CHECK_INT(agent_assistant(the_loop(), "ann", c, s->model,
				  tools ? fake_tools(the_loop(), tools) : NULL,
				  &s->agent, &err),
		  0);
	CHECK_STR(err.text, "");
	json_decref(c);
}

static void done(struct set *s)
{
	CHECK(!s->heard.had_event_after);
	heard_done(&s->heard);
	agent_free(s->agent);
	model_unref(s->model);
}

static json_t *summary_of(struct set *s)
{
	json_t *state = agent_save(s->agent);
	json_t *ret = json_incref(
		json_object_get(json_object_get(state, "context"), "summary"));

	json_decref(state);
	return ret;
}

static const char *content(const json_t *list, size_t i)
{
	return setting_text(json_array_get(list, i), "content", "");
}

TEST(an_agent_goes_on_from_a_summary)
{
	static const struct say script[] = {
		{ .content = "one" },
		{ .content = "two" },
		{ .content = "they counted",
		  .prompt = 100,
		  .completion = 7,
		  .cost = 0.25 },
		{ .content = "three", .prompt = 9, .completion = 1 },
		{ .content = "four" },
	};
	struct set s;
	json_t *e;
	json_t *kept;

	make(&s, "{'system_message':'count'," CONTEXT ",'stream':true}", NULL,
	     script);
	ask(s.agent, "a", &s.heard);
	ask(s.agent, "b", &s.heard);
	CHECK_STR(types(&s.heard), "");
	ask(s.agent, "c", &s.heard);
	CHECK_STR(types(&s.heard), "ContextSummaryEvent");
	CHECK_STR(text_of(s.heard.chat), "three");
	/* It is told, with what it used: budgets count from here. */
	e = event_of(&s.heard, "ContextSummaryEvent");
	CHECK_STR(text_of(e), "they counted");
	CHECK_INT(setting_int(e, "upto", 0), 4);
	CHECK_INT(setting_int(json_object_get(e, "models_usage"),
			      "prompt_tokens", 0),
		  100);
	CHECK(json_number_value(
		      json_object_get(json_object_get(e, "models_usage"),
				      "cost")) == 0.25);
	/* Asked with the beginning as data, and with nothing else. */
	CHECK_INT((long long)json_array_size(asked(s.model, 2)), 2);
	CHECK_HAS(content(asked(s.model, 2), 1), "[user]\na\n[ann]\none\n");
	CHECK(!strstr(content(asked(s.model, 2), 1), "[user]\nc"));
	/* And what is seen: the system's words, the summary, what is new. */
	CHECK_INT((long long)json_array_size(asked(s.model, 3)), 3);
	CHECK_STR(content(asked(s.model, 3), 0), "count");
	CHECK_HAS(content(asked(s.model, 3), 1), "they counted");
	CHECK_HAS(content(asked(s.model, 3), 1), "<untrusted from=\"summary");
	CHECK_STR(content(asked(s.model, 3), 2), "c");
	kept = summary_of(&s);
	CHECK_INT(setting_int(kept, "upto", 0), 4);
	json_decref(kept);
	ask(s.agent, "d", &s.heard);
	CHECK_STR(types(&s.heard), "");
	done(&s);
}

TEST(one_that_is_named_summarises)
{
	static const struct say own[] = {
		{ .content = "one" },
		{ .content = "two" },
		{ .content = "three" },
	};
	static const struct say other[] = { { .content = "in short" } };
	struct model *m = fake_model(the_loop(), other);
	struct set s;

	make(&s, "{" CONTEXT "}", NULL, own);
	agent_set_summariser(s.agent, m);
	ask(s.agent, "a", &s.heard);
	ask(s.agent, "b", &s.heard);
	ask(s.agent, "c", &s.heard);
	CHECK_STR(text_of(s.heard.chat), "three");
	CHECK_INT((long long)json_array_size(m->requests), 1);
	CHECK_INT((long long)json_array_size(s.model->requests), 3);
	CHECK_HAS(content(asked(s.model, 2), 1), "in short");
	done(&s);
	CHECK_INT(m->refs, 1);
	model_unref(m);
}

TEST(tools_of_a_long_turn_are_summarised)
{
	static const struct say script[] = {
		{ .calls = CALL("1", "echo") },
		{ .calls = CALL("2", "echo") },
		{ .content = "it looked" },
		{ .content = "end" },
	};
	struct set s;
	json_t *last;

	make(&s, "{'max_tool_iterations':3," CONTEXT "}", "echo", script);
	ask(s.agent, "go", &s.heard);
	CHECK_STR(text_of(s.heard.chat), "end");
	last = asked(s.model, 3);
	CHECK_INT((long long)json_array_size(last), 4);
	CHECK_HAS(content(last, 1), "it looked");
	CHECK(json_object_get(json_array_get(last, 2), "calls") != NULL);
	CHECK_STR(setting_text(json_array_get(last, 3), "role", ""), "tool");
	done(&s);
}

/* What goes wrong with it is told; the beginning is left out, with a note. */
TEST(a_failed_summary_leaves_the_history)
{
	static const struct say scripts[][5] = {
		{ { .content = "one" },
		  { .content = "two" },
		  { .fault = FAULT_UNAVAILABLE },
		  { .content = "three" } },
		{ { .content = "one" },
		  { .content = "two" },
		  { .content = " \n", .prompt = 50 },
		  { .content = "three" } },
		{ { .content = "one" },
		  { .content = "two" },
		  { .calls = CALL("1", "echo"), .prompt = 50 },
		  { .content = "three" } },
	};
	static const char *const said[] = { "the model is not well",
					    "gave no summary",
					    "gave no summary" };

	for (size_t i = 0; i < ARRAY_SIZE(scripts); i++) {
		struct set s;
		json_t *e;
		json_t *kept;

		make(&s, "{" CONTEXT "}", NULL, scripts[i]);
		ask(s.agent, "a", &s.heard);
		ask(s.agent, "b", &s.heard);
		ask(s.agent, "c", &s.heard);
		CHECK_STR(types(&s.heard), "ErrorEvent");
		CHECK_STR(text_of(s.heard.chat), "three");
		e = event_of(&s.heard, "ErrorEvent");
		CHECK_HAS(text_of(e), said[i]);
		CHECK_STR(setting_text(json_object_get(e, "metadata"), "level",
				       ""),
			  "warning");
		CHECK_INT(setting_int(json_object_get(e, "models_usage"),
				      "prompt_tokens", 0),
			  i ? 50 : 0);
		/* system, note, and as many as are allowed */
		CHECK_INT((long long)json_array_size(asked(s.model, 3)), 6);
		CHECK_HAS(content(asked(s.model, 3), 1), "1 message was left");
		CHECK_STR(content(asked(s.model, 3), 5), "c");
		kept = summary_of(&s);
		CHECK(kept == NULL);
		done(&s);
	}
}

/* Once a turn: the model that fails is not asked before each call again. */
TEST(it_is_tried_once_a_turn_and_again_in_the_next)
{
	static const struct say script[] = {
		{ .content = "one" },           { .content = "two" },
		{ .fault = FAULT_UNAVAILABLE }, { .calls = CALL("1", "echo") },
		{ .content = "three" },         { .content = "so far" },
		{ .content = "four" },
	};
	struct set s;

	make(&s, "{'max_tool_iterations':2," CONTEXT "}", "echo", script);
	ask(s.agent, "a", &s.heard);
	ask(s.agent, "b", &s.heard);
	ask(s.agent, "c", &s.heard);
	CHECK_STR(text_of(s.heard.chat), "three");
	ask(s.agent, "d", &s.heard);
	CHECK_STR(types(&s.heard), "ContextSummaryEvent");
	CHECK_STR(text_of(s.heard.chat), "four");
	done(&s);
}

/* Rings once: cancels, or lets the agent go on. */
struct bell {
	struct timer timer;
	struct cancel *cancel;
	struct agent *agent;
	struct model *model;
	size_t asked; /* by then */
};

static void ring(struct timer *t)
{
	struct bell *b = (struct bell *)t;

	b->asked = json_array_size(b->model->requests);
	if (b->cancel)
		cancel_fire(b->cancel, "enough");
	else
		agent_unpause(b->agent);
}

static void ring_soon(struct bell *b, struct set *s)
{
	b->timer.fire = ring;
	b->agent = s->agent;
	b->model = s->model;
	(void)timer_set(the_loop(), &b->timer, clock_us() + 20000);
}

TEST(a_summary_is_cancelled)
{
	static const struct say script[] = {
		{ .content = "one" },  { .content = "two" },
		{ .hangs = true },     { .content = "so far" },
		{ .content = "four" },
	};
	struct bell bell = { .cancel = cancel_new(the_loop(), NULL, 0) };
	struct set s;
	json_t *then;
	json_t *now;

	make(&s, "{" CONTEXT "}", NULL, script);
	ask(s.agent, "a", &s.heard);
	ask(s.agent, "b", &s.heard);
	then = agent_save(s.agent);
	ring_soon(&bell, &s);
	ask_list(s.agent, json_pack("[o]", chat_text("user", "c")), bell.cancel,
		 &s.heard);
	CHECK_INT(s.heard.why.code, FAULT_CANCELLED);
	CHECK_STR(types(&s.heard), "");
	CHECK_INT((long long)bell.asked, 3);
	now = agent_save(s.agent);
	CHECK(json_equal(then, now));
	json_decref(then);
	json_decref(now);
	cancel_unref(bell.cancel);
	ask(s.agent, "d", &s.heard);
	CHECK_STR(text_of(s.heard.chat), "four");
	done(&s);
}

/* A turn that fails later takes its summary with it. */
TEST(a_failed_turn_leaves_no_summary)
{
	static const struct say script[] = {
		{ .content = "one" },
		{ .content = "two" },
		{ .content = "so far" },
		{ .fault = FAULT_UNAVAILABLE },
	};
	struct set s;
	json_t *then;
	json_t *now;

	make(&s, "{" CONTEXT "}", NULL, script);
	ask(s.agent, "a", &s.heard);
	ask(s.agent, "b", &s.heard);
	then = agent_save(s.agent);
	ask(s.agent, "c", &s.heard);
	CHECK_INT(s.heard.why.code, FAULT_UNAVAILABLE);
	now = agent_save(s.agent);
	CHECK(json_equal(then, now));
	json_decref(then);
	json_decref(now);
	done(&s);
}

/* The limits of a turn hold for it, too: then it is not asked for. */
TEST(limits_of_the_turn_hold_for_summaries)
{
	static const struct say script[] = {
		{ .content = "one" },
		{ .content = "two" },
		{ .calls = CALL("1", "echo"), .prompt = 70 },
		{ .content = "three" },
	};
	struct set s;

	make(&s,
	     "{'system_message':'','max_tokens_per_turn':65,"
	     "'context':{'kind':'summary','messages':4,'keep':1}}",
	     NULL, script);
	ask(s.agent, "a", &s.heard);
	ask(s.agent, "b", &s.heard);
	ask(s.agent, "c", &s.heard);
	/* The summary was paid for, and nothing is left for the answer. */
	CHECK_STR(types(&s.heard), "ErrorEvent");
	CHECK_HAS(s.heard.why.message, "Budget exceeded: tokens of the turn");
	done(&s);
	make(&s,
	     "{'system_message':'','max_tokens_per_turn':15,"
	     "'context':{'kind':'summary','messages':1}}",
	     NULL, script);
	ask(s.agent, "a", &s.heard);
	ask(s.agent, "b", &s.heard);
	CHECK_HAS(text_of(event_of(&s.heard, "ErrorEvent")), "Budget exceeded");
	CHECK_INT((long long)json_array_size(s.model->requests), 1);
	done(&s);
}

/* The turn that waits for a person has its summary when it goes on. */
TEST(a_suspended_turn_keeps_its_summary)
{
	static const struct say script[] = {
		{ .content = "one" },    { .content = "two" },
		{ .content = "so far" }, { .calls = CALL("1", "ask") },
		{ .content = "end" },
	};
	struct set s;
	json_t *pending;
	json_t *kept;

	make(&s, "{'max_tool_iterations':2," CONTEXT "}", "ask", script);
	ask(s.agent, "a", &s.heard);
	ask(s.agent, "b", &s.heard);
	ask(s.agent, "c", &s.heard);
	pending = json_incref(s.heard.pending);
	CHECK_STR(setting_text(pending, "kind", ""), "approval");
	kept = summary_of(&s);
	CHECK(kept == NULL);
	resume(s.agent, pending, "{\"approved\":false}", &s.heard);
	CHECK_STR(text_of(s.heard.chat), "end");
	/* system, summary, the task, the call, its result */
	CHECK_INT((long long)json_array_size(asked(s.model, 4)), 5);
	CHECK_HAS(content(asked(s.model, 4), 1), "so far");
	kept = summary_of(&s);
	CHECK_INT(setting_int(kept, "upto", 0), 4);
	json_decref(kept);
	json_decref(pending);
	done(&s);
}

TEST(nothing_is_asked_while_it_is_paused)
{
	static const struct say script[] = {
		{ .content = "one" },
		{ .content = "two" },
		{ .content = "so far" },
		{ .content = "three" },
	};
	struct bell bell = { 0 };
	struct set s;

	make(&s, "{" CONTEXT "}", NULL, script);
	ask(s.agent, "a", &s.heard);
	ask(s.agent, "b", &s.heard);
	agent_pause(s.agent);
	ring_soon(&bell, &s);
	ask(s.agent, "c", &s.heard);
	CHECK_INT((long long)bell.asked, 2);
	CHECK_STR(text_of(s.heard.chat), "three");
	done(&s);
}

TAP_MAIN()
