/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation: a message is never changed, since others may hold it.
 * Each function here gives back a new reference: to the very value where
 * nothing is found in it, else to a new one, made of the old parts.
 *
 * In a message of a known form, labels (ids, names) are left alone, and what
 * it says is free: any JSON, of which each string and each name is looked
 * at, and in which nothing is taken for a message again. Otherwise a tool
 * could write {"role":"system",...} and be filtered as somebody else.
 */

#include "runtime/filter-walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "runtime/filter-policy.h"

#define MAX_DEPTH  128
#define MAX_LAYERS 4 /* of JSON in a string in JSON */

enum mode {
	MODE_OUTER,   /* messages may be in it */
	MODE_MESSAGE, /* what a message says: calls and results have labels */
	MODE_FREE,
};

struct at {
	enum mode mode;
	unsigned int roles;
};

static json_t *walk(struct sweep *s, json_t *v, struct at at);

static bool is_json(const char *p, size_t len)
{
	size_t i = strspn(p, " \t\r\n");

	return len >= i + 2 && (p[i] == '{' || p[i] == '[');
}

/*
 * Raw JSON in a string, such as the arguments of a call. Read as what it
 * stands for, since there are many ways to write a letter. NULL: it is none;
 * also where a name is twice there, as the reader may take either.
 */
static json_t *walk_layer(struct sweep *s, json_t *string)
{
	const char *text = json_string_value(string);
	size_t len = json_string_length(string);
	json_t *inner = NULL;
	json_t *ret = NULL;
	char *dumped;

	if (is_json(text, len))
		inner = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
	if (!inner)
		return NULL;
	if (++s->layers > MAX_LAYERS)
		s->error = -ELOOP;
	else
		ret = walk(s, inner, (struct at){ MODE_FREE, s->on });
	s->layers--;
	if (ret && ret != inner) {
		dumped = json_dumps(ret, JSON_COMPACT);
		json_decref(ret);
		ret = dumped ? json_string(dumped) : NULL;
		free(dumped);
	} else if (ret) {
		json_decref(ret);
		ret = json_incref(string);
	}
	json_decref(inner);
	if (!ret && s->error == 0)
		s->error = -ENOMEM;
	return ret;
}

static json_t *walk_string(struct sweep *s, json_t *v)
{
	json_t *ret = walk_layer(s, v);
	size_t len;
	char *text;

	if (ret || s->error < 0)
		return ret;
	text = sweep_text(s, json_string_value(v), json_string_length(v), &len);
	if (s->error < 0)
		return NULL;
	ret = text ? json_stringn(text, len) : json_incref(v);
	free(text);
	if (!ret)
		s->error = -ENOMEM;
	return ret;
}

/* A string of an array that stands for text; NULL: it is something else. */
static json_t *piece_of(json_t *item)
{
	json_t *text = json_is_object(item) ? json_object_get(item, "text")
					    : item;

	return json_is_string(text) ? text : NULL;
}

static int put_piece(json_t *array, size_t i, json_t *piece)
{
	json_t *item = json_array_get(array, i);

	if (json_is_string(item))
		return json_array_set(array, i, piece);
	item = json_copy(item);
	if (!item || json_object_set(item, "text", piece) < 0) {
		json_decref(item);
		return -1;
	}
	return json_array_set_new(array, i, item);
}

/* Text that was cut so that no part of it looks like anything. */
static json_t *walk_pieces(struct sweep *s, json_t *array)
{
	size_t size = json_array_size(array);
	_cleanup_free_ json_t **v = calloc(size + 1, sizeof(json_t *));
	_cleanup_free_ size_t *places = calloc(size + 1, sizeof(size_t));
	json_t *ret = NULL;
	size_t n = 0;

	for (size_t i = 0; v && places && i < size; i++) {
		json_t *piece = piece_of(json_array_get(array, i));

		if (!piece)
			continue;
		places[n] = i;
		v[n++] = json_incref(piece);
	}
	if (!v || !places)
		s->error = -ENOMEM;
	else if (n > 1 && sweep_pieces(s, v, n) && s->error == 0)
		ret = json_copy(array);
	for (size_t i = 0; i < n; i++) {
		if (ret && put_piece(ret, places[i], v[i]) < 0)
			s->error = -ENOMEM;
		json_decref(v[i]);
	}
	return ret ? ret : json_incref(array);
}

static json_t *walk_array(struct sweep *s, json_t *v, struct at at)
{
	json_t *out = json_array();
	bool is_changed = false;
	json_t *item;
	size_t i;

	json_array_foreach(v, i, item)
	{
		json_t *now = s->error == 0 ? walk(s, item, at) : NULL;

		is_changed |= now != item;
		if (!out || json_array_append_new(out, now) < 0)
			s->error = s->error ? s->error : -ENOMEM;
	}
	if (!is_changed || s->error < 0) {
		json_decref(out);
		out = json_incref(v);
	}
	if (s->error == 0 && (at.roles & s->on)) {
		json_t *whole = walk_pieces(s, out);

		json_decref(out);
		out = whole;
	}
	return out;
}

/* How the members of an object are to be looked at. */
static struct at inside(const struct sweep *s, const json_t *o, struct at at,
			bool *ret_labels)
{
	unsigned int roles = 0;

	*ret_labels = false;
	if (at.mode == MODE_OUTER)
		roles = role_of(o, s->people);
	if (roles) {
		*ret_labels = true;
		return (struct at){ role_is_free(o) ? MODE_FREE : MODE_MESSAGE,
				    roles };
	}
	if (at.mode == MODE_OUTER)
		*ret_labels = s->is_ours;
	/* A call, a result or a part, directly in what a message says. */
	if (at.mode == MODE_MESSAGE) {
		*ret_labels = json_object_get(o, "arguments") ||
			      json_object_get(o, "call_id") || role_is_image(o);
		at.mode = MODE_FREE;
	}
	return at;
}

static json_t *walk_named(struct sweep *s, const char *name, json_t *v,
			  struct at at)
{
	if ((at.roles & s->on) && json_is_string(v) &&
	    sweep_named(s, name, json_string_value(v), json_string_length(v)))
		return json_string(s->action == RULE_MASK ? "[masked: secret]"
							  : "");
	return walk(s, v, at);
}

static json_t *walk_member(struct sweep *s, json_t *o, const char *name,
			   json_t *v, struct at at, bool has_labels)
{
	if (has_labels && (at.mode == MODE_OUTER ? role_is_own_label(name)
						 : role_is_label(name)))
		return json_incref(v);
	if (has_labels && strcmp(name, "data") == 0 && role_is_image(o))
		return json_incref(v);
	if (has_labels && at.mode == MODE_MESSAGE && role_is_nested(name))
		return walk(s, v, (struct at){ MODE_OUTER, at.roles });
	/* A piece of an answer could be one of a secret: it waits. */
	if (has_labels && role_is_chunk(o) && (at.roles & s->on) &&
	    strcmp(name, "content") == 0)
		return json_string("");
	if (at.mode == MODE_OUTER && role_of_member(name))
		at.roles = role_of_member(name);
	return walk_named(s, name, v, at);
}

/* The name of a free member; the caller frees it. NULL: as it is. */
static char *walk_name(struct sweep *s, const char *name, struct at at,
		       bool has_labels)
{
	size_t len;

	if (has_labels || !(at.roles & s->on))
		return NULL;
	return sweep_text(s, name, strlen(name), &len);
}

static int put_member(json_t *out, const char *name, json_t *v)
{
	char other[64];

	/* Two names that became the same: both stay. */
	for (int i = 2; json_object_get(out, name) && i < 1000; i++) {
		(void)snprintf(other, sizeof(other), "%.50s %d", name, i);
		if (!json_object_get(out, other))
			return json_object_set_new(out, other, v);
	}
	return json_object_set_new(out, name, v);
}

static json_t *walk_object(struct sweep *s, json_t *o, struct at at)
{
	json_t *out = json_object();
	bool is_changed = false;
	bool has_labels;
	const char *name;
	json_t *v;

	at = inside(s, o, at, &has_labels);
	json_object_foreach(o, name, v)
	{
		_cleanup_free_ char *other = NULL;
		json_t *now = NULL;

		if (s->error == 0)
			other = walk_name(s, name, at, has_labels);
		if (s->error == 0)
			now = walk_member(s, o, name, v, at, has_labels);
		is_changed |= other || now != v;
		if (!out || put_member(out, other ? other : name, now) < 0)
			s->error = s->error ? s->error : -ENOMEM;
	}
	if (is_changed && s->error == 0)
		return out;
	json_decref(out);
	return json_incref(o);
}

static json_t *walk(struct sweep *s, json_t *v, struct at at)
{
	json_t *ret;

	/* What is refused need not be looked at to the end. */
	if (s->action == RULE_REJECT && s->is_found)
		return json_incref(v);
	if (++s->depth > MAX_DEPTH)
		s->error = -E2BIG;
	if (s->error < 0)
		ret = NULL;
	else if (json_is_object(v))
		ret = walk_object(s, v, at);
	else if (json_is_array(v))
		ret = walk_array(s, v, at);
	else if (json_is_string(v) && (at.roles & s->on))
		ret = walk_string(s, v);
	else
		ret = json_incref(v);
	s->depth--;
	return ret;
}

json_t *sweep_json(struct sweep *s, json_t *data, unsigned int roles)
{
	struct at at = { roles ? MODE_FREE : MODE_OUTER,
			 roles ? roles : ROLE_ALL };
	json_t *ret = walk(s, data, at);

	if (s->error == 0)
		return ret;
	json_decref(ret);
	return NULL;
}
