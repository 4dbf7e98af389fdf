/* SPDX-License-Identifier: Apache-2.0 */

/* One rule over one string, or over a text in several. */

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "runtime/filter-walk.h"

/* A mask may be longer than what it hides. */
#define ROOM(len) (4 * (len) + 256)

static const char *const masks[] = {
	[FIND_SECRETS] = "[masked: secret]",
	[FIND_HOST_PATHS] = "[masked: host path]",
	[FIND_URLS] = "[masked: url]",
	[FIND_REGEX] = "[masked: text]",
};
_Static_assert(ARRAY_SIZE(masks) == FIND_KINDS, "a kind has no mask");

static const char *mask_of(unsigned int kinds)
{
	for (int k = 0; k < FIND_KINDS; k++)
		if (kinds & 1U << k)
			return masks[k];
	return "";
}

/*
 * What stands for a find. Where it is stripped, a blank stays between what
 * would otherwise come together: "gh[p_...]p_..." must not become a token.
 */
static const char *instead(const struct sweep *s, const char *text, size_t len,
			   const struct found *f)
{
	bool joins = f->from > 0 && f->to < len &&
		     !isspace((unsigned char)text[f->from - 1]) &&
		     !isspace((unsigned char)text[f->to]);

	if (s->action == RULE_MASK)
		return mask_of(f->kinds);
	return joins ? " " : "";
}

static void count(struct sweep *s, unsigned int kinds)
{
	s->is_found = true;
	for (int k = 0; k < FIND_KINDS; k++)
		s->counts[k] += kinds >> k & 1;
}

/* Whether a find lies within a mask that stands there already. */
static bool is_in_mask(const char *text, size_t len, const struct found *f)
{
	for (size_t at = f->from + 1; at-- > 0 && f->from - at < 20;) {
		if (text[at] != '[')
			continue;
		for (int k = 0; k < FIND_KINDS; k++) {
			size_t n = strlen(masks[k]);

			if (len - at >= n && f->to <= at + n &&
			    memcmp(text + at, masks[k], n) == 0)
				return true;
		}
	}
	return false;
}

/* A message goes through the filters more than once on its way. */
static void leave_masks(struct finds *f, const char *text, size_t len)
{
	size_t kept = 0;

	for (size_t i = 0; i < f->n; i++)
		if (!is_in_mask(text, len, &f->v[i]))
			f->v[kept++] = f->v[i];
	f->n = kept;
}

/* Finds of the rule in a text; false: none, or s->error. */
static bool look(struct sweep *s, const char *text, size_t len,
		 struct finds *ret)
{
	int code = find_all(&s->want, text, len, ret);

	if (code < 0)
		s->error = code;
	else
		leave_masks(ret, text, len);
	return code == 0 && ret->n > 0;
}

/* The text without what was found, or with a mask there. */
static char *changed(struct sweep *s, const char *text, size_t len,
		     const struct finds *f, size_t *ret_len)
{
	struct buf out;
	size_t at = 0;

	buf_init(&out, ROOM(len) + f->n * 32);
	for (size_t i = 0; i < f->n; at = f->v[i++].to) {
		buf_add(&out, text + at, f->v[i].from - at);
		buf_puts(&out, instead(s, text, len, &f->v[i]));
	}
	buf_add(&out, text + at, len - at);
	if (out.error < 0)
		s->error = out.error;
	*ret_len = out.len;
	/* Also a text of which nothing is left is a text. */
	if (out.error == 0 && !out.data)
		return strdup("");
	if (out.error == 0)
		return buf_take(&out);
	buf_done(&out);
	return NULL;
}

char *sweep_text(struct sweep *s, const char *text, size_t len, size_t *ret_len)
{
	struct finds f = { 0 };
	char *ret = NULL;

	if (look(s, text, len, &f)) {
		for (size_t i = 0; i < f.n; i++)
			count(s, f.v[i].kinds);
		ret = changed(s, text, len, &f, ret_len);
		if (!ret && s->error == 0)
			s->error = -ENOMEM;
	}
	finds_done(&f);
	return ret;
}

bool sweep_named(struct sweep *s, const char *name, const char *value,
		 size_t len)
{
	if (!(s->want.kinds & 1U << FIND_SECRETS) ||
	    !find_is_secret(name, strlen(name), value, len))
		return false;
	count(s, 1U << FIND_SECRETS);
	return true;
}

struct piece {
	size_t from, to; /* in the joined text */
};

static bool is_within_one(const struct found *f, const struct piece *p,
			  size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (f->from >= p[i].from && f->to <= p[i].to)
			return true;
	return false;
}

/* Only those that no piece has alone: the others were dealt with. */
static void keep_crossing(struct finds *f, const struct piece *p, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < f->n; i++)
		if (!is_within_one(&f->v[i], p, n))
			f->v[kept++] = f->v[i];
	f->n = kept;
}

/* What of the finds lies in one piece; the mask goes where a find begins. */
static json_t *cut_piece(struct sweep *s, const struct buf *text,
			 const struct piece *p, const struct finds *f)
{
	size_t at = p->from;
	struct buf out;
	json_t *ret;

	buf_init(&out, ROOM(p->to - p->from) + f->n * 32);
	for (size_t i = 0; i < f->n; i++) {
		size_t from = MAX(f->v[i].from, p->from);
		size_t to = MIN(f->v[i].to, p->to);

		if (from >= to)
			continue;
		buf_add(&out, text->data + at, from - at);
		if (from == f->v[i].from)
			buf_puts(&out,
				 instead(s, text->data, text->len, &f->v[i]));
		at = to;
	}
	buf_add(&out, text->data + at, p->to - at);
	ret = out.error ? NULL
			: json_stringn(out.data ? out.data : "", out.len);
	buf_done(&out);
	return ret;
}

static int join(json_t **v, size_t n, struct buf *ret, struct piece *p)
{
	for (size_t i = 0; i < n; i++) {
		p[i].from = ret->len;
		buf_add(ret, json_string_value(v[i]), json_string_length(v[i]));
		p[i].to = ret->len;
	}
	return ret->error;
}

static bool apply_crossing(struct sweep *s, json_t **v, size_t n,
			   const struct buf *text, const struct piece *p,
			   struct finds *f)
{
	keep_crossing(f, p, n);
	for (size_t i = 0; i < f->n; i++)
		count(s, f->v[i].kinds);
	for (size_t i = 0; f->n > 0 && i < n && s->error == 0; i++) {
		json_t *piece = cut_piece(s, text, &p[i], f);

		if (!piece)
			s->error = -ENOMEM;
		json_decref(v[i]);
		v[i] = piece;
	}
	return f->n > 0;
}

bool sweep_pieces(struct sweep *s, json_t **v, size_t n)
{
	_cleanup_free_ struct piece *p = calloc(n, sizeof(*p));
	struct finds f = { 0 };
	struct buf text;
	bool ret = false;

	buf_init(&text, UINT32_MAX - 1);
	if (!p || join(v, n, &text, p) < 0)
		s->error = -ENOMEM;
	else if (text.len > 0 && look(s, text.data, text.len, &f))
		ret = apply_crossing(s, v, n, &text, p, &f);
	finds_done(&f);
	buf_done(&text);
	return ret;
}
