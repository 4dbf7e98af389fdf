/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* For tests of teams: a loop, a runtime, a team, and what its runs gave. */

#include <string.h>

#include "agent/agent.h"
#include "agent/checkpoint.h"
#include "agent/team.h"
#include "base/clock.h"
#include "base/util.h"

struct scene {
	struct loop *loop;
	struct runtime *runtime;
	struct team *team;
	struct err err;

	json_t *result; /* of the last run */
	json_t *events; /* all of it, in order */
	bool is_over;
	struct cancel *cancel;
	int cancel_after; /* events; 0: never */
	int overs;
};

static inline json_t *parse(const char *text)
{
	json_error_t e;
	json_t *o = json_loads(text, JSON_DECODE_ANY, &e);

	if (!o) {
		printf("# not JSON: %s: %s\n", text, e.text);
		exit(1);
	}
	return o;
}

static inline void scene_init_with(struct scene *s,
				   const struct runtime_options *o)
{
	memset(s, 0, sizeof(*s));
	if (loop_new(&s->loop, &s->err) < 0)
		exit(1);
	s->runtime = runtime_new(s->loop, o, &s->err);
	if (!s->runtime) {
		printf("# %s\n", s->err.text);
		exit(1);
	}
	s->events = json_array();
}

static inline void scene_init(struct scene *s)
{
	scene_init_with(s, NULL);
}

/* config and stop: JSON, or NULL. */
static inline int scene_try(struct scene *s, const struct team_kind *kind,
			    struct agent **agents, size_t n, const char *config,
			    const char *stop, struct model *model)
{
	json_t *c = config ? parse(config) : NULL;
	json_t *when = stop ? parse(stop) : NULL;
	struct team_options o = { .runtime = s->runtime,
				  .name = "crew",
				  .kind = kind,
				  .config = c,
				  .agents = agents,
				  .n_agents = n,
				  .model = model };
	int r = 0;

	if (when)
		r = termination_new(when, &o.stop, &s->err);
	if (r == 0)
		r = team_new(&o, &s->team, &s->err);
	json_decref(c);
	json_decref(when);
	return r;
}

static inline void scene_team(struct scene *s, const struct team_kind *kind,
			      struct agent **agents, size_t n,
			      const char *config, const char *stop,
			      struct model *model)
{
	if (scene_try(s, kind, agents, n, config, stop, model) == 0)
		return;
	printf("# no team: %s\n", s->err.text);
	exit(1);
}

static inline void scene_done(struct scene *s)
{
	struct fault why = { 0 };

	team_free(s->team);
	(void)runtime_stop(s->runtime, STOP_NOW, &why);
	fault_done(&why);
	runtime_free(s->runtime);
	json_decref(s->result);
	json_decref(s->events);
	cancel_unref(s->cancel);
	loop_free(s->loop);
}

static void scene_event(void *arg, json_t *event)
{
	struct scene *s = arg;

	(void)json_array_append(s->events, event);
	if (s->cancel_after > 0 && --s->cancel_after == 0)
		cancel_fire(s->cancel, "enough");
}

static void scene_over(void *arg, json_t *result)
{
	struct scene *s = arg;

	json_decref(s->result);
	s->result = json_incref(result);
	s->is_over = true;
	s->overs++;
}

static const struct team_events scene_events = { .event = scene_event,
						 .over = scene_over };

static bool scene_is_over(void *arg)
{
	return ((struct scene *)arg)->is_over;
}

/* Starts; the caller runs the loop. */
static inline void scene_start(struct scene *s, const char *task)
{
	json_t *list = task ? json_pack("[o]", chat_text("user", task)) : NULL;

	s->is_over = false;
	json_array_clear(s->events);
	if (team_run(s->team, list, s->cancel, &scene_events, s, &s->err) < 0) {
		printf("# no run: %s\n", s->err.text);
		exit(1);
	}
	json_decref(list);
}

static inline void scene_wait(struct scene *s)
{
	if (!loop_run(s->loop, scene_is_over, s)) {
		printf("# the loop has nothing more to do\n");
		exit(1);
	}
}

static inline void scene_run(struct scene *s, const char *task)
{
	scene_start(s, task);
	scene_wait(s);
}

static inline void scene_resume(struct scene *s, const char *answers)
{
	json_t *o = answers ? parse(answers) : NULL;

	s->is_over = false;
	json_array_clear(s->events);
	if (team_resume(s->team, o, s->cancel, &scene_events, s, &s->err) < 0) {
		printf("# cannot resume: %s\n", s->err.text);
		exit(1);
	}
	json_decref(o);
	scene_wait(s);
}

static inline const char *field(const json_t *o, const char *name)
{
	return json_string_value(json_object_get(o, name));
}

/* "source:text source:text", messages and events of the list. */
static inline const char *told(const json_t *list)
{
	static char text[65536];
	size_t n = 0;
	size_t i;
	json_t *m;

	text[0] = '\0';
	json_array_foreach((json_t *)list, i, m)
	{
		char *one = chat_to_text(m);

		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s:%s",
				      n ? " " : "", chat_source(m),
				      chat_is_message(m) ? one : "*");
		free(one);
	}
	return text;
}

#define RESULT(s, status_, reason_, told_)                                     \
	do {                                                                   \
		CHECK_STR(field((s)->result, "status"), status_);              \
		CHECK_STR(field((s)->result, "stop_reason"), reason_);         \
		CHECK_STR(told(json_object_get((s)->result, "messages")),      \
			  told_);                                              \
	} while (0)
