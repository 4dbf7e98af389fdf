/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/metrics.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

#define MAX_SERIES 4096
#define MAX_TOOLS  64 /* of tools, by their names */
#define MAX_LABELS 512

enum metric {
	METRIC_MESSAGES,
	METRIC_CHAT,
	METRIC_MODEL_CALLS,
	METRIC_TOKENS,
	METRIC_TOOL_CALLS,
	METRIC_CODE_RUNS,
	METRIC_APPROVALS,
	METRIC_APPROVALS_OPEN,
	METRIC_FILTERED,
	METRIC_SECONDS,
	METRIC_LOST,
	METRICS
};

static const struct {
	const char *name, *type, *help;
} families[] = {
	[METRIC_MESSAGES] = { "cordon_message_events_total", "counter",
			      "What became of messages, by stage and type." },
	[METRIC_CHAT] = { "cordon_chat_total", "counter",
			  "Messages and events of agents, by type." },
	[METRIC_MODEL_CALLS] = { "cordon_model_calls_total", "counter",
				 "Answers of models, by agent." },
	[METRIC_TOKENS] = { "cordon_tokens_total", "counter",
			    "Tokens, by agent and direction." },
	[METRIC_TOOL_CALLS] = { "cordon_tool_calls_total", "counter",
				"Calls of tools, by tool and outcome." },
	[METRIC_CODE_RUNS] = { "cordon_code_runs_total", "counter",
			       "Runs of code in a box, by how they ended." },
	[METRIC_APPROVALS] = { "cordon_approvals_total", "counter",
			       "Questions to people, and their answers." },
	[METRIC_APPROVALS_OPEN] = { "cordon_approvals_open", "gauge",
				    "Questions without an answer." },
	[METRIC_FILTERED] = { "cordon_filtered_total", "counter",
			      "Messages that a filter changed or refused." },
	[METRIC_SECONDS] = { "cordon_span_seconds", "histogram",
			     "How long things took, by kind." },
	[METRIC_LOST] = { "cordon_metrics_lost_total", "counter",
			  "Figures for which there was no room." },
};
_Static_assert(ARRAY_SIZE(families) == METRICS, "a figure has no name");

static const double bounds[] = { 0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60, 300 };

struct series {
	enum metric family;
	char *labels; /* a="b",c="d"; may be empty */
	double value; /* of a histogram: the sum */
	uint64_t buckets[ARRAY_SIZE(bounds) + 1];
};

struct metrics {
	struct series *v;
	size_t n, cap;
};

struct metrics *metrics_new(void)
{
	return calloc(1, sizeof(struct metrics));
}

void metrics_free(struct metrics *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->n; i++)
		free(m->v[i].labels);
	free(m->v);
	free(m);
}

/* --- series --- */

static void put_label(struct buf *b, const char *name, const char *value)
{
	size_t len = strnlen(value, 128);

	if (b->len)
		buf_puts(b, ",");
	buf_printf(b, "%s=\"", name);
	for (size_t i = 0; i < len; i++) {
		if (value[i] == '\n')
			buf_puts(b, "\\n");
		else if (value[i] == '"' || value[i] == '\\')
			buf_printf(b, "\\%c", value[i]);
		else
			buf_add(b, value + i, 1);
	}
	buf_puts(b, "\"");
}

static struct series *series_new(struct metrics *m, enum metric k,
				 const char *labels)
{
	if (m->n >= MAX_SERIES)
		return NULL;
	if (m->n == m->cap) {
		size_t cap = m->cap ? 2 * m->cap : 64;
		struct series *v = realloc(m->v, cap * sizeof(*v));

		if (!v)
			return NULL;
		m->v = v;
		m->cap = cap;
	}
	m->v[m->n] = (struct series){ .family = k, .labels = strdup(labels) };
	return m->v[m->n].labels ? &m->v[m->n++] : NULL;
}

static struct series *series_find(struct metrics *m, enum metric k,
				  const char *labels)
{
	for (size_t i = 0; i < m->n; i++)
		if (m->v[i].family == k && strcmp(m->v[i].labels, labels) == 0)
			return &m->v[i];
	return series_new(m, k, labels);
}

/* Names and values of labels, ended by NULL. */
static struct series *series_of(struct metrics *m, enum metric k, va_list ap)
{
	const char *name;
	struct series *s;
	struct buf b;

	buf_init(&b, MAX_LABELS);
	while ((name = va_arg(ap, const char *))) {
		const char *value = va_arg(ap, const char *);

		put_label(&b, name, value ? value : "");
	}
	s = series_find(m, k, b.data ? b.data : "");
	buf_done(&b);
	if (!s && k != METRIC_LOST)
		s = series_find(m, METRIC_LOST, "");
	return s;
}

static void add(struct metrics *m, enum metric k, double value, ...)
{
	struct series *s;
	va_list ap;

	va_start(ap, value);
	s = series_of(m, k, ap);
	va_end(ap);
	if (s)
		s->value += s->family == k ? value : 1;
}

static void add_time(struct metrics *m, double seconds, ...)
{
	struct series *s;
	size_t i = 0;
	va_list ap;

	va_start(ap, seconds);
	s = series_of(m, METRIC_SECONDS, ap);
	va_end(ap);
	if (!s)
		return;
	while (i < ARRAY_SIZE(bounds) && seconds > bounds[i])
		i++;
	s->buckets[i]++;
	s->value += seconds;
}

/* --- what is told --- */

static const char *text_of(const json_t *o, const char *name)
{
	return json_string_value(json_object_get(o, name));
}

void metrics_event(struct metrics *m, const json_t *event)
{
	const char *what = text_of(event, "event");
	const char *filter = text_of(event, "filter");

	if (!what)
		return;
	add(m, METRIC_MESSAGES, 1.0, "event", what, "type",
	    text_of(event, "type"), NULL);
	if (filter)
		add(m, METRIC_FILTERED, 1.0, "filter", filter, "outcome", what,
		    NULL);
}

static void count_usage(struct metrics *m, const json_t *chat)
{
	const json_t *usage = json_object_get(chat, "models_usage");
	const char *agent = text_of(chat, "source");

	if (!json_is_object(usage))
		return;
	add(m, METRIC_MODEL_CALLS, 1.0, "agent", agent, NULL);
	add(m, METRIC_TOKENS,
	    (double)json_integer_value(json_object_get(usage, "prompt_tokens")),
	    "agent", agent, "direction", "prompt", NULL);
	add(m, METRIC_TOKENS,
	    (double)json_integer_value(
		    json_object_get(usage, "completion_tokens")),
	    "agent", agent, "direction", "completion", NULL);
}

/* A model may ask for tools that nobody has: so many names, and one more. */
static const char *tool_label(const struct metrics *m, const char *name)
{
	size_t len = name ? strlen(name) : 0;
	size_t n = 0;

	for (size_t i = 0; i < m->n; i++) {
		const char *labels = m->v[i].labels;

		if (m->v[i].family != METRIC_TOOL_CALLS)
			continue;
		if (strncmp(labels, "tool=\"", 6) == 0 &&
		    strncmp(labels + 6, name ? name : "", len) == 0 &&
		    labels[6 + len] == '"')
			return name;
		n++;
	}
	return n < MAX_TOOLS ? name : "other";
}

static void count_results(struct metrics *m, const json_t *chat)
{
	const json_t *r;
	size_t i;

	json_array_foreach(json_object_get(chat, "content"), i, r)
	{
		const char *cause = text_of(json_object_get(r, "detail"),
					    "cause");

		add(m, METRIC_TOOL_CALLS, 1.0, "tool",
		    tool_label(m, text_of(r, "name")), "outcome",
		    json_is_true(json_object_get(r, "is_error")) ? "error"
								 : "ok",
		    NULL);
		if (cause)
			add(m, METRIC_CODE_RUNS, 1.0, "cause", cause, NULL);
	}
}

static void count_code(struct metrics *m, const json_t *chat)
{
	const char *cause = text_of(json_object_get(chat, "result"), "cause");

	add(m, METRIC_CODE_RUNS, 1.0, "cause", cause ? cause : "unknown", NULL);
}

static void count_asked(struct metrics *m, const json_t *chat)
{
	(void)chat;
	add(m, METRIC_APPROVALS, 1.0, "outcome", "asked", NULL);
	add(m, METRIC_APPROVALS_OPEN, 1.0, NULL);
}

static void count_decided(struct metrics *m, const json_t *chat)
{
	const json_t *d = json_object_get(chat, "decision");
	bool yes = json_is_true(json_object_get(d, "approved"));
	/* It was approved before, and was counted then. */
	const char *outcome = json_object_get(d, "outcome") ? "unknown"
			      : yes                         ? "approved"
							    : "denied";

	add(m, METRIC_APPROVALS, 1.0, "outcome", outcome, NULL);
	add(m, METRIC_APPROVALS_OPEN, -1.0, NULL);
}

void metrics_chat(struct metrics *m, const json_t *chat)
{
	static const struct {
		const char *type;
		void (*count)(struct metrics *m, const json_t *chat);
	} table[] = {
		{ "ToolCallExecutionEvent", count_results },
		{ "CodeExecutionEvent", count_code },
		{ "ApprovalRequestedEvent", count_asked },
		{ "ApprovalDecidedEvent", count_decided },
	};
	const char *type = text_of(chat, "type");

	if (!type)
		return;
	add(m, METRIC_CHAT, 1.0, "type", type, NULL);
	count_usage(m, chat);
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (strcmp(type, table[i].type) == 0)
			table[i].count(m, chat);
}

static double nanoseconds(const json_t *span, const char *name)
{
	const char *s = text_of(span, name);

	return s ? strtod(s, NULL) : 0;
}

void metrics_span(struct metrics *m, const json_t *request)
{
	const json_t *group;
	const json_t *span;
	char kind[32];
	const char *name;

	group = json_array_get(json_object_get(request, "resourceSpans"), 0);
	group = json_array_get(json_object_get(group, "scopeSpans"), 0);
	span = json_array_get(json_object_get(group, "spans"), 0);
	name = text_of(span, "name");
	if (!name)
		return;
	(void)snprintf(kind, sizeof(kind), "%.*s",
		       (int)MIN(strcspn(name, " "), sizeof(kind) - 1), name);
	add_time(m,
		 (nanoseconds(span, "endTimeUnixNano") -
		  nanoseconds(span, "startTimeUnixNano")) /
			 1e9,
		 "kind", kind, NULL);
}

/* --- as text --- */

static void put_series(struct buf *out, const struct series *s)
{
	const char *name = families[s->family].name;
	const char *comma = s->labels[0] ? "," : "";
	uint64_t n = 0;

	if (s->family != METRIC_SECONDS) {
		buf_printf(out, "%s%s%s%s %.15g\n", name,
			   s->labels[0] ? "{" : "", s->labels,
			   s->labels[0] ? "}" : "", s->value);
		return;
	}
	for (size_t i = 0; i <= ARRAY_SIZE(bounds); i++) {
		n += s->buckets[i];
		buf_printf(out, "%s_bucket{%s%sle=\"", name, s->labels, comma);
		if (i < ARRAY_SIZE(bounds))
			buf_printf(out, "%g", bounds[i]);
		else
			buf_puts(out, "+Inf");
		buf_printf(out, "\"} %llu\n", (unsigned long long)n);
	}
	buf_printf(out, "%s_sum{%s} %.9g\n%s_count{%s} %llu\n", name, s->labels,
		   s->value, name, s->labels, (unsigned long long)n);
}

static void put_head(struct buf *out, const char *name, const char *type,
		     const char *help)
{
	buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Its counters, and how much of what there is now. */
static void put_runtime(struct buf *out, const struct runtime *rt)
{
	json_t *all = rt ? runtime_metrics(rt) : NULL;
	const char *name;
	json_t *v;

	if (all)
		put_head(out, "cordon_runtime_total", "counter",
			 "Messages of the runtime, by what became of them.");
	json_object_foreach(json_object_get(all, "counters"), name, v)
		buf_printf(out, "cordon_runtime_total{outcome=\"%s\"} %lld\n",
			   name, (long long)json_integer_value(v));
	if (all)
		put_head(out, "cordon_runtime", "gauge",
			 "How many there are now, by what.");
	json_object_foreach(all, name, v) if (json_is_integer(v))
		buf_printf(out, "cordon_runtime{of=\"%s\"} %lld\n", name,
			   (long long)json_integer_value(v));
	json_decref(all);
}

int metrics_text(struct metrics *m, const struct runtime *rt, struct buf *out)
{
	put_runtime(out, rt);
	for (int k = 0; k < METRICS; k++) {
		bool is_first = true;

		for (size_t i = 0; i < m->n; i++) {
			if (m->v[i].family != (enum metric)k)
				continue;
			if (is_first)
				put_head(out, families[k].name,
					 families[k].type, families[k].help);
			is_first = false;
			put_series(out, &m->v[i]);
		}
	}
	return out->error;
}
