/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger/read.h"

#include <ctype.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"

/* Each of these returns where the thing at p ends, NULL if there is none. */

static const char *skip_escape(const char *p, const char *end)
{
	if (p < end && *p && strchr("\"\\/bfnrt", *p))
		return p + 1;
	if (p >= end || *p != 'u' || end - p < 5)
		return NULL;
	for (int i = 1; i < 5; i++)
		if (!isxdigit((unsigned char)p[i]))
			return NULL;
	return p + 5;
}

static const char *skip_string(const char *p, const char *end)
{
	for (p++; p && p < end;) {
		unsigned char c = (unsigned char)*p;

		if (c == '"')
			return p + 1;
		if (c < 0x20 || c == 0x7f)
			return NULL;
		if (c == '\\') {
			p = skip_escape(p + 1, end);
			continue;
		}
		if (c < 0x80) {
			p++;
			continue;
		}
		c = (unsigned char)utf8_len((const unsigned char *)p,
					    (size_t)(end - p));
		p = c ? p + c : NULL;
	}
	return NULL;
}

static const char *skip_digits(const char *p, const char *end)
{
	const char *start = p;

	while (p < end && *p >= '0' && *p <= '9')
		p++;
	return p > start ? p : NULL;
}

static const char *skip_number(const char *p, const char *end)
{
	p += *p == '-';
	if (p + 1 < end && *p == '0' && p[1] >= '0' && p[1] <= '9')
		return NULL;
	p = skip_digits(p, end);
	if (p && p < end && *p == '.')
		p = skip_digits(p + 1, end);
	return p;
}

static const char *skip_word(const char *p, const char *end, const char *word)
{
	size_t len = strlen(word);

	if ((size_t)(end - p) < len || memcmp(p, word, len) != 0)
		return NULL;
	return p + len;
}

static const char *skip_scalar(const char *p, const char *end)
{
	switch (*p) {
	case '"':
		return skip_string(p, end);
	case 't':
		return skip_word(p, end, "true");
	case 'f':
		return skip_word(p, end, "false");
	case 'n':
		return skip_word(p, end, "null");
	default:
		return skip_number(p, end);
	}
}

/* After an opening bracket or a comma: the name, if it is an object's. */
static const char *skip_name(const char *p, const char *end, char open)
{
	if (open != '{')
		return p;
	if (p >= end || *p != '"')
		return NULL;
	p = skip_string(p, end);
	return p && p < end && *p == ':' ? p + 1 : NULL;
}

struct open {
	char bracket[VALUE_DEPTH];
	int depth;
};

static char closing(const struct open *o)
{
	return o->bracket[o->depth - 1] == '{' ? '}' : ']';
}

/* One that opens: 1 and p behind it and its first name; 0 if it is empty. */
static int enter(struct open *o, const char **p, const char *end)
{
	if (o->depth == VALUE_DEPTH) {
		*p = NULL;
		return 0;
	}
	o->bracket[o->depth++] = *(*p)++;
	if (*p < end && **p == closing(o))
		return 0;
	*p = skip_name(*p, end, o->bracket[o->depth - 1]);
	return 1;
}

/* Behind a value: brackets that close, then a comma and the next name. */
static const char *leave(struct open *o, const char *p, const char *end)
{
	while (o->depth > 0 && p < end && *p == closing(o)) {
		o->depth--;
		p++;
	}
	if (o->depth == 0)
		return p;
	if (p >= end || *p != ',')
		return NULL;
	return skip_name(p + 1, end, o->bracket[o->depth - 1]);
}

static const char *skip_value(const char *p, const char *end)
{
	struct open o = { .depth = 0 };

	do {
		if (!p || p >= end)
			return NULL;
		if (*p != '{' && *p != '[')
			p = skip_scalar(p, end);
		else if (enter(&o, &p, end))
			continue;
		p = p ? leave(&o, p, end) : NULL;
	} while (o.depth > 0);
	return p;
}

bool value_check(const char *text, size_t len)
{
	return skip_value(text, text + len) == text + len;
}

char value_type(const struct value *v)
{
	if (v->len == 0)
		return '\0';
	if (*v->p == '-' || (*v->p >= '0' && *v->p <= '9'))
		return '0';
	return *v->p;
}

struct walk walk_start(const struct value *v)
{
	char type = value_type(v);
	struct walk w = { .is_object = type == '{' };

	if ((type == '{' || type == '[') && v->len >= 2) {
		w.p = v->p + 1;
		w.end = v->p + v->len - 1;
	}
	return w;
}

bool walk_next(struct walk *w, struct value *name, struct value *ret)
{
	const char *p = w->p;

	*name = *ret = (struct value){ 0 };
	if (!p || p >= w->end)
		return false;
	if (w->is_object) {
		p = skip_name(p, w->end, '{');
		if (!p)
			return false;
		*name = (struct value){ w->p, (size_t)(p - 1 - w->p) };
	}
	ret->p = p;
	p = skip_value(p, w->end);
	if (!p) {
		*ret = (struct value){ 0 };
		w->p = NULL;
		return false;
	}
	ret->len = (size_t)(p - ret->p);
	w->p = p < w->end && *p == ',' ? p + 1 : NULL;
	return true;
}

bool value_get(const struct value *object, const char *name, struct value *ret)
{
	struct value have;

	*ret = (struct value){ 0 };
	if (value_type(object) != '{')
		return false;
	for (struct walk w = walk_start(object); walk_next(&w, &have, ret);)
		if (value_is(&have, name))
			return true;
	*ret = (struct value){ 0 };
	return false;
}

bool value_is(const struct value *v, const char *text)
{
	size_t len = strlen(text);

	return v->len == len + 2 && *v->p == '"' &&
	       memcmp(v->p + 1, text, len) == 0;
}

static unsigned int hex4(const char *p)
{
	unsigned int v = 0;

	for (int i = 0; i < 4; i++) {
		char c = (char)tolower((unsigned char)p[i]);

		v = v << 4 | (unsigned int)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
	return v;
}

static void put_char(struct buf *out, unsigned int c)
{
	unsigned char b[3];
	size_t n;

	if (c < 0x80) {
		b[0] = (unsigned char)c;
		n = 1;
	} else if (c < 0x800) {
		b[0] = (unsigned char)(0xc0 | c >> 6);
		b[1] = (unsigned char)(0x80 | (c & 63));
		n = 2;
	} else {
		/* Halves of pairs are not written by us. */
		if (c >= 0xd800 && c < 0xe000)
			c = 0xfffd;
		b[0] = (unsigned char)(0xe0 | c >> 12);
		b[1] = (unsigned char)(0x80 | (c >> 6 & 63));
		b[2] = (unsigned char)(0x80 | (c & 63));
		n = 3;
	}
	buf_add(out, b, n);
}

int value_text(const struct value *v, struct buf *out)
{
	static const char letter[] = "bfnrt";
	static const char meant[] = "\b\f\n\r\t";
	const char *end = v->p + v->len - 1;

	if (value_type(v) != '"')
		return buf_add(out, v->p, v->len);
	for (const char *p = v->p + 1; p < end; p++) {
		const char *at;

		if (*p != '\\') {
			buf_add(out, p, 1);
			continue;
		}
		p++;
		if (*p == 'u') {
			put_char(out, hex4(p + 1));
			p += 4;
			continue;
		}
		at = strchr(letter, *p);
		buf_add(out, at ? &meant[at - letter] : p, 1);
	}
	return out->error;
}

int64_t value_int(const struct value *v, int64_t other)
{
	int64_t n = 0;
	size_t i = 0;

	if (value_type(v) != '0' || v->len > 18)
		return other;
	i += v->p[0] == '-';
	for (; i < v->len; i++) {
		if (v->p[i] < '0' || v->p[i] > '9')
			return other;
		n = n * 10 + (v->p[i] - '0');
	}
	return v->p[0] == '-' ? -n : n;
}
