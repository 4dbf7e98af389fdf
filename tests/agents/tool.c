/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The toolset: every call has exactly one outcome, whatever is called, and a
 * model can read what was wrong. D28: a failure of one call never takes the
 * result of another.
 */

#include "tool-try.h"

static char *echo(void *arg, const char *args, struct err *err)
{
	(void)arg;
	(void)err;
	return strdup(args);
}

static char *fails(void *arg, const char *args, struct err *err)
{
	(void)arg;
	(void)args;
	(void)err_set(err, EIO, "the disk is gone");
	return NULL;
}

static char *is_long(void *arg, const char *args, struct err *err)
{
	char *text = malloc(200001);

	(void)arg;
	(void)args;
	(void)err;
	if (!text)
		return NULL;
	for (size_t i = 0; i < 200000; i += 2)
		memcpy(text + i, "\xc3\xa4", 2);
	text[200000] = '\0';
	return text;
}

static struct tool *make(const char *name, tool_fn *fn, const char *schema)
{
	json_t *s = schema ? json_loads(schema, 0, NULL) : NULL;
	struct tool *t = NULL;
	struct err err = { 0 };

	CHECK_INT(tool_function(name, "a test", s, fn, NULL, &t, &err), 0);
	json_decref(s);
	t->is_read_only = true;
	return t;
}

#define NUMBER                                                                 \
	"{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}},"  \
	"\"required\":[\"n\"]}"

TEST(a_function_is_called)
{
	struct try t;
	struct tried d = { 0 };

	try_open(&t, NULL);
	try_add(&t, make("echo", echo, NUMBER));
	try_call(&t, "echo", " {\"n\": 1} ", &d);
	CHECK(!d.is_error);
	CHECK_STR(d.text, "{\"n\":1}");
	tried_done(&d);
	try_close(&t);
}

TEST(what_is_wrong_can_be_read)
{
	struct try t;
	struct tried d = { 0 };
	char *ledger;

	try_open(&t, NULL);
	try_add(&t, make("echo", echo, NUMBER));
	try_add(&t, make("fails", fails, NULL));
	try_call(&t, "ech", "{}", &d);
	CHECK(d.is_error);
	CHECK_STR(d.text, "There is no tool 'ech'. There are: echo, fails");
	try_call(&t, "echo", "{\"n\":", &d);
	CHECK(d.is_error);
	CHECK_HAS(d.text, "The arguments are wrong: not JSON: line 1");
	try_call(&t, "echo", "[1]", &d);
	CHECK_STR(d.text, "The arguments are wrong: not a JSON object");
	try_call(&t, "echo", "{\"n\":1,\"n\":2}", &d);
	CHECK_HAS(d.text, "duplicate");
	try_call(&t, "echo", "{\"n\":\"x\"}", &d);
	CHECK_STR(d.text, "The arguments are wrong: /n: not an integer");
	try_call(&t, "echo", "", &d);
	CHECK_STR(d.text, "The arguments are wrong: /: 'n' is missing");
	try_call(&t, "fails", "", &d);
	CHECK(d.is_error);
	CHECK_STR(d.text, "the disk is gone");
	ledger = try_ledger(&t);
	CHECK_INT(try_count(ledger, "\"tool.call\""), 7);
	CHECK_INT(try_count(ledger, "\"status\":\"error\""), 1);
	CHECK_INT(try_count(ledger, "\"status\":\"denied\""), 6);
	free(ledger);
	tried_done(&d);
	try_close(&t);
}

TEST(results_are_cut_between_characters)
{
	struct try t;
	struct tried d = { 0 };
	struct tool *small = make("small", is_long, NULL);

	try_open(&t, NULL);
	small->max_result = 1001;
	try_add(&t, small);
	try_add(&t, make("usual", is_long, NULL));
	try_call(&t, "small", "{}", &d);
	CHECK(!d.is_error);
	CHECK_HAS(d.text, "[... 199000 bytes left out ...]");
	CHECK(strlen(d.text) < 1101);
	CHECK(strncmp(d.text, "\xc3\xa4", 2) == 0);
	try_call(&t, "usual", "{}", &d);
	CHECK(strlen(d.text) < 65536 + 100 && strlen(d.text) > 65000);
	tried_done(&d);
	try_close(&t);
}

TEST(names_are_checked)
{
	struct try t;
	struct err err = { 0 };

	try_open(&t, NULL);
	try_add(&t, make("echo", echo, NULL));
	CHECK_INT(toolset_add(t.set, make("echo", echo, NULL), &err), -EEXIST);
	CHECK_INT(toolset_add(t.set, make("a b", echo, NULL), &err), -EINVAL);
	/* Names that a policy knows are not anybody's. */
	CHECK_INT(toolset_add(t.set, make("run_shell", echo, NULL), &err),
		  -EINVAL);
	CHECK_INT(toolset_add(t.set, make("x", echo, "{\"if\":true}"), &err),
		  -EINVAL);
	CHECK_HAS(err.text, "tool 'x': schema: /: the keyword 'if'");
	try_close(&t);
}

TEST(tools_are_listed_for_a_model)
{
	struct try t;
	json_t *list;

	try_open(&t, NULL);
	try_add(&t, make("echo", echo, NUMBER));
	list = toolset_list(t.set);
	CHECK_INT((int)json_array_size(list), 1);
	CHECK_STR(json_string_value(
			  json_object_get(json_array_get(list, 0), "name")),
		  "echo");
	CHECK(json_is_object(
		json_object_get(json_array_get(list, 0), "parameters")));
	json_decref(list);
	try_close(&t);
}

/* a tool that ends when it is told to, or not even then */

struct slow {
	struct tool tool;
	struct tool_call *call;
	struct cancel_hook hook;
	bool is_deaf;
	int n_done;
};

#define SLOW_OF(h) ((struct slow *)((char *)(h)-offsetof(struct slow, hook)))

static void slow_stop(struct cancel_hook *h, struct cancel *c)
{
	struct slow *s = SLOW_OF(h);

	(void)c;
	if (!s->is_deaf)
		tool_done_text(s->call, true, "stopped");
}

static void slow_call(struct tool *t, struct tool_call *c)
{
	struct slow *s = (struct slow *)t;

	s->call = c;
	s->hook.fired = slow_stop;
	tool_progress(c, "it begins");
	cancel_hook(c->cancel, &s->hook);
}

static void slow_free(struct tool *t)
{
	struct slow *s = (struct slow *)t;

	cancel_unhook(&s->hook);
	free(s);
}

static const struct tool_ops slow_ops = { .call = slow_call,
					  .free = slow_free };

static struct slow *make_slow(const char *name, bool is_deaf)
{
	struct slow *s = calloc(1, sizeof(*s));

	if (!s)
		exit(1);
	s->tool.ops = &slow_ops;
	s->tool.is_read_only = true;
	s->tool.schema = json_object();
	s->is_deaf = is_deaf;
	(void)strcpy(s->tool.name, name);
	return s;
}

struct later {
	struct timer timer;
	struct cancel *cancel;
};

static void fire_later(struct timer *t)
{
	cancel_fire(((struct later *)t)->cancel, "enough");
}

/* Cancels in a moment; returns how long it took, in ms. */
static long cancel_slow(struct try *t, const char *name, struct tried *ret)
{
	struct later l = { .timer = { .fire = fire_later } };
	int64_t begin = clock_us();
	struct tool_want w = { .id = "c1", .name = name, .agent = "a" };

	l.cancel = cancel_new(t->loop, NULL, 0);
	w.cancel = l.cancel;
	CHECK_INT(timer_set(t->loop, &l.timer, clock_us() + 50000), 0);
	try_want(t, &w, ret);
	cancel_unref(l.cancel);
	return (long)((clock_us() - begin) / 1000);
}

TEST(a_cancelled_call_ends)
{
	struct try t;
	struct tried d = { 0 };
	char *ledger;

	try_open(&t, NULL);
	try_add(&t, &make_slow("slow", false)->tool);
	CHECK(cancel_slow(&t, "slow", &d) < 1500);
	CHECK(d.is_error);
	CHECK_STR(d.text, "stopped");
	CHECK_INT((int)t.n_events, 1);
	CHECK_STR(json_string_value(json_object_get(t.events[0], "text")),
		  "it begins");
	ledger = try_ledger(&t);
	CHECK_HAS(ledger, "\"status\":\"cancelled\"");
	free(ledger);
	tried_done(&d);
	try_close(&t);
}

TEST(one_that_does_not_listen_has_its_outcome)
{
	struct try t;
	struct tried d = { 0 };
	struct slow *s = make_slow("deaf", true);
	long ms;

	try_open(&t, NULL);
	try_add(&t, &s->tool);
	ms = cancel_slow(&t, "deaf", &d);
	CHECK(ms >= 2000 && ms < 3500);
	CHECK_STR(d.text, "Tool call was cancelled: enough");
	/* It ends in the end, twice even, and nobody is told again. */
	tool_done_text(s->call, false, "late");
	tool_done_text(s->call, false, "later");
	(void)loop_run(t.loop, NULL, NULL);
	CHECK_INT(d.n, 1);
	tried_done(&d);
	try_close(&t);
}

TEST(time_is_limited)
{
	struct try t;
	struct tried d = { 0 };
	struct slow *s = make_slow("slow", false);
	char *ledger;

	try_open(&t, NULL);
	s->tool.timeout = 100000;
	try_add(&t, &s->tool);
	try_call(&t, "slow", "{}", &d);
	CHECK(d.is_error);
	ledger = try_ledger(&t);
	CHECK_HAS(ledger, "\"status\":\"timeout\"");
	free(ledger);
	tried_done(&d);
	try_close(&t);
}

/* D28 */
TEST(every_call_of_several_has_its_result)
{
	static const char *const names[] = { "echo", "none",   "fails",
					     "echo", "denied", "slow" };
	enum { N = 6 };
	struct tried d[N] = { 0 };
	struct cancel *cancel;
	struct try t;

	try_open(&t, "version: 1\nextends: strict\ntools:\n"
		     "  echo: {agents: ['*']}\n  fails: {agents: ['*']}\n"
		     "  slow: {agents: ['*']}\n  denied: {agents: [boss]}\n");
	try_add(&t, make("echo", echo, NULL));
	try_add(&t, make("fails", fails, NULL));
	try_add(&t, make("denied", echo, NULL));
	try_add(&t, &make_slow("slow", false)->tool);
	cancel = cancel_new(t.loop, NULL, clock_us() + 100000);
	for (int i = 0; i < N; i++) {
		const struct tool_want w = { .id = "x",
					     .name = names[i],
					     .arguments = "{}",
					     .agent = "coder",
					     .cancel = cancel };

		toolset_call(t.set, &w, tried_take, &d[i]);
	}
	(void)loop_run(t.loop, tried_over, &d[N - 1]);
	for (int i = 0; i < N; i++)
		CHECK_INT(d[i].n, 1);
	CHECK(!d[0].is_error && !d[3].is_error);
	CHECK_HAS(d[1].text, "There is no tool");
	CHECK_STR(d[2].text, "the disk is gone");
	CHECK_HAS(d[4].text, "Tool call was denied: tool 'denied' is not given "
			     "to agent 'coder' (");
	CHECK_HAS(d[4].text, "cordon.yaml:7: tools.denied.agents)");
	CHECK_STR(d[5].text, "stopped");
	for (int i = 0; i < N; i++)
		tried_done(&d[i]);
	cancel_unref(cancel);
	try_close(&t);
}

TEST(calls_end_with_their_toolset)
{
	struct tried d = { 0 };
	struct tried e = { 0 };
	struct try t;
	const struct tool_want w = { .id = "x", .name = "deaf" };

	try_open(&t, NULL);
	try_add(&t, &make_slow("deaf", true)->tool);
	toolset_call(t.set, &w, tried_take, &d);
	toolset_call(t.set, &w, tried_take, &e);
	try_close(&t);
	CHECK_INT(d.n, 1);
	CHECK_INT(e.n, 1);
	CHECK_HAS(d.text, "put away");
	tried_done(&d);
	tried_done(&e);
}

TEST(a_tool_that_no_rule_names_is_not_given)
{
	struct try t;
	struct tried d = { 0 };

	try_open(&t, "version: 1\nextends: strict\ntools:\n"
		     "  other: {agents: ['*']}\n  bare: {approval: policy}\n");
	try_add(&t, make("echo", echo, NULL));
	try_add(&t, make("bare", echo, NULL));
	try_call(&t, "echo", "{}", &d);
	CHECK_HAS(d.text, "tool 'echo' is not given");
	{
		json_t *list = toolset_list_for(t.set, "coder");

		CHECK_INT((int)json_array_size(list), 0);
		json_decref(list);
	}
	/* What names no agents gives it to none. */
	try_call(&t, "bare", "{}", &d);
	CHECK_HAS(d.text, "is not given to agent 'coder'");
	tried_done(&d);
	try_close(&t);
}

TEST(what_cannot_be_recorded_is_not_done)
{
	struct try t;
	struct tried d = { 0 };
	char path[200];

	try_open(&t, NULL);
	try_add(&t, make("echo", echo, NULL));
	(void)snprintf(path, sizeof(path), "%s/state/ledger", t.dir);
	try_write(path, "not a directory");
	try_call(&t, "echo", "{}", &d);
	CHECK(d.is_error);
	CHECK_HAS(d.text, "recorded");
	tried_done(&d);
	try_close(&t);
}

TEST(state_is_of_this_version)
{
	struct try t;
	struct err err = { 0 };
	json_t *state;

	try_open(&t, NULL);
	state = toolset_save(t.set);
	CHECK_INT(toolset_load(t.set, state, &err), 0);
	(void)json_object_set_new(state, "version", json_integer(2));
	CHECK_INT(toolset_load(t.set, state, &err), -EINVAL);
	json_decref(state);
	try_close(&t);
}

TAP_MAIN()
