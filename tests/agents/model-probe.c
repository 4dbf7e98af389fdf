/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One model, asked from the command line; for tests with servers that others
 * wrote.
 *
 *	model-probe CONFIG REQUEST [TIMES]
 *
 * CONFIG is that of an OpenAI-compatible model, REQUEST {"messages","tools",
 * "tool_choice","output_schema","stream","deadline_ms"}, both as JSON. Prints
 * a line for each call: {"result":{...},"chunks":[...],"ms":12} or {"fault":
 * {...},"chunks":[...],"ms":12}.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "model/recording.h"

struct probe {
	json_t *chunks, *end;
	int64_t begun;
	bool is_over;
};

static void on_chunk(void *arg, bool is_thought, const char *text, size_t len)
{
	struct probe *p = arg;
	json_t *v = json_stringn(text, len);

	if (is_thought)
		v = json_pack("{s:o}", "thought", v);
	(void)json_array_append_new(p->chunks, v);
}

static void on_done(void *arg, const struct model_result *r,
		    const struct fault *why)
{
	struct probe *p = arg;

	p->end = json_pack("{s:o*, s:o*, s:O, s:I}", "result",
			   r ? recording_result(r) : NULL, "fault",
			   why ? fault_json(why) : NULL, "chunks", p->chunks,
			   "ms", (json_int_t)((clock_us() - p->begun) / 1000));
	p->is_over = true;
}

static bool is_over(void *arg)
{
	return ((struct probe *)arg)->is_over;
}

static int probe(struct loop *l, struct model *m, const json_t *request)
{
	static const struct model_events events = { on_chunk, on_done };
	struct probe p = { .chunks = json_array(), .begun = clock_us() };
	json_int_t ms = json_integer_value(
		json_object_get(request, "deadline_ms"));
	struct cancel *cancel = cancel_new(l, NULL,
					   ms ? p.begun + ms * 1000 : 0);
	struct model_request q = {
		.messages = json_object_get(request, "messages"),
		.tools = json_object_get(request, "tools"),
		.tool_choice = json_string_value(
			json_object_get(request, "tool_choice")),
		.output_schema = json_object_get(request, "output_schema"),
		.is_stream = json_is_true(json_object_get(request, "stream")),
		.cancel = cancel,
	};

	if (!model_start(m, &q, &events, &p))
		return -1;
	(void)loop_run(l, is_over, &p);
	if (!p.end || json_dumpf(p.end, stdout, JSON_COMPACT) < 0)
		return -1;
	(void)putchar('\n');
	(void)fflush(stdout);
	json_decref(p.end);
	json_decref(p.chunks);
	cancel_unref(cancel);
	return 0;
}

int main(int argc, char **argv)
{
	json_t *config = argc > 2 ? json_loads(argv[1], 0, NULL) : NULL;
	json_t *request = argc > 2 ? json_loads(argv[2], 0, NULL) : NULL;
	long times = argc > 3 ? strtol(argv[3], NULL, 10) : 1;
	struct loop *l = NULL;
	struct model *m = NULL;
	struct err err = { 0 };

	if (!config || !request) {
		(void)fputs("usage: model-probe CONFIG REQUEST [TIMES]\n",
			    stderr);
		return 2;
	}
	if (loop_new(&l, &err) < 0 || model_openai(l, config, &m, &err) < 0) {
		(void)fprintf(stderr, "model-probe: %s\n", err.text);
		return 2;
	}
	for (long i = 0; i < times; i++)
		if (probe(l, m, request) < 0)
			return 1;
	model_unref(m);
	loop_free(l);
	json_decref(config);
	json_decref(request);
	return 0;
}
