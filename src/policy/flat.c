/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/flat.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/num.h"
#include "base/util.h"
#include "policy/keys.h"

#define PART_MAX  4096
#define DEPTH_MAX 8

static int bad(struct err *err, size_t line, const char *why)
{
	return err_set(err, EBADMSG, "compiled policy, line %zu: %s", line + 1,
		       why);
}

/* The character that a backslash and `c` stand for, 0 if nothing. */
static char escaped(char c)
{
	switch (c) {
	case 't':
		return '\t';
	case 'n':
		return '\n';
	case 'r':
		return '\r';
	case '\\':
		return '\\';
	default:
		return 0;
	}
}

/* In place; -EINVAL on an escape that does not exist. */
static int unescape(char *text)
{
	char *to = text;

	for (char *p = text; *p; p++) {
		char c = *p;

		if (c == '\\') {
			c = escaped(*++p);
			if (!c)
				return -EINVAL;
		}
		*to++ = c;
	}
	*to = '\0';
	return 0;
}

int flat_part(const char *at, char *ret, size_t size, const char **ret_next)
{
	size_t n = 0;

	for (; *at && *at != '.'; at++) {
		char c = *at;

		if (c == '\\') {
			at++;
			c = *at == '.' ? '.' : escaped(*at);
			if (!c)
				return -EINVAL;
		}
		if (n + 1 >= size)
			return -EINVAL;
		ret[n++] = c;
	}
	if (n == 0)
		return -EINVAL;
	ret[n] = '\0';
	*ret_next = *at ? at + 1 : NULL;
	return 0;
}

/* Whether the table knows this path, and the value may stand there. */
static int check_line(const struct flat_line *l)
{
	const struct grammar *g = &grammar_policy;
	const char *at = l->path;
	char part[PART_MAX];

	for (int depth = 0; at; depth++) {
		if (depth == DEPTH_MAX ||
		    flat_part(at, part, sizeof(part), &at) < 0)
			return -EINVAL;
		g = grammar_step(g, part);
		if (!g)
			return -EINVAL;
	}
	if (strcmp(l->value, "[]") == 0 && grammar_form(g, GRAMMAR_LIST))
		return grammar_form(g, GRAMMAR_LIST)->is_filled ? -EINVAL : 0;
	if (strcmp(l->value, "{}") == 0 &&
	    (g->kind == GRAMMAR_MAP || g->kind == GRAMMAR_DICT))
		return 0;
	g = grammar_form(g, GRAMMAR_SCALAR);
	return g && grammar_check(g, l->value) ? 0 : -EINVAL;
}

/* A number behind the last colon, which is cut off. */
static int take_number(char *text, unsigned int *ret)
{
	char *colon = strrchr(text, ':');
	uint64_t n;

	if (!colon || colon == text || num_parse(colon + 1, 1U << 30, &n) < 0)
		return -EINVAL;
	*colon = '\0';
	*ret = (unsigned int)n;
	return 0;
}

/* file:line:column */
static int parse_origin(char *text, struct flat_line *ret)
{
	if (take_number(text, &ret->column) < 0 ||
	    take_number(text, &ret->line) < 0)
		return -EINVAL;
	ret->file = text;
	return unescape(text);
}

static int parse_line(char *text, struct flat_line *ret)
{
	char *save = NULL;

	ret->path = strtok_r(text, "\t", &save);
	if (!ret->path || ret->path != text)
		return -EINVAL;
	/* The value may be empty, which strtok(3) would not see. */
	ret->value = save;
	if (!save || !(save = strchr(save, '\t')))
		return -EINVAL;
	*save++ = '\0';
	if (strchr(save, '\t') || unescape(ret->value) < 0 ||
	    parse_origin(save, ret) < 0)
		return -EINVAL;
	return check_line(ret);
}

static bool is_sha256(const char *t)
{
	return strlen(t) == 64 && strspn(t, "0123456789abcdef") == 64;
}

int flat_parse_head(char *line, struct flat *ret, struct err *err)
{
	char *save = NULL;
	size_t len = strlen(FLAT_FORMAT);
	char *word;

	if (strncmp(line, FLAT_FORMAT, len) != 0)
		return bad(err, 0, "it is none, or of another version");
	ret->version = strtok_r(line + len, "\t", &save);
	while (ret->version && (word = strtok_r(NULL, "\t", &save))) {
		char *name = strtok_r(NULL, "\t", &save);

		if (ret->n_sources == FLAT_SOURCES || !is_sha256(word) ||
		    !name || unescape(name) < 0)
			return bad(err, 0, "its sources cannot be read");
		ret->sources[ret->n_sources].sha256 = word;
		ret->sources[ret->n_sources++].name = name;
	}
	if (ret->n_sources == 0)
		return bad(err, 0, "it names no source");
	return 0;
}

static int by_path(const void *a, const void *b)
{
	const struct flat_line *const *x = a;
	const struct flat_line *const *y = b;

	return strcmp((*x)->path, (*y)->path);
}

/* A value has nothing below it, and each path is there once. */
static int check_order(struct flat *f, struct err *err)
{
	for (size_t i = 0; i < f->n_lines; i++)
		f->sorted[i] = &f->lines[i];
	qsort(f->sorted, f->n_lines, sizeof(struct flat_line *), by_path);
	for (size_t i = 0; i < f->n_lines; i++) {
		const char *path = f->sorted[i]->path;
		size_t at = 0;

		if (i > 0 && strcmp(f->sorted[i - 1]->path, path) == 0)
			return err_set(err, EBADMSG,
				       "compiled policy: '%.200s' is there "
				       "twice",
				       path);
		if (flat_next(f, path, &at))
			return err_set(err, EBADMSG,
				       "compiled policy: '%.200s' has a value "
				       "and more below it",
				       path);
	}
	return 0;
}

static int parse_lines(struct flat *f, char *at, size_t n, struct err *err)
{
	for (size_t i = 0; i < n; i++) {
		char *end = strchr(at, '\n');

		*end = '\0';
		if (i == 0) {
			if (flat_parse_head(at, f, err) < 0)
				return -err->code;
		} else if (parse_line(at, &f->lines[f->n_lines++]) < 0) {
			return bad(err, i, "it is not known here");
		}
		at = end + 1;
	}
	return check_order(f, err);
}

static size_t count_lines(const char *text, size_t len)
{
	size_t n = 0;

	for (const char *p = text; (p = memchr(p, '\n', len)); p++) {
		n++;
		len -= (size_t)(p + 1 - text);
		text = p + 1;
	}
	return n;
}

int flat_parse(const char *text, size_t len, struct flat *ret, struct err *err)
{
	size_t n = count_lines(text, len);
	int r;

	memset(ret, 0, sizeof(*ret));
	if (len == 0 || n == 0 || len > FLAT_MAX || n > FLAT_LINES)
		return err_set(err, EBADMSG,
			       "compiled policy: it is empty or too large");
	if (text[len - 1] != '\n' || memchr(text, '\0', len) ||
	    !utf8_check(text, len))
		return err_set(err, EBADMSG,
			       "compiled policy: it is cut, or not UTF-8");
	ret->text = malloc(len + 1);
	ret->lines = calloc(n, sizeof(*ret->lines));
	ret->sorted = calloc(n, sizeof(struct flat_line *));
	if (!ret->text || !ret->lines || !ret->sorted) {
		flat_done(ret);
		return err_set(err, ENOMEM, "out of memory");
	}
	memcpy(ret->text, text, len);
	ret->text[len] = '\0';
	r = parse_lines(ret, ret->text, n, err);
	if (r < 0)
		flat_done(ret);
	return r;
}

void flat_done(struct flat *f)
{
	free(f->text);
	free(f->lines);
	free(f->sorted);
	memset(f, 0, sizeof(*f));
}

/* The number of lines whose path sorts before this one, with `tail` added. */
static size_t lower(const struct flat *f, const char *path, size_t len,
		    const char *tail)
{
	size_t a = 0;
	size_t b = f->n_lines;

	while (a < b) {
		size_t mid = a + (b - a) / 2;
		const char *have = f->sorted[mid]->path;
		int c = strncmp(have, path, len);

		if (c == 0)
			c = strcmp(have + len, tail);
		if (c < 0)
			a = mid + 1;
		else
			b = mid;
	}
	return a;
}

const struct flat_line *flat_get(const struct flat *f, const char *path)
{
	size_t i = lower(f, path, strlen(path), "");

	return i < f->n_lines && strcmp(f->sorted[i]->path, path) == 0
		       ? f->sorted[i]
		       : NULL;
}

const struct flat_line *flat_next(const struct flat *f, const char *path,
				  size_t *at)
{
	size_t len = strlen(path);
	const struct flat_line *l;

	if (*at == 0)
		*at = lower(f, path, len, ".") + 1;
	else
		(*at)++;
	if (*at > f->n_lines)
		return NULL;
	l = f->sorted[*at - 1];
	return strncmp(l->path, path, len) == 0 && l->path[len] == '.' ? l
								       : NULL;
}

const struct flat_line *flat_below(const struct flat *f, const char *path)
{
	const struct flat_line *l = flat_get(f, path);
	size_t at = 0;

	return l ? l : flat_next(f, path, &at);
}
