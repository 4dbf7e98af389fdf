/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/inspect-side.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <openssl/bio.h>
#include <openssl/err.h>

#include "base/util.h"
#include "gate/relay.h"

/* TLS reads so much at once from the socket. */
#define READ_AHEAD 65536

/*
 * A record of TLS has 16 KiB at the most. Those of a long answer go with one
 * call: record by record the box was woken for each, and a stream had half the
 * speed, in some runs a fifth.
 */
#define RECORD SSL3_RT_MAX_PLAIN_LENGTH
#define WIRE   (SIDE_OUT / RECORD * (RECORD + 256))

/* the socket, as OpenSSL sees it */

static ssize_t take_early(struct side *s, void *data, size_t len)
{
	size_t n = MIN(len, s->n_early - s->at_early);

	memcpy(data, s->early + s->at_early, n);
	s->at_early += n;
	return (ssize_t)n;
}

static ssize_t sock_read(struct side *s, void *data, size_t len)
{
	ssize_t n;

	if (s->at_early < s->n_early)
		return take_early(s, data, len);
	do
		n = recv(s->fd, data, len, 0);
	while (n < 0 && errno == EINTR);
	return n;
}

static ssize_t sock_write(struct side *s, const void *data, size_t len)
{
	ssize_t n;

	do
		n = send(s->fd, data, len, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n;
}

/* What was gathered; false: not all of it, and errno. */
static bool wire_send(struct side *s)
{
	while (s->wire_at < s->wire_len) {
		ssize_t n = sock_write(s, s->wire + s->wire_at,
				       s->wire_len - s->wire_at);

		if (n < 0)
			return false;
		s->wire_at += (size_t)n;
	}
	s->wire_at = s->wire_len = 0;
	return true;
}

static ssize_t wire_write(struct side *s, const char *data, size_t len)
{
	bool fits = s->gathers && len <= WIRE - s->wire_len;

	if (!fits && !wire_send(s))
		return -1;
	if (!s->gathers || len > WIRE)
		return sock_write(s, data, len);
	memcpy(s->wire + s->wire_len, data, len);
	s->wire_len += len;
	return (ssize_t)len;
}

static int bio_read(BIO *b, char *data, int len)
{
	ssize_t n = sock_read(BIO_get_data(b), data, (size_t)len);

	BIO_clear_retry_flags(b);
	if (n < 0 && errno == EAGAIN)
		BIO_set_retry_read(b);
	if (n == 0)
		BIO_set_flags(b, BIO_FLAGS_IN_EOF);
	return (int)n;
}

static int bio_write(BIO *b, const char *data, int len)
{
	ssize_t n = wire_write(BIO_get_data(b), data, (size_t)len);

	BIO_clear_retry_flags(b);
	if (n < 0 && errno == EAGAIN)
		BIO_set_retry_write(b);
	return (int)n;
}

static long bio_ctrl(BIO *b, int cmd, long num, void *ptr)
{
	(void)num, (void)ptr;
	if (cmd == BIO_CTRL_EOF)
		return BIO_test_flags(b, BIO_FLAGS_IN_EOF) != 0;
	return cmd == BIO_CTRL_FLUSH || cmd == BIO_CTRL_DUP;
}

/* Made once, and kept. */
static BIO_METHOD *bio_method(void)
{
	static BIO_METHOD *m;

	if (m)
		return m;
	m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "gate");
	if (!m)
		return NULL;
	(void)BIO_meth_set_read(m, bio_read);
	(void)BIO_meth_set_write(m, bio_write);
	(void)BIO_meth_set_ctrl(m, bio_ctrl);
	return m;
}

static int set_bio(struct side *s)
{
	BIO *b = bio_method() ? BIO_new(bio_method()) : NULL;

	if (!b)
		return -ENOMEM;
	BIO_set_data(b, s);
	BIO_set_init(b, 1);
	SSL_set_bio(s->ssl, b, b);
	(void)SSL_set_mode(s->ssl, SSL_MODE_ENABLE_PARTIAL_WRITE |
					   SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
					   SSL_MODE_RELEASE_BUFFERS);
	SSL_set_read_ahead(s->ssl, 1);
	SSL_set_default_read_buffer_len(s->ssl, READ_AHEAD);
	return 0;
}

/* life */

int side_init(struct side *s, uv_loop_t *loop, int fd, SSL *ssl)
{
	const int one = 1;

	*s = (struct side){
		.fd = fd, .ssl = ssl, .is_ready = !ssl, .most = UINT64_MAX
	};
	/* What is to go is gathered here, so nobody else has to wait for it. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	buf_init(&s->out, SIDE_OUT);
	s->out.cap = SIDE_OUT + 1;
	s->in = malloc(SIDE_IN);
	s->out.data = malloc(s->out.cap); /* once, so that it never moves */
	if (!s->in || !s->out.data || (ssl && set_bio(s) < 0))
		return -ENOMEM;
	if (uv_poll_init(loop, &s->poll, fd) != 0)
		return -EINVAL;
	s->has_poll = true;
	return 0;
}

int side_early(struct side *s, const uint8_t *early, size_t n)
{
	s->early = n > 0 ? malloc(n) : NULL;
	if (n > 0 && !s->early)
		return -ENOMEM;
	if (n > 0)
		memcpy(s->early, early, n);
	s->n_early = n;
	return 0;
}

void side_close(struct side *s, uv_close_cb cb)
{
	if (s->has_poll)
		uv_close((uv_handle_t *)&s->poll, cb);
	s->has_poll = false;
	fd_close(&s->fd);
}

void side_done(struct side *s)
{
	SSL_free(s->ssl);
	fd_close(&s->fd);
	free(s->early);
	free(s->wire);
	free(s->in);
	if (s->out.data)
		side_forget(s);
	buf_done(&s->out);
}

/* work */

/* What a call of OpenSSL that did not succeed waits for. */
static void note_need(struct side *s, int ret)
{
	int e = SSL_get_error(s->ssl, ret);

	if (e == SSL_ERROR_WANT_READ)
		s->needs_in = true;
	else if (e == SSL_ERROR_WANT_WRITE)
		s->needs_out = true;
	else if (e == SSL_ERROR_ZERO_RETURN)
		s->is_ended = true;
	else
		s->is_broken = true;
}

static bool shake(struct side *s)
{
	int r;

	ERR_clear_error();
	r = SSL_do_handshake(s->ssl);
	if (r == 1)
		s->is_ready = true;
	else
		note_need(s, r);
	s->is_unspoken = s->is_broken &&
			 ERR_GET_REASON(ERR_peek_last_error()) ==
				 SSL_R_NO_APPLICATION_PROTOCOL;
	return r == 1;
}

/* As many as could be sent; 0: none now. */
static size_t push(struct side *s, const char *data, size_t len)
{
	ssize_t n;
	int r;

	if (!s->ssl) {
		n = sock_write(s, data, len);
		if (n < 0 && errno == EAGAIN)
			s->needs_out = true;
		else if (n < 0)
			s->is_broken = true;
		return n > 0 ? (size_t)n : 0;
	}
	/* The rest of a record that has begun is not to be had in part. */
	if (s->most < s->n_tried) {
		s->is_spent = true;
		return 0;
	}
	ERR_clear_error();
	r = SSL_write(s->ssl, data, (int)MIN(len, (size_t)INT_MAX));
	if (r <= 0)
		note_need(s, r);
	s->n_tried = r > 0 ? 0 : MIN(len, (size_t)SSL3_RT_MAX_PLAIN_LENGTH);
	return r > 0 ? (size_t)r : 0;
}

static size_t pull(struct side *s, char *data, size_t len)
{
	ssize_t n;
	int r;

	if (!s->ssl) {
		n = sock_read(s, data, len);
		if (n < 0 && errno == EAGAIN)
			s->needs_in = true;
		else if (n < 0)
			s->is_broken = true;
		else if (n == 0)
			s->is_ended = true;
		return n > 0 ? (size_t)n : 0;
	}
	ERR_clear_error();
	r = SSL_read(s->ssl, data, (int)len);
	if (r <= 0)
		note_need(s, r);
	return r > 0 ? (size_t)r : 0;
}

void side_forget(struct side *s)
{
	if (s->has_secret)
		OPENSSL_cleanse(s->out.data, s->out.cap);
	s->has_secret = false;
	s->out.len = 0;
	s->out.error = 0;
	s->out_at = 0;
}

/* Where there is no memory for it each record goes by itself. */
static bool may_gather(struct side *s)
{
	if (!s->ssl || s->out.len - s->out_at <= RECORD)
		return false;
	if (!s->wire)
		s->wire = malloc(WIRE);
	return s->wire != NULL;
}

static void send_gathered(struct side *s)
{
	s->gathers = false;
	if (s->is_broken || wire_send(s))
		return;
	if (errno == EAGAIN)
		s->needs_out = true;
	else
		s->is_broken = true;
}

static bool flush(struct side *s)
{
	size_t waited = s->wire_len - s->wire_at;
	bool moved = false;

	send_gathered(s);
	moved = s->wire_len - s->wire_at < waited;
	if (s->needs_out)
		return moved;
	s->gathers = may_gather(s);
	while (!s->is_broken && s->out_at < s->out.len) {
		size_t len = (size_t)MIN(s->out.len - s->out_at, s->most);
		size_t n;

		s->is_spent |= len == 0;
		n = len > 0 ? push(s, s->out.data + s->out_at, len) : 0;
		if (n == 0)
			break;
		s->out_at += n;
		s->n_out += n;
		s->most -= n;
		moved = true;
	}
	if (moved && s->out_at == s->out.len)
		side_forget(s);
	send_gathered(s);
	return moved;
}

/* Nothing more may be taken: is there anything? */
static void look_for_more(struct side *s)
{
	char byte;
	ssize_t n;
	int r;

	if (s->ssl) {
		ERR_clear_error();
		r = SSL_peek(s->ssl, &byte, 1);
		if (r > 0)
			s->is_spent = true;
		else
			note_need(s, r);
		return;
	}
	n = recv(s->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	if (n > 0 || s->at_early < s->n_early)
		s->is_spent = true;
	else if (n == 0)
		s->is_ended = true;
	else if (errno == EAGAIN || errno == EINTR)
		s->needs_in = true;
	else
		s->is_broken = true;
}

static bool fill(struct side *s)
{
	bool moved = false;

	if (s->in_at > 0 && s->in_at == s->in_len)
		s->in_at = s->in_len = 0;
	if (s->in_at > 0 && s->in_len == SIDE_IN) {
		memmove(s->in, s->in + s->in_at, s->in_len - s->in_at);
		s->in_len -= s->in_at;
		s->in_at = 0;
	}
	while (!s->is_broken && !s->is_ended && s->in_len < SIDE_IN) {
		size_t len = (size_t)MIN(SIDE_IN - s->in_len, s->most);
		size_t n;

		if (len == 0)
			look_for_more(s);
		n = len > 0 ? pull(s, s->in + s->in_len, len) : 0;
		if (n == 0)
			break;
		s->in_len += n;
		s->n_in += n;
		s->most -= n;
		moved = true;
	}
	return moved;
}

bool side_work(struct side *s, bool may_read)
{
	bool was_open = !s->is_ended && !s->is_broken;
	bool moved = false;

	s->needs_in = s->needs_out = false;
	if (s->fd < 0)
		return false;
	if (!s->is_ready && !s->is_broken)
		moved = shake(s);
	if (s->is_ready)
		moved |= flush(s);
	if (s->is_ready && may_read)
		moved |= fill(s);
	return moved || (was_open && (s->is_ended || s->is_broken));
}

void side_take(struct side *s, size_t n)
{
	s->in_at += n;
}

void side_shut(struct side *s)
{
	if (s->ssl && s->is_ready && !s->is_broken) {
		ERR_clear_error();
		(void)SSL_shutdown(s->ssl);
	}
	(void)shutdown(s->fd, SHUT_WR);
}

bool side_drain(struct side *s, uint64_t *n)
{
	for (int i = 0; i < 16; i++) {
		ssize_t r = recv(s->fd, s->in, SIDE_IN, MSG_DONTWAIT);

		if (r <= 0)
			return r < 0 && (errno == EAGAIN || errno == EINTR);
		*n += (uint64_t)r;
	}
	return true;
}

void side_probe(struct side *s)
{
	struct pollfd p = { .fd = s->fd, .events = POLLRDHUP };

	if (s->probe == PROBE_DONE)
		return;
	s->probe = PROBE_WAITS;
	if (poll(&p, 1, 0) != 1)
		return; /* the end of TLS, and not yet of TCP */
	s->probe = PROBE_DONE;
	/* Bytes that wait to go do the same themselves. */
	if (side_is_flushed(s))
		relay_probe(s->fd);
}

void side_watch(struct side *s, bool may_read, uv_poll_cb cb)
{
	int events = 0;

	if (!s->has_poll)
		return;
	if (!s->is_broken && (s->needs_in || (may_read && !s->is_ended &&
					      s->in_len - s->in_at < SIDE_IN)))
		events |= UV_READABLE;
	if (!s->is_broken && s->needs_out)
		events |= UV_WRITABLE;
	/* A reset is told with whatever is waited for. */
	if (!s->is_broken && may_read && s->probe)
		events |= s->probe == PROBE_DONE ? UV_PRIORITIZED
						 : UV_DISCONNECT;
	if (events == s->watched)
		return;
	s->watched = events;
	if (events == 0)
		(void)uv_poll_stop(&s->poll);
	else if (uv_poll_start(&s->poll, events, cb) != 0)
		s->is_broken = true;
}

void side_rest(struct side *s)
{
	if (s->has_poll)
		(void)uv_poll_stop(&s->poll);
	s->watched = 0;
}
