/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Paths against globs. A server may undo percent-encoding before it looks, or
 * not, or twice; it may merge double slashes or not. Each reading is judged,
 * and all of them must be allowed.
 */

#include <string.h>

#include "base/util.h"
#include "gate/http.h"

/* Decoded so often at most; what is still encoded then is refused. */
#define ROUNDS 4

/* Where to go on when what follows the last "*" or "**" does not fit. */
struct back {
	const char *glob; /* behind it; NULL: there was none */
	size_t at;
};

static bool steps(struct back *b, const char *text, size_t len, bool is_double)
{
	if (!b->glob || b->at >= len || (!is_double && text[b->at] == '/'))
		return false;
	b->at++;
	return true;
}

bool http_glob(const char *glob, const char *text, size_t len)
{
	struct back one = { .glob = NULL }, two = { .glob = NULL };
	size_t at = 0;

	while (at < len || *glob) {
		if (glob[0] == '*') {
			bool is_two = glob[1] == '*';
			struct back *b = is_two ? &two : &one;

			if (is_two)
				one.glob = NULL;
			glob += is_two ? 2 : 1;
			*b = (struct back){ glob, at };
		} else if (*glob && at < len &&
			   (*glob == text[at] ||
			    (*glob == '?' && text[at] != '/'))) {
			glob++;
			at++;
		} else if (steps(&one, text, len, false)) {
			glob = one.glob;
			at = one.at;
		} else if (steps(&two, text, len, true)) {
			one.glob = NULL;
			glob = two.glob;
			at = two.at;
		} else {
			return false;
		}
	}
	return true;
}

static bool is_any(const struct gate_table *t, const struct gate_vec *globs,
		   const char *text, size_t len)
{
	const char *glob = gate_str(t, globs->off);

	for (uint32_t i = 0; i < globs->count; i++) {
		if (http_glob(glob, text, len))
			return true;
		glob += strlen(glob) + 1;
	}
	return false;
}

/* "." and ".." as a segment, also with parameters ("..;x") as Java has them. */
static bool climbs(const char *text, size_t len)
{
	size_t start = 0;

	for (size_t i = 0; i <= len; i++) {
		size_t n = 0;

		if (i < len && text[i] != '/' && text[i] != '\\')
			continue;
		while (start + n < i && text[start + n] != ';')
			n++;
		if ((n == 1 && text[start] == '.') ||
		    (n == 2 && text[start] == '.' && text[start + 1] == '.'))
			return true;
		start = i + 1;
	}
	return false;
}

static int hex(char c)
{
	char l = c | 0x20;

	if (c >= '0' && c <= '9')
		return c - '0';
	return l >= 'a' && l <= 'f' ? l - 'a' + 10 : -1;
}

/* Undoes percent-encoding in place, once; the new length. */
static size_t decode(char *text, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		bool is_coded = text[i] == '%' && i + 2 < len &&
				hex(text[i + 1]) >= 0 && hex(text[i + 2]) >= 0;

		if (is_coded) {
			text[n++] = (char)(hex(text[i + 1]) * 16 +
					   hex(text[i + 2]));
			i += 2;
		} else {
			text[n++] = text[i];
		}
	}
	return n;
}

static size_t merge_slashes(const char *text, size_t len, char *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		if (text[i] != '/' || n == 0 || ret[n - 1] != '/')
			ret[n++] = text[i];
	return n;
}

bool http_path_allowed(struct http_slice path, const struct gate_table *t,
		       const struct gate_vec *globs)
{
	char text[HTTP_PATH_MAX], merged[HTTP_PATH_MAX];
	size_t len = path.len, n;

	if (len > sizeof(text))
		return false;
	memcpy(text, path.at, len);
	for (int i = 0; i < ROUNDS; i++) {
		size_t before = len;

		n = merge_slashes(text, len, merged);
		if (climbs(text, len) || memchr(text, '\0', len) ||
		    !is_any(t, globs, text, len) ||
		    !is_any(t, globs, merged, n))
			return false;
		len = decode(text, len);
		if (len == before)
			return true;
	}
	return false;
}
