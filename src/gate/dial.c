/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/dial.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>

#include "base/util.h"
#include "gate/endpoint.h"
#include "gate/watch.h"

/* RFC 8305 section 5: the recommended delay between attempts. */
#define ATTEMPT_DELAY_MS 250
#define MAX_ADDRESSES    16

enum { V6, V4, FAMILIES };

struct queue {
	unsigned int n, next;
	uint8_t address[MAX_ADDRESSES][16];
};

struct attempt {
	struct race *of;
	struct watch *watch; /* NULL: failed, or free */
	uint8_t address[16];
};

struct race {
	uv_loop_t *loop;
	raced_fn *fn;
	void *arg;
	uint16_t port;
	bool is_last;
	int turn; /* the family that is next, if it has any */
	struct queue queues[FAMILIES];
	unsigned int n_attempts; /* begun, of all that may be */
	struct attempt attempts[DIAL_MAX_FDS];
	struct tick *tick;
	bool is_paced; /* the tick brings the next attempt */
	/* When it is over: */
	bool is_over;
	int fd;
	uint8_t winner[16];
};

static void drop_attempts(struct race *r)
{
	for (unsigned int i = 0; i < r->n_attempts; i++)
		watch_free(take_ptr(r->attempts[i].watch));
}

void race_free(struct race *r)
{
	if (!r)
		return;
	drop_attempts(r);
	tick_free(r->tick);
	fd_close(&r->fd);
	free(r);
}

void race_add(struct race *r, const uint8_t address[16])
{
	struct queue *q = &r->queues[address_is_v4(address) ? V4 : V6];

	if (q->n < MAX_ADDRESSES)
		memcpy(q->address[q->n++], address, 16);
}

static const uint8_t *next_address(struct race *r)
{
	for (int i = 0; i < FAMILIES; i++) {
		struct queue *q = &r->queues[r->turn];

		r->turn = !r->turn;
		if (q->next < q->n)
			return q->address[q->next++];
	}
	return NULL;
}

static bool is_any_open(const struct race *r)
{
	for (unsigned int i = 0; i < r->n_attempts; i++)
		if (r->attempts[i].watch)
			return true;
	return false;
}

static void finish(struct race *r, int fd, const uint8_t *address)
{
	drop_attempts(r);
	r->is_over = true;
	r->fd = fd;
	if (address)
		memcpy(r->winner, address, sizeof(r->winner));
	tick_set(r->tick, 0);
}

static int dial_one(const uint8_t address[16], uint16_t port)
{
	_cleanup_fd_ int fd = NO_FD;
	union endpoint to;
	int one = 1;

	endpoint_set(&to, address, port);
	fd = socket(to.any.sa_family,
		    SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	/* What a box sends in pieces is not ours to hold back. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(fd, &to.any, endpoint_len(&to)) < 0 && errno != EINPROGRESS)
		return -errno;
	return take_fd(&fd);
}

static void go_on(struct race *r);

static void on_connected(void *arg, int fd)
{
	struct attempt *a = arg;
	int error = 0;
	socklen_t len = sizeof(error);

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		error = errno;
	if (error) {
		watch_free(take_ptr(a->watch));
		go_on(a->of);
		return;
	}
	fd = watch_take(take_ptr(a->watch));
	finish(a->of, fd, a->address);
}

/* Begins with the next address that can be begun with; false: none. */
static bool begin_one(struct race *r)
{
	const uint8_t *address;

	while (r->n_attempts < DIAL_MAX_FDS && (address = next_address(r))) {
		struct attempt *a = &r->attempts[r->n_attempts];
		int fd = dial_one(address, r->port);

		/* One that fails at once costs nothing, and counts nothing. */
		if (fd < 0)
			continue;
		a->watch = watch_new(r->loop, fd, UV_WRITABLE, on_connected, a);
		if (!a->watch)
			continue;
		a->of = r;
		memcpy(a->address, address, sizeof(a->address));
		r->n_attempts++;
		return true;
	}
	return false;
}

static void go_on(struct race *r)
{
	if (begin_one(r)) {
		r->is_paced = true;
		tick_set(r->tick, ATTEMPT_DELAY_MS);
	} else if (r->is_last && !is_any_open(r)) {
		finish(r, NO_FD, NULL);
	}
}

static void on_tick(void *arg)
{
	struct race *r = arg;
	int fd;

	if (!r->is_over) {
		r->is_paced = false;
		go_on(r);
		return;
	}
	fd = take_fd(&r->fd);
	tick_free(take_ptr(r->tick));
	r->fn(r->arg, fd < 0 ? -1 : fd, r->winner);
	free(r);
}

struct race *race_new(uv_loop_t *loop, uint16_t port, raced_fn *fn, void *arg)
{
	struct race *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->loop = loop;
	r->port = port;
	r->fn = fn;
	r->arg = arg;
	r->fd = NO_FD;
	r->tick = tick_new(loop, on_tick, r);
	if (!r->tick) {
		free(r);
		return NULL;
	}
	return r;
}

void race_run(struct race *r, bool is_last)
{
	r->is_last = is_last;
	if (!r->is_over && (!r->is_paced || !is_any_open(r)))
		go_on(r);
}
