/* SPDX-License-Identifier: Apache-2.0 */
#include "base/visible.h"

#include <stdio.h>
#include <string.h>

#include "base/hex.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/util.h"

/*
 * Not shown as they are, in order. Unicode 15: categories Cc, Cf, Co, Cs, Zl,
 * Zp, Zs without the space, the blocks of combining marks that overlay any
 * letter, fillers and blanks that look like nothing, and the blocks of scripts
 * written from right to left (Bidi_Class R and AL): one such letter in a path
 * is enough to show its parts in another order (CVE-2021-42574 is the same
 * with format characters).
 */
static const struct {
	uint32_t first;
	uint32_t last;
} strange[] = {
	{ 0x0000, 0x001f },    /* controls */
	{ 0x007f, 0x00a0 },    /* DEL, C1, no-break space */
	{ 0x00ad, 0x00ad },    /* soft hyphen */
	{ 0x0300, 0x036f },    /* combining marks */
	{ 0x0483, 0x0489 },    /* combining, Cyrillic */
	{ 0x0590, 0x08ff },    /* Hebrew, Arabic, Syriac, Thaana, N'Ko ... */
	{ 0x115f, 0x1160 },    /* Hangul fillers */
	{ 0x1680, 0x1680 },    /* Ogham space */
	{ 0x17b4, 0x17b5 },    /* Khmer vowels without a form */
	{ 0x180b, 0x180f },    /* Mongolian selectors */
	{ 0x1ab0, 0x1aff },    /* combining marks, extended */
	{ 0x1dc0, 0x1dff },    /* combining marks, supplement */
	{ 0x2000, 0x200f },    /* blanks, zero width, direction marks */
	{ 0x2028, 0x202f },    /* line separators, bidi embeddings */
	{ 0x205f, 0x206f },    /* bidi isolates, invisible operators */
	{ 0x20d0, 0x20ff },    /* combining marks for symbols */
	{ 0x2800, 0x2800 },    /* Braille blank */
	{ 0x302a, 0x302f },    /* ideographic tone marks */
	{ 0x3000, 0x3000 },    /* ideographic space */
	{ 0x3164, 0x3164 },    /* Hangul filler */
	{ 0xd800, 0xf8ff },    /* surrogates, private use */
	{ 0xfb1d, 0xfdff },    /* Hebrew and Arabic forms, nonchars */
	{ 0xfe00, 0xfe0f },    /* variation selectors */
	{ 0xfe20, 0xfe2f },    /* combining half marks */
	{ 0xfe70, 0xfeff },    /* Arabic forms, byte order mark */
	{ 0xffa0, 0xffa0 },    /* half-width Hangul filler */
	{ 0xfff0, 0xffff },    /* specials, noncharacters */
	{ 0x10800, 0x10fff },  /* old scripts from right to left */
	{ 0x110bd, 0x110cd },  /* Kaithi number signs */
	{ 0x13430, 0x1345f },  /* hieroglyph format controls */
	{ 0x1bca0, 0x1bca3 },  /* shorthand format controls */
	{ 0x1d159, 0x1d182 },  /* musical format and combining */
	{ 0x1e800, 0x1efff },  /* Mende, Adlam, Arabic mathematics */
	{ 0x1fffe, 0x1ffff },  /* noncharacters */
	{ 0x2fffe, 0x2ffff },  /* noncharacters */
	{ 0x323b0, 0x10ffff }, /* unassigned, tags, private use */
};

bool visible_check(uint32_t c)
{
	for (size_t i = 0; i < ARRAY_SIZE(strange); i++)
		if (c <= strange[i].last)
			return c < strange[i].first;
	return false;
}

/* The character at p and its length; length 0: a byte that is none. */
static size_t decode(const unsigned char *p, size_t len, uint32_t *ret)
{
	static const unsigned char mask[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	size_t n = utf8_len(p, len);

	if (n == 0)
		return 0;
	*ret = p[0] & mask[n];
	for (size_t i = 1; i < n; i++)
		*ret = *ret << 6 | (p[i] & 0x3f);
	return n;
}

/* At most `max`, and not within a character. */
static size_t cut(const unsigned char *p, size_t len, size_t max)
{
	if (len <= max)
		return len;
	for (size_t back = 0; back < 4 && back < max; back++)
		if ((p[max - back] & 0xc0) != 0x80)
			return max - back;
	return max;
}

void visible_sha256(const void *data, size_t len, char ret[65])
{
	unsigned char sum[SHA256_SIZE];
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, data, len);
	sha256_end(&s, sum);
	hex_format(sum, sizeof(sum), ret);
}

static void tell_cut(struct buf *out, const void *data, size_t len,
		     size_t shown)
{
	char sum[65];

	if (shown == len)
		return;
	visible_sha256(data, len, sum);
	buf_printf(out, "... (cut; %zu bytes, sha256 %s)", len, sum);
}

/* One character of text; how many bytes it had. */
static size_t put_text(struct buf *out, const unsigned char *p, size_t len)
{
	uint32_t c = 0;
	size_t n = decode(p, len, &c);

	if (n == 0) {
		buf_printf(out, "<0x%02X>", p[0]);
		return 1;
	}
	if (visible_check(c))
		buf_add(out, p, n);
	else if (c == '\t')
		buf_puts(out, "<TAB>");
	else
		buf_printf(out, "<U+%04X>", c);
	return n;
}

void visible_text(struct buf *out, const void *data, size_t len, size_t max)
{
	const unsigned char *p = data;
	size_t shown = cut(p, len, max);

	for (size_t at = 0; at < shown;)
		at += put_text(out, p + at, shown - at);
	tell_cut(out, data, len, shown);
}

static const char bare[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXY"
			   "Z0123456789_@%+=:,./-";

static bool is_quotable(const unsigned char *p, size_t len)
{
	for (size_t at = 0; at < len;) {
		uint32_t c = 0;
		size_t n = decode(p + at, len - at, &c);

		if (n == 0 || !visible_check(c) || c == '\'')
			return false;
		at += n;
	}
	return true;
}

static size_t put_escaped(struct buf *out, const unsigned char *p, size_t len)
{
	static const char special[] = "\n\r\t\'\\";
	static const char letter[] = "nrt'\\";
	uint32_t c = 0;
	size_t n = decode(p, len, &c);
	const char *at = n == 1 && c ? strchr(special, (int)c) : NULL;

	if (at)
		buf_printf(out, "\\%c", letter[at - special]);
	else if (n > 0 && visible_check(c))
		buf_add(out, p, n);
	else if (n <= 1)
		buf_printf(out, "\\x%02x", p[0]);
	else
		buf_printf(out, c > 0xffff ? "\\U%08x" : "\\u%04x", c);
	return n ? n : 1;
}

void visible_word(struct buf *out, const char *word, size_t max)
{
	const unsigned char *p = (const unsigned char *)word;
	size_t len = strlen(word);
	size_t shown = cut(p, len, max);

	if (len > 0 && shown == len && strspn(word, bare) == len) {
		buf_add(out, word, len);
	} else if (is_quotable(p, shown)) {
		buf_puts(out, "'");
		buf_add(out, word, shown);
		buf_puts(out, "'");
	} else {
		buf_puts(out, "$'");
		for (size_t at = 0; at < shown;)
			at += put_escaped(out, p + at, shown - at);
		buf_puts(out, "'");
	}
	tell_cut(out, word, len, shown);
}

static void put_line(struct buf *out, const unsigned char *p, size_t len,
		     const char *gutter)
{
	size_t at = 0;

	buf_puts(out, gutter);
	for (; at < len && (p[at] == '\t' || p[at] == ' '); at++)
		buf_puts(out, p[at] == '\t' ? "        " : " ");
	while (at < len)
		at += put_text(out, p + at, len - at);
	buf_puts(out, "\n");
}

void visible_lines(struct buf *out, const void *data, size_t len,
		   const char *gutter, size_t max)
{
	const unsigned char *p = data;
	size_t shown = cut(p, len, max);

	for (size_t at = 0; at < shown;) {
		const unsigned char *end = memchr(p + at, '\n', shown - at);
		size_t n = end ? (size_t)(end - p) - at : shown - at;

		put_line(out, p + at, n, gutter);
		at += n + 1;
	}
	if (shown < len) {
		buf_puts(out, gutter);
		tell_cut(out, data, len, shown);
		buf_puts(out, "\n");
	}
}
