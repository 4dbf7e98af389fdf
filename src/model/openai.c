/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation
 *
 * A call is one body, sent until an answer begins or retry.c says enough:
 *
 *	send -> head 2xx -> deltas or a document -> end -> result
 *	  ^       |                                  |
 *	  |       +-> else its text -> end ----------+-> fault
 *	  +------------- wait <------- end
 *
 * What is read as a stream is decided by what the server says it sends, since
 * not all servers do as they were asked. A stream is over with [DONE]; the
 * connection then gets LINGER_US to end in order, so that it can be used again.
 *
 * The default key (OPENAI_API_KEY) is sent to the default server and to the one
 * in OPENAI_BASE_URL. A configuration that names another server names the key
 * for it: otherwise a file from elsewhere could have the key sent anywhere.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "model/http.h"
#include "model/openai.h"
#include "model/openai-config.h"
#include "model/retry.h"
#include "model/secret.h"
#include "model/sse.h"

#define LINGER_US ((int64_t)100 * 1000)
#define ERROR_MAX ((size_t)64 << 10)
#define TEXT_MAX  600

struct openai {
	struct model m;
	struct http *pool;
	struct openai_config config;
};

struct openai_call {
	struct model_call c;
	struct http_call http;
	struct timer timer; /* the next attempt, or the end of lingering */
	struct timer limit; /* the configuration's `timeout` */
	char *body;
	char *key;    /* NULL: none is sent */
	char *header; /* with the key in it */
	struct sse sse;
	struct answer answer;
	struct buf rest; /* a document, or the text of an error */
	struct http_head head;
	bool is_sse;
	int failures;
};

static struct openai *openai_of(const struct openai_call *c)
{
	return (struct openai *)c->c.model;
}

/* --- ends --- */

/* Servers repeat keys in their errors; and no text is endless. */
static void fail(struct openai_call *c)
{
	secret_mask(c->c.why.message, c->key);
	if (c->c.why.message && strlen(c->c.why.message) > TEXT_MAX)
		c->c.why.message[TEXT_MAX] = '\0';
	call_fail(&c->c);
}

/* Where a server does not say: a budget must not be blind. */
static void guess_usage(struct openai_call *c)
{
	struct model_result *r = &c->c.result;
	_cleanup_free_ char *calls = json_dumps(r->calls, JSON_COMPACT);

	r->is_estimated = true;
	r->usage.prompt = tokens_of(c->body, strlen(c->body));
	r->usage.completion = tokens_of(r->content ? r->content : "",
					r->content ? strlen(r->content) : 0) +
			      tokens_of(r->thought ? r->thought : "",
					r->thought ? strlen(r->thought) : 0) +
			      tokens_of(calls ? calls : "",
					calls ? strlen(calls) : 0);
}

/* A server that repeats the key does not get it into a conversation. */
static void mask_result(struct openai_call *c)
{
	struct model_result *r = &c->c.result;
	size_t i;
	json_t *call;

	secret_mask(r->content, c->key);
	secret_mask(r->thought, c->key);
	json_array_foreach(r->calls, i, call)
	{
		json_t *arguments = json_object_get(call, "arguments");
		_cleanup_free_ char *text = strdup(
			json_is_string(arguments) ? json_string_value(arguments)
						  : "");

		secret_mask(text, c->key);
		if (text && json_is_string(arguments) &&
		    strcmp(text, json_string_value(arguments)) != 0)
			(void)json_string_set(arguments, text);
	}
}

static void finish(struct openai_call *c)
{
	if (answer_end(&c->answer, &c->c.result, &c->c.why) < 0) {
		fail(c);
		return;
	}
	mask_result(c);
	if (!c->answer.has_usage)
		guess_usage(c);
	call_end(&c->c);
}

/* --- the answer --- */

static void on_chunk(void *arg, bool is_thought, const char *text, size_t len)
{
	struct openai_call *c = arg;
	_cleanup_free_ char *masked = NULL;

	if (!c->c.is_stream)
		return;
	if (c->key && memmem(text, len, c->key, strlen(c->key))) {
		masked = strndup(text, len);
		secret_mask(masked, c->key);
		text = masked ? masked : "";
		len = strlen(text);
	}
	call_chunk(&c->c, is_thought, text, len);
}

static void linger(struct openai_call *c)
{
	if (timer_set(c->c.model->loop, &c->timer, clock_us() + LINGER_US) < 0)
		finish(c);
}

static void on_event(void *arg, const char *name, const char *data, size_t len)
{
	struct openai_call *c = arg;

	(void)name; /* an error is one by its document */
	if (answer_event(&c->answer, data, len, &c->c.why) < 0)
		fail(c);
	else if (c->answer.is_done && !c->c.is_over)
		linger(c);
	if (c->c.is_over || c->answer.is_done)
		sse_stop(&c->sse);
}

static bool is_good(int status)
{
	return status >= 200 && status <= 299;
}

static bool has_type(const struct http_head *head, const char *type)
{
	return strncasecmp(head->type, type, strlen(type)) == 0;
}

static void on_head(void *arg, const struct http_head *head)
{
	struct openai_call *c = arg;

	c->head = *head;
	c->is_sse = has_type(head, "text/event-stream") ||
		    (c->c.is_stream && !has_type(head, "application/json"));
}

static void on_body(void *arg, const char *data, size_t len)
{
	struct openai_call *c = arg;
	int r = 0;

	if (!is_good(c->head.status)) {
		/* More of an error than that says no more. */
		(void)buf_add(&c->rest, data,
			      MIN(len, c->rest.max - c->rest.len));
		return;
	}
	r = c->is_sse ? sse_feed(&c->sse, data, len)
		      : buf_add(&c->rest, data, len);
	if (r < 0 && !c->c.is_over) {
		(void)answer_too_large(&c->c.why);
		fail(c);
	}
}

/* --- attempts --- */

static enum fault_code code_of(int status)
{
	static const struct {
		int status;
		enum fault_code code;
	} codes[] = {
		{ 401, FAULT_UNAUTHORIZED }, { 403, FAULT_UNAUTHORIZED },
		{ 404, FAULT_NOT_FOUND },    { 408, FAULT_UNAVAILABLE },
		{ 409, FAULT_UNAVAILABLE },  { 413, FAULT_TOO_LARGE },
		{ 429, FAULT_OVERLOADED },
	};

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
		if (codes[i].status == status)
			return codes[i].code;
	return status >= 500 ? FAULT_UNAVAILABLE : FAULT_REJECTED;
}

static void set_fault(struct openai_call *c, const struct http_end *end)
{
	struct fault *why = &c->c.why;
	char *text = NULL;

	if (end->status == 0) {
		fault_set(why,
			  end->is_late ? FAULT_DEADLINE : FAULT_UNAVAILABLE,
			  "the model's server cannot be reached: %s",
			  end->text);
		return;
	}
	answer_error(c->rest.data, c->rest.len, code_of(end->status), why);
	if (why->message &&
	    asprintf(&text, "%s (HTTP status %d%s)", why->message, end->status,
		     c->failures > 1 ? ", tried again in vain" : "") >= 0) {
		free(why->message);
		why->message = text;
	}
}

/* Whether another attempt is on its way. */
static bool try_again(struct openai_call *c, const struct http_end *end)
{
	struct openai *m = openai_of(c);
	int64_t deadline = cancel_deadline(c->c.cancel);
	int64_t asked = retry_asked(c->head.retry_after, time(NULL));
	int64_t wait;

	c->failures++;
	if (!(end->status ? retry_is_worth(end->status) : end->is_unreached))
		return false;
	wait = retry_wait(&m->config.retry, c->failures,
			  end->status ? asked : -1, retry_random());
	/* One that comes too late would only hide why this one failed. */
	if (wait < 0 || (deadline && clock_us() + wait >= deadline))
		return false;
	return timer_set(m->m.loop, &c->timer, clock_us() + wait) == 0;
}

static void on_end(void *arg, const struct http_end *end)
{
	struct openai_call *c = arg;
	int r;

	timer_stop(&c->timer);
	if (!is_good(end->status)) {
		if (try_again(c, end))
			return;
		set_fault(c, end);
		fail(c);
		return;
	}
	if (c->answer.is_done) {
		finish(c);
		return;
	}
	if (!end->is_whole) {
		fault_set(&c->c.why,
			  end->is_late ? FAULT_DEADLINE : FAULT_UNAVAILABLE,
			  "the model's answer was cut off: %s", end->text);
		fail(c);
		return;
	}
	r = c->is_sse ? sse_end(&c->sse)
		      : answer_document(&c->answer,
					c->rest.data ? c->rest.data : "",
					c->rest.len, &c->c.why);
	if (r < 0)
		fail(c);
	else if (!c->c.is_over)
		finish(c);
}

static const struct http_events http_events = { on_head, on_body, on_end };

static int send_it(struct openai_call *c)
{
	const struct openai_config *o = &openai_of(c)->config;
	struct http_request q = {
		.url = o->url,
		.headers = { "Content-Type: application/json",
			     "Accept: application/json, text/event-stream",
			     c->header },
		.body = c->body,
		.len = strlen(c->body),
		.ca_file = o->ca_file,
		.connect_us = o->connect_us,
		.first_us = o->first_us,
		.idle_us = o->idle_us,
		.events = &http_events,
		.arg = c,
	};

	memset(&c->head, 0, sizeof(c->head));
	c->rest.len = 0;
	return http_start(openai_of(c)->pool, &c->http, &q);
}

static void is_time(struct timer *t)
{
	struct openai_call *c =
		(struct openai_call *)((char *)t -
				       offsetof(struct openai_call, timer));

	if (c->answer.is_done)
		finish(c);
	else if (send_it(c) < 0)
		fail(c);
}

static void is_too_late(struct timer *t)
{
	struct openai_call *c =
		(struct openai_call *)((char *)t -
				       offsetof(struct openai_call, limit));

	fault_set(&c->c.why, FAULT_DEADLINE,
		  "the model did not answer within its timeout");
	fail(c);
}

/* --- the model --- */

static int take_key(struct openai_call *c)
{
	const json_t *ref = openai_of(c)->config.key;
	struct err err = { 0 };
	char key[SECRET_MAX];
	int r;

	if (!ref)
		return 0;
	r = secret_read(ref, key, &err);
	if (r < 0) {
		fault_set(&c->c.why, FAULT_UNAUTHORIZED, "%s", err.text);
		return r;
	}
	c->key = strdup(key);
	if (asprintf(&c->header, "Authorization: Bearer %s", key) < 0)
		c->header = NULL;
	explicit_bzero(key, sizeof(key));
	return c->key && c->header ? 0 : -ENOMEM;
}

static int start(struct model_call *call, const struct model_request *q)
{
	struct openai_call *c = (struct openai_call *)call;
	struct openai *m = openai_of(c);
	struct openai_form form = {
		.model = m->m.name,
		.info = &m->m.info,
		.settings = m->config.settings,
		.has_names = m->config.has_names,
		.has_stream_usage = m->config.has_stream_usage
	};

	c->timer.fire = is_time;
	c->limit.fire = is_too_late;
	buf_init(&c->rest, q->is_stream ? ERROR_MAX : ANSWER_MAX);
	sse_init(&c->sse, ANSWER_MAX, on_event, c);
	answer_init(&c->answer, on_chunk, c);
	c->body = openai_body(&form, q, &call->why);
	if (!c->body || take_key(c) < 0)
		return -EINVAL;
	if (m->config.limit_us &&
	    timer_set(m->m.loop, &c->limit, clock_us() + m->config.limit_us))
		return -ENOMEM;
	return send_it(c);
}

static void stop(struct model_call *call)
{
	struct openai_call *c = (struct openai_call *)call;

	http_stop(&c->http);
	timer_stop(&c->timer);
	timer_stop(&c->limit);
}

static void free_secret(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
}

static void done(struct model_call *call)
{
	struct openai_call *c = (struct openai_call *)call;

	free_secret(c->key);
	free_secret(c->header);
	free(c->body);
	sse_done(&c->sse);
	answer_done(&c->answer);
	buf_done(&c->rest);
}

static void free_model(struct model *m)
{
	struct openai *o = (struct openai *)m;

	http_put(o->pool);
	openai_config_done(&o->config);
}

static const struct model_ops ops = { sizeof(struct openai),
				      sizeof(struct openai_call),
				      start,
				      stop,
				      done,
				      free_model };

int model_openai(struct loop *l, const json_t *config, struct model **ret,
		 struct err *err)
{
	const char *name = json_string_value(json_object_get(config, "model"));
	struct openai *m;
	int r;

	if (!name || !*name)
		return err_set(err, EINVAL, "a model needs a name in 'model'");
	m = (struct openai *)provider_new(&ops, l, name);
	if (!m)
		return err_set(err, ENOMEM, "out of memory");
	r = openai_config_load(&m->config, &m->m.info, config, err);
	if (r == 0)
		r = http_get(l, &m->pool, err);
	if (r < 0) {
		model_unref(&m->m);
		return err_wrap(err, "model '%s'", name);
	}
	*ret = &m->m;
	return 0;
}
