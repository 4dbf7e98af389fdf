/* SPDX-License-Identifier: Apache-2.0 */

/* Walking the tables of fields, and reading single values. */

#include "face/docker/fields.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

bool is_requested(const json_t *v)
{
	switch (v ? json_typeof(v) : JSON_NULL) {
	case JSON_NULL:
	case JSON_FALSE:
		return false;
	case JSON_INTEGER:
		return json_integer_value(v) != 0;
	case JSON_REAL:
		return json_number_value(v) != 0;
	case JSON_STRING:
		return json_string_length(v) > 0;
	case JSON_ARRAY:
		return json_array_size(v) > 0;
	case JSON_OBJECT:
		return json_object_size(v) > 0;
	default:
		return true;
	}
}

static const struct field *find(const struct field *table, const char *name)
{
	for (; table->name; table++)
		if (strcasecmp(table->name, name) == 0)
			return table;
	return NULL;
}

/* Wherever it stands: its name is that of something that is refused. */
static const struct field *find_refused(const char *name)
{
	static const struct field *const all[] = {
		host_fields,  config_fields, endpoint_fields, exec_fields,
		mount_fields, bind_fields,   volume_fields,   tmpfs_fields
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		const struct field *f = find(all[i], name);

		if (f && (f->kind == FIELD_REFUSED || f->kind == FIELD_NULL))
			return f;
	}
	return NULL;
}

/* The value as it stands, short, for a message. */
static void show(const json_t *v, char *ret, size_t size)
{
	char *text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);

	(void)snprintf(ret, size, "%.100s%s", text ? text : "?",
		       text && strlen(text) > 100 ? "..." : "");
	free(text);
}

static int refuse(const struct field *f, struct making *k, json_t *v,
		  const char *where)
{
	char value[128];

	show(v, value, sizeof(value));
	if (f->kind == FIELD_NOT_THERE)
		return say_no(&k->said, 501,
			      "cordon: %s (%s) is not supported: %s", where,
			      value, f->why);
	return say_no(&k->said, 403, "cordon: %s (%s) is refused: %s", where,
		      value, f->why);
}

static int take_one(const struct field *f, struct making *k, json_t *v,
		    const char *where)
{
	if (f->kind == FIELD_NULL && !json_is_null(v))
		return refuse(f, k, v, where);
	if (!is_requested(v))
		return 0;
	switch (f->kind) {
	case FIELD_TAKEN:
		return f->take(k, v, where);
	case FIELD_REFUSED:
	case FIELD_NOT_THERE:
		return refuse(f, k, v, where);
	case FIELD_NOTED:
		warn(k, "cordon: %s is not acted on: %s", where, f->why);
		return 0;
	default:
		return 0;
	}
}

static bool is_twice(json_t *object, const char *name)
{
	const char *other;
	json_t *v;
	int n = 0;

	json_object_foreach(object, other, v) n += strcasecmp(other, name) == 0;
	return n > 1;
}

int fields_take(const struct field *table, const char *where, json_t *object,
		struct making *k)
{
	json_t *keep = k->keep;
	const char *name;
	json_t *v;

	json_object_foreach(object, name, v)
	{
		const struct field *f = find(table, name);
		bool is_unknown = !f;
		char full[160];

		if (!f)
			f = find_refused(name);
		if (!f)
			continue;
		(void)snprintf(full, sizeof(full), "%s%s", where, f->name);
		if (is_twice(object, name))
			return say_no(&k->said, 400, "%s is there twice", full);
		if (take_one(f, k, v, full) < 0)
			return -1;
		k->keep = keep;
		if (keep && !is_unknown)
			json_object_set(keep, f->name, v);
	}
	return 0;
}

int fields_part(const struct field *table, const char *where, json_t *object,
		struct making *k, void *part)
{
	json_t *keep = k->keep;
	void *before = k->part;
	char start[160];
	int r;

	if (!json_is_object(object))
		return say_no(&k->said, 400, "%s: a map is expected", where);
	(void)snprintf(start, sizeof(start), "%.150s.", where);
	k->keep = NULL;
	k->part = part;
	r = fields_take(table, start, object, k);
	k->keep = keep;
	k->part = before;
	return r;
}

/* ---- values ---- */

static int wrong(struct making *k, const char *where, const char *what)
{
	return say_no(&k->said, 400, "%s: %s is expected", where, what);
}

int need_int(struct making *k, json_t *v, const char *where, int64_t min,
	     int64_t max, int64_t *ret)
{
	if (!json_is_integer(v))
		return wrong(k, where, "a whole number");
	*ret = json_integer_value(v);
	if (*ret < min || *ret > max)
		return say_no(&k->said, 400,
			      "%s: %lld is not between %lld and %lld", where,
			      (long long)*ret, (long long)min, (long long)max);
	return 0;
}

int need_str(struct making *k, json_t *v, const char *where, const char **ret)
{
	if (!json_is_string(v))
		return wrong(k, where, "a text");
	*ret = json_string_value(v);
	return 0;
}

int need_bool(struct making *k, json_t *v, const char *where, bool *ret)
{
	if (!json_is_boolean(v))
		return wrong(k, where, "true or false");
	*ret = json_is_true(v);
	return 0;
}

json_t *need_strs(struct making *k, json_t *v, const char *where, bool or_one)
{
	json_t *item;
	size_t i;

	if (or_one && json_is_string(v))
		return json_pack("[O]", v);
	if (!json_is_array(v))
		return (void)wrong(k, where, "a list of texts"), NULL;
	json_array_foreach(v, i, item) if (!json_is_string(item)) return (
		void)wrong(k, where, "a list of texts"),
		NULL;
	return json_incref(v);
}

int need_user(struct making *k, json_t *v, const char *where,
	      const char *instead, const char **ret)
{
	*ret = NULL;
	if (need_str(k, v, where, ret) < 0)
		return -1;
	if (!user_is_root(*ret) || k->policy.allow_root_inside)
		return 0;
	warn(k,
	     "cordon: User %.40s is replaced by %s user: "
	     "docker.allow_root_inside is false",
	     *ret, instead);
	*ret = NULL;
	return 0;
}

int take_cmd(struct making *k, json_t *v, const char *where)
{
	k->cmd = need_strs(k, v, where, true);
	return k->cmd ? 0 : -1;
}

int take_env(struct making *k, json_t *v, const char *where)
{
	k->env = need_strs(k, v, where, false);
	return k->env ? 0 : -1;
}

int need_each(struct making *k, json_t *v, const char *where,
	      int (*each)(struct making *k, const char *text,
			  const char *where))
{
	json_t *list = need_strs(k, v, where, false);
	int r = list ? 0 : -1;

	for (size_t i = 0; r == 0 && i < json_array_size(list); i++)
		r = each(k, json_string_value(json_array_get(list, i)), where);
	json_decref(list);
	return r;
}

void making_denied(const struct making *k, const char *id, const char *name)
{
	json_t *doc;
	char *text;

	if (k->said.status != 403)
		return;
	doc = json_pack("{s:o,s:o,s:o}", "name", doc_string(name), "image",
			doc_string(k->image), "reason",
			doc_string(k->said.text));
	text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;
	events_tell(k->d->m,
		    &(struct event){ .type = "cordon",
				     .action = "policy_deny",
				     .id = id,
				     .owner = k->peer->uid,
				     .attributes = text ? text : "{}" });
	free(text);
	json_decref(doc);
}

void warn(struct making *k, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	json_array_append_new(k->warnings, doc_string(text));
}

/* ---- settings ---- */

void set_add(struct making *k, const char *name, const char *text)
{
	json_t *list = json_object_get(k->settings, name);

	if (!list) {
		list = json_array();
		json_object_set_new(k->settings, name, list);
	}
	json_array_append_new(list, json_string(text));
}

void set_int(struct making *k, const char *name, int64_t n)
{
	json_object_set_new(k->settings, name, json_integer(n));
}

void set_str(struct making *k, const char *name, const char *text)
{
	json_object_set_new(k->settings, name, json_string(text));
}

/* Whether a list has "...:part:..." or "part" in it. */
bool set_has(const struct making *k, const char *name, const char *part)
{
	json_t *v;
	size_t i;

	json_array_foreach(json_object_get(k->settings, name), i, v)
	{
		const char *text = json_string_value(v);
		const char *colon = strchr(text, ':');
		size_t len = strlen(part);

		if (strcmp(text, part) == 0)
			return true;
		if (colon && strncmp(colon + 1, part, len) == 0 &&
		    (colon[1 + len] == ':' || !colon[1 + len]))
			return true;
	}
	return false;
}
