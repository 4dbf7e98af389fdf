/* SPDX-License-Identifier: Apache-2.0 */

/* An agent as a tool: each call is a turn of it. */

#include <string.h>

#include "agent/chat.h"
#include "agent/inner.h"
#include "agent/parts.h"

struct agent_tool {
	struct inner in;
	struct agent *agent;
	struct turn *turn;
};

static struct agent_tool *of(struct inner *in)
{
	return (struct agent_tool *)in;
}

static void on_event(void *arg, json_t *event)
{
	inner_tell(arg, event);
}

/* There is nobody here that it could hand over to. */
static void hand_over(struct inner_call *c, const json_t *chat)
{
	inner_fail(c,
		   "The agent '%s' handed the task to '%s', which is not "
		   "there for a tool",
		   c->inner->name, setting_text(chat, "target", "?"));
}

static void fail(struct inner_call *c, const struct fault *why)
{
	inner_fail(c, "The agent '%s' has failed: %s: %s", c->inner->name,
		   fault_name(why->code), why->message ? why->message : "");
}

static void on_over(void *arg, json_t *chat, const struct fault *why,
		    json_t *pending)
{
	struct inner_call *c = arg;
	const char *type = chat_type(chat);

	of(c->inner)->turn = NULL;
	if (chat)
		inner_tell(c, chat);
	if (why)
		fail(c, why);
	else if (pending)
		inner_suspend(c, pending);
	else if (type && strcmp(type, "HandoffMessage") == 0)
		hand_over(c, chat);
	else
		inner_done(c, false, chat_to_parts(chat));
}

static const struct turn_events events = { .event = on_event, .over = on_over };

static int begin(struct inner *in, struct inner_call *c, struct err *err)
{
	struct agent_tool *t = of(in);
	struct tool_call *call = c->call;
	const struct turn_asker who = { .team = call->team,
					.run = call->run,
					.cancel = call->cancel,
					.events = &events,
					.arg = c };
	json_t *task;

	if (call->suspended) {
		t->turn = turn_resume(t->agent, call->suspended, call->reply,
				      &who);
	} else {
		task = json_pack("[o]",
				 chat_text(call->agent ? call->agent : "caller",
					   c->task));
		t->turn = task ? turn_begin(t->agent, task, &who) : NULL;
		json_decref(task);
	}
	if (!t->turn)
		return err_set(err, ENOMEM, "out of memory");
	turn_set_trace(t->turn, call->traceparent);
	return 0;
}

static void drop(struct inner *in)
{
	turn_drop(take_ptr(of(in)->turn));
}

static void reset(struct inner *in)
{
	agent_reset(of(in)->agent);
}

static void set_paused(struct inner *in, bool is_paused)
{
	if (is_paused)
		agent_pause(of(in)->agent);
	else
		agent_unpause(of(in)->agent);
}

static json_t *save(struct inner *in)
{
	return agent_save(of(in)->agent);
}

static int load(struct inner *in, const json_t *state, struct err *err)
{
	return agent_load(of(in)->agent, state, err);
}

static void free_agent(struct inner *in)
{
	agent_free(of(in)->agent);
	free(in);
}

static const struct inner_ops ops = { .begin = begin,
				      .drop = drop,
				      .reset = reset,
				      .pause = set_paused,
				      .save = save,
				      .load = load,
				      .free = free_agent };

int tool_agent(struct agent *inner, struct tool **ret, struct err *err)
{
	_cleanup_free_ struct agent_tool *t = calloc(1, sizeof(*t));

	if (!t)
		return err_set(err, ENOMEM, "out of memory");
	t->in.what = "agent";
	t->in.name = inner->name;
	t->in.loop = inner->loop;
	if (inner_init(&t->in, &ops, inner->description, inner->depth, err) < 0)
		return -err->code;
	t->agent = inner;
	*ret = &take_ptr(t)->in.tool;
	return 0;
}
