/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/daemon.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/io.h"
#include "base/num.h"
#include "base/state.h"
#include "base/util.h"

#define MAX_BODY ((size_t)256 << 20)
#define MAX_HEAD 16384

int daemon_path(char *ret, size_t size, struct err *err)
{
	const char *set = getenv("CORDON_SOCKET");
	char dir[4096];
	int n;

	if (set && *set) {
		n = snprintf(ret, size, "%s", set);
	} else {
		if (runtime_path(dir, sizeof(dir), err) < 0)
			return -err->code;
		n = snprintf(ret, size, "%s/cordon.sock", dir);
	}
	if (n < 0 || (size_t)n >= size)
		return err_set(err, ENAMETOOLONG,
			       "the daemon's socket has too long a name");
	return 0;
}

static int dial(struct daemon *d, struct err *err)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	if (daemon_path(addr.sun_path, sizeof(addr.sun_path), err) < 0)
		return -err->code;
	d->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (d->fd < 0)
		return err_errno(err, errno, "make a socket");
	if (connect(d->fd, (struct sockaddr *)&addr, sizeof(addr)) == 0)
		return 0;
	if (errno == ENOENT || errno == ECONNREFUSED)
		return err_set(err, DAEMON_ABSENT,
			       "no daemon at '%s': start one with 'cordon "
			       "serve'",
			       addr.sun_path);
	if (errno == EACCES)
		return err_set(err, DAEMON_ABSENT,
			       "may not open '%s': the socket's group has to "
			       "have you as a member",
			       addr.sun_path);
	return err_errno(err, errno, "connect to '%s'", addr.sun_path);
}

static int write_all(struct daemon *d, const void *data, size_t len)
{
	const char *p = data;

	while (len > 0) {
		ssize_t n = send(d->fd, p, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

static int broken(struct err *err, const char *what)
{
	return err_set(err, DAEMON_BROKEN, "the daemon's answer %s", what);
}

/* More into `in`; 1, 0 at the end, -errno. */
static int fill(struct daemon *d, struct err *err)
{
	ssize_t n;

	if (d->at == d->len)
		d->at = d->len = 0;
	do
		n = read(d->fd, d->in + d->len, sizeof(d->in) - d->len);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_errno(err, errno, "read from the daemon");
	d->len += (size_t)n;
	return n > 0;
}

/* A line without its end, in place; NULL with *err. */
static char *read_line(struct daemon *d, struct err *err)
{
	for (;;) {
		char *from = d->in + d->at;
		char *end = memchr(from, '\n', d->len - d->at);
		int r;

		if (end) {
			d->at = (size_t)(end + 1 - d->in);
			*end = '\0';
			if (end > from && end[-1] == '\r')
				end[-1] = '\0';
			return from;
		}
		if (d->len - d->at > MAX_HEAD) {
			(void)broken(err, "has too long a line");
			return NULL;
		}
		if (d->at > sizeof(d->in) / 2) {
			memmove(d->in, from, d->len - d->at);
			d->len -= d->at;
			d->at = 0;
		}
		r = fill(d, err);
		if (r == 0)
			(void)broken(err, "was cut off");
		if (r <= 0)
			return NULL;
	}
}

static const char *header_value(const char *line, const char *name)
{
	size_t len = strlen(name);

	if (strncasecmp(line, name, len) != 0 || line[len] != ':')
		return NULL;
	line += len + 1;
	return line + strspn(line, " ");
}

static int take_header(struct daemon *d, const char *line)
{
	const char *v;

	if ((v = header_value(line, "Transfer-Encoding")))
		d->is_chunked = strcasecmp(v, "chunked") == 0;
	else if ((v = header_value(line, "Content-Type")))
		d->is_raw = strstr(v, "raw-stream") != NULL;
	else if ((v = header_value(line, "Cordon-Exec")))
		(void)snprintf(d->exec, sizeof(d->exec), "%s", v);
	else if ((v = header_value(line, "Content-Length"))) {
		d->has_length = true;
		return num_parse(v, INT64_MAX, &d->left);
	}
	return 0;
}

static int read_head(struct daemon *d, struct err *err)
{
	char *line = read_line(d, err);

	if (!line)
		return -err->code;
	if (strncmp(line, "HTTP/1.1 ", 9) != 0)
		return broken(err, "is not HTTP/1.1");
	d->status = atoi(line + 9);
	while ((line = read_line(d, err)) && *line)
		if (take_header(d, line) < 0)
			return broken(err, "has a bad length");
	if (!line)
		return -err->code;
	if (d->status == 204 || d->status == 304)
		d->has_ended = true;
	return 0;
}

/* What the daemon says went wrong. */
static int take_error(struct daemon *d, struct err *err)
{
	static const struct {
		const char *name;
		int code;
	} codes[] = {
		{ "denied", DAEMON_DENIED },
		{ "not_found", DAEMON_NOT_FOUND },
		{ "no_file", DAEMON_NO_FILE },
		{ "no_program", DAEMON_NO_PROGRAM },
		{ "not_executable", DAEMON_NOT_EXECUTABLE },
	};
	char text[400], name[40];
	int code = DAEMON_OTHER;
	struct value root, e;
	struct buf b;

	if (daemon_body(d, &b, err) < 0) {
		buf_done(&b);
		return -err->code;
	}
	while (b.len && b.data[b.len - 1] == '\n')
		b.len--;
	root = (struct value){ b.data, b.len };
	if (!b.len || !value_check(b.data, b.len) ||
	    !value_get(&root, "error", &e)) {
		buf_done(&b);
		return err_set(err, DAEMON_BROKEN,
			       "the daemon answered with status %d", d->status);
	}
	(void)member_text(&e, "message", text, sizeof(text));
	(void)member_text(&e, "code", name, sizeof(name));
	buf_done(&b);
	for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
		if (strcmp(codes[i].name, name) == 0)
			code = codes[i].code;
	return err_set(err, code, "%s", text);
}

static int read_answer(struct daemon *d, struct err *err)
{
	do {
		if (read_head(d, err) < 0)
			return -err->code;
	} while (d->status == 100);
	return d->status >= 400 ? take_error(d, err) : 0;
}

int daemon_ask(struct daemon *d, const char *method, const char *path,
	       const char *body, int flags, struct err *err)
{
	struct buf b;
	int r;

	d->fd = NO_FD;
	d->status = 0;
	d->is_chunked = d->is_raw = d->has_length = d->has_ended = false;
	d->left = 0;
	d->exec[0] = '\0';
	d->at = d->len = 0;
	if (dial(d, err) < 0)
		return -err->code;
	buf_init(&b, MAX_BODY);
	(void)buf_printf(&b, "%s %s HTTP/1.1\r\nHost: cordon\r\n", method,
			 path);
	if (flags & DAEMON_UPGRADE)
		(void)buf_puts(&b, "Connection: Upgrade\r\nUpgrade: tcp\r\n");
	if (flags & DAEMON_SENDS)
		(void)buf_puts(&b, "Transfer-Encoding: chunked\r\n");
	else if (body)
		(void)buf_printf(&b, "Content-Length: %zu\r\n", strlen(body));
	(void)buf_puts(&b, "\r\n");
	if (body)
		(void)buf_puts(&b, body);
	r = b.error ? b.error : write_all(d, b.data, b.len);
	buf_done(&b);
	if (r < 0)
		return err_errno(err, -r, "write to the daemon");
	return flags & DAEMON_SENDS ? 0 : read_answer(d, err);
}

int daemon_send(struct daemon *d, const void *data, size_t len, struct err *err)
{
	char head[24];
	int n = snprintf(head, sizeof(head), "%zx\r\n", len);
	int r;

	if (len == 0)
		return 0;
	r = write_all(d, head, (size_t)n);
	if (r == 0)
		r = write_all(d, data, len);
	if (r == 0)
		r = write_all(d, "\r\n", 2);
	/* Who refuses early has answered; that is what counts. */
	if (r == -EPIPE || r == -ECONNRESET) {
		if (read_answer(d, err) == 0)
			(void)broken(err, "came too early");
		return -err->code;
	}
	return r < 0 ? err_errno(err, -r, "write to the daemon") : 0;
}

int daemon_sent(struct daemon *d, struct err *err)
{
	(void)write_all(d, "0\r\n\r\n", 5); /* an answer may be there already */
	return read_answer(d, err);
}

/* The next chunk's size into `left`; at the end, has_ended. */
static int next_chunk(struct daemon *d, bool is_first, struct err *err)
{
	char *line = is_first ? NULL : read_line(d, err);
	char *end;

	if (!is_first && !line)
		return -err->code;
	if (line && *line)
		return broken(err, "has a bad chunk");
	line = read_line(d, err);
	if (!line)
		return -err->code;
	d->left = strtoull(line, &end, 16);
	if (end == line)
		return broken(err, "has a bad chunk");
	if (d->left == 0)
		d->has_ended = true;
	return 0;
}

static ssize_t take_some(struct daemon *d, void *data, size_t size,
			 struct err *err)
{
	size_t n;

	if (d->at == d->len) {
		int r = fill(d, err);

		if (r <= 0)
			return r;
	}
	n = MIN(size, d->len - d->at);
	memcpy(data, d->in + d->at, n);
	d->at += n;
	return (ssize_t)n;
}

ssize_t daemon_read(struct daemon *d, void *data, size_t size, struct err *err)
{
	bool is_counted = d->has_length || d->is_chunked;
	ssize_t n;

	if (d->is_chunked && d->left == 0 && !d->has_ended) {
		bool is_first = !d->has_length;

		d->has_length =
			true; /* from now on chunks have an end before */
		if (next_chunk(d, is_first, err) < 0)
			return -err->code;
	}
	if (d->has_ended || (is_counted && d->left == 0))
		return 0;
	n = take_some(d, data, is_counted ? (size_t)MIN(size, d->left) : size,
		      err);
	if (n == 0 && is_counted)
		return broken(err, "was cut off");
	if (n > 0 && is_counted)
		d->left -= (uint64_t)n;
	return n;
}

int daemon_body(struct daemon *d, struct buf *ret, struct err *err)
{
	char chunk[16384];
	ssize_t n;

	buf_init(ret, MAX_BODY);
	while ((n = daemon_read(d, chunk, sizeof(chunk), err)) > 0)
		if (buf_add(ret, chunk, (size_t)n) < 0)
			return broken(err, "is too large");
	return n < 0 ? -err->code : 0;
}

void daemon_done(struct daemon *d)
{
	fd_close(&d->fd);
}

int daemon_call(const char *method, const char *path, const char *body,
		struct buf *ret, struct err *err)
{
	struct daemon *d = malloc(sizeof(*d));
	struct buf none;
	int r;

	buf_init(ret ? ret : &none, MAX_BODY);
	if (!d)
		return err_set(err, ENOMEM, "out of memory");
	r = daemon_ask(d, method, path, body, 0, err);
	if (r == 0)
		r = daemon_body(d, ret ? ret : &none, err);
	if (!ret)
		buf_done(&none);
	daemon_done(d);
	free(d);
	return r;
}

static void put_encoded(struct buf *b, const char *text)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "abcdefghijklmnopqrstuvwxyz0123456789-._~";

	for (; *text; text++)
		if (strchr(plain, *text))
			(void)buf_add(b, text, 1);
		else
			(void)buf_printf(b, "%%%02X", (unsigned char)*text);
}

int daemon_format(char *ret, size_t size, struct err *err, const char *fmt, ...)
{
	struct buf b;
	va_list args;
	int r = 0;

	buf_init(&b, size);
	va_start(args, fmt);
	for (; *fmt; fmt++) {
		if (fmt[0] == '%' && fmt[1] == 's') {
			put_encoded(&b, va_arg(args, const char *));
			fmt++;
		} else {
			(void)buf_add(&b, fmt, 1);
		}
	}
	va_end(args);
	if (b.error || b.len >= size)
		r = err_set(err, ENAMETOOLONG, "that name is too long");
	else
		memcpy(ret, b.data, b.len + 1);
	buf_done(&b);
	return r;
}

const char *member_text(const struct value *v, const char *name, char *ret,
			size_t size)
{
	struct value m;
	struct buf b;

	ret[0] = '\0';
	buf_init(&b, 1 << 20);
	if (value_get(v, name, &m) && value_type(&m) != 'n' &&
	    value_text(&m, &b) == 0 && b.len)
		(void)snprintf(ret, size, "%s", b.data);
	buf_done(&b);
	return ret;
}

int64_t member_int(const struct value *v, const char *name, int64_t other)
{
	struct value m;

	return value_get(v, name, &m) ? value_int(&m, other) : other;
}
