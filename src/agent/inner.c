/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/inner.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "agent/chat.h"
#include "agent/parts.h"

#define MAX_WAITING 128 /* calls of one answer */

static const char schema_text[] =
	"{\"type\":\"object\",\"properties\":{\"task\":{\"type\":\"string\","
	"\"minLength\":1,\"description\":\"what is to be done, with all that "
	"must be known for it\"}},\"required\":[\"task\"],"
	"\"additionalProperties\":false}";

/* --- one after the other --- */

static void step(struct task *t)
{
	struct inner *in = (struct inner *)((char *)t -
					    offsetof(struct inner, step));
	struct inner_call *c = in->calls;
	struct err err = { 0 };

	if (!c || in->is_begun)
		return;
	cancel_unhook(&c->hook);
	in->is_begun = true;
	if (in->ops->begin(in, c, &err) < 0)
		inner_fail(c, "The %s '%s' cannot begin: %s", in->what,
			   in->name, err.text);
}

static void take_rewind(struct inner *in)
{
	json_t *state = take_ptr(in->rewind);
	struct err err = { 0 };

	if (state)
		(void)in->ops->load(in, state, &err);
	json_decref(state);
}

static void leave(struct inner *in, struct inner_call *c)
{
	struct inner_call **at = &in->calls;

	while (*at && *at != c)
		at = &(*at)->next;
	if (*at)
		*at = c->next;
	in->n_calls--;
	cancel_unhook(&c->hook);
	free(c);
}

/* The one that went on is over; the tool's caller may free the tool soon. */
static struct tool_call *end(struct inner_call *c)
{
	struct inner *in = c->inner;
	struct tool_call *call = c->call;

	in->is_begun = false;
	leave(in, c);
	take_rewind(in);
	if (in->calls)
		loop_soon(in->loop, &in->step);
	return call;
}

/* Only those that wait hear it here; the other's turn has the same token. */
static void on_cancel(struct cancel_hook *h, struct cancel *token)
{
	struct inner_call *c = (struct inner_call *)((char *)h -
						     offsetof(struct inner_call,
							      hook));
	struct tool_call *call = c->call;
	const char *why = cancel_reason(token);

	leave(c->inner, c);
	tool_done_text(call, true, "Tool call was cancelled: %s",
		       why ? why : "no reason was given");
}

static void call(struct tool *t, struct tool_call *tc)
{
	struct inner *in = (struct inner *)t;
	struct inner_call **at = &in->calls;
	struct inner_call *c = in->n_calls < MAX_WAITING ? calloc(1, sizeof(*c))
							 : NULL;

	if (!c) {
		tool_done_text(tc, true,
			       "The %s '%s' has more calls than can wait",
			       in->what, in->name);
		return;
	}
	c->inner = in;
	c->call = tc;
	c->task = json_string_value(json_object_get(tc->args, "task"));
	c->hook.fired = on_cancel;
	while (*at)
		at = &(*at)->next;
	*at = c;
	in->n_calls++;
	cancel_hook(tc->cancel, &c->hook);
	loop_soon(in->loop, &in->step);
}

/* --- what comes of it --- */

/* Chunks become messages, and who calls asks for an approval by itself. */
static bool is_told_otherwise(const char *type)
{
	return type && (strcmp(type, "ModelClientStreamingChunkEvent") == 0 ||
			strcmp(type, "ApprovalRequestedEvent") == 0);
}

/* What was used stands outside, where budgets and conditions look for it. */
void inner_tell(struct inner_call *c, json_t *event)
{
	const char *type = chat_type(event);
	const char *caller = c->call->agent;
	json_t *usage = json_object_get(event, "models_usage");
	json_t *o;

	if (is_told_otherwise(type))
		return;
	o = chat_new("InnerEvent", caller && *caller ? caller : c->inner->name,
		     json_pack("{s:s, s:O, s:O?}", "call_id", c->call->id,
			       "content", event, "models_usage", usage));
	tool_event(c->call, o);
}

void inner_done(struct inner_call *c, bool is_error, json_t *content)
{
	struct tool_result r = { .content = content, .is_error = is_error };
	struct tool_call *call = end(c);

	if (content)
		tool_done(call, &r);
	else
		tool_done_text(call, true, "out of memory");
}

void inner_fail(struct inner_call *c, const char *fmt, ...)
{
	_cleanup_free_ char *text = NULL;
	struct tool_call *call = end(c);
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	tool_done_text(call, true, "%s", text ? text : "out of memory");
}

/*
 * The record is what was asked there, so that it is shown and answered as
 * such; with it goes all that is needed to go on.
 */
void inner_suspend(struct inner_call *c, json_t *what)
{
	json_t *approval = json_object_get(what, "approval");
	json_t *o = json_copy(json_is_object(approval) ? approval : what);

	(void)json_object_del(o, "state");
	if (json_object_set_new(o, "kind",
				json_string(setting_text(what, "kind",
							 "approval"))) < 0 ||
	    json_object_set_new(o, "id",
				json_string(setting_text(what, "id", ""))) <
		    0 ||
	    json_object_set(o, "inner", what) < 0) {
		json_decref(o);
		o = NULL;
	}
	tool_suspend(end(c), o);
}

/* --- the tool --- */

static void reset(struct tool *t)
{
	struct inner *in = (struct inner *)t;

	in->ops->reset(in);
}

static void set_paused(struct tool *t, bool is_paused)
{
	struct inner *in = (struct inner *)t;

	in->ops->pause(in, is_paused);
}

static json_t *save(struct tool *t)
{
	struct inner *in = (struct inner *)t;

	return in->ops->save(in);
}

/* While a call goes on its conversation is its own; it is taken after that. */
static int load(struct tool *t, const json_t *state, struct err *err)
{
	struct inner *in = (struct inner *)t;

	if (!in->is_begun)
		return in->ops->load(in, state, err);
	json_decref(in->rewind);
	in->rewind = json_incref((json_t *)state);
	return 0;
}

static void free_tool(struct tool *t)
{
	struct inner *in = (struct inner *)t;

	if (in->is_begun)
		in->ops->drop(in);
	while (in->calls)
		leave(in, in->calls);
	task_drop(&in->step);
	json_decref(in->rewind);
	in->ops->free(in);
}

static const struct tool_ops ops = { .call = call,
				     .reset = reset,
				     .pause = set_paused,
				     .save = save,
				     .load = load,
				     .free = free_tool };

static int set_up(struct inner *in, const char *description, struct err *err)
{
	struct tool *t = &in->tool;
	json_t *schema = json_loads(schema_text, 0, NULL);
	char *text = NULL;

	if (description && *description)
		text = strdup(description);
	else if (asprintf(&text,
			  "Gives a task to the %s '%s'; its answer is "
			  "the result.",
			  in->what, in->name) < 0)
		text = NULL;
	t->ops = &ops;
	(void)snprintf(t->name, sizeof(t->name), "%s", in->name);
	t->description = text;
	t->schema = schema;
	if (text && schema)
		return 0;
	free(text);
	json_decref(schema);
	return err_set(err, ENOMEM, "out of memory");
}

int inner_init(struct inner *in, const struct inner_ops *inner_ops,
	       const char *description, unsigned int depth, struct err *err)
{
	if (depth >= AGENT_DEPTH_MAX)
		return err_set(err, E2BIG,
			       "the %s '%s' would be more than %d agents deep",
			       in->what, in->name, AGENT_DEPTH_MAX);
	in->ops = inner_ops;
	in->step.run = step;
	if (set_up(in, description, err) < 0)
		return -err->code;
	/*
	 * Of itself it does nothing outside; each of its own calls is judged,
	 * asked about and recorded under its own name.
	 */
	in->tool.is_read_only = true;
	in->tool.has_history = true;
	in->tool.depth = depth + 1;
	return 0;
}
