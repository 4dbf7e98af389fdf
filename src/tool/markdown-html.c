/* SPDX-License-Identifier: Apache-2.0 */

/* HTML blocks of Markdown: in one a fence is text like any other. */

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "tool/markdown.h"

/* Those of kind 6, as section 4.6 of CommonMark has them. */
static const char *const tags[] = {
	"address",    "article",  "aside",   "base",     "basefont",
	"blockquote", "body",     "caption", "center",   "col",
	"colgroup",   "dd",       "details", "dialog",   "dir",
	"div",        "dl",       "dt",      "fieldset", "figcaption",
	"figure",     "footer",   "form",    "frame",    "frameset",
	"h1",         "h2",       "h3",      "h4",       "h5",
	"h6",         "head",     "header",  "hr",       "html",
	"iframe",     "legend",   "li",      "link",     "main",
	"menu",       "menuitem", "nav",     "noframes", "ol",
	"optgroup",   "option",   "p",       "param",    "section",
	"source",     "summary",  "table",   "tbody",    "td",
	"tfoot",      "th",       "thead",   "title",    "tr",
	"track",      "ul",
};
static const char *const raw_tags[] = { "script", "pre", "textarea", "style" };

struct scan {
	const char *p, *end;
};

static char peek(const struct scan *s)
{
	return s->p < s->end ? *s->p : '\0';
}

static bool take(struct scan *s, char c)
{
	if (s->p == s->end || *s->p != c)
		return false;
	s->p++;
	return true;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\f' || c == '\v';
}

static size_t skip_blanks(struct scan *s)
{
	const char *from = s->p;

	while (s->p < s->end && is_blank(*s->p))
		s->p++;
	return (size_t)(s->p - from);
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static size_t name_len(const struct scan *s)
{
	size_t n = 0;

	while (s->p + n < s->end &&
	       (is_letter(s->p[n]) ||
		(n > 0 && (isdigit((unsigned char)s->p[n]) || s->p[n] == '-'))))
		n++;
	return n;
}

static bool is_among(const char *const *list, size_t count, const char *name,
		     size_t len)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(list[i]) == len &&
		    strncasecmp(list[i], name, len) == 0)
			return true;
	return false;
}

static bool is_block_tag(struct scan s)
{
	size_t n;

	(void)take(&s, '/');
	n = name_len(&s);
	if (!is_among(tags, ARRAY_SIZE(tags), s.p, n))
		return false;
	s.p += n;
	return s.p == s.end || is_blank(*s.p) || *s.p == '>' ||
	       (take(&s, '/') && peek(&s) == '>');
}

static bool is_raw_tag(struct scan s)
{
	size_t n = name_len(&s);

	if (!is_among(raw_tags, ARRAY_SIZE(raw_tags), s.p, n))
		return false;
	s.p += n;
	return s.p == s.end || is_blank(*s.p) || *s.p == '>';
}

static bool skip_value(struct scan *s)
{
	char quote = peek(s);
	const char *from = s->p;

	if (quote == '"' || quote == '\'') {
		s->p++;
		while (s->p < s->end && *s->p != quote)
			s->p++;
		return take(s, quote);
	}
	while (s->p < s->end && !is_blank(*s->p) && !strchr("\"'=<>`", *s->p))
		s->p++;
	return s->p > from;
}

/* One attribute behind blanks; false: what follows is none. */
static bool skip_attribute(struct scan *s)
{
	static const char first[] = "_:";
	static const char more[] = "_:.-";
	struct scan was;

	if (!is_letter(peek(s)) && !(peek(s) && strchr(first, peek(s))))
		return false;
	while (s->p < s->end &&
	       (is_letter(*s->p) || isdigit((unsigned char)*s->p) ||
		(*s->p && strchr(more, *s->p))))
		s->p++;
	was = *s;
	(void)skip_blanks(s);
	if (!take(s, '=')) {
		*s = was;
		return true;
	}
	(void)skip_blanks(s);
	return skip_value(s);
}

/* A whole tag, and nothing behind it on the line. */
static bool is_lone_tag(struct scan s)
{
	bool is_closing = take(&s, '/');
	size_t n = name_len(&s);
	size_t blanks;

	if (n == 0)
		return false;
	s.p += n;
	for (;;) {
		blanks = skip_blanks(&s);
		if (is_closing || blanks == 0 || peek(&s) == '>' ||
		    peek(&s) == '/')
			break;
		if (!skip_attribute(&s))
			return false;
	}
	if (!is_closing)
		(void)take(&s, '/');
	if (!take(&s, '>'))
		return false;
	(void)skip_blanks(&s);
	return s.p == s.end;
}

int html_begins(const char *line, size_t len, bool in_paragraph)
{
	struct scan s = { line, line + len };

	if (!take(&s, '<'))
		return 0;
	len--;
	if (is_raw_tag(s))
		return 1;
	if (len >= 3 && memcmp(s.p, "!--", 3) == 0)
		return 2;
	if (peek(&s) == '?')
		return 3;
	if (len >= 8 && memcmp(s.p, "![CDATA[", 8) == 0)
		return 5;
	if (len >= 2 && s.p[0] == '!' && is_letter(s.p[1]))
		return 4;
	if (is_block_tag(s))
		return 6;
	return !in_paragraph && is_lone_tag(s) ? 7 : 0;
}

static bool has(const char *s, size_t len, const char *what)
{
	size_t n = strlen(what);

	for (size_t i = 0; i + n <= len; i++)
		if (strncasecmp(s + i, what, n) == 0)
			return true;
	return false;
}

bool html_ends(int kind, const char *s, size_t len)
{
	static const char *const ends[] = {
		[2] = "-->", [3] = "?>", [4] = ">", [5] = "]]>"
	};

	if (kind == 1)
		return has(s, len, "</script>") || has(s, len, "</pre>") ||
		       has(s, len, "</textarea>") || has(s, len, "</style>");
	return kind >= 2 && kind <= 5 && has(s, len, ends[kind]);
}
