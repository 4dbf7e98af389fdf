/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Secrets in what is said: the shapes of base/secrets.h, each looked at once
 * more, because here a wrong find spoils an answer. A value that is a word, a
 * name in code or a placeholder is none; one that looks drawn by chance is.
 */

#include "runtime/filter-find.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/secrets.h"
#include "base/util.h"

#define LOOK   256 /* bytes of a value that are judged */
#define TOKEN  12  /* no token is as short as this */
#define VALUES 64  /* in one unbroken piece of text, that are none */

struct look {
	const char *text, *p, *end;
	struct finds *out;
	const char *piece; /* where the last value without quotes ended */
	int values;        /* in it, so far */
};

static bool is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9');
}

static void found(struct look *s, const char *from, const char *to)
{
	finds_add(s->out, (size_t)(from - s->text), (size_t)(to - s->text),
		  FIND_SECRETS);
	s->p = to;
}

struct letters {
	size_t lower, upper, digit;
};

/* The longest run of letters and digits, and what it is made of. */
static size_t longest(const char *p, size_t len, struct letters *ret)
{
	size_t best = 0;

	for (size_t i = 0; i < len;) {
		struct letters l = { 0 };
		size_t n = 0;

		for (; i < len && is_alnum(p[i]); i++, n++) {
			l.digit += isdigit((unsigned char)p[i]) != 0;
			l.upper += isupper((unsigned char)p[i]) != 0;
			l.lower += islower((unsigned char)p[i]) != 0;
		}
		i += n == 0;
		if (n > best) {
			best = n;
			*ret = l;
		}
	}
	return best;
}

static size_t distinct(const char *p, size_t len)
{
	bool seen[256] = { false };
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		n += !seen[(unsigned char)p[i]];
		seen[(unsigned char)p[i]] = true;
	}
	return n;
}

/*
 * Whether it looks drawn by chance: digits among letters, or both cases all
 * over, in one long run. Names in code have short runs, or no digits.
 */
static bool is_random(const char *p, size_t len, size_t run)
{
	struct letters l = { 0 };
	size_t n;

	len = MIN(len, LOOK);
	n = longest(p, len, &l);
	if (n < run || distinct(p, len) < MIN(run / 2 + 1, 8U))
		return false;
	return (l.digit > 1 && l.lower + l.upper > 1) ||
	       (l.upper * 4 >= n && l.lower * 4 >= n) || l.digit == n;
}

static bool is_web_token(const char *p, size_t len)
{
	const char *dot = memchr(p, '.', len);

	return dot && (size_t)(p + len - dot) > 10 &&
	       memchr(dot + 1, '.', (size_t)(p + len - dot - 1));
}

/* AWS: capitals and digits, of exactly this length. */
static bool is_capitals(const char *p, size_t len, size_t want)
{
	for (size_t i = 0; i < len; i++)
		if (!isupper((unsigned char)p[i]) &&
		    !isdigit((unsigned char)p[i]))
			return false;
	return len == want;
}

static bool is_token(const char *p, size_t len, const struct secret_token *t)
{
	const char *rest = p + t->prefix;
	size_t n = len - t->prefix;

	if (strncmp(p, "eyJ", 3) == 0)
		return is_web_token(p, len);
	if (strncmp(p, "LS0tLS1CRUdJTi", 14) == 0)
		return true;
	if (t->prefix == 4 && isupper((unsigned char)p[3]))
		return is_capitals(rest, n, t->least);
	return is_random(rest, n, MIN(t->least, 16U));
}

static bool eat_token(struct look *s)
{
	struct secret_token t;
	size_t len = 0;

	/* Most words end here. */
	while (len < TOKEN && s->p + len < s->end &&
	       (is_alnum(s->p[len]) || strchr("_-.", s->p[len])))
		len++;
	if (len < TOKEN)
		return false;
	len = secret_token(s->p, s->end, &t);
	if (len == 0 || !is_token(s->p, len, &t))
		return false;
	found(s, s->p, s->p + len);
	return true;
}

static bool eat_key(struct look *s)
{
	const char *line = *s->p == '-' ? secret_pem_line(s->p, s->end) : NULL;

	if (!line)
		return false;
	found(s, s->p, secret_pem_end(line, s->end));
	return true;
}

/* What stands for a secret where there is none; also within the value. */
static const char *const stand_ins[] = {
	"pass",  "secret", "token",   "changeme",    "change_me", "example",
	"xxxx",  "your",   "none",    "null",        "true",      "false",
	"****",  "....",   "redact",  "placeholder", "masked",    "undefined",
	"dummy", "sample", "default", "insert",      "todo",      "1234567890",
};

static bool holds(const char *p, size_t len, const char *what)
{
	size_t n = strlen(what);

	for (size_t at = 0; at + n <= len; at++)
		if ((p[at] | ' ') == (what[0] | ' ') &&
		    strncasecmp(p + at, what, n) == 0)
			return true;
	return false;
}

static bool is_stand_in(const char *p, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(stand_ins); i++)
		if (holds(p, MIN(len, 64U), stand_ins[i]))
			return true;
	return false;
}

static bool has_any(const char *p, size_t len, const char *set)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] && strchr(set, p[i]))
			return true;
	return false;
}

/* Names of keys that are no secrets. */
static bool is_harmless(const char *p, size_t len)
{
	static const char *const heads[] = { "public",  "cache",   "primary",
					     "foreign", "sort",    "partition",
					     "idempot", "publish", "row",
					     "group",   "object",  "storage" };

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		if (holds(p, len, heads[i]))
			return true;
	return false;
}

/* Names whose value a person thought up. */
static bool is_password(const char *p, size_t len)
{
	static const char *const names[] = { "password", "passwd", "passphrase",
					     "pass",     "pwd",    "pw" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t n = strlen(names[i]);

		if (len >= n && strncasecmp(p + len - n, names[i], n) == 0)
			return true;
	}
	return false;
}

struct value {
	const char *p;
	size_t len;
	bool is_quoted, is_assigned; /* '=' and not ':' */
};

static bool is_chosen(const struct value *v)
{
	struct letters l = { 0 };

	if (v->len < 6 || v->len > 128 || is_stand_in(v->p, v->len) ||
	    has_any(v->p, v->len, " \t\n|()[]{}<>,;"))
		return false;
	(void)longest(v->p, v->len, &l);
	/* A name in code: words joined by dots. */
	if (!v->is_quoted && has_any(v->p, v->len, ".") &&
	    !has_any(v->p, v->len, "!@#%^&*+=?"))
		return false;
	if (has_any(v->p, v->len, "!@#%^&*+?") && l.lower + l.upper > 0)
		return true;
	if (l.digit > 0 && l.lower + l.upper > 1)
		return v->is_quoted || v->len >= 7;
	return v->is_quoted && v->is_assigned && v->len >= 8;
}

static bool is_drawn(const struct value *v)
{
	return v->len >= 16 && is_random(v->p, v->len, 12) &&
	       !has_any(v->p, MIN(v->len, LOOK), " \t(){}<>") &&
	       !is_stand_in(v->p, v->len);
}

/* Without its quotes, and without what can only follow it. */
static struct value trimmed(const char *p, const char *to, char mark)
{
	struct value v = { .p = p, .is_assigned = mark == '=' };

	v.p = secret_skip(p, to, "\\\"'");
	v.is_quoted = v.p > p;
	while (to > v.p && strchr("\\\"'", to[-1]))
		to--;
	while (!v.is_quoted && to > v.p && strchr(",;)}].", to[-1]))
		to--;
	v.len = (size_t)(to - v.p);
	return v;
}

static const char *behind_scheme(const char *p, const char *end)
{
	static const char *const schemes[] = { "bearer ", "basic ", "token " };

	if (p < end && !strchr("bBtT", *p))
		return p;
	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
		size_t n = strlen(schemes[i]);

		if ((size_t)(end - p) > n && strncasecmp(p, schemes[i], n) == 0)
			return p + n;
	}
	return p;
}

/*
 * Where the value at p ends. In "token=token=token=..." each value goes on to
 * the same place: it is looked for once, and what has too many names in one
 * piece is itself suspect.
 */
static const char *value_to(struct look *s, const char *p)
{
	bool is_quoted = p < s->end && strchr("\\\"'", *p);

	if (is_quoted)
		return secret_value_end(p, s->end);
	if (!s->piece || p >= s->piece) {
		s->piece = secret_value_end(p, s->end);
		s->values = 0;
	}
	s->values++;
	return s->piece;
}

/* "password=hunter2", "api_key: ...", '"token":"..."'. */
static bool eat_pair(struct look *s)
{
	size_t len = secret_word(s->p, MIN(s->end, s->p + SECRET_NAME + 1),
				 ".");
	const char *mark;
	const char *p;
	struct value v;

	if (len == 0 || len > SECRET_NAME)
		return false;
	mark = secret_mark(s->p + len, s->end);
	if (!mark || !secret_has_name(s->p, len) || is_harmless(s->p, len))
		return false;
	p = secret_value(mark, s->end);
	if (p >= s->end)
		return false;
	p = behind_scheme(p, s->end);
	v = trimmed(p, value_to(s, p), *mark);
	if (s->values <= VALUES && !is_drawn(&v) &&
	    !(is_password(s->p, len) && is_chosen(&v)))
		return false;
	found(s, v.p, v.p + v.len);
	return true;
}

bool find_is_secret(const char *name, size_t name_len, const char *value,
		    size_t len)
{
	const struct value v = { value, len, true, false };

	if (name_len == 0 || name_len > SECRET_NAME ||
	    !secret_has_name(name, name_len) || is_harmless(name, name_len))
		return false;
	return is_drawn(&v) || (is_password(name, name_len) && is_chosen(&v));
}

/* "Bearer ...", "Basic ..." outside of a pair. */
static bool eat_header(struct look *s)
{
	const char *p = behind_scheme(s->p, s->end);
	struct value v;

	if (p == s->p)
		return false;
	v = trimmed(p, value_to(s, p), ':');
	if (!is_drawn(&v))
		return false;
	found(s, v.p, v.p + v.len);
	return true;
}

/* At "://": user and password in an address. */
static bool eat_login(struct look *s)
{
	const char *end = MIN(s->end, s->p + 3 + LOOK);
	const char *colon = NULL;
	const char *p = s->p + 3;

	if (*s->p != ':' || s->end - s->p < 6 || memcmp(s->p, "://", 3) != 0)
		return false;
	for (; p < end && (unsigned char)*p > ' ' && !strchr("/?#\"'<>@", *p);
	     p++)
		if (*p == ':' && !colon)
			colon = p;
	if (p >= end || *p != '@' || !colon || p - colon < 4 ||
	    is_stand_in(colon + 1, (size_t)(p - colon - 1)) ||
	    has_any(colon + 1, (size_t)(p - colon - 1), "{}$[]()"))
		return false;
	found(s, colon + 1, p);
	return true;
}

void find_secrets(struct finds *f, const char *text, size_t len)
{
	struct look s = { text, text, text + len, f, NULL, 0 };

	while (s.p < s.end) {
		bool is_start = s.p == text || !is_alnum(s.p[-1]);

		if (eat_login(&s) || eat_key(&s))
			continue;
		if (is_start &&
		    (eat_token(&s) || eat_header(&s) || eat_pair(&s)))
			continue;
		/* A run of letters is looked at once, at its start. */
		do
			s.p++;
		while (s.p < s.end && is_alnum(*s.p) && is_alnum(s.p[-1]));
	}
}
