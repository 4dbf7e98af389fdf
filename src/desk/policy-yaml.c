/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The YAML of one policy file: 1.2, one document, UTF-8.
 *
 * libfyaml gives a tree of nodes with places; this walks it along the
 * grammar, so that depth and shape are bounded by the table, not by the
 * file. Aliases are followed where they stand, and everything that comes out
 * is counted: a file cannot expand to more than MAX_NODES.
 */

#include "desk/policy-tree.h"

#include <errno.h>
#include <libfyaml.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"

#define MAX_NODES   32768
#define MAX_ITEMS   4096
#define MAX_ALIASES 8 /* one behind the other */
#define MAX_KEY     256

struct reader {
	const char *file;
	size_t nodes;
	struct err *err;
};

static struct node *walk(struct reader *r, struct fy_node *n,
			 const struct grammar *g, const char *key,
			 const struct node *at);

/* Where a node stands: at its first scalar, else where its key does. */
static struct node place(const struct reader *r, struct fy_node *n,
			 const struct node *otherwise)
{
	struct node at = { .file = r->file, .line = 1, .column = 1 };
	struct fy_token *token = NULL;
	const struct fy_mark *mark;

	if (otherwise) {
		at.line = otherwise->line;
		at.column = otherwise->column;
	}
	if (n && (fy_node_is_scalar(n) || fy_node_is_alias(n)))
		token = fy_node_get_scalar_token(n);
	mark = token ? fy_token_start_mark(token) : NULL;
	if (mark) {
		at.line = (unsigned int)mark->line + 1;
		at.column = (unsigned int)mark->column + 1;
		/* The library's mark is behind the quote or the star. */
		if (fy_node_is_alias(n) ||
		    fy_token_scalar_style(token) == FYSS_SINGLE_QUOTED ||
		    fy_token_scalar_style(token) == FYSS_DOUBLE_QUOTED)
			at.column--;
	}
	return at;
}

/* What has a place of its own: the first key of a map, the first item. */
static struct fy_node *first_of(struct fy_node *n)
{
	void *it = NULL;

	if (n && fy_node_is_mapping(n)) {
		struct fy_node_pair *pair = fy_node_mapping_iterate(n, &it);

		return pair ? fy_node_pair_key(pair) : NULL;
	}
	if (n && fy_node_is_sequence(n))
		return fy_node_sequence_iterate(n, &it);
	return n;
}

/* "a, b, c": what a map knows. */
static const char *known_keys(const struct grammar *g, char *ret, size_t size)
{
	size_t at = 0;

	ret[0] = '\0';
	for (const struct grammar_key *k = g->keys; k->name && at < size; k++) {
		int n = snprintf(ret + at, size - at, "%s%s", at ? ", " : "",
				 k->name);

		at += n > 0 ? (size_t)n : 0;
	}
	return ret;
}

static char *scalar_text(struct reader *r, struct fy_node *n,
			 const struct node *at)
{
	size_t len = 0;
	const char *text = fy_node_get_scalar(n, &len);
	char *copy;

	if (text && memchr(text, '\0', len)) {
		(void)node_error(at, r->err,
				 "a NUL character; text is allowed");
		return NULL;
	}
	copy = strndup(text ? text : "", len);
	if (!copy)
		abort();
	return copy;
}

static bool is_null(struct fy_node *n, const char *text)
{
	return fy_node_get_style(n) == FYNS_PLAIN &&
	       (!*text || strcmp(text, "~") == 0 ||
		strcasecmp(text, "null") == 0);
}

static struct node *walk_scalar(struct reader *r, struct fy_node *n,
				const struct grammar *g, const char *key,
				const struct node *at)
{
	struct node *ret;
	char *text = scalar_text(r, n, at);

	if (!text)
		return NULL;
	if (is_null(n, text) || !grammar_check(g, text)) {
		(void)node_error(at, r->err, "%s%s%s; write %s",
				 is_null(n, text) ? "no value" : "'",
				 is_null(n, text) ? "" : text,
				 is_null(n, text) ? "" : "' is not valid here",
				 g->takes);
		free(text);
		return NULL;
	}
	ret = node_new(g, key, at);
	ret->value = text;
	return ret;
}

static int add_walked(struct reader *r, struct node *to, struct fy_node *n,
		      const struct grammar *g, const char *key,
		      const struct node *at)
{
	struct node *item = walk(r, n, g, key, at);

	if (!item)
		return -EINVAL;
	if (to->n == MAX_ITEMS) {
		(void)node_error(item, r->err,
				 "more than %d items; fewer are allowed",
				 MAX_ITEMS);
		node_free(item);
		return -EINVAL;
	}
	return node_add(to, item);
}

static struct node *walk_list(struct reader *r, struct fy_node *n,
			      const struct grammar *g, const char *key,
			      const struct node *at)
{
	struct node *list = node_new(g, key, at);
	struct fy_node *item;
	void *it = NULL;

	while ((item = fy_node_sequence_iterate(n, &it)))
		if (add_walked(r, list, item, g->item, NULL, at) < 0) {
			node_free(list);
			return NULL;
		}
	if (g->is_filled && list->n == 0) {
		(void)node_error(list, r->err,
				 "an empty list; write %s, or leave the key "
				 "out",
				 g->takes);
		node_free(list);
		return NULL;
	}
	return list;
}

/* One pair of a map or dict. */
static int walk_pair(struct reader *r, struct fy_node_pair *pair,
		     struct node *map, const struct node *above)
{
	const struct grammar *g = map->grammar;
	struct fy_node *name = fy_node_pair_key(pair);
	struct node at = place(r, name, above);
	const struct grammar_key *known;
	_cleanup_free_ char *key = NULL;
	const struct node *have;
	char list[300];

	if (!name || !fy_node_is_scalar(name) || fy_node_is_alias(name))
		return node_error(&at, r->err,
				  "a key that is no plain word; write %s",
				  g->takes);
	key = scalar_text(r, name, &at);
	if (!key)
		return -EINVAL;
	if (strlen(key) > MAX_KEY)
		return node_error(&at, r->err,
				  "a key of %zu bytes; at most %d are allowed",
				  strlen(key), MAX_KEY);
	have = node_find(map, key);
	if (have)
		return node_error(&at, r->err,
				  "key '%s' is there twice, first in line %u; "
				  "once is allowed",
				  key, have->line);
	known = grammar_key(g, key);
	if (g->kind == GRAMMAR_MAP && !known)
		return node_error(&at, r->err,
				  "unknown key '%.60s'; known here: %s", key,
				  known_keys(g, list, sizeof(list)));
	if (g->kind == GRAMMAR_DICT && !g->check_key(key))
		return node_error(&at, r->err, "key '%.60s' is not %s", key,
				  g->key_takes);
	return add_walked(r, map, fy_node_pair_value(pair),
			  known ? known->value : g->item, key, &at);
}

static int check_map(struct reader *r, const struct node *map)
{
	const struct grammar *g = map->grammar;
	const struct node *second = NULL;
	int n = 0;

	for (const struct grammar_key *k = g->keys; k && k->name; k++)
		if (k->is_required && !node_find(map, k->name))
			return node_error(map, r->err,
					  "'%s' is missing; write %s", k->name,
					  g->takes);
	for (size_t i = 0; g->one_of && g->one_of[i]; i++) {
		const struct node *have = node_find(map, g->one_of[i]);

		n += have != NULL;
		if (have && n == 2)
			second = have;
	}
	if (g->one_of && n != 1)
		return node_error(second ? second : map, r->err,
				  "exactly one of run, command, code and "
				  "connect is allowed");
	return 0;
}

static struct node *walk_map(struct reader *r, struct fy_node *n,
			     const struct grammar *g, const char *key,
			     const struct node *at)
{
	struct node *map = node_new(g, key, at);
	struct fy_node_pair *pair;
	void *it = NULL;

	while ((pair = fy_node_mapping_iterate(n, &it))) {
		/* An item of a list stands where its first key does. */
		if (!key && map->n == 0) {
			const struct node first = place(r,
							fy_node_pair_key(pair),
							at);

			map->line = first.line;
			map->column = first.column;
		}
		if (walk_pair(r, pair, map, at) < 0) {
			node_free(map);
			return NULL;
		}
	}
	if (check_map(r, map) < 0) {
		node_free(map);
		return NULL;
	}
	return map;
}

/* "ls" for {name: ls} */
static struct node *walk_shorthand(struct reader *r, struct fy_node *n,
				   const struct grammar *g, const char *key,
				   const struct node *at)
{
	const struct grammar_key *known = grammar_key(g, g->shorthand);
	struct node *word = walk_scalar(r, n, known->value, known->name, at);
	struct node *map;

	if (!word)
		return NULL;
	map = node_new(g, key, at);
	(void)node_add(map, word);
	return map;
}

static struct node *walk_as(struct reader *r, struct fy_node *n,
			    const struct grammar *g, const char *key,
			    const struct node *at)
{
	const struct grammar *form = NULL;

	if (fy_node_is_mapping(n)) {
		form = grammar_form(g, GRAMMAR_MAP);
		if (!form)
			form = grammar_form(g, GRAMMAR_DICT);
		if (form)
			return walk_map(r, n, form, key, at);
	} else if (fy_node_is_sequence(n)) {
		form = grammar_form(g, GRAMMAR_LIST);
		if (form)
			return walk_list(r, n, form, key, at);
	} else {
		form = grammar_form(g, GRAMMAR_SCALAR);
		if (form)
			return walk_scalar(r, n, form, key, at);
		if (g->shorthand)
			return walk_shorthand(r, n, g, key, at);
	}
	(void)node_error(at, r->err, "%s does not belong here; write %s",
			 fy_node_is_mapping(n)    ? "a map"
			 : fy_node_is_sequence(n) ? "a list"
						  : "a plain value",
			 g->takes);
	return NULL;
}

/* `at` is where the key stands, for nodes that have no place of their own. */
static struct node *walk(struct reader *r, struct fy_node *n,
			 const struct grammar *g, const char *key,
			 const struct node *at)
{
	struct node here = place(r, n, at);

	if (++r->nodes > MAX_NODES) {
		(void)node_error(&here, r->err,
				 "more than %d values, with aliases written "
				 "out; a policy must be smaller",
				 MAX_NODES);
		return NULL;
	}
	for (int i = 0; n && fy_node_is_alias(n); i++) {
		n = i < MAX_ALIASES ? fy_node_resolve_alias(n) : NULL;
		if (!n) {
			(void)node_error(&here, r->err,
					 "this alias leads nowhere; anchors "
					 "must stand before it");
			return NULL;
		}
	}
	if (!n) {
		(void)node_error(&here, r->err, "no value; write %s", g->takes);
		return NULL;
	}
	if (fy_node_get_tag_token(n)) {
		(void)node_error(&here, r->err,
				 "tags have no meaning here; write %s",
				 g->takes);
		return NULL;
	}
	return walk_as(r, n, g, key, &here);
}

/* the file */

/* The first byte that is not UTF-8, as a place. */
static int check_utf8(const struct reader *r, const char *text, size_t len)
{
	struct node at = { .file = r->file, .line = 1, .column = 1 };
	size_t i = 0;

	while (i < len) {
		size_t n = utf8_len((const unsigned char *)text + i, len - i);

		if (n == 0)
			return node_error(&at, r->err,
					  "a byte that is not UTF-8; only "
					  "UTF-8 is allowed");
		at.column++;
		if (text[i] == '\n') {
			at.line++;
			at.column = 1;
		}
		i += n;
	}
	return 0;
}

static int yaml_error(struct reader *r, struct fy_diag *diag)
{
	struct node at = { .file = r->file, .line = 1, .column = 1 };
	void *it = NULL;
	struct fy_diag_error *e = fy_diag_errors_iterate(diag, &it);

	if (e) {
		at.line = e->line > 0 ? (unsigned int)e->line : 1;
		at.column = e->column > 0 ? (unsigned int)e->column : 1;
	}
	return node_error(&at, r->err, "%s; YAML 1.2 is allowed",
			  e && e->msg ? e->msg : "this is not YAML");
}

static struct node *walk_document(struct reader *r, struct fy_parser *parser,
				  struct fy_diag *diag)
{
	struct node top = { .file = r->file, .line = 1, .column = 1 };
	struct fy_document *doc = fy_parse_load_document(parser);
	struct fy_document *second;
	struct fy_node *root = doc ? fy_document_root(doc) : NULL;
	struct node *ret = NULL;

	if (!doc && fy_parser_get_stream_error(parser)) {
		(void)yaml_error(r, diag);
		return NULL;
	}
	if (!root || (fy_node_is_scalar(root) && !fy_node_is_alias(root) &&
		      fy_node_is_null(root)))
		(void)node_error(&top, r->err,
				 "the file states nothing; write %s",
				 grammar_policy.takes);
	else
		ret = walk(r, root, &grammar_policy, NULL, &top);
	second = ret ? fy_parse_load_document(parser) : NULL;
	if (ret && (second || fy_parser_get_stream_error(parser))) {
		if (second) {
			top = place(r, first_of(fy_document_root(second)),
				    NULL);
			(void)node_error(&top, r->err,
					 "there is more than one document; one "
					 "is allowed");
			fy_parse_document_destroy(parser, second);
		} else {
			(void)yaml_error(r, diag);
		}
		node_free(ret);
		ret = NULL;
	}
	if (doc)
		fy_parse_document_destroy(parser, doc);
	return ret;
}

struct node *policy_parse_yaml(const char *file, const char *text, size_t len,
			       struct err *err)
{
	struct reader r = { .file = file, .err = err };
	struct fy_diag_cfg diag_cfg;
	struct fy_parse_cfg cfg = {
		.flags = FYPCF_DEFAULT_VERSION_1_2 | FYPCF_JSON_NONE |
			 FYPCF_ALLOW_DUPLICATE_KEYS | FYPCF_QUIET,
	};
	struct fy_diag *diag;
	struct fy_parser *parser;
	struct node *ret = NULL;

	if (check_utf8(&r, text, len) < 0)
		return NULL;
	fy_diag_cfg_default(&diag_cfg);
	diag_cfg.fp = NULL;
	diag_cfg.colorize = false;
	diag = fy_diag_create(&diag_cfg);
	if (!diag)
		abort();
	fy_diag_set_collect_errors(diag, true);
	cfg.diag = diag;
	parser = fy_parser_create(&cfg);
	if (parser && fy_parser_set_string(parser, text, len) == 0)
		ret = walk_document(&r, parser, diag);
	else
		(void)err_set(err, ENOMEM, "%s: out of memory", file);
	if (parser)
		fy_parser_destroy(parser);
	fy_diag_destroy(diag);
	return ret;
}
