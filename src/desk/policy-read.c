/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reading a policy: YAML 1.2, one document, UTF-8, at most 1 MiB.
 *
 * libfyaml gives a tree of nodes with places; this walks it along the
 * grammar, so that depth and shape are bounded by the table, not by the
 * file. Aliases are followed where they stand, and everything that comes out
 * is counted: a file cannot expand to more than MAX_NODES.
 */

#include "desk/policy-tree.h"

#include <errno.h>
#include <fcntl.h>
#include <libfyaml.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/util.h"
#include "policy/preset.h"

#define MAX_FILE    (1U << 20)
#define MAX_NODES   32768
#define MAX_ITEMS   4096
#define MAX_EXTENDS 8
#define MAX_KEY     256

struct reader {
	const char *file;
	size_t nodes;
	const char *dir; /* where relative paths start */
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
		n = i < MAX_EXTENDS ? fy_node_resolve_alias(n) : NULL;
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

static struct node *parse(struct reader *r, const char *text, size_t len)
{
	struct fy_diag_cfg diag_cfg;
	struct fy_parse_cfg cfg = {
		.flags = FYPCF_DEFAULT_VERSION_1_2 | FYPCF_JSON_NONE |
			 FYPCF_ALLOW_DUPLICATE_KEYS | FYPCF_QUIET,
	};
	struct fy_diag *diag;
	struct fy_parser *parser;
	struct node *ret = NULL;

	if (check_utf8(r, text, len) < 0)
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
		ret = walk_document(r, parser, diag);
	else
		(void)err_set(r->err, ENOMEM, "%s: out of memory", r->file);
	if (parser)
		fy_parser_destroy(parser);
	fy_diag_destroy(diag);
	return ret;
}

/* sources */

static int add_source(struct sources *s, const char *shown, const char *name,
		      const void *data, size_t len, struct err *err)
{
	struct source *to = &s->v[s->n];
	unsigned char hash[SHA256_SIZE];
	struct sha256 st;

	if (s->n == FLAT_SOURCES || s->n > MAX_EXTENDS)
		return err_set(err, ELOOP,
			       "%s:1:1: more than %d policies extend each "
			       "other",
			       shown, MAX_EXTENDS);
	sha256_init(&st);
	sha256_add(&st, data, len);
	sha256_end(&st, hash);
	for (int i = 0; i < SHA256_SIZE; i++)
		(void)snprintf(to->sha256 + 2 * i, 3, "%02x", hash[i]);
	to->shown = strdup(shown);
	to->name = strdup(name);
	if (!to->shown || !to->name)
		abort();
	s->n++;
	return 0;
}

static int read_whole(const char *file, struct buf *ret, struct err *err)
{
	_cleanup_fd_ int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	char chunk[65536];
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, errno, "%s:1:1: cannot be opened", file);
	if (!S_ISREG(st.st_mode))
		return err_set(err, EINVAL,
			       "%s:1:1: it is not a regular file; a YAML file "
			       "is allowed",
			       file);
	while ((n = read(fd, chunk, sizeof(chunk))) > 0)
		if (buf_add(ret, chunk, (size_t)n) < 0)
			return err_set(err, EFBIG,
				       "%s:1:1: it is larger than 1 MiB, which "
				       "is the most allowed",
				       file);
	if (n < 0)
		return err_errno(err, errno, "%s:1:1: cannot be read", file);
	return 0;
}

/* An absolute path without links, as far as it exists; the caller frees it. */
static char *absolute(const char *dir, const char *path)
{
	_cleanup_free_ char *joined = NULL;
	char *real;

	while (strncmp(path, "./", 2) == 0)
		path += 2;
	if (path[0] == '/')
		joined = strdup(path);
	else if (asprintf(&joined, "%s/%s", dir, path) < 0)
		joined = NULL;
	if (!joined)
		abort();
	real = realpath(joined, NULL);
	return real ? real : take_ptr(joined);
}

static void make_absolute(struct node *n, const char *dir)
{
	char *path;

	if (!n || !n->value)
		return;
	path = absolute(dir, n->value);
	free(n->value);
	n->value = path;
}

/* Paths of the host in a policy start where the policy file is. */
static void anchor_paths(struct node *tree, const char *dir)
{
	struct node *sandbox = node_find(tree, "sandbox");
	struct node *mounts = sandbox ? node_find(sandbox, "mounts") : NULL;
	struct node *roots = sandbox ? node_find(sandbox, "mount_roots") : NULL;

	for (size_t i = 0; mounts && i < mounts->n; i++)
		make_absolute(node_find(mounts->items[i], "from"), dir);
	for (size_t i = 0; roots && i < roots->n; i++)
		make_absolute(roots->items[i], dir);
}

static int read_one(const char *file, const char *dir, struct sources *s,
		    struct node **ret, struct err *err);

static int read_preset(const struct preset *preset, struct sources *s,
		       struct node **ret, struct err *err)
{
	char name[64];
	struct reader r = { .err = err };

	(void)snprintf(name, sizeof(name), "preset:%s", preset->name);
	if (add_source(s, name, name, preset->text, preset->len, err) < 0)
		return -err->code;
	r.file = s->v[s->n - 1].shown;
	*ret = parse(&r, preset->text, preset->len);
	if (!*ret)
		return -err->code;
	anchor_paths(*ret, s->dir);
	return 0;
}

/* Takes a key out of a map, if it is there. */
static void drop_key(struct node *map, const char *name)
{
	struct node *key = node_find(map, name);

	for (size_t i = 0; key && i < map->n; i++)
		if (map->items[i] == key) {
			node_free(key);
			map->n--;
			memmove(map->items + i, map->items + i + 1,
				(map->n - i) * sizeof(struct node *));
			return;
		}
}

/*
 * Whether the way there uses a link. It may lie where a box can write, and
 * then lead to another policy after the next run.
 */
static bool is_linked(const char *path, const char *dir)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				.resolve = RESOLVE_NO_SYMLINKS };
	_cleanup_fd_ int at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_fd_ int fd = (int)syscall(SYS_openat2, at, path, &how,
					   sizeof(how));

	return fd < 0 && errno == ELOOP;
}

/* Takes `extends` out of the tree and puts the tree over what it names. */
static int extend(struct node **tree, const char *dir, struct sources *s,
		  struct err *err)
{
	struct node *key = node_find(*tree, "extends");
	const struct preset *preset = key ? preset_find(key->value) : NULL;
	struct node *base = NULL;
	size_t before = s->n;
	int r;

	if (!key)
		return 0;
	if (!preset && !strchr(key->value, '/') && !strchr(key->value, '.'))
		return node_error(key, err, "there is no preset '%s'; write %s",
				  key->value, key->grammar->takes);
	if (!preset && is_linked(key->value, dir))
		return node_error(key, err,
				  "'%s' leads through a symbolic link; name "
				  "the file itself, so that nothing can put "
				  "another in its place",
				  key->value);
	r = preset ? read_preset(preset, s, &base, err)
		   : read_one(key->value, dir, s, &base, err);
	if (r < 0) {
		node_free(base);
		if (s->n > before)
			return r;
		/* It was not even opened: the fault is here. */
		return node_error(key, err, "%.250s", err->text);
	}
	if (!base)
		return node_error(key, err, "'%s' cannot be read", key->value);
	r = extend(&base, dir, s, err);
	drop_key(*tree, "extends");
	/* Tests show what their own file says; a tighter one may differ. */
	drop_key(base, "tests");
	if (r == 0)
		r = policy_merge(base, *tree, err);
	node_free(*tree);
	*tree = base;
	return r;
}

static char *dir_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash || slash == path)
		return strdup("/");
	return strndup(path, (size_t)(slash - path));
}

static int read_one(const char *file, const char *dir, struct sources *s,
		    struct node **ret, struct err *err)
{
	_cleanup_free_ char *path = absolute(dir, file);
	_cleanup_free_ char *here = dir_of(path);
	struct reader r = { .err = err };
	struct buf text;
	int n;

	buf_init(&text, MAX_FILE);
	n = read_whole(path, &text, err);
	if (n < 0 && s->n == 0)
		(void)err_set(err, err->code, "%.150s%.250s", file,
			      strstr(err->text, ":1:1:"));
	if (n == 0)
		n = add_source(s, s->n == 0 ? file : path, path, text.data,
			       text.len, err);
	if (n < 0) {
		buf_done(&text);
		return n;
	}
	if (s->n == 1 && !s->dir && !(s->dir = strdup(here)))
		abort();
	r.file = s->v[s->n - 1].shown;
	*ret = parse(&r, text.data ? text.data : "", text.len);
	buf_done(&text);
	if (!*ret)
		return -err->code;
	anchor_paths(*ret, here);
	return extend(ret, here, s, err);
}

int policy_read(const char *file, struct sources *sources, struct node **ret,
		struct err *err)
{
	_cleanup_free_ char *cwd = getcwd(NULL, 0);
	const struct preset *preset = preset_find(
		file + (strncmp(file, "preset:", 7) == 0 ? 7 : 0));
	int r;

	memset(sources, 0, sizeof(*sources));
	*ret = NULL;
	if (preset) {
		sources->dir = strdup(cwd ? cwd : "/");
		if (!sources->dir)
			abort();
		r = read_preset(preset, sources, ret, err);
		if (r == 0)
			r = extend(ret, sources->dir, sources, err);
	} else {
		r = read_one(file, cwd ? cwd : "/", sources, ret, err);
	}
	if (r < 0) {
		node_free(*ret);
		*ret = NULL;
		sources_done(sources);
	}
	return r;
}
