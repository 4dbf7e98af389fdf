/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A text as its reader sees it, in ASCII where it can be: letters of other
 * scripts that look like Latin ones, wide and mathematical letters, invisible
 * characters (dropped), and the escapes \uXXXX, \xXX, \/ and %XX. Not a
 * translation for people: only detectors read it. Each byte knows where it
 * came from. The result is never longer than the text.
 */

#include "runtime/filter-find.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"

enum turn {
	TURN_ONE,   /* all become `to` */
	TURN_SHIFT, /* the first becomes `to`, the next the one after it */
	TURN_CASES, /* A-Za-z, again and again */
	TURN_TENS,  /* 0-9, again and again */
	TURN_DROP,
};

/* By code point; looked up by halves. */
static const struct fold_row {
	uint32_t from, last;
	enum turn turn;
	char to;
} rows[] = {
	{ 0x00a0, 0x00a0, TURN_ONE, ' ' },
	{ 0x00ad, 0x00ad, TURN_DROP, 0 },
	{ 0x0131, 0x0131, TURN_ONE, 'i' },
	{ 0x0261, 0x0261, TURN_ONE, 'g' },
	{ 0x0300, 0x036f, TURN_DROP, 0 },
	{ 0x0391, 0x0392, TURN_SHIFT, 'A' },
	{ 0x0395, 0x0395, TURN_ONE, 'E' },
	{ 0x0396, 0x0396, TURN_ONE, 'Z' },
	{ 0x0397, 0x0397, TURN_ONE, 'H' },
	{ 0x0399, 0x0399, TURN_ONE, 'I' },
	{ 0x039a, 0x039a, TURN_ONE, 'K' },
	{ 0x039c, 0x039d, TURN_SHIFT, 'M' },
	{ 0x039f, 0x039f, TURN_ONE, 'O' },
	{ 0x03a1, 0x03a1, TURN_ONE, 'P' },
	{ 0x03a4, 0x03a4, TURN_ONE, 'T' },
	{ 0x03a5, 0x03a5, TURN_ONE, 'Y' },
	{ 0x03a7, 0x03a7, TURN_ONE, 'X' },
	{ 0x03b1, 0x03b1, TURN_ONE, 'a' },
	{ 0x03b9, 0x03b9, TURN_ONE, 'i' },
	{ 0x03ba, 0x03ba, TURN_ONE, 'k' },
	{ 0x03bd, 0x03bd, TURN_ONE, 'v' },
	{ 0x03bf, 0x03bf, TURN_ONE, 'o' },
	{ 0x03c1, 0x03c1, TURN_ONE, 'p' },
	{ 0x03c5, 0x03c5, TURN_ONE, 'u' },
	{ 0x03f2, 0x03f2, TURN_ONE, 'c' },
	{ 0x0405, 0x0405, TURN_ONE, 'S' },
	{ 0x0406, 0x0406, TURN_ONE, 'I' },
	{ 0x0408, 0x0408, TURN_ONE, 'J' },
	{ 0x0410, 0x0410, TURN_ONE, 'A' },
	{ 0x0412, 0x0412, TURN_ONE, 'B' },
	{ 0x0415, 0x0415, TURN_ONE, 'E' },
	{ 0x041a, 0x041a, TURN_ONE, 'K' },
	{ 0x041c, 0x041c, TURN_ONE, 'M' },
	{ 0x041d, 0x041d, TURN_ONE, 'H' },
	{ 0x041e, 0x041e, TURN_ONE, 'O' },
	{ 0x0420, 0x0420, TURN_ONE, 'P' },
	{ 0x0421, 0x0421, TURN_ONE, 'C' },
	{ 0x0422, 0x0422, TURN_ONE, 'T' },
	{ 0x0423, 0x0423, TURN_ONE, 'Y' },
	{ 0x0425, 0x0425, TURN_ONE, 'X' },
	{ 0x0430, 0x0430, TURN_ONE, 'a' },
	{ 0x0435, 0x0435, TURN_ONE, 'e' },
	{ 0x043a, 0x043a, TURN_ONE, 'k' },
	{ 0x043e, 0x043e, TURN_ONE, 'o' },
	{ 0x0440, 0x0440, TURN_ONE, 'p' },
	{ 0x0441, 0x0441, TURN_ONE, 'c' },
	{ 0x0443, 0x0443, TURN_ONE, 'y' },
	{ 0x0445, 0x0445, TURN_ONE, 'x' },
	{ 0x0455, 0x0455, TURN_ONE, 's' },
	{ 0x0456, 0x0456, TURN_ONE, 'i' },
	{ 0x0458, 0x0458, TURN_ONE, 'j' },
	{ 0x04bb, 0x04bb, TURN_ONE, 'h' },
	{ 0x04c0, 0x04c0, TURN_ONE, 'I' },
	{ 0x0501, 0x0501, TURN_ONE, 'd' },
	{ 0x051b, 0x051b, TURN_ONE, 'q' },
	{ 0x051d, 0x051d, TURN_ONE, 'w' },
	{ 0x061c, 0x061c, TURN_DROP, 0 },
	{ 0x115f, 0x1160, TURN_DROP, 0 },
	{ 0x1680, 0x1680, TURN_ONE, ' ' },
	{ 0x17b4, 0x17b5, TURN_DROP, 0 },
	{ 0x180b, 0x180e, TURN_DROP, 0 },
	{ 0x2000, 0x200a, TURN_ONE, ' ' },
	{ 0x200b, 0x200f, TURN_DROP, 0 },
	{ 0x2010, 0x2015, TURN_ONE, '-' },
	{ 0x2024, 0x2024, TURN_ONE, '.' },
	{ 0x2028, 0x2029, TURN_ONE, '\n' },
	{ 0x202a, 0x202e, TURN_DROP, 0 },
	{ 0x202f, 0x202f, TURN_ONE, ' ' },
	{ 0x2044, 0x2044, TURN_ONE, '/' },
	{ 0x205f, 0x205f, TURN_ONE, ' ' },
	{ 0x2060, 0x206f, TURN_DROP, 0 },
	{ 0x2212, 0x2212, TURN_ONE, '-' },
	{ 0x2215, 0x2215, TURN_ONE, '/' },
	{ 0x2236, 0x2236, TURN_ONE, ':' },
	{ 0x223c, 0x223c, TURN_ONE, '~' },
	{ 0x24b6, 0x24cf, TURN_SHIFT, 'A' },
	{ 0x24d0, 0x24e9, TURN_SHIFT, 'a' },
	{ 0x29f8, 0x29f8, TURN_ONE, '/' },
	{ 0x3000, 0x3000, TURN_ONE, ' ' },
	{ 0x3164, 0x3164, TURN_DROP, 0 },
	{ 0xa789, 0xa789, TURN_ONE, ':' },
	{ 0xfe00, 0xfe0f, TURN_DROP, 0 },
	{ 0xfe63, 0xfe63, TURN_ONE, '-' },
	{ 0xfeff, 0xfeff, TURN_DROP, 0 },
	{ 0xff01, 0xff5e, TURN_SHIFT, '!' },
	{ 0xffa0, 0xffa0, TURN_DROP, 0 },
	{ 0x1d400, 0x1d6a3, TURN_CASES, 0 },
	{ 0x1d7ce, 0x1d7ff, TURN_TENS, 0 },
	{ 0xe0001, 0xe001f, TURN_DROP, 0 },
	/* Tags: a whole alphabet that nobody sees. */
	{ 0xe0020, 0xe007e, TURN_SHIFT, ' ' },
	{ 0xe007f, 0xe0fff, TURN_DROP, 0 },
};

/* What it becomes; 0: it is dropped; -1: it stays. */
static int turned(uint32_t c)
{
	size_t low = 0;
	size_t high = ARRAY_SIZE(rows);

	while (low < high) {
		size_t mid = (low + high) / 2;
		const struct fold_row *r = &rows[mid];
		uint32_t n = c - r->from;

		if (c < r->from)
			high = mid;
		else if (c > r->last)
			low = mid + 1;
		else if (r->turn == TURN_CASES)
			return (int)(n % 52 < 26 ? 'A' + n % 52
						 : 'a' + n % 52 - 26);
		else if (r->turn == TURN_TENS)
			return (int)('0' + n % 10);
		else
			return r->turn == TURN_SHIFT ? r->to + (int)n : r->to;
	}
	return -1;
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)tolower((unsigned char)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* n digits as a number; -1: they are none. */
static int digits(const char *p, const char *end, int n)
{
	int c = 0;

	if (end - p < n)
		return -1;
	for (; n > 0 && c >= 0; n--, p++)
		c = hex(*p) < 0 ? -1 : c << 4 | hex(*p);
	return c;
}

/* The length of an escape at p, and what it stands for; 0: none. */
static size_t escape(const char *p, const char *end, int *ret)
{
	size_t len = 0;

	if (end - p < 2)
		return 0;
	if (*p == '%') {
		*ret = digits(p + 1, end, 2);
		len = 3;
	} else if (p[1] == '/') {
		*ret = '/';
		len = 2;
	} else if (p[1] == 'x') {
		*ret = digits(p + 2, end, 2);
		len = 4;
	} else if (p[1] == 'u') {
		*ret = digits(p + 2, end, 4);
		len = 6;
	}
	/* Bytes of a longer character stay as they are written. */
	if (len == 0 || *ret <= 0 || (*ret >= 0x80 && p[1] != 'u'))
		return 0;
	return len;
}

static uint32_t decode(const unsigned char *p, size_t len)
{
	static const unsigned char lead[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	uint32_t c = p[0] & lead[len];

	for (size_t i = 1; i < len; i++)
		c = c << 6 | (p[i] & 0x3f);
	return c;
}

static bool is_foldable(const char *p, const char *end)
{
	int c;

	return (unsigned char)*p >= 0x80 ||
	       ((*p == '\\' || *p == '%') && escape(p, end, &c) > 0);
}

/* One character of the text; returns its length. */
static size_t fold_one(struct folded *f, const char *text, const char *p,
		       const char *end)
{
	size_t len = utf8_len((const unsigned char *)p, (size_t)(end - p));
	int c = (unsigned char)*p;
	int to;

	if (*p == '\\' || *p == '%')
		len = escape(p, end, &c);
	else if (len > 1)
		c = (int)decode((const unsigned char *)p, len);
	len = len ? len : 1;
	to = c < 0x80 ? c : turned((uint32_t)c);
	for (size_t i = 0; to < 0 && i < len; i++) {
		f->map[f->len] = (uint32_t)(p - text);
		f->text[f->len++] = p[i];
	}
	if (to > 0) {
		f->map[f->len] = (uint32_t)(p - text);
		f->text[f->len++] = (char)to;
	}
	return len;
}

int fold_text(const char *text, size_t len, struct folded *ret)
{
	const char *end = text + len;
	const char *p = text;

	memset(ret, 0, sizeof(*ret));
	while (p < end && !is_foldable(p, end))
		p++;
	if (p == end)
		return 0;
	ret->text = malloc(len + 1);
	ret->map = malloc((len + 1) * sizeof(*ret->map));
	if (!ret->text || !ret->map) {
		folded_done(ret);
		return -ENOMEM;
	}
	for (p = text; p < end;)
		p += fold_one(ret, text, p, end);
	ret->text[ret->len] = '\0';
	ret->map[ret->len] = (uint32_t)len;
	return 1;
}

void folded_done(struct folded *f)
{
	free(f->text);
	free(f->map);
	memset(f, 0, sizeof(*f));
}
