/* SPDX-License-Identifier: Apache-2.0 */

/* The policy's filters within a turn: calls, and what tools say. */

#include "tests/tap.h"

#include "policy/policy.h"
#include "runtime/filter-policy.h"
#include "tests/agents/fakes.h"

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HEAD                                                                   \
	"cordon-policy\t2\t0.1.0\t" HASH "\t/p/cordon.yaml\n"                  \
	"version\t1\tp:1:1\n"
#define RULE(n, on_, match_, do_)                                              \
	"filters." n ".on.0\t" on_ "\tc.yaml:" n "2:1\n"                       \
	"filters." n ".match.0\t" match_ "\tc.yaml:" n "2:1\n"                 \
	"filters." n ".do\t" do_ "\tc.yaml:" n "2:1\n"

#define KEY "AKIAIOSFODNN7EXAMPLE"

struct set {
	struct policy *policy;
	struct model *model;
	struct toolset *tools;
	struct agent *agent;
	struct heard heard;
};

static void make_as(struct set *s, const char *rules, const struct say *script,
		    json_t *config)
{
	struct err err = { 0 };
	struct screen *screen = NULL;
	char text[2048];

	memset(s, 0, sizeof(*s));
	(void)snprintf(text, sizeof(text), HEAD "%s", rules);
	s->policy = policy_parse(text, strlen(text), &err);
	CHECK_STR(err.text, "");
	s->model = fake_model(the_loop(), script);
	s->tools = fake_tools(the_loop(), "echo");
	CHECK_INT(agent_assistant(the_loop(), "ann", config, s->model, s->tools,
				  &s->agent, &err),
		  0);
	CHECK_INT(screen_new(&(struct screen_options){ .policy = s->policy },
			     &screen, &err),
		  0);
	agent_set_screen(s->agent, screen);
	screen_unref(screen);
	json_decref(config);
}

static void make(struct set *s, const char *rules, const struct say *script)
{
	make_as(s, rules, script, doc("{'max_tool_iterations':2}"));
}

static void done(struct set *s)
{
	heard_done(&s->heard);
	agent_free(s->agent);
	model_unref(s->model);
	policy_free(s->policy);
}

/* What the model was told of the first call. */
static const char *told(struct set *s)
{
	json_t *seen = asked(s->model, 1);
	json_t *last = json_array_get(seen, json_array_size(seen) - 1);

	return json_string_value(
		json_object_get(json_array_get(json_object_get(last, "results"),
					       0),
				"content"));
}

static const char *made(struct set *s)
{
	return json_string_value(json_array_get(s->tools->made, 0));
}

static const struct say script[] = {
	{ .calls = "[{\"id\":\"1\",\"name\":\"echo\",\"arguments\":"
		   "\"{\\\"path\\\":\\\"\\\\u002fetc/passwd\\\"}\"}]" },
	{ .content = "done" },
};

TEST(a_result_is_looked_at_before_the_model_reads_it)
{
	struct set s;

	make(&s, RULE("0", "tool", "secrets", "mask"), script);
	s.tools->output = "the key is " KEY;
	ask(s.agent, "hi", &s.heard);
	CHECK_STR(text_of(s.heard.chat), "done");
	CHECK_STR(told(&s), "the key is [masked: secret]");
	/* Nor is it in what is told of the turn. */
	for (size_t i = 0; i < json_array_size(s.heard.events); i++) {
		char *e = json_dumps(json_array_get(s.heard.events, i), 0);

		CHECK(!strstr(e, KEY));
		free(e);
	}
	done(&s);
}

TEST(a_result_that_is_refused_is_an_error_for_the_model)
{
	struct set s;

	make(&s, RULE("0", "tool", "secrets", "reject"), script);
	s.tools->output = "the key is " KEY;
	ask(s.agent, "hi", &s.heard);
	CHECK_STR(text_of(s.heard.chat), "done");
	CHECK(strstr(told(&s), "withheld") && !strstr(told(&s), KEY));
	done(&s);
}

TEST(a_call_that_is_refused_is_not_made)
{
	struct set s;

	make(&s, RULE("0", "assistant", "host_paths", "reject"), script);
	ask(s.agent, "hi", &s.heard);
	CHECK_STR(text_of(s.heard.chat), "done");
	CHECK(strstr(told(&s), "refused") != NULL);
	CHECK(made(&s) == NULL);
	done(&s);
}

TEST(a_tool_gets_what_is_left_of_the_arguments)
{
	struct set s;

	make(&s, RULE("0", "assistant", "host_paths", "mask"), script);
	ask(s.agent, "hi", &s.heard);
	CHECK_STR(made(&s), "echo {\"path\":\"[masked: host path]\"}");
	done(&s);
}

TEST(other_roles_are_left_alone)
{
	struct set s;

	make(&s, RULE("0", "user", "host_paths", "reject"), script);
	s.tools->output = KEY;
	ask(s.agent, "hi", &s.heard);
	CHECK_STR(told(&s), KEY);
	CHECK(strstr(made(&s), "etc") != NULL);
	done(&s);
}

static bool has(const json_t *o, const char *text)
{
	char *dump = json_dumps(o, JSON_ENCODE_ANY);
	bool ret = dump && strstr(dump, text);

	free(dump);
	return ret;
}

/* Nowhere in what the agent keeps, nor in what the model is asked. */
static bool keeps(struct set *s, const char *text)
{
	json_t *state = agent_save(s->agent);
	bool ret = has(state, text) || has(s->heard.events, text) ||
		   has(s->heard.chat, text);

	for (size_t i = 0; asked(s->model, i); i++)
		ret |= has(asked(s->model, i), text);
	json_decref(state);
	return ret;
}

TEST(what_is_masked_in_an_answer_is_not_remembered)
{
	static const struct say says[] = {
		{ .content = "first " KEY,
		  .calls = "[{\"id\":\"" KEY "\",\"name\":\"echo\","
			   "\"arguments\":\"{\\\"a\\\":\\\"" KEY "\\\"}\"}]" },
		{ .content = "then " KEY, .thought = "of " KEY },
	};
	struct set s;

	make(&s, RULE("0", "assistant", "secrets", "mask"), says);
	ask(s.agent, "hi", &s.heard);
	CHECK_STR(text_of(s.heard.chat), "then [masked: secret]");
	CHECK(!keeps(&s, KEY));
	CHECK(keeps(&s, "of [masked: secret]"));
	done(&s);
}

TEST(what_is_refused_in_a_call_is_not_remembered)
{
	struct set s;

	make(&s, RULE("0", "assistant", "host_paths", "reject"), script);
	ask(s.agent, "hi", &s.heard);
	CHECK_STR(text_of(s.heard.chat), "done");
	CHECK(!keeps(&s, "passwd"));
	done(&s);
}

TEST(an_answer_that_is_refused_fails_the_turn)
{
	static const struct say says[] = { { .content = "it is " KEY } };
	struct set s;

	make(&s, RULE("0", "assistant", "secrets", "reject"), says);
	ask(s.agent, "hi", &s.heard);
	CHECK(s.heard.chat == NULL);
	CHECK_INT(s.heard.why.code, FAULT_REJECTED);
	CHECK(!keeps(&s, KEY));
	done(&s);
}

TEST(the_systems_words_and_memories_are_looked_at)
{
	static const struct say says[] = { { .content = "yes" } };
	struct set s;

	make_as(&s, RULE("0", "system", "secrets", "mask"), says,
		doc("{'system_message':'be " KEY
		    "','memory':[{'entries':['know " KEY "']}]}"));
	ask(s.agent, "hi", &s.heard);
	CHECK_STR(text_of(s.heard.chat), "yes");
	CHECK(has(asked(s.model, 0), "be [masked: secret]"));
	CHECK(has(asked(s.model, 0), "know [masked: secret]"));
	CHECK(!has(asked(s.model, 0), KEY));
	done(&s);
	make_as(&s, RULE("0", "system", "secrets", "reject"), says,
		doc("{'system_message':'be " KEY "'}"));
	ask(s.agent, "hi", &s.heard);
	CHECK_INT(s.heard.why.code, FAULT_REJECTED);
	CHECK(asked(s.model, 0) == NULL);
	done(&s);
}

TAP_MAIN()
