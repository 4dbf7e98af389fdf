/* SPDX-License-Identifier: Apache-2.0 */

/* cordon/agent.h */

#include "agentcmd/api.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/checkpoint.h"
#include "agentcmd/session.h"
#include "base/strv.h"
#include "base/util.h"

struct cordon_agent {
	struct config config;
	struct crew_function *functions;
	struct cordon_tool *tools; /* what `arg` of a function points to */
	size_t n;
	struct session *session; /* from the first run on */
	char *replay, *record, *model, *policy, *secret, *trace, *checkpoints;
	void (*event)(void *arg, const char *json);
	void *arg;
};

int api_give(struct cordon_error *to, const struct err *from)
{
	if (to) {
		to->code = from->code;
		(void)snprintf(to->text, sizeof(to->text), "%s", from->text);
	}
	return -from->code;
}

/* A function of the program's, seen from the toolset. */
static char *call(void *arg, const char *args, struct err *err)
{
	const struct cordon_tool *t = arg;
	struct cordon_error why = { 0 };
	char *text = t->call(t->arg, args, &why);

	if (!text)
		(void)err_set(err, why.code ? why.code : EIO, "%s",
			      why.text[0] ? why.text : "the tool failed");
	return text;
}

static int take_tool(struct cordon_agent *a, const struct cordon_tool *t,
		     struct err *err)
{
	struct crew_function *f = &a->functions[a->n];
	json_error_t why;

	a->tools[a->n] = *t;
	f->name = strdup(t->name);
	f->description = strdup(t->description ? t->description : "");
	f->schema = json_loads(t->schema ? t->schema : "{\"type\":\"object\"}",
			       0, &why);
	f->call = call;
	f->arg = &a->tools[a->n];
	f->is_read_only = t->read_only;
	f->gives_parts = t->parts;
	a->n++;
	if (!f->schema)
		return err_set(err, EINVAL, "the schema of '%s': %s", t->name,
			       why.text);
	return f->name && f->description
		       ? 0
		       : err_set(err, ENOMEM, "out of memory");
}

static int take_tools(struct cordon_agent *a, const struct cordon_tool *tools,
		      struct strv *names, struct err *err)
{
	size_t n = 0;
	int e = 0;

	while (tools && tools[n].name)
		n++;
	a->functions = calloc(n + 1, sizeof(*a->functions));
	a->tools = calloc(n + 1, sizeof(*a->tools));
	if (!a->functions || !a->tools)
		return err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; e == 0 && i < n; i++) {
		e = take_tool(a, &tools[i], err);
		if (e == 0 && strv_add(names, tools[i].name) < 0)
			e = err_set(err, ENOMEM, "out of memory");
	}
	return e;
}

static struct cordon_agent *open_agent(const char *file, const char *yaml,
				       const struct cordon_tool *tools,
				       struct cordon_error *ret)
{
	struct cordon_agent *a = calloc(1, sizeof(*a));
	struct strv names = { 0 };
	struct err err = { 0 };
	int e = a ? take_tools(a, tools, &names, &err)
		  : err_set(&err, ENOMEM, "out of memory");

	if (e == 0 && yaml)
		e = config_parse("agent", yaml, strlen(yaml),
				 (const char *const *)names.v, &a->config,
				 &err);
	else if (e == 0)
		e = config_read(file, (const char *const *)names.v, &a->config,
				&err);
	strv_done(&names);
	if (e == 0)
		return a;
	(void)api_give(ret, &err);
	cordon_agent_free(a);
	return NULL;
}

struct cordon_agent *cordon_agent_parse(const char *yaml,
					const struct cordon_tool *tools,
					struct cordon_error *err)
{
	return open_agent(NULL, yaml, tools, err);
}

struct cordon_agent *cordon_agent_load(const char *file,
				       const struct cordon_tool *tools,
				       struct cordon_error *err)
{
	return open_agent(file, NULL, tools, err);
}

void cordon_agent_free(struct cordon_agent *a)
{
	if (!a)
		return;
	session_close(a->session);
	config_done(&a->config);
	for (size_t i = 0; i < a->n; i++) {
		free(a->functions[i].name);
		free(a->functions[i].description);
		json_decref(a->functions[i].schema);
	}
	free(a->functions);
	free(a->tools);
	free(a->replay);
	free(a->record);
	free(a->model);
	free(a->policy);
	free(a->secret);
	free(a->trace);
	free(a->checkpoints);
	free(a);
}

int cordon_agent_set(struct cordon_agent *a, const char *name,
		     const char *value, struct cordon_error *ret)
{
	const struct {
		const char *name;
		char **at;
	} known[] = {
		{ "replay", &a->replay },
		{ "record", &a->record },
		{ "model", &a->model },
		{ "policy", &a->policy },
		{ "secret", &a->secret },
		{ "trace", &a->trace },
		{ "checkpoints", &a->checkpoints },
	};
	struct err err = { 0 };

	if (a->session)
		(void)err_set(&err, EBUSY, "'%s' is set before the first run",
			      name);
	for (size_t i = 0; !err.code && i < ARRAY_SIZE(known); i++) {
		char *copy;

		if (strcmp(known[i].name, name) != 0)
			continue;
		copy = strdup(value);
		if (!copy) {
			(void)err_set(&err, ENOMEM, "out of memory");
			break;
		}
		free(*known[i].at);
		*known[i].at = copy;
		return 0;
	}
	if (!err.code)
		(void)err_set(
			&err, EINVAL,
			"there is no setting '%.60s'; there are replay, "
			"record, model, policy, secret, trace and checkpoints",
			name);
	return api_give(ret, &err);
}

void cordon_agent_on_event(struct cordon_agent *a,
			   void (*event)(void *arg, const char *json),
			   void *arg)
{
	a->event = event;
	a->arg = arg;
}

static void on_event(void *arg, json_t *event)
{
	struct cordon_agent *a = arg;
	_cleanup_free_ char *text = a->event ? json_dumps(event, JSON_COMPACT)
					     : NULL;

	if (text)
		a->event(a->arg, text);
}

static int open_session(struct cordon_agent *a, const char *task,
			struct err *err)
{
	struct session_options o = {
		.crew = { .config = &a->config,
			  .replay = a->replay,
			  .record = a->record,
			  .model = a->model,
			  .policy = a->policy,
			  .secrets = a->secret,
			  .trace = a->trace,
			  .functions = a->functions,
			  .n_functions = a->n,
			  .event = on_event,
			  .arg = a },
		.checkpoints = a->checkpoints,
		.task = task,
	};

	return a->session ? 0 : session_open(&o, &a->session, err);
}

/* Takes over `result`. */
static int give_result(json_t *result, char **ret, struct err *err)
{
	*ret = json_dumps(result, JSON_COMPACT);
	json_decref(result);
	return *ret ? 0 : err_set(err, ENOMEM, "out of memory");
}

int cordon_agent_run(struct cordon_agent *a, const char *task, char **ret,
		     struct cordon_error *ret_err)
{
	struct err err = { 0 };
	json_t *result = NULL;
	int e = open_session(a, task, &err);

	if (e == 0)
		e = session_run(a->session, task, &result, &err);
	if (e == 0)
		e = give_result(result, ret, &err);
	return e < 0 ? api_give(ret_err, &err) : 0;
}

static int read_checkpoint(const struct cordon_agent *a, const char *id,
			   json_t **ret, struct err *err)
{
	struct checkpoints *store = NULL;
	int e;

	if (!a->checkpoints)
		return err_set(err, EINVAL,
			       "'checkpoints' is not set; nothing is kept");
	e = session_checkpoints(a->checkpoints, &store, err);
	if (e < 0)
		return e;
	e = checkpoints_read(store, id, ret, err);
	checkpoints_close(store);
	return e;
}

/* A run goes on under the policy it began with, unless the program says. */
static int check_policy(const struct cordon_agent *a, const json_t *doc,
			struct err *err)
{
	const char *was = json_string_value(
		json_object_get(json_object_get(doc, "about"), "policy"));
	const char *now = session_policy(a->session);

	if (a->policy || !was || strcmp(was, now) == 0)
		return 0;
	return err_set(err, EPERM,
		       "the run began under the policy '%.150s', and here "
		       "'%.150s' applies; set 'policy' to one of them",
		       was, now);
}

int cordon_agent_resume(struct cordon_agent *a, const char *id,
			const char *answer, char **ret,
			struct cordon_error *ret_err)
{
	struct err err = { 0 };
	json_t *result = NULL;
	json_t *doc = NULL;
	int e = open_session(a, NULL, &err);

	if (e == 0 && id)
		e = read_checkpoint(a, id, &doc, &err);
	if (e == 0 && id)
		e = check_policy(a, doc, &err);
	if (e == 0)
		e = session_resume(a->session, doc, answer, &result, &err);
	json_decref(doc);
	if (e == 0)
		e = give_result(result, ret, &err);
	return e < 0 ? api_give(ret_err, &err) : 0;
}

void cordon_agent_cancel(struct cordon_agent *a)
{
	if (a->session)
		session_cancel(a->session);
}
