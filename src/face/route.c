/* SPDX-License-Identifier: Apache-2.0 */

#include "face/route.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

char *url_decode(const char *text, size_t len, bool has_plus)
{
	char *ret = malloc(len + 1);
	size_t n = 0;

	if (!ret)
		return NULL;
	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (c == '+' && has_plus) {
			c = ' ';
		} else if (c == '%') {
			bool has_two = len - i > 2;
			int high = has_two ? hex_digit(text[i + 1]) : -1;
			int low = has_two ? hex_digit(text[i + 2]) : -1;

			if (high < 0 || low < 0)
				goto bad;
			c = (char)(high << 4 | low);
			i += 2;
		}
		if (!c)
			goto bad;
		ret[n++] = c;
	}
	ret[n] = '\0';
	return ret;
bad:
	free(ret);
	errno = EINVAL;
	return NULL;
}

/* matching */

struct span {
	const char *p;
	size_t len;
};

struct spans {
	struct span v[ROUTE_PARAMS];
	unsigned int n;
};

static bool spans_add(struct spans *s, const char *from, const char *to)
{
	if (s->n == ROUTE_PARAMS)
		return false;
	s->v[s->n++] = (struct span){ from, (size_t)(to - from) };
	return true;
}

static bool is_part(const char *from, const char *to, const char *text)
{
	size_t len = strlen(text);

	return (size_t)(to - from) == len && memcmp(from, text, len) == 0;
}

static bool match(const char *pattern, const char *path, struct spans *s);

/* "{*}" at `path`, which is behind its slash; then the rest of the pattern. */
static bool match_many(const char *rest, const char *path, struct spans *s)
{
	unsigned int before = s->n;
	const char *part = path;

	for (;;) {
		const char *end = strchrnul(part, '/');

		if (end == part)
			return false;
		if (spans_add(s, path, end) && match(rest, end, s))
			return true;
		s->n = before;
		if (!*end)
			return false;
		part = end + 1;
	}
}

static bool match(const char *pattern, const char *path, struct spans *s)
{
	while (*pattern == '/' && *path == '/') {
		const char *want_end = strchrnul(++pattern, '/');
		const char *end = strchrnul(++path, '/');

		if (is_part(pattern, want_end, "{*}"))
			return match_many(want_end, path, s);
		if (is_part(pattern, want_end, "{}")) {
			/* A name may come with its slash: "//name". */
			if (end == path && *path == '/')
				end = strchrnul(path + 1, '/');
			if (end - path == (*path == '/') ||
			    !spans_add(s, path, end))
				return false;
		} else if (want_end - pattern != end - path ||
			   memcmp(pattern, path, (size_t)(end - path)) != 0) {
			return false;
		}
		pattern = want_end;
		path = end;
	}
	return !*pattern && !*path;
}

int route_match(const char *pattern, const char *path, struct route_params *ret)
{
	struct spans s = { .n = 0 };

	memset(ret, 0, sizeof(*ret));
	if (!match(pattern, path, &s))
		return 0;
	for (unsigned int i = 0; i < s.n; i++) {
		ret->v[i] = url_decode(s.v[i].p, s.v[i].len, false);
		if (!ret->v[i]) {
			int r = -errno;

			route_params_done(ret);
			return r;
		}
		ret->n++;
	}
	return 1;
}

void route_params_done(struct route_params *p)
{
	for (unsigned int i = 0; i < p->n; i++)
		free(p->v[i]);
	memset(p, 0, sizeof(*p));
}

/* queries */

static int query_add(struct query *q, const char *text, size_t len)
{
	const char *sign = memchr(text, '=', len);
	size_t name_len = sign ? (size_t)(sign - text) : len;
	struct query_pair pair = { 0 };

	pair.name = url_decode(text, name_len, true);
	if (!pair.name)
		return -errno;
	pair.value = sign ? url_decode(sign + 1, len - name_len - 1, true)
			  : strdup("");
	if (!pair.value) {
		int r = -errno;

		free(pair.name);
		return r;
	}
	q->v[q->n++] = pair;
	return 0;
}

int query_parse(const char *text, size_t len, struct query *ret)
{
	const char *end = text + len;
	size_t n = 1;

	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < len; i++)
		n += text[i] == '&';
	ret->v = calloc(n, sizeof(*ret->v));
	if (!ret->v)
		return -ENOMEM;
	while (text < end) {
		const char *stop = memchr(text, '&', (size_t)(end - text));
		int r;

		if (!stop)
			stop = end;
		r = stop > text ? query_add(ret, text, (size_t)(stop - text))
				: 0;
		if (r < 0)
			return r;
		text = stop + 1;
	}
	return 0;
}

void query_done(struct query *q)
{
	for (size_t i = 0; i < q->n; i++) {
		free(q->v[i].name);
		free(q->v[i].value);
	}
	free(q->v);
	memset(q, 0, sizeof(*q));
}

const char *query_next(const struct query *q, const char *name, unsigned int *i)
{
	while (*i < q->n) {
		const struct query_pair *p = &q->v[(*i)++];

		if (strcmp(p->name, name) == 0)
			return p->value;
	}
	return NULL;
}
