/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/relay.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/util.h"

/* So much at once; also what a flow can hold whose sink takes no more. */
#define BLOCK (256 << 10)
/* So many for one flow, then the others have their turn. */
#define ROUNDS 8

/* One flow moves at a time: shared. */
static uint8_t block[BLOCK];

void flow_init(struct flow *f, int from, int to)
{
	*f = (struct flow){ .from = from, .to = to };
}

void flow_done(struct flow *f)
{
	free(take_ptr(f->rest));
	f->held = 0;
}

bool relay_is_urgent(int fd)
{
	char byte;
	ssize_t n = recv(fd, &byte, 1, MSG_OOB | MSG_PEEK | MSG_DONTWAIT);

	/* Other families than TCP may have no such thing. */
	return n >= 0 || (errno != EINVAL && errno != EOPNOTSUPP);
}

void relay_probe(int fd)
{
	int protocol = 0;
	socklen_t len = sizeof(protocol);

	/* Elsewhere such a byte would mean something. */
	if (getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len) == 0 &&
	    protocol == IPPROTO_TCP)
		(void)send(fd, "", 1, MSG_OOB | MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Nothing more is allowed: is there anything? */
static enum flow_state check_rest(struct flow *f, bool *ret_more)
{
	char byte;
	ssize_t n = recv(f->from, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	if (n > 0)
		return FLOW_QUOTA;
	if (n == 0)
		f->is_ended = true;
	*ret_more = false;
	return n < 0 && errno != EAGAIN && errno != EINTR ? FLOW_BROKEN
							  : FLOW_ON;
}

/* As many of `n` as the sink takes now; -errno: it is broken. */
static ssize_t give(const struct flow *f, const uint8_t *data, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t r = send(f->to, data + done, n - done,
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (r < 0 && errno == EAGAIN)
			break;
		if (r < 0 && errno != EINTR)
			return -errno;
		done += (size_t)MAX(r, 0);
	}
	return (ssize_t)done;
}

/* The sink takes no more: these wait until it does. */
static enum flow_state hold(struct flow *f, const uint8_t *data, size_t n)
{
	f->rest = malloc(n);
	if (!f->rest)
		return FLOW_BROKEN;
	memcpy(f->rest, data, n);
	f->at = 0;
	f->held = n;
	return FLOW_ON;
}

/* Source to sink; *ret_more: there may be more at once. */
static enum flow_state carry(struct flow *f, uint64_t most, bool *ret_more)
{
	size_t want = most < BLOCK ? (size_t)most : BLOCK;
	ssize_t given;
	ssize_t n;

	*ret_more = false;
	/* Asked first: recv(2) would step over the mark and forget it. */
	if (relay_is_urgent(f->from))
		return FLOW_BROKEN;
	n = recv(f->from, block, want, MSG_DONTWAIT);
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		return FLOW_BROKEN;
	if (n < 0)
		return FLOW_ON;
	if (n == 0) {
		f->is_ended = true;
		return FLOW_ON;
	}
	if (f->may_pass && !f->may_pass(f->arg, block, (size_t)n))
		return FLOW_REFUSED;
	f->moved += (size_t)n;
	/* A short one was all there was: no call to hear that again. */
	*ret_more = (size_t)n == want;
	given = give(f, block, (size_t)n);
	if (given < 0)
		return FLOW_BROKEN;
	return given == n ? FLOW_ON
			  : hold(f, block + given, (size_t)(n - given));
}

/* What is held, to the sink. */
static enum flow_state drain(struct flow *f)
{
	ssize_t n;

	if (f->held == 0)
		return FLOW_ON;
	n = give(f, f->rest + f->at, f->held);
	if (n < 0)
		return FLOW_BROKEN;
	f->at += (size_t)n;
	f->held -= (size_t)n;
	if (f->held == 0)
		free(take_ptr(f->rest));
	return FLOW_ON;
}

static enum flow_state pump(struct flow *f, uint64_t most)
{
	uint64_t end = most > UINT64_MAX - f->moved ? UINT64_MAX
						    : f->moved + most;
	enum flow_state s = drain(f);
	bool more = true;

	for (int i = 0; i < ROUNDS && s == FLOW_ON && more; i++) {
		if (!flow_wants_read(f))
			break;
		s = f->moved < end ? carry(f, end - f->moved, &more)
				   : check_rest(f, &more);
	}
	return s;
}

enum flow_state flow_pump(struct flow *f, uint64_t most)
{
	enum flow_state s = pump(f, most);

	if (s == FLOW_ON && f->is_ended && f->held == 0 && !f->is_shut) {
		f->is_shut = true;
		(void)shutdown(f->to, SHUT_WR);
	}
	return s;
}
