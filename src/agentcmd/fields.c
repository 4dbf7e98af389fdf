/* SPDX-License-Identifier: Apache-2.0 */

/* Checks values against the tables; the tables are in providers.c. */

#include "agentcmd/fields.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <cordon/cordon.h>

#include "agent/team.h"
#include "base/num.h"
#include "base/util.h"

#define NAME_SCHEMA                                                            \
	"{\"type\":\"string\",\"maxLength\":64,\"pattern\":"                   \
	"\"^[A-Za-z_][A-Za-z0-9_]*$\"}"
#define TOOL_SCHEMA                                                            \
	"{\"type\":\"string\",\"pattern\":\"^[A-Za-z0-9_-]{1,64}$\"}"
#define HANDOFFS                                                               \
	"{\"anyOf\":[" NAME_SCHEMA ",{\"type\":\"array\",\"items\":{"          \
	"\"anyOf\":[" NAME_SCHEMA ",{\"type\":\"object\",\"properties\":{"     \
	"\"target\":" NAME_SCHEMA ",\"description\":{\"type\":\"string\"},"    \
	"\"name\":" TOOL_SCHEMA ",\"message\":{\"type\":\"string\"}},"         \
	"\"required\":[\"target\"],\"additionalProperties\":false}]}}]}"

static bool is_text(const json_t *v, const struct field *f)
{
	(void)f;
	return json_is_string(v);
}

static bool is_name(const json_t *v, const struct field *f)
{
	const char *s = json_string_value(v);

	(void)f;
	return s && *s && strlen(s) <= 64 && !strchr("0123456789", *s) &&
	       !s[strspn(s, "abcdefghijklmnopqrstuvwxyz"
			    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")];
}

static bool is_tool(const json_t *v, const struct field *f)
{
	const char *s = json_string_value(v);

	(void)f;
	return s && *s && strlen(s) <= 64 &&
	       !s[strspn(s, "abcdefghijklmnopqrstuvwxyz"
			    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")];
}

static bool is_bool(const json_t *v, const struct field *f)
{
	(void)f;
	return json_is_boolean(v);
}

static bool is_count(const json_t *v, const struct field *f)
{
	(void)f;
	return json_is_integer(v) && json_integer_value(v) >= 1 &&
	       json_integer_value(v) <= 1000000000;
}

static bool is_number(const json_t *v, const struct field *f)
{
	(void)f;
	return json_is_number(v) && json_number_value(v) >= 0;
}

static bool is_texts(const json_t *v, const struct field *f)
{
	size_t i;
	json_t *item;

	(void)f;
	for (i = 0; (item = json_array_get(v, i)); i++)
		if (!json_is_string(item))
			return false;
	return json_is_array(v) || json_is_string(v);
}

static bool is_map(const json_t *v, const struct field *f)
{
	(void)f;
	return json_is_object(v);
}

static bool is_names(const json_t *v, const struct field *f)
{
	const char *key;
	json_t *item;

	json_object_foreach((json_t *)v, key, item)
	{
		if (!is_tool(item, f))
			return false;
	}
	return json_is_object(v);
}

static bool is_secret(const json_t *v, const struct field *f)
{
	(void)f;
	return json_object_size(v) == 1 &&
	       (json_is_string(json_object_get(v, "env")) ||
		json_is_string(json_object_get(v, "file")));
}

static bool is_choice(const json_t *v, const struct field *f)
{
	const char *s = json_string_value(v);
	size_t len = s ? strlen(s) : 0;

	for (const char *w = f->more; len && w; w = strchr(w, '|')) {
		w += *w == '|';
		if (strcspn(w, "|") == len && strncmp(w, s, len) == 0)
			return true;
	}
	return false;
}

static bool is_time(const json_t *v, const struct field *f)
{
	uint64_t us;

	return is_number(v, f) ||
	       (json_is_string(v) &&
		num_parse_duration(json_string_value(v), &us) == 0);
}

static bool is_handoffs(const json_t *v, const struct field *f)
{
	(void)f;
	return json_is_array(v) || json_is_string(v);
}

static const struct {
	const char *takes;
	bool (*is)(const json_t *v, const struct field *f);
	const char *schema;
} kinds[FIELD_KINDS] = {
	[FIELD_TEXT] = { "a text", is_text, "{\"type\":\"string\"}" },
	[FIELD_NAME] = { "a name of letters, digits and _", is_name,
			 NAME_SCHEMA },
	[FIELD_TOOL] = { "a name of letters, digits, _ and -", is_tool,
			 TOOL_SCHEMA },
	[FIELD_BOOL] = { "true or false", is_bool, "{\"type\":\"boolean\"}" },
	[FIELD_COUNT] = { "a whole number from 1 on", is_count,
			  "{\"type\":\"integer\",\"minimum\":1,"
			  "\"maximum\":1000000000}" },
	[FIELD_NUMBER] = { "a number, not negative", is_number,
			   "{\"type\":\"number\",\"minimum\":0}" },
	[FIELD_TEXTS] = { "a list of texts", is_texts,
			  "{\"anyOf\":[{\"type\":\"string\"},{\"type\":"
			  "\"array\",\"items\":{\"type\":\"string\"}}]}" },
	[FIELD_MAP] = { "a map", is_map, "{\"type\":\"object\"}" },
	[FIELD_NAMES] = { "a map: a tool's name, and what it is to be called",
			  is_names,
			  "{\"type\":\"object\",\"additionalProperties\":"
			  "{\"type\":\"string\",\"pattern\":"
			  "\"^[A-Za-z0-9_-]{1,64}$\"}}" },
	[FIELD_SECRET] = { "{env: NAME} or {file: PATH}; a secret is never "
			   "written down here",
			   is_secret,
			   "{\"type\":\"object\",\"minProperties\":1,"
			   "\"maxProperties\":1,\"additionalProperties\":false,"
			   "\"properties\":{\"env\":{\"type\":\"string\"},"
			   "\"file\":{\"type\":\"string\"}}}" },
	[FIELD_CHOICE] = { NULL, is_choice, NULL },
	[FIELD_TIME] = { "seconds, or a time such as 30s or 2m", is_time,
			 "{\"anyOf\":[{\"type\":\"number\",\"minimum\":0},"
			 "{\"type\":\"string\",\"pattern\":"
			 "\"^[0-9]+(\\\\.[0-9]+)?(ms|s|m|h)?$\"}]}" },
	[FIELD_BOX] = { "a map of settings as of cordon-run(1)", is_map,
			"{\"type\":\"object\"}" },
	[FIELD_SPEAKER] = { "the name of a function", is_text,
			    "{\"type\":\"string\"}" },
	[FIELD_CONDITION] = { "the name of a function", is_text,
			      "{\"type\":\"string\"}" },
	[FIELD_HANDOFFS] = { "a list of agents", is_handoffs, HANDOFFS },
};

const char *field_schema(enum field_kind kind)
{
	return kinds[kind].schema;
}

/* Files of variables are read when a box is made, not when it is described. */
static char *without_files(const json_t *v)
{
	static const char *const files[] = { "env_file", "env-file" };
	json_t *copy = json_copy((json_t *)v);
	char *text;

	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		json_object_del(copy, files[i]);
	text = json_dumps(copy, JSON_COMPACT);
	json_decref(copy);
	return text;
}

/* Names and values of settings, as the library itself takes them. */
static int check_box(struct at *at, const json_t *v)
{
	struct cordon_spec *s = cordon_spec_new();
	_cleanup_free_ char *text = without_files(v);
	struct cordon_error why = { 0 };
	int e = 0;

	if (!s || !text)
		e = at_error(at, "out of memory");
	else if (cordon_spec_set_json(s, text, strlen(text), &why) < 0)
		e = at_error(at, "%s", why.text);
	cordon_spec_free(s);
	return e;
}

static int check_parts(struct at *at, const json_t *v, const struct field *f)
{
	json_t *item;
	size_t i;

	if (!json_is_array(v))
		return at_error(at,
				"not a list; write a list of components "
				"of the type %s",
				f->more);
	json_array_foreach(v, i, item)
	{
		size_t up = at_down_to(at, i);

		if (component_check(at, item, f->more) < 0)
			return -EINVAL;
		at_up(at, up);
	}
	return 0;
}

/* A name in a file leads to nothing but what the program has added. */
static int check_function(struct at *at, const json_t *v, enum field_kind kind)
{
	const char *name = json_string_value(v);
	bool is_speaker = kind == FIELD_SPEAKER;

	if (is_speaker ? selector_has_function(name)
		       : termination_has_function(name))
		return 0;
	return at_error(at,
			"no function is registered as '%.64s'; a program that "
			"links libcordon-agent adds it with %s() before it "
			"reads this file; 'cordon agent' has none",
			name,
			is_speaker ? "cordon_agent_add_speaker"
				   : "cordon_agent_add_condition");
}

static const struct field handoff_fields[] = {
	MUST("target", FIELD_NAME),
	FIELD("description", FIELD_TEXT),
	FIELD("name", FIELD_TOOL),
	FIELD("message", FIELD_TEXT),
	{ 0 },
};

static int check_handoffs(struct at *at, const json_t *v)
{
	static const struct field target = FIELD("target", FIELD_NAME);
	json_t *item;
	size_t i;

	if (json_is_string(v))
		return field_check(at, v, &target);
	json_array_foreach(v, i, item)
	{
		size_t up = at_down_to(at, i);
		int e = json_is_string(item)
				? field_check(at, item, &target)
				: fields_check(at, item, handoff_fields,
					       "a handoff");

		if (e < 0)
			return e;
		at_up(at, up);
	}
	return 0;
}

static int check_further(struct at *at, const json_t *v, enum field_kind kind)
{
	switch (kind) {
	case FIELD_BOX:
		return check_box(at, v);
	case FIELD_SPEAKER:
	case FIELD_CONDITION:
		return check_function(at, v, kind);
	case FIELD_HANDOFFS:
		return check_handoffs(at, v);
	default:
		return 0;
	}
}

int field_check(struct at *at, const json_t *value, const struct field *f)
{
	if (f->kind == FIELD_OWN)
		return 0;
	if (f->kind == FIELD_PART)
		return component_check(at, value, f->more);
	if (f->kind == FIELD_PARTS)
		return check_parts(at, value, f);
	if (f->kind == FIELD_GROUP)
		return fields_check(at, value, f->fields, f->name);
	if (!kinds[f->kind].is(value, f))
		return at_error(at, "write %s",
				f->kind == FIELD_CHOICE ? f->more
							: kinds[f->kind].takes);
	return check_further(at, value, f->kind);
}

static const struct field *find(const struct field *f, const char *name)
{
	for (; f->name; f++)
		if (strcmp(f->name, name) == 0)
			return f;
	return NULL;
}

/* "a, b, c" */
static const char *known(const struct field *f, char *ret, size_t size)
{
	size_t at = 0;

	ret[0] = '\0';
	for (; f->name && at < size; f++) {
		int n = snprintf(ret + at, size - at, "%s%s", at ? ", " : "",
				 f->name);

		at += n > 0 ? (size_t)n : 0;
	}
	return *ret ? ret : "nothing";
}

int fields_check(struct at *at, const json_t *map, const struct field *fields,
		 const char *what)
{
	const char *key;
	char list[256];
	json_t *value;

	if (!json_is_object(map))
		return at_error(at, "not a map; %s has %s", what,
				known(fields, list, sizeof(list)));
	json_object_foreach((json_t *)map, key, value)
	{
		const struct field *f = find(fields, key);
		size_t up = at_down(at, key);

		if (!f)
			return at_error(at, "no such field; %s has %s", what,
					known(fields, list, sizeof(list)));
		if (field_check(at, value, f) < 0)
			return -EINVAL;
		at_up(at, up);
	}
	for (const struct field *f = fields; f->name; f++)
		if (f->is_required && !json_object_get(map, f->name))
			return at_error(at, "'%s' is missing in %s", f->name,
					what);
	return 0;
}

static const struct field envelope[] = {
	MUST("provider", FIELD_TEXT),
	PART("component_type", FIELD_CHOICE,
	     "team|agent|model|tool|toolset|termination|context|memory|"
	     "executor"),
	FIELD("version", FIELD_COUNT),
	FIELD("label", FIELD_TEXT),
	FIELD("description", FIELD_TEXT),
	FIELD("config", FIELD_OWN),
	{ 0 },
};

static int check_envelope(struct at *at, const json_t *c,
			  const struct provider *p, const char *type)
{
	const char *said = json_string_value(
		json_object_get(c, "component_type"));
	const json_t *version = json_object_get(c, "version");

	if (type && strcmp(p->type, type) != 0)
		return at_error(at, "'%s' is of the type %s; here is a %s",
				p->name, p->type, type);
	if (said && strcmp(said, p->type) != 0)
		return at_error(at,
				"component_type is '%s', but '%s' is of "
				"the type %s",
				said, p->name, p->type);
	if (version && json_integer_value(version) != 1)
		return at_error(at, "version %lld of '%s'; this build knows 1",
				(long long)json_integer_value(version),
				p->name);
	return 0;
}

int component_check(struct at *at, const json_t *c, const char *type)
{
	const struct provider *p;
	json_t *none = NULL;
	size_t up;
	int e;

	if (fields_check(at, c, envelope, "a component") < 0)
		return -EINVAL;
	p = provider_find(component_provider(c));
	if (!p) {
		(void)at_down(at, "provider");
		if (provider_absent(component_provider(c)))
			return at_error(at, "%s",
					provider_absent(component_provider(c)));
		return at_error(at,
				"no such provider '%.80s'; "
				"'cordon agent schema' lists them",
				component_provider(c));
	}
	if (check_envelope(at, c, p, type) < 0)
		return -EINVAL;
	up = at_down(at, "config");
	if (!component_config(c))
		none = json_object();
	e = fields_check(at, none ? none : component_config(c), p->fields,
			 p->name);
	json_decref(none);
	if (e == 0)
		at_up(at, up);
	return e;
}

json_t *component_new(const char *provider, json_t *config)
{
	const struct provider *p = provider_find(provider);

	return json_pack("{s:s, s:s, s:i, s:o}", "provider", provider,
			 "component_type", p ? p->type : "tool", "version", 1,
			 "config", config);
}

const char *component_provider(const json_t *c)
{
	return json_string_value(json_object_get(c, "provider"));
}

json_t *component_config(const json_t *c)
{
	return json_object_get(c, "config");
}

const char *component_kind(const json_t *c)
{
	const char *name = component_provider(c);
	const char *dot = name ? strrchr(name, '.') : NULL;

	return dot ? dot + 1 : "";
}

const char *provider_kind(const struct provider *p)
{
	return strrchr(p->name, '.') + 1;
}
