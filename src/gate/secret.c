/* SPDX-License-Identifier: Apache-2.0 */

/* Placeholders in heads: found, judged, replaced. */

#include "gate/secret.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "base/base64.h"
#include "base/util.h"

/* Credentials of Basic, decoded: user and password, or a token. */
#define BASIC_MAX (2 * SECRET_MAX)

static bool has(struct http_slice s, const char *part)
{
	return part && *part && memmem(s.at, s.len, part, strlen(part));
}

static const char *placeholder_of(const struct gate_table *t, int rule)
{
	return gate_str(t, t->rules[rule].placeholder);
}

static bool may_be_in(const struct gate_table *t, const struct gate_rule *r,
		      const struct http_slice *name)
{
	const char *header = gate_str(t, r->header);

	return header && (strcmp(header, "*") == 0 || http_is(name, header));
}

/* Basic */

/*
 * What `Basic ...` stands for, in `out`; false: it is something else. In a room
 * of its own (a gate has one thread): without memory it would be something
 * else, and a placeholder in it would not be seen.
 */
static bool read_basic(struct http_slice v, struct buf *out)
{
	static char room[BASIC_MAX + 1];

	if (v.len < 7 || strncasecmp(v.at, "Basic ", 6) != 0)
		return false;
	v.at += 6;
	v.len -= 6;
	while (v.len > 0 && *v.at == ' ')
		v.at++, v.len--;
	buf_init(out, BASIC_MAX);
	out->data = room;
	out->cap = sizeof(room);
	return v.len <= BASIC_MAX && base64_add(out, v.at, v.len) == 0 &&
	       out->len > 0;
}

static bool is_in_basic(struct http_slice v, const char *placeholder)
{
	struct buf plain;

	return placeholder && read_basic(v, &plain) &&
	       memmem(plain.data, plain.len, placeholder, strlen(placeholder));
}

static bool is_in_value(struct http_slice v, const char *placeholder)
{
	return has(v, placeholder) || is_in_basic(v, placeholder);
}

/* percent-encoding */

static int hex(char c)
{
	char l = c | 0x20;

	if (c >= '0' && c <= '9')
		return c - '0';
	return l >= 'a' && l <= 'f' ? l - 'a' + 10 : -1;
}

/* Whether `placeholder` stands in `s`, each byte as it is or encoded. */
static bool has_coded(struct http_slice s, const char *placeholder)
{
	size_t n = placeholder ? strlen(placeholder) : 0;

	for (size_t i = 0; n > 0 && i + n <= s.len; i++) {
		size_t at = i, k = 0;

		while (k < n && at < s.len) {
			int c = (unsigned char)s.at[at];

			if (c == '%' && at + 2 < s.len &&
			    hex(s.at[at + 1]) >= 0 && hex(s.at[at + 2]) >= 0) {
				c = hex(s.at[at + 1]) * 16 + hex(s.at[at + 2]);
				at += 2;
			}
			if (c != (unsigned char)placeholder[k])
				break;
			at++;
			k++;
		}
		if (k == n)
			return true;
	}
	return false;
}

void secret_put_coded(struct buf *out, const char *value)
{
	static const char plain[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
		"0123456789-._~";

	for (; *value; value++) {
		if (strchr(plain, *value))
			(void)buf_add(out, value, 1);
		else
			(void)buf_printf(out, "%%%02X",
					 (unsigned int)(unsigned char)*value);
	}
}

/* checks */

/* It stands in a header, so no byte may end one. */
bool secret_is_sendable(const char *value)
{
	size_t n = value ? strnlen(value, SECRET_MAX + 1) : 0;

	if (n == 0 || n > SECRET_MAX)
		return false;
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)value[i] < ' ' || value[i] == 0x7f)
			return false;
	return true;
}

static struct http_slice target_of(const struct http_head *h)
{
	struct http_slice s = h->path;

	/* The query stands behind the path, and a mark is between. */
	if (h->query.at)
		s.len += 1 + h->query.len;
	return s;
}

/*
 * Whether a rule that applies has this placeholder, for this header or (NULL)
 * for the query. Rules for several hosts may share one.
 */
static bool is_at_home(const struct gate_table *t, const bool *applies,
		       const char *placeholder, const struct http_slice *name)
{
	for (int i = 0; i < (int)t->n_rules && i < GATE_MAX_RULES; i++) {
		const struct gate_rule *r = &t->rules[i];

		if (applies[i] && r->placeholder &&
		    strcmp(gate_str(t, r->placeholder), placeholder) == 0 &&
		    (name ? may_be_in(t, r, name) : r->query != 0))
			return true;
	}
	return false;
}

static const char *where_wrong(const struct gate_table *t, const bool *applies,
			       const char *placeholder,
			       const struct http_head *h)
{
	if (has_coded(h->path, placeholder))
		return "the path";
	if (has_coded(target_of(h), placeholder) &&
	    !is_at_home(t, applies, placeholder, NULL))
		return "the query";
	for (size_t i = 0; i < h->n_fields; i++) {
		const struct http_field *f = &h->fields[i];

		if (has(f->name, placeholder))
			return "a header's name";
		if (is_in_value(f->value, placeholder) &&
		    (http_is_ours(&f->name) ||
		     !is_at_home(t, applies, placeholder, &f->name)))
			return "a header";
	}
	return NULL;
}

void secret_check_head(const struct gate_table *t, const bool *applies,
		       const struct http_head *h, struct secret_fault *ret)
{
	*ret = (struct secret_fault){ .reason = GATE_OK };
	for (int i = 0; i < (int)t->n_rules && i < GATE_MAX_RULES; i++) {
		const struct gate_rule *r = &t->rules[i];

		if (!r->placeholder)
			continue;
		ret->where = where_wrong(t, applies, placeholder_of(t, i), h);
		if (!ret->where && applies[i] &&
		    !secret_is_sendable(gate_str(t, r->value)))
			ret->where = "a request: its value has a byte that "
				     "none may have";
		if (ret->where) {
			ret->reason = GATE_R_PLACEHOLDER;
			ret->name = gate_str(t, r->name);
			return;
		}
	}
}

/* replacing */

/* Every placeholder in `s` becomes `value`, as `put` writes it. */
static void put_replaced(struct buf *out, struct http_slice s,
			 const char *placeholder, const char *value,
			 void (*put)(struct buf *, const char *))
{
	size_t n = strlen(placeholder);

	for (;;) {
		const char *p = memmem(s.at, s.len, placeholder, n);
		size_t before = p ? (size_t)(p - s.at) : s.len;

		(void)buf_add(out, s.at, before);
		if (!p)
			return;
		put(out, value);
		s.at += before + n;
		s.len -= before + n;
	}
}

static void put_plain(struct buf *out, const char *value)
{
	(void)buf_puts(out, value);
}

static void put_base64(struct buf *out, const struct buf *plain)
{
	size_t size = plain->len / 3 * 4 + 8;
	char *text = malloc(size);

	if (!text) {
		out->error = -ENOMEM;
		return;
	}
	(void)EVP_EncodeBlock((unsigned char *)text,
			      (const unsigned char *)plain->data,
			      (int)plain->len);
	(void)buf_puts(out, text);
	OPENSSL_clear_free(text, size);
}

bool secret_put_basic(struct buf *out, struct http_slice v,
		      const char *placeholder, const char *value)
{
	struct buf plain, whole = { .max = 4 * BASIC_MAX };

	if (!is_in_basic(v, placeholder) || !read_basic(v, &plain))
		return false;
	/* All of it at once: nothing is moved, so nothing is left behind. */
	whole.cap = whole.max + 1;
	whole.data = malloc(whole.cap);
	if (!whole.data)
		out->error = -ENOMEM;
	else
		put_replaced(&whole,
			     (struct http_slice){ plain.data, plain.len },
			     placeholder, value, put_plain);
	(void)buf_puts(out, "Basic ");
	if (whole.error)
		out->error = whole.error;
	else if (whole.data)
		put_base64(out, &whole);
	OPENSSL_clear_free(whole.data, whole.cap);
	return true;
}

static void put_formatted(struct buf *out, const char *format,
			  const char *value)
{
	const char *hole = strstr(format, "{}");

	if (!hole) {
		out->error = -EINVAL;
		return;
	}
	(void)buf_add(out, format, (size_t)(hole - format));
	(void)buf_puts(out, value);
	(void)buf_puts(out, hole + 2);
}

static void put_for(const struct gate_table *t, const struct gate_rule *r,
		    struct http_slice v, struct buf *out)
{
	const char *placeholder = gate_str(t, r->placeholder);
	const char *value = gate_str(t, r->value);
	const char *format = gate_str(t, r->format);

	if (secret_put_basic(out, v, placeholder, value))
		return;
	if (format)
		put_formatted(out, format, value);
	else
		put_replaced(out, v, placeholder, value, put_plain);
}

bool secret_put_value(const struct gate_table *t, const bool *applies,
		      const struct http_field *f, struct buf *out)
{
	for (int i = 0; i < (int)t->n_rules && i < GATE_MAX_RULES; i++) {
		const struct gate_rule *r = &t->rules[i];

		if (!applies[i] || !r->placeholder ||
		    !may_be_in(t, r, &f->name) ||
		    !is_in_value(f->value, gate_str(t, r->placeholder)))
			continue;
		put_for(t, r, f->value, out);
		return true;
	}
	(void)buf_add(out, f->value.at, f->value.len);
	return false;
}

/* Two rules may write the same header: the first does. */
static bool is_first(const struct gate_table *t, const bool *applies, int rule,
		     const char *header)
{
	for (int i = 0; i < rule; i++)
		if (applies[i] && t->rules[i].format && t->rules[i].header &&
		    strcasecmp(gate_str(t, t->rules[i].header), header) == 0)
			return false;
	return true;
}

bool secret_put_missing(const struct gate_table *t, const bool *applies,
			const struct http_head *h, struct buf *out)
{
	bool found = false;

	for (int i = 0; i < (int)t->n_rules && i < GATE_MAX_RULES; i++) {
		const struct gate_rule *r = &t->rules[i];
		const char *header = gate_str(t, r->header);

		if (!applies[i] || !r->placeholder || !r->format || !header ||
		    strcmp(header, "*") == 0 || http_find(h, header) ||
		    !is_first(t, applies, i, header))
			continue;
		(void)buf_printf(out, "%s: ", header);
		put_formatted(out, gate_str(t, r->format),
			      gate_str(t, r->value));
		(void)buf_puts(out, "\r\n");
		found = true;
	}
	return found;
}

/* "name=value" of a query. */
static bool put_part(const struct gate_table *t, const bool *applies,
		     struct http_slice part, struct buf *out)
{
	const char *eq = memchr(part.at, '=', part.len);
	size_t n = eq ? (size_t)(eq - part.at) : part.len;

	for (int i = 0; eq && i < (int)t->n_rules && i < GATE_MAX_RULES; i++) {
		const char *query = gate_str(t, t->rules[i].query);

		if (!applies[i] || !query || strlen(query) != n ||
		    memcmp(part.at, query, n) != 0 ||
		    !has(part, placeholder_of(t, i)))
			continue;
		put_replaced(out, part, placeholder_of(t, i),
			     gate_str(t, t->rules[i].value), secret_put_coded);
		return true;
	}
	(void)buf_add(out, part.at, part.len);
	return false;
}

bool secret_put_target(const struct gate_table *t, const bool *applies,
		       const struct http_head *h, struct buf *out)
{
	struct http_slice rest = h->query;
	bool found = false;

	(void)buf_add(out, h->path.at, h->path.len);
	if (!rest.at)
		return false;
	(void)buf_puts(out, "?");
	for (;;) {
		const char *and = memchr(rest.at, '&', rest.len);
		size_t n = and? (size_t)(and-rest.at) : rest.len;

		found |= put_part(t, applies, (struct http_slice){ rest.at, n },
				  out);
		if (!and)
			return found;
		(void)buf_puts(out, "&");
		rest.at += n + 1;
		rest.len -= n + 1;
	}
}

/* bodies on their way */

/* Some rule that applies has the same one. */
static bool is_shared(const struct gate_table *t, const bool *applies,
		      const char *placeholder)
{
	for (int i = 0; i < (int)t->n_rules && i < GATE_MAX_RULES; i++)
		if (applies[i] && t->rules[i].placeholder &&
		    strcmp(placeholder_of(t, i), placeholder) == 0)
			return true;
	return false;
}

static int find_foreign(const struct gate_table *t, const bool *applies,
			struct http_slice s)
{
	for (int i = 0; i < (int)t->n_rules && i < GATE_MAX_RULES; i++)
		if (!applies[i] && has(s, placeholder_of(t, i)) &&
		    !is_shared(t, applies, placeholder_of(t, i)))
			return i;
	return -1;
}

int secret_watch_take(struct secret_watch *w, const struct gate_table *t,
		      const bool *applies, const char *data, size_t len)
{
	char seam[2 * PLACEHOLDER_MAX];
	size_t n = MIN(len, (size_t)PLACEHOLDER_MAX);
	int r;

	memcpy(seam, w->tail, w->n);
	memcpy(seam + w->n, data, n);
	r = find_foreign(t, applies, (struct http_slice){ seam, w->n + n });
	if (r < 0)
		r = find_foreign(t, applies, (struct http_slice){ data, len });
	if (len >= PLACEHOLDER_MAX) {
		w->n = PLACEHOLDER_MAX;
		memcpy(w->tail, data + len - w->n, w->n);
	} else {
		size_t keep = MIN(w->n + n, (size_t)PLACEHOLDER_MAX);

		memcpy(w->tail, seam + w->n + n - keep, keep);
		w->n = keep;
	}
	return r;
}
