/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/filter-find.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/regex.h"
#include "base/util.h"

#define MAX_FINDS  (1U << 20)
#define MAX_LAYERS 2  /* base64 in base64 */
#define MIN_RUN    16 /* of base64 or hexadecimal digits */

static const char *const kind_names[] = {
	[FIND_SECRETS] = "secrets",
	[FIND_HOST_PATHS] = "host_paths",
	[FIND_URLS] = "urls",
	[FIND_REGEX] = "regex",
};
_Static_assert(ARRAY_SIZE(kind_names) == FIND_KINDS, "a kind has no name");

const char *find_name(enum find_kind k)
{
	return kind_names[k];
}

enum find_kind find_parse(const char *name)
{
	int k = 0;

	while (k < FIND_KINDS && strcmp(kind_names[k], name) != 0)
		k++;
	return (enum find_kind)k;
}

void finds_done(struct finds *f)
{
	free(f->v);
	memset(f, 0, sizeof(*f));
}

static void add_bits(struct finds *f, size_t from, size_t to,
		     unsigned int kinds)
{
	if (f->n == f->cap && f->error == 0) {
		size_t cap = f->cap ? 2 * f->cap : 16;
		struct found *v = cap > MAX_FINDS
					  ? NULL
					  : realloc(f->v, cap * sizeof(*v));

		if (!v) {
			f->error = cap > MAX_FINDS ? -E2BIG : -ENOMEM;
			return;
		}
		f->v = v;
		f->cap = cap;
	}
	if (f->error < 0 || from >= to)
		return;
	if (f->map) {
		from = f->map[from];
		to = f->map[to];
	}
	f->v[f->n++] = (struct found){ from, to, kinds };
}

void finds_add(struct finds *f, size_t from, size_t to, enum find_kind k)
{
	add_bits(f, from, to, 1U << k);
}

static int by_place(const void *a, const void *b)
{
	const struct found *x = a;
	const struct found *y = b;

	return (x->from > y->from) - (x->from < y->from);
}

/* In order; what touches is one. */
static void merge(struct finds *f)
{
	size_t n = 0;

	if (f->n == 0)
		return;
	qsort(f->v, f->n, sizeof(*f->v), by_place);
	for (size_t i = 1; i < f->n; i++) {
		if (f->v[i].from >= f->v[n].to) {
			f->v[++n] = f->v[i];
			continue;
		}
		f->v[n].to = MAX(f->v[n].to, f->v[i].to);
		f->v[n].kinds |= f->v[i].kinds;
	}
	f->n = n + 1;
}

static void find_regex(struct finds *f, struct regex *r, const char *text,
		       size_t len)
{
	size_t at = 0;
	size_t from;
	size_t to;
	int found = 1;

	for (; at < len && found > 0 && f->error == 0; at = to) {
		found = regex_find(r, text, len, at, &from, &to);
		if (found > 0)
			finds_add(f, from, to, FIND_REGEX);
	}
	if (found < 0)
		f->error = found;
}

static void find_plain(const struct find_want *w, struct finds *f,
		       const char *text, size_t len)
{
	if (w->kinds & 1U << FIND_SECRETS)
		find_secrets(f, text, len);
	if (w->kinds & 1U << FIND_HOST_PATHS)
		find_host_paths(f, text, len);
	if (w->kinds & 1U << FIND_URLS)
		find_urls(f, text, len);
	if (w->kinds & 1U << FIND_REGEX)
		find_regex(f, w->regex, text, len);
	find_asks(f, w->kinds, text, len);
}

static void look(const struct find_want *w, struct finds *f, const char *text,
		 size_t len, int layer);

/* Whether these bytes are words for somebody, not numbers or an image. */
static bool is_text(const char *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)p[i] < ' ' && !isspace((unsigned char)p[i]))
			return false;
	return len >= MIN_RUN / 2 && utf8_check(p, len);
}

/* Whether it cannot be a text: its beginning is none. */
static bool is_hopeless(const char *digits, size_t len)
{
	struct buf b;
	bool ret = false;

	buf_init(&b, 64);
	(void)base64_add(&b, digits, MIN(len, 64U));
	for (size_t i = 0; i < b.len; i++)
		ret |= (unsigned char)b.data[i] < ' ' &&
		       !isspace((unsigned char)b.data[i]);
	buf_done(&b);
	return ret;
}

/* If something is found in what it stands for, all of it is found. */
static void look_inside(const struct find_want *w, struct finds *f,
			const struct buf *plain, size_t from, size_t to,
			int layer)
{
	struct finds inner = { 0 };
	unsigned int kinds = 0;

	if (plain->error < 0 || !is_text(plain->data, plain->len))
		return;
	look(w, &inner, plain->data, plain->len, layer + 1);
	for (size_t i = 0; i < inner.n; i++)
		kinds |= inner.v[i].kinds;
	if (inner.error < 0)
		f->error = inner.error;
	else if (kinds)
		add_bits(f, from, to, kinds);
	finds_done(&inner);
}

static bool is_base64(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '/' && c <= '9') || c == '+' || c == '-' || c == '_';
}

/* Words are shorter; most of a text is left here. */
static size_t short_run(const char *p, const char *end)
{
	size_t n = 0;

	while (p + n < end && n < MIN_RUN && is_base64(p[n]))
		n++;
	return n;
}

/* A run of base64 digits in lines of some length; copied without the ends. */
static size_t base64_run(const char *p, const char *end, struct buf *digits,
			 bool *is_hex)
{
	const char *start = p;

	*is_hex = true;
	for (;;) {
		const char *line = p;
		const char *next;

		while (p < end && is_base64(*p)) {
			*is_hex &= isxdigit((unsigned char)*p) != 0;
			p++;
		}
		buf_add(digits, line, (size_t)(p - line));
		next = p + (p < end && *p == '\r');
		if (p - line < MIN_RUN || next >= end || *next != '\n' ||
		    next + 1 >= end || !is_base64(next[1]))
			break;
		p = next + 1;
	}
	return (size_t)(p - start);
}

/* '-' and '_' of the alphabet for addresses are '+' and '/' of the other. */
static void to_standard(char *p, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (p[i] == '-')
			p[i] = '+';
		else if (p[i] == '_')
			p[i] = '/';
	}
}

static void add_hex(struct buf *out, const char *p, size_t len)
{
	for (size_t i = 0; i + 1 < len; i += 2) {
		char pair[3] = { p[i], p[i + 1], '\0' };
		char c = (char)strtol(pair, NULL, 16);

		buf_add(out, &c, 1);
	}
}

static void look_at_run(const struct find_want *w, struct finds *f,
			struct buf *digits, bool is_hex, const size_t place[2],
			int layer)
{
	struct buf plain;

	buf_init(&plain, digits->len);
	if (is_hex) {
		add_hex(&plain, digits->data, digits->len);
		look_inside(w, f, &plain, place[0], place[1], layer);
		buf_done(&plain);
	}
	to_standard(digits->data, digits->len);
	/* What does not fill its last byte is cut: it may be the next word. */
	if (digits->len % 4 == 1)
		digits->len--;
	if (!is_hopeless(digits->data, digits->len) &&
	    base64_add(&plain, digits->data, digits->len) == 0)
		look_inside(w, f, &plain, place[0], place[1], layer);
	buf_done(&plain);
}

/* Text in base64 or in hexadecimal digits. */
static void find_encoded(const struct find_want *w, struct finds *f,
			 const char *text, size_t len, int layer)
{
	for (size_t at = 0; at < len && f->error == 0;) {
		struct buf digits;
		bool is_hex = false;
		size_t n;

		n = short_run(text + at, text + len);
		if (n < MIN_RUN) {
			at += n + 1;
			continue;
		}
		buf_init(&digits, len);
		n = base64_run(text + at, text + len, &digits, &is_hex);
		if (digits.error < 0)
			f->error = digits.error;
		else if (digits.len >= MIN_RUN)
			look_at_run(w, f, &digits, is_hex,
				    (size_t[]){ at, at + n }, layer);
		buf_done(&digits);
		at += n;
	}
}

static void look(const struct find_want *w, struct finds *f, const char *text,
		 size_t len, int layer)
{
	struct folded folded;
	int is_folded = fold_text(text, len, &folded);

	find_plain(w, f, text, len);
	if (layer < MAX_LAYERS)
		find_encoded(w, f, text, len, layer);
	if (is_folded > 0) {
		f->map = folded.map;
		find_plain(w, f, folded.text, folded.len);
		f->map = NULL;
	} else if (is_folded < 0) {
		f->error = is_folded;
	}
	folded_done(&folded);
}

/* A find has whole characters. */
static void round_out(struct finds *f, const char *text, size_t len)
{
	for (size_t i = 0; i < f->n; i++) {
		struct found *v = &f->v[i];

		while (v->from > 0 &&
		       ((unsigned char)text[v->from] & 0xc0) == 0x80)
			v->from--;
		while (v->to < len &&
		       ((unsigned char)text[v->to] & 0xc0) == 0x80)
			v->to++;
	}
}

int find_all(const struct find_want *w, const char *text, size_t len,
	     struct finds *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (len >= UINT32_MAX)
		ret->error = -E2BIG;
	else
		look(w, ret, text, len, 0);
	round_out(ret, text, len);
	merge(ret);
	return ret->error;
}
