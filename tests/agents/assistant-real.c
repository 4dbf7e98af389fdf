/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The assistant with a recorded model, the real toolset, the policy, and the
 * desk that a person answers at. Between the question and the answer agent,
 * model and tools are made anew from what was saved.
 */

#include "tool-try.h"

#include <sys/wait.h>

#include "agent/agent.h"

static const char first[] =
	"{\"recording\":1,\"model\":\"gpt-4o\"}\n"
	"{\"result\":{\"finish_reason\":\"function_calls\",\"calls\":["
	"{\"id\":\"c1\",\"name\":\"look\",\"arguments\":{\"n\":1}},"
	"{\"id\":\"c2\",\"name\":\"touch\",\"arguments\":{\"n\":2}}]}}\n";
static const char second[] =
	"{\"recording\":1,\"model\":\"gpt-4o\"}\n"
	"{\"result\":{\"finish_reason\":\"stop\",\"content\":\"done\"}}\n";

static int n_looked, n_touched;
static char touched[64];

static char *look(void *arg, const char *args, struct err *err)
{
	(void)arg;
	(void)err;
	n_looked++;
	return strdup(args);
}

static char *touch(void *arg, const char *args, struct err *err)
{
	(void)arg;
	(void)err;
	n_touched++;
	(void)snprintf(touched, sizeof(touched), "%s", args);
	return strdup("touched");
}

struct ears {
	json_t *events;
	json_t *chat, *pending;
	struct fault why;
	int ends;
};

static void on_event(void *arg, json_t *event)
{
	(void)json_array_append(((struct ears *)arg)->events, event);
}

static void on_over(void *arg, json_t *chat, const struct fault *why,
		    json_t *pending)
{
	struct ears *e = arg;

	e->ends++;
	e->chat = json_incref(chat);
	e->pending = json_incref(pending);
	if (why)
		fault_copy(&e->why, why);
}

static const struct turn_events events = { on_event, on_over };

static bool is_over(void *arg)
{
	return ((struct ears *)arg)->ends > 0;
}

static void ears_done(struct ears *e)
{
	json_decref(e->events);
	json_decref(e->chat);
	json_decref(e->pending);
	fault_done(&e->why);
	memset(e, 0, sizeof(*e));
}

/* As a process does that has just been started. */
static struct agent *start(struct try *t, const char *recording)
{
	struct err err = { 0 };
	char path[256];
	struct model *m = NULL;
	struct tool *tool = NULL;
	struct agent *a = NULL;
	json_t *config = json_pack("{s:i}", "max_tool_iterations", 2);

	if (!t->set)
		try_set(t, false);
	CHECK_INT(tool_function("look", "reads", NULL, look, NULL, &tool, &err),
		  0);
	tool->is_read_only = true;
	try_add(t, tool);
	CHECK_INT(tool_function("touch", "writes", NULL, touch, NULL, &tool,
				&err),
		  0);
	try_add(t, tool);
	(void)snprintf(path, sizeof(path), "%s/recording", t->dir);
	try_write(path, recording);
	CHECK_INT(model_replay(t->loop, path, &m, &err), 0);
	CHECK_INT(agent_assistant(t->loop, "ann", config, m, t->set, &a, &err),
		  0);
	CHECK_STR(err.text, "");
	/* The agent has them now. */
	t->set = NULL;
	model_unref(m);
	json_decref(config);
	return a;
}

static int desk(const char *words, const char *id)
{
	char line[400];
	int status;

	(void)snprintf(line, sizeof(line),
		       "%s/cordon-desk approvals %s %s >/dev/null 2>&1",
		       getenv("CORDON_LIBEXEC"), words, id);
	status = system(line);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static const char *text(const json_t *o, const char *name)
{
	return json_string_value(json_object_get(o, name));
}

static const json_t *results(const struct ears *e)
{
	size_t i;
	json_t *v;

	json_array_foreach(e->events, i,
			   v) if (strcmp(chat_type(v),
					 "ToolCallExecutionEvent") ==
				  0) return json_object_get(v, "content");
	return NULL;
}

/* Asks, is suspended; all that is left is in *ret_saved and *ret_pending. */
static void suspend(struct try *t, json_t **ret_saved, json_t **ret_pending)
{
	struct ears e = { .events = json_array() };
	struct agent *a = start(t, first);
	json_t *list = json_pack("[o]", chat_text("user", "go"));

	(void)turn_begin(a, list,
			 &(struct turn_asker){ "team", "run1", NULL, &events,
					       &e });
	(void)loop_run(t->loop, is_over, &e);
	CHECK_INT(e.ends, 1);
	CHECK(e.pending != NULL);
	CHECK_INT(n_looked, 1);
	CHECK_INT(n_touched, 0);
	*ret_saved = agent_save(a);
	*ret_pending = e.pending ? json_deep_copy(e.pending) : NULL;
	json_decref(list);
	ears_done(&e);
	agent_free(a);
}

static void resume(struct try *t, const json_t *saved, json_t *pending,
		   struct ears *e)
{
	struct err err = { 0 };
	struct agent *a = start(t, second);

	e->events = json_array();
	CHECK_INT(agent_load(a, saved, &err), 0);
	(void)turn_resume(a, pending, NULL,
			  &(struct turn_asker){ "team", "run1", NULL, &events,
						e });
	(void)loop_run(t->loop, is_over, e);
	CHECK_INT(e->ends, 1);
	agent_free(a);
}

TEST(s9_a_call_that_a_person_allowed_is_made_once_as_it_was_asked)
{
	struct try t;
	struct ears e = { 0 };
	json_t *saved = NULL;
	json_t *pending = NULL;

	try_open(&t, NULL);
	suspend(&t, &saved, &pending);
	CHECK_STR(text(pending, "tool"), "touch");
	/* Nobody has answered: it waits on, and the first is not repeated. */
	resume(&t, saved, pending, &e);
	CHECK(e.pending && json_equal(json_object_get(e.pending, "id"),
				      json_object_get(pending, "id")));
	CHECK_INT(n_looked, 1);
	CHECK_INT(n_touched, 0);
	ears_done(&e);

	CHECK_INT(desk("approve", text(pending, "id")), 0);
	resume(&t, saved, pending, &e);
	CHECK_INT(n_looked, 1);
	CHECK_INT(n_touched, 1);
	CHECK_STR(touched, "{\"n\":2}");
	CHECK_STR(text(e.chat, "content"), "done");
	CHECK_INT((long long)json_array_size(results(&e)), 2);
	ears_done(&e);

	/* An answer is used once. */
	resume(&t, saved, pending, &e);
	CHECK_INT(n_touched, 1);
	ears_done(&e);
	json_decref(saved);
	json_decref(pending);
	try_close(&t);
}

TEST(s9_a_call_that_a_person_refused_is_an_error_for_the_model)
{
	struct try t;
	struct ears e = { 0 };
	json_t *saved = NULL;
	json_t *pending = NULL;

	try_open(&t, NULL);
	suspend(&t, &saved, &pending);
	CHECK_INT(desk("deny --reason not-today", text(pending, "id")), 0);
	resume(&t, saved, pending, &e);
	CHECK_INT(n_touched, 0);
	CHECK_STR(text(e.chat, "content"), "done");
	CHECK_HAS(text(json_array_get(results(&e), 1), "content"),
		  "Tool call was not approved. Reason: ");
	CHECK_HAS(text(json_array_get(results(&e), 1), "content"), "not-today");
	ears_done(&e);
	json_decref(saved);
	json_decref(pending);
	try_close(&t);
}

TAP_MAIN()
