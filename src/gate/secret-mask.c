/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What upstream sends back. A server may repeat what it was sent (in a page
 * for debugging, in a redirect), and the value must not enter the box that
 * way. An answer that is compressed, or has the value in another encoding, is
 * not seen through: docs/inspection.md says so.
 */

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include <openssl/crypto.h>

#include "base/util.h"
#include "gate/secret.h"

/*
 * Bytes are looked at in blocks, behind those that were held back. `out` is
 * covered, and `raw` stays as it came: a value that begins inside of another
 * one is found too. A gate has one thread, so one of it is enough.
 */
#define MASK_BLOCK 16384

static struct {
	char raw[MASK_MAX + MASK_BLOCK];
	char out[MASK_MAX + MASK_BLOCK];
} work;

static int grow(struct secret_masks *m)
{
	unsigned int cap = m->cap ? 2 * m->cap : 4;
	struct secret_mask *v;

	if (m->n < m->cap)
		return 0;
	if (m->n >= MASKS_MAX)
		return -E2BIG;
	if (!m->held)
		m->held = malloc(MASK_MAX);
	v = reallocarray(m->v, cap, sizeof(*v));
	if (v) {
		m->v = v;
		m->cap = cap;
	}
	return v && m->held ? 0 : -ENOMEM;
}

static int add_mask(struct secret_masks *m, const char *value, size_t len)
{
	char *copy;
	int r;

	if (len < MASK_MIN)
		return 0;
	for (unsigned int i = 0; i < m->n; i++)
		if (m->v[i].len == len &&
		    memcmp(m->v[i].value, value, len) == 0)
			return 0;
	if (len > MASK_MAX)
		return -E2BIG;
	r = grow(m);
	if (r < 0)
		return r;
	copy = strndup(value, len);
	if (!copy)
		return -ENOMEM;
	m->v[m->n++] = (struct secret_mask){ .value = copy, .len = len };
	return 0;
}

/* forms of a value */

/* What stands in `text` is one more. */
static int add_text(struct secret_masks *m, struct buf *text)
{
	int r = text->error ? text->error : add_mask(m, text->data, text->len);

	text->len = 0;
	return r;
}

/* Percent-encoding with small digits, which means the same. */
static void lower_digits(struct buf *text)
{
	for (size_t i = 0; i + 2 < text->len; i++)
		if (text->data[i] == '%') {
			text->data[i + 1] = (char)tolower(text->data[i + 1]);
			text->data[i + 2] = (char)tolower(text->data[i + 2]);
		}
}

static int add_coded(struct secret_masks *m, const char *value,
		     void (*put)(struct buf *, const char *), struct buf *text)
{
	int r;

	put(text, value);
	r = add_text(m, text);
	if (r < 0)
		return r;
	put(text, value);
	lower_digits(text);
	return add_text(m, text);
}

/* Many write JSON with "\/" for a slash, lest it end a script of HTML. */
static int add_slashed(struct secret_masks *m, const char *value,
		       struct buf *text)
{
	for (; *value; value++) {
		if (strchr("\"\\/", *value))
			(void)buf_puts(text, "\\");
		(void)buf_add(text, value, 1);
	}
	return add_text(m, text);
}

static int add_rule(struct secret_masks *m, const char *value, struct buf *text)
{
	int r = add_mask(m, value, strlen(value));

	if (r == 0)
		r = add_coded(m, value, secret_put_coded, text);
	if (r == 0)
		r = add_coded(m, value, secret_put_form, text);
	if (r < 0)
		return r;
	secret_put_json(text, value);
	r = add_text(m, text);
	return r < 0 ? r : add_slashed(m, value, text);
}

/* The credentials of Basic that this head sends. */
static int add_basic(struct secret_masks *m, const struct gate_table *t,
		     const bool *sent, const struct http_field *f,
		     struct buf *text)
{
	static const size_t n = sizeof("Basic ") - 1;
	_cleanup_free_ char *word = NULL;
	int r;

	if (!secret_put_basic(t, sent, f, text))
		return 0;
	if (text->error || text->len <= n)
		return text->error;
	word = strndup(text->data + n, text->len - n);
	text->len = 0;
	if (!word)
		return -ENOMEM;
	r = add_mask(m, word, strlen(word));
	if (r == 0)
		r = add_slashed(m, word, text);
	OPENSSL_cleanse(word, strlen(word));
	return r;
}

static int add_all(struct secret_masks *m, const struct gate_table *t,
		   const bool *sent, const struct http_head *h,
		   struct buf *text)
{
	int r = 0;

	for (int i = 0; r == 0 && i < (int)t->n_rules && i < GATE_MAX_RULES;
	     i++) {
		const char *value = gate_str(t, t->rules[i].value);

		/* What is never sent does not come back. */
		if (sent[i] && t->rules[i].placeholder &&
		    secret_is_sendable(value))
			r = add_rule(m, value, text);
	}
	for (size_t i = 0; r == 0 && i < h->n_fields; i++)
		r = add_basic(m, t, sent, &h->fields[i], text);
	return r;
}

int secret_masks_init(struct secret_masks *m, const struct gate_table *t,
		      const bool *sent, const struct http_head *h)
{
	struct buf text;
	int r;

	*m = (struct secret_masks){ .n = 0 };
	/* Of its full size at once: growing would leave copies behind. */
	buf_init(&text, MASK_MAX);
	text.cap = MASK_MAX + 1;
	text.data = malloc(text.cap);
	if (!text.data)
		return -ENOMEM;
	r = add_all(m, t, sent, h, &text);
	OPENSSL_clear_free(text.data, text.cap);
	if (r < 0)
		secret_masks_done(m);
	return r;
}

void secret_masks_done(struct secret_masks *m)
{
	for (unsigned int i = 0; i < m->n; i++)
		OPENSSL_clear_free(m->v[i].value, m->v[i].len);
	free(m->v);
	OPENSSL_clear_free(m->held, MASK_MAX);
	*m = (struct secret_masks){ .n = 0 };
}

/* Covers in `out`; how many bytes behind `split` belong to what began before.
 */
static size_t cover(const struct secret_mask *k, size_t len, size_t split)
{
	size_t at = 0, over = 0;
	const char *p;

	while ((p = memmem(work.raw + at, len - at, k->value, k->len))) {
		size_t start = (size_t)(p - work.raw);

		at = start + k->len;
		memset(work.out + start, '*', k->len);
		if (start < split && at > split)
			over = at - split;
	}
	return over;
}

/* How many bytes at the end could be the beginning of the value. */
static size_t begun(const struct secret_mask *m, const char *data, size_t len)
{
	size_t n = MIN(len, m->len - 1);

	for (; n > 0; n--)
		if (data[len - n] == m->value[0] &&
		    memcmp(data + len - n, m->value, n) == 0)
			return n;
	return 0;
}

/* `len` bytes are in `raw`; the last `rest` of them are held back. */
static void pass(struct secret_masks *m, size_t len, size_t rest, masked_fn *fn,
		 void *arg)
{
	size_t split = len - rest, over = m->n_over;

	memcpy(work.out, work.raw, len);
	memset(work.out, '*', over);
	over = over > split ? over - split : 0;
	for (unsigned int i = 0; i < m->n; i++) {
		size_t n = cover(&m->v[i], len, split);

		over = MAX(over, n);
	}
	memcpy(m->held, work.raw + split, rest);
	m->n_held = rest;
	m->n_over = over;
	if (split > 0)
		fn(arg, work.out, split);
	OPENSSL_cleanse(work.raw, len);
	OPENSSL_cleanse(work.out + split, rest);
}

static void feed_block(struct secret_masks *m, const char *data, size_t n,
		       masked_fn *fn, void *arg)
{
	size_t len = m->n_held + n, rest = 0;

	memcpy(work.raw, m->held, m->n_held);
	memcpy(work.raw + m->n_held, data, n);
	for (unsigned int i = 0; i < m->n; i++) {
		size_t k = begun(&m->v[i], work.raw, len);

		rest = MAX(rest, k);
	}
	pass(m, len, rest, fn, arg);
}

void secret_masks_feed(struct secret_masks *m, const char *data, size_t len,
		       masked_fn *fn, void *arg)
{
	if (m->n == 0 && len > 0) {
		fn(arg, data, len);
		return;
	}
	while (len > 0) {
		size_t n = MIN(len, (size_t)MASK_BLOCK);

		feed_block(m, data, n, fn, arg);
		data += n;
		len -= n;
	}
}

void secret_masks_flush(struct secret_masks *m, masked_fn *fn, void *arg)
{
	size_t n = m->n_held;

	if (n == 0)
		return;
	memcpy(work.raw, m->held, n);
	pass(m, n, 0, fn, arg);
}

/* What comes out is never ahead of what went in, so its place is free. */
static void put_back(void *arg, const char *data, size_t len)
{
	char **at = arg;

	memcpy(*at, data, len);
	*at += len;
}

void secret_masks_cover(struct secret_masks *m, char *data, size_t len)
{
	char *at = data;

	if (m->n == 0)
		return;
	secret_masks_feed(m, data, len, put_back, &at);
	secret_masks_flush(m, put_back, &at);
}
