/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The short form, which people write, spelled out as a component.
 *
 *	name: coder                     team: round_robin
 *	model: gpt-4o-mini              model: gpt-4o-mini
 *	tools: [run_python]             agents:
 *	policy: strict                    writer: {system: ...}
 *	                                  critic: {system: ...}
 *	                                stop: {text: APPROVE, messages: 12}
 *
 * One agent is a team of one that ends when it has answered. What the short
 * form leaves out and a component needs is filled in here, and only here.
 */

#include <jansson.h>

#include "agentcmd/doc.h"
#include "agentcmd/fields.h"

struct short_form {
	struct at *at;
	/* Tools that the program brings: names, ended by NULL; or NULL. */
	const char *const *functions;
};

/* NULL and *at->err. */
json_t *short_expand(const struct short_form *s, const json_t *doc);

struct short_shared;
/* An agent or a team within a tool; `above` is what its caller shares. */
json_t *short_agent(const struct short_form *s, const json_t *from,
		    const struct short_shared *above);
json_t *short_inner_team(const struct short_form *s, const json_t *from,
			 const struct short_shared *above);

/* What a team says for all its agents, and an agent for all its tools. */
struct short_shared {
	const json_t *model; /* a component */
	const json_t *box;
	const char *workspace;
};

/* short-parts.c; each is at its place already. NULL and *at->err. */
/* Checks what was made by the provider's own table; takes it over. */
json_t *short_made(struct at *at, const char *provider, json_t *config);
json_t *short_model(struct at *at, const json_t *v);
json_t *short_stop(struct at *at, const json_t *v);
json_t *short_context(struct at *at, const json_t *v);
json_t *short_budget(struct at *at, const json_t *v);

/* short-tools.c; `of` is the agent's. */
json_t *short_tools(const struct short_form *s, const json_t *v,
		    const struct short_shared *of);
json_t *short_toolsets(const struct short_form *s, const json_t *v,
		       const struct short_shared *of);
/* One tool of the kind `name`. */
json_t *short_tool(const struct short_form *s, const char *name,
		   const json_t *fields, const struct short_shared *of);

/* For schema.c. */
extern const struct field short_assistant[], short_executor[], short_user[],
	short_top[], short_team[];
struct short_stop_word {
	const char *word, *kind, *field;
};
const struct short_stop_word *short_stop_at(size_t i); /* NULL past the last */
extern const char *const short_tool_names[];           /* ended by NULL */
