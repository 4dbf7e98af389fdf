/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Paths against globs. A server may undo percent-encoding before it looks, or
 * not, or twice; it may take a backslash for a slash or not, and merge double
 * slashes or not. Each reading is judged, and all of them must be allowed.
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

/*
 * "." and ".." as a segment, also with parameters ("..;x") as Java has them,
 * and with what Windows leaves out at the end of a name, blanks and dots: no
 * segment is of dots and blanks alone.
 */
static bool is_climb(const char *text, size_t len)
{
	bool has_dot = false;

	for (size_t i = 0; i < len && text[i] != ';'; i++) {
		if (text[i] == '.')
			has_dot = true;
		else if ((unsigned char)text[i] > ' ' && text[i] != 0x7f)
			return false;
	}
	return has_dot;
}

static bool climbs(const char *text, size_t len)
{
	size_t start = 0;

	for (size_t i = 0; i <= len; i++) {
		if (i < len && text[i] != '/' && text[i] != '\\')
			continue;
		if (is_climb(text + start, i - start))
			return true;
		start = i + 1;
	}
	return false;
}

/*
 * UTF-8 that is longer than it need be (RFC 3629, 10): no program writes it,
 * and a lenient one reads "%c0%ae" as a dot. What would begin two bytes so is
 * in no text at all, and old servers took anything for the second.
 */
static bool is_overlong(const char *text, size_t len)
{
	static const struct {
		uint8_t first, below; /* the second is less than this */
	} longer[] = {
		{ 0xe0, 0xa0 }, { 0xf0, 0x90 }, { 0xf8, 0x88 }, { 0xfc, 0x84 }
	};

	for (size_t i = 0; i < len; i++) {
		uint8_t c = (uint8_t)text[i];
		uint8_t next = i + 1 < len ? (uint8_t)text[i + 1] : 0;

		if (c == 0xc0 || c == 0xc1)
			return true;
		for (size_t k = 0; k < ARRAY_SIZE(longer); k++)
			if (c == longer[k].first && next >= 0x80 &&
			    next < longer[k].below)
				return true;
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

/* "%u002e", which IIS has read as a dot and no standard knows. */
static bool is_wide(const char *text, size_t len)
{
	for (size_t i = 0; i + 6 <= len; i++)
		if (text[i] == '%' && (text[i + 1] | 0x20) == 'u' &&
		    hex(text[i + 2]) >= 0 && hex(text[i + 3]) >= 0 &&
		    hex(text[i + 4]) >= 0 && hex(text[i + 5]) >= 0)
			return true;
	return false;
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

/* With double slashes merged or not. */
static bool is_allowed(const struct gate_table *t, const struct gate_vec *globs,
		       const char *text, size_t len)
{
	char merged[HTTP_PATH_MAX];

	return is_any(t, globs, text, len) &&
	       is_any(t, globs, merged, merge_slashes(text, len, merged));
}

static bool turn_backslashes(const char *text, size_t len, char *ret)
{
	bool has_one = false;

	for (size_t i = 0; i < len; i++) {
		has_one |= text[i] == '\\';
		ret[i] = text[i] == '\\' ? '/' : text[i];
	}
	return has_one;
}

bool http_path_allowed(struct http_slice path, const struct gate_table *t,
		       const struct gate_vec *globs)
{
	char text[HTTP_PATH_MAX], turned[HTTP_PATH_MAX];
	size_t len = path.len;

	if (len > sizeof(text))
		return false;
	memcpy(text, path.at, len);
	for (int i = 0; i < ROUNDS; i++) {
		size_t before = len;

		if (climbs(text, len) || memchr(text, '\0', len) ||
		    is_overlong(text, len) || is_wide(text, len) ||
		    !is_allowed(t, globs, text, len) ||
		    (turn_backslashes(text, len, turned) &&
		     !is_allowed(t, globs, turned, len)))
			return false;
		len = decode(text, len);
		if (len == before)
			return true;
	}
	return false;
}
