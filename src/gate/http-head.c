/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Heads are read line by line, by the letter of RFC 9112: CRLF and nothing
 * else ends a line, no folding, no space before a colon, one length. Then
 * http-parser, which many servers had, reads the same bytes; where the two
 * differ the head is refused.
 */

#include <errno.h>
#include <http_parser.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "gate/http.h"

bool http_is(const struct http_slice *s, const char *text)
{
	return strlen(text) == s->len && strncasecmp(s->at, text, s->len) == 0;
}

const struct http_field *http_find(const struct http_head *h, const char *name)
{
	for (size_t i = 0; i < h->n_fields; i++)
		if (http_is(&h->fields[i].name, name))
			return &h->fields[i];
	return NULL;
}

bool http_is_ours(const struct http_slice *name)
{
	static const char *const ours[] = {
		"connection",
		"keep-alive",
		"proxy-connection",
		"te",
		"trailer",
		"transfer-encoding",
		"content-length",
		"upgrade",
		"http2-settings",
		"proxy-authorization",
		"proxy-authenticate",
		"host",
	};

	for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
		if (http_is(name, ours[i]))
			return true;
	return false;
}

static int wrong(struct http_head *h, const char *why)
{
	h->wrong = why;
	return -EINVAL;
}

/* characters */

static bool is_token(const struct http_slice *s)
{
	static const char marks[] = "!#$%&'*+-.^_`|~";

	for (size_t i = 0; i < s->len; i++) {
		unsigned char c = (unsigned char)s->at[i];
		unsigned char l = c | 0x20;

		if (!(c >= '0' && c <= '9') && !(l >= 'a' && l <= 'z') &&
		    (c == 0 || !strchr(marks, c)))
			return false;
	}
	return s->len > 0;
}

/* Text of a field: no control characters but the tab. */
static bool is_text(const char *at, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)at[i];

		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t';
}

static struct http_slice trimmed(const char *at, size_t len)
{
	while (len > 0 && is_space(*at))
		at++, len--;
	while (len > 0 && is_space(at[len - 1]))
		len--;
	return (struct http_slice){ at, len };
}

/* lines */

/* The line at `data` without its end. 1, 0: not whole yet, -EINVAL. */
static int next_line(const char *data, size_t len, struct http_slice *ret)
{
	const char *lf = memchr(data, '\n', len);

	if (!lf)
		return 0;
	if (lf == data || lf[-1] != '\r')
		return -EINVAL;
	*ret = (struct http_slice){ data, (size_t)(lf - data) - 1 };
	return 1;
}

static int read_field(struct http_slice line, struct http_head *h)
{
	const char *colon = memchr(line.at, ':', line.len);
	struct http_field *f = &h->fields[h->n_fields];

	if (is_space(line.at[0]))
		return wrong(h, "a folded line");
	if (!colon)
		return wrong(h, "a line without a colon");
	if (h->n_fields == HTTP_FIELDS_MAX)
		return -E2BIG;
	f->name = (struct http_slice){ line.at, (size_t)(colon - line.at) };
	f->value = trimmed(colon + 1, line.len - f->name.len - 1);
	if (!is_token(&f->name))
		return wrong(h, "a header's name has a byte that none has");
	if (!is_text(f->value.at, f->value.len))
		return wrong(h, "a header has a control character");
	h->n_fields++;
	return 0;
}

/* Splits into the first line and fields; as http_read_request(). */
static int read_lines(const char *data, size_t len, struct http_slice *first,
		      struct http_head *h)
{
	size_t at = 0, n = MIN(len, (size_t)HTTP_HEAD_MAX);
	int r;

	*h = (struct http_head){ .n_fields = 0 };
	for (;;) {
		struct http_slice line;

		r = next_line(data + at, n - at, &line);
		if (r < 0)
			return wrong(h, "a line that does not end in CRLF");
		if (r == 0)
			return len >= HTTP_HEAD_MAX ? -E2BIG : 0;
		if (at == 0)
			*first = line;
		else if (line.len == 0)
			break;
		else if ((r = read_field(line, h)) < 0)
			return r;
		at += line.len + 2;
	}
	h->size = at + 2;
	return 1;
}

/* framing */

static int read_length(struct http_slice v, uint64_t *ret)
{
	uint64_t n = 0;

	if (v.len == 0 || v.len > 18)
		return -EINVAL;
	for (size_t i = 0; i < v.len; i++) {
		if (v.at[i] < '0' || v.at[i] > '9')
			return -EINVAL;
		n = n * 10 + (uint64_t)(v.at[i] - '0');
	}
	*ret = n;
	return 0;
}

static int set_framing(struct http_head *h, const struct http_field *length,
		       const struct http_field *encoding)
{
	if (length && encoding)
		return wrong(h, "both Content-Length and Transfer-Encoding");
	if (length && read_length(length->value, &h->length) < 0)
		return wrong(h, "a Content-Length that is no number");
	if (encoding && (!http_is(&encoding->value, "chunked") || h->minor < 1))
		return wrong(h, "a Transfer-Encoding that is not just chunked");
	h->has_length = length != NULL;
	if (encoding)
		h->framing = HTTP_CHUNKED;
	else if (length)
		h->framing = HTTP_LENGTH;
	return 0;
}

static int read_framing(struct http_head *h)
{
	const struct http_field *length = NULL, *encoding = NULL;

	for (size_t i = 0; i < h->n_fields; i++) {
		const struct http_field *f = &h->fields[i];

		if (http_is(&f->name, "content-length")) {
			if (length)
				return wrong(h, "two Content-Length");
			length = f;
		} else if (http_is(&f->name, "transfer-encoding")) {
			if (encoding)
				return wrong(h, "two Transfer-Encoding");
			encoding = f;
		}
	}
	return set_framing(h, length, encoding);
}

static bool has_word(struct http_slice list, const char *word)
{
	while (list.len > 0) {
		const char *comma = memchr(list.at, ',', list.len);
		size_t n = comma ? (size_t)(comma - list.at) : list.len;
		struct http_slice one = trimmed(list.at, n);

		if (http_is(&one, word))
			return true;
		n += comma != NULL;
		list.at += n;
		list.len -= n;
	}
	return false;
}

static void read_connection(struct http_head *h)
{
	bool is_kept = h->minor >= 1;

	for (size_t i = 0; i < h->n_fields; i++) {
		if (!http_is(&h->fields[i].name, "connection"))
			continue;
		if (has_word(h->fields[i].value, "close"))
			h->is_close = true;
		if (has_word(h->fields[i].value, "keep-alive"))
			is_kept = true;
		if (has_word(h->fields[i].value, "upgrade"))
			h->is_switch = true;
	}
	h->is_close = h->is_close || !is_kept;
}

/* An offer of h2c may be passed over, as any proxy does. */
static void read_upgrade(struct http_head *h)
{
	size_t n = 0;

	for (size_t i = 0; i < h->n_fields; i++) {
		const struct http_field *f = &h->fields[i];

		if (!http_is(&f->name, "upgrade"))
			continue;
		n++;
		if (http_is(&f->value, "websocket"))
			h->is_socket = true;
		else if (!http_is(&f->value, "h2c"))
			h->is_upgrade = true;
	}
	if (h->is_socket && n > 1)
		h->is_upgrade = true;
}

/* The second reader. */

struct second {
	struct http_slice target;
	size_t n_fields;
	uint64_t length;
	bool is_chunked;
	bool is_whole;
};

static int on_url(http_parser *p, const char *at, size_t len)
{
	struct second *s = p->data;

	s->target = (struct http_slice){ at, len };
	return 0;
}

static int on_field(http_parser *p, const char *at, size_t len)
{
	(void)at, (void)len;
	((struct second *)p->data)->n_fields++;
	return 0;
}

static int on_head(http_parser *p)
{
	struct second *s = p->data;

	s->is_chunked = (p->flags & F_CHUNKED) != 0;
	s->length = p->flags & F_CONTENTLENGTH ? p->content_length : 0;
	s->is_whole = true;
	return 1; /* no body here */
}

static const http_parser_settings second_settings = {
	.on_url = on_url,
	.on_header_field = on_field,
	.on_headers_complete = on_head,
};

/* Whether http-parser reads the same in it. */
static bool is_agreed(const char *data, const struct http_head *h,
		      enum http_parser_type type, struct http_slice target)
{
	struct second s = { .n_fields = 0 };
	http_parser p;

	http_parser_init(&p, type);
	p.data = &s;
	(void)http_parser_execute(&p, &second_settings, data, h->size);
	if (!s.is_whole || s.n_fields != h->n_fields || s.length != h->length ||
	    s.is_chunked != (h->framing == HTTP_CHUNKED))
		return false;
	if (type == HTTP_RESPONSE)
		return p.status_code == h->status;
	return s.target.at == target.at && s.target.len == target.len &&
	       http_is(&h->method, http_method_str(p.method));
}

/* requests */

static int read_version(const char *at, struct http_head *h)
{
	if (memcmp(at, "HTTP/1.", 7) != 0 || (at[7] != '0' && at[7] != '1'))
		return wrong(h, "a version that is not HTTP/1.0 or HTTP/1.1");
	h->minor = (unsigned int)(at[7] - '0');
	return 0;
}

static int read_request_line(struct http_slice line, struct http_head *h,
			     struct http_slice *target)
{
	const char *end = line.at + line.len;
	const char *a = memchr(line.at, ' ', line.len);
	const char *b = a ? memchr(a + 1, ' ', (size_t)(end - a) - 1) : NULL;

	if (!b || end - b != 9)
		return wrong(h, "a first line that is none of HTTP/1.1");
	h->method = (struct http_slice){ line.at, (size_t)(a - line.at) };
	*target = (struct http_slice){ a + 1, (size_t)(b - a) - 1 };
	if (!is_token(&h->method))
		return wrong(h, "a method with a byte that none has");
	if (read_version(b + 1, h) < 0)
		return -EINVAL;
	if (http_read_target(*target, h) < 0)
		return wrong(h, "a target that can be read in two ways");
	return 0;
}

static int read_expect(struct http_head *h)
{
	const struct http_field *f = http_find(h, "expect");

	if (f && !http_is(&f->value, "100-continue"))
		return wrong(h, "an Expect that is not 100-continue");
	h->is_waiting = f && h->minor >= 1;
	return 0;
}

/* Those that http-parser knows; policies have no others (policy/values.h). */
static bool is_known(const struct http_slice *method)
{
	static const char *const names[] = {
#define XX(number, name, text) #text,
		HTTP_METHOD_MAP(XX)
#undef XX
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strlen(names[i]) == method->len &&
		    memcmp(names[i], method->at, method->len) == 0)
			return true;
	return false;
}

int http_read_request(const char *data, size_t len, struct http_head *ret)
{
	struct http_slice first, target;
	int r = read_lines(data, len, &first, ret);

	if (r <= 0)
		return r;
	if (read_request_line(first, ret, &target) < 0 ||
	    read_framing(ret) < 0 || read_expect(ret) < 0)
		return -EINVAL;
	read_connection(ret);
	read_upgrade(ret);
	if (!is_known(&ret->method))
		return wrong(ret, "a method that is not known");
	if (!is_agreed(data, ret, HTTP_REQUEST, target))
		return wrong(ret, "a head that another parser reads otherwise");
	return 1;
}

/* answers */

static int read_status_line(struct http_slice line, struct http_head *h)
{
	const char *p = line.at;

	if (line.len < 12 || read_version(p, h) < 0 || p[8] != ' ')
		return wrong(h, "a first line that is no answer");
	for (int i = 9; i < 12; i++) {
		if (p[i] < '0' || p[i] > '9')
			return wrong(h, "a status that is no number");
		h->status = h->status * 10 + (unsigned int)(p[i] - '0');
	}
	if (h->status < 100 || (line.len > 12 && p[12] != ' ') ||
	    !is_text(p, line.len))
		return wrong(h, "a first line that is no answer");
	if (line.len > 13)
		h->phrase = (struct http_slice){ p + 13, line.len - 13 };
	return 0;
}

int http_read_answer(const char *data, size_t len, bool is_bare,
		     struct http_head *ret)
{
	struct http_slice first;
	int r = read_lines(data, len, &first, ret);

	if (r <= 0)
		return r;
	if (read_status_line(first, ret) < 0 || read_framing(ret) < 0)
		return -EINVAL;
	read_connection(ret);
	read_upgrade(ret);
	if (!is_agreed(data, ret, HTTP_RESPONSE, first))
		return wrong(ret, "a head that another parser reads otherwise");
	if (is_bare || ret->status < 200 || ret->status == 204 ||
	    ret->status == 304)
		ret->framing = HTTP_NO_BODY;
	else if (ret->framing == HTTP_NO_BODY)
		ret->framing = HTTP_TO_END;
	return 1;
}
