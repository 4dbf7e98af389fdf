/* SPDX-License-Identifier: Apache-2.0 */

/* Traces: spans within each other, over actors, agents, models, tools (D42). */

#include "tests/tap.h"

#include <unistd.h>

#include "runtime/runtime.h"
#include "runtime/trace.h"
#include "tests/agents/fakes.h"

/* --- what was told --- */

static json_t *spans;

static void keep(void *arg, const json_t *request)
{
	json_t *span = json_array_get(
		json_object_get(
			json_array_get(
				json_object_get(
					json_array_get(json_object_get(
							       request,
							       "resourceSpans"),
						       0),
					"scopeSpans"),
				0),
			"spans"),
		0);

	(void)arg;
	CHECK(json_is_object(span));
	(void)json_array_append(spans, span);
}

static struct tracer *tracer(unsigned int off, double sample)
{
	struct err err = { 0 };
	struct tracer *t = NULL;

	spans = json_array();
	CHECK_INT(tracer_new(&(struct tracer_options){ .export = keep,
						       .off = off,
						       .sample = sample },
			     &t, &err),
		  0);
	return t;
}

static const char *field(const json_t *span, const char *name)
{
	const char *s = json_string_value(json_object_get(span, name));

	return s ? s : "";
}

static json_t *find_by(const char *name, const char *value)
{
	size_t i;
	json_t *s;

	json_array_foreach(spans, i, s)
	{
		if (strcmp(field(s, name), value) == 0)
			return s;
	}
	return NULL;
}

/* The names from the root down to it: "send/process T/..." */
static const char *path_of(const json_t *span)
{
	static char path[1024];
	char rest[1024];

	path[0] = '\0';
	for (int i = 0; span && i < 20; i++) {
		(void)snprintf(rest, sizeof(rest), "%s%s%s",
			       field(span, "name"), path[0] ? "/" : "", path);
		(void)strcpy(path, rest);
		span = find_by("spanId", field(span, "parentSpanId"));
	}
	return path;
}

static void check_one_trace(void)
{
	size_t i;
	json_t *s;

	json_array_foreach(spans, i, s)
	{
		CHECK_STR(field(s, "traceId"),
			  field(json_array_get(spans, 0), "traceId"));
	}
}

/* --- spans alone --- */

TEST(a_span_is_told_when_it_ends)
{
	struct tracer *t = tracer(0, 0);
	struct span *a = span_begin(t, SPAN_AGENT, "ann", NULL);
	struct span *b = span_begin(t, SPAN_CHAT, "gpt-4o",
				    span_parent(a, NULL));
	struct fault why = { .code = FAULT_DEADLINE };
	json_t *s;

	CHECK(traceparent_check(span_parent(a, NULL)));
	span_int(b, "gen_ai.usage.input_tokens", 7);
	span_text(b, "not.there", NULL);
	CHECK_INT((long long)json_array_size(spans), 0);
	span_end(b, &why);
	span_end(a, NULL);
	CHECK_INT((long long)json_array_size(spans), 2);
	s = json_array_get(spans, 0);
	CHECK_STR(field(s, "name"), "chat gpt-4o");
	CHECK_STR(path_of(s), "invoke_agent ann/chat gpt-4o");
	CHECK_INT(json_integer_value(
			  json_object_get(json_object_get(s, "status"),
					  "code")),
		  2);
	CHECK(strcmp(field(s, "startTimeUnixNano"),
		     field(s, "endTimeUnixNano")) <= 0);
	CHECK_INT((long long)strlen(field(s, "traceId")), 32);
	CHECK_INT((long long)strlen(field(s, "spanId")), 16);
	CHECK(!json_object_get(json_array_get(spans, 1), "parentSpanId"));
	check_one_trace();
	json_decref(spans);
	tracer_free(t);
}

TEST(a_parent_from_elsewhere_is_gone_on_with)
{
	static const char parent[] =
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
	static const char *const bad[] = {
		"",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
		"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
		"ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		"00-4bf92f3577b34da6a3ce929d0e0e473x-00f067aa0ba902b7-01",
	};
	struct tracer *t = tracer(0, 0);

	span_end(span_begin(t, SPAN_SEND, NULL, parent), NULL);
	CHECK_STR(field(json_array_get(spans, 0), "traceId"),
		  "4bf92f3577b34da6a3ce929d0e0e4736");
	CHECK_STR(field(json_array_get(spans, 0), "parentSpanId"),
		  "00f067aa0ba902b7");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		CHECK(!traceparent_check(bad[i]));
		span_end(span_begin(t, SPAN_SEND, NULL, bad[i]), NULL);
		CHECK(!json_object_get(json_array_get(spans, i + 1),
				       "parentSpanId"));
	}
	json_decref(spans);
	tracer_free(t);
}

TEST(what_is_not_sampled_is_carried_and_not_told)
{
	struct tracer *t = tracer(0, 1e-12);
	struct span *a = span_begin(t, SPAN_AGENT, "a", NULL);
	struct span *b = span_begin(t, SPAN_CHAT, "m", span_parent(a, NULL));

	CHECK(strcmp(span_parent(b, "") + 53, "00") == 0);
	CHECK_INT(memcmp(span_parent(a, ""), span_parent(b, ""), 35), 0);
	span_end(b, NULL);
	span_end(a, NULL);
	CHECK_INT((long long)json_array_size(spans), 0);
	json_decref(spans);
	tracer_free(t);
}

TEST(a_kind_can_be_off_and_what_is_below_stays_in_place)
{
	struct tracer *t = tracer(1U << SPAN_CHAT, 0);
	struct span *a = span_begin(t, SPAN_AGENT, "a", NULL);
	struct span *b = span_begin(t, SPAN_CHAT, "m", span_parent(a, NULL));
	struct span *c = span_begin(t, SPAN_TOOL, "x",
				    span_parent(b, span_parent(a, NULL)));

	CHECK(b == NULL);
	span_end(c, NULL);
	span_end(b, NULL);
	span_end(a, NULL);
	CHECK_STR(path_of(json_array_get(spans, 0)),
		  "invoke_agent a/execute_tool x");
	json_decref(spans);
	tracer_free(t);
}

TEST(lines_of_a_file_are_requests)
{
	char path[] = "/tmp/cordon-trace-XXXXXX";
	int fd = mkstemp(path);
	struct err err = { 0 };
	struct tracer *t = NULL;
	json_t *line;
	FILE *f;

	CHECK(fd >= 0);
	CHECK_INT(tracer_to_file(&(struct tracer_options){ 0 }, path, &t, &err),
		  0);
	span_end(span_begin(t, SPAN_TOOL, "x", NULL), NULL);
	span_end(span_begin(t, SPAN_TOOL, "y", NULL), NULL);
	tracer_free(t);
	f = fdopen(fd, "re");
	for (int i = 0; i < 2; i++) {
		line = json_loadf(f, JSON_DISABLE_EOF_CHECK, NULL);
		CHECK(json_is_array(json_object_get(line, "resourceSpans")));
		json_decref(line);
	}
	(void)fclose(f);
	(void)unlink(path);
	CHECK(tracer_to_file(&(struct tracer_options){ 0 },
			     "/nonexistent/dir/x", &t, &err) < 0);
}

/* --- three agents, a tool and code: one trace --- */

static struct runtime *rt;
static struct tracer *the_tracer;

static const struct say script[] = {
	{ .calls = "[{\"id\":\"1\",\"name\":\"run_code\",\"arguments\":\"{}\"}"
		   "]" },
	{ .content = "done", .prompt = 3, .completion = 2 },
};

/* planner asks writer, writer asks coder, coder is an assistant. */
struct relay {
	struct actor actor;
	const char *next; /* NULL: the assistant speaks */
	struct agent *agent;
	struct delivery *d;
};

static void relay_reply(void *arg, struct message *reply,
			const struct fault *why)
{
	struct relay *r = arg;

	if (why)
		delivery_fail(r->d, why);
	else
		delivery_reply(r->d, message_ref(reply));
}

static void turn_over(void *arg, json_t *chat, const struct fault *why,
		      json_t *pending)
{
	struct relay *r = arg;

	(void)pending;
	if (why)
		delivery_fail(r->d, why);
	else
		delivery_reply(r->d, message_new("A", json_incref(chat)));
}

static void turn_event_heard(void *arg, json_t *event)
{
	(void)arg;
	(void)event;
}

static const struct turn_events listens = { turn_event_heard, turn_over };

static void relay_handle(struct actor *a, struct delivery *d)
{
	struct relay *r = (struct relay *)a;
	struct turn *t;

	r->d = d;
	if (r->next) {
		runtime_send(rt, delivery_message(d), r->next,
			     &(struct send_options){ .in = d }, relay_reply, r);
		return;
	}
	t = turn_begin(r->agent,
		       json_object_get(delivery_message(d)->data, "messages"),
		       &(struct turn_asker){ "team", "run", delivery_cancel(d),
					     &listens, r });
	turn_set_trace(t, delivery_traceparent(d));
}

static void relay_free(struct actor *a)
{
	(void)a;
}

static const struct actor_ops relay_ops = { .handle = relay_handle,
					    .free = relay_free };

static void on_reply(void *arg, struct message *reply, const struct fault *why)
{
	CHECK(why == NULL);
	CHECK(reply != NULL);
	*(bool *)arg = true;
}

TEST(a_run_of_three_agents_is_one_trace)
{
	struct relay relays[3] = { { .next = "writer/1" },
				   { .next = "coder/1" },
				   { .next = NULL } };
	static const char *const ids[] = { "planner/1", "writer/1", "coder/1" };
	struct model *model = fake_model(the_loop(), script);
	struct toolset *tools = fake_tools(the_loop(), "run_code");
	struct err err = { 0 };
	json_t *config = doc("{'max_tool_iterations':2}");
	struct message *m;
	bool is_over = false;
	json_t *s;

	the_tracer = tracer(0, 0);
	rt = runtime_new(the_loop(), NULL, &err);
	runtime_set_tracer(rt, the_tracer);
	tools->detail = doc("{'id':'r1','cause':'exited',"
			    "'usage':{'wall_ms':5}}");
	CHECK_INT(agent_assistant(the_loop(), "coder", config, model, tools,
				  &relays[2].agent, &err),
		  0);
	relays[2].agent->tracer = the_tracer;
	for (int i = 0; i < 3; i++) {
		relays[i].actor.ops = &relay_ops;
		CHECK_INT(runtime_register_instance(rt, ids[i],
						    &relays[i].actor, &err),
			  0);
	}
	m = message_new("T", json_pack("{s:[o]}", "messages",
				       chat_text("user", "hi")));
	runtime_send(rt, m, "planner/1", NULL, on_reply, &is_over);
	message_unref(m);
	CHECK_INT(runtime_wait_idle(rt, 0, NULL), 0);
	CHECK(is_over);
	check_one_trace();
	CHECK_STR(path_of(find_by("name", "execute_code")),
		  "send/process T/send/process T/send/process T/"
		  "invoke_agent coder/execute_tool run_code/execute_code");
	CHECK_STR(path_of(find_by("name", "chat fake")),
		  "send/process T/send/process T/send/process T/"
		  "invoke_agent coder/chat fake");
	/* 3 sent, 3 handled, a turn, 2 thoughts, a tool, its code */
	CHECK_INT((long long)json_array_size(spans), 11);
	/* The code began within its call. */
	s = find_by("name", "execute_code");
	CHECK(strcmp(field(s, "endTimeUnixNano"),
		     field(s, "startTimeUnixNano")) > 0);
	agent_free(relays[2].agent);
	CHECK_INT(runtime_stop(rt, STOP_NOW, NULL), 0);
	runtime_free(rt);
	model_unref(model);
	json_decref(config);
	json_decref(spans);
	tracer_free(the_tracer);
}

static void quiet(struct actor *a, struct delivery *d)
{
	(void)a;
	delivery_reply(d, NULL);
}

static const struct actor_ops quiet_ops = { .handle = quiet,
					    .free = relay_free };

static int make_quiet(void *arg, struct runtime *r, const char *key,
		      struct actor **ret, struct err *err)
{
	static struct actor a = { .ops = &quiet_ops };

	(void)arg;
	(void)r;
	(void)key;
	(void)err;
	*ret = &a;
	return 0;
}

TEST(an_event_is_above_those_who_hear_it)
{
	static const struct actor_type type = { .name = "ear",
						.make = make_quiet };
	struct err err = { 0 };
	struct message *m = message_new("E", json_object());

	the_tracer = tracer(0, 0);
	rt = runtime_new(the_loop(), NULL, &err);
	runtime_set_tracer(rt, the_tracer);
	CHECK_INT(runtime_register(rt, &type, &err), 0);
	CHECK_INT(runtime_subscribe(rt, SUB_TYPE, "news", "ear", NULL, &err),
		  0);
	runtime_publish(rt, m, "news/1", NULL, NULL, NULL);
	message_unref(m);
	CHECK_INT(runtime_wait_idle(rt, 0, NULL), 0);
	CHECK_STR(path_of(find_by("name", "process E")), "publish/process E");
	CHECK_INT(runtime_stop(rt, STOP_NOW, NULL), 0);
	runtime_free(rt);
	json_decref(spans);
	tracer_free(the_tracer);
}

TAP_MAIN()
