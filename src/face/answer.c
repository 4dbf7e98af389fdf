/* SPDX-License-Identifier: Apache-2.0 */

/* Answers: whole ones, and streams. */

#include "face/conn.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/util.h"

static bool is_clean(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return false;
	return true;
}

/* What would break out of its line is left out. */
static void put_header(struct buf *b, const char *name, const char *value)
{
	if (is_clean(name) && is_clean(value))
		(void)buf_printf(b, "%s: %s\r\n", name, value);
}

void http_add_header(struct http_request *r, const char *name,
		     const char *value)
{
	put_header(&r->extra, name, value);
}

static void put_date(struct buf *b)
{
	time_t now = time(NULL);
	struct tm tm;
	char text[64];

	if (gmtime_r(&now, &tm) &&
	    strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &tm))
		put_header(b, "Date", text);
}

/* The status line and what all answers have. */
static void put_head(struct http_request *r, struct buf *b, int status,
		     const char *word, const char *type)
{
	const char *const *h = r->conn->http->face->headers;

	(void)buf_printf(b, "HTTP/1.1 %d %s\r\n", status, word);
	if (type)
		put_header(b, "Content-Type", type);
	for (; h && h[0] && h[1]; h += 2)
		put_header(b, h[0], h[1]);
	if (r->extra.len)
		(void)buf_add(b, r->extra.data, r->extra.len);
	put_date(b);
}

static void put_connection(struct http_request *r, struct buf *b)
{
	r->keeps_alive &= r->is_whole && !r->conn->ends;
	if (!r->keeps_alive)
		put_header(b, "Connection", "close");
	(void)buf_puts(b, "\r\n");
}

static const char *word_of(int status)
{
	return http_status_str((enum http_status)status);
}

/* What cannot be stored cannot be answered: the connection ends. */
static void send_bytes(struct http_request *r, const void *data, size_t len)
{
	if (bytes_add(&r->conn->out, data, len) < 0) {
		r->keeps_alive = false;
		r->is_ended = true;
	}
	conn_mark(r->conn);
}

static bool has_no_body(int status)
{
	return status == 204 || status == 304;
}

void http_answer(struct http_request *r, int status, const char *type,
		 const void *body, size_t len)
{
	bool is_bare = has_no_body(status);
	struct buf b;

	if (r->is_begun)
		return;
	r->is_begun = true;
	r->is_ended = true;
	buf_init(&b, 2 * HTTP_MAX_HEAD);
	put_head(r, &b, status, word_of(status), is_bare ? NULL : type);
	if (!is_bare)
		(void)buf_printf(&b, "Content-Length: %zu\r\n", type ? len : 0);
	put_connection(r, &b);
	send_bytes(r, b.data, b.len);
	buf_done(&b);
	if (!is_bare && type && len && strcmp(http_method(r), "HEAD") != 0)
		send_bytes(r, body, len);
}

void http_begin(struct http_request *r, int status, const char *type, bool raw)
{
	bool is_old = r->conn->parser.http_major == 1 &&
		      r->conn->parser.http_minor == 0;
	struct buf b;

	if (r->is_begun)
		return;
	r->is_begun = true;
	r->is_chunked = !raw && !is_old;
	r->keeps_alive &= r->is_chunked;
	buf_init(&b, 2 * HTTP_MAX_HEAD);
	put_head(r, &b, status, word_of(status), type);
	if (r->is_chunked)
		put_header(&b, "Transfer-Encoding", "chunked");
	put_connection(r, &b);
	send_bytes(r, b.data, b.len);
	buf_done(&b);
	if (strcmp(http_method(r), "HEAD") == 0)
		r->is_ended = true;
}

size_t http_room(struct http_request *r)
{
	size_t waiting = bytes_left(&r->conn->out);

	if (waiting > HTTP_MAX_WAITING / 2)
		r->wants_ready = true;
	return HTTP_MAX_WAITING - MIN(waiting, HTTP_MAX_WAITING);
}

static void send_piece(struct http_request *r, const void *data, size_t len)
{
	char head[24];

	if (r->is_chunked) {
		int head_len = snprintf(head, sizeof(head), "%zx\r\n", len);

		send_bytes(r, head, (size_t)head_len);
	}
	send_bytes(r, data, len);
	if (r->is_chunked)
		send_bytes(r, "\r\n", 2);
}

size_t http_write(struct http_request *r, const void *data, size_t len)
{
	size_t n = MIN(len, http_room(r));

	if (r->is_ended || !r->is_begun)
		return len;
	if (n < len)
		r->wants_ready = true;
	if (n > 0)
		send_piece(r, data, n);
	return n;
}

void http_finish(struct http_request *r, const void *data, size_t len)
{
	if (!r->is_ended && r->is_begun && len)
		send_piece(r, data, len);
	http_end(r);
}

void http_on_ready(struct http_request *r, void (*ready)(void *data))
{
	r->ready = ready;
}

void http_end(struct http_request *r)
{
	if (r->is_ended || !r->is_begun)
		return;
	if (r->is_chunked)
		send_bytes(r, "0\r\n\r\n", 5);
	r->is_ended = true;
	conn_mark(r->conn);
}

void http_cut(struct http_request *r)
{
	if (r->is_ended || !r->is_begun)
		return;
	r->keeps_alive = false;
	r->is_ended = true;
	conn_mark(r->conn);
}

/* the switch to a pipe */

struct http_pipe *http_upgrade(struct http_request *r, const char *type,
			       const struct http_pipe_events *events,
			       void *data)
{
	struct conn *c = r->conn;
	struct buf b;

	if (r->is_begun)
		return NULL;
	r->is_begun = true;
	r->is_upgraded = true;
	buf_init(&b, 2 * HTTP_MAX_HEAD);
	if (r->wants_upgrade) {
		put_head(r, &b, 101, "UPGRADED", type);
		(void)buf_puts(&b, "Connection: Upgrade\r\n"
				   "Upgrade: tcp\r\n\r\n");
	} else {
		put_head(r, &b, 200, "OK", type);
		(void)buf_puts(&b, "\r\n");
	}
	send_bytes(r, b.data, b.len);
	buf_done(&b);
	c->pipe = (struct http_pipe){ .events = events, .data = data };
	c->state = CONN_PIPE;
	conn_set_deadline(c, 0);
	return &c->pipe;
}
