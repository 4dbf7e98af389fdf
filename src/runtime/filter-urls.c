/* SPDX-License-Identifier: Apache-2.0 */

/* Addresses: SCHEME://..., www.NAME, and data: with base64. */

#include "runtime/filter-find.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"

#define MAX_SCHEME 24

static bool is_scheme(char c)
{
	return isalnum((unsigned char)c) || c == '+' || c == '-' || c == '.';
}

/* Not what closes a sentence or a pair of brackets around it. */
static const char *address_end(const char *p, const char *end)
{
	const char *start = p;

	while (p < end && (unsigned char)*p > ' ' && !strchr("\"'<>`\\", *p))
		p++;
	while (p > start && strchr(".,;:!?)]}*", p[-1]))
		p--;
	return p;
}

/* Where the scheme before "://" begins; NULL: there is none. */
static const char *scheme_start(const char *text, const char *colon)
{
	const char *p = colon;

	while (p > text && colon - p < MAX_SCHEME && is_scheme(p[-1]))
		p--;
	while (p < colon && !isalpha((unsigned char)*p))
		p++;
	return colon - p >= 2 ? p : NULL;
}

static bool begins(const char *p, const char *end, const char *what)
{
	size_t n = strlen(what);

	return (size_t)(end - p) > n && strncasecmp(p, what, n) == 0;
}

static const char *start_at(const char *text, const char *p, const char *end)
{
	bool is_start = p == text || !isalnum((unsigned char)p[-1]);

	if (*p == ':' && begins(p, end, "://"))
		return scheme_start(text, p);
	if (is_start && begins(p, end, "www.") && isalnum((unsigned char)p[4]))
		return p;
	return is_start && begins(p, end, "data:") && strchr("tai", p[5])
		       ? p
		       : NULL;
}

void find_urls(struct finds *f, const char *text, size_t len)
{
	const char *end = text + len;

	for (const char *p = text; p < end; p++) {
		const char *start;
		const char *to;

		if (*p != ':' && *p != 'w' && *p != 'W' && *p != 'd' &&
		    *p != 'D')
			continue;
		start = start_at(text, p, end);
		if (!start)
			continue;
		to = address_end(p, end);
		if (to - p <= (*p == ':' ? 3 : 4) ||
		    (begins(p, end, "data:") &&
		     !memchr(p, ',', (size_t)(to - p))))
			continue;
		finds_add(f, (size_t)(start - text), (size_t)(to - text),
			  FIND_URLS);
		p = to - 1;
	}
}
