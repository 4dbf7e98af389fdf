/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/kinds.h"

#include <string.h>
#include <strings.h>

#include "policy/program-text.h"

#define MOST_PATH 4096
#define LETTERS   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS    "0123456789"

static bool is_made_of(const char *word, const char *set)
{
	return word[0] && word[strspn(word, set)] == '\0';
}

static const char *number(const char *w)
{
	size_t n;

	w += *w == '+' || *w == '-';
	n = strspn(w, DIGITS);
	if (n == 0)
		return "not a number";
	w += n;
	if (*w == '.')
		w += 1 + strspn(w + 1, DIGITS);
	n = strspn(w, LETTERS);
	return n > 3 || w[n] ? "not a number" : NULL;
}

static const char *assignment(const char *w)
{
	size_t n = strspn(w, LETTERS DIGITS "_");

	if (n == 0 || strchr(DIGITS, w[0]) || w[n] != '=')
		return "not of the form NAME=VALUE";
	return NULL;
}

/* gawk connects to /inet/tcp/0/HOST/PORT, also where it reads a file. */
static const char *awk_input(const char *w)
{
	if (w[0] == '-' && w[1])
		return "a flag after the program";
	if (strncmp(w, "/inet", 5) == 0)
		return "a network connection of awk";
	return NULL;
}

static const char *header(const char *w)
{
	size_t n = strspn(w, LETTERS DIGITS "-_");

	if (n == 0 || w[n] != ':')
		return "not of the form 'Name: value'";
	if (n == 4 && strncasecmp(w, "host", 4) == 0)
		return "another host in a header";
	if (strchr(w, '\n'))
		return "a header of several lines";
	return NULL;
}

static const char *plain(const char *w)
{
	if (w[0] == '\0')
		return "an empty operand";
	if (w[0] == '-' || w[0] == '+')
		return "a flag that no rule names";
	if (strchr(w, '\n') || strstr(w, "::") || strstr(w, "://"))
		return "not a plain operand";
	return NULL;
}

static const char *file(const char *w)
{
	if (w[0] == '\0' || strcmp(w, "-") == 0)
		return "not the name of a file";
	if (strstr(w, "://"))
		return "a URL, not the name of a file";
	return NULL;
}

/* Appends one component to a path without . and ..; false if too long. */
static bool append(char *path, size_t *len, const char *part, size_t n)
{
	if (n == 0 || (n == 1 && part[0] == '.'))
		return true;
	if (n == 2 && part[0] == '.' && part[1] == '.') {
		while (*len && path[--*len] != '/')
			;
		path[*len] = '\0';
		return true;
	}
	if (*len + n + 2 > MOST_PATH)
		return false;
	path[(*len)++] = '/';
	memcpy(path + *len, part, n);
	*len += n;
	path[*len] = '\0';
	return true;
}

static bool normalise(char *path, size_t *len, const char *s)
{
	while (*s) {
		size_t n = strcspn(s, "/");

		if (!append(path, len, s, n))
			return false;
		s += n + (s[n] == '/');
	}
	return true;
}

/*
 * Lexical: what a link inside the directory leads to is the kernel's
 * business, and what runs is held by the box. A name without a dot or a
 * slash could be a sub-command (node inspect), so it is not taken.
 */
static const char *script(const char *w, const struct kind_context *c)
{
	char path[MOST_PATH] = "";
	char dir[MOST_PATH] = "";
	size_t n = 0;
	size_t d = 0;

	if (w[0] == '\0' || w[0] == '-' || !strpbrk(w, "./"))
		return "not a script file";
	if (w[0] != '/' && !normalise(path, &n, c->cwd))
		return "too long";
	if (!normalise(path, &n, w) || !normalise(dir, &d, c->script))
		return "too long";
	if (n <= d + 1 || memcmp(path, dir, d) != 0 || path[d] != '/')
		return "a script outside the allowed directory";
	return NULL;
}

/*
 * One entry of the allowed hosts: [scheme://]name[:port]; without a scheme
 * https, without a port the scheme's own; *.name is any name below it.
 */
static bool host_matches(const char *entry, const char *url, size_t scheme,
			 const char *host, size_t len)
{
	const char *sep = strstr(entry, "://");
	const char *want = sep ? sep + 3 : entry;
	size_t n = strlen(want);

	if (sep ? (size_t)(sep - entry) != scheme ||
			    memcmp(entry, url, scheme) != 0
		: scheme != 5)
		return false;
	if (n > 2 && want[0] == '*' && want[1] == '.')
		return len > n - 1 &&
		       memcmp(host + len - (n - 1), want + 1, n - 1) == 0;
	return n == len && memcmp(want, host, n) == 0;
}

/*
 * Stricter than any parser of URLs, so that all of them find the same host
 * in it: no user, no brackets, no escape before the path.
 */
static const char *url(const char *w, const char *const *hosts)
{
	size_t scheme = strncmp(w, "https://", 8) == 0  ? 5
			: strncmp(w, "http://", 7) == 0 ? 4
							: 0;
	const char *host = w + scheme + 3;
	size_t name;
	size_t len;

	if (scheme == 0)
		return "not a URL that begins with https:// or http://";
	name = strspn(host, "abcdefghijklmnopqrstuvwxyz" DIGITS ".-");
	len = name;
	if (host[len] == ':')
		len += 1 + strspn(host + len + 1, DIGITS);
	if (name == 0 || host[len - 1] == ':' ||
	    (host[len] && !strchr("/?", host[len])))
		return "a URL that is not understood";
	if (host[len] &&
	    !is_made_of(host + len, LETTERS DIGITS "-._~!$&'()*+,;=:@%/?"))
		return "a URL that is not understood";
	for (; hosts && *hosts; hosts++)
		if (host_matches(*hosts, w, scheme, host, len))
			return NULL;
	return "a host that the policy does not allow";
}

static const char *simple_check(enum kind kind, const char *w)
{
	switch (kind) {
	case KIND_ANY:
	case KIND_TEXT:
	case KIND_PATH:
		return NULL;
	case KIND_NUMBER:
		return number(w);
	case KIND_WORD:
		return is_made_of(w, LETTERS DIGITS "_.,:%+@^=/-")
			       ? NULL
			       : "a value that is not understood";
	case KIND_FILE:
		return file(w);
	case KIND_PLAIN:
		return plain(w);
	case KIND_ASSIGN:
		return assignment(w);
	case KIND_PERM:
		return is_made_of(w, "01234567ugoarwxXst+=,/-") ? NULL
								: "not a mode";
	case KIND_STAMP:
		return w[0] == '+' ? NULL : "a new time for the clock";
	case KIND_METHOD:
		return is_made_of(w, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
			       ? NULL
			       : "not a method of HTTP";
	case KIND_HEADER:
		return header(w);
	case KIND_BODY:
		return w[0] == '@' ? "a file that would be sent" : NULL;
	default:
		return "not allowed here";
	}
}

const char *word_check(enum kind kind, const char *w,
		       const struct kind_context *context)
{
	switch (kind) {
	case KIND_AWK:
		return awk_check(w);
	case KIND_INPUT:
		return awk_input(w);
	case KIND_SED:
		return sed_check(w);
	case KIND_JQ:
		return jq_check(w);
	case KIND_URL:
		return url(w, context->hosts);
	case KIND_SCRIPT:
		return script(w, context);
	default:
		return simple_check(kind, w);
	}
}
