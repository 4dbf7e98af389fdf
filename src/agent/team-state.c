/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A team's state:
 *
 *	{"type":"team","version":1,"kind","thread":[chat],"own":...,
 *	 "before":...,"termination":...,
 *	 "members":{name:{"heard","agent","pending"}},
 *	 "run":null or {"id","turns","elapsed_us","used","messages","fresh"}}
 *
 * `run` is there while one is under way; `before` and `pending` while it
 * waits for people. Messages are shared, not copied: nobody changes one. What
 * a loaded state has beside that is written again (rest.c).
 */

#include <string.h>

#include "agent/parts.h"
#include "agent/team-parts.h"
#include "base/clock.h"
#include "base/util.h"

#define VERSION 1

/* --- saving --- */

/* jansson copies what it finds memory for, and says nothing. */
json_t *team_copy(const json_t *v)
{
	json_t *copy = json_copy((json_t *)v);

	if (json_array_size(copy) == json_array_size(v) &&
	    json_object_size(copy) == json_object_size(v))
		return copy;
	json_decref(copy);
	return NULL;
}

static json_t *save_agent(const struct member *m)
{
	if (m->was)
		return json_incref(m->was);
	return m->agent->ops->save ? agent_save(m->agent) : json_null();
}

static bool is_waiting(const struct team *t)
{
	for (size_t i = 0; i < t->n_members; i++)
		if (t->members[i]->pending)
			return true;
	return false;
}

static json_t *save_members(const struct team *t)
{
	json_t *o = json_object();

	for (size_t i = 0; i < t->n_members; i++) {
		struct member *m = t->members[i];
		json_t *one = json_pack("{s:I, s:o, s:O?}", "heard",
					(json_int_t)m->heard, "agent",
					save_agent(m), "pending", m->pending);

		if (json_object_set_new(o, m->agent->name, one) < 0) {
			json_decref(o);
			return NULL;
		}
	}
	return o;
}

static json_t *save_run(const struct team *t)
{
	const struct run *r = &t->run;
	int64_t elapsed = r->cancel && t->state != TEAM_ENDING
				  ? clock_us() - r->started
				  : r->elapsed;

	if (!r->is_open)
		return json_null();
	return json_pack("{s:s, s:I, s:I, s:o, s:o, s:o}", "id", r->id, "turns",
			 (json_int_t)r->turns, "elapsed_us",
			 (json_int_t)elapsed, "used", account_json(&r->used),
			 "messages", team_copy(r->messages), "fresh",
			 team_copy(r->fresh));
}

static json_t *save_own(const struct team *t)
{
	/* A turn that goes on and waits for nobody has not happened. */
	if (t->before && !is_waiting(t))
		return json_incref(t->before);
	return t->kind->save ? t->kind->save(t->own) : json_null();
}

static json_t *save_known(const struct team *t)
{
	json_t *before = is_waiting(t) ? t->before : NULL;
	json_t *stop = t->stop ? termination_save(t->stop) : json_null();

	return json_pack("{s:s, s:i, s:s, s:o, s:o, s:O?, s:o, s:o, s:o}",
			 "type", "team", "version", VERSION, "kind",
			 t->kind->name, "thread", team_copy(t->thread), "own",
			 save_own(t), "before", before, "termination", stop,
			 "members", save_members(t), "run", save_run(t));
}

json_t *team_save(struct team *t)
{
	return saved_join(save_known(t), t->rest);
}

/* --- loading --- */

static int check_members(const struct team *t, const json_t *members,
			 size_t n_thread, struct err *err)
{
	if (json_object_size(members) != t->n_members)
		return err_set(err, EINVAL,
			       "the state has %zu participants, the team %zu",
			       json_object_size(members), t->n_members);
	for (size_t i = 0; i < t->n_members; i++) {
		const char *name = t->members[i]->agent->name;
		const json_t *m = json_object_get(members, name);
		json_int_t heard = json_integer_value(
			json_object_get(m, "heard"));

		if (!m)
			return err_set(err, EINVAL,
				       "the state has no participant '%s'",
				       name);
		if (heard < 0 || (size_t)heard > n_thread)
			return err_set(err, EINVAL,
				       "participant '%s' cannot have heard "
				       "that much",
				       name);
	}
	return 0;
}

static bool are_chats(const json_t *list)
{
	size_t i;
	json_t *m;

	if (!json_is_array(list))
		return false;
	json_array_foreach((json_t *)list, i,
			   m) if (!json_is_object(m)) return false;
	return true;
}

static int check_run(const json_t *run, struct err *err)
{
	const char *id = json_string_value(json_object_get(run, "id"));

	if (!run || json_is_null(run))
		return 0;
	if (!id || strlen(id) >= CHAT_ID ||
	    !are_chats(json_object_get(run, "messages")) ||
	    !are_chats(json_object_get(run, "fresh")))
		return err_set(err, EINVAL, "the state's run is not whole");
	return 0;
}

static int check_state(const struct team *t, const json_t *state,
		       struct err *err)
{
	const char *kind = json_string_value(json_object_get(state, "kind"));
	const json_t *thread = json_object_get(state, "thread");
	int r = saved_check(state, "team", VERSION, err);

	if (r < 0)
		return r;
	if (!kind || strcmp(kind, t->kind->name) != 0)
		return err_set(err, EINVAL, "the state is that of a team '%s'",
			       kind ? kind : "");
	if (!are_chats(thread))
		return err_set(err, EINVAL, "the state's thread is no list");
	r = check_members(t, json_object_get(state, "members"),
			  json_array_size(thread), err);
	return r < 0 ? r : check_run(json_object_get(state, "run"), err);
}

static const json_t *there(const json_t *o, const char *name)
{
	const json_t *v = json_object_get(o, name);

	return json_is_null(v) ? NULL : v;
}

static int load_members(struct team *t, const json_t *members, struct err *err)
{
	for (size_t i = 0; i < t->n_members; i++) {
		struct member *m = t->members[i];
		const json_t *o = json_object_get(members, m->agent->name);
		const json_t *state = there(o, "agent");

		if (state && agent_load(m->agent, state, err) < 0)
			return -err->code;
		m->heard = (size_t)json_integer_value(
			json_object_get(o, "heard"));
		json_decref(m->pending);
		m->pending = json_deep_copy(there(o, "pending"));
	}
	return 0;
}

static void load_run(struct team *t, const json_t *run)
{
	struct run *r = &t->run;

	if (!run)
		return;
	(void)snprintf(r->id, sizeof(r->id), "%s",
		       json_string_value(json_object_get(run, "id")));
	r->is_open = true;
	r->turns = json_integer_value(json_object_get(run, "turns"));
	r->elapsed = json_integer_value(json_object_get(run, "elapsed_us"));
	account_load(&r->used, json_object_get(run, "used"));
	r->messages = team_copy(json_object_get(run, "messages"));
	r->fresh = team_copy(json_object_get(run, "fresh"));
}

static int take_state(struct team *t, const json_t *state, struct err *err)
{
	const json_t *own = there(state, "own");
	const json_t *stop = there(state, "termination");
	json_t *thread;
	int r = 0;

	run_clear(t);
	if (t->stop)
		termination_reset(t->stop);
	if (t->stop && stop)
		r = termination_load(t->stop, stop, err);
	if (r == 0 && own && t->kind->load)
		r = t->kind->load(t->own, own, err);
	if (r == 0)
		r = load_members(t, json_object_get(state, "members"), err);
	if (r < 0)
		return r;
	thread = team_copy(json_object_get(state, "thread"));
	if (!thread)
		return err_set(err, ENOMEM, "out of memory");
	json_decref(t->thread);
	t->thread = thread;
	t->before = json_deep_copy(there(state, "before"));
	load_run(t, there(state, "run"));
	return 0;
}

/* All that is known is in place: what is left? */
static int take_rest(struct team *t, const json_t *state, struct err *err)
{
	json_t *known = save_known(t);
	json_t *rest = NULL;
	int r = known ? saved_rest(state, known, &rest) : -ENOMEM;

	json_decref(known);
	if (r < 0)
		return err_set(err, ENOMEM, "out of memory");
	json_decref(t->rest);
	t->rest = rest;
	return 0;
}

int team_load(struct team *t, const json_t *state, struct err *err)
{
	struct err ignored = { 0 };
	json_t *was;
	int r = t->state == TEAM_IDLE ? check_state(t, state, err)
				      : err_set(err, EBUSY, "the team runs");

	if (r < 0)
		return err_wrap(err, "team '%s'", t->name);
	was = save_known(t);
	if (!was)
		return err_set(err, ENOMEM, "out of memory");
	r = take_state(t, state, err);
	if (r == 0)
		r = take_rest(t, state, err);
	if (r < 0)
		(void)take_state(t, was, &ignored);
	json_decref(was);
	return r < 0 ? err_wrap(err, "team '%s'", t->name) : 0;
}

/* --- checkpoints --- */

void team_keep(struct team *t, struct checkpoints *c, json_t *about)
{
	t->checkpoints = c;
	json_decref(t->about);
	t->about = json_incref(about);
}

void team_set_checkpoint(struct team *t, const char *id)
{
	(void)snprintf(t->checkpoint, sizeof(t->checkpoint), "%s", id);
}

static void cannot_keep(struct team *t, const struct err *err)
{
	struct fault why = { 0 };
	json_t *event;

	fault_set(&why, FAULT_UNAVAILABLE, "checkpoint: %s", err->text);
	event = chat_new("ErrorEvent", t->name,
			 json_pack("{s:o}", "error", fault_json(&why)));
	if (event)
		team_emit(t, t->manager_id, event);
	json_decref(event);
	fault_done(&why);
}

void team_checkpoint(struct team *t, const char *reason)
{
	const char *parent = t->checkpoint[0] ? t->checkpoint : NULL;
	struct checkpoint p = { .run = t->run.id,
				.parent = parent,
				.reason = reason,
				.about = t->about };
	char id[CHECKPOINT_ID];
	struct err err = { 0 };

	if (!t->checkpoints)
		return;
	p.state = team_save(t);
	if (!p.state)
		(void)err_set(&err, ENOMEM, "out of memory");
	else if (checkpoints_write(t->checkpoints, &p, id, &err) == 0)
		team_set_checkpoint(t, id);
	if (err.code)
		cannot_keep(t, &err);
	json_decref(p.state);
}
