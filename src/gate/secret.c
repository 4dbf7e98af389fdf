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
	return part && *part && s.len > 0 &&
	       memmem(s.at, s.len, part, strlen(part));
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

	if (s.len == 0 || !memchr(s.at, '%', s.len))
		return has(s, placeholder);
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

/* The same for a header's value, and what Basic has in it. */
static bool is_coded_in_value(struct http_slice v, const char *placeholder)
{
	struct buf plain;

	return has_coded(v, placeholder) ||
	       (read_basic(v, &plain) &&
		has_coded((struct http_slice){ plain.data, plain.len },
			  placeholder));
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

/* A place in a request: a header, or a field of the query. */
typedef bool place_fn(const struct gate_table *t, const struct gate_rule *r,
		      const struct http_slice *name);

static bool may_be_asked(const struct gate_table *t, const struct gate_rule *r,
			 const struct http_slice *name)
{
	const char *query = gate_str(t, r->query);

	return query && strlen(query) == name->len &&
	       memcmp(query, name->at, name->len) == 0;
}

/*
 * Whether a rule that applies has this placeholder for this place. Rules for
 * several hosts may share one.
 */
static bool is_at_home(const struct gate_table *t, const bool *applies,
		       const char *placeholder, place_fn *may_be,
		       const struct http_slice *name)
{
	for (int i = 0; i < (int)t->n_rules && i < GATE_MAX_RULES; i++) {
		const struct gate_rule *r = &t->rules[i];

		if (applies[i] && r->placeholder &&
		    strcmp(gate_str(t, r->placeholder), placeholder) == 0 &&
		    may_be(t, r, name))
			return true;
	}
	return false;
}

/* "name=value" of a query; a name alone has no value. */
static struct http_slice name_of(struct http_slice part)
{
	const char *eq = memchr(part.at, '=', part.len);

	return (struct http_slice){ part.at, eq ? (size_t)(eq - part.at) : 0 };
}

/* The next part of a query, which is taken off its beginning. */
static struct http_slice next_part(struct http_slice *rest)
{
	const char *and = memchr(rest->at, '&', rest->len);
	struct http_slice part = { rest->at,
				   and? (size_t)(and-rest->at) : rest->len };
	size_t n = part.len + (and? 1 : 0);

	rest->at += n;
	rest->len -= n;
	return part;
}

/* One that is encoded would go out as it is, so it is nowhere at home. */
static bool is_wrong_in_query(const struct gate_table *t, const bool *applies,
			      const char *placeholder, struct http_slice rest)
{
	if (!has_coded(rest, placeholder))
		return false;
	while (rest.len > 0) {
		struct http_slice part = next_part(&rest);
		struct http_slice name = name_of(part);

		if (has_coded(part, placeholder) &&
		    (!has(part, placeholder) || has_coded(name, placeholder) ||
		     !is_at_home(t, applies, placeholder, may_be_asked, &name)))
			return true;
	}
	return false;
}

static bool is_wrong_in_header(const struct gate_table *t, const bool *applies,
			       const char *placeholder,
			       const struct http_field *f)
{
	if (!is_in_value(f->value, placeholder))
		return is_coded_in_value(f->value, placeholder);
	return http_is_ours(&f->name) ||
	       !is_at_home(t, applies, placeholder, may_be_in, &f->name);
}

static const char *where_wrong(const struct gate_table *t, const bool *applies,
			       const char *placeholder,
			       const struct http_head *h)
{
	if (has_coded(h->path, placeholder))
		return "the path";
	if (is_wrong_in_query(t, applies, placeholder, h->query))
		return "the query";
	for (size_t i = 0; i < h->n_fields; i++) {
		if (has_coded(h->fields[i].name, placeholder))
			return "a header's name";
		if (is_wrong_in_header(t, applies, placeholder, &h->fields[i]))
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

/* Placeholders that become values in one place; it may have several. */
struct swap {
	const char *placeholder;
	size_t len;
	const char *value;
};

struct swaps {
	size_t n;
	const char *format; /* of the first one */
	struct swap v[GATE_MAX_RULES];
};

/* Not all of it: each header has one, and most of it is never used. */
static void swaps_init(struct swaps *w)
{
	w->n = 0;
	w->format = NULL;
}

static void add_swap(struct swaps *w, const struct gate_table *t,
		     const struct gate_rule *r)
{
	const char *placeholder = gate_str(t, r->placeholder);
	const char *value = gate_str(t, r->value);

	if (!placeholder || !value)
		return;
	for (size_t i = 0; i < w->n; i++)
		if (strcmp(w->v[i].placeholder, placeholder) == 0)
			return;
	if (w->n == 0)
		w->format = gate_str(t, r->format);
	w->v[w->n++] = (struct swap){ .placeholder = placeholder,
				      .len = strlen(placeholder),
				      .value = value };
}

/* The longest placeholder at the beginning of `s`, or NULL. */
static const struct swap *swap_at(const struct swaps *w, struct http_slice s)
{
	const struct swap *best = NULL;

	for (size_t i = 0; i < w->n; i++) {
		const struct swap *k = &w->v[i];

		if (k->len <= s.len && (!best || k->len > best->len) &&
		    memcmp(s.at, k->placeholder, k->len) == 0)
			best = k;
	}
	return best;
}

/*
 * Every placeholder in `s` becomes its value, as `put` writes it. In one go:
 * nothing is copied that has a value in it already.
 */
static void put_swapped(struct buf *out, struct http_slice s,
			const struct swaps *w,
			void (*put)(struct buf *, const char *))
{
	size_t from = 0, at = 0;

	while (w->n > 0 && at < s.len) {
		const struct swap *k = swap_at(w,
					       (struct http_slice){
						       s.at + at, s.len - at });

		if (!k) {
			at++;
			continue;
		}
		(void)buf_add(out, s.at + from, at - from);
		put(out, k->value);
		at += k->len;
		from = at;
	}
	(void)buf_add(out, s.at + from, s.len - from);
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

/* Those of this header that stand in it, as they are or inside of Basic. */
static void find_swaps(const struct gate_table *t, const bool *applies,
		       const struct http_field *f, struct swaps *ret)
{
	swaps_init(ret);
	for (int i = 0; i < (int)t->n_rules && i < GATE_MAX_RULES; i++) {
		const struct gate_rule *r = &t->rules[i];

		if (applies[i] && r->placeholder && may_be_in(t, r, &f->name) &&
		    is_in_value(f->value, gate_str(t, r->placeholder)))
			add_swap(ret, t, r);
	}
}

static bool has_swap(const struct swaps *w, struct http_slice s)
{
	for (size_t i = 0; i < w->n; i++)
		if (has(s, w->v[i].placeholder))
			return true;
	return false;
}

static bool put_basic(struct buf *out, struct http_slice v,
		      const struct swaps *w)
{
	struct buf plain, whole = { .max = 4 * BASIC_MAX };
	struct http_slice s;

	if (w->n == 0 || !read_basic(v, &plain))
		return false;
	s = (struct http_slice){ plain.data, plain.len };
	if (!has_swap(w, s))
		return false;
	/* All of it at once: nothing is moved, so nothing is left behind. */
	whole.cap = whole.max + 1;
	whole.data = malloc(whole.cap);
	if (!whole.data)
		out->error = -ENOMEM;
	else
		put_swapped(&whole, s, w, put_plain);
	(void)buf_puts(out, "Basic ");
	if (whole.error)
		out->error = whole.error;
	else if (whole.data)
		put_base64(out, &whole);
	OPENSSL_clear_free(whole.data, whole.cap);
	return true;
}

bool secret_put_basic(const struct gate_table *t, const bool *applies,
		      const struct http_field *f, struct buf *out)
{
	struct swaps w;

	find_swaps(t, applies, f, &w);
	return put_basic(out, f->value, &w);
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

bool secret_put_value(const struct gate_table *t, const bool *applies,
		      const struct http_field *f, struct buf *out)
{
	struct swaps w;

	find_swaps(t, applies, f, &w);
	if (put_basic(out, f->value, &w))
		return true;
	/* A format says how the header looks as a whole. */
	if (w.n > 0 && w.format)
		put_formatted(out, w.format, w.v[0].value);
	else
		put_swapped(out, f->value, &w, put_plain);
	return w.n > 0;
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

static bool put_part(const struct gate_table *t, const bool *applies,
		     struct http_slice part, struct buf *out)
{
	const struct http_slice name = name_of(part);
	struct swaps w;

	swaps_init(&w);
	for (int i = 0; i < (int)t->n_rules && i < GATE_MAX_RULES; i++)
		if (applies[i] && may_be_asked(t, &t->rules[i], &name) &&
		    has(part, placeholder_of(t, i)))
			add_swap(&w, t, &t->rules[i]);
	put_swapped(out, part, &w, secret_put_coded);
	return w.n > 0;
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
	while (rest.len > 0) {
		struct http_slice part = next_part(&rest);

		found |= put_part(t, applies, part, out);
		if (part.at + part.len < h->query.at + h->query.len)
			(void)buf_puts(out, "&");
	}
	return found;
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
