/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A team as a tool: each call is a run of it. The result is the last message,
 * and why the team stopped; where it did not end well, that is an error.
 */

#include <string.h>

#include "agent/chat.h"
#include "agent/inner.h"
#include "agent/parts.h"
#include "agent/team-parts.h"

struct team_tool {
	struct inner in;
	struct team *team;
	struct inner_call *call; /* that goes on; NULL: nobody listens */
};

static struct team_tool *of(struct inner *in)
{
	return (struct team_tool *)in;
}

static void on_event(void *arg, json_t *event)
{
	const struct team_tool *t = arg;

	if (t->call)
		inner_tell(t->call, event);
}

/* Somebody's last word; the task is not an answer to itself. */
static json_t *last_message(const json_t *result, const char *caller)
{
	json_t *list = json_object_get(result, "messages");

	for (size_t i = json_array_size(list); i-- > 0;) {
		json_t *m = json_array_get(list, i);
		const char *source = chat_source(m);

		if (chat_is_message(m) &&
		    !(source && caller && strcmp(source, caller) == 0))
			return m;
	}
	return NULL;
}

/* The message's parts, then how it ended. */
static json_t *content(const struct team_tool *t, const json_t *result)
{
	json_t *last = last_message(result, t->call->call->agent);
	json_t *parts = last ? chat_to_parts(last) : json_array();
	json_t *end = json_sprintf("[The team '%s' %s: %s]", t->in.name,
				   setting_text(result, "status", "ended"),
				   setting_text(result, "stop_reason", ""));
	json_t *part = end ? json_pack("{s:s, s:o}", "type", "text", "text",
				       end)
			   : NULL;

	if (json_array_append_new(parts, part) < 0) {
		json_decref(parts);
		return NULL;
	}
	return parts;
}

static void on_over(void *arg, json_t *result)
{
	struct team_tool *t = arg;
	struct inner_call *c = t->call;
	const char *status = setting_text(result, "status", "");
	json_t *pending = json_array_get(json_object_get(result, "pending"), 0);
	json_t *parts;

	if (!c)
		return;
	if (strcmp(status, "suspended") == 0 && pending) {
		t->call = NULL;
		inner_suspend(c, pending);
		return;
	}
	parts = content(t, result);
	t->call = NULL;
	inner_done(c, strcmp(status, "completed") != 0, parts);
}

static const struct team_events events = { .event = on_event, .over = on_over };

/* What waits is in the team's own state; the answer goes to whose it is. */
static int go_on(struct team_tool *t, const struct tool_call *call,
		 struct err *err)
{
	const char *id = setting_text(call->suspended, "id", "");
	json_t *answers = json_object();
	int r;

	if (!team_is_open(t->team))
		r = err_set(err, EINVAL,
			    "what was suspended is no run of this team");
	else if (!answers ||
		 (call->reply && json_object_set(answers, id, call->reply) < 0))
		r = err_set(err, ENOMEM, "out of memory");
	else
		r = team_resume(t->team, answers, call->cancel, &events, t,
				err);
	json_decref(answers);
	return r;
}

static int begin(struct inner *in, struct inner_call *c, struct err *err)
{
	struct team_tool *t = of(in);
	const char *caller = c->call->agent;
	json_t *task;
	int r;

	t->call = c;
	if (c->call->suspended) {
		r = go_on(t, c->call, err);
	} else {
		task = json_pack("[o]", chat_text(caller ? caller : "caller",
						  c->task));
		r = task ? team_run(t->team, task, c->call->cancel, &events, t,
				    err)
			 : err_set(err, ENOMEM, "out of memory");
		json_decref(task);
	}
	if (r < 0)
		t->call = NULL;
	return r;
}

static void drop(struct inner *in)
{
	of(in)->call = NULL;
}

static void reset(struct inner *in)
{
	struct err err = { 0 };

	(void)team_reset(of(in)->team, &err);
}

static void set_paused(struct inner *in, bool is_paused)
{
	if (is_paused)
		team_pause(of(in)->team);
	else
		team_unpause(of(in)->team);
}

static json_t *save(struct inner *in)
{
	return team_save(of(in)->team);
}

static int load(struct inner *in, const json_t *state, struct err *err)
{
	return team_load(of(in)->team, state, err);
}

static void free_team(struct inner *in)
{
	team_free(of(in)->team);
	free(in);
}

static const struct inner_ops ops = { .begin = begin,
				      .drop = drop,
				      .reset = reset,
				      .pause = set_paused,
				      .save = save,
				      .load = load,
				      .free = free_team };

static unsigned int depth_of(const struct team *t)
{
	unsigned int most = 0;

	for (size_t i = 0; i < t->n_members; i++)
		most = MAX(most, t->members[i]->agent->depth);
	return most;
}

int tool_team(struct team *inner, struct tool **ret, struct err *err)
{
	_cleanup_free_ struct team_tool *t = calloc(1, sizeof(*t));

	if (!t)
		return err_set(err, ENOMEM, "out of memory");
	t->in.what = "team";
	t->in.name = team_name(inner);
	t->in.loop = inner->loop;
	if (inner_init(&t->in, &ops, team_description(inner), depth_of(inner),
		       err) < 0)
		return -err->code;
	t->team = inner;
	*ret = &take_ptr(t)->in.tool;
	return 0;
}
