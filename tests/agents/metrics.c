/* SPDX-License-Identifier: Apache-2.0 */

/* Figures and the event log, from what is told. */

#include "tests/tap.h"

#include <unistd.h>

#include "base/util.h"
#include "runtime/event-log.h"
#include "runtime/metrics.h"
#include "runtime/trace.h"

static json_t *doc(const char *text)
{
	char *copy = strdup(text);
	json_t *v;

	for (char *p = copy; *p; p++)
		if (*p == '\'')
			*p = '"';
	v = json_loads(copy, JSON_DECODE_ANY, NULL);
	CHECK(v != NULL);
	free(copy);
	return v;
}

#define RESULTS                                                                \
	"{'type':'ToolCallExecutionEvent','source':'ann','content':["          \
	"{'call_id':'1','name':'run_code','content':'hush','is_error':false,"  \
	"'detail':{'id':'r1','cause':'timeout','stdout':'hush'}},"             \
	"{'call_id':'2','name':'f','content':'hush','is_error':true}]}"
#define ANSWER                                                                 \
	"{'type':'TextMessage','source':'ann','id':'m','content':'hush',"      \
	"'models_usage':{'prompt_tokens':7,'completion_tokens':2}}"

static void chat(struct metrics *m, const char *text)
{
	json_t *c = doc(text);

	metrics_chat(m, c);
	json_decref(c);
}

static void has(const struct buf *b, const char *line)
{
	if (!strstr(b->data, line))
		printf("# missing: %s\n%s", line, b->data);
	CHECK(strstr(b->data, line) != NULL);
}

static void on_span(void *arg, const json_t *request)
{
	metrics_span(arg, request);
}

TEST(figures_come_from_what_is_told)
{
	struct metrics *m = metrics_new();
	struct tracer *t = NULL;
	struct err err = { 0 };
	json_t *e = doc("{'event':'filter_changed','filter':'policy',"
			"'type':'a\\\\\\'b'}");
	struct buf b;

	CHECK_INT(tracer_new(&(struct tracer_options){ .export = on_span,
						       .arg = m },
			     &t, &err),
		  0);
	chat(m, RESULTS);
	chat(m, ANSWER);
	chat(m, ANSWER);
	chat(m, "{'type':'ApprovalRequestedEvent','source':'ann'}");
	chat(m, "{'type':'ApprovalRequestedEvent','source':'ann'}");
	chat(m, "{'type':'ApprovalDecidedEvent','source':'ann','decision':"
		"{'approved':true}}");
	metrics_event(m, e);
	span_end(span_begin(t, SPAN_CHAT, "gpt", NULL), NULL);
	buf_init(&b, 1 << 20);
	CHECK_INT(metrics_text(m, NULL, &b), 0);
	has(&b, "# TYPE cordon_tool_calls_total counter\n");
	has(&b, "cordon_tool_calls_total{tool=\"f\",outcome=\"error\"} 1\n");
	has(&b, "cordon_tool_calls_total{tool=\"run_code\",outcome=\"ok\"} 1");
	has(&b, "cordon_code_runs_total{cause=\"timeout\"} 1\n");
	has(&b, "cordon_model_calls_total{agent=\"ann\"} 2\n");
	has(&b, "cordon_tokens_total{agent=\"ann\",direction=\"prompt\"} 14");
	has(&b, "cordon_approvals_total{outcome=\"approved\"} 1\n");
	has(&b, "cordon_approvals_open 1\n");
	has(&b, "cordon_filtered_total{filter=\"policy\","
		"outcome=\"filter_changed\"} 1\n");
	has(&b, "cordon_span_seconds_count{kind=\"chat\"} 1\n");
	has(&b, "cordon_span_seconds_bucket{kind=\"chat\",le=\"+Inf\"} 1\n");
	CHECK(!strstr(b.data, "hush"));
	buf_done(&b);
	json_decref(e);
	tracer_free(t);
	metrics_free(m);
}

TEST(the_number_of_series_is_bounded)
{
	struct metrics *m = metrics_new();
	struct buf b;

	for (int i = 0; i < 5000; i++) {
		char text[64];

		(void)snprintf(text, sizeof(text), "{'type':'T%d'}", i);
		chat(m, text);
	}
	buf_init(&b, 8 << 20);
	CHECK_INT(metrics_text(m, NULL, &b), 0);
	CHECK(strstr(b.data, "T4000") && !strstr(b.data, "T4999"));
	buf_done(&b);
	metrics_free(m);
}

/* A model invents names of tools. */
TEST(names_of_tools_are_so_many)
{
	struct metrics *m = metrics_new();
	struct buf b;

	for (int i = 0; i < 500; i++) {
		char text[160];

		(void)snprintf(text, sizeof(text),
			       "{'type':'ToolCallExecutionEvent','source':'a',"
			       "'content':[{'name':'t%d','is_error':true}]}",
			       i % 200);
		chat(m, text);
	}
	buf_init(&b, 1 << 20);
	CHECK_INT(metrics_text(m, NULL, &b), 0);
	has(&b, "tool=\"t1\",outcome=\"error\"} 3\n");
	has(&b, "tool=\"other\",outcome=\"error\"} 308\n");
	CHECK(!strstr(b.data, "t199"));
	buf_done(&b);
	metrics_free(m);
}

static void quiet(struct actor *a, struct delivery *d)
{
	(void)a;
	delivery_reply(d, NULL);
}

static void no_free(struct actor *a)
{
	(void)a;
}

static const struct actor_ops ops = { .handle = quiet, .free = no_free };

struct both {
	struct metrics *m;
	struct event_log *l;
};

static void on_event(void *arg, const json_t *event)
{
	struct both *b = arg;

	metrics_event(b->m, event);
	event_log_runtime(b->l, event);
}

TEST(a_runtime_has_figures_and_a_log)
{
	char path[] = "/tmp/cordon-log-XXXXXX";
	int fd = mkstemp(path);
	struct both both = { .m = metrics_new() };
	struct actor a = { .ops = &ops };
	struct err err = { 0 };
	struct loop *l = NULL;
	struct runtime *rt;
	struct message *m = message_new("T", json_pack("{s:s}", "x", "hush"));
	static char text[65536];
	struct buf b;
	json_t *c;
	ssize_t n;

	CHECK_INT(event_log_open(path, false, &both.l, &err), 0);
	CHECK_INT(loop_new(&l, &err), 0);
	rt = runtime_new(l, NULL, &err);
	runtime_on_event(rt, on_event, &both);
	CHECK_INT(runtime_register_instance(rt, "a/1", &a, &err), 0);
	runtime_send(rt, m, "a/1", NULL, NULL, NULL);
	CHECK_INT(runtime_wait_idle(rt, 0, NULL), 0);
	buf_init(&b, 1 << 20);
	CHECK_INT(metrics_text(both.m, rt, &b), 0);
	has(&b, "cordon_runtime_total{outcome=\"sent\"} 1\n");
	has(&b, "cordon_runtime{of=\"actors\"} 1\n");
	has(&b, "cordon_message_events_total{event=\"deliver\",type=\"T\"} 1");
	c = doc(RESULTS);
	event_log_chat(both.l, c);
	json_decref(c);
	c = doc(ANSWER);
	event_log_chat(both.l, c);
	json_decref(c);
	n = read(fd, text, sizeof(text) - 1);
	CHECK(n > 0);
	text[n > 0 ? n : 0] = '\0';
	CHECK(strstr(text, "\"event\":\"send\"") != NULL);
	CHECK(strstr(text, "\"event\":\"tool_result\"") != NULL);
	CHECK(strstr(text, "\"event\":\"code_execution\"") != NULL);
	CHECK(strstr(text, "\"event\":\"llm_call\"") != NULL);
	CHECK(!strstr(text, "hush"));
	/* Each line is a document with its time first. */
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		c = json_loads(line, 0, NULL);
		CHECK(c && strncmp(line, "{\"time\":\"", 9) == 0);
		json_decref(c);
	}
	CHECK_INT(runtime_stop(rt, STOP_NOW, NULL), 0);
	runtime_free(rt);
	loop_free(l);
	message_unref(m);
	buf_done(&b);
	event_log_close(both.l);
	metrics_free(both.m);
	(void)close(fd);
	(void)unlink(path);
}

TAP_MAIN()
