/* SPDX-License-Identifier: Apache-2.0 */
#include "base/secrets.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"

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

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-';
}

size_t secret_word(const char *p, const char *end, const char *more)
{
	const char *start = p;

	while (p < end && (is_word(*p) || (*p && strchr(more, *p))))
		p++;
	return (size_t)(p - start);
}

size_t secret_token(const char *p, const char *end, struct secret_token *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(tokens); i++) {
		size_t len;
		size_t rest;

		if (tokens[i].prefix[0] != *p)
			continue;
		len = strlen(tokens[i].prefix);
		if ((size_t)(end - p) <= len ||
		    memcmp(p, tokens[i].prefix, len) != 0)
			continue;
		rest = secret_word(p + len, end, tokens[i].more);
		if (rest < tokens[i].least)
			continue;
		*ret = (struct secret_token){ len, tokens[i].least,
					      tokens[i].more };
		return len + rest;
	}
	return 0;
}

/* Whether a part of a name begins at p[at]: my_pass, my-pass, myPass. */
static bool is_part(const char *p, size_t at)
{
	return at == 0 || !isalnum((unsigned char)p[at - 1]) ||
	       (isupper((unsigned char)p[at]) &&
		islower((unsigned char)p[at - 1]));
}

bool secret_has_ending(const char *p, size_t len)
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

bool secret_has_name(const char *p, size_t len)
{
	if (secret_has_ending(p, len))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t n = strlen(names[i]);

		for (size_t at = 0; at + n <= len; at++)
			if (strncasecmp(p + at, names[i], n) == 0)
				return true;
	}
	return false;
}

const char *secret_skip(const char *p, const char *end, const char *set)
{
	while (p < end && *p && strchr(set, *p))
		p++;
	return p;
}

/* Whether an '&' at p is followed by another pair of a form, not a value. */
static bool is_next_pair(const char *p, const char *end)
{
	size_t len = secret_word(p + 1, MIN(end, p + SECRET_NAME), ".");

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
const char *secret_value_end(const char *p, const char *end)
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
const char *secret_pem_line(const char *p, const char *end)
{
	static const char begin[] = "-----BEGIN ";
	const char *line;

	if ((size_t)(end - p) < sizeof(begin) - 1 ||
	    memcmp(p, begin, sizeof(begin) - 1) != 0)
		return NULL;
	line = find(p + sizeof(begin) - 1, MIN(end, p + 80), "-----");
	return line && find(p, line, "PRIVATE KEY") ? line + 5 : NULL;
}

const char *secret_pem_end(const char *line, const char *end)
{
	const char *last = find(line, end, "-----END ");

	last = last ? find(last + 9, end, "-----") : NULL;
	return last ? last + 5 : end;
}

/* The mark behind a name, with the quote that closes it; NULL: no pair. */
const char *secret_mark(const char *p, const char *end)
{
	const char *mark = secret_skip(p, end, "\\\"'");

	mark = secret_skip(mark, end, " \t");
	if (mark >= end || (*mark != '=' && *mark != ':') ||
	    strncmp(mark, "://", MIN(3, end - mark)) == 0)
		return NULL;
	return mark;
}

/* Where its value begins; "a = b" is written with spaces on both sides. */
const char *secret_value(const char *mark, const char *end)
{
	const char *p = mark + 1;
	bool is_spaced = isspace((unsigned char)mark[-1]);

	if (*mark == '=' && p < end && (*p == '=' || *p == '>'))
		p++;
	if (*mark == ':' && p < end && *p == '=')
		p++;
	if (*mark == ':' || is_spaced)
		p = secret_skip(p, end, " \t");
	return p;
}
