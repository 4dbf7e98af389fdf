/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reading requests: http-parser's callbacks gather, and pause where something
 * is to be decided, so that handlers are never called from inside the parser.
 */

#include "face/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"

#define MAX_HEADERS 256

struct http_request *request_new(struct conn *c)
{
	struct http_request *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->conn = c;
	r->path = "";
	buf_init(&r->url, HTTP_MAX_HEAD);
	buf_init(&r->head, HTTP_MAX_HEAD + 2 * MAX_HEADERS);
	buf_init(&r->body, HTTP_MAX_BODY);
	buf_init(&r->extra, HTTP_MAX_HEAD);
	return r;
}

void request_free(struct http_request *r)
{
	buf_done(&r->url);
	buf_done(&r->head);
	buf_done(&r->body);
	buf_done(&r->extra);
	bytes_done(&r->flow);
	free(r->headers);
	route_params_done(&r->params);
	query_done(&r->query);
	free(r);
}

static bool is_stream(const struct http_request *r)
{
	return r->route && r->route->flags & HTTP_BODY_STREAM;
}

/* the parser's callbacks; not 0 is an error */

static int on_begin(http_parser *p)
{
	struct conn *c = p->data;

	c->request = request_new(c);
	conn_set_deadline(c, HTTP_HEAD_MS);
	return c->request ? 0 : -1;
}

static int on_url(http_parser *p, const char *at, size_t len)
{
	return buf_add(&((struct conn *)p->data)->request->url, at, len);
}

static int begin_header(struct http_request *r)
{
	struct header *v;

	if (r->n_headers == MAX_HEADERS)
		return -1;
	v = realloc(r->headers, (r->n_headers + 1) * sizeof(*v));
	if (!v)
		return -1;
	r->headers = v;
	v[r->n_headers++] = (struct header){ .name = r->head.len };
	r->in_value = false;
	return 0;
}

static int on_name(http_parser *p, const char *at, size_t len)
{
	struct http_request *r = ((struct conn *)p->data)->request;
	bool is_new = r->n_headers == 0 || r->in_value;

	if (r->in_value && buf_add(&r->head, "", 1) < 0)
		return -1;
	if (is_new && begin_header(r) < 0)
		return -1;
	return buf_add(&r->head, at, len);
}

static int on_value(http_parser *p, const char *at, size_t len)
{
	struct http_request *r = ((struct conn *)p->data)->request;

	if (!r->in_value) {
		if (buf_add(&r->head, "", 1) < 0)
			return -1;
		r->in_value = true;
		r->headers[r->n_headers - 1].value = r->head.len;
	}
	return buf_add(&r->head, at, len);
}

static bool has_body(const http_parser *p)
{
	return p->flags & F_CHUNKED ||
	       (p->content_length > 0 && p->content_length != ULLONG_MAX);
}

static int on_head(http_parser *p)
{
	struct http_request *r = ((struct conn *)p->data)->request;

	if (buf_add(&r->head, "", 1) < 0)
		return -1;
	r->has_head = true;
	r->keeps_alive = http_should_keep_alive(p);
	if (has_body(p))
		http_parser_pause(p, 1);
	return 0;
}

static int on_body_bytes(http_parser *p, const char *at, size_t len)
{
	struct http_request *r = ((struct conn *)p->data)->request;

	if (r->is_begun && !r->on_body)
		return 0; /* was answered already */
	if (is_stream(r))
		return bytes_add(&r->flow, at, len);
	(void)buf_add(&r->body, at, len); /* r->body.error is looked at */
	return 0;
}

static int on_end(http_parser *p)
{
	struct conn *c = p->data;

	c->request->is_whole = true;
	http_parser_pause(p, 1);
	return 0;
}

static const http_parser_settings settings = {
	.on_message_begin = on_begin,
	.on_url = on_url,
	.on_header_field = on_name,
	.on_header_value = on_value,
	.on_headers_complete = on_head,
	.on_body = on_body_bytes,
	.on_message_complete = on_end,
};

/* what a request leads to */

static void fail(struct http_request *r, int status, const char *text)
{
	const struct http_face *face = r->conn->http->face;

	if (face->fail)
		face->fail(r, status, text);
	if (!r->is_begun)
		http_answer(r, status, "text/plain", text, strlen(text));
}

void request_fail(struct conn *c, int status, const char *text)
{
	if (!c->request)
		c->request = request_new(c);
	if (!c->request) {
		c->ends = true;
		return;
	}
	c->ends = true;
	c->request->is_whole = false;
	fail(c->request, status, text);
}

static int take_url(struct http_request *r)
{
	char *mark;
	char *url = r->url.data;

	if (!url)
		return -EINVAL;
	/* "GET http://host/path": what a proxy would be sent. */
	if (*url != '/') {
		char *host = strstr(url, "://");

		url = host ? strchr(host + 3, '/') : NULL;
		if (!url)
			return -EINVAL;
	}
	mark = strchr(url, '#');
	if (mark)
		*mark = '\0';
	mark = strchr(url, '?');
	r->path = url;
	if (!mark)
		return 0;
	*mark = '\0';
	return query_parse(mark + 1, strlen(mark + 1), &r->query);
}

/* 1 with r->route; 0: there is none; -EINVAL. */
static int find_route(struct http_request *r, const char *method)
{
	const struct http_face *face = r->conn->http->face;

	for (size_t i = 0; i < face->n_routes; i++) {
		const struct http_route *route = &face->routes[i];
		int n;

		if (strcmp(route->method, method) != 0)
			continue;
		n = route_match(route->path, r->path, &r->params);
		if (n > 0)
			r->route = route;
		if (n != 0)
			return n;
	}
	return 0;
}

static void call_handler(struct http_request *r)
{
	r->route->handle(r, r->conn->http->face->ctx);
}

static bool expects_word(const struct http_request *r)
{
	const char *text = http_header(r, "Expect");

	return text && strcasecmp(text, "100-continue") == 0;
}

static void say_continue(struct http_request *r)
{
	static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";

	if (!r->is_whole && expects_word(r) && !r->is_begun)
		(void)bytes_add(&r->conn->out, text, sizeof(text) - 1);
}

static bool has_upgrade(const struct http_request *r)
{
	const char *to = http_header(r, "Upgrade");

	return to && strcasecmp(to, "tcp") == 0 && r->conn->parser.upgrade;
}

static void enter(struct http_request *r)
{
	struct conn *c = r->conn;
	const struct http_face *face = c->http->face;
	const char *method = http_method(r);
	bool is_large = c->parser.content_length != ULLONG_MAX &&
			c->parser.content_length > HTTP_MAX_BODY;
	int n;

	c->state = CONN_BODY;
	conn_set_deadline(c, 0);
	r->wants_upgrade = has_upgrade(r);
	if (c->parser.http_major != 1) {
		request_fail(c, 400, "not a valid HTTP/1.1 request");
		return;
	}
	if (take_url(r) < 0) {
		fail(r, 400, "the path or query cannot be decoded");
		return;
	}
	if (face->enter) {
		const char *rest = face->enter(r, r->path);

		if (!rest || r->is_begun)
			return;
		r->path = rest;
	}
	n = find_route(r, method);
	if (n == 0 && strcmp(method, "HEAD") == 0)
		n = find_route(r, "GET");
	if (n < 0)
		fail(r, 400, "the path cannot be decoded");
	else if (n == 0)
		fail(r, 404, "page not found");
	else if (is_stream(r))
		call_handler(r);
	else if (is_large)
		fail(r, 413, "the body is too large");
	else
		say_continue(r);
}

/* Gives to the handler what it takes; false: it waits for it to take more. */
static bool deliver(struct http_request *r)
{
	while (bytes_left(&r->flow)) {
		size_t n;

		if (r->body_waits || !r->on_body)
			return false;
		n = r->on_body(r->data, r->flow.data + r->flow.at,
			       bytes_left(&r->flow));
		if (n < bytes_left(&r->flow))
			r->body_waits = true;
		bytes_take(&r->flow, n);
	}
	return true;
}

static void end_body(struct http_request *r)
{
	r->conn->state = CONN_BUSY;
	if (!is_stream(r)) {
		if (!r->is_begun)
			call_handler(r);
	} else if (r->on_body && !r->is_ended) {
		(void)r->on_body(r->data, NULL, 0);
	}
}

static void parse(struct conn *c)
{
	struct bytes *b = &c->in;
	size_t n;
	enum http_errno e;

	if (c->state == CONN_HEAD && !c->request) {
		http_parser_init(&c->parser, HTTP_REQUEST);
		c->parser.data = c;
	} else {
		http_parser_pause(&c->parser, 0);
	}
	n = http_parser_execute(&c->parser, &settings, b->data + b->at,
				bytes_left(b));
	e = HTTP_PARSER_ERRNO(&c->parser);
	bytes_take(b, n);
	if (e == HPE_HEADER_OVERFLOW || e == HPE_CB_header_field ||
	    e == HPE_CB_header_value || e == HPE_CB_url)
		request_fail(c, 431, "the headers are too large");
	else if (e != HPE_OK && e != HPE_PAUSED)
		request_fail(c, 400, "not a valid HTTP/1.1 request");
}

/* What was parsed leads on. */
static void proceed(struct conn *c)
{
	struct http_request *r = c->request;

	if (!r || r->is_ended || !r->has_head)
		return;
	if (c->state == CONN_HEAD)
		enter(r);
	if (!r->is_begun && r->body.error)
		fail(r, 413, "the body is too large");
	else if (!r->is_begun && r->body.len > HTTP_READ &&
		 http_bodies(c->http, c->peer.uid) > HTTP_PEER_BODIES)
		fail(r, 503, "too many large requests of one user at once");
}

/* The next move is the handler's. */
static bool is_waiting(struct conn *c)
{
	struct http_request *r = c->request;

	if (c->state == CONN_BUSY)
		return true;
	if (c->state != CONN_BODY || !r)
		return false;
	if (!deliver(r))
		return true;
	return is_stream(r) && !r->on_body && !(r->is_whole && r->is_begun);
}

/* Once all was read, also a half-close says that nobody waits. */
static bool is_left(const struct conn *c)
{
	return c->is_hup || (c->is_shut && c->request && c->request->is_whole);
}

bool request_advance(struct conn *c)
{
	struct http_request *r = c->request;

	if (c->state == CONN_HEAD && bytes_left(&c->out) && !r)
		return false; /* one answer after the other */
	if (is_waiting(c)) {
		if (is_left(c) && !(r && r->is_ended))
			conn_drop(c);
		return false;
	}
	if (c->state == CONN_BODY && r && r->is_whole) {
		end_body(r);
		return true;
	}
	if (!bytes_left(&c->in)) {
		ssize_t n = conn_fill(c);

		if (n == -EAGAIN)
			return false;
		if (n <= 0) {
			conn_drop(c);
			return false;
		}
	}
	parse(c);
	proceed(c);
	return true;
}

/* what a handler asks of a request */

const struct peer *http_peer(const struct http_request *r)
{
	return &r->conn->peer;
}

const char *http_method(const struct http_request *r)
{
	return r->has_head ? http_method_str(
				     (enum http_method)r->conn->parser.method)
			   : "GET";
}

const char *http_path(const struct http_request *r)
{
	return r->path;
}

const char *http_param(const struct http_request *r, unsigned int i)
{
	return i < r->params.n ? r->params.v[i] : "";
}

const char *http_query(const struct http_request *r, const char *name)
{
	unsigned int i = 0;

	return query_next(&r->query, name, &i);
}

const char *http_query_next(const struct http_request *r, const char *name,
			    unsigned int *i)
{
	return query_next(&r->query, name, i);
}

const char *http_header(const struct http_request *r, const char *name)
{
	for (size_t i = 0; i < r->n_headers; i++) {
		const struct header *h = &r->headers[i];

		if (strcasecmp(r->head.data + h->name, name) == 0)
			return h->value ? r->head.data + h->value : "";
	}
	return NULL;
}

const char *http_body(const struct http_request *r, size_t *ret_len)
{
	if (ret_len)
		*ret_len = r->body.len;
	return r->body.data ? r->body.data : "";
}

void http_set_data(struct http_request *r, void *data, void (*gone)(void *data))
{
	r->data = data;
	r->gone = gone;
}

void *http_data(const struct http_request *r)
{
	return r->data;
}

void http_set_version(struct http_request *r, unsigned int v)
{
	r->version = v;
}

unsigned int http_version(const struct http_request *r)
{
	return r->version;
}

bool http_wants_upgrade(const struct http_request *r)
{
	return r->wants_upgrade;
}

void http_on_body(struct http_request *r, http_body_fn *fn)
{
	r->on_body = fn;
	say_continue(r);
	conn_mark(r->conn);
}

void http_body_ready(struct http_request *r)
{
	r->body_waits = false;
	conn_mark(r->conn);
}
