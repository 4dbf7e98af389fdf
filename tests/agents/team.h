/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* For tests of teams: agents and a model that do what they are told. */

#include <stddef.h>

#include "model/provider.h"
#include "scene.h"

/*
 * What a fake agent does in its n-th turn (the last line again and again):
 *	"text"		says it
 *	"!text"		fails with handler_failed, after an event
 *	"?"		suspends for input, and says the answer later
 *	"$tool"		suspends for the approval of that tool
 *	"~"		never ends by itself
 *	"=n text"	says it after n events, one each time round the loop,
 *			each with 10 prompt and 5 completion tokens for 10 cents
 *	"#n text"	asks for n tool calls, then says it
 *	"%n m text"	says it after n events at once of m KiB each
 */
struct fake {
	struct agent agent;
	const char *const *script;
	size_t n_script;
	size_t turns;    /* begun, of all runs */
	json_t *history; /* texts heard and said */
	size_t mark;

	struct turn *turn;
	struct task task;
	struct cancel_hook hook;
	int events;
	const char *text;
	int *alive;
	bool is_deaf;  /* to cancellation */
	int64_t delay; /* us before each step */
	struct timer timer;
};

static struct fake *fake_of(struct agent *a)
{
	return (struct fake *)a;
}

static void fake_end(struct fake *f)
{
	cancel_unhook(&f->hook);
	task_drop(&f->task);
	timer_stop(&f->timer);
	f->turn = NULL;
}

static void fake_rewind(struct fake *f)
{
	while (json_array_size(f->history) > f->mark)
		(void)json_array_remove(f->history,
					json_array_size(f->history) - 1);
}

static void fake_say(struct fake *f, const char *text)
{
	struct turn *t = f->turn;

	(void)json_array_append_new(f->history, json_string(text));
	fake_end(f);
	turn_done(t, chat_text(f->agent.name, text));
}

static void fake_fail(struct fake *f, const struct fault *why)
{
	struct turn *t = f->turn;

	fake_rewind(f);
	fake_end(f);
	turn_fail(t, why);
}

static void fake_event(struct fake *f, int64_t prompt, int64_t completion)
{
	struct model_usage u = { .prompt = prompt,
				 .completion = completion,
				 .cost = (double)prompt / 100 };
	json_t *e = chat_new("ThoughtEvent", f->agent.name,
			     json_pack("{s:s}", "content", "hm"));

	chat_set_usage(e, &u);
	turn_event(f->turn, e);
}

static void fake_soon(struct fake *f)
{
	if (f->delay)
		(void)timer_set(f->agent.loop, &f->timer,
				clock_us() + f->delay);
	else
		loop_soon(f->agent.loop, &f->task);
}

static void fake_break(struct fake *f, const char *text)
{
	struct fault why = { 0 };

	fake_event(f, 0, 0);
	fault_set(&why, FAULT_HANDLER, "%s", text);
	why.cause = json_pack("{s:s, s:s}", "code", "unavailable", "message",
			      "the reason behind");
	fake_fail(f, &why);
	fault_done(&why);
}

static void fake_wait(struct fake *f, const char *tool)
{
	struct turn *t = f->turn;
	json_t *heard = json_array();

	for (size_t i = f->mark; i < json_array_size(f->history); i++)
		(void)json_array_append(heard, json_array_get(f->history, i));
	fake_event(f, 1, 1);
	fake_rewind(f);
	fake_end(f);
	turn_suspend(t, json_pack("{s:s, s:s, s:s, s:{s:o}}", "kind",
				  tool ? "approval" : "input", "id", "ask-1",
				  "tool", tool ? tool : "", "state", "heard",
				  heard));
}

static void fake_calls(struct fake *f, int n)
{
	json_t *calls = json_array();

	for (int i = 0; i < n; i++)
		(void)json_array_append_new(calls,
					    json_pack("{s:s, s:s, s:s}", "id",
						      "c", "name", "f",
						      "arguments", "{}"));
	turn_event(f->turn, chat_new("ToolCallRequestEvent", f->agent.name,
				     json_pack("{s:o}", "content", calls)));
}

static const char *fake_burst(struct fake *f, const char *s)
{
	char *end = NULL;
	long n = strtol(s, &end, 10);
	size_t size = (size_t)strtol(end, &end, 10) * 1024;
	char *text = malloc(size + 1);

	memset(text, 'x', size);
	text[size] = '\0';
	while (n-- > 0)
		turn_event(f->turn,
			   chat_new("ThoughtEvent", f->agent.name,
				    json_pack("{s:s}", "content", text)));
	free(text);
	return end + 1;
}

static void fake_step(struct fake *f)
{
	const char *s = f->script[MIN(f->turns, f->n_script) - 1];

	if (cancel_is_fired(turn_cancel(f->turn)))
		return; /* its hook sees to it */
	if (*s == '~')
		return;
	if (*s == '!')
		fake_break(f, s + 1);
	else if (*s == '%')
		fake_say(f, fake_burst(f, s + 1));
	else if (*s == '?' || *s == '$')
		fake_wait(f, *s == '$' ? s + 1 : NULL);
	else if (*s == '#' && f->events++ == 0)
		fake_calls(f, s[1] - '0'), fake_soon(f);
	else if (*s == '=' && f->events++ < s[1] - '0')
		fake_event(f, 10, 5), fake_soon(f);
	else
		fake_say(f, *s == '=' || *s == '#' ? s + 3 : s);
}

static void fake_task(struct task *t)
{
	fake_step((struct fake *)((char *)t - offsetof(struct fake, task)));
}

static void fake_timer(struct timer *t)
{
	fake_step((struct fake *)((char *)t - offsetof(struct fake, timer)));
}

static void fake_cancelled(struct task *t)
{
	struct fake *f = (struct fake *)((char *)t -
					 offsetof(struct fake, task));
	struct fault why = { 0 };

	f->task.run = fake_task;
	cancel_fault(turn_cancel(f->turn), &why);
	fake_fail(f, &why);
	fault_done(&why);
}

static void fake_fired(struct cancel_hook *h, struct cancel *c)
{
	struct fake *f = (struct fake *)((char *)h -
					 offsetof(struct fake, hook));

	(void)c;
	if (f->is_deaf)
		return;
	task_drop(&f->task);
	f->task.run = fake_cancelled;
	loop_soon(f->agent.loop, &f->task);
}

static void fake_take(struct fake *f, struct turn *t)
{
	f->turn = t;
	f->mark = json_array_size(f->history);
	f->events = 0;
	f->task.run = fake_task;
	f->timer.fire = fake_timer;
	f->hook.fired = fake_fired;
}

static void fake_begin(struct agent *a, struct turn *t)
{
	struct fake *f = fake_of(a);
	size_t i;
	json_t *m;

	fake_take(f, t);
	f->turns++;
	json_array_foreach((json_t *)turn_messages(t), i, m)
	{
		char *text = chat_to_text(m);

		(void)json_array_append_new(f->history, json_string(text));
		free(text);
	}
	fake_soon(f);
	cancel_hook(turn_cancel(t), &f->hook);
}

static void fake_resume(struct agent *a, struct turn *t, const json_t *what,
			const json_t *answer)
{
	struct fake *f = fake_of(a);
	json_t *heard = json_object_get(json_object_get(what, "state"),
					"heard");
	const char *text = json_string_value(answer);

	fake_take(f, t);
	(void)json_array_extend(f->history, heard);
	fake_say(f, text ? text : "nobody answered");
}

static void fake_abandon(struct agent *a, struct turn *t)
{
	struct fake *f = fake_of(a);

	(void)t;
	fake_rewind(f);
	fake_end(f);
}

static void fake_reset(struct agent *a)
{
	struct fake *f = fake_of(a);

	(void)json_array_clear(f->history);
	f->turns = 0;
}

/* Memory is never short for a fake: it is not what is tested. */
static int fake_rich __attribute__((unused));

static json_t *fake_save(struct agent *a)
{
	struct fake *f = fake_of(a);
	json_t *h;
	json_t *o;
	size_t n = f->turn ? f->mark : json_array_size(f->history);

	fake_rich++;
	h = json_array();
	for (size_t i = 0; i < n; i++)
		(void)json_array_append(h, json_array_get(f->history, i));
	o = json_pack("{s:o, s:I}", "history", h, "turns",
		      (json_int_t)(f->turns - (f->turn ? 1 : 0)));
	fake_rich--;
	return o;
}

static int fake_load(struct agent *a, const json_t *state, struct err *err)
{
	struct fake *f = fake_of(a);

	if (!json_is_array(json_object_get(state, "history")))
		return err_set(err, EINVAL, "no history");
	json_decref(f->history);
	f->history = json_copy(json_object_get(state, "history"));
	f->turns = (size_t)json_integer_value(json_object_get(state, "turns"));
	return 0;
}

static void fake_free(struct agent *a)
{
	struct fake *f = fake_of(a);

	if (f->turn)
		fake_end(f);
	if (f->alive)
		(*f->alive)--;
	json_decref(f->history);
	free(a->name);
	free(a->description);
	free(f);
}

static const struct agent_ops fake_ops = {
	.begin = fake_begin,
	.resume = fake_resume,
	.abandon = fake_abandon,
	.reset = fake_reset,
	.save = fake_save,
	.load = fake_load,
	.free = fake_free,
};

static inline struct agent *fake_new(struct loop *l, const char *name,
				     const char *const *script, size_t n)
{
	struct fake *f = calloc(1, sizeof(*f));

	f->agent.ops = &fake_ops;
	f->agent.loop = l;
	f->agent.name = strdup(name);
	f->agent.description = strdup("one of the team");
	f->script = script;
	f->n_script = n;
	f->history = json_array();
	return &f->agent;
}

#define FAKE(l, name, ...)                                                     \
	({                                                                     \
		static const char *const script_[] = { __VA_ARGS__ };          \
		fake_new(l, name, script_, ARRAY_SIZE(script_));               \
	})

/* --- a model that answers from a list; "~" never answers --- */

struct fake_model {
	struct model model;
	const char *const *answers;
	size_t n, calls;
	int stopped;
	char last[8192]; /* what it was asked: all of the dialogue */
};

static inline int fake_model_start(struct model_call *c,
				   const struct model_request *q)
{
	struct fake_model *m = (struct fake_model *)c->model;
	const char *text = m->answers[MIN(m->calls, m->n - 1)];
	size_t i;
	json_t *o;

	m->calls++;
	m->last[0] = '\0';
	json_array_foreach(q->messages, i, o)
	{
		size_t len = strlen(m->last);

		(void)snprintf(m->last + len, sizeof(m->last) - len,
			       "[%s] %s\n",
			       json_string_value(json_object_get(o, "role")),
			       json_string_value(
				       json_object_get(o, "content")));
	}
	if (*text == '~')
		return 0;
	c->result.content = strdup(text);
	c->result.usage.prompt = 7;
	c->result.usage.completion = 3;
	call_end(c);
	return 0;
}

static inline void fake_model_stop(struct model_call *c)
{
	((struct fake_model *)c->model)->stopped++;
}

static inline void fake_model_done(struct model_call *c)
{
	(void)c;
}

static inline void fake_model_free(struct model *m)
{
	(void)m;
}

static inline struct fake_model *fake_model_new(struct loop *l,
						const char *const *answers,
						size_t n)
{
	static const struct model_ops ops = {
		.model_size = sizeof(struct fake_model),
		.call_size = sizeof(struct model_call),
		.start = fake_model_start,
		.stop = fake_model_stop,
		.done = fake_model_done,
		.free = fake_model_free,
	};
	struct fake_model *m = (struct fake_model *)provider_new(&ops, l,
								 "fake");

	m->answers = answers;
	m->n = n;
	return m;
}

#define FAKE_MODEL(l, ...)                                                     \
	({                                                                     \
		static const char *const answers_[] = { __VA_ARGS__ };         \
		fake_model_new(l, answers_, ARRAY_SIZE(answers_));             \
	})
