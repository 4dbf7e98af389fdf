/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The host of a request in HTTP/1 (RFC 9112). Servers are lenient, each in its
 * own way, so what counts as a request here is wide: blanks and control bytes
 * before it, any method, a first line with "HTTP/" in it, or without a version.
 * What is then accepted is narrow: one space where one belongs, CRLF, one Host.
 * Between the two lies PEEK_BAD.
 *
 * Whatever is said of a beginning must hold for the whole, so each question
 * below that is answered with yes stays so when more bytes come.
 */

#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "gate/peek.h"
#include "gate/plain.h"

struct text {
	const char *at;
	size_t len;
};

static bool is_token(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || (c && strchr("!#$%&'*+-.^_`|~", c));
}

/* Python's servers split a line at any of these. */
static bool is_space(char c)
{
	uint8_t b = (uint8_t)c;

	return b == ' ' || (b >= '\t' && b <= '\r') ||
	       (b >= 0x1c && b < 0x20) || b == 0x85 || b == 0xa0;
}

/* Netty's servers skip any of these before a request. */
static bool is_skipped(char c)
{
	uint8_t b = (uint8_t)c;

	return b <= 0x20 || (b >= 0x7f && b <= 0xa0);
}

static bool is_text(char c)
{
	return (uint8_t)c >= 0x20 || is_space(c);
}

static bool begins(struct text t, const char *with)
{
	size_t n = strlen(with);

	return t.len >= n && memcmp(t.at, with, n) == 0;
}

static struct text after(struct text t, size_t n)
{
	return (struct text){ t.at + n, t.len - n };
}

/* The next line without its end; false: it has not ended yet. */
static bool take_line(struct text *t, struct text *ret_line, bool *ret_crlf)
{
	const char *end = memchr(t->at, '\n', t->len);

	if (!end)
		return false;
	*ret_line = (struct text){ t->at, (size_t)(end - t->at) };
	*t = after(*t, ret_line->len + 1);
	*ret_crlf = ret_line->len > 0 && end[-1] == '\r';
	if (*ret_crlf)
		ret_line->len--;
	return true;
}

/* The line's first word, and what stands behind the gap after it. */
static bool split(struct text line, struct text *ret_word, struct text *ret)
{
	size_t n = 0;

	while (n < line.len && is_token(line.at[n]))
		n++;
	*ret_word = (struct text){ line.at, n };
	if (n == 0 || n == line.len || !is_space(line.at[n]))
		return false;
	while (n < line.len && is_space(line.at[n]))
		n++;
	*ret = after(line, n);
	return true;
}

static bool is_word(struct text t, const char *word)
{
	return t.len == strlen(word) && strncasecmp(t.at, word, t.len) == 0;
}

static bool is_method(struct text word)
{
	static const char *const methods[] = {
		"GET",     "HEAD",    "POST",  "PUT",   "DELETE",
		"CONNECT", "OPTIONS", "TRACE", "PATCH",
	};

	for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
		if (is_word(word, methods[i]))
			return true;
	return false;
}

/* Not "get key", "OPTIONS rtsp:", "CONNECT {": others speak so. */
static bool is_target(struct text t, bool is_connect)
{
	if (t.len > 0 && is_connect && (is_token(*t.at) || *t.at == '['))
		return true;
	return begins(t, "/") ||
	       (t.len >= 5 && strncasecmp(t.at, "http:", 5) == 0) ||
	       (t.len >= 6 && strncasecmp(t.at, "https:", 6) == 0);
}

/* Whether a server could take this line for the first one of a request. */
static bool is_request_like(struct text line)
{
	struct text word;
	struct text rest;

	for (size_t i = 1; i + 5 <= line.len; i++)
		if (strncasecmp(line.at + i, "HTTP/", 5) == 0)
			return true;
	if (!split(line, &word, &rest))
		return false;
	/* Others put a line before their request. */
	if ((word.len == 3 && begins(word, "GET")) ||
	    (word.len == 5 && begins(word, "PROXY")))
		return true;
	/* HTTP/0.9 has no version, and old servers take any. */
	return is_method(word) && is_target(rest, is_word(word, "CONNECT"));
}

/* The line up to a byte that is in no text. */
static struct text text_of(struct text line)
{
	size_t n = 0;

	while (n < line.len && is_text(line.at[n]))
		n++;
	return (struct text){ line.at, n };
}

/*
 * Whether a line with such a byte in it could still be a request: some servers
 * take any byte in a target. A short word that one follows is rather a length,
 * as in LDAP.
 */
static bool is_worth_waiting(struct text line)
{
	struct text word;
	struct text rest;

	return split(line, &word, &rest) &&
	       (word.len > 2 || (rest.len > 0 && is_text(*rest.at)));
}

/* PEEK_HTTP: a request, of text alone. */
static enum peeked judge_line(struct text line, bool is_whole)
{
	struct text text = text_of(line);
	bool is_binary = text.len < line.len;

	if (is_request_like(text))
		return is_binary ? PEEK_BAD : PEEK_HTTP;
	if (is_binary && !is_worth_waiting(line))
		return PEEK_OTHER;
	if (is_binary && is_request_like(line))
		return PEEK_BAD;
	return is_whole ? PEEK_OTHER : PEEK_MORE;
}

/* "host", "host:port"; no user, no brackets: an address is not a name. */
static bool read_authority(struct text t, char name[GATE_HOST_MAX],
			   uint16_t *ret_port)
{
	const char *colon = memchr(t.at, ':', t.len);
	size_t host = colon ? (size_t)(colon - t.at) : t.len;
	uint32_t port = 0;

	*ret_port = 0;
	for (size_t i = host + 1; i < t.len; i++) {
		if (t.at[i] < '0' || t.at[i] > '9' || port > 65535)
			return false;
		port = port * 10 + (uint32_t)(t.at[i] - '0');
	}
	if (port > 65535 || (colon && port == 0))
		return false;
	*ret_port = (uint16_t)port;
	return plain_name(t.at, host, name) == 0;
}

struct request {
	struct text method;
	struct text target;
};

/* method SP target SP HTTP/1.x, and nothing else. */
static bool read_first(struct text line, struct request *r)
{
	size_t i = 0;
	size_t start;

	while (i < line.len && is_token(line.at[i]))
		i++;
	r->method = (struct text){ line.at, i };
	if (i == 0 || i == line.len || line.at[i] != ' ')
		return false;
	start = ++i;
	while (i < line.len && (uint8_t)line.at[i] > 0x20 && line.at[i] != 0x7f)
		i++;
	r->target = (struct text){ line.at + start, i - start };
	line = after(line, i);
	return r->target.len > 0 && line.len == 9 &&
	       (memcmp(line.at, " HTTP/1.1", 9) == 0 ||
		memcmp(line.at, " HTTP/1.0", 9) == 0);
}

/* The authority within the target, if it has one; false: it has a bad one. */
static bool target_authority(const struct request *r, struct text *ret)
{
	struct text t = r->target;

	*ret = (struct text){ NULL, 0 };
	if (r->method.len == 7 && begins(r->method, "CONNECT")) {
		*ret = t;
		return true;
	}
	if (t.at[0] == '/' || (t.len == 1 && t.at[0] == '*'))
		return true;
	if (t.len < 7 || strncasecmp(t.at, "http://", 7) != 0)
		return false;
	t = after(t, 7);
	*ret = (struct text){ t.at, 0 };
	while (ret->len < t.len && !strchr("/?#", t.at[ret->len]))
		ret->len++;
	return true;
}

static bool agrees(const struct request *r, const struct peek *have)
{
	char name[GATE_HOST_MAX];
	struct text authority;
	uint16_t port;

	if (!target_authority(r, &authority))
		return false;
	if (!authority.at)
		return true;
	return read_authority(authority, name, &port) &&
	       strcmp(name, have->name) == 0 &&
	       (!port || !have->port || port == have->port);
}

/* One field; false: it is none, or a second Host. */
static bool read_field(struct text line, struct peek *ret, bool *had_host)
{
	size_t i = 0;

	while (i < line.len && is_token(line.at[i]))
		i++;
	if (i == 0 || i == line.len || line.at[i] != ':')
		return false;
	for (size_t k = i; k < line.len; k++)
		if ((uint8_t)line.at[k] < 0x20 && line.at[k] != '\t')
			return false;
	if (i != 4 || strncasecmp(line.at, "Host", 4) != 0)
		return true;
	line = after(line, i + 1);
	while (line.len && (*line.at == ' ' || *line.at == '\t'))
		line = after(line, 1);
	while (line.len &&
	       (line.at[line.len - 1] == ' ' || line.at[line.len - 1] == '\t'))
		line.len--;
	if (*had_host)
		return false;
	*had_host = true;
	return read_authority(line, ret->name, &ret->port);
}

static enum peeked read_fields(struct text t, const struct request *r,
			       struct peek *ret)
{
	bool had_host = false;
	struct text line;
	bool is_crlf;

	while (take_line(&t, &line, &is_crlf)) {
		if (!is_crlf)
			return PEEK_BAD;
		if (line.len == 0)
			return had_host && agrees(r, ret) ? PEEK_HTTP
							  : PEEK_BAD;
		if (!read_field(line, ret, &had_host))
			return PEEK_BAD;
	}
	return PEEK_MORE;
}

/* False: not only blanks were skipped. */
static bool skip(struct text *t)
{
	bool is_blank = true;

	while (t->len && is_skipped(*t->at)) {
		is_blank = is_blank && is_space(*t->at);
		*t = after(*t, 1);
	}
	return is_blank;
}

enum peeked peek_http(const uint8_t *data, size_t len, struct peek *ret)
{
	struct text t = { (const char *)data, len };
	bool is_plain = skip(&t);
	struct request r;
	struct text line = t;
	bool is_crlf = false;
	bool is_whole = take_line(&t, &line, &is_crlf);
	enum peeked p;

	if (!is_plain && line.len && !is_token(*line.at))
		return PEEK_OTHER;
	/* It may be the end's. */
	if (!is_whole && line.len && line.at[line.len - 1] == '\r')
		line.len--;
	p = judge_line(line, is_whole);
	if (p != PEEK_HTTP)
		return p;
	ret->is_begun = true;
	if (!is_plain)
		return PEEK_BAD;
	if (!is_whole)
		return PEEK_MORE;
	if (!is_crlf || !read_first(line, &r))
		return PEEK_BAD;
	p = read_fields(t, &r, ret);
	if (p != PEEK_HTTP)
		ret->name[0] = '\0';
	return p;
}
