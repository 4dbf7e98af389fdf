/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger/redact.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"

#define GONE     "[redacted]"
#define MAX_NAME 64

/*
 * Tokens that begin so, followed by at least `least` letters of their
 * alphabet (letters, digits, '_' and '-', '.' too with `has_dots`).
 */
static const struct {
	const char *prefix;
	size_t least;
	bool has_dots;
} tokens[] = {
	{ "ghp_", 16, false },      { "gho_", 16, false },
	{ "ghu_", 16, false },      { "ghs_", 16, false },
	{ "ghr_", 16, false },      { "github_pat_", 16, false },
	{ "glpat-", 16, false },    { "gldt-", 16, false },
	{ "sk-", 16, false },       { "sk_live_", 10, false },
	{ "sk_test_", 10, false },  { "rk_live_", 10, false },
	{ "pk_live_", 10, false },  { "whsec_", 10, false },
	{ "AKIA", 16, false },      { "ASIA", 16, false },
	{ "AIza", 30, false },      { "ya29.", 16, true },
	{ "xoxb-", 8, false },      { "xoxp-", 8, false },
	{ "xoxa-", 8, false },      { "xoxr-", 8, false },
	{ "xoxs-", 8, false },      { "xapp-", 8, false },
	{ "hf_", 16, false },       { "npm_", 16, false },
	{ "pypi-", 16, false },     { "dop_v1_", 16, false },
	{ "SG.", 16, true },        { "hvs.", 16, true },
	{ "nvapi-", 16, false },    { "gsk_", 16, false },
	{ "dckr_pat_", 10, false }, { "shpat_", 10, false },
	{ "eyJ", 20, true }, /* a JSON web token */
};

/* Names whose value is a secret, in lower case; parts of longer names too. */
static const char *const names[] = {
	"password",    "passwd",     "passphrase",    "secret",
	"token",       "api_key",    "api-key",       "apikey",
	"access_key",  "access-key", "accesskey",     "private_key",
	"private-key", "credential", "authorization", "auth_key",
	"session_key", "signature",  "_pwd",          "cookie",
};

struct scan {
	const char *p, *end;
	const char *text;
	struct buf *out;
	bool is_address; /* between "://" and the end of an address */
};

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* A token cannot begin behind a letter or digit. */
static bool is_start(const struct scan *s)
{
	return s->p == s->text || !isalnum((unsigned char)s->p[-1]);
}

static size_t token_len(const char *p, const char *end, bool has_dots)
{
	const char *start = p;

	while (p < end && (is_word(*p) || (has_dots && *p == '.')))
		p++;
	return (size_t)(p - start);
}

static bool eat_token(struct scan *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(tokens); i++) {
		size_t len = strlen(tokens[i].prefix);
		size_t rest;

		if ((size_t)(s->end - s->p) <= len ||
		    memcmp(s->p, tokens[i].prefix, len) != 0)
			continue;
		rest = token_len(s->p + len, s->end, tokens[i].has_dots);
		if (rest < tokens[i].least)
			continue;
		buf_add(s->out, s->p, len);
		buf_puts(s->out, GONE);
		s->p += len + rest;
		return true;
	}
	return false;
}

static bool has_name(const char *p, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t n = strlen(names[i]);

		for (size_t at = 0; at + n <= len; at++)
			if (strncasecmp(p + at, names[i], n) == 0)
				return true;
	}
	return false;
}

static const char *skip(const char *p, const char *end, const char *set)
{
	while (p < end && *p && strchr(set, *p))
		p++;
	return p;
}

/* Where a value ends: at its quote, or where a word ends. */
static const char *value_end(const char *p, const char *end)
{
	char quote = p < end && (*p == '"' || *p == '\'') ? *p : '\0';

	if (quote) {
		const char *to = memchr(p + 1, quote, (size_t)(end - p - 1));

		return to ? to + 1 : end;
	}
	while (p < end && *p && !isspace((unsigned char)*p) &&
	       !strchr("&;,|<>()\"'`}]", *p))
		p++;
	return p;
}

/*
 * "password=...", "token: ...", '"api_key":"..."', "Authorization: Basic ...":
 * a word that holds such a name, up to MAX_NAME long, a quote, a mark, the
 * value.
 */
static bool eat_pair(struct scan *s)
{
	size_t len = token_len(s->p, MIN(s->end, s->p + MAX_NAME + 1), true);
	const char *p = s->p + len;
	const char *mark;
	const char *to;

	if (len == 0 || len > MAX_NAME)
		return false;
	mark = skip(p, s->end, "\"'");
	mark = skip(mark, s->end, " ");
	if (mark >= s->end || (*mark != '=' && *mark != ':') ||
	    !has_name(s->p, len))
		return false;
	p = skip(mark + 1, s->end, *mark == ':' ? " \t" : "");
	if (p >= s->end || strncmp(mark, "://", MIN(3, s->end - mark)) == 0)
		return false;
	/* A scheme in front of the value stays. */
	if (s->end - p > 6 && (strncasecmp(p, "basic ", 6) == 0 ||
			       strncasecmp(p, "token ", 6) == 0))
		p += 6;
	else if (s->end - p > 7 && strncasecmp(p, "bearer ", 7) == 0)
		p += 7;
	to = value_end(p, s->end);
	if (to == p)
		return false;
	/* A header's value may be several words. */
	while (*mark == ':' && mark[1] == ' ' && to < s->end && *p != '"' &&
	       *p != '\'' && !strchr("\r\n\"'", *to))
		to++;
	buf_add(s->out, s->p, (size_t)(p - s->p));
	buf_puts(s->out, GONE);
	s->p = to;
	return true;
}

static bool eat_bearer(struct scan *s)
{
	const char *p = s->p + 7;

	if (s->end - s->p <= 7 || (strncasecmp(s->p, "bearer ", 7) != 0 &&
				   strncasecmp(s->p, "basic ", 6) != 0))
		return false;
	if (strncasecmp(s->p, "basic ", 6) == 0) {
		p--;
		/* "basic auth" is prose; base64 of a pair is longer. */
		if (value_end(p, s->end) - p < 12)
			return false;
	}
	buf_add(s->out, s->p, (size_t)(p - s->p));
	buf_puts(s->out, GONE);
	s->p = value_end(p, s->end);
	return true;
}

static const char *find(const char *p, const char *end, const char *what)
{
	return memmem(p, (size_t)(end - p), what, strlen(what));
}

/* All of a private key, to its last line or the end of the text. */
static bool eat_pem(struct scan *s)
{
	static const char begin[] = "-----BEGIN ";
	const char *line;
	const char *end;

	if ((size_t)(s->end - s->p) < sizeof(begin) - 1 ||
	    memcmp(s->p, begin, sizeof(begin) - 1) != 0)
		return false;
	line = find(s->p + sizeof(begin) - 1, MIN(s->end, s->p + 80), "-----");
	if (!line || !find(s->p, line, "PRIVATE KEY"))
		return false;
	buf_add(s->out, s->p, (size_t)(line + 5 - s->p));
	buf_puts(s->out, GONE);
	end = find(line + 5, s->end, "-----END ");
	end = end ? find(end + 9, s->end, "-----") : NULL;
	s->p = end ? end + 5 : s->end;
	return true;
}

/*
 * At "://": the scheme is out already. User and password, up to the last '@'
 * before the path, are not recorded.
 */
static bool eat_address(struct scan *s)
{
	const char *host;

	if (s->end - s->p < 3 || memcmp(s->p, "://", 3) != 0)
		return false;
	s->is_address = true;
	s->p += 3;
	host = s->p;
	for (const char *p = s->p;
	     p < s->end && (unsigned char)*p > ' ' && !strchr("/?#\"'<>`", *p);
	     p++)
		if (*p == '@')
			host = p + 1;
	buf_puts(s->out, "://");
	if (host > s->p)
		buf_puts(s->out, GONE "@");
	s->p = host;
	return true;
}

/* In an address: its query and fragment are not recorded. */
static bool eat_query(struct scan *s)
{
	if ((unsigned char)*s->p <= ' ' || strchr("\"'<>`", *s->p))
		s->is_address = false;
	if (!s->is_address || (*s->p != '?' && *s->p != '#'))
		return false;
	buf_add(s->out, s->p, 1);
	buf_puts(s->out, GONE);
	while (s->p < s->end && (unsigned char)*s->p > ' ' &&
	       !strchr("\"'<>`", *s->p))
		s->p++;
	s->is_address = false;
	return true;
}

int redact(struct buf *out, const char *text, size_t len)
{
	struct scan s = { text, text + len, text, out, false };

	while (s.p < s.end) {
		const char *start = s.p;

		if (eat_address(&s) || eat_query(&s) || eat_pem(&s))
			continue;
		if (is_start(&s) &&
		    (eat_token(&s) || eat_bearer(&s) || eat_pair(&s)))
			continue;
		/* A run of letters is looked at once, at its start. */
		do
			s.p++;
		while (s.p < s.end && isalnum((unsigned char)*s.p) &&
		       isalnum((unsigned char)s.p[-1]));
		buf_add(out, start, (size_t)(s.p - start));
	}
	return out->error;
}

int redact_variable(struct buf *out, const char *name, size_t name_len,
		    const char *value, size_t len)
{
	if (len > 0 && has_name(name, MIN(name_len, 256)))
		return buf_puts(out, GONE);
	return redact(out, value, len);
}

bool redact_is_secret_flag(const char *arg)
{
	return arg[0] == '-' && !strchr(arg, '=') && !strchr(arg, ' ') &&
	       has_name(arg, MIN(strlen(arg), 64));
}
