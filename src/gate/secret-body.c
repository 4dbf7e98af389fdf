/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A declared field of a form or of a JSON document. The bytes around the
 * placeholder stay as they are: a document that is taken apart and written
 * anew has other numbers and another order.
 */

#include <errno.h>
#include <string.h>
#include <strings.h>

#include <openssl/crypto.h>

#include "base/json.h"
#include "base/util.h"
#include "gate/secret.h"

/* The media type alone, without its parameters. */
static struct http_slice bare(const struct http_slice *type)
{
	size_t n = 0;

	while (n < type->len && type->at[n] != ';' && type->at[n] != ' ')
		n++;
	return (struct http_slice){ type->at, n };
}

bool secret_is_json(const struct http_slice *type)
{
	struct http_slice t = bare(type);

	return http_is(&t, "application/json") || http_is(&t, "text/json") ||
	       (t.len > 17 && strncasecmp(t.at, "application/", 12) == 0 &&
		strncasecmp(t.at + t.len - 5, "+json", 5) == 0);
}

bool secret_is_form(const struct http_slice *type)
{
	struct http_slice t = bare(type);

	return http_is(&t, "application/x-www-form-urlencoded");
}

/* It is of a kind that has fields, and a rule declares one. */
static bool has_field(const struct gate_table *t, const bool *applies,
		      const struct http_head *h)
{
	const struct http_field *type = http_find(h, "content-type");

	if (!type || h->framing == HTTP_NO_BODY ||
	    (!secret_is_json(&type->value) && !secret_is_form(&type->value)))
		return false;
	for (int i = 0; i < (int)t->n_rules && i < GATE_MAX_RULES; i++)
		if (applies[i] && t->rules[i].placeholder && t->rules[i].body)
			return true;
	return false;
}

static bool is_coded(const struct http_head *h)
{
	for (size_t i = 0; i < h->n_fields; i++)
		if (http_is(&h->fields[i].name, "content-encoding") &&
		    !http_is(&h->fields[i].value, "identity"))
			return true;
	return false;
}

bool secret_wants_body(const struct gate_table *t, const bool *applies,
		       const struct http_head *h)
{
	return !is_coded(h) && has_field(t, applies, h);
}

bool secret_hides_body(const struct gate_table *t, const bool *applies,
		       const struct http_head *h)
{
	return is_coded(h) && has_field(t, applies, h);
}

/* values as the two kinds write them */

void secret_put_form(struct buf *out, const char *value)
{
	for (; *value; value++) {
		unsigned char c = (unsigned char)*value;
		unsigned char l = c | 0x20;

		if ((c >= '0' && c <= '9') || (l >= 'a' && l <= 'z') ||
		    strchr("-._", c))
			(void)buf_add(out, value, 1);
		else
			(void)buf_printf(out, "%%%02X", (unsigned int)c);
	}
}

/* Control characters do not occur: see secret_is_sendable(). */
void secret_put_json(struct buf *out, const char *value)
{
	for (; *value; value++) {
		if (*value == '"' || *value == '\\')
			(void)buf_puts(out, "\\");
		(void)buf_add(out, value, 1);
	}
}

struct field {
	const char *name;
	const char *placeholder;
	const char *value;
	void (*put)(struct buf *out, const char *value);
};

static void put_replaced(const struct field *f, struct http_slice s,
			 struct buf *out)
{
	size_t n = strlen(f->placeholder);
	const char *p;

	while ((p = memmem(s.at, s.len, f->placeholder, n))) {
		size_t before = (size_t)(p - s.at);

		(void)buf_add(out, s.at, before);
		f->put(out, f->value);
		s.at += before + n;
		s.len -= before + n;
	}
	(void)buf_add(out, s.at, s.len);
}

/* forms */

static void form_part(const struct field *f, struct http_slice part,
		      struct buf *out)
{
	const char *eq = memchr(part.at, '=', part.len);
	struct http_slice name = { part.at, eq ? (size_t)(eq - part.at) : 0 };

	if (strlen(f->name) == name.len &&
	    memcmp(f->name, name.at, name.len) == 0)
		put_replaced(f, part, out);
	else
		(void)buf_add(out, part.at, part.len);
}

static void form_field(const struct field *f, const char *data, size_t len,
		       struct buf *out)
{
	size_t at = 0;

	while (at < len) {
		const char *and = memchr(data + at, '&', len - at);
		size_t n = and? (size_t)(and-data) - at : len - at;

		form_part(f, (struct http_slice){ data + at, n }, out);
		at += n;
		if (and) {
			(void)buf_puts(out, "&");
			at++;
		}
	}
}

/* JSON */

/* The end of the string that begins behind a quote: its closing quote. */
static size_t string_end(const char *data, size_t at, size_t len)
{
	while (at < len && data[at] != '"')
		at += data[at] == '\\' ? 2 : 1;
	return MIN(at, len);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_key(const char *data, size_t at, size_t len)
{
	while (at < len && is_blank(data[at]))
		at++;
	return at < len && data[at] == ':';
}

/* A member of this name, at any depth, whose value is a string. */
static void json_field(const struct field *f, const char *data, size_t len,
		       struct buf *out)
{
	bool is_named = false; /* the string to come is the member's value */
	size_t at = 0, end;

	while (at < len) {
		struct http_slice s;

		if (data[at] != '"') {
			is_named = is_named &&
				   (is_blank(data[at]) || data[at] == ':');
			(void)buf_add(out, data + at++, 1);
			continue;
		}
		end = string_end(data, at + 1, len);
		s = (struct http_slice){ data + at + 1, end - at - 1 };
		(void)buf_puts(out, "\"");
		if (is_named)
			put_replaced(f, s, out);
		else
			(void)buf_add(out, s.at, s.len);
		if (end < len)
			(void)buf_puts(out, "\"");
		is_named = is_key(data, end + 1, len) &&
			   strlen(f->name) == s.len &&
			   memcmp(f->name, s.at, s.len) == 0;
		at = end + 1;
	}
}

/* all rules, one after the other */

static int own_buf(struct buf *b)
{
	/* Of its full size at once: growing would leave copies behind. */
	buf_init(b, 2 * SECRET_BODY_MAX);
	b->cap = b->max + 1;
	b->data = malloc(b->cap);
	return b->data ? 0 : -ENOMEM;
}

static void wipe(struct buf *b)
{
	OPENSSL_clear_free(b->data, b->len);
	*b = (struct buf){ .max = b->max };
}

static int put_rule(const struct gate_table *t, const struct gate_rule *r,
		    bool is_json, struct buf *body)
{
	struct field f = {
		.name = gate_str(t, r->body),
		.placeholder = gate_str(t, r->placeholder),
		.value = gate_str(t, r->value),
		.put = is_json ? secret_put_json : secret_put_form,
	};
	struct buf next;

	if (body->len == 0 || !memmem(body->data, body->len, f.placeholder,
				      strlen(f.placeholder)))
		return 0;
	if (own_buf(&next) < 0)
		return -ENOMEM;
	(is_json ? json_field : form_field)(&f, body->data, body->len, &next);
	wipe(body);
	*body = next;
	return body->error;
}

int secret_put_body(const struct gate_table *t, const bool *applies,
		    bool is_json, const char *data, size_t len, struct buf *out)
{
	int r = own_buf(out);

	if (r == 0)
		r = buf_add(out, data, len);
	for (int i = 0; r == 0 && i < (int)t->n_rules && i < GATE_MAX_RULES;
	     i++)
		if (applies[i] && t->rules[i].placeholder && t->rules[i].body)
			r = put_rule(t, &t->rules[i], is_json, out);
	if (r < 0)
		wipe(out);
	return r;
}
