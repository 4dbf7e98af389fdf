/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* For tests of models: one loop, a call and what came of it. */

#include "base/buf.h"
#include "model/model.h"
#include "model/provider.h"

struct said {
	struct model_result r; /* a copy */
	struct fault why;
	char chunks[8192]; /* "[text]", "<thought>" */
	int n_chunks, n_ends;
	bool is_over;
	struct model_call *call;
	struct cancel *cancel;  /* freed by said_done() */
	int drop_at, cancel_at; /* at this chunk; 0: never */
	json_t *tools;          /* also freed */
	json_t *schema;
	json_t *messages; /* instead of the text */
	const char *choice;
};

static struct loop *the_loop(void)
{
	static struct loop *l;
	struct err err = { 0 };

	if (!l && loop_new(&l, &err) < 0)
		abort();
	return l;
}

static inline void on_chunk(void *arg, bool is_thought, const char *text,
			    size_t len)
{
	struct said *s = arg;
	size_t n = strlen(s->chunks);

	(void)snprintf(s->chunks + n, sizeof(s->chunks) - n,
		       is_thought ? "<%.*s>" : "[%.*s]", (int)len, text);
	s->n_chunks++;
	if (s->n_chunks == s->drop_at) {
		model_drop(s->call);
		s->is_over = true;
	}
	if (s->n_chunks == s->cancel_at)
		cancel_fire(s->cancel, "the test wants it");
}

static inline void on_done(void *arg, const struct model_result *r,
			   const struct fault *why)
{
	struct said *s = arg;

	if (r)
		(void)result_copy(&s->r, r);
	if (why)
		fault_copy(&s->why, why);
	s->n_ends++;
	s->is_over = true;
}

static inline void begin(struct said *s, struct model *m, const char *text,
			 bool is_stream)
{
	static const struct model_events events = { on_chunk, on_done };
	json_t *messages = s->messages;
	struct model_request q = { .tools = s->tools,
				   .tool_choice = s->choice,
				   .output_schema = s->schema,
				   .cancel = s->cancel,
				   .is_stream = is_stream };

	if (!messages)
		messages = json_pack("[{s:s, s:s, s:s}]", "role", "user",
				     "source", "user", "content", text);
	q.messages = messages;
	s->call = model_start(m, &q, &events, s);
	if (messages != s->messages)
		json_decref(messages);
}

static inline bool said_is_over(void *arg)
{
	return ((struct said *)arg)->is_over;
}

static inline void wait_for(struct said *s)
{
	(void)loop_run(the_loop(), said_is_over, s);
}

static inline struct said ask(struct model *m, const char *text, bool is_stream)
{
	struct said s = { 0 };

	begin(&s, m, text, is_stream);
	wait_for(&s);
	return s;
}

static inline void said_done(struct said *s)
{
	result_done(&s->r);
	fault_done(&s->why);
	cancel_unref(s->cancel);
	json_decref(s->tools);
	json_decref(s->schema);
	json_decref(s->messages);
	memset(s, 0, sizeof(*s));
}

static inline const char *call_text(const struct said *s, size_t i,
				    const char *field)
{
	return json_string_value(
		json_object_get(json_array_get(s->r.calls, i), field));
}
