/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation
 *
 * The glob becomes a list of tokens, and the text is walked once with the set
 * of tokens that may come next: no way back, so no text makes it slow.
 */

#include "desk/glob.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/util.h"
#include "base/visible.h"

enum token_kind {
	TOKEN_CHAR,
	TOKEN_ONE,  /* a character of a segment */
	TOKEN_SOME, /* any number of those */
	TOKEN_ALL,  /* any number of any */
};

struct token {
	enum token_kind kind;
	uint32_t c;
};

struct tokens {
	struct token v[2 * GLOB_MAX];
	size_t n;
};

/* The next character and its length; a byte that is no UTF-8 is itself. */
static uint32_t next_char(const char *text, size_t *ret_len)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t n = utf8_len(p, strlen(text));
	uint32_t c = *p;

	*ret_len = MAX(n, (size_t)1);
	if (n > 1)
		c &= 0x7fU >> n;
	for (size_t i = 1; i < n; i++)
		c = c << 6 | (p[i] & 0x3f);
	return c;
}

static void add(struct tokens *t, enum token_kind kind, uint32_t c)
{
	t->v[t->n++] = (struct token){ kind, c };
}

/* One or two stars; `before` is the character in front, 0 at the start. */
static size_t add_stars(struct tokens *t, const char *p, char before)
{
	size_t n = p[1] == '*' ? 2 : 1;

	if ((!before || before == '/') && (!p[n] || p[n] == '/'))
		add(t, TOKEN_ONE, 0);
	add(t, n == 2 ? TOKEN_ALL : TOKEN_SOME, 0);
	return n;
}

static void read_tokens(const char *glob, struct tokens *t)
{
	size_t len;

	t->n = 0;
	for (const char *p = glob; *p; p += len) {
		len = 1;
		if (*p == '*') {
			len = add_stars(t, p, p > glob ? p[-1] : '\0');
		} else if (*p == '?') {
			add(t, TOKEN_ONE, 0);
		} else {
			p += *p == '\\';
			add(t, TOKEN_CHAR, next_char(p, &len));
		}
	}
}

int glob_check(const char *glob, struct err *err)
{
	if (strlen(glob) > GLOB_MAX)
		return err_set(err, E2BIG, "a glob has at most %d bytes",
			       GLOB_MAX);
	if (!*glob || !utf8_check(glob, strlen(glob)))
		return err_set(err, EINVAL, "a glob is UTF-8 text");
	for (const char *p = glob; *p; p++) {
		if (strchr("[]{}", *p))
			return err_set(err, EINVAL,
				       "'%c' has no meaning in a glob; write "
				       "\\%c for itself",
				       *p, *p);
		if (strncmp(p, "***", 3) == 0)
			return err_set(err, EINVAL,
				       "three stars have no meaning in a glob");
		if (*p == '\\' && !*++p)
			return err_set(err, EINVAL,
				       "a glob ends with a backslash");
	}
	return 0;
}

/* What follows without a character: the way past a star. */
static void pass_stars(const struct tokens *t, bool *at)
{
	for (size_t i = 0; i < t->n; i++)
		if (at[i] && t->v[i].kind >= TOKEN_SOME)
			at[i + 1] = true;
}

static bool may_stand(const struct token *t, uint32_t c, bool strict)
{
	if (t->kind == TOKEN_CHAR)
		return t->c == c;
	if (strict && (!visible_check(c) || c == '\\'))
		return false;
	return t->kind == TOKEN_ALL || c != '/';
}

static bool match(const char *glob, const char *text, bool strict)
{
	bool now[2 * GLOB_MAX + 1] = { true };
	bool next[2 * GLOB_MAX + 1];
	struct tokens t;
	size_t len;

	if (strlen(text) > GLOB_TEXT || glob_check(glob, NULL) < 0)
		return false;
	read_tokens(glob, &t);
	pass_stars(&t, now);
	for (; *text; text += len) {
		uint32_t c = next_char(text, &len);

		memset(next, 0, (t.n + 1) * sizeof(*next));
		for (size_t i = 0; i < t.n; i++)
			if (now[i] && may_stand(&t.v[i], c, strict))
				next[t.v[i].kind >= TOKEN_SOME ? i : i + 1] =
					true;
		memcpy(now, next, (t.n + 1) * sizeof(*now));
		pass_stars(&t, now);
	}
	return now[t.n];
}

/* yes */

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

static bool has_dots(const char *text)
{
	for (;;) {
		size_t n = strcspn(text, "/");

		if ((n == 1 && *text == '.') ||
		    (n == 2 && strncmp(text, "..", 2) == 0))
			return true;
		if (!text[n])
			return false;
		text += n + 1;
	}
}

static bool has_encoded(const char *text)
{
	static const char *const bad[] = { "%2e", "%2f", "%5c" };

	for (; (text = strchr(text, '%')); text++)
		for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
			if (strncasecmp(text, bad[i], 3) == 0)
				return true;
	return false;
}

bool glob_allows(const char *glob, const char *text)
{
	return !has_dots(text) && !has_encoded(text) &&
	       count(text, "//") == count(glob, "//") &&
	       match(glob, text, true);
}

/* no */

/* As a path without ".", ".." and "//"; `ret` has room for `text`. */
static void straighten(const char *text, char *ret)
{
	char *const begin = ret + (*text == '/');
	char *end = begin;

	if (*text == '/')
		*ret = '/';
	while (*text) {
		size_t n = strcspn(text, "/");

		if (n == 2 && strncmp(text, "..", 2) == 0) {
			while (end > begin && *--end != '/')
				;
		} else if (n > 0 && !(n == 1 && *text == '.')) {
			if (end > begin)
				*end++ = '/';
			memcpy(end, text, n);
			end += n;
		}
		text += n + (text[n] == '/');
	}
	*end = '\0';
}

bool glob_denies(const char *glob, const char *text)
{
	char straight[GLOB_TEXT + 1];
	char other[GLOB_MAX + 1];

	/* What is too long to be looked at is not let through by that. */
	if (strlen(text) > GLOB_TEXT || strlen(glob) > GLOB_MAX)
		return true;
	straighten(text, straight);
	straighten(glob, other);
	return match(glob, text, false) || match(other, straight, false);
}
