/* SPDX-License-Identifier: Apache-2.0 */

/* A team as its owner sees it; team-parts.h has how it works. */

#include "agent/team.h"

#include <string.h>

#include "agent/parts.h"
#include "agent/team-parts.h"
#include "base/util.h"

struct team *team_ref(struct team *t)
{
	t->refs++;
	return t;
}

/* What needs the runtime or the loop went with the owner already. */
void team_unref(struct team *t)
{
	if (--t->refs > 0)
		return;
	for (size_t i = 0; i < t->n_members; i++) {
		free(t->members[i]->id);
		free(t->members[i]);
	}
	free((void *)t->members);
	free(t->subscriptions);
	free(t->name);
	free(t->description);
	json_decref(t->thread);
	json_decref(t->rest);
	free(t);
}

void team_actor_free(struct actor *a)
{
	team_unref(((struct team_actor *)a)->team);
}

static int add_member(struct team *t, struct agent *a, struct err *err)
{
	struct member *m = calloc(1, sizeof(*m));

	if (!m)
		return err_set(err, ENOMEM, "out of memory");
	m->actor.ops = &participant_ops;
	m->team = t;
	m->agent = a;
	t->members[t->n_members++] = m;
	if (asprintf(&m->id, "%s.%s/%s", t->name, a->name, t->key) < 0) {
		m->id = NULL;
		return err_set(err, ENOMEM, "out of memory");
	}
	return 0;
}

/* The names are topics too: "<team>.group" is the manager's. */
static int check_agents(const struct team_options *o, struct err *err)
{
	if (o->n_agents == 0)
		return err_set(err, EINVAL, "a team needs a participant");
	for (size_t i = 0; i < o->n_agents; i++) {
		const char *name = o->agents[i]->name;

		if (strcmp(name, "group") == 0 || strcmp(name, "output") == 0)
			return err_set(err, EINVAL,
				       "'%s' is no name for a participant",
				       name);
		for (size_t j = 0; j < i; j++)
			if (strcmp(o->agents[j]->name, name) == 0)
				return err_set(err, EEXIST,
					       "two participants are named "
					       "'%s'",
					       name);
	}
	return 0;
}

static void make_key(struct team *t)
{
	char id[CHAT_ID];

	chat_id(id);
	(void)snprintf(t->key, sizeof(t->key), "%.8s", id);
	(void)snprintf(t->manager_id, sizeof(t->manager_id), "%s.group/%s",
		       t->name, t->key);
	(void)snprintf(t->output_topic, sizeof(t->output_topic), "%s.output/%s",
		       t->name, t->key);
}

static int set_up(struct team *t, const struct team_options *o, struct err *err)
{
	t->name = strdup(o->name ? o->name : "team");
	t->description = strdup(o->description ? o->description : "");
	t->thread = json_array();
	t->members = calloc(o->n_agents, sizeof(struct member *));
	if (!t->name || !t->description || !t->thread || !t->members)
		return err_set(err, ENOMEM, "out of memory");
	if (!agent_name_check(t->name))
		return err_set(err, EINVAL, "not a name of a team: '%.80s'",
			       t->name);
	make_key(t);
	for (size_t i = 0; i < o->n_agents; i++)
		if (add_member(t, o->agents[i], err) < 0)
			return -ENOMEM;
	if (team_settings(t, o->config, err) < 0)
		return err_wrap(err, "team '%s'", t->name);
	return t->kind->make(t, o->config, &t->own, err);
}

int team_new(const struct team_options *o, struct team **ret, struct err *err)
{
	struct team *t;
	int r = check_agents(o, err);

	if (r < 0)
		return r;
	t = calloc(1, sizeof(*t));
	if (!t)
		return err_set(err, ENOMEM, "out of memory");
	t->refs = 1;
	t->runtime = o->runtime;
	t->loop = runtime_loop(o->runtime);
	t->kind = o->kind;
	t->model = o->model;
	t->step.run = manager_step;
	r = set_up(t, o, err);
	if (r == 0)
		r = team_join(t, err);
	if (r < 0) {
		/* The caller's again. */
		for (size_t i = 0; i < t->n_members; i++)
			t->members[i]->agent = NULL;
		t->model = NULL;
		team_free(t);
		return r;
	}
	t->stop = o->stop;
	*ret = t;
	return 0;
}

void team_free(struct team *t)
{
	if (!t)
		return;
	t->is_dead = true;
	task_drop(&t->step);
	for (size_t i = 0; i < t->n_members; i++)
		participant_drop(t->members[i]);
	run_clear(t);
	team_leave(t);
	for (size_t i = 0; i < t->n_members; i++)
		agent_free(take_ptr(t->members[i]->agent));
	if (t->own && t->kind->free)
		t->kind->free(t->own);
	termination_free(t->stop);
	if (t->model)
		model_unref(t->model);
	json_decref(t->about);
	team_unref(t);
}

struct member *team_find(struct team *t, const char *name)
{
	for (size_t i = 0; i < t->n_members; i++)
		if (strcmp(t->members[i]->agent->name, name) == 0)
			return t->members[i];
	return NULL;
}

struct agent *team_agent(struct team *t, const char *name)
{
	struct member *m = team_find(t, name);

	return m ? m->agent : NULL;
}

size_t team_size(const struct team *t)
{
	return t->n_members;
}

bool team_is_open(const struct team *t)
{
	return t->run.is_open;
}

const char *team_name(const struct team *t)
{
	return t->name;
}

const char *team_description(const struct team *t)
{
	return t->description;
}

const char *team_member(const struct team *t, size_t i)
{
	return i < t->n_members ? t->members[i]->agent->name : NULL;
}

static int check_idle(const struct team *t, struct err *err)
{
	return t->state == TEAM_IDLE
		       ? 0
		       : err_set(err, EBUSY, "the team '%s' runs already",
				 t->name);
}

static int check_task(const json_t *task, struct err *err)
{
	size_t i;
	json_t *m;

	if (json_array_size(task) == 0)
		return err_set(err, EINVAL,
			       "a task is a list of messages, one at least");
	json_array_foreach((json_t *)task, i, m)
	{
		if (chat_check(m, err) < 0)
			return err_wrap(err, "task[%zu]", i);
		if (!chat_is_message(m))
			return err_set(err, EINVAL,
				       "task[%zu]: an event is no message", i);
	}
	return 0;
}

static void was_started(void *arg, struct message *reply,
			const struct fault *why)
{
	struct team *t = arg;

	(void)reply;
	if (why && !t->is_dead)
		manager_refused(t, why);
	team_unref(t);
}

static int send_start(struct team *t, json_t *task, struct err *err)
{
	const struct send_options o = { .cancel = t->run.cancel,
					.traceparent = run_trace(t) };
	json_t *list = task ? json_copy(task) : json_array();
	json_t *data = json_pack("{s:s, s:o}", "run", t->run.id, "messages",
				 list);
	struct message *m = data ? message_new("cordon.team.Start", data)
				 : NULL;

	if (!m) {
		run_clear(t);
		return err_set(err, ENOMEM, "out of memory");
	}
	t->state = TEAM_STARTING;
	(void)team_ref(t);
	runtime_send(t->runtime, m, t->manager_id, &o, was_started, t);
	message_unref(m);
	return 0;
}

/* A new task gives up what was suspended. */
static void give_up(struct team *t)
{
	struct err err = { 0 };

	if (!t->run.is_open)
		return;
	if (t->before && t->kind->load)
		(void)t->kind->load(t->own, t->before, &err);
	if (t->stop)
		termination_reset(t->stop);
	run_clear(t);
}

int team_run(struct team *t, json_t *task, struct cancel *cancel,
	     const struct team_events *e, void *arg, struct err *err)
{
	int r = check_idle(t, err);

	if (r == 0 && task)
		r = check_task(task, err);
	if (r < 0)
		return r;
	give_up(t);
	r = run_begin(t, cancel, e, arg, err);
	return r < 0 ? r : send_start(t, task, err);
}

int team_resume(struct team *t, json_t *answers, struct cancel *cancel,
		const struct team_events *e, void *arg, struct err *err)
{
	int r = check_idle(t, err);

	if (r < 0)
		return r;
	if (!t->run.is_open)
		return team_run(t, NULL, cancel, e, arg, err);
	r = run_begin(t, cancel, e, arg, err);
	if (r == 0)
		manager_resume(t, answers);
	return r;
}

void team_pause(struct team *t)
{
	t->is_paused = true;
	for (size_t i = 0; i < t->n_members; i++)
		agent_pause(t->members[i]->agent);
}

void team_unpause(struct team *t)
{
	t->is_paused = false;
	for (size_t i = 0; i < t->n_members; i++)
		agent_unpause(t->members[i]->agent);
	loop_soon(t->loop, &t->step);
}

int team_reset(struct team *t, struct err *err)
{
	int r = check_idle(t, err);

	if (r < 0)
		return r;
	run_clear(t);
	(void)json_array_clear(t->thread);
	for (size_t i = 0; i < t->n_members; i++) {
		agent_reset(t->members[i]->agent);
		t->members[i]->heard = 0;
	}
	if (t->kind->reset)
		t->kind->reset(t->own);
	if (t->stop)
		termination_reset(t->stop);
	t->checkpoint[0] = '\0';
	json_decref(take_ptr(t->rest));
	return 0;
}
