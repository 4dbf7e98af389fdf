/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A configuration brought to life: models, tools, agents, one team.
 *
 * Nothing of it runs before its team does, and a model's key is read when it
 * is needed. Models that are configured alike are one.
 */

#include <jansson.h>

#include "agent/team.h"
#include "agentcmd/config.h"
#include "tool/tool.h"

struct crew;

/* A tool that the program brings itself. */
struct crew_function {
	char *name, *description;
	json_t *schema;
	tool_fn *call;
	void *arg;
	bool is_read_only, gives_parts;
};

struct crew_options {
	struct loop *loop;
	const struct config *config;
	const char *replay;  /* a recording, instead of all models; or NULL */
	const char *record;  /* where to write one; or NULL */
	const char *secrets; /* NAME@HOST, ...: keys that may go there */
	const char *model;   /* a name, instead of the configured; or NULL */
	const char *policy;  /* instead of the configured one; or NULL */
	const char *was_policy; /* of the run that goes on; or NULL */
	const char *trace, *log, *metrics; /* files to write; or NULL */
	bool is_interactive;
	const struct user_prompt *prompt; /* or NULL: users are waited for */
	const struct crew_function *functions;
	size_t n_functions;
	/* Events of tools, approvals above all; borrowed. */
	void (*event)(void *arg, json_t *event);
	void *arg;
};

int crew_new(const struct crew_options *o, struct crew **ret, struct err *err);
void crew_free(struct crew *c);
struct team *crew_team(struct crew *c);
/* A message or an event of its team was told. */
void crew_heard(struct crew *c, const json_t *chat);
/* A preset, or a file by its whole path. */
const char *crew_policy_name(const struct crew *c);
/* Whether the policy changes messages. */
bool crew_has_filters(const struct crew *c);

/* A tool that is an agent or a team, from its component. */
int crew_make_inner(struct crew *c, const json_t *component, struct tool **ret,
		    struct err *err);

/* crew-policy.c: the name of the one that holds; the caller frees it. */
int crew_choose_policy(const struct crew_options *o, const json_t *team,
		       char **ret, struct err *err);

/* crew-secret.c: whether this model's key may go to its server. */
int crew_check_secret(const struct crew_options *o, const json_t *config,
		      struct err *err);

/* crew-parts.c: components as the libraries below take their settings. */

/* A path as the configuration means it; the caller frees it. */
char *crew_path(const struct config *c, const char *path);
/* A preset by its name, or a file; NULL: none is said. The caller's. */
char *crew_policy(const struct config *c, const json_t *component);
json_t *crew_stop(const json_t *component);  /* {"text_mention":{...}} */
json_t *crew_agent(const json_t *component); /* without its parts */
json_t *crew_model(const struct config *c, const json_t *component,
		   const char *name);
json_t *crew_box(const struct config *c, const json_t *settings);
int64_t crew_time(const json_t *v); /* us; 0: not said */
