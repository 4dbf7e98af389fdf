/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `extends`: a file over another one.
 *
 * It may tighten (a lower number, a stricter word) and add (to lists, and
 * what the other does not state), and nothing else. What would loosen or hide
 * something is an error that names both places, so that whoever reads the
 * base can rely on it. An empty list over one with items would look as if it
 * allowed nothing, and does not: that is an error too.
 */

#include "desk/policy-tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"

static int merge_scalar(struct node *base, struct node *child, struct err *err)
{
	int c = grammar_compare(base->grammar, child->value, base->value);

	if (c > 0)
		return node_error(child, err,
				  "'%s' would loosen '%s' of %s:%u; what "
				  "extends another policy may only tighten or "
				  "add",
				  child->value, base->value, base->file,
				  base->line);
	free(base->value);
	base->value = take_ptr(child->value);
	base->file = child->file;
	base->line = child->line;
	base->column = child->column;
	return 0;
}

/* A word that is in the list already is not there twice. */
static bool has_word(const struct node *list, const struct node *item)
{
	for (size_t i = 0; item->value && i < list->n; i++)
		if (strcmp(list->items[i]->value, item->value) == 0)
			return true;
	return false;
}

static int merge_list(struct node *base, struct node *child, struct err *err)
{
	if (child->n == 0 && base->n > 0)
		return node_error(child, err,
				  "an empty list over the one of %s:%u, whose "
				  "items would stay; leave the key out, or do "
				  "not extend that policy",
				  base->file, base->line);
	for (size_t i = 0; i < child->n; i++)
		if (!has_word(base, child->items[i]))
			(void)node_add(base, take_ptr(child->items[i]));
	return 0;
}

int policy_merge(struct node *base, struct node *child, struct err *err)
{
	int r = 0;

	if (base->grammar != child->grammar)
		return node_error(child, err,
				  "another form of value than in %s:%u",
				  base->file, base->line);
	if (base->grammar->kind == GRAMMAR_SCALAR)
		return merge_scalar(base, child, err);
	if (base->grammar->kind == GRAMMAR_LIST)
		return merge_list(base, child, err);
	for (size_t i = 0; r == 0 && i < child->n; i++) {
		struct node *have = node_find(base, child->items[i]->key);

		if (have) {
			r = policy_merge(have, child->items[i], err);
			continue;
		}
		r = node_add(base, child->items[i]);
		child->items[i] = NULL;
	}
	return r;
}
