/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <stdio.h>
#include <string.h>

static void json_name(struct json *j, const char *name)
{
	if (j->comma)
		buf_puts(j->out, ",");
	j->comma = true;
	if (name) {
		json_bytes(&(struct json){ .out = j->out }, NULL, name,
			   strlen(name));
		buf_puts(j->out, ":");
	}
}

void json_open(struct json *j, const char *name, char bracket)
{
	json_name(j, name);
	buf_add(j->out, &bracket, 1);
	j->comma = false;
}

void json_close(struct json *j, char bracket)
{
	buf_add(j->out, &bracket, 1);
	j->comma = true;
}

void json_int(struct json *j, const char *name, int64_t value)
{
	json_name(j, name);
	buf_printf(j->out, "%lld", (long long)value);
}

void json_decimal(struct json *j, const char *name, double value)
{
	json_name(j, name);
	buf_printf(j->out, "%.2f", value);
}

void json_bool(struct json *j, const char *name, bool value)
{
	json_name(j, name);
	buf_puts(j->out, value ? "true" : "false");
}

void json_none(struct json *j, const char *name)
{
	json_name(j, name);
	buf_puts(j->out, "null");
}

void json_raw(struct json *j, const char *name, const char *text)
{
	size_t len = strlen(text);

	while (len > 0 && text[len - 1] == '\n')
		len--;
	json_name(j, name);
	buf_add(j->out, text, len);
}

void json_str(struct json *j, const char *name, const char *text)
{
	if (text)
		json_bytes(j, name, text, strlen(text));
	else
		json_none(j, name);
}

/*
 * The shortest and longest forms are from the table of well-formed UTF-8
 * sequences in the Unicode standard (table 3-7): no overlong forms, no
 * surrogates, nothing above U+10FFFF.
 */
size_t utf8_len(const unsigned char *p, size_t len)
{
	unsigned char low = 0x80;
	unsigned char high = 0xbf;
	size_t n;

	if (len == 0)
		return 0;
	if (p[0] < 0x80)
		return 1;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	n = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (p[0] == 0xe0)
		low = 0xa0;
	if (p[0] == 0xed)
		high = 0x9f;
	if (p[0] == 0xf0)
		low = 0x90;
	if (p[0] == 0xf4)
		high = 0x8f;
	if (len < n || p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

bool utf8_check(const void *data, size_t len)
{
	const unsigned char *p = data;

	while (len > 0) {
		size_t n = utf8_len(p, len);

		if (n == 0)
			return false;
		p += n;
		len -= n;
	}
	return true;
}

void utf8_repair(struct buf *out, const void *data, size_t len)
{
	const unsigned char *p = data;

	while (len > 0) {
		size_t n = utf8_len(p, len);

		buf_add(out, n ? (const char *)p : "\xef\xbf\xbd", n ? n : 3);
		p += n ? n : 1;
		len -= n ? n : 1;
	}
}

static void json_escape(struct buf *out, unsigned char c)
{
	static const char short_form[] = "\"\\\b\f\n\r\t";
	static const char letter[] = "\"\\bfnrt";
	const char *at = c ? strchr(short_form, c) : NULL;

	if (at)
		buf_printf(out, "\\%c", letter[at - short_form]);
	else
		buf_printf(out, "\\u%04x", c);
}

void json_bytes(struct json *j, const char *name, const void *data, size_t len)
{
	const unsigned char *p = data;
	size_t plain = 0;

	json_name(j, name);
	buf_puts(j->out, "\"");
	while (plain < len) {
		size_t n = utf8_len(p + plain, len - plain);
		unsigned char c = p[plain];

		if (n > 0 && c >= 0x20 && c != '"' && c != '\\' && c != 0x7f) {
			plain += n;
			continue;
		}
		buf_add(j->out, p, plain);
		if (n == 0)
			buf_puts(j->out, "\xef\xbf\xbd");
		else
			json_escape(j->out, c);
		p += plain + 1;
		len -= plain + 1;
		plain = 0;
	}
	buf_add(j->out, p, plain);
	buf_puts(j->out, "\"");
}

void json_base64(struct json *j, const char *name, const void *data, size_t len)
{
	static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "abcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *p = data;

	json_name(j, name);
	buf_puts(j->out, "\"");
	for (; len > 0; p += 3) {
		size_t n = len < 3 ? len : 3;
		unsigned int v = (unsigned int)p[0] << 16;
		char quad[4];

		if (n > 1)
			v |= (unsigned int)p[1] << 8;
		if (n > 2)
			v |= p[2];
		quad[0] = digit[v >> 18];
		quad[1] = digit[v >> 12 & 63];
		quad[2] = n > 1 ? digit[v >> 6 & 63] : '=';
		quad[3] = n > 2 ? digit[v & 63] : '=';
		buf_add(j->out, quad, sizeof(quad));
		len -= n;
	}
	buf_puts(j->out, "\"");
}

static bool is_ascii(const unsigned char *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((p[i] < 0x20 && p[i] != '\n' && p[i] != '\t') ||
		    p[i] > 0x7e)
			return false;
	return true;
}

void json_exact(struct json *j, const char *name, const void *data, size_t len)
{
	if (is_ascii(data, len)) {
		json_bytes(j, name, data, len);
		return;
	}
	json_open(j, name, '{');
	json_base64(j, "base64", data, len);
	json_close(j, '}');
}
