/* SPDX-License-Identifier: Apache-2.0 */

/* Toolsets: their life with an agent, their names, their state. */

#include "tool-try.h"

#include "agent/agent.h"

/* A workbench that writes down what happens to it. */
struct noted {
	struct workbench bench;
	const char *failure; /* of the next start or reset */
	int n;               /* its state */
};

static char notes[512];

static void note(const struct workbench *w, const char *what)
{
	size_t n = strlen(notes);

	(void)snprintf(notes + n, sizeof(notes) - n, "%s%s %s", n ? ", " : "",
		       what, w->name);
}

static int fail_once(struct noted *d, struct err *err)
{
	const char *why = take_ptr(d->failure);

	return why ? err_set(err, EIO, "%s", why) : 0;
}

static int noted_start(struct workbench *w, struct err *err)
{
	note(w, "start");
	return fail_once((struct noted *)w, err);
}

static void noted_stop(struct workbench *w)
{
	note(w, "stop");
}

static int noted_reset(struct workbench *w, struct err *err)
{
	note(w, "reset");
	((struct noted *)w)->n = 0;
	return fail_once((struct noted *)w, err);
}

static json_t *noted_save(struct workbench *w)
{
	return json_pack("{s:i}", "n", ((struct noted *)w)->n);
}

static int noted_load(struct workbench *w, const json_t *state, struct err *err)
{
	json_t *n = json_object_get(state, "n");

	if (!json_is_integer(n))
		return err_set(err, EINVAL, "its number is missing");
	((struct noted *)w)->n = (int)json_integer_value(n);
	return 0;
}

static const struct workbench_ops noted_ops = { .start = noted_start,
						.stop = noted_stop,
						.reset = noted_reset,
						.save = noted_save,
						.load = noted_load };

static char *hello(void *arg, const char *args, struct err *err)
{
	(void)arg;
	(void)args;
	(void)err;
	return strdup("hello");
}

static struct tool *function(const char *name)
{
	struct tool *t = NULL;
	struct err err = { 0 };

	CHECK_INT(tool_function(name, "greets", NULL, hello, NULL, &t, &err),
		  0);
	t->is_read_only = true;
	return t;
}

static struct noted *noted(const char *name, const char *tool)
{
	struct noted *d = calloc(1, sizeof(*d));
	struct err err = { 0 };

	CHECK_INT(workbench_init(&d->bench, &noted_ops, name, &err), 0);
	CHECK_INT(workbench_add(&d->bench, function(tool), &err), 0);
	return d;
}

struct ears {
	json_t *chat;
	struct fault why;
	int ends;
};

static void on_over(void *arg, json_t *chat, const struct fault *why,
		    json_t *pending)
{
	struct ears *e = arg;

	(void)pending;
	e->ends++;
	e->chat = json_incref(chat);
	if (why)
		fault_copy(&e->why, why);
}

static bool is_over(void *arg)
{
	return ((struct ears *)arg)->ends > 0;
}

/* One turn; the answer's text, or the fault's. */
static const char *ask(struct try *t, struct agent *a)
{
	static const struct turn_events events = { .over = on_over };
	static char said[512];
	struct ears e = { 0 };
	const struct turn_asker who = { .events = &events, .arg = &e };
	json_t *list = json_pack("[o]", chat_text("user", "go"));
	char *text;

	CHECK(turn_begin(a, list, &who) != NULL);
	CHECK(loop_run(t->loop, is_over, &e));
	text = e.chat ? chat_to_text(e.chat) : NULL;
	(void)snprintf(said, sizeof(said), "%s",
		       text            ? text
		       : e.why.message ? e.why.message
				       : "");
	free(text);
	json_decref(list);
	json_decref(e.chat);
	fault_done(&e.why);
	return said;
}

/* The agent has the toolset from here on. */
static struct agent *agent(struct try *t)
{
	static const char answer[] = "{\"result\":{\"finish_reason\":\"stop\","
				     "\"content\":\"fine\"}}\n";
	json_t *config = json_object();
	struct agent *a = NULL;
	struct model *m = NULL;
	struct err err = { 0 };
	char path[256];
	char text[512];

	(void)snprintf(path, sizeof(path), "%s/recording", t->dir);
	(void)snprintf(text, sizeof(text), "%s%s%s", answer, answer, answer);
	try_write(path, text);
	CHECK_INT(model_replay(t->loop, path, &m, &err), 0);
	CHECK_INT(agent_assistant(t->loop, "ann", config, m, t->set, &a, &err),
		  0);
	CHECK_STR(err.text, "");
	t->set = NULL;
	model_unref(m);
	json_decref(config);
	return a;
}

static void add(struct try *t, struct noted *d)
{
	struct err err = { 0 };

	CHECK_INT(toolset_add_workbench(t->set, &d->bench, &err), 0);
	CHECK_STR(err.text, "");
}

TEST(an_agent_starts_and_stops_its_toolsets)
{
	struct try t;
	struct agent *a;

	try_open(&t, NULL);
	notes[0] = '\0';
	add(&t, noted("one", "t1"));
	add(&t, noted("two", "t2"));
	a = agent(&t);
	CHECK_STR(notes, "");
	CHECK_STR(ask(&t, a), "fine");
	CHECK_STR(ask(&t, a), "fine");
	CHECK_STR(notes, "start one, start two");
	agent_free(a);
	CHECK_STR(notes, "start one, start two, stop two, stop one");
	try_close(&t);
}

TEST(a_toolset_that_does_not_start_is_named_and_tried_again)
{
	struct noted *two;
	struct agent *a;
	struct try t;

	try_open(&t, NULL);
	notes[0] = '\0';
	add(&t, noted("one", "t1"));
	two = noted("two", "t2");
	two->failure = "no luck";
	add(&t, two);
	a = agent(&t);
	CHECK_STR(ask(&t, a), "start the toolset 'two': no luck");
	CHECK_STR(ask(&t, a), "fine");
	CHECK_STR(notes, "start one, start two, start two");
	agent_free(a);
	try_close(&t);
}

TEST(a_reset_goes_to_all_of_them_and_one_that_fails_is_stopped)
{
	struct noted *one = noted("one", "t1");
	struct agent *a;
	struct try t;

	try_open(&t, NULL);
	notes[0] = '\0';
	add(&t, one);
	add(&t, noted("two", "t2"));
	a = agent(&t);
	CHECK_STR(ask(&t, a), "fine");
	one->failure = "stuck";
	agent_reset(a);
	CHECK_STR(notes, "start one, start two, reset one, reset two, stop "
			 "two, stop one");
	notes[0] = '\0';
	CHECK_STR(ask(&t, a), "fine");
	agent_reset(a);
	CHECK_STR(notes, "start one, start two, reset one, reset two");
	agent_free(a);
	try_close(&t);
}

TEST(their_state_is_saved_with_the_agent)
{
	struct noted *one = noted("one", "t1");
	struct err err = { 0 };
	struct agent *a;
	json_t *state;
	json_t *bad;
	struct try t;

	try_open(&t, NULL);
	add(&t, one);
	one->n = 7;
	a = agent(&t);
	state = agent_save(a);
	agent_free(a);
	try_set(&t, false);
	one = noted("one", "t1");
	add(&t, one);
	a = agent(&t);
	CHECK_INT(agent_load(a, state, &err), 0);
	CHECK_INT(one->n, 7);
	bad = json_deep_copy(state);
	json_object_clear(
		json_object_get(json_object_get(json_object_get(bad, "tools"),
						"toolsets"),
				"one"));
	CHECK_INT(agent_load(a, bad, &err), -EINVAL);
	CHECK_STR(err.text,
		  "agent 'ann': toolset 'one': its number is missing");
	json_decref(state);
	json_decref(bad);
	agent_free(a);
	try_close(&t);
}

TEST(names_are_overridden_and_never_two_the_same)
{
	struct workbench *w = NULL;
	struct err err = { 0 };
	struct tried d = { 0 };
	struct try t;

	try_open(&t, NULL);
	CHECK_INT(workbench_static("greetings", &w, &err), 0);
	CHECK_INT(workbench_add(w, function("hi"), &err), 0);
	CHECK_INT(workbench_add(w, function("hi"), &err), -EEXIST);
	CHECK_STR(err.text, "the toolset 'greetings' has two tools 'hi'");
	CHECK_INT(workbench_add(w, function("ho"), &err), 0);
	CHECK_INT(workbench_rename(w, "hi", "ho", &err), -EEXIST);
	CHECK_INT(workbench_rename(w, "hu", "ha", &err), -ENOENT);
	CHECK_INT(workbench_rename(w, "hi", "a b", &err), -EINVAL);
	CHECK_INT(workbench_rename(w, "hi", "greet", &err), 0);
	CHECK_INT(toolset_add_workbench(t.set, w, &err), 0);
	CHECK(toolset_find(t.set, "greet") && !toolset_find(t.set, "hi"));
	try_call(&t, "greet", "{}", &d);
	CHECK_STR(d.text, "hello");
	/* All of it or nothing. */
	CHECK_INT(workbench_static("more", &w, &err), 0);
	CHECK_INT(workbench_add(w, function("new"), &err), 0);
	CHECK_INT(workbench_add(w, function("greet"), &err), 0);
	CHECK_INT(toolset_add_workbench(t.set, w, &err), -EEXIST);
	CHECK_STR(err.text, "toolset 'more': there are two tools 'greet'");
	CHECK(!toolset_find(t.set, "new"));
	/* The same toolset twice. */
	CHECK_INT(workbench_static("greetings", &w, &err), 0);
	CHECK_INT(toolset_add_workbench(t.set, w, &err), -EEXIST);
	CHECK_INT(workbench_static("not a name", &w, &err), -EINVAL);
	tried_done(&d);
	try_close(&t);
}

TEST(a_sandbox_is_three_tools_with_one_keeper)
{
	struct tool_box box = { 0 };
	struct workbench *w = NULL;
	struct err err = { 0 };
	struct tried d = { 0 };
	struct try t;

	try_open(&t, "version: 1\nextends: strict\ntools:\n"
		     "  run_python: {agents: [coder]}\n"
		     "  py: {agents: [\"*\"]}\n"
		     "  run_shell: {agents: [other]}\n");
	box.loop = t.loop;
	box.policy = t.policy;
	CHECK_INT(workbench_sandbox("boxes", &box, &w, &err), 0);
	CHECK_STR(err.text, "");
	CHECK_INT(workbench_rename(w, "run_python", "py", &err), 0);
	CHECK_INT(toolset_add_workbench(t.set, w, &err), 0);
	CHECK_INT(toolset_start(t.set, &err), 0);
	try_call(&t, "py", "{\"code\":\"print(6 * 7)\"}", &d);
	CHECK(!d.is_error);
	CHECK_HAS(d.text, "42");
	/* The rule for what it is holds under its new name. */
	try_call(&t, "run_shell", "{\"command\":\"echo hi\"}", &d);
	CHECK(d.is_error);
	CHECK_HAS(d.text, "not given to agent 'coder'");
	CHECK_INT(toolset_reset(t.set, &err), 0);
	try_call(&t, "py", "{\"code\":\"print(6 * 8)\"}", &d);
	CHECK_HAS(d.text, "48");
	toolset_stop(t.set);
	/* Tools that are called all the same have a keeper. */
	try_call(&t, "py", "{\"code\":\"print(6 * 9)\"}", &d);
	CHECK_HAS(d.text, "54");
	tried_done(&d);
	try_close(&t);
}

TEST(a_sandbox_without_a_keeper_does_not_start)
{
	struct tool_box box = { 0 };
	struct workbench *w = NULL;
	struct err err = { 0 };
	struct try t;

	try_open(&t, NULL);
	box.loop = t.loop;
	CHECK_INT(workbench_sandbox("boxes", &box, &w, &err), 0);
	CHECK_INT(toolset_add_workbench(t.set, w, &err), 0);
	(void)setenv("CORDON_LIBEXEC", t.dir, 1);
	CHECK(toolset_start(t.set, &err) < 0);
	CHECK_HAS(err.text, "start the toolset 'boxes': ");
	try_close(&t);
}

TAP_MAIN()
