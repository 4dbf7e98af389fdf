/* SPDX-License-Identifier: Apache-2.0 */

/* The target of a request, and whom the request is for. */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "gate/http.h"

/* Printable, and nothing that servers cut or turn into something else. */
static bool is_plain(struct http_slice s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.at[i] <= ' ' || s.at[i] > '~' || s.at[i] == '#' ||
		    s.at[i] == '\\')
			return false;
	return s.len > 0;
}

static void split_query(struct http_slice rest, struct http_head *h)
{
	const char *mark = memchr(rest.at, '?', rest.len);
	size_t n = mark ? (size_t)(mark - rest.at) : rest.len;

	h->path = (struct http_slice){ rest.at, n };
	if (mark)
		h->query = (struct http_slice){ mark + 1, rest.len - n - 1 };
}

static bool skip(struct http_slice *s, const char *prefix)
{
	size_t n = strlen(prefix);

	if (s->len < n || strncasecmp(s->at, prefix, n) != 0)
		return false;
	s->at += n;
	s->len -= n;
	return true;
}

/* "http://host[:port]/path", as a client of a proxy says it. */
static int read_absolute(struct http_slice target, struct http_head *h)
{
	static const struct http_slice root = { "/", 1 };
	size_t n = 0;

	h->is_https = skip(&target, "https://");
	if (!h->is_https && !skip(&target, "http://"))
		return -EINVAL;
	while (n < target.len && target.at[n] != '/' && target.at[n] != '?')
		n++;
	h->authority = (struct http_slice){ target.at, n };
	if (n == 0 || memchr(target.at, '@', n))
		return -EINVAL;
	target.at += n;
	target.len -= n;
	if (target.len > 0 && *target.at == '?')
		return -EINVAL;
	split_query(target.len > 0 ? target : root, h);
	return 0;
}

int http_read_target(struct http_slice target, struct http_head *ret)
{
	if (!is_plain(target))
		return -EINVAL;
	if (http_is(&ret->method, "CONNECT")) {
		/* Refused by the rules, which say so better; it is recorded. */
		split_query(target, ret);
		return 0;
	}
	if (target.len == 1 && *target.at == '*') {
		ret->path = target;
		return http_is(&ret->method, "OPTIONS") ? 0 : -EINVAL;
	}
	if (*target.at != '/')
		return read_absolute(target, ret);
	split_query(target, ret);
	return 0;
}

/* Takes ":port" off the end; 0: there is none. -EINVAL: that is no port. */
static int take_port(struct http_slice *s)
{
	const char *colon = memrchr(s->at, ':', s->len);
	const char *end = s->at + s->len;
	int port = 0;

	if (!colon)
		return 0;
	if (end - colon < 2 || end - colon > 6)
		return -EINVAL;
	for (const char *p = colon + 1; p < end; p++) {
		if (*p < '0' || *p > '9')
			return -EINVAL;
		port = port * 10 + (*p - '0');
	}
	s->len = (size_t)(colon - s->at);
	return port > 0 && port < 65536 ? port : -EINVAL;
}

/* An IPv6 address stands in brackets here, and without them in `host`. */
static bool is_host(struct http_slice s, const char *host)
{
	if (s.len > 2 && s.at[0] == '[' && s.at[s.len - 1] == ']') {
		s.at++;
		s.len -= 2;
		return strchr(host, ':') && http_is(&s, host);
	}
	if (s.len > 1 && s.at[s.len - 1] == '.')
		s.len--;
	return !strchr(host, ':') && http_is(&s, host);
}

static bool is_for(struct http_slice authority, const char *host, uint16_t port)
{
	int p = authority.len > 0 && authority.at[authority.len - 1] == ']'
			? 0
			: take_port(&authority);

	return p >= 0 && (p == 0 || p == port) && is_host(authority, host);
}

enum gate_reason http_check_host(const struct http_head *h, const char *host,
				 uint16_t port, bool is_tls)
{
	const struct http_field *f = NULL;

	for (size_t i = 0; i < h->n_fields; i++) {
		if (!http_is(&h->fields[i].name, "host"))
			continue;
		if (f)
			return GATE_R_HTTP;
		f = &h->fields[i];
	}
	if (!f && h->minor >= 1)
		return GATE_R_HTTP;
	if (h->authority.at &&
	    (h->is_https != is_tls || !is_for(h->authority, host, port)))
		return GATE_R_HTTP_HOST;
	if (f && !is_for(f->value, host, port))
		return GATE_R_HTTP_HOST;
	return GATE_OK;
}
