/* SPDX-License-Identifier: Apache-2.0 */
#include "client/daemon.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/io.h"
#include "base/state.h"
#include "base/util.h"

#define MAX_BODY ((size_t)256 << 20)

#define SYSTEM_SOCKET "/run/cordon/cordon.sock"

/* In the runtime directory; without one of this user's own: the machine's. */
static int usual_path(char *ret, size_t size, struct err *err)
{
	const char *run = getenv("CORDON_RUNTIME_DIR");
	char dir[4096];
	int n;

	if (runtime_path(dir, sizeof(dir), err) < 0)
		return -err->code;
	n = snprintf(ret, size, "%s/cordon.sock", dir);
	if (n < 0 || (size_t)n >= size)
		return err_set(err, ENAMETOOLONG,
			       "the daemon's socket has too long a name");
	if (!(run && *run) && access(ret, F_OK) < 0 &&
	    access(SYSTEM_SOCKET, F_OK) == 0)
		(void)snprintf(ret, size, "%s", SYSTEM_SOCKET);
	return 0;
}

int daemon_find(const char *named, struct daemon_place *ret, struct err *err)
{
	const char *set = getenv("CORDON_SOCKET");

	if (!named && set && *set)
		named = set;
	ret->is_named = named != NULL;
	if (!named)
		return usual_path(ret->path, sizeof(ret->path), err);
	if ((size_t)snprintf(ret->path, sizeof(ret->path), "%s", named) >=
	    sizeof(ret->path))
		return err_set(err, ENAMETOOLONG,
			       "the daemon's socket has too long a name");
	return 0;
}

static void be_patient(struct daemon *d)
{
	const struct timeval t = { d->patience_ms / 1000,
				   d->patience_ms % 1000 * 1000 };

	if (d->patience_ms <= 0)
		return;
	(void)setsockopt(d->fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
	(void)setsockopt(d->fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t));
}

/*
 * Commands carry secrets, and where no XDG_RUNTIME_DIR is set the usual place
 * is in /tmp. The kernel knows who called listen(2): the daemon, as root or as
 * this user, or a systemd of one of them. Another one is an error, and the
 * machine's socket is not tried instead: somebody should look into it.
 */
static int check_listener(int fd, const char *path, struct err *err)
{
	struct ucred who = { 0 };
	socklen_t len = sizeof(who);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0)
		return err_errno(err, errno, "ask who listens at '%s'", path);
	if (who.uid == 0 || who.uid == geteuid())
		return 0;
	return err_set(err, EACCES,
		       "user %u listens at '%s' (process %d), neither you nor "
		       "root: nothing was sent; if that is meant, name the "
		       "socket in CORDON_SOCKET",
		       (unsigned int)who.uid, path, (int)who.pid);
}

static int connect_failed(int error, const char *path, struct err *err)
{
	if (error == ENOENT || error == ECONNREFUSED)
		return err_set(err, DAEMON_ABSENT,
			       "no daemon at '%s': start one with 'cordon "
			       "serve'",
			       path);
	if (error == EACCES)
		return err_set(err, EACCES,
			       "may not open '%s': the socket's group has to "
			       "have you as a member",
			       path);
	return err_errno(err, error, "connect to '%s'", path);
}

static int dial(struct daemon *d, struct err *err)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct daemon_place usual = { 0 };
	const struct daemon_place *p = d->place ? d->place : &usual;
	int r;

	if (!d->place && daemon_find(NULL, &usual, err) < 0)
		return -err->code;
	memcpy(addr.sun_path, p->path, sizeof(addr.sun_path));
	d->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (d->fd < 0)
		return err_errno(err, errno, "make a socket");
	be_patient(d);
	do
		r = connect(d->fd, (struct sockaddr *)&addr, sizeof(addr));
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return connect_failed(errno, p->path, err);
	return p->is_named ? 0 : check_listener(d->fd, p->path, err);
}

static int broken(struct err *err, const char *what)
{
	return err_set(err, DAEMON_BROKEN, "the daemon's answer %s", what);
}

/* What went wrong with the connection itself. */
static int snapped(struct err *err, int error, const char *what)
{
	if (error == EAGAIN)
		return err_set(err, ETIMEDOUT,
			       "the daemon did not answer in time");
	return err_errno(err, error, "%s the daemon", what);
}

/* More into `in`; 1, 0 at the end, -errno. */
static int fill(struct daemon *d, struct err *err)
{
	ssize_t n;

	d->at = d->len = 0;
	do
		n = recv(d->fd, d->in, sizeof(d->in),
			 d->is_hasty ? MSG_DONTWAIT : 0);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN && d->is_hasty)
		return -EAGAIN;
	if (n < 0)
		return snapped(err, errno, "read from");
	d->len = (size_t)n;
	return n > 0;
}

/* Some of what came; where nothing did, waits for it first. 1, 0 at the end. */
static int advance(struct daemon *d, struct err *err)
{
	ssize_t n;
	int r;

	if (d->at == d->len) {
		r = fill(d, err);
		if (r == 0)
			r = answer_close(&d->answer, err);
		else if (r > 0)
			return 1;
		return r;
	}
	n = answer_take(&d->answer, d->in + d->at, d->len - d->at, &d->piece,
			&d->piece_len, err);
	if (n < 0) {
		err->code = DAEMON_BROKEN;
		return -err->code;
	}
	d->at += (size_t)n;
	return 1;
}

static int read_head(struct daemon *d, struct err *err)
{
	answer_init(&d->answer);
	while (!answer_has_head(&d->answer)) {
		int r = advance(d, err);

		if (r < 0)
			return r;
	}
	return 0;
}

/* Errors of api/openapi.yaml, by name, and what errno has for them. */
static const struct {
	const char *name;
	int code;
	int number;
} errors[] = {
	{ "ambiguous", DAEMON_AMBIGUOUS, ENOTUNIQ },
	{ "busy", DAEMON_BUSY, EBUSY },
	{ "asked", DAEMON_DENIED, EPERM },
	{ "denied", DAEMON_DENIED, EPERM },
	{ "has_run", DAEMON_WRONG_STATE, EBADFD },
	{ "invalid", DAEMON_INVALID, EINVAL },
	{ "is_paused", DAEMON_WRONG_STATE, EBADFD },
	{ "is_running", DAEMON_WRONG_STATE, EBADFD },
	{ "lost", DAEMON_LOST, ECONNRESET },
	{ "name_taken", DAEMON_NAME_TAKEN, EEXIST },
	{ "no_file", DAEMON_NO_FILE, ENOENT },
	{ "no_image", DAEMON_NO_IMAGE, ENOMEDIUM },
	{ "no_program", DAEMON_NO_PROGRAM, ENOENT },
	{ "no_space", DAEMON_NO_SPACE, ENOSPC },
	{ "not_executable", DAEMON_NOT_EXECUTABLE, ENOEXEC },
	{ "not_found", DAEMON_NOT_FOUND, ESRCH },
	{ "not_running", DAEMON_WRONG_STATE, EBADFD },
	{ "read_only", DAEMON_READ_ONLY, EROFS },
	{ "removing", DAEMON_WRONG_STATE, EBADFD },
	{ "setup", DAEMON_SETUP, EIO },
	{ "too_large", DAEMON_TOO_LARGE, E2BIG },
	{ "unsupported", DAEMON_UNSUPPORTED, EOPNOTSUPP },
};

int daemon_errno(int code)
{
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
		if (errors[i].code == code)
			return errors[i].number;
	if (code == DAEMON_ABSENT)
		return ECONNREFUSED;
	if (code == DAEMON_BROKEN)
		return EPROTO;
	return code >= DAEMON_ABSENT ? EIO : code;
}

/* What the daemon says went wrong. */
static int take_error(struct daemon *d, struct err *err)
{
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
			       "the daemon answered with status %d",
			       d->answer.status);
	}
	(void)member_text(&e, "message", text, sizeof(text));
	(void)member_text(&e, "code", name, sizeof(name));
	buf_done(&b);
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
		if (strcmp(errors[i].name, name) == 0)
			code = errors[i].code;
	return err_set(err, code, "%s", text);
}

static int read_answer(struct daemon *d, struct err *err)
{
	if (read_head(d, err) < 0)
		return -err->code;
	return d->answer.status >= 400 ? take_error(d, err) : 0;
}

/* Who refuses early has answered; that is what counts. */
static int write_failed(struct daemon *d, int error, struct err *err)
{
	if (error != EPIPE && error != ECONNRESET)
		return snapped(err, error, "write to");
	if (read_answer(d, err) == 0)
		(void)broken(err, "came too early");
	return -err->code;
}

int daemon_ask(struct daemon *d, const char *method, const char *path,
	       const char *body, int flags, struct err *err)
{
	struct buf b;
	int r;

	d->fd = NO_FD;
	d->at = d->len = d->piece_len = 0;
	answer_init(&d->answer);
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
	r = b.error ? b.error : io_send_all(d->fd, b.data, b.len);
	buf_done(&b);
	if (r < 0)
		return write_failed(d, -r, err);
	return flags & DAEMON_SENDS ? 0 : read_answer(d, err);
}

int daemon_send(struct daemon *d, const void *data, size_t len, struct err *err)
{
	char head[24];
	int n = snprintf(head, sizeof(head), "%zx\r\n", len);
	int r;

	if (len == 0)
		return 0;
	r = io_send_all(d->fd, head, (size_t)n);
	if (r == 0)
		r = io_send_all(d->fd, data, len);
	if (r == 0)
		r = io_send_all(d->fd, "\r\n", 2);
	return r < 0 ? write_failed(d, -r, err) : 0;
}

int daemon_sent(struct daemon *d, struct err *err)
{
	(void)io_send_all(d->fd, "0\r\n\r\n",
			  5); /* an answer may be there already */
	return read_answer(d, err);
}

ssize_t daemon_read(struct daemon *d, void *data, size_t size, struct err *err)
{
	size_t n;

	while (d->piece_len == 0) {
		int r = answer_has_ended(&d->answer) ? 0 : advance(d, err);

		if (r <= 0)
			return r;
	}
	n = MIN(size, d->piece_len);
	memcpy(data, d->piece, n);
	d->piece += n;
	d->piece_len -= n;
	return (ssize_t)n;
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

/* A document, or nothing where none was asked for; its line's end is cut. */
static int check_document(struct buf *b, bool is_get, struct err *err)
{
	while (b->len && b->data[b->len - 1] == '\n')
		b->data[--b->len] = '\0';
	if (b->len ? !value_check(b->data, b->len) : is_get)
		return broken(err, b->len ? "is no JSON" : "is empty");
	return 0;
}

int daemon_call_at(const struct daemon_place *place, int64_t patience_ms,
		   const char *method, const char *path, const char *body,
		   struct buf *ret, struct err *err)
{
	struct daemon *d = malloc(sizeof(*d));
	struct buf none;
	int r;

	buf_init(ret ? ret : &none, MAX_BODY);
	if (!d)
		return err_set(err, ENOMEM, "out of memory");
	memset(d, 0, offsetof(struct daemon, in));
	d->place = place;
	d->patience_ms = patience_ms;
	r = daemon_ask(d, method, path, body, 0, err);
	if (r == 0)
		r = daemon_body(d, ret ? ret : &none, err);
	if (r == 0 && ret)
		r = check_document(ret, strcmp(method, "GET") == 0, err);
	if (!ret)
		buf_done(&none);
	else if (r < 0)
		buf_done(ret);
	daemon_done(d);
	free(d);
	return r;
}

int daemon_call(const char *method, const char *path, const char *body,
		struct buf *ret, struct err *err)
{
	return daemon_call_at(NULL, 0, method, path, body, ret, err);
}

int daemon_list(const struct buf *b, const char *name, struct value *ret,
		struct err *err)
{
	const struct value root = { b->data, b->len };

	if (value_get(&root, name, ret) && value_type(ret) == '[')
		return 0;
	return err_set(err, DAEMON_BROKEN, "the daemon's answer has no '%s'",
		       name);
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
