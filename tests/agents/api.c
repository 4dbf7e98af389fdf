/* SPDX-License-Identifier: Apache-2.0 */

/* cordon/agent.h, as a program sees it; models are recordings. */

#include "tests/tap.h"

#include <cordon/agent.h>
#include <jansson.h>

static struct cordon_error err;
static char dir[64];

/* A file of answers, each a text; the state is the test's own. */
static const char *recording(const char *const *answers)
{
	static char path[96];
	FILE *f;

	(void)snprintf(dir, sizeof(dir), "/tmp/agents-api.XXXXXX");
	if (!mkdtemp(dir))
		exit(1);
	(void)setenv("CORDON_STATE_DIR", dir, 1);
	/* The desk, which reads policies, is at the top of the build tree. */
	(void)setenv("CORDON_LIBEXEC", BUILD_DIR, 0);
	(void)setenv("CORDON_POLICY", "strict", 1);
	(void)snprintf(path, sizeof(path), "%s/r.jsonl", dir);
	f = fopen(path, "we");
	for (; f && *answers; answers++)
		(void)fprintf(f, "%s\n", *answers);
	if (!f || fclose(f) != 0)
		exit(1);
	return path;
}

static void tidy(void)
{
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	CHECK(system(command) == 0); /* NOLINT(cert-env33-c) */
}

static const char *text_at(const json_t *o, const char *name)
{
	return json_string_value(json_object_get(o, name));
}

/* Runs it; the caller releases the result. */
static json_t *task(struct cordon_agent *a, const char *text)
{
	char *said = NULL;
	json_t *ret;

	if (cordon_agent_run(a, text, &said, &err) < 0) {
		printf("# %s\n", err.text);
		tap_bad++;
	}
	ret = json_loads(said ? said : "", 0, NULL);
	free(said);
	return ret;
}

static struct cordon_agent *open_with(const char *yaml,
				      const struct cordon_tool *tools,
				      const char *const *answers)
{
	struct cordon_agent *a = cordon_agent_parse(yaml, tools, &err);

	if (!a) {
		printf("# %s\n", err.text);
		exit(1);
	}
	CHECK(cordon_agent_set(a, "replay", recording(answers), &err) == 0);
	return a;
}

static int calls;

static char *add(void *arg, const char *args, struct cordon_error *why)
{
	json_t *o = json_loads(args, 0, NULL);
	int sum = (int)(json_integer_value(json_object_get(o, "a")) +
			json_integer_value(json_object_get(o, "b")));
	char text[16];

	calls += *(int *)arg;
	json_decref(o);
	if (sum > 100) {
		(void)snprintf(why->text, sizeof(why->text), "too large");
		return NULL;
	}
	(void)snprintf(text, sizeof(text), "%d", sum);
	return strdup(text);
}

static int one = 1;
static const struct cordon_tool tools[] = {
	{ .name = "add",
	  .description = "adds",
	  .schema = "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":"
		    "\"integer\"},\"b\":{\"type\":\"integer\"}},\"required\":["
		    "\"a\",\"b\"]}",
	  .call = add,
	  .arg = &one,
	  .read_only = 1 },
	{ 0 },
};

#define CALL(args)                                                             \
	"{\"result\":{\"calls\":[{\"id\":\"c\",\"name\":\"add\","              \
	"\"arguments\":" args "}]}}"

TEST(a_function_is_called_and_may_fail)
{
	static const char *const answers[] = {
		CALL("{\"a\":2,\"b\":3}"), CALL("{\"a\":99,\"b\":3}"),
		CALL("{\"a\":\"x\"}"), "{\"result\":{\"content\":\"Five.\"}}",
		NULL
	};
	struct cordon_agent *a = open_with("name: n\nmodel: m\ntools: [add]\n",
					   tools, answers);
	json_t *r = task(a, "two and three");
	json_t *all = json_object_get(r, "messages");
	char *text = json_dumps(all, 0);

	CHECK_STR(text_at(r, "status"), "completed");
	CHECK_HAS(text, "\"content\": \"5\"");
	CHECK_HAS(text, "too large");
	CHECK_HAS(text, "The arguments are wrong");
	CHECK_INT(calls, 2);
	CHECK(cordon_agent_set(a, "model", "x", &err) < 0);
	free(text);
	json_decref(r);
	cordon_agent_free(a);
	tidy();
}

TEST(the_next_task_goes_on)
{
	static const char *const answers[] = {
		"{\"result\":{\"content\":\"One.\"}}",
		"{\"result\":{\"content\":\"Two.\"}}", NULL
	};
	struct cordon_agent *a = open_with("name: n\nmodel: m\n", NULL,
					   answers);
	json_t *r = task(a, "first");

	json_decref(r);
	/* Too late for the first, and not for the second. */
	cordon_agent_cancel(a);
	r = task(a, "second");
	CHECK_STR(text_at(json_array_get(json_object_get(r, "messages"), 1),
			  "content"),
		  "Two.");
	json_decref(r);
	/* The recording has run out. */
	r = task(a, "third");
	CHECK_STR(text_at(r, "status"), "failed");
	json_decref(r);
	cordon_agent_free(a);
	tidy();
}

TEST(a_person_is_waited_for)
{
	static const char *const answers[] = {
		"{\"result\":{\"content\":\"Which?\"}}", NULL
	};
	struct cordon_agent *a = open_with(
		"model: m\nmax_turns: 2\nagents:\n  a: {}\n"
		"  me: {kind: user}\n",
		NULL, answers);
	json_t *r = task(a, "go");
	char *said = NULL;

	CHECK_STR(text_at(r, "status"), "suspended");
	json_decref(r);
	CHECK(cordon_agent_resume(a, NULL, "that one", &said, &err) == 0);
	CHECK_HAS(said, "that one");
	CHECK_HAS(said, "\"status\":\"completed\"");
	free(said);
	CHECK(cordon_agent_resume(a, "no-such", NULL, &said, &err) < 0);
	cordon_agent_free(a);
	tidy();
}

static const char two[] = "model: m\nmax_turns: 2\nagents:\n  a: {}\n"
			  "  me: {kind: user}\n";

/* Whether it goes on in another agent under the policy that applies there. */
static bool goes_on(const char *run, const char *policy)
{
	struct cordon_agent *a = cordon_agent_parse(two, NULL, &err);
	char *said = NULL;
	bool ret;

	(void)setenv("CORDON_POLICY", policy, 1);
	CHECK(cordon_agent_set(a, "checkpoints", "kept", &err) == 0);
	ret = cordon_agent_resume(a, run, "that one", &said, &err) == 0;
	free(said);
	cordon_agent_free(a);
	return ret;
}

TEST(a_run_goes_on_under_its_policy)
{
	static const char *const answers[] = {
		"{\"result\":{\"content\":\"Which?\"}}", NULL
	};
	struct cordon_agent *a = open_with(two, NULL, answers);
	json_t *r;

	CHECK(cordon_agent_set(a, "checkpoints", "kept", &err) == 0);
	r = task(a, "go");
	CHECK_STR(text_at(r, "status"), "suspended");
	cordon_agent_free(a);
	CHECK(!goes_on(text_at(r, "run"), "cautious"));
	CHECK_HAS(err.text, "began under the policy 'strict'");
	CHECK(goes_on(text_at(r, "run"), "strict"));
	json_decref(r);
	tidy();
}

static struct cordon_agent *going;

static void stop(void *arg, const char *json)
{
	char *said = NULL;

	(void)arg;
	if (!strstr(json, "TextMessage"))
		return;
	/* Another run is refused, and the first can be cancelled still. */
	CHECK(cordon_agent_run(going, "more", &said, &err) < 0);
	CHECK_HAS(err.text, "runs already");
	cordon_agent_cancel(going);
}

TEST(a_cancel_ends_it)
{
	static const char *const answers[] = {
		"{\"delay_ms\":20000,\"result\":{\"content\":\"late\"}}", NULL
	};
	json_t *r;

	going = open_with("name: n\nmodel: m\nstream: false\n", NULL, answers);
	cordon_agent_on_event(going, stop, NULL);
	r = task(going, "go");
	CHECK_STR(text_at(r, "status"), "cancelled");
	json_decref(r);
	cordon_agent_free(going);
	tidy();
}

/* --- functions that the file names --- */

static char *turn_about(void *arg, const char *messages,
			struct cordon_error *why)
{
	json_t *list = json_loads(messages, 0, NULL);
	const char *last = text_at(json_array_get(list,
						  json_array_size(list) - 1),
				   "source");
	char *ret = NULL;

	++*(int *)arg;
	if (last && strcmp(last, "user") == 0)
		ret = strdup("b");
	else if (last && strcmp(last, "b") == 0)
		ret = strdup("a");
	else if (last && strcmp(last, "c") == 0) {
		why->code = 5;
		(void)strcpy(why->text, "c must not speak");
	}
	json_decref(list);
	return ret;
}

static char *only_c(void *arg, const char *messages, struct cordon_error *why)
{
	(void)arg;
	(void)messages;
	(void)why;
	return strdup("c");
}

static int has_enough(void *arg, const char *messages, struct cordon_error *why)
{
	(void)why;
	return ++*(int *)arg > 2 && strstr(messages, "three") != NULL;
}

static int breaks(void *arg, const char *messages, struct cordon_error *why)
{
	(void)arg;
	(void)messages;
	(void)strcpy(why->text, "no idea");
	return -5;
}

#define ANSWER(text) "{\"result\":{\"content\":\"" text "\"}}"
#define FUNCTIONS                                                              \
	"team: selector\nmodel: m\nselector_func: turn_about\n"                \
	"candidate_func: only_c\n"                                             \
	"agents:\n  a: {stream: false}\n  b: {stream: false}\n"                \
	"  c: {stream: false}\n"

static const char *const answers[] = { ANSWER("one"), ANSWER("two"),
				       ANSWER("three"), NULL };

static const char *sources(const json_t *result)
{
	static char line[200];
	size_t i;
	json_t *m;

	line[0] = '\0';
	json_array_foreach(json_object_get(result, "messages"), i, m)
		strncat(line, text_at(m, "source"), 20);
	return line;
}

TEST(a_file_names_functions_of_the_program)
{
	int asked = 0;
	int looked = 0;
	struct cordon_agent *a;
	json_t *r;

	/* Before it is added there is none, and the error says where. */
	CHECK(!cordon_agent_parse(FUNCTIONS "max_turns: 3\n", NULL, &err));
	CHECK_HAS(err.text, "agent:3:1: /selector_func: no function");
	CHECK(cordon_agent_add_speaker("turn_about", turn_about, &asked,
				       &err) == 0);
	CHECK(cordon_agent_add_speaker("only_c", only_c, NULL, &err) == 0);
	CHECK(!cordon_agent_parse(FUNCTIONS "stop: {function: enough}\n", NULL,
				  &err));
	CHECK_HAS(err.text, "agent:9:8: /stop/function");
	CHECK_HAS(err.text, "cordon_agent_add_condition()");
	CHECK(cordon_agent_add_condition("enough", has_enough, &looked, &err) ==
	      0);
	a = open_with(FUNCTIONS "stop: {function: enough}\n", NULL, answers);
	r = task(a, "go");
	/* b and a by the first, c as the only candidate of the second. */
	CHECK_STR(sources(r), "userbac");
	CHECK_STR(text_at(r, "stop_reason"),
		  "Functional termination condition met");
	CHECK(asked == 3);
	CHECK(looked == 4); /* the task, too */
	json_decref(r);
	cordon_agent_free(a);
	tidy();
}

TEST(a_function_that_fails_ends_the_run)
{
	int asked = 0;
	struct cordon_agent *a;
	json_t *r;

	CHECK(cordon_agent_add_speaker("turn_about", turn_about, &asked,
				       &err) == 0);
	CHECK(cordon_agent_add_speaker("only_c", only_c, NULL, &err) == 0);
	a = open_with(FUNCTIONS "max_turns: 9\n", NULL, answers);
	r = task(a, "go");
	CHECK_STR(text_at(r, "status"), "failed");
	CHECK_HAS(text_at(r, "stop_reason"), "'turn_about': c must not speak");
	CHECK_STR(sources(r), "userbac");
	json_decref(r);
	cordon_agent_free(a);
	tidy();
	CHECK(cordon_agent_add_condition("breaks", breaks, NULL, &err) == 0);
	a = open_with(FUNCTIONS "stop: {function: breaks}\n", NULL, answers);
	r = task(a, "go");
	CHECK_STR(text_at(r, "status"), "failed");
	CHECK_HAS(text_at(r, "stop_reason"), "'breaks': no idea");
	json_decref(r);
	cordon_agent_free(a);
	tidy();
}

TEST(functions_have_names_and_an_end)
{
	char name[80];
	int n = 0;

	CHECK(cordon_agent_add_condition("", breaks, NULL, &err) < 0);
	CHECK(cordon_agent_add_condition(NULL, breaks, NULL, NULL) < 0);
	CHECK(cordon_agent_add_speaker("x", NULL, NULL, &err) < 0);
	memset(name, 'x', sizeof(name) - 1);
	name[79] = '\0';
	CHECK(cordon_agent_add_speaker(name, only_c, NULL, &err) < 0);
	do {
		(void)snprintf(name, sizeof(name), "f%d", n++);
	} while (cordon_agent_add_speaker(name, only_c, NULL, &err) == 0 &&
		 n < 100);
	CHECK(n == 33);
	CHECK_HAS(err.text, "more than 32");
}

TEST(settings_are_known_by_name)
{
	static const char *const names[] = { "replay",     "record", "model",
					     "policy",     "secret", "trace",
					     "checkpoints" };
	struct cordon_agent *a = cordon_agent_parse("model: m\n", NULL, &err);

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		CHECK(cordon_agent_set(a, names[i], "x", &err) == 0);
	CHECK(cordon_agent_set(a, "colour", "x", &err) < 0);
	CHECK_HAS(err.text, "there is no setting 'colour'");
	cordon_agent_free(a);
}

TEST(what_is_wrong_is_said)
{
	static const struct cordon_tool bad[] = {
		{ .name = "x", .schema = "{", .call = add },
		{ 0 },
	};

	CHECK(!cordon_agent_parse("model: m\ntools: [none]\n", NULL, &err));
	CHECK_HAS(err.text, "agent:2:9: /tools/0: no such tool 'none'");
	CHECK(!cordon_agent_parse("model: m\n", bad, &err));
	CHECK_HAS(err.text, "the schema of 'x'");
	CHECK(!cordon_agent_load("/nowhere.yaml", NULL, &err));
	CHECK(!cordon_agent_parse("[", NULL, NULL));
}

TAP_MAIN()
