/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Answers, whole or in deltas. What servers do otherwise than the description
 * says is met here, each with a test in tests/agents/model-read.c.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "model/openai.h"

void answer_init(struct answer *a,
		 void (*chunk)(void *arg, bool is_thought, const char *text,
			       size_t len),
		 void *arg)
{
	memset(a, 0, sizeof(*a));
	join_init(&a->content, ANSWER_MAX);
	join_init(&a->thought, ANSWER_MAX);
	a->finish = FINISH_UNKNOWN;
	a->chunk = chunk;
	a->arg = arg;
}

void answer_done(struct answer *a)
{
	join_done(&a->content);
	join_done(&a->thought);
	for (size_t i = 0; i < a->n_calls; i++) {
		free(a->calls[i].id);
		free(a->calls[i].name);
		join_done(&a->calls[i].arguments);
	}
	free(a->calls);
	free(a->id);
	free(a->model);
	memset(a, 0, sizeof(*a));
}

/* --- text --- */

static int add_text(struct answer *a, struct join *j, const json_t *v,
		    bool is_held)
{
	size_t len;
	const char *text;

	if (join_add(j, json_string_value(v), json_string_length(v), is_held) <
	    0)
		return -E2BIG;
	text = join_more(j, &len);
	if (a->chunk && len)
		a->chunk(a->arg, j == &a->thought, text, len);
	return 0;
}

/* A string, or null, or parts: {"type":"text","text"}, "thinking" nested. */
static int add_content(struct answer *a, struct join *j, const json_t *v,
		       bool is_held)
{
	json_t *part;
	size_t i;

	if (json_is_string(v))
		return add_text(a, j, v, is_held);
	json_array_foreach(v, i, part)
	{
		const json_t *text = json_object_get(part, "text");
		const json_t *thinking = json_object_get(part, "thinking");
		int r = 0;

		if (json_is_string(text))
			r = add_text(a, j, text, is_held);
		else if (thinking && j == &a->content)
			r = add_content(a, &a->thought, thinking, is_held);
		if (r < 0)
			return r;
	}
	return 0;
}

static int keep_once(char **to, const json_t *v)
{
	if (*to || !json_string_length(v))
		return 0;
	*to = strdup(json_string_value(v));
	return *to ? 0 : -ENOMEM;
}

/* --- calls --- */

static struct answer_call *new_call(struct answer *a, int64_t index)
{
	struct answer_call *calls;

	if (a->n_calls == ANSWER_CALLS)
		return NULL;
	calls = reallocarray(a->calls, a->n_calls + 1, sizeof(*calls));
	if (!calls)
		return NULL;
	a->calls = calls;
	calls += a->n_calls++;
	*calls = (struct answer_call){ .index = index };
	join_init(&calls->arguments, ANSWER_MAX);
	return calls;
}

static struct answer_call *call_of_id(struct answer *a, const char *id)
{
	for (size_t i = a->n_calls; id && i > 0; i--)
		if (a->calls[i - 1].id && strcmp(a->calls[i - 1].id, id) == 0)
			return &a->calls[i - 1];
	return NULL;
}

static struct answer_call *call_of_index(struct answer *a, int64_t index)
{
	/* The last: servers that give all the same index begin anew. */
	for (size_t i = a->n_calls; i > 0; i--)
		if (a->calls[i - 1].index == index)
			return &a->calls[i - 1];
	return NULL;
}

/*
 * Which call a delta goes on with, or a new one. Without an index its id says
 * so; with neither it is the last one. Where an index is there, but the id is
 * another one and a name comes with it, the server counts wrongly.
 */
static struct answer_call *call_for(struct answer *a, const json_t *delta,
				    const json_t *name)
{
	const json_t *at = json_object_get(delta, "index");
	const char *id = json_string_value(json_object_get(delta, "id"));
	bool has_name = json_string_length(name) > 0;
	int64_t index = json_is_integer(at) ? json_integer_value(at) : -1;
	struct answer_call *c;

	if (id && !*id)
		id = NULL;
	if (index >= 0) {
		c = call_of_index(a, index);
		if (c && id && c->id && strcmp(c->id, id) != 0 && has_name)
			c = call_of_id(a, id);
		return c ? c : new_call(a, index);
	}
	c = call_of_id(a, id);
	if (!c && !id && !has_name && a->n_calls)
		c = &a->calls[a->n_calls - 1];
	return c ? c : new_call(a, -1);
}

/* Some servers send the name with each delta, some in pieces. */
static int add_name(struct answer_call *c, const json_t *v)
{
	const char *more = json_string_value(v);
	char *joined;

	if (!more || !*more || (c->name && strcmp(c->name, more) == 0))
		return 0;
	if (!c->name)
		return keep_once(&c->name, v);
	if (asprintf(&joined, "%s%s", c->name, more) < 0)
		return -ENOMEM;
	free(c->name);
	c->name = joined;
	return 0;
}

static int add_arguments(struct answer_call *c, const json_t *v, bool is_held)
{
	_cleanup_free_ char *text = NULL;

	if (json_is_string(v))
		return join_add(&c->arguments, json_string_value(v),
				json_string_length(v), is_held);
	if (!json_is_object(v))
		return 0;
	text = json_dumps(v, JSON_COMPACT);
	return text ? join_add(&c->arguments, text, strlen(text), is_held)
		    : -ENOMEM;
}

static int add_call(struct answer *a, const json_t *delta, bool is_held)
{
	const json_t *function = json_object_get(delta, "function");
	const json_t *name = json_object_get(function, "name");
	struct answer_call *c = call_for(a, delta, name);

	if (!c)
		return -E2BIG;
	if (keep_once(&c->id, json_object_get(delta, "id")) < 0 ||
	    add_name(c, name) < 0)
		return -ENOMEM;
	return add_arguments(c, json_object_get(function, "arguments"),
			     is_held);
}

/* --- what comes --- */

static int64_t count_of(const json_t *o, const char *name)
{
	json_int_t n = json_integer_value(json_object_get(o, name));

	/* More than that nobody has; a sum of them does not overflow. */
	return n < 0 || n > (json_int_t)1 << 40 ? 0 : n;
}

static void take_usage(struct answer *a, const json_t *u)
{
	if (!json_is_object(u))
		return;
	a->has_usage = true;
	a->usage = (struct model_usage){
		.prompt = count_of(u, "prompt_tokens"),
		.completion = count_of(u, "completion_tokens"),
		.cached = count_of(json_object_get(u, "prompt_tokens_details"),
				   "cached_tokens"),
		.reasoning = count_of(
			json_object_get(u, "completion_tokens_details"),
			"reasoning_tokens"),
	};
}

static void take_finish(struct answer *a, const json_t *v)
{
	static const struct {
		const char *name;
		enum model_finish finish;
	} names[] = {
		{ "stop", FINISH_STOP },
		{ "eos", FINISH_STOP },
		{ "length", FINISH_LENGTH },
		{ "tool_calls", FINISH_CALLS },
		{ "function_call", FINISH_CALLS },
		{ "content_filter", FINISH_FILTER },
	};
	const char *name = json_string_value(v);

	if (!name || !*name)
		return;
	a->has_finish = true;
	a->finish = FINISH_UNKNOWN;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(names[i].name, name) == 0)
			a->finish = names[i].finish;
}

/* A message, or a part of one: they have the same fields. */
static int take_message(struct answer *a, const json_t *m, bool is_held)
{
	static const char *const thoughts[] = { "reasoning_content",
						"reasoning" };
	const json_t *refusal = json_object_get(m, "refusal");
	json_t *call;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(thoughts); i++) {
		const json_t *v = json_object_get(m, thoughts[i]);

		if (!json_is_string(v))
			continue;
		if (add_text(a, &a->thought, v, is_held) < 0)
			return -E2BIG;
		break; /* some send it under both names */
	}
	if (add_content(a, &a->content, json_object_get(m, "content"),
			is_held) < 0)
		return -E2BIG;
	if (json_string_length(refusal)) {
		a->is_refused = true;
		if (add_text(a, &a->content, refusal, is_held) < 0)
			return -E2BIG;
	}
	json_array_foreach(json_object_get(m, "tool_calls"), i,
			   call) if (add_call(a, call, is_held) <
				     0) return -E2BIG;
	return 0;
}

/* The first choice: more are not asked for. */
static const json_t *first_choice(const json_t *doc)
{
	json_t *choice;
	size_t i;

	json_array_foreach(
		json_object_get(doc, "choices"), i,
		choice) if (json_integer_value(json_object_get(choice,
							       "index")) ==
			    0) return choice;
	return NULL;
}

static int take(struct answer *a, const json_t *doc, const char *part,
		bool is_held, struct fault *why)
{
	const json_t *choice = first_choice(doc);
	const json_t *message = json_object_get(choice, part);

	if (keep_once(&a->id, json_object_get(doc, "id")) < 0 ||
	    keep_once(&a->model, json_object_get(doc, "model")) < 0)
		return answer_too_large(why);
	take_usage(a, json_object_get(doc, "usage"));
	a->has_message |= json_is_object(message);
	if (take_message(a, message, is_held) < 0)
		return answer_too_large(why);
	take_finish(a, json_object_get(choice, "finish_reason"));
	return 0;
}

/* --- errors --- */

static const char *text_of(const json_t *o, const char *name)
{
	const char *text = json_string_value(json_object_get(o, name));

	return text && *text ? text : NULL;
}

static enum fault_code code_of(const json_t *error, enum fault_code code)
{
	static const struct {
		const char *name;
		enum fault_code code;
		bool is_vague; /* a status, where there is one, says more */
	} names[] = {
		{ "rate_limit_exceeded", FAULT_OVERLOADED, false },
		{ "rate_limit_error", FAULT_OVERLOADED, false },
		{ "overloaded_error", FAULT_OVERLOADED, false },
		{ "context_length_exceeded", FAULT_TOO_LARGE, false },
		{ "invalid_api_key", FAULT_UNAUTHORIZED, false },
		{ "authentication_error", FAULT_UNAUTHORIZED, false },
		{ "model_not_found", FAULT_NOT_FOUND, false },
		{ "invalid_request_error", FAULT_REJECTED, true },
	};
	const char *said[] = { text_of(error, "code"), text_of(error, "type") };

	for (size_t k = 0; k < ARRAY_SIZE(said); k++)
		for (size_t i = 0; said[k] && i < ARRAY_SIZE(names); i++)
			if (strcmp(names[i].name, said[k]) == 0 &&
			    (!names[i].is_vague || code == FAULT_UNAVAILABLE))
				return names[i].code;
	return code;
}

static void set_error(const json_t *error, enum fault_code code,
		      struct fault *why)
{
	const char *text = json_is_string(error) ? json_string_value(error)
						 : text_of(error, "message");
	const char *kind = text_of(error, "code");

	if (!kind)
		kind = text_of(error, "type");
	/* Keys are masked in it before it is cut to what is told. */
	fault_set(why, code_of(error, code),
		  "the model's server says: %.4000s%s%s%s",
		  text ? text : "an error without a text", kind ? " (" : "",
		  kind ? kind : "", kind ? ")" : "");
}

void answer_error(const char *body, size_t len, enum fault_code code,
		  struct fault *why)
{
	json_t *doc = len ? json_loadb(body, len, 0, NULL) : NULL;
	json_t *error = json_object_get(doc, "error");

	if (json_is_array(doc)) /* Google wraps it */
		error = json_object_get(json_array_get(doc, 0), "error");
	if (!error && (text_of(doc, "message") || text_of(doc, "detail")))
		error = text_of(doc, "message")
				? doc
				: json_object_get(doc, "detail");
	if (error)
		set_error(error, code, why);
	else
		fault_set(why, code,
			  "the model's server answers with an error");
	json_decref(doc);
}

static bool has_error(const json_t *doc, struct fault *why)
{
	const json_t *error = json_object_get(doc, "error");

	if (!error || json_is_null(error))
		return false;
	set_error(error, FAULT_UNAVAILABLE, why);
	return true;
}

/* --- streams and documents --- */

/*
 * An event has one document, or [DONE]; some servers leave the empty line
 * between events out, and then it has several.
 */
static int take_event(struct answer *a, const char *p, size_t len, bool is_held,
		      struct fault *why)
{
	const char *end = p + len;

	for (;;) {
		json_error_t e;
		json_t *doc;
		int r;

		while (p < end && is_blank(*p))
			p++;
		if (p == end || a->is_done)
			return 0;
		if (end - p >= 6 && memcmp(p, "[DONE]", 6) == 0) {
			a->is_done = true;
			return 0;
		}
		doc = json_loadb(p, (size_t)(end - p),
				 JSON_DISABLE_EOF_CHECK | JSON_ALLOW_NUL, &e);
		if (!json_is_object(doc)) {
			json_decref(doc);
			return answer_nonsense(why,
					       "has a chunk that is no JSON");
		}
		r = has_error(doc, why) ? -EPROTO
					: take(a, doc, "delta", is_held, why);
		json_decref(doc);
		if (r < 0)
			return r;
		p += e.position;
	}
}

int answer_event(struct answer *a, const char *data, size_t len,
		 struct fault *why)
{
	struct buf held;
	int r;

	buf_init(&held, 4 * len);
	if (!join_hold(&held, data, len))
		return take_event(a, data, len, false, why);
	r = held.error ? answer_too_large(why)
		       : take_event(a, held.data, held.len, true, why);
	buf_done(&held);
	return r;
}

int answer_document(struct answer *a, const char *data, size_t len,
		    struct fault *why)
{
	json_t *doc = json_loadb(data, len, JSON_ALLOW_NUL, NULL);
	int r;

	if (!json_is_object(doc)) {
		json_decref(doc);
		return answer_nonsense(why, "is no JSON document");
	}
	r = has_error(doc, why) ? -EPROTO : take(a, doc, "message", false, why);
	json_decref(doc);
	if (r < 0)
		return r;
	if (!a->has_message)
		return answer_nonsense(why, "has no message in it");
	a->is_done = true;
	return 0;
}
