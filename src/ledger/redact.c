/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger/redact.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/secrets.h"
#include "base/util.h"

#define GONE "[redacted]"

struct scan {
	const char *p, *end;
	const char *text;
	struct buf *out;
	bool is_address; /* between "://" and the end of an address */
};

/* A token cannot begin behind a letter or digit. */
static bool is_start(const struct scan *s)
{
	return s->p == s->text || !isalnum((unsigned char)s->p[-1]);
}

static bool eat_token(struct scan *s)
{
	struct secret_token t;
	size_t len = secret_token(s->p, s->end, &t);

	if (len == 0)
		return false;
	buf_add(s->out, s->p, t.prefix);
	buf_puts(s->out, GONE);
	s->p += len;
	return true;
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
 * a word that holds such a name, up to SECRET_NAME long, a quote, a mark, the
 * value.
 */
static bool eat_pair(struct scan *s)
{
	size_t len = secret_word(s->p, MIN(s->end, s->p + SECRET_NAME + 1),
				 ".");
	const char *mark;
	const char *to;
	const char *p;

	if (len == 0 || len > SECRET_NAME)
		return false;
	mark = secret_mark(s->p + len, s->end);
	if (!mark || !secret_has_name(s->p, len))
		return false;
	p = secret_value(mark, s->end);
	if (p >= s->end)
		return false;
	/* A scheme in front of the value stays. */
	if (s->end - p > 6 && (strncasecmp(p, "basic ", 6) == 0 ||
			       strncasecmp(p, "token ", 6) == 0))
		p += 6;
	else if (s->end - p > 7 && strncasecmp(p, "bearer ", 7) == 0)
		p += 7;
	/* A key in lines goes on where a word ends: it is eaten next. */
	to = secret_skip(p, s->end, "\\\"'");
	if (secret_pem_line(to, s->end)) {
		buf_add(s->out, s->p, (size_t)(to - s->p));
		s->p = to;
		return true;
	}
	to = secret_value_end(p, s->end);
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
	size_t len = secret_word(s->p, MIN(s->end, s->p + SECRET_NAME), ".");
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
		if (secret_value_end(p, s->end) - p < 12)
			return false;
	}
	buf_add(s->out, s->p, (size_t)(p - s->p));
	buf_puts(s->out, GONE);
	s->p = secret_value_end(p, s->end);
	return true;
}

/* All of a private key, to its last line or the end of the text. */
static bool eat_pem(struct scan *s)
{
	const char *line = *s->p == '-' ? secret_pem_line(s->p, s->end) : NULL;

	if (!line)
		return false;
	buf_add(s->out, s->p, (size_t)(line - s->p));
	buf_puts(s->out, GONE);
	s->p = secret_pem_end(line, s->end);
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
	size_t len = secret_word(s->p + 1, MIN(s->end, s->p + SECRET_NAME),
				 ".");

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
	size_t len = secret_word(s->p, MIN(s->end, s->p + SECRET_NAME), "");
	const char *value = secret_skip(s->p + len, s->end, " \t");
	const char *to;
	const char *from = value;

	if (*s->p != '-' || value == s->p + len || value >= s->end ||
	    *value == '-')
		return false;
	to = secret_value_end(value, s->end);
	if (is_login_flag(s->p, len))
		from = login_value(value, to);
	else if (!secret_has_name(s->p, len))
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
	if (len > 0 && secret_has_name(name, MIN(name_len, 256)))
		return buf_puts(out, GONE);
	return redact(out, value, len);
}

bool redact_is_secret_flag(const char *arg)
{
	size_t len = strlen(arg);

	if (len == 0 || len > SECRET_NAME ||
	    secret_word(arg, arg + len, "") != len)
		return false;
	/* Without a dash only what ends so: aws_secret_access_key VALUE. */
	if (arg[0] != '-')
		return strchr(arg, '_') && secret_has_ending(arg, len) &&
		       secret_has_name(arg, len);
	return secret_has_name(arg, len);
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
