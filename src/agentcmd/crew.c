/* SPDX-License-Identifier: Apache-2.0 */
#include "agentcmd/crew.h"

#include <errno.h>
#include <string.h>

#include "agentcmd/crew-screen.h"
#include "agentcmd/crew-tools.h"
#include "agentcmd/fields.h"
#include "agentcmd/lookout.h"
#include "base/util.h"

#define MODELS_MAX 32
#define AGENTS_MAX 256

struct crew_model_slot {
	json_t *config;
	struct model *model;
};

struct crew {
	struct crew_options o;
	struct runtime *runtime;
	struct team *team;
	struct crew_model_slot models[MODELS_MAX];
	size_t n_models;
	struct model *replay;
	struct crew_tools tools[AGENTS_MAX];
	size_t n_tools;
	char *policy;
	struct crew_screen screen;
	struct lookout *lookout;
};

struct team *crew_team(struct crew *c)
{
	return c->team;
}

const char *crew_policy_name(const struct crew *c)
{
	return c->policy;
}

bool crew_has_filters(const struct crew *c)
{
	return c->screen.screen != NULL;
}

void crew_heard(struct crew *c, const json_t *chat)
{
	lookout_chat(c->lookout, chat);
}

/* models */

static int open_model(struct crew *c, const json_t *component,
		      const json_t *config, struct model **ret, struct err *err)
{
	const char *file = json_string_value(json_object_get(config, "file"));
	_cleanup_free_ char *path = NULL;
	struct model *inner;
	int e;

	if (strcmp(component_kind(component), "replay") == 0) {
		path = crew_path(c->o.config, file);
		return model_replay(c->o.loop, path ? path : file, ret, err);
	}
	e = crew_check_secret(&c->o, config, err);
	if (e == 0)
		e = model_openai(c->o.loop, config, ret, err);
	if (e < 0 || !c->o.record)
		return e;
	inner = *ret;
	e = model_record(c->o.loop, inner, c->o.record, ret, err);
	if (e < 0)
		model_unref(inner);
	return e;
}

static int need_replay(struct crew *c, struct err *err)
{
	return c->replay
		       ? 0
		       : model_replay(c->o.loop, c->o.replay, &c->replay, err);
}

/* A file with a limit has prices (prices.c), but not of any other model. */
static int check_price(const struct crew *c, const json_t *config,
		       struct err *err)
{
	const json_t *info = json_object_get(config, "info");

	if (!c->o.model || !prices_matter(c->o.config->component) ||
	    json_object_get(info, "price_prompt"))
		return 0;
	return err_set(err, EINVAL,
		       "the file has a limit in dollars, and its prices are "
		       "not those of '%.80s'; write that model and its prices "
		       "into the file, or take the limit out",
		       c->o.model);
}

/* Borrowed; NULL component is no model. */
static int find_model(struct crew *c, const json_t *component,
		      struct model **ret, struct err *err)
{
	struct crew_model_slot *s = &c->models[c->n_models];
	json_t *config;
	int e;

	*ret = NULL;
	if (!component)
		return 0;
	if (c->o.replay) {
		e = need_replay(c, err);
		*ret = c->replay;
		return e;
	}
	config = crew_model(c->o.config, component, c->o.model);
	e = check_price(c, config, err);
	if (e < 0) {
		json_decref(config);
		return e;
	}
	for (size_t i = 0; i < c->n_models; i++)
		if (json_equal(c->models[i].config, config)) {
			*ret = c->models[i].model;
			json_decref(config);
			return 0;
		}
	if (c->n_models == MODELS_MAX)
		e = err_set(err, E2BIG, "more than %d models", MODELS_MAX);
	else
		e = open_model(c, component, config, &s->model, err);
	if (e < 0) {
		json_decref(config);
		return e;
	}
	s->config = config;
	c->n_models++;
	*ret = s->model;
	return 0;
}

/* agents */

/* What is around it, and the model that summarises its history, if any. */
static int equip(struct crew *c, struct agent *a, const json_t *from,
		 struct err *err)
{
	const json_t *context = json_object_get(from, "context");
	const json_t *config = context ? component_config(context) : NULL;
	struct model *m = NULL;
	int e = find_model(c, json_object_get(config, "model"), &m, err);

	if (e < 0)
		return err_wrap(err, "context");
	agent_set_summariser(a, m);
	if (c->screen.screen)
		agent_set_screen(a, c->screen.screen);
	a->tracer = runtime_tracer(c->runtime);
	return 0;
}

static int make_agent(struct crew *c, const json_t *component,
		      struct agent **ret, struct err *err)
{
	const json_t *from = component_config(component);
	const char *kind = component_kind(component);
	const char *name = json_string_value(json_object_get(from, "name"));
	json_t *executor = json_object_get(from, "executor");
	json_t *one = executor ? json_pack("[O]", executor) : NULL;
	struct crew_tools *tools = &c->tools[c->n_tools];
	struct model *model = NULL;
	json_t *config = crew_agent(component);
	int e = find_model(c, json_object_get(from, "model"), &model, err);

	*ret = NULL;
	/* The task's source: filters know people by it. */
	if (e == 0 && strcmp(name, "user") == 0 &&
	    strcmp(kind, "user_proxy") != 0)
		e = err_set(err, EINVAL,
			    "only who asks a person is named 'user'");
	if (e == 0 && c->n_tools == AGENTS_MAX)
		e = err_set(err, E2BIG, "more than %d agents", AGENTS_MAX);
	if (e == 0) {
		c->n_tools++;
		tools->crew = c;
		e = crew_tools_make(tools, &c->o, c->policy, name,
				    one ? one : json_object_get(from, "tools"),
				    json_object_get(from, "toolsets"), err);
	}
	if (e == 0 && strcmp(kind, "assistant") == 0)
		e = agent_assistant(c->o.loop, name, config, model, tools->set,
				    ret, err);
	else if (e == 0 && strcmp(kind, "code_executor") == 0)
		e = agent_executor(c->o.loop, name, config, model, tools->set,
				   ret, err);
	else if (e == 0)
		e = agent_user(c->o.loop, name, config, c->o.prompt, ret, err);
	/* An agent that was made has its tools. */
	if (e == 0)
		tools->set = NULL;
	if (e == 0)
		e = equip(c, *ret, from, err);
	if (e < 0)
		agent_free(take_ptr(*ret));
	json_decref(one);
	json_decref(config);
	return e < 0 ? err_wrap(err, "agent '%s'", name) : 0;
}

/* the team */

static json_t *team_config(const json_t *from)
{
	static const char *const parts[] = { "participants", "termination",
					     "model",        "policy",
					     "name",         "description" };
	json_t *ret = json_copy((json_t *)from);

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		json_object_del(ret, parts[i]);
	return ret;
}

static int make_team(struct crew *c, const json_t *team, struct agent **agents,
		     size_t n, struct team **ret, struct err *err)
{
	const json_t *from = component_config(team);
	const char *name = json_string_value(json_object_get(from, "name"));
	json_t *stop = json_object_get(from, "termination");
	json_t *config = team_config(from);
	struct team_options o = {
		.runtime = c->runtime,
		.name = name ? name : "team",
		.description = json_string_value(
			json_object_get(from, "description")),
		.kind = strcmp(component_kind(team), "selector") == 0
				? &team_selector
				: &team_round_robin,
		.config = config,
		.agents = agents,
		.n_agents = n,
	};
	int e = find_model(c, json_object_get(from, "model"), &o.model, err);

	/* The team has its own reference. */
	o.model = model_ref(o.model);
	if (e == 0 && stop) {
		json_t *said = crew_stop(stop);

		e = termination_new(said, &o.stop, err);
		json_decref(said);
	}
	if (e == 0)
		e = team_new(&o, ret, err);
	if (e < 0) {
		model_unref(o.model);
		termination_free(o.stop);
	}
	json_decref(config);
	return e;
}

static int make_all(struct crew *c, const json_t *team, struct team **ret,
		    struct err *err)
{
	json_t *list = json_object_get(component_config(team), "participants");
	struct agent *agents[AGENTS_MAX];
	json_t *item;
	size_t n = 0;
	size_t i;
	int e = 0;

	if (json_array_size(list) > AGENTS_MAX)
		return err_set(err, E2BIG, "more than %d agents", AGENTS_MAX);
	for (i = 0; e == 0 && (item = json_array_get(list, i)); i++) {
		e = make_agent(c, item, &agents[n], err);
		n += e == 0;
	}
	if (e == 0)
		e = make_team(c, team, agents, n, ret, err);
	/* A team that was made has them. */
	for (i = 0; e < 0 && i < n; i++)
		agent_free(agents[i]);
	return e;
}

static int make_inner_agent(struct crew *c, const json_t *component,
			    struct tool **ret, struct err *err)
{
	struct agent *a = NULL;
	int e = make_agent(c, component, &a, err);

	if (e == 0)
		e = tool_agent(a, ret, err);
	if (e < 0)
		agent_free(a);
	return e;
}

static int make_inner_team(struct crew *c, const json_t *component,
			   struct tool **ret, struct err *err)
{
	struct team *t = NULL;
	int e = make_all(c, component, &t, err);

	if (e == 0)
		e = tool_team(t, ret, err);
	if (e < 0)
		team_free(t);
	return e;
}

int crew_make_inner(struct crew *c, const json_t *component, struct tool **ret,
		    struct err *err)
{
	const json_t *config = component_config(component);
	const json_t *agent = json_object_get(config, "agent");

	return agent ? make_inner_agent(c, agent, ret, err)
		     : make_inner_team(c, json_object_get(config, "team"), ret,
				       err);
}

/* An agent by itself is a team of one, which ends with its answer. */
static json_t *as_team(const json_t *component)
{
	const json_t *config = component_config(component);
	json_t *name = json_object_get(config, "name");
	json_t *policy = json_object_get(config, "policy");
	json_t *team;

	if (strncmp(component_provider(component), "cordon.team.", 12) == 0)
		return json_incref((json_t *)component);
	team = json_pack("{s:[O], s:o}", "participants", component,
			 "termination",
			 component_new("cordon.termination.source_match",
				       json_pack("{s:[O]}", "sources", name)));
	if (policy)
		json_object_set(team, "policy", policy);
	return component_new("cordon.team.round_robin", team);
}

/*
 * What a participant has not heard yet is one message, and so is a turn that
 * waits for a person. In one process they are passed on, not copied.
 */
static const struct runtime_options limits = { .max_message = 64 << 20 };

static const char *run_of(void *arg)
{
	const struct crew *c = arg;

	return c->team ? team_run_id(c->team) : NULL;
}

int crew_new(const struct crew_options *o, struct crew **ret, struct err *err)
{
	struct crew *c = calloc(1, sizeof(*c));
	json_t *team;
	int e = 0;

	if (!c)
		return err_set(err, ENOMEM, "out of memory");
	c->o = *o;
	team = as_team(o->config->component);
	e = crew_choose_policy(o, team, &c->policy, err);
	if (e == 0) {
		c->runtime = runtime_new(o->loop, &limits, err);
		e = c->runtime ? 0 : -err->code;
	}
	if (e == 0)
		e = crew_screen_open(&c->screen, c->policy, team,
				     &(struct crew_run){ run_of, c },
				     c->runtime, err);
	if (e == 0)
		e = lookout_new(
			&(struct lookout_options){ .runtime = c->runtime,
						   .trace = o->trace,
						   .log = o->log,
						   .metrics = o->metrics },
			&c->lookout, err);
	if (e == 0)
		e = make_all(c, team, &c->team, err);
	json_decref(team);
	if (e < 0)
		crew_free(c);
	else
		*ret = c;
	return e;
}

void crew_free(struct crew *c)
{
	struct fault why = { 0 };

	if (!c)
		return;
	lookout_end(c->lookout);
	if (c->team)
		team_free(take_ptr(c->team));
	/* What is still on its way holds the team until it has an outcome. */
	if (c->runtime)
		(void)runtime_stop(c->runtime, STOP_NOW, &why);
	fault_done(&why);
	runtime_free(c->runtime);
	for (size_t i = 0; i < c->n_tools; i++)
		crew_tools_done(&c->tools[i]);
	for (size_t i = 0; i < c->n_models; i++) {
		model_unref(c->models[i].model);
		json_decref(c->models[i].config);
	}
	if (c->replay)
		model_unref(c->replay);
	crew_screen_close(&c->screen);
	lookout_free(c->lookout);
	free(c->policy);
	free(c);
}
