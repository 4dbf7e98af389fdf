/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a configuration may say: tables of fields, and the table of providers.
 *
 * A component is {"provider","component_type","version","label",
 * "description","config"}. Its provider is a name in the table, and nothing
 * else: no name leads to code that is loaded, imported or run. The schema in
 * api/agent.schema.json is printed from the same tables.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "agentcmd/doc.h"

enum field_kind {
	FIELD_TEXT,
	FIELD_NAME, /* of an agent or a team */
	FIELD_TOOL, /* of a tool */
	FIELD_BOOL,
	FIELD_COUNT,     /* a whole number, at least 1 */
	FIELD_NUMBER,    /* not negative */
	FIELD_TEXTS,     /* a list of texts; one text is a list of one */
	FIELD_MAP,       /* whatever it holds */
	FIELD_NAMES,     /* a map of names of tools, to their new ones */
	FIELD_SECRET,    /* {env: NAME} or {file: PATH} */
	FIELD_CHOICE,    /* `more`: "stop|skip|retry" */
	FIELD_TIME,      /* seconds, or text such as 30s */
	FIELD_BOX,       /* settings of a box */
	FIELD_SPEAKER,   /* a function of the program: who is next */
	FIELD_CONDITION, /* or whether it ends */
	FIELD_HANDOFFS,  /* a list of names, or of maps with more */
	FIELD_PART,      /* a component of the type `more` */
	FIELD_PARTS,     /* a list of them */
	FIELD_GROUP,     /* a map with the fields `fields` */
	FIELD_OWN,       /* its reader checks it (short.c) */
	FIELD_KINDS
};

struct field {
	const char *name;
	enum field_kind kind;
	const char *more;
	bool is_required;
	const struct field *fields;
};

/* Rows of such tables, which end with { 0 }. */
#define FIELD(n, k)                                                            \
	{                                                                      \
		.name = (n), .kind = (k)                                       \
	}
#define MUST(n, k)                                                             \
	{                                                                      \
		.name = (n), .kind = (k), .is_required = true                  \
	}
#define PART(n, k, m)                                                          \
	{                                                                      \
		.name = (n), .kind = (k), .more = (m)                          \
	}
#define MUST_PART(n, k, m)                                                     \
	{                                                                      \
		.name = (n), .kind = (k), .more = (m), .is_required = true     \
	}
#define GROUP(n, f)                                                            \
	{                                                                      \
		.name = (n), .kind = FIELD_GROUP, .fields = (f)                \
	}

struct provider {
	const char *name; /* "cordon.team.round_robin" */
	const char *type; /* "team" */
	const struct field *fields;
};

const struct provider *provider_find(const char *name);
const struct provider *provider_at(size_t i); /* NULL past the last */
/* Why one that people look for is not there; NULL: nobody does. */
const char *provider_absent(const char *name);
/* The last part of its name: "round_robin". */
const char *provider_kind(const struct provider *p);

/* Each field is known, none is missing, values are what they should be. */
int fields_check(struct at *at, const json_t *map, const struct field *fields,
		 const char *what);
/* One value; for readers of FIELD_OWN. */
int field_check(struct at *at, const json_t *value, const struct field *f);
/* A whole component, with all in it; type NULL: any. */
int component_check(struct at *at, const json_t *c, const char *type);

/* A component around `config`, which is taken over. */
json_t *component_new(const char *provider, json_t *config);
const char *component_provider(const json_t *c);
json_t *component_config(const json_t *c);
/* Of its provider: "round_robin". */
const char *component_kind(const json_t *c);

/* JSON Schema of one kind of value, for schema.c; NULL for what is made. */
const char *field_schema(enum field_kind kind);
extern const struct field budget_fields[];
