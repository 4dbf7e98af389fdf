/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/typed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/util.h"

int typed_fail(struct typed_reader *r, const struct origin *at,
	       const char *what)
{
	if (!r->has_failed)
		(void)err_set(r->err, EBADMSG, "%.200s:%u:%u: %s",
			      at && at->file ? at->file : r->file,
			      at && at->file ? at->line : 1,
			      at && at->file ? at->column : 1, what);
	r->has_failed = true;
	return -EBADMSG;
}

void *typed_memory(struct typed_reader *r, size_t n, size_t size)
{
	struct policy_block *b = calloc(1, sizeof(*b) + (n + 1) * size);

	if (!b) {
		(void)err_set(r->err, ENOMEM, "out of memory");
		r->has_failed = true;
		return NULL;
	}
	b->next = r->p->blocks;
	r->p->blocks = b;
	return b->data;
}

/* "top.key", by hand: this is most of what a run does with a policy. */
static bool join(char ret[TYPED_PATH], const char *top, const char *key)
{
	size_t a = strlen(top);
	size_t b = strlen(key);

	if (a + b + 2 > TYPED_PATH)
		return false;
	memcpy(ret, top, a);
	ret[a] = '.';
	memcpy(ret + a + 1, key, b);
	ret[a + 1 + b] = '\0';
	return true;
}

const struct flat_line *typed_get(struct typed_reader *r, const char *top,
				  const char *key)
{
	char path[TYPED_PATH];

	if (!join(path, top, key)) {
		(void)typed_fail(r, NULL, "a path is too long");
		return NULL;
	}
	return flat_get(&r->p->flat, path);
}

const char *typed_text(struct typed_reader *r, const char *top, const char *key)
{
	const struct flat_line *l = typed_get(r, top, key);

	return l ? l->value : NULL;
}

struct origin typed_origin(struct typed_reader *r, const char *top,
			   const char *key)
{
	const struct flat_line *l = typed_get(r, top, key);

	return origin_of(l ? l : flat_below(&r->p->flat, top));
}

void typed_word(struct typed_reader *r, const char *top, const char *key,
		struct policy_word *ret)
{
	const struct flat_line *l = typed_get(r, top, key);

	ret->text = l ? l->value : NULL;
	ret->at = origin_of(l);
}

static bool has_item(struct typed_reader *r, const char *path, size_t i)
{
	char item[TYPED_PATH];

	return JOIN(item, "%s.%zu", path, i) && flat_below(&r->p->flat, item);
}

/*
 * How many items a list has. They are numbered without gaps: an item that is
 * left out would be a rule that nobody sees.
 */
static size_t count_items(struct typed_reader *r, const char *path)
{
	const struct flat_line *l;
	size_t at = 0;
	size_t n = 0;

	while (has_item(r, path, n))
		n++;
	while ((l = flat_next(&r->p->flat, path, &at))) {
		char part[16];
		const char *next;
		uint64_t index;

		if (flat_part(l->path + strlen(path) + 1, part, sizeof(part),
			      &next) < 0 ||
		    num_parse(part, n ? n - 1 : 0, &index) < 0 || n == 0) {
			const struct origin o = origin_of(l);

			(void)typed_fail(r, &o, "an item of a list is missing");
			return 0;
		}
	}
	return n;
}

void typed_list(struct typed_reader *r, const char *top, const char *key,
		struct policy_list *ret)
{
	char path[TYPED_PATH];
	const struct flat_line *first;
	struct origin *origins;
	const char **v;

	if (!join(path, top, key)) {
		(void)typed_fail(r, NULL, "a path is too long");
		return;
	}
	first = flat_below(&r->p->flat, path);
	if (!first)
		return;
	ret->n = count_items(r, path);
	ret->is_stated = true;
	ret->at = origin_of(first);
	v = typed_memory(r, ret->n, sizeof(*v));
	origins = typed_memory(r, ret->n, sizeof(*origins));
	if (!v || !origins) {
		ret->n = 0;
		return;
	}
	for (size_t i = 0; i < ret->n; i++) {
		char number[24];
		const struct flat_line *l;

		(void)snprintf(number, sizeof(number), "%zu", i);
		l = typed_get(r, path, number);
		if (!l) {
			(void)typed_fail(r, &ret->at, "a list holds no words");
			ret->n = 0;
			return;
		}
		v[i] = l->value;
		origins[i] = origin_of(l);
	}
	ret->v = v;
	ret->origins = origins;
}

const struct policy_pair *typed_pairs(struct typed_reader *r, const char *path,
				      size_t *ret_n)
{
	const struct flat_line *l;
	struct policy_pair *pairs;
	size_t at = 0;
	size_t n = 0;

	while (flat_next(&r->p->flat, path, &at))
		n++;
	pairs = typed_memory(r, n, sizeof(*pairs));
	at = 0;
	for (size_t i = 0;
	     pairs && i < n && (l = flat_next(&r->p->flat, path, &at)); i++) {
		const char *key = l->path + strlen(path) + 1;
		char *name = typed_memory(r, strlen(key), 1);
		const char *next;

		if (!name)
			return NULL;
		if (flat_part(key, name, strlen(key) + 1, &next) < 0 || next) {
			const struct origin o = origin_of(l);

			(void)typed_fail(r, &o, "a name cannot be read");
			return NULL;
		}
		pairs[i].name = name;
		pairs[i].value = l->value;
		pairs[i].at = origin_of(l);
	}
	*ret_n = pairs ? n : 0;
	return pairs;
}

static int parse_plain(const char *t, uint64_t *ret)
{
	return num_parse(t, UINT64_MAX, ret);
}

static const struct {
	const char *name;
	int (*parse)(const char *text, uint64_t *ret);
} numbers[] = {
	[POLICY_TIMEOUT] = { "timeout", num_parse_duration },
	[POLICY_CPU_TIME] = { "cpu_time", num_parse_duration },
	[POLICY_MEMORY] = { "memory", num_parse_size },
	[POLICY_CPUS] = { "cpus", num_parse_milli },
	[POLICY_PIDS] = { "pids", parse_plain },
	[POLICY_OUTPUT] = { "output", num_parse_size },
	[POLICY_DISK] = { "disk", num_parse_size },
	[POLICY_FILES] = { "files", parse_plain },
};
_Static_assert(ARRAY_SIZE(numbers) == POLICY_NUMBERS, "a number has no name");

const char *policy_number_name(enum policy_number n)
{
	return numbers[n].name;
}

void typed_numbers(struct typed_reader *r, const char *top,
		   struct policy_value *ret)
{
	for (int i = 0; i < POLICY_NUMBERS; i++) {
		const struct flat_line *l = typed_get(r, top, numbers[i].name);

		if (!l)
			continue;
		ret[i].at = origin_of(l);
		ret[i].text = l->value;
		if (numbers[i].parse(l->value, &ret[i].value) < 0)
			(void)typed_fail(r, &ret[i].at,
					 "a number cannot be read");
		ret[i].is_stated = true;
	}
}

void *typed_items(struct typed_reader *r, const char *path, size_t size,
		  void (*each)(struct typed_reader *r, const char *top,
			       void *item),
		  size_t *ret_n)
{
	size_t n = count_items(r, path);
	char *items = typed_memory(r, n, size);

	for (size_t i = 0; items && i < n; i++) {
		char top[64];

		(void)snprintf(top, sizeof(top), "%s.%zu", path, i);
		each(r, top, items + i * size);
	}
	*ret_n = items ? n : 0;
	return items;
}
