/* SPDX-License-Identifier: Apache-2.0 */

/*
 * libfyaml gives a tree of nodes with places; this turns it into JSON.
 * Plain words are null, booleans and numbers as YAML's core schema reads them;
 * what is quoted is text. Aliases are written out where they stand, and all
 * that comes out is counted.
 */

#include "agentcmd/doc.h"

#include <errno.h>
#include <fcntl.h>
#include <libfyaml.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/util.h"

#define MAX_FILE  ((size_t)1 << 20)
#define MAX_NODES 32768
#define MAX_DEPTH 48

struct reader {
	struct at at;
	struct doc *doc;
	size_t nodes;
	int depth;
};

size_t at_down(struct at *at, const char *key)
{
	size_t before = at->len;
	int n = snprintf(at->path + at->len, sizeof(at->path) - at->len, "/%s",
			 key);

	if (n > 0)
		at->len = MIN(at->len + (size_t)n, sizeof(at->path) - 1);
	return before;
}

size_t at_down_to(struct at *at, size_t index)
{
	char number[24];

	(void)snprintf(number, sizeof(number), "%zu", index);
	return at_down(at, number);
}

void at_up(struct at *at, size_t len)
{
	at->len = len;
	at->path[len] = '\0';
}

/* The place of the value, or of the nearest one around it. */
static const char *place_of(const struct at *at)
{
	char path[sizeof(at->path)];
	char *slash;

	(void)snprintf(path, sizeof(path), "%s", at->path);
	do {
		const char *there = json_string_value(
			json_object_get(at->doc->places, path));

		if (there)
			return there;
		slash = strrchr(path, '/');
		if (slash)
			*slash = '\0';
	} while (slash);
	return NULL;
}

int at_error(const struct at *at, const char *fmt, ...)
{
	const char *place = place_of(at);
	char text[400];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return err_set(at->err, EINVAL, "%s:%s%s %s%s%s", at->doc->file,
		       place ? place : "", place ? ":" : "",
		       at->len ? at->path : "", at->len ? ": " : "", text);
}

static json_t *fail(struct reader *r, const char *text)
{
	(void)at_error(&r->at, "%s", text);
	return NULL;
}

/* Where a node stands; only scalars know that by themselves. */
static void note_place(struct reader *r, struct fy_node *n)
{
	struct fy_token *token = fy_node_get_scalar_token(n);
	const struct fy_mark *mark = token ? fy_token_start_mark(token) : NULL;
	enum fy_scalar_style style;
	char text[32];

	if (!mark || json_object_get(r->doc->places, r->at.path))
		return;
	style = fy_token_scalar_style(token);
	/* The library's mark is behind the quote. */
	(void)snprintf(text, sizeof(text), "%d:%d", mark->line + 1,
		       mark->column +
			       (style == FYSS_SINGLE_QUOTED ||
						style == FYSS_DOUBLE_QUOTED
					? 0
					: 1));
	(void)json_object_set_new(r->doc->places, r->at.path,
				  json_string(text));
}

static json_t *plain_value(const char *text)
{
	static const char *const nulls[] = { "", "~", "null", "Null", "NULL" };
	char *end = NULL;
	long long whole;
	double real;

	for (size_t i = 0; i < ARRAY_SIZE(nulls); i++)
		if (strcmp(text, nulls[i]) == 0)
			return json_null();
	if (strcmp(text, "true") == 0 || strcmp(text, "True") == 0)
		return json_true();
	if (strcmp(text, "false") == 0 || strcmp(text, "False") == 0)
		return json_false();
	if (text[strspn(text, "0123456789+-.eE")])
		return json_string(text);
	errno = 0;
	whole = strtoll(text, &end, 10);
	if (end != text && !*end && errno == 0)
		return json_integer(whole);
	real = strtod(text, &end);
	if (end != text && !*end)
		return json_real(real);
	return json_string(text);
}

static json_t *walk_scalar(struct reader *r, struct fy_node *n)
{
	size_t len = 0;
	const char *text = fy_node_get_scalar(n, &len);
	_cleanup_free_ char *copy = NULL;
	json_t *ret;

	if (text && memchr(text, '\0', len))
		return fail(r, "a NUL character; text is allowed");
	copy = strndup(text ? text : "", len);
	if (!copy)
		return fail(r, "out of memory");
	ret = fy_node_get_style(n) == FYNS_PLAIN ? plain_value(copy)
						 : json_string(copy);
	return ret ? ret : fail(r, "not a value");
}

static json_t *walk(struct reader *r, struct fy_node *n);

static json_t *walk_list(struct reader *r, struct fy_node *n)
{
	json_t *list = json_array();
	struct fy_node *item;
	void *it = NULL;

	while (list && (item = fy_node_sequence_iterate(n, &it))) {
		size_t up = at_down_to(&r->at, json_array_size(list));
		json_t *value = walk(r, item);

		if (!value || json_array_append_new(list, value) < 0) {
			json_decref(list);
			return NULL;
		}
		at_up(&r->at, up);
	}
	return list;
}

static int walk_pair(struct reader *r, struct fy_node_pair *pair, json_t *map)
{
	struct fy_node *name = fy_node_pair_key(pair);
	struct fy_node *value = fy_node_pair_value(pair);
	_cleanup_free_ char *key = NULL;
	size_t len = 0;
	const char *text;
	json_t *item;
	size_t up;

	if (!name || !fy_node_is_scalar(name) || fy_node_is_alias(name))
		return at_error(&r->at, "a key that is no plain word");
	text = fy_node_get_scalar(name, &len);
	key = text && !memchr(text, '\0', len) ? strndup(text, len) : NULL;
	if (!key || len > 256)
		return at_error(&r->at, "a key that is no plain word");
	up = at_down(&r->at, key);
	if (json_object_get(map, key))
		return at_error(&r->at, "this key is there twice");
	note_place(r, name);
	item = value ? walk(r, value) : json_null();
	if (!item || json_object_set_new(map, key, item) < 0)
		return -EINVAL;
	at_up(&r->at, up);
	return 0;
}

static json_t *walk_map(struct reader *r, struct fy_node *n)
{
	json_t *map = json_object();
	struct fy_node_pair *pair;
	void *it = NULL;

	while (map && (pair = fy_node_mapping_iterate(n, &it)))
		if (walk_pair(r, pair, map) < 0) {
			json_decref(map);
			return NULL;
		}
	return map;
}

static json_t *walk_as(struct reader *r, struct fy_node *n)
{
	json_t *ret;

	if (fy_node_get_tag_token(n))
		return fail(r, "tags have no meaning here");
	if (fy_node_is_scalar(n)) {
		note_place(r, n);
		return walk_scalar(r, n);
	}
	if (++r->depth > MAX_DEPTH)
		return fail(r, "too many levels, one in the other");
	ret = fy_node_is_mapping(n) ? walk_map(r, n) : walk_list(r, n);
	r->depth--;
	return ret;
}

static json_t *walk(struct reader *r, struct fy_node *n)
{
	if (++r->nodes > MAX_NODES)
		return fail(r, "too many values, with aliases written out");
	for (int i = 0; n && fy_node_is_alias(n); i++)
		n = i < 8 ? fy_node_resolve_alias(n) : NULL;
	if (!n)
		return fail(r, "this alias leads nowhere");
	return walk_as(r, n);
}

static int yaml_error(struct reader *r, struct fy_diag *diag)
{
	void *it = NULL;
	struct fy_diag_error *e = fy_diag_errors_iterate(diag, &it);

	return err_set(r->at.err, EINVAL, "%s:%d:%d: %s; YAML 1.2 is allowed",
		       r->doc->file, e && e->line > 0 ? e->line : 1,
		       e && e->column > 0 ? e->column : 1,
		       e && e->msg ? e->msg : "this is not YAML");
}

static int walk_document(struct reader *r, struct fy_parser *parser,
			 struct fy_diag *diag)
{
	struct fy_document *doc = fy_parse_load_document(parser);
	struct fy_document *second = NULL;
	struct fy_node *root = doc ? fy_document_root(doc) : NULL;
	int e = 0;

	if (!doc && fy_parser_get_stream_error(parser))
		return yaml_error(r, diag);
	if (root)
		r->doc->root = walk(r, root);
	if (!root || (r->doc->root && !json_is_object(r->doc->root)))
		e = at_error(&r->at, "this is no map; write an agent or a "
				     "team (cordon-agent(1))");
	else if (!r->doc->root)
		e = -EINVAL;
	if (e == 0)
		second = fy_parse_load_document(parser);
	if (second) {
		e = at_error(&r->at, "there is more than one document");
		fy_parse_document_destroy(parser, second);
	} else if (e == 0 && fy_parser_get_stream_error(parser)) {
		e = yaml_error(r, diag);
	}
	if (doc)
		fy_parse_document_destroy(parser, doc);
	return e;
}

static int parse_yaml(struct reader *r, const char *text, size_t len)
{
	struct fy_diag_cfg diag_cfg;
	struct fy_parse_cfg cfg = {
		.flags = FYPCF_DEFAULT_VERSION_1_2 | FYPCF_JSON_NONE |
			 FYPCF_ALLOW_DUPLICATE_KEYS | FYPCF_QUIET,
	};
	struct fy_parser *parser;
	int e;

	fy_diag_cfg_default(&diag_cfg);
	diag_cfg.fp = NULL;
	diag_cfg.colorize = false;
	cfg.diag = fy_diag_create(&diag_cfg);
	if (!cfg.diag)
		return err_set(r->at.err, ENOMEM, "out of memory");
	fy_diag_set_collect_errors(cfg.diag, true);
	parser = fy_parser_create(&cfg);
	if (parser && fy_parser_set_string(parser, text, len) == 0)
		e = walk_document(r, parser, cfg.diag);
	else
		e = err_set(r->at.err, ENOMEM, "out of memory");
	if (parser)
		fy_parser_destroy(parser);
	fy_diag_destroy(cfg.diag);
	return e;
}

/* What begins as JSON is read as such: its escapes are not YAML's. */
static int parse_json(struct reader *r, const char *text, size_t len)
{
	json_error_t why;

	r->doc->root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
	if (!r->doc->root)
		return err_set(r->at.err, EINVAL, "%s:%d:%d: %s", r->doc->file,
			       why.line, why.column, why.text);
	return 0;
}

int doc_parse(const char *file, const char *text, size_t len, struct doc *ret,
	      struct err *err)
{
	struct reader r = { .at = { .doc = ret, .err = err }, .doc = ret };
	size_t blank = 0;
	int e;

	memset(ret, 0, sizeof(*ret));
	ret->file = strdup(file);
	ret->places = json_object();
	while (blank < len && strchr(" \t\r\n", text[blank]))
		blank++;
	if (!ret->file || !ret->places)
		e = err_set(err, ENOMEM, "out of memory");
	else if (!utf8_check(text, len))
		e = err_set(err, EINVAL, "%s: not UTF-8", file);
	else if (blank < len && text[blank] == '{')
		e = parse_json(&r, text, len);
	else
		e = parse_yaml(&r, text, len);
	if (e < 0)
		doc_done(ret);
	return e;
}

static int read_all(const char *file, struct buf *to, struct err *err)
{
	_cleanup_fd_ int fd = strcmp(file, "-") == 0
				      ? fcntl(0, F_DUPFD_CLOEXEC, 3)
				      : open(file, O_RDONLY | O_CLOEXEC);
	char chunk[8192];
	ssize_t n;

	if (fd < 0)
		return err_errno(err, errno, "open '%s'", file);
	while ((n = read(fd, chunk, sizeof(chunk))) > 0 ||
	       (n < 0 && errno == EINTR))
		if (n > 0 && buf_add(to, chunk, (size_t)n) < 0)
			return err_set(err, EFBIG,
				       "'%s' is larger than %zu KiB", file,
				       MAX_FILE >> 10);
	return n < 0 ? err_errno(err, errno, "read '%s'", file) : 0;
}

int doc_read(const char *file, struct doc *ret, struct err *err)
{
	struct buf text;
	int e;

	memset(ret, 0, sizeof(*ret));
	buf_init(&text, MAX_FILE);
	e = read_all(file, &text, err);
	if (e == 0)
		e = doc_parse(file, text.data ? text.data : "", text.len, ret,
			      err);
	buf_done(&text);
	return e;
}

void doc_done(struct doc *d)
{
	free(d->file);
	json_decref(d->root);
	json_decref(d->places);
	memset(d, 0, sizeof(*d));
}
