/* SPDX-License-Identifier: Apache-2.0 */

/* Messages, and the types that were registered. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cell.h"

struct message *message_new(const char *type, json_t *data)
{
	size_t size = strlen(type) + 1;
	struct message *m = data ? malloc(sizeof(*m) + size) : NULL;

	if (!m) {
		json_decref(data);
		return NULL;
	}
	*m = (struct message){ .refs = 1,
			       .type = (char *)(m + 1),
			       .data = data };
	memcpy(m->type, type, size);
	return m;
}

struct message *message_ref(struct message *m)
{
	if (m)
		m->refs++;
	return m;
}

void message_unref(struct message *m)
{
	if (!m || --m->refs > 0)
		return;
	json_decref(m->data);
	free(m);
}

enum { NESTED_MAX = 2048, NUMBER_TEXT = 32 };

/* Not less than its text has, and quickly; stops when it is over `max`. */
static size_t bound(const json_t *o, size_t max, int depth)
{
	size_t sum = NUMBER_TEXT;
	const json_t *item;
	const char *key;
	size_t i;

	if (depth > NESTED_MAX)
		return max + 1;
	if (json_is_string(o))
		return 6 * json_string_length(o) + 2;
	json_array_foreach(o, i, item)
	{
		sum += bound(item, max, depth + 1) + 1;
		if (sum > max)
			return sum;
	}
	json_object_foreach((json_t *)o, key, item)
	{
		sum += 6 * strlen(key) + 4 + bound(item, max, depth + 1);
		if (sum > max)
			return sum;
	}
	return sum;
}

/* The text is made only where a quick look does not say that it is short. */
bool message_fits(struct message *m, size_t max)
{
	if (m->size == 0)
		m->size = bound(m->data, max, 0);
	if (m->size > max) /* 0: it contains itself */
		m->size = json_dumpb(m->data, NULL, 0,
				     JSON_COMPACT | JSON_ENCODE_ANY);
	return m->size > 0 && m->size <= max;
}

static struct known *find(const struct runtime *rt, const char *name)
{
	uint64_t hash = table_hash(&rt->messages, name, strlen(name));

	for (struct node *n = table_first(&rt->messages, hash); n;
	     n = table_next(n)) {
		struct known *k = (struct known *)n;

		if (strcmp(k->name, name) == 0)
			return k;
	}
	return NULL;
}

void known_free(struct known *k)
{
	json_decref(k->schema);
	free(k->name);
	free(k->base);
	free(k);
}

static bool is_same(const struct known *k, const struct message_type *t)
{
	bool is_base = t->base ? k->base && strcmp(k->base, t->base) == 0
			       : !k->base;

	return is_base && (k->schema == t->schema ||
			   json_equal(k->schema, (json_t *)t->schema));
}

static struct known *known_new(const struct message_type *t)
{
	struct known *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	k->name = strdup(t->name);
	k->base = t->base ? strdup(t->base) : NULL;
	k->schema = t->schema ? json_deep_copy(t->schema) : NULL;
	k->check = t->check;
	k->arg = t->arg;
	if (!k->name || (t->base && !k->base) || (t->schema && !k->schema)) {
		known_free(k);
		return NULL;
	}
	return k;
}

int runtime_register_message(struct runtime *rt, const struct message_type *t,
			     struct err *err)
{
	struct known *k = find(rt, t->name);

	if (!message_type_check(t->name))
		return err_set(err, EINVAL,
			       "not a full name of a message type: '%s'; such "
			       "as 'acme.Order'",
			       t->name);
	if (k && is_same(k, t))
		return 0;
	if (k)
		return err_set(err, EEXIST,
			       "message type '%s' is there already, with "
			       "another schema",
			       t->name);
	if (t->base && !find(rt, t->base))
		return err_set(err, ENOENT, "no such base type: '%s'", t->base);
	k = known_new(t);
	if (!k)
		return err_set(err, ENOMEM, "out of memory");
	table_add(&rt->messages, &k->node,
		  table_hash(&rt->messages, k->name, strlen(k->name)));
	k->later = rt->known;
	rt->known = k;
	return 0;
}

/* Bases are registered before what they are the base of: there is an end. */
const char *message_base(const struct runtime *rt, const char *type)
{
	const struct known *k = rt->known ? find(rt, type) : NULL;

	return k ? k->base : NULL;
}

bool message_check(const struct runtime *rt, const struct message *m,
		   struct fault *why)
{
	const struct known *k = find(rt, m->type);
	struct err err;

	err.text[0] = '\0';
	if (!k || !k->check || k->check(k->arg, k->schema, m->data, &err) == 0)
		return true;
	fault_set(why, FAULT_REJECTED, "%s is not valid: %s", m->type,
		  err.text);
	return false;
}
