/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A model and a toolset that do what a test says. They take the place of the
 * real ones at link time, so that a test of an agent needs no server, no
 * policy and no box, and sees every call that is made.
 *
 *	struct say script[] = { { .content = "hello" }, { 0 } };
 *	struct model *m = fake_model(loop, script);
 *	struct toolset *s = fake_tools(loop, "echo hang");
 */

#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/chat.h"
#include "base/clock.h"
#include "base/util.h"

/* No test needs all of it. */
#pragma GCC diagnostic ignored "-Wunused-function"

/*
 * What the fakes and the listener allocate themselves is not what a test
 * makes fail.
 */
static int fake_quiet;

static void fake_loud(const int *unused)
{
	(void)unused;
	fake_quiet--;
}

#define QUIET __attribute__((cleanup(fake_loud))) const int quiet = ++fake_quiet

/* --- the loop --- */

static struct loop *the_loop(void)
{
	static struct loop *l;
	struct err err = { 0 };

	if (!l && loop_new(&l, &err) < 0)
		abort();
	return l;
}

/* --- the model --- */

struct say {
	const char *content;
	const char *calls; /* JSON */
	const char *thought;
	const char *thoughts[4]; /* in chunks */
	const char *chunks[4];
	int64_t prompt, completion;
	double cost;
	enum fault_code fault; /* instead of an answer */
	bool hangs;            /* until it is cancelled */
	enum model_finish finish;
	bool is_end; /* comes again and again */
	bool is_last;
};

struct model {
	unsigned int refs;
	struct loop *loop;
	const struct say *script;
	size_t at; /* calls so far */
	struct model_info info;
	json_t *requests; /* [{"messages","tools","choice","schema"}] */
};

struct model_call {
	struct model *model;
	const struct say *say;
	struct model_events events;
	void *arg;
	struct cancel *cancel;
	struct cancel_hook hook;
	struct task task;
};

static struct model *fake_model(struct loop *l, const struct say *script)
{
	struct model *m = calloc(1, sizeof(*m));

	m->refs = 1;
	m->loop = l;
	m->script = script;
	m->info.function_calling = true;
	m->info.structured_output = true;
	m->info.price_prompt = m->info.price_completion = -1;
	m->requests = json_array();
	return m;
}

struct model *model_ref(struct model *m)
{
	m->refs++;
	return m;
}

void model_unref(struct model *m)
{
	if (!m || --m->refs > 0)
		return;
	json_decref(m->requests);
	free(m);
}

const char *model_name(const struct model *m)
{
	(void)m;
	return "fake";
}

const struct model_info *model_info(const struct model *m)
{
	return &m->info;
}

/* Ten tokens a message. */
int64_t model_count_tokens(const struct model *m, const json_t *messages,
			   const json_t *tools)
{
	(void)m;
	(void)tools;
	return 10 * (int64_t)json_array_size(messages);
}

void model_drop(struct model_call *c)
{
	cancel_unhook(&c->hook);
	cancel_unref(c->cancel);
	task_drop(&c->task);
	free(c);
}

static void fake_answer(struct model_call *c)
{
	const struct say *s = c->say;
	struct model_result r = { .content = (char *)s->content,
				  .thought = (char *)s->thought,
				  .finish = s->finish };

	fake_quiet++;
	r.calls = s->calls ? json_loads(s->calls, 0, NULL) : NULL;
	fake_quiet--;
	r.usage.prompt = s->prompt;
	r.usage.completion = s->completion;
	r.usage.cost = s->cost;
	for (size_t i = 0; i < 4 && s->thoughts[i] && c->events.chunk; i++)
		c->events.chunk(c->arg, true, s->thoughts[i],
				strlen(s->thoughts[i]));
	for (size_t i = 0; i < 4 && s->chunks[i] && c->events.chunk; i++)
		c->events.chunk(c->arg, false, s->chunks[i],
				strlen(s->chunks[i]));
	c->events.done(c->arg, &r, NULL);
	json_decref(r.calls);
}

static void fake_tell(struct task *t)
{
	struct model_call *c = (struct model_call *)((char *)t -
						     offsetof(struct model_call,
							      task));
	struct fault why = { 0 };

	fake_quiet++;
	if (cancel_is_fired(c->cancel))
		cancel_fault(c->cancel, &why);
	else if (c->say->fault)
		fault_set(&why, c->say->fault, "the model is not well");
	fake_quiet--;
	if (why.code)
		c->events.done(c->arg, NULL, &why);
	else
		fake_answer(c);
	fault_done(&why);
	model_drop(c);
}

static void fake_cancelled(struct cancel_hook *h, struct cancel *token)
{
	struct model_call *c = (struct model_call *)((char *)h -
						     offsetof(struct model_call,
							      hook));

	(void)token;
	loop_soon(c->model->loop, &c->task);
}

struct model_call *model_start(struct model *m, const struct model_request *q,
			       const struct model_events *e, void *arg)
{
	QUIET;
	struct model_call *c = calloc(1, sizeof(*c));

	(void)json_array_append_new(
		m->requests,
		json_pack("{s:o, s:o*, s:s*, s:O*}", "messages",
			  json_deep_copy(q->messages), "tools",
			  q->tools ? json_deep_copy(q->tools) : NULL, "choice",
			  q->tool_choice, "schema", q->output_schema));
	c->model = m;
	c->say = &m->script[m->at];
	if (!c->say->is_end)
		m->at++;
	c->events = *e;
	c->arg = arg;
	c->task.run = fake_tell;
	c->hook.fired = fake_cancelled;
	c->cancel = cancel_ref(q->cancel);
	if (c->say->hangs && !cancel_is_fired(q->cancel))
		cancel_hook(q->cancel, &c->hook);
	else
		loop_soon(m->loop, &c->task);
	return c;
}

/* The messages of the i-th request. */
static json_t *asked(struct model *m, size_t i)
{
	return json_object_get(json_array_get(m->requests, i), "messages");
}

/* --- tools: what each does is in its name --- */

struct toolset {
	struct loop *loop;
	const char *names; /* those that are there */
	json_t *made;      /* ["name arguments approval"] in the order made */
	const char *yes;   /* the approval id that was given */
	unsigned int running, most;
	json_t *detail; /* of run_code */
	const char *output;
	struct fake_call *stuck;
};

struct fake_call {
	struct toolset *set;
	char name[32];
	char *id, *arguments, *approval;
	bool must_ask;
	struct cancel *cancel;
	struct cancel_hook hook;
	struct task task;
	struct timer timer;
	void (*done)(void *arg, const struct tool_outcome *o);
	void *arg;
};

static struct toolset *fake_tools(struct loop *l, const char *names)
{
	struct toolset *s = calloc(1, sizeof(*s));

	s->loop = l;
	s->names = names;
	s->made = json_array();
	return s;
}

static void fake_free(struct fake_call *c)
{
	cancel_unhook(&c->hook);
	cancel_unref(c->cancel);
	timer_stop(&c->timer);
	free(c->id);
	free(c->arguments);
	free(c->approval);
	free(c);
}

void toolset_free(struct toolset *s)
{
	if (s->stuck)
		fake_free(s->stuck);
	json_decref(s->made);
	json_decref(s->detail);
	free(s);
}

static bool fake_has(const struct toolset *s, const char *name)
{
	const char *at = s->names;
	size_t len = strlen(name);

	while ((at = strstr(at, name))) {
		if ((at == s->names || at[-1] == ' ') &&
		    (at[len] == ' ' || at[len] == '\0'))
			return true;
		at += len;
	}
	return false;
}

struct tool *toolset_find(const struct toolset *s, const char *name)
{
	static struct tool t;

	return fake_has(s, name) ? &t : NULL;
}

json_t *toolset_list(const struct toolset *s)
{
	QUIET;
	json_t *list = json_array();
	char *copy = strdup(s->names);
	char *save = NULL;

	for (char *n = strtok_r(copy, " ", &save); n;
	     n = strtok_r(NULL, " ", &save))
		(void)json_array_append_new(list,
					    json_pack("{s:s, s:s, s:{s:s}}",
						      "name", n, "description",
						      n, "parameters", "type",
						      "object"));
	free(copy);
	return list;
}

json_t *toolset_list_for(const struct toolset *s, const char *agent)
{
	(void)agent;
	return toolset_list(s);
}

json_t *toolset_save(const struct toolset *s)
{
	(void)s;
	return NULL;
}

int toolset_load(struct toolset *s, const json_t *state, struct err *err)
{
	(void)s;
	(void)state;
	(void)err;
	return 0;
}

int toolset_start(struct toolset *s, struct err *err)
{
	(void)s;
	(void)err;
	return 0;
}

void toolset_stop(struct toolset *s)
{
	(void)s;
}

int toolset_reset(struct toolset *s, struct err *err)
{
	return toolset_start(s, err);
}

void toolset_pause(struct toolset *s, bool is_paused)
{
	(void)s;
	(void)is_paused;
}

unsigned int toolset_depth(const struct toolset *s)
{
	(void)s;
	return 0;
}

json_t *toolset_mark(const struct toolset *s)
{
	return toolset_save(s);
}

void toolset_rewind(struct toolset *s, const json_t *mark)
{
	(void)s;
	(void)mark;
}

static void fake_end(struct fake_call *c, bool is_error, const char *text)
{
	struct tool_outcome o = { .end = TOOL_RESULT };

	o.result.is_error = is_error;
	o.result.content = json_pack("[{s:s, s:s}]", "type", "text", "text",
				     text);
	if (strcmp(c->name, "run_code") == 0)
		o.result.detail = json_incref(c->set->detail);
	c->set->running--;
	c->done(c->arg, &o);
	json_decref(o.result.content);
	json_decref(o.result.detail);
	fake_free(c);
}

static void fake_suspend(struct fake_call *c)
{
	char id[64];
	struct tool_outcome o = { .end = TOOL_SUSPENDED };

	(void)snprintf(id, sizeof(id), "appr-%s", c->id);
	fake_quiet++;
	o.pending = json_pack("{s:s, s:s, s:s}", "id", id, "tool", c->name,
			      "arguments", c->arguments);
	fake_quiet--;
	c->set->running--;
	c->done(c->arg, &o);
	json_decref(o.pending);
	fake_free(c);
}

static bool fake_may(const struct fake_call *c)
{
	bool asks = c->must_ask || strncmp(c->name, "ask", 3) == 0;

	return !asks ||
	       (c->approval && c->set->yes && strstr(c->set->yes, c->approval));
}

static void fake_run(struct task *t)
{
	struct fake_call *c = (struct fake_call *)((char *)t -
						   offsetof(struct fake_call,
							    task));

	if (cancel_is_fired(c->cancel)) {
		fake_end(c, true, "cancelled");
		return;
	}
	if (!fake_may(c)) {
		fake_suspend(c);
		return;
	}
	fake_quiet++;
	(void)json_array_append_new(c->set->made, json_sprintf("%s %s", c->name,
							       c->arguments));
	fake_quiet--;
	if (!fake_has(c->set, c->name))
		fake_end(c, true, "no such tool");
	else if (strcmp(c->name, "fail") == 0)
		fake_end(c, true, "it failed");
	else if (strcmp(c->name, "hang") == 0)
		cancel_hook(c->cancel, &c->hook);
	else if (strcmp(c->name, "slow") == 0)
		(void)timer_set(c->set->loop, &c->timer, clock_us() + 20000);
	else if (strcmp(c->name, "stuck") == 0)
		c->set->stuck = c;
	else
		fake_end(c, false,
			 c->set->output ? c->set->output : c->arguments);
}

static void fake_stopped(struct cancel_hook *h, struct cancel *token)
{
	struct fake_call *c = (struct fake_call *)((char *)h -
						   offsetof(struct fake_call,
							    hook));

	(void)token;
	loop_soon(c->set->loop, &c->task);
}

static void fake_slow(struct timer *t)
{
	struct fake_call *c = (struct fake_call *)((char *)t -
						   offsetof(struct fake_call,
							    timer));

	fake_end(c, false, c->arguments);
}

void toolset_call(struct toolset *s, const struct tool_want *w,
		  void (*done)(void *arg, const struct tool_outcome *o),
		  void *arg)
{
	QUIET;
	struct fake_call *c = calloc(1, sizeof(*c));

	c->set = s;
	(void)snprintf(c->name, sizeof(c->name), "%s", w->name);
	c->id = strdup(w->id);
	c->arguments = strdup(w->arguments);
	c->approval = w->approval ? strdup(w->approval) : NULL;
	c->must_ask = w->must_ask;
	c->cancel = cancel_ref(w->cancel);
	c->hook.fired = fake_stopped;
	c->task.run = fake_run;
	c->timer.fire = fake_slow;
	c->done = done;
	c->arg = arg;
	s->running++;
	s->most = MAX(s->most, s->running);
	loop_soon(s->loop, &c->task);
}

/* --- a turn, and what is heard of it --- */

struct heard {
	json_t *events;
	json_t *chat, *pending;
	struct fault why;
	unsigned int ends;
	bool had_event_after;
};

static void hear_event(void *arg, json_t *event)
{
	QUIET;
	struct heard *h = arg;

	h->had_event_after |= h->ends > 0;
	(void)json_array_append(h->events, event);
}

static void hear_over(void *arg, json_t *chat, const struct fault *why,
		      json_t *pending)
{
	QUIET;
	struct heard *h = arg;

	h->ends++;
	h->chat = json_incref(chat);
	h->pending = json_incref(pending);
	if (why)
		fault_copy(&h->why, why);
}

static const struct turn_events hears = { hear_event, hear_over };

static bool is_heard(void *arg)
{
	return ((struct heard *)arg)->ends > 0;
}

static void heard_begin(struct heard *h)
{
	json_decref(h->events);
	json_decref(h->chat);
	json_decref(h->pending);
	fault_done(&h->why);
	*h = (struct heard){ .events = json_array() };
}

static void heard_done(struct heard *h)
{
	heard_begin(h);
	json_decref(h->events);
}

/* Asks and waits; takes over `messages`. */
static void ask_list(struct agent *a, json_t *messages, struct cancel *cancel,
		     struct heard *h)
{
	heard_begin(h);
	(void)turn_begin(a, messages,
			 &(struct turn_asker){ "team", "run", cancel, &hears,
					       h });
	(void)loop_run(a->loop, is_heard, h);
	json_decref(messages);
}

static void ask(struct agent *a, const char *text, struct heard *h)
{
	ask_list(a, json_pack("[o]", chat_text("user", text)), NULL, h);
}

static void resume(struct agent *a, json_t *pending, const char *answer,
		   struct heard *h)
{
	json_t *said = answer ? json_loads(answer, JSON_DECODE_ANY, NULL)
			      : NULL;

	heard_begin(h);
	(void)turn_resume(a, pending, said,
			  &(struct turn_asker){ "team", "run", NULL, &hears,
						h });
	(void)loop_run(a->loop, is_heard, h);
	json_decref(said);
}

/* The types of the events, in one line. */
static const char *types(const struct heard *h)
{
	static char line[1024];
	size_t i;
	json_t *e;

	line[0] = '\0';
	json_array_foreach(h->events, i, e)
	{
		if (i)
			strcat(line, " ");
		strncat(line, chat_type(e), 100);
	}
	return line;
}

static const char *text_of(const json_t *chat)
{
	static char *text;

	free(text);
	text = chat ? chat_to_text(chat) : NULL;
	return text;
}

static json_t *event_of(const struct heard *h, const char *type)
{
	size_t i;
	json_t *e;

	json_array_foreach(h->events, i,
			   e) if (strcmp(chat_type(e), type) == 0) return e;
	return NULL;
}

/* A text is a JSON document; single quotes stand for double ones. */
static json_t *doc(const char *text)
{
	char *copy = strdup(text);
	json_error_t why;
	json_t *v;

	for (char *p = copy; *p; p++)
		if (*p == '\'')
			*p = '"';
	v = json_loads(copy, JSON_DECODE_ANY, &why);
	if (!v)
		printf("# %s: %s\n", why.text, text);
	free(copy);
	return v;
}
