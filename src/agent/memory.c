/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/memory.h"

#include <errno.h>
#include <string.h>

#include "agent/chat.h"
#include "agent/parts.h"
#include "base/buf.h"

#define ENTRIES_MAX 1024
#define ENTRY_MAX   ((size_t)64 << 10)

struct memory {
	char *name;
	json_t *entries;
	json_t *loaded;
};

static const struct setting settings[] = {
	{ "kind", SETTING_TEXT },
	{ "name", SETTING_TEXT },
	{ "entries", SETTING_LIST },
};

static json_t *entry(const json_t *v)
{
	const json_t *text = json_is_string(v) ? v
					       : json_object_get(v, "content");
	const json_t *more = json_object_get(v, "metadata");
	json_t *o;

	if (!json_is_string(text))
		return NULL;
	o = json_pack("{s:O, s:s, s:{}}", "content", text, "mime_type",
		      "text/plain", "metadata");
	if (o && json_is_object(more))
		(void)json_object_set(o, "metadata", (json_t *)more);
	return o;
}

static int add(json_t *list, const json_t *v, struct err *err)
{
	json_t *e = entry(v);

	if (!e)
		return err_set(err, EINVAL, "an entry of a memory is a text");
	if (json_array_size(list) >= ENTRIES_MAX ||
	    json_string_length(json_object_get(e, "content")) > ENTRY_MAX) {
		json_decref(e);
		return err_set(err, E2BIG,
			       "a memory holds %d entries of %zu bytes each",
			       ENTRIES_MAX, ENTRY_MAX);
	}
	if (json_array_append_new(list, e) < 0)
		return err_set(err, ENOMEM, "out of memory");
	return 0;
}

static int add_all(json_t *list, const json_t *from, struct err *err)
{
	size_t i;
	json_t *v;
	int r = 0;

	json_array_foreach(from, i, v)
	{
		r = add(list, v, err);
		if (r < 0)
			return err_wrap(err, "/entries/%zu", i);
	}
	return r;
}

int memory_new(const json_t *config, struct memory **ret, struct err *err)
{
	const char *kind = setting_text(config, "kind", "list");
	struct memory *m;
	int r = settings_check(config, settings, ARRAY_SIZE(settings), err);

	if (r < 0)
		return r;
	if (strcmp(kind, "list") != 0)
		return err_set(err, EINVAL,
			       "/kind: no such kind: '%.40s'; there is list",
			       kind);
	m = calloc(1, sizeof(*m));
	if (!m)
		return err_set(err, ENOMEM, "out of memory");
	m->name = strdup(setting_text(config, "name", "memory"));
	m->entries = json_array();
	r = m->name && m->entries
		    ? add_all(m->entries, json_object_get(config, "entries"),
			      err)
		    : err_set(err, ENOMEM, "out of memory");
	if (r < 0)
		memory_free(m);
	else
		*ret = m;
	return r;
}

void memory_free(struct memory *m)
{
	if (!m)
		return;
	free(m->name);
	json_decref(m->entries);
	json_decref(m->loaded);
	free(m);
}

int memory_add(struct memory *m, const char *text, struct err *err)
{
	json_t *v = json_string(text);
	int r;

	if (!v)
		return err_set(err, EINVAL, "an entry of a memory is a text");
	r = add(m->entries, v, err);
	json_decref(v);
	return r;
}

json_t *memory_query(const struct memory *m, const char *about)
{
	(void)about;
	return json_copy(m->entries);
}

void memory_clear(struct memory *m)
{
	(void)json_array_clear(m->entries);
}

json_t *memory_save(const struct memory *m)
{
	json_t *o = saved_new("memory.list", 1, m->loaded);

	if (json_object_set_new(o, "entries", json_copy(m->entries)) < 0) {
		json_decref(o);
		return NULL;
	}
	return o;
}

int memory_load(struct memory *m, const json_t *state, struct err *err)
{
	json_t *list;
	int r;

	if (saved_check(state, "memory.list", 1, err) < 0)
		return -EINVAL;
	list = json_array();
	if (!list)
		return err_set(err, ENOMEM, "out of memory");
	r = add_all(list, json_object_get(state, "entries"), err);
	if (r < 0) {
		json_decref(list);
		return r;
	}
	json_decref(m->entries);
	m->entries = list;
	json_decref(m->loaded);
	m->loaded = json_incref((json_t *)state);
	return 0;
}

json_t *memory_to_model(const json_t *found)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_free_ char *list = NULL;
	struct buf b;
	size_t i;
	json_t *e;

	if (json_array_size(found) == 0)
		return NULL;
	buf_init(&b, ENTRIES_MAX * (ENTRY_MAX + 16));
	json_array_foreach(found, i, e)
	{
		buf_printf(&b, "%s%zu. ", i ? "\n" : "", i + 1);
		buf_puts(&b, setting_text(e, "content", ""));
	}
	if (!b.error)
		list = buf_take(&b);
	buf_done(&b);
	text = list ? chat_untrusted("memory", list) : NULL;
	if (!text)
		return NULL;
	return json_pack("{s:s, s:s, s:s}", "role", "user", "source", "memory",
			 "content", text);
}
