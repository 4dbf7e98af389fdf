/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation: the servers are asked one after the other, `attempts`
 * times round, each with a new socket and a new id. A server that says nothing
 * in time, cannot tell or is not there is followed by the next. What arrives
 * and is no answer to the question is not noticed. A truncated answer is asked
 * for again from the same server over TCP.
 */
#include <errno.h>
#include <ldns/ldns.h>
#include <string.h>
#include <sys/random.h>

#include "base/util.h"
#include "gate/resolve.h"
#include "gate/watch.h"

struct ask {
	uv_loop_t *loop;
	const struct resolve_conf *conf;
	asked_fn *fn;
	void *arg;
	struct question question;
	unsigned int n_tries; /* begun */
	struct watch *watch;  /* the socket, if there is one */
	struct tick *tick;    /* it has waited too long; or it is over */
	bool is_tcp;          /* this try */
	bool is_over;
	enum answered how;
	struct addresses found;
	/* TCP: two bytes of length, then a packet. */
	size_t n_out, n_in;
	uint8_t out[2 + QUESTION_MAX];
	uint8_t in[2 + RESOLVE_PACKET];
};

static void ask_free(struct ask *a)
{
	watch_free(a->watch);
	tick_free(a->tick);
	free(a);
}

static void finish(struct ask *a, enum answered how)
{
	watch_free(take_ptr(a->watch));
	a->is_over = true;
	a->how = how;
	tick_set(a->tick, 0);
}

static const union endpoint *server_of(const struct ask *a)
{
	return &a->conf->servers[(a->n_tries - 1) % a->conf->n_servers];
}

/* Connected, or about to be; the descriptor or -errno. */
static int server_connect(const union endpoint *s, int type)
{
	_cleanup_fd_ int fd = socket(s->any.sa_family,
				     type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 ||
	    (connect(fd, &s->any, endpoint_len(s)) < 0 && errno != EINPROGRESS))
		return -errno;
	return take_fd(&fd);
}

/* A new question, as both kinds of sockets want it. */
static int write_question(struct ask *a)
{
	int len;

	if (getrandom(&a->question.id, sizeof(a->question.id), 0) < 0)
		return -errno;
	len = question_write(&a->question, a->out + 2);
	if (len < 0)
		return len;
	a->out[0] = (uint8_t)(len >> 8);
	a->out[1] = (uint8_t)len;
	a->n_out = (size_t)len + 2;
	a->n_in = 0;
	return 0;
}

static void next_try(struct ask *a);
static int try_tcp(struct ask *a);

/* What an answer means; false: it is none. */
static bool take_answer(struct ask *a, const uint8_t *packet, size_t len)
{
	enum answered how = answer_read(&a->question, packet, len, &a->found);

	if (how == ANSWER_NOT_OURS)
		return false;
	if (how == ANSWER_FOUND || how == ANSWER_NONE)
		finish(a, how);
	else if (how == ANSWER_FAILED || a->is_tcp || try_tcp(a) < 0)
		next_try(a);
	return true;
}

static void on_packet(void *arg, int fd)
{
	struct ask *a = arg;

	/* A flood of others' packets must not keep the loop. */
	for (int i = 0; i < 8; i++) {
		ssize_t n = recv(fd, a->in, sizeof(a->in), 0);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0) {
			next_try(a); /* nobody is there */
			return;
		}
		if (take_answer(a, a->in, (size_t)n))
			return;
	}
}

static int try_udp(struct ask *a)
{
	int fd = server_connect(server_of(a), SOCK_DGRAM);

	if (fd < 0)
		return fd;
	if (send(fd, a->out + 2, a->n_out - 2, MSG_NOSIGNAL) < 0) {
		fd_close(&fd);
		return -EIO;
	}
	a->watch = watch_new(a->loop, fd, UV_READABLE, on_packet, a);
	return a->watch ? 0 : -ENOMEM;
}

/* How many bytes are still to come; 0: none, or more than are read. */
static size_t still_missing(const struct ask *a)
{
	size_t len;

	if (a->n_in < 2)
		return 2 - a->n_in;
	len = 2 + ((size_t)a->in[0] << 8 | a->in[1]);
	return len > sizeof(a->in) ? 0 : len - a->n_in;
}

static void on_bytes(void *arg, int fd)
{
	struct ask *a = arg;
	ssize_t n = recv(fd, a->in + a->n_in, still_missing(a), 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		next_try(a);
		return;
	}
	a->n_in += (size_t)n;
	if (still_missing(a) == 0 && !take_answer(a, a->in + 2, a->n_in - 2))
		next_try(a);
}

static void on_connected(void *arg, int fd)
{
	struct ask *a = arg;

	/* A new connection takes these few bytes at once, or is none. */
	if (send(fd, a->out, a->n_out, MSG_NOSIGNAL) != (ssize_t)a->n_out ||
	    watch_turn(a->watch, UV_READABLE, on_bytes) < 0)
		next_try(a);
}

/* The same question, and as much time again. */
static int try_tcp(struct ask *a)
{
	int fd = server_connect(server_of(a), SOCK_STREAM);

	watch_free(take_ptr(a->watch));
	if (fd < 0)
		return fd;
	a->is_tcp = true;
	a->watch = watch_new(a->loop, fd, UV_WRITABLE, on_connected, a);
	if (!a->watch)
		return -ENOMEM;
	tick_set(a->tick, a->conf->timeout_ms);
	return 0;
}

static int try_one(struct ask *a)
{
	int r = write_question(a);

	a->is_tcp = a->conf->is_tcp;
	if (r == 0)
		r = a->is_tcp ? try_tcp(a) : try_udp(a);
	return r;
}

static void next_try(struct ask *a)
{
	unsigned int n = a->conf->n_servers * a->conf->attempts;

	watch_free(take_ptr(a->watch));
	while (a->n_tries < n) {
		a->n_tries++;
		if (try_one(a) == 0) {
			tick_set(a->tick, a->conf->timeout_ms);
			return;
		}
	}
	finish(a, ANSWER_FAILED);
}

static void on_tick(void *arg)
{
	struct ask *a = arg;

	if (!a->is_over) {
		next_try(a);
		return;
	}
	watch_free(take_ptr(a->watch));
	tick_free(take_ptr(a->tick));
	a->fn(a->arg, a->how, &a->found);
	free(a);
}

struct ask *ask_start(uv_loop_t *loop, const struct resolve_conf *conf,
		      const char *name, uint16_t type, asked_fn *fn, void *arg)
{
	struct ask *a = calloc(1, sizeof(*a));
	size_t len = strlen(name);

	if (!a || len >= sizeof(a->question.name))
		goto fail;
	memcpy(a->question.name, name, len + 1);
	a->question.type = type;
	a->loop = loop;
	a->conf = conf;
	a->fn = fn;
	a->arg = arg;
	a->tick = tick_new(loop, on_tick, a);
	if (!a->tick)
		goto fail;
	next_try(a);
	return a;
fail:
	free(a);
	return NULL;
}

void ask_cancel(struct ask *a)
{
	if (a)
		ask_free(a);
}
