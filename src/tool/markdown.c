/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation
 *
 * Line by line, as CommonMark's appendix has it. What is open is a stack of
 * containers (quotes and list items) and at most one leaf in the innermost. A
 * line first continues the containers it can; what it does not continue is
 * closed, unless the line only goes on with a paragraph (a lazy line). Then it
 * may open containers, and a leaf. Indentation is counted in columns, with
 * tabs to the next multiple of four, of which a part may be used up.
 */

#include "tool/markdown.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"

#define MAX_NESTED 64
#define CODE       4 /* columns that make a line code */

enum leaf { NONE, PARAGRAPH, INDENTED, HTML, FENCE };

struct container {
	bool is_item;
	int indent; /* of an item's content, in columns */
	bool has_child;
};

/* A line, and how far it is used up. */
struct line {
	const char *s;
	size_t len, at;
	int column;
	int tab; /* columns of a tab that are left */
};

struct parser {
	struct container open[MAX_NESTED];
	size_t n;
	enum leaf leaf;
	int html; /* its kind */
	char fence;
	size_t fence_len;
	int fence_indent;
	struct fence found;
	struct buf code;
	void (*each)(void *arg, const struct fence *f);
	void *arg;
};

/* columns */

static bool is_space(char c)
{
	return c == ' ' || c == '\t';
}

/* Uses up at most so many columns of blanks. */
static int skip_columns(struct line *l, int n)
{
	int used = 0;

	while (used < n) {
		int step = n - used;

		if (l->tab > 0) {
			step = MIN(step, l->tab);
			l->tab -= step;
			l->at += l->tab == 0;
		} else if (l->at < l->len && l->s[l->at] == '\t') {
			l->tab = 4 - l->column % 4;
			continue;
		} else if (l->at < l->len && l->s[l->at] == ' ') {
			step = 1;
			l->at++;
		} else {
			break;
		}
		used += step;
		l->column += step;
	}
	return used;
}

/* How many columns of blanks come next; *ret_at is what follows them. */
static int indent_of(const struct line *l, size_t *ret_at)
{
	struct line copy = *l;
	int n = skip_columns(&copy, 1 << 20);

	*ret_at = copy.at;
	return n;
}

static bool is_blank(const struct line *l)
{
	size_t at;

	(void)indent_of(l, &at);
	return at == l->len;
}

static void skip_chars(struct line *l, size_t n)
{
	l->at += n;
	l->column += (int)n;
}

/* fences */

static size_t run_of(const struct line *l, size_t at, char c)
{
	size_t n = 0;

	while (at + n < l->len && l->s[at + n] == c)
		n++;
	return n;
}

static bool only_blanks(const struct line *l, size_t at)
{
	while (at < l->len && is_space(l->s[at]))
		at++;
	return at == l->len;
}

static void end_fence(struct parser *p, size_t end, bool is_closed)
{
	p->found.end = end;
	p->found.is_closed = is_closed;
	p->found.code = p->code.data ? p->code.data : "";
	p->found.code_len = p->code.len;
	if (!p->code.error)
		p->each(p->arg, &p->found);
	p->code.len = 0;
	if (p->code.data)
		p->code.data[0] = '\0';
}

static bool is_fence(const struct line *l, size_t at)
{
	char c = at < l->len ? l->s[at] : '\0';
	size_t n = run_of(l, at, c);

	if ((c != '`' && c != '~') || n < 3)
		return false;
	at += n;
	return c == '~' || !memchr(l->s + at, '`', l->len - at);
}

static void begin_fence(struct parser *p, const struct line *l, size_t at,
			int indent, size_t offset)
{
	const char *info;
	size_t len;

	p->leaf = FENCE;
	p->fence = l->s[at];
	p->fence_len = run_of(l, at, p->fence);
	p->fence_indent = indent;
	info = l->s + at + p->fence_len;
	len = l->len - at - p->fence_len;
	while (len > 0 && is_space(*info)) {
		info++;
		len--;
	}
	while (len > 0 && is_space(info[len - 1]))
		len--;
	p->found = (struct fence){ .begin = offset,
				   .info = info,
				   .info_len = len };
}

static bool closes_fence(const struct parser *p, const struct line *l)
{
	size_t at;
	int indent = indent_of(l, &at);
	size_t n = run_of(l, at, p->fence);

	return indent < CODE && n >= p->fence_len && only_blanks(l, at + n);
}

/* The indentation of its opening is taken off; of a tab, what is left of it. */
static void add_code(struct parser *p, struct line *l)
{
	(void)skip_columns(l, p->fence_indent);
	if (l->tab > 0) {
		(void)buf_add(&p->code, "    ", (size_t)l->tab);
		l->at++;
	}
	(void)buf_add(&p->code, l->s + l->at, l->len - l->at);
	(void)buf_add(&p->code, "\n", 1);
}

/* other leaves */

static bool is_heading(const struct line *l, size_t at)
{
	size_t n = run_of(l, at, '#');

	return n >= 1 && n <= 6 && (at + n == l->len || is_space(l->s[at + n]));
}

static bool is_underline(const struct line *l, size_t at)
{
	char c = at < l->len ? l->s[at] : '\0';

	return (c == '=' || c == '-') && only_blanks(l, at + run_of(l, at, c));
}

static bool is_break(const struct line *l, size_t at)
{
	char c = at < l->len ? l->s[at] : '\0';
	int n = 0;

	if (c != '*' && c != '-' && c != '_')
		return false;
	for (; at < l->len; at++) {
		if (l->s[at] == c)
			n++;
		else if (!is_space(l->s[at]))
			return false;
	}
	return n >= 3;
}

/* containers */

/* The marker of a list item, and its length; 0: there is none. */
static size_t marker_of(const struct line *l, size_t at, bool in_paragraph)
{
	size_t from = at;
	unsigned long number = 0;

	if (at < l->len && strchr("*+-", l->s[at]) && l->s[at]) {
		at++;
	} else {
		for (; at < l->len && at - from < 9 && l->s[at] >= '0' &&
		       l->s[at] <= '9';
		     at++)
			number = number * 10 + (unsigned long)(l->s[at] - '0');
		if (at == from || at == l->len ||
		    (l->s[at] != '.' && l->s[at] != ')'))
			return 0;
		if (in_paragraph && number != 1)
			return 0;
		at++;
	}
	if (at < l->len && !is_space(l->s[at]))
		return 0;
	return in_paragraph && only_blanks(l, at) ? 0 : at - from;
}

static void push(struct parser *p, struct container c)
{
	for (size_t i = 0; i < p->n; i++)
		p->open[i].has_child = true;
	p->open[p->n++] = c;
	p->leaf = NONE;
}

static void open_quote(struct parser *p, struct line *l)
{
	skip_chars(l, 1);
	(void)skip_columns(l, 1);
	push(p, (struct container){ .is_item = false });
}

static void open_item(struct parser *p, struct line *l, int indent,
		      size_t marker)
{
	struct line was;
	int blanks;
	int padding;

	skip_chars(l, marker);
	was = *l;
	blanks = skip_columns(l, 5);
	if (blanks >= 5 || blanks < 1 || l->at == l->len) {
		*l = was;
		(void)skip_columns(l, 1);
		padding = (int)marker + 1;
	} else {
		padding = (int)marker + blanks;
	}
	push(p,
	     (struct container){ .is_item = true, .indent = indent + padding });
}

static bool goes_on(const struct container *c, struct line *l)
{
	size_t at;
	int indent = indent_of(l, &at);

	if (!c->is_item) {
		if (indent >= CODE || at == l->len || l->s[at] != '>')
			return false;
		(void)skip_columns(l, indent);
		skip_chars(l, 1);
		(void)skip_columns(l, 1);
		return true;
	}
	if (indent >= c->indent) {
		(void)skip_columns(l, c->indent);
		return true;
	}
	if (at == l->len && c->has_child) {
		(void)skip_columns(l, indent);
		return true;
	}
	return false;
}

/* What is open behind the first `n` containers is closed. */
static void close_behind(struct parser *p, size_t n, size_t offset)
{
	if (n == p->n)
		return;
	if (p->leaf == FENCE)
		end_fence(p, offset, false);
	p->leaf = NONE;
	p->n = n;
}

/* lines */

struct opening {
	struct line *l;
	size_t offset;  /* of the line in the text */
	size_t matched; /* containers that went on */
	bool in_paragraph;
	bool is_lazy; /* a paragraph is open, perhaps of one that did not */
};

/* The line is one of these from here to its end. */
static bool open_leaf(struct parser *p, const struct opening *o, size_t at,
		      int indent)
{
	const struct line *l = o->l;
	int html = html_begins(l->s + at, l->len - at, o->is_lazy);

	if (is_heading(l, at) || (o->in_paragraph && is_underline(l, at)) ||
	    is_break(l, at)) {
		close_behind(p, o->matched, o->offset);
		p->leaf = NONE;
	} else if (html) {
		close_behind(p, o->matched, o->offset);
		p->leaf = html_ends(html, l->s + at, l->len - at) ? NONE : HTML;
		p->html = html;
	} else if (is_fence(l, at)) {
		close_behind(p, o->matched, o->offset);
		begin_fence(p, l, at, indent, o->offset);
	} else {
		return false;
	}
	return true;
}

/* One container or leaf more: 1: look again; 0: the rest is text; -1: done. */
static int open_next(struct parser *p, struct opening *o)
{
	struct line *l = o->l;
	size_t at;
	int indent = indent_of(l, &at);
	size_t marker;

	if (at == l->len)
		return 0;
	if (indent >= CODE) {
		if (o->is_lazy)
			return 0;
		close_behind(p, o->matched, o->offset);
		p->leaf = INDENTED;
		return -1;
	}
	if (l->s[at] == '>' && o->matched < MAX_NESTED) {
		close_behind(p, o->matched, o->offset);
		(void)skip_columns(l, indent);
		open_quote(p, l);
	} else if (open_leaf(p, o, at, indent)) {
		return -1;
	} else {
		marker = marker_of(l, at, o->in_paragraph);
		if (!marker || o->matched >= MAX_NESTED)
			return 0;
		close_behind(p, o->matched, o->offset);
		(void)skip_columns(l, indent);
		open_item(p, l, indent, marker);
	}
	o->matched = p->n;
	o->in_paragraph = false;
	o->is_lazy = false;
	return 1;
}

static void mark_children(struct parser *p)
{
	for (size_t i = 0; i < p->n; i++)
		p->open[i].has_child = true;
}

static void take_text(struct parser *p, const struct opening *o, bool is_new)
{
	if (is_blank(o->l)) {
		close_behind(p, o->matched, o->offset);
		p->leaf = NONE;
		return;
	}
	/* A lazy line: nothing is closed by it. */
	if (p->leaf == PARAGRAPH && !is_new)
		return;
	close_behind(p, o->matched, o->offset);
	p->leaf = PARAGRAPH;
	mark_children(p);
}

static void open_blocks(struct parser *p, struct line *l, size_t matched,
			size_t offset)
{
	struct opening o = { .l = l, .offset = offset, .matched = matched };
	bool is_new = false;
	int r;

	o.is_lazy = p->leaf == PARAGRAPH;
	o.in_paragraph = o.is_lazy && matched == p->n && !is_blank(l);
	while ((r = open_next(p, &o)) > 0)
		is_new = true;
	if (r == 0)
		take_text(p, &o, is_new);
	else
		mark_children(p);
}

/* In a leaf that takes lines as they are. */
static bool take_raw(struct parser *p, struct line *l, size_t line_end)
{
	if (p->leaf == FENCE) {
		if (closes_fence(p, l)) {
			end_fence(p, line_end, true);
			p->leaf = NONE;
		} else {
			add_code(p, l);
		}
		return true;
	}
	if (p->leaf != HTML)
		return false;
	if (p->html >= 6 && is_blank(l))
		p->leaf = NONE;
	else if (html_ends(p->html, l->s + l->at, l->len - l->at))
		p->leaf = NONE;
	return true;
}

static void take_line(struct parser *p, const char *s, size_t len,
		      size_t offset)
{
	struct line l = { .s = s, .len = len };
	size_t matched = 0;

	while (matched < p->n && goes_on(&p->open[matched], &l))
		matched++;
	if (matched == p->n && take_raw(p, &l, offset + len))
		return;
	if (p->leaf == INDENTED)
		p->leaf = NONE;
	/* Only a paragraph goes on without its containers. */
	if (matched < p->n && p->leaf != PARAGRAPH)
		close_behind(p, matched, offset);
	open_blocks(p, &l, matched, offset);
}

int markdown_fences(const char *text, size_t len,
		    void (*each)(void *arg, const struct fence *f), void *arg)
{
	struct parser p = { .each = each, .arg = arg };
	size_t at = 0;
	int r;

	buf_init(&p.code, 4 * len + 64);
	while (at < len) {
		size_t n = 0;

		while (at + n < len && text[at + n] != '\n' &&
		       text[at + n] != '\r')
			n++;
		take_line(&p, text + at, n, at);
		at += n;
		if (at + 1 < len && text[at] == '\r' && text[at + 1] == '\n')
			at++;
		at++;
	}
	if (p.leaf == FENCE)
		end_fence(&p, len, false);
	r = p.code.error;
	buf_done(&p.code);
	return r;
}
