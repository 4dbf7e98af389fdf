/* SPDX-License-Identifier: Apache-2.0 */
#include "desk/policy-tree.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cordon/cordon.h>

#include "base/util.h"

#define MAX_DEPTH_PATH 4096

struct node *node_new(const struct grammar *g, const char *key,
		      const struct node *at)
{
	struct node *n = calloc(1, sizeof(*n));

	if (!n)
		abort();
	n->grammar = g;
	n->file = at->file;
	n->line = at->line;
	n->column = at->column;
	if (key && !(n->key = strdup(key)))
		abort();
	return n;
}

int node_add(struct node *n, struct node *item)
{
	struct node **grown;

	if ((n->n & (n->n + 1)) == 0 || !n->items) {
		grown = realloc(n->items,
				(2 * n->n + 2) * sizeof(struct node *));
		if (!grown)
			abort();
		n->items = grown;
	}
	n->items[n->n++] = item;
	return 0;
}

struct node *node_find(const struct node *n, const char *key)
{
	for (size_t i = 0; i < n->n; i++)
		if (strcmp(n->items[i]->key, key) == 0)
			return n->items[i];
	return NULL;
}

void node_free(struct node *n)
{
	if (!n)
		return;
	for (size_t i = 0; i < n->n; i++)
		node_free(n->items[i]);
	free(n->items);
	free(n->key);
	free(n->value);
	free(n);
}

void sources_done(struct sources *s)
{
	for (size_t i = 0; i < s->n; i++) {
		free(s->v[i].shown);
		free(s->v[i].name);
	}
	free(s->dir);
	memset(s, 0, sizeof(*s));
}

int node_error(const struct node *n, struct err *err, const char *fmt, ...)
{
	char text[sizeof(err->text)];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return err_set(err, EINVAL, "%.150s:%u:%u: %.300s", n->file, n->line,
		       n->column, text);
}

static void put_escaped(struct buf *b, const char *text, bool is_key)
{
	for (; *text; text++) {
		static const char from[] = "\t\n\r\\";
		static const char to[] = "tnr\\";
		const char *at = strchr(from, *text);
		char pair[2] = { '\\', at ? to[at - from] : '.' };

		if (at || (is_key && *text == '.'))
			(void)buf_add(b, pair, 2);
		else
			(void)buf_add(b, text, 1);
	}
}

static void put_line(struct buf *b, const char *path, const char *value,
		     const struct node *n)
{
	(void)buf_printf(b, "%s\t", path);
	put_escaped(b, value, false);
	(void)buf_puts(b, "\t");
	put_escaped(b, n->file, false);
	(void)buf_printf(b, ":%u:%u\n", n->line, n->column);
}

/* What is too large for the flat form, at the first node that is. */
static int put_node(struct buf *out, const char *path, const struct node *n,
		    struct err *err)
{
	int r = 0;
	bool is_list = n->grammar->kind == GRAMMAR_LIST;

	if (n->grammar->kind == GRAMMAR_SCALAR) {
		put_line(out, path, n->value, n);
		return 0;
	}
	if (n->n == 0)
		put_line(out, path, is_list ? "[]" : "{}", n);
	for (size_t i = 0; r == 0 && i < n->n; i++) {
		struct buf sub;

		buf_init(&sub, MAX_DEPTH_PATH);
		(void)buf_printf(&sub, "%s%s", path, *path ? "." : "");
		if (is_list)
			(void)buf_printf(&sub, "%zu", i);
		else
			put_escaped(&sub, n->items[i]->key, true);
		if (sub.error)
			r = node_error(n->items[i], err,
				       "a key that is too long; with those "
				       "around it %d bytes are allowed",
				       MAX_DEPTH_PATH);
		else
			r = put_node(out, sub.data, n->items[i], err);
		if (r == 0 && out->error)
			r = node_error(n->items[i], err,
				       "here the policy is larger than %u MiB, "
				       "with aliases and what it extends; a "
				       "policy must be smaller",
				       FLAT_MAX >> 20);
		buf_done(&sub);
	}
	return r;
}

int policy_flat(const struct node *tree, const struct sources *sources,
		struct buf *ret, struct err *err)
{
	size_t n_lines = 0;
	int r;

	buf_init(ret, FLAT_MAX);
	(void)buf_printf(ret, "%s%s", FLAT_FORMAT, cordon_version());
	for (size_t i = 0; i < sources->n; i++) {
		(void)buf_printf(ret, "\t%s\t", sources->v[i].sha256);
		put_escaped(ret, sources->v[i].name, false);
	}
	(void)buf_puts(ret, "\n");
	r = put_node(ret, "", tree, err);
	for (size_t i = 0; r == 0 && i < ret->len; i++)
		n_lines += ret->data[i] == '\n';
	if (r == 0 && n_lines > FLAT_LINES)
		r = node_error(tree, err,
			       "more than %d values, with what it extends; a "
			       "policy must be smaller",
			       FLAT_LINES);
	if (r < 0)
		buf_done(ret);
	return r;
}
