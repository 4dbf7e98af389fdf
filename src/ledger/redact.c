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
 * alphabet (letters, digits, '_' and '-', and those in `more`).
 */
static const struct {
	const char *prefix;
	size_t least;
	const char *more;
} tokens[] = {
	{ "ghp_", 16, "" },
	{ "gho_", 16, "" },
	{ "ghu_", 16, "" },
	{ "ghs_", 16, "" },
	{ "ghr_", 16, "" },
	{ "github_pat_", 16, "" },
	{ "glpat-", 16, "" },
	{ "gldt-", 16, "" },
	{ "sk-", 16, "" },
	{ "sk_live_", 10, "" },
	{ "sk_test_", 10, "" },
	{ "rk_live_", 10, "" },
	{ "pk_live_", 10, "" },
	{ "whsec_", 10, "" },
	{ "AKIA", 16, "" },
	{ "ASIA", 16, "" },
	{ "AIza", 30, "" },
	{ "ya29.", 16, "." },
	{ "xoxb-", 8, "" },
	{ "xoxp-", 8, "" },
	{ "xoxa-", 8, "" },
	{ "xoxr-", 8, "" },
	{ "xoxs-", 8, "" },
	{ "xapp-", 8, "" },
	{ "hf_", 16, "" },
	{ "npm_", 16, "" },
	{ "pypi-", 16, "" },
	{ "dop_v1_", 16, "" },
	{ "SG.", 16, "." },
	{ "hvs.", 16, "." },
	{ "nvapi-", 16, "" },
	{ "gsk_", 16, "" },
	{ "dckr_pat_", 10, "" },
	{ "shpat_", 10, "" },
	{ "eyJ", 20, "." }, /* a JSON web token */
	{ "ABIA", 16, "" },
	{ "ACCA", 16, "" },
	{ "xoxe-", 8, "" },
	{ "xoxc-", 8, "" },
	{ "xoxd-", 8, "" },
	{ "glptt-", 16, "" },
	{ "glrt-", 16, "" },
	{ "glcbt-", 16, "" },
	{ "doo_v1_", 16, "" },
	{ "dor_v1_", 16, "" },
	{ "hvb.", 16, "." },
	{ "r8_", 16, "" },
	{ "xai-", 16, "" },
	{ "pplx-", 16, "" },
	{ "tvly-", 16, "" },
	{ "e2b_", 16, "" },
	{ "glsa_", 16, "" },
	{ "lin_api_", 16, "" },
	{ "rubygems_", 16, "" },
	{ "shpss_", 10, "" },
	{ "sq0atp-", 10, "" },
	{ "sq0csp-", 10, "" },
	{ "PMAK-", 16, "" },
	{ "figd_", 16, "" },
	{ "ATATT3", 16, "=" },
	{ "AGE-SECRET-KEY-1", 16, "" },
	{ "dapi", 32, "" },
	{ "key-", 32, "" },
	{ "tskey-", 16, "" },
	{ "LS0tLS1CRUdJTi", 16, "+/=" }, /* "-----BEGIN" in base64 */
};

/* Names whose value is a secret, in lower case; parts of longer names too. */
static const char *const names[] = {
	"password",    "passwd",     "passphrase",    "secret",
	"token",       "api_key",    "api-key",       "apikey",
	"access_key",  "access-key", "accesskey",     "private_key",
	"private-key", "credential", "authorization", "auth_key",
	"session_key", "signature",  "_pwd",          "cookie",
	"accountkey",  "key-data",
};

/*
 * Words that make a name one of a secret where it ends with them: DB_PASS,
 * dbPass, SIGNING_KEY, but not "bypass" or "monkey". PWD is a directory and
 * "key" alone says little.
 */
static const struct {
	const char *word;
	bool alone; /* also when it is the whole name */
} endings[] = {
	{ "pass", true }, { "pw", true },   { "pwd", false }, { "creds", true },
	{ "key", false }, { "auth", true }, { "jwt", true },  { "pat", false },
	{ "otp", true },  { "dsn", true },
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

static size_t token_len(const char *p, const char *end, const char *more)
{
	const char *start = p;

	while (p < end && (is_word(*p) || (*p && strchr(more, *p))))
		p++;
	return (size_t)(p - start);
}

static bool eat_token(struct scan *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(tokens); i++) {
		size_t len;
		size_t rest;

		if (tokens[i].prefix[0] != *s->p)
			continue;
		len = strlen(tokens[i].prefix);
		if ((size_t)(s->end - s->p) <= len ||
		    memcmp(s->p, tokens[i].prefix, len) != 0)
			continue;
		rest = token_len(s->p + len, s->end, tokens[i].more);
		if (rest < tokens[i].least)
			continue;
		buf_add(s->out, s->p, len);
		buf_puts(s->out, GONE);
		s->p += len + rest;
		return true;
	}
	return false;
}

/* Whether a part of a name begins at p[at]: my_pass, my-pass, myPass. */
static bool is_part(const char *p, size_t at)
{
	return at == 0 || !isalnum((unsigned char)p[at - 1]) ||
	       (isupper((unsigned char)p[at]) &&
		islower((unsigned char)p[at - 1]));
}

static bool has_ending(const char *p, size_t len)
{
	/* Of "--pass" the name is "pass". */
	for (; len > 0 && !isalnum((unsigned char)*p); len--)
		p++;
	for (size_t i = 0; i < ARRAY_SIZE(endings); i++) {
		size_t n = strlen(endings[i].word);

		if (len >= n &&
		    strncasecmp(p + len - n, endings[i].word, n) == 0 &&
		    is_part(p, len - n) && (len > n || endings[i].alone))
			return true;
	}
	return false;
}

static bool has_name(const char *p, size_t len)
{
	if (has_ending(p, len))
		return true;
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

/* Whether an '&' at p is followed by another pair of a form, not a value. */
static bool is_next_pair(const char *p, const char *end)
{
	size_t len = token_len(p + 1, MIN(end, p + MAX_NAME), ".");

	return len > 0 && p + 1 + len < end && p[1 + len] == '=';
}

/* In double quotes a backslash keeps what follows it. */
static const char *quote_end(const char *p, const char *end)
{
	char quote = *p;

	for (p++; p < end && *p != quote; p++)
		if (*p == '\\' && quote == '"' && p + 1 < end)
			p++;
	return p < end ? p + 1 : end;
}

/*
 * Where a value ends: at its quote, or where a word ends. Rather too much
 * than too little: a password may hold any of ",;|<>()".
 */
static const char *value_end(const char *p, const char *end)
{
	/* Quotes within a quoted text: \"...\" */
	if (end - p > 2 && *p == '\\' && (p[1] == '"' || p[1] == '\'')) {
		const char *to = memchr(p + 2, p[1], (size_t)(end - p - 2));

		return to ? to + 1 : end;
	}
	if (p < end && (*p == '"' || *p == '\''))
		return quote_end(p, end);
	while (p < end && *p && !isspace((unsigned char)*p) &&
	       !strchr("\"'`", *p) && (*p != '&' || !is_next_pair(p, end)))
		p++;
	return p;
}

static const char *find(const char *p, const char *end, const char *what)
{
	return memmem(p, (size_t)(end - p), what, strlen(what));
}

/* Where the first line of a private key ends that begins at p; else NULL. */
static const char *pem_line(const char *p, const char *end)
{
	static const char begin[] = "-----BEGIN ";
	const char *line;

	if ((size_t)(end - p) < sizeof(begin) - 1 ||
	    memcmp(p, begin, sizeof(begin) - 1) != 0)
		return NULL;
	line = find(p + sizeof(begin) - 1, MIN(end, p + 80), "-----");
	return line && find(p, line, "PRIVATE KEY") ? line + 5 : NULL;
}

/* The mark behind a name, with the quote that closes it; NULL: no pair. */
static const char *find_mark(const char *p, const char *end)
{
	const char *mark = skip(p, end, "\\\"'");

	mark = skip(mark, end, " \t");
	if (mark >= end || (*mark != '=' && *mark != ':') ||
	    strncmp(mark, "://", MIN(3, end - mark)) == 0)
		return NULL;
	return mark;
}

/* Where its value begins; "a = b" is written with spaces on both sides. */
static const char *find_value(const char *mark, const char *end)
{
	const char *p = mark + 1;
	bool is_spaced = isspace((unsigned char)mark[-1]);

	if (*mark == '=' && p < end && (*p == '=' || *p == '>'))
		p++;
	if (*mark == ':' && p < end && *p == '=')
		p++;
	if (*mark == ':' || is_spaced)
		p = skip(p, end, " \t");
	return p;
}

/* A header's value is all of its line, or up to the quote it stands in. */
static const char *header_end(const struct scan *s, const char *to)
{
	char quote = s->p > s->text ? s->p[-1] : '\0';

	while (to < s->end && *to != '\r' && *to != '\n' &&
	       (*to != quote || (quote != '"' && quote != '\'')))
		to++;
	return to;
}

/*
 * "password=...", "token: ...", '"api_key":"..."', "Authorization: Basic ...":
 * a word that holds such a name, up to MAX_NAME long, a quote, a mark, the
 * value.
 */
static bool eat_pair(struct scan *s)
{
	size_t len = token_len(s->p, MIN(s->end, s->p + MAX_NAME + 1), ".");
	const char *mark;
	const char *to;
	const char *p;

	if (len == 0 || len > MAX_NAME)
		return false;
	mark = find_mark(s->p + len, s->end);
	if (!mark || !has_name(s->p, len))
		return false;
	p = find_value(mark, s->end);
	if (p >= s->end)
		return false;
	/* A scheme in front of the value stays. */
	if (s->end - p > 6 && (strncasecmp(p, "basic ", 6) == 0 ||
			       strncasecmp(p, "token ", 6) == 0))
		p += 6;
	else if (s->end - p > 7 && strncasecmp(p, "bearer ", 7) == 0)
		p += 7;
	/* A key in lines goes on where a word ends: it is eaten next. */
	to = skip(p, s->end, "\\\"'");
	if (pem_line(to, s->end)) {
		buf_add(s->out, s->p, (size_t)(to - s->p));
		s->p = to;
		return true;
	}
	to = value_end(p, s->end);
	if (to == p)
		return false;
	if (*mark == ':' && mark[1] == ' ' && *p != '"' && *p != '\'')
		to = header_end(s, to);
	buf_add(s->out, s->p, (size_t)(p - s->p));
	buf_puts(s->out, GONE);
	s->p = to;
	return true;
}

/* "user:password@host", also without a scheme in front; not a digest. */
static bool eat_login(struct scan *s)
{
	size_t len = token_len(s->p, MIN(s->end, s->p + MAX_NAME), ".");
	const char *colon = s->p + len;
	const char *end = MIN(s->end, colon + 256);
	const char *p = colon + 1;

	if (len == 0 || colon >= s->end || *colon != ':')
		return false;
	while (p < end && (unsigned char)*p > ' ' && !strchr("@/\"'`", *p))
		p++;
	if (p >= end || *p != '@' || p == colon + 1 || p + 1 >= s->end ||
	    !isalnum((unsigned char)p[1]) ||
	    (s->end - p > 7 && memcmp(p, "@sha256:", 8) == 0))
		return false;
	buf_add(s->out, s->p, len + 1);
	buf_puts(s->out, GONE);
	s->p = p;
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

/* All of a private key, to its last line or the end of the text. */
static bool eat_pem(struct scan *s)
{
	const char *line = *s->p == '-' ? pem_line(s->p, s->end) : NULL;
	const char *end;

	if (!line)
		return false;
	buf_add(s->out, s->p, (size_t)(line - s->p));
	buf_puts(s->out, GONE);
	end = find(line, s->end, "-----END ");
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

/* An address without its scheme: "host/path?name=...". */
static bool is_query(const struct scan *s)
{
	size_t len = token_len(s->p + 1, MIN(s->end, s->p + MAX_NAME), ".");

	return *s->p == '?' && s->p > s->text && len > 0 &&
	       (isalnum((unsigned char)s->p[-1]) || s->p[-1] == '/') &&
	       s->p + 1 + len < s->end && s->p[1 + len] == '=';
}

/* In an address: its query and fragment are not recorded. */
static bool eat_query(struct scan *s)
{
	if ((unsigned char)*s->p <= ' ' || strchr("\"'<>`", *s->p))
		s->is_address = false;
	if (!is_query(s) && (!s->is_address || (*s->p != '?' && *s->p != '#')))
		return false;
	buf_add(s->out, s->p, 1);
	buf_puts(s->out, GONE);
	while (s->p < s->end && (unsigned char)*s->p > ' ' &&
	       !strchr("\"'<>`", *s->p))
		s->p++;
	s->is_address = false;
	return true;
}

/* curl's and others' "-u NAME:PASSWORD"; numbers are a user and a group. */
static bool is_login_flag(const char *arg, size_t len)
{
	static const char *const flags[] = { "-u", "-U", "--user",
					     "--proxy-user" };

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
		if (strlen(flags[i]) == len && memcmp(arg, flags[i], len) == 0)
			return true;
	return false;
}

/* Where the password in a word "NAME:PASSWORD" begins; NULL: there is none. */
static const char *login_value(const char *p, const char *end)
{
	const char *colon = memchr(p, ':', (size_t)(end - p));
	const char *rest = colon ? colon + 1 : end;

	while (rest < end && isdigit((unsigned char)*rest))
		rest++;
	return colon && colon > p && rest < end ? colon + 1 : NULL;
}

/* "--password hunter2", "-u me:hunter2": in a command kept as one text. */
static bool eat_flag(struct scan *s)
{
	size_t len = token_len(s->p, MIN(s->end, s->p + MAX_NAME), "");
	const char *value = skip(s->p + len, s->end, " \t");
	const char *to;
	const char *from = value;

	if (*s->p != '-' || value == s->p + len || value >= s->end ||
	    *value == '-')
		return false;
	to = value_end(value, s->end);
	if (is_login_flag(s->p, len))
		from = login_value(value, to);
	else if (!has_name(s->p, len))
		return false;
	if (!from || to == value)
		return false;
	buf_add(s->out, s->p, (size_t)(from - s->p));
	buf_puts(s->out, GONE);
	s->p = to;
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
		    (eat_token(&s) || eat_bearer(&s) || eat_pair(&s) ||
		     eat_flag(&s) || eat_login(&s)))
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
	size_t len = strlen(arg);

	if (len == 0 || len > MAX_NAME || token_len(arg, arg + len, "") != len)
		return false;
	/* Without a dash only what ends so: aws_secret_access_key VALUE. */
	if (arg[0] != '-')
		return strchr(arg, '_') && has_ending(arg, len) &&
		       has_name(arg, len);
	return has_name(arg, len);
}

/* Where the password in "[--user=]NAME:PASSWORD" begins; 0: there is none. */
static size_t password_at(const char *before, const char *text, size_t len)
{
	const char *eq = memchr(text, '=', len);
	const char *from = text;
	const char *value;

	if (eq && is_login_flag(text, (size_t)(eq - text)))
		from = eq + 1;
	else if (!before || !is_login_flag(before, strlen(before)))
		return 0;
	value = login_value(from, text + len);
	return value ? (size_t)(value - text) : 0;
}

int redact_argument(struct buf *out, const char *before, const char *text,
		    size_t len)
{
	size_t at;

	if (before && redact_is_secret_flag(before))
		return buf_puts(out, GONE);
	at = password_at(before, text, len);
	if (at == 0)
		return redact(out, text, len);
	(void)redact(out, text, at);
	return buf_puts(out, GONE);
}
