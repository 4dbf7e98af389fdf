/* SPDX-License-Identifier: Apache-2.0 */
#include "agentcmd/crew-tools.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "agentcmd/fields.h"
#include "base/util.h"
#include "box/guard-facts.h"
#include "policy/decide.h"

/*
 * A directory goes to these tools as it would into a box: by the policy, and
 * without one of its own words what lies beside the agent's file; and never
 * what nothing is given.
 */
static int check_workspace(const struct crew_tools *c, const char *path,
			   bool is_rw, struct err *err)
{
	struct mount_ask ask = { .source = path,
				 .target = "/workspace",
				 .is_rw = is_rw,
				 .policy_name = c->policy };
	struct policy_request req = { .n_mounts = 1, .is_empty = true };
	_cleanup_free_ char *beside = realpath(c->o->config->dir, NULL);
	struct policy_verdict verdict = { 0 };
	struct policy *policy = NULL;
	struct request_mount mount;
	struct mount_facts facts;
	int e = toolset_policy(c->policy, &policy, err);

	ask.policy = policy;
	if (e == 0)
		e = mount_look(&ask, &facts, &mount, err);
	if (e == 0) {
		bool is_beside = beside && path_is_below(facts.path, beside);

		req.mounts = &mount;
		policy_decide(is_beside ? NULL : policy, &req, &verdict);
		if (verdict.decision != DECISION_ALLOW)
			e = err_set(err, EPERM, "%s", verdict.why);
	}
	policy_free(policy);
	return e;
}

static int make_files(struct crew_tools *c, const json_t *component,
		      struct tool **ret, struct err *err)
{
	const char *said = json_string_value(
		json_object_get(component_config(component), "workspace"));
	_cleanup_free_ char *path = said ? crew_path(c->o->config, said) : NULL;
	_cleanup_fd_ int fd = NO_FD;
	char real[PATH_MAX];

	if (!said)
		return err_set(err, EINVAL,
			       "it has no workspace; name the directory whose "
			       "files these are");
	fd = path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : NO_FD;
	if (fd < 0)
		return err_errno(err, errno, "open the workspace '%s'", said);
	/* By the descriptor: what was looked at is what is used. */
	if (fd_path(fd, real, sizeof(real)) < 0 ||
	    check_workspace(c, real,
			    strcmp(component_kind(component), "write_file") ==
				    0,
			    err) < 0)
		return err->code ? -err->code
				 : err_set(err, EIO, "look at '%s'", said);
	return tool_files(c->o->loop, fd, component_kind(component), ret, err);
}

static int make_boxed(struct crew_tools *c, const json_t *component,
		      struct tool **ret, struct err *err)
{
	const json_t *config = component_config(component);
	const char *file = json_string_value(json_object_get(config, "path"));
	json_t *settings = crew_box(c->o->config,
				    json_object_get(config, "box"));
	struct tool_box box = { .loop = c->o->loop,
				.settings = settings,
				.policy = c->policy };
	_cleanup_free_ char *path = file ? crew_path(c->o->config, file) : NULL;
	int e;

	if (file)
		e = tool_program(&box, path ? path : file, ret, err);
	else
		e = tool_code(&box, component_kind(component), ret, err);
	json_decref(settings);
	return e;
}

static const struct crew_function *find_function(const struct crew_tools *c,
						 const char *name)
{
	for (size_t i = 0; i < c->o->n_functions; i++)
		if (strcmp(c->o->functions[i].name, name) == 0)
			return &c->o->functions[i];
	return NULL;
}

static int make_function(struct crew_tools *c, const json_t *component,
			 struct tool **ret, struct err *err)
{
	const char *name = json_string_value(
		json_object_get(component_config(component), "name"));
	const struct crew_function *f = find_function(c, name);
	int e;

	if (!f)
		return err_set(err, ENOENT,
			       "there is no function '%s'; the program that "
			       "loads this file must bring it",
			       name);
	e = tool_function(f->name, f->description, f->schema, f->call, f->arg,
			  ret, err);
	if (e == 0) {
		(*ret)->is_read_only = f->is_read_only;
		(*ret)->gives_parts = f->gives_parts;
	}
	return e;
}

static int make_inner(struct crew_tools *c, const json_t *component,
		      struct tool **ret, struct err *err)
{
	return crew_make_inner(c->crew, component, ret, err);
}

static const struct {
	const char *kind;
	int (*make)(struct crew_tools *c, const json_t *component,
		    struct tool **ret, struct err *err);
} makers[] = {
	{ "run_python", make_boxed }, { "run_shell", make_boxed },
	{ "run_code", make_boxed },   { "program", make_boxed },
	{ "read_file", make_files },  { "write_file", make_files },
	{ "list_files", make_files }, { "function", make_function },
	{ "agent", make_inner },      { "team", make_inner },
};

/* What the configuration says of any tool. */
static void set_common(struct tool *t, const json_t *config)
{
	static const char *const approvals[] = {
		[APPROVAL_POLICY] = "policy",
		[APPROVAL_ALWAYS] = "always",
		[APPROVAL_NEVER] = "never",
	};
	const char *name = json_string_value(json_object_get(config, "name"));
	const char *text = json_string_value(
		json_object_get(config, "description"));
	const char *approval = json_string_value(
		json_object_get(config, "approval"));
	const json_t *most = json_object_get(config, "max_result");
	const json_t *again = json_object_get(config, "idempotent");
	char *copy;

	if (name)
		(void)snprintf(t->name, sizeof(t->name), "%s", name);
	copy = text ? strdup(text) : NULL;
	if (copy) {
		free(t->description);
		t->description = copy;
	}
	for (size_t i = 0; approval && i < ARRAY_SIZE(approvals); i++)
		if (strcmp(approvals[i], approval) == 0)
			t->approval = (enum tool_approval)i;
	if (again)
		t->is_idempotent = json_is_true(again);
	if (json_object_get(config, "timeout"))
		t->timeout = crew_time(json_object_get(config, "timeout"));
	if (most)
		t->max_result = (size_t)json_integer_value(most);
}

static int make_tool(struct crew_tools *c, const json_t *component,
		     struct tool **ret, struct err *err)
{
	int e = -ENOENT;

	for (size_t i = 0; i < ARRAY_SIZE(makers); i++)
		if (strcmp(makers[i].kind, component_kind(component)) == 0)
			e = makers[i].make(c, component, ret, err);
	if (e < 0)
		return err_wrap(err, "tool '%s'", component_kind(component));
	set_common(*ret, component_config(component));
	return 0;
}

static int add_tool(struct crew_tools *c, const json_t *component,
		    struct err *err)
{
	struct tool *t = NULL;
	int e = make_tool(c, component, &t, err);

	return e < 0 ? e : toolset_add(c->set, t, err);
}

/* toolsets */

static int make_static(struct crew_tools *c, const json_t *config,
		       const char *name, struct workbench **ret,
		       struct err *err)
{
	json_t *list = json_object_get(config, "tools");
	struct tool *t = NULL;
	json_t *item;
	int e = workbench_static(name, ret, err);

	for (size_t i = 0; e == 0 && (item = json_array_get(list, i)); i++) {
		e = make_tool(c, item, &t, err);
		if (e == 0)
			e = workbench_add(*ret, t, err);
	}
	return e;
}

static int make_sandbox(struct crew_tools *c, const json_t *config,
			const char *name, struct workbench **ret,
			struct err *err)
{
	json_t *settings = crew_box(c->o->config,
				    json_object_get(config, "box"));
	const struct tool_box box = { .loop = c->o->loop,
				      .settings = settings,
				      .policy = c->policy };
	json_t *only = json_object_get(config, "tools");
	int e = workbench_sandbox(name, &box, ret, err);

	json_decref(settings);
	if (e < 0 || !only)
		return e;
	only = json_is_string(only) ? json_pack("[O]", only)
				    : json_incref(only);
	e = workbench_keep(*ret, only, err);
	json_decref(only);
	return e;
}

static int rename_tools(struct workbench *w, const json_t *names,
			struct err *err)
{
	const char *from;
	json_t *to;
	int e = 0;

	json_object_foreach((json_t *)names, from, to)
	{
		if (e == 0)
			e = workbench_rename(w, from, json_string_value(to),
					     err);
	}
	return e;
}

static const struct {
	const char *kind;
	int (*make)(struct crew_tools *c, const json_t *config,
		    const char *name, struct workbench **ret, struct err *err);
} set_makers[] = { { "static", make_static }, { "sandbox", make_sandbox } };

/* `i`: one that has no name is known by its place. */
static int add_set(struct crew_tools *c, const json_t *component, size_t i,
		   struct err *err)
{
	const json_t *config = component_config(component);
	const char *name = json_string_value(json_object_get(config, "name"));
	struct workbench *w = NULL;
	char own[32];
	int e = -ENOENT;

	(void)snprintf(own, sizeof(own), "%.20s-%zu", component_kind(component),
		       i + 1);
	for (size_t k = 0; k < ARRAY_SIZE(set_makers); k++)
		if (strcmp(set_makers[k].kind, component_kind(component)) == 0)
			e = set_makers[k].make(c, config, name ? name : own, &w,
					       err);
	if (e == 0)
		e = rename_tools(w, json_object_get(config, "names"), err);
	if (e < 0) {
		workbench_free(w);
		return err_wrap(err, "toolset '%s'", name ? name : own);
	}
	return toolset_add_workbench(c->set, w, err);
}

/* Tools know nothing of sources: here their events get one. */
static void on_tool_event(void *arg, const json_t *event)
{
	static const char *const asked[][2] = {
		{ "ApprovalRequestedEvent", "approval" },
		{ "ApprovalDecidedEvent", "decision" },
	};
	struct crew_tools *t = arg;
	const char *type = json_string_value(json_object_get(event, "type"));

	if (!type || !t->o->event)
		return;
	/* An agent whose turn is suspended tells of the question itself. */
	for (size_t i = t->o->is_interactive ? 0 : 1; i < ARRAY_SIZE(asked);
	     i++) {
		json_t *chat;

		if (strcmp(type, asked[i][0]) != 0)
			continue;
		chat = chat_new(type, t->agent,
				json_pack("{s:O*}", asked[i][1],
					  json_object_get(event, "content")));
		if (chat)
			t->o->event(t->o->arg, chat);
		json_decref(chat);
	}
}

int crew_tools_make(struct crew_tools *t, const struct crew_options *o,
		    const char *policy, const char *agent, const json_t *tools,
		    const json_t *toolsets, struct err *err)
{
	struct toolset_options with = { .loop = o->loop,
					.policy = policy,
					.is_interactive = o->is_interactive,
					.event = on_tool_event,
					.arg = t };
	json_t *item;
	int e;

	if (json_array_size(tools) + json_array_size(toolsets) == 0)
		return 0;
	t->o = o;
	t->policy = policy;
	t->agent = strdup(agent);
	e = t->agent ? toolset_new(&with, &t->set, err)
		     : err_set(err, ENOMEM, "out of memory");
	for (size_t i = 0; e == 0 && (item = json_array_get(tools, i)); i++)
		e = add_tool(t, item, err);
	for (size_t i = 0; e == 0 && (item = json_array_get(toolsets, i)); i++)
		e = add_set(t, item, i, err);
	return e;
}

void crew_tools_done(struct crew_tools *t)
{
	if (t->set)
		toolset_free(t->set);
	free(t->agent);
	memset(t, 0, sizeof(*t));
}
