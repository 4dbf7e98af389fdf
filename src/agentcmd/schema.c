/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The JSON Schema of both forms, from the tables that the reader itself uses;
 * api/agent.schema.json is its text. Only what FIELD_OWN stands for is
 * written here.
 */

#include <stdio.h>
#include <string.h>

#include "agentcmd/config.h"
#include "agentcmd/fields.h"
#include "agentcmd/short.h"
#include "base/util.h"

static json_t *to(const char *name)
{
	return json_pack("{s:o}", "$ref", json_sprintf("#/$defs/%s", name));
}

static json_t *fixed(const char *text)
{
	return json_loads(text, 0, NULL);
}

static json_t *list_of(json_t *item)
{
	return json_pack("{s:s, s:o}", "type", "array", "items", item);
}

static json_t *choice(const char *words)
{
	json_t *list = json_array();
	_cleanup_free_ char *copy = strdup(words);
	char *rest = copy;
	char *word;

	while ((word = strsep(&rest, "|")))
		json_array_append_new(list, json_string(word));
	return json_pack("{s:o}", "enum", list);
}

static json_t *of_fields(const struct field *fields);

/* FIELD_OWN: the parts that short-parts.c reads. */
static json_t *of_own(const char *name)
{
	char key[64];

	(void)snprintf(key, sizeof(key), "short.%s", name);
	return to(key);
}

static json_t *of_field(const struct field *f)
{
	switch (f->kind) {
	case FIELD_CHOICE:
		return choice(f->more);
	case FIELD_PART:
		return to(f->more);
	case FIELD_PARTS:
		return list_of(to(f->more));
	case FIELD_GROUP:
		return of_fields(f->fields);
	case FIELD_OWN:
		return of_own(f->name);
	default:
		return fixed(field_schema(f->kind));
	}
}

static json_t *of_fields(const struct field *fields)
{
	json_t *properties = json_object();
	json_t *required = json_array();
	json_t *ret;

	for (; fields->name; fields++) {
		json_object_set_new(properties, fields->name, of_field(fields));
		if (fields->is_required)
			json_array_append_new(required,
					      json_string(fields->name));
	}
	ret = json_pack("{s:s, s:o, s:b}", "type", "object", "properties",
			properties, "additionalProperties", 0);
	if (json_array_size(required))
		json_object_set(ret, "required", required);
	json_decref(required);
	return ret;
}

static json_t *of_provider(const struct provider *p)
{
	json_t *required = json_pack("[s]", "provider");
	json_t *config = of_fields(p->fields);

	if (json_object_get(config, "required"))
		json_array_append_new(required, json_string("config"));
	return json_pack("{s:s, s:{s:{s:s}, s:{s:s}, s:{s:i}, s:{s:s}, "
			 "s:{s:s}, s:o}, s:o, s:b}",
			 "type", "object", "properties", "provider", "const",
			 p->name, "component_type", "const", p->type, "version",
			 "const", 1, "label", "type", "string", "description",
			 "type", "string", "config", config, "required",
			 required, "additionalProperties", 0);
}

/* Each type is one of its providers. */
static void put_types(json_t *defs)
{
	const struct provider *p;

	for (size_t i = 0; (p = provider_at(i)); i++) {
		json_t *type = json_object_get(defs, p->type);

		json_object_set_new(defs, p->name, of_provider(p));
		if (!type) {
			type = json_pack("{s:[]}", "anyOf");
			json_object_set_new(defs, p->type, type);
		}
		json_array_append_new(json_object_get(type, "anyOf"),
				      to(p->name));
	}
}

/* The same config as a provider's, for maps of the short form. */
static json_t *config_of(const char *provider)
{
	return json_pack("{s:o}", "$ref",
			 json_sprintf("#/$defs/%s/properties/config",
				      provider));
}

static json_t *short_stop_schema(void)
{
	json_t *words = json_object();
	const struct short_stop_word *w;

	for (size_t i = 0; (w = short_stop_at(i)); i++) {
		char name[64] = "cordon.termination.";
		const struct field *f;
		json_t *plain;

		strncat(name, w->kind, sizeof(name) - strlen(name) - 1);
		f = provider_find(name)->fields;
		while (w->field && strcmp(f->name, w->field) != 0)
			f++;
		plain = !w->field ? json_pack("{s:b}", "const", 1)
			: strcmp(w->word, "time") == 0
				? fixed(field_schema(FIELD_TIME))
				: of_field(f);
		json_object_set_new(words, w->word,
				    json_pack("{s:[o, o]}", "anyOf", plain,
					      config_of(name)));
	}
	json_object_set_new(words, "any", list_of(to("short.stop")));
	json_object_set_new(words, "all", list_of(to("short.stop")));
	return json_pack("{s:[o, {s:s, s:o, s:b, s:i}]}", "anyOf",
			 list_of(to("short.stop")), "type", "object",
			 "properties", words, "additionalProperties", 0,
			 "minProperties", 1);
}

/* What any tool has, and an agent or a team of the short form. */
static json_t *short_inner_schema(const char *what)
{
	char name[64] = "cordon.tool.";
	json_t *ret;

	strncat(name, what, sizeof(name) - strlen(name) - 1);
	ret = of_fields(provider_find(name)->fields);
	json_object_set_new(json_object_get(ret, "properties"), what,
			    strcmp(what, "team") == 0
				    ? to("short.team")
				    : json_pack("{s:[o, o, o]}", "anyOf",
						of_fields(short_assistant),
						of_fields(short_executor),
						of_fields(short_user)));
	return ret;
}

static json_t *short_tools_schema(void)
{
	json_t *maps = json_object();
	json_t *program = of_fields(
		provider_find("cordon.tool.program")->fields);

	for (size_t i = 0; short_tool_names[i]; i++) {
		char name[64] = "cordon.tool.";

		strncat(name, short_tool_names[i],
			sizeof(name) - strlen(name) - 1);
		json_object_set_new(maps, short_tool_names[i], config_of(name));
	}
	/* Its path is its name. */
	json_object_del(program, "required");
	return list_of(
		json_pack("{s:[{s:s}, {s:s, s:o, s:{s:o}, s:{s:s}, s:i, s:i}, "
			  "o, o]}",
			  "anyOf", "type", "string", "type", "object",
			  "properties", maps, "patternProperties", "^[./].*/",
			  program, "additionalProperties", "type", "object",
			  "minProperties", 1, "maxProperties", 1,
			  short_inner_schema("agent"),
			  short_inner_schema("team")));
}

/* A static one has tools of the short form. */
static json_t *short_toolsets_schema(void)
{
	json_t *fixed_set = of_fields(
		provider_find("cordon.toolset.static")->fields);

	json_object_set_new(json_object_get(fixed_set, "properties"), "tools",
			    to("short.tools"));
	return list_of(
		json_pack("{s:[{s:s}, {s:s, s:{s:o, s:o}, s:b, s:i, s:i}]}",
			  "anyOf", "const", "sandbox", "type", "object",
			  "properties", "sandbox",
			  config_of("cordon.toolset.sandbox"), "static",
			  fixed_set, "additionalProperties", 0, "minProperties",
			  1, "maxProperties", 1));
}

/* Fields of one agent alone: those of its kind and those of the run. */
static json_t *single(const struct field *fields)
{
	json_t *ret = of_fields(fields);
	json_t *top = of_fields(short_top);

	json_object_update(json_object_get(ret, "properties"),
			   json_object_get(top, "properties"));
	json_decref(top);
	return ret;
}

static json_t *short_context_schema(void)
{
	json_t *summary = of_fields(
		provider_find("cordon.context.summary")->fields);

	json_object_set_new(json_object_get(summary, "properties"), "model",
			    to("short.model"));
	return json_pack(
		"{s:[{s:s}, {s:s, s:o, s:{s:[s,s,s,s]}}, {s:s, s:{s:{s:[o, "
		"o]}}, s:[s], s:b}]}",
		"anyOf", "const", "unbounded", "type", "object",
		"additionalProperties", fixed(field_schema(FIELD_COUNT)),
		"propertyNames", "enum", "last", "head", "tail", "tokens",
		"type", "object", "properties", "summary", "anyOf",
		fixed(field_schema(FIELD_COUNT)), summary, "required",
		"summary", "additionalProperties", 0);
}

static void put_short(json_t *defs)
{
	json_object_set_new(defs, "short.model",
			    json_pack("{s:[{s:s}, o]}", "anyOf", "type",
				      "string",
				      config_of("cordon.model.openai")));
	json_object_set_new(defs, "short.stop", short_stop_schema());
	json_object_set_new(defs, "short.tools", short_tools_schema());
	json_object_set_new(defs, "short.context", short_context_schema());
	json_object_set_new(defs, "short.toolsets", short_toolsets_schema());
	json_object_set_new(
		defs, "short.budget",
		fixed("{\"type\":\"object\",\"additionalProperties\":false,"
		      "\"properties\":{\"tokens\":{\"type\":\"integer\","
		      "\"minimum\":1},\"cost\":{\"type\":\"number\","
		      "\"minimum\":0},\"time\":{\"type\":[\"number\","
		      "\"string\"]},\"tool_calls\":{\"type\":\"integer\","
		      "\"minimum\":1}}}"));
	json_object_set_new(defs, "short.agents",
			    json_pack("{s:s, s:i, s:{s:[o, o, o]}}", "type",
				      "object", "minProperties", 1,
				      "additionalProperties", "anyOf",
				      of_fields(short_assistant),
				      of_fields(short_executor),
				      of_fields(short_user)));
	json_object_set_new(defs, "short.team", of_fields(short_team));
	json_object_set_new(defs, "short.assistant", single(short_assistant));
	json_object_set_new(defs, "short.code_executor",
			    single(short_executor));
	json_object_set_new(defs, "short.user", single(short_user));
}

json_t *config_schema(void)
{
	json_t *defs = json_object();

	put_types(defs);
	put_short(defs);
	return json_pack(
		"{s:s, s:s, s:s, s:[o, o, o, o, o, o], s:o}", "$schema",
		"https://json-schema.org/draft/2020-12/schema", "title",
		"An agent or a team of Cordon", "description",
		"The short form, and the component form that it stands for. "
		"Printed by 'cordon agent schema'.",
		"anyOf", to("short.team"), to("short.assistant"),
		to("short.code_executor"), to("short.user"), to("team"),
		to("agent"), "$defs", defs);
}
