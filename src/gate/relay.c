/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"

#define PIPE_SIZE (256 << 10)
#define KEPT      16
/* So much for one flow, then the others have their turn. */
#define ROUNDS 8

struct pipes {
	int n;
	int kept[KEPT][2];
};

struct pipes *pipes_new(void)
{
	return calloc(1, sizeof(struct pipes));
}

static bool pipe_take(struct pipes *p, int ret[2])
{
	if (p->n > 0) {
		p->n--;
		ret[0] = p->kept[p->n][0];
		ret[1] = p->kept[p->n][1];
		return true;
	}
	if (pipe2(ret, O_CLOEXEC | O_NONBLOCK) < 0)
		return false;
	/* Where the user has many already, a small one has to do. */
	(void)fcntl(ret[1], F_SETPIPE_SZ, PIPE_SIZE);
	return true;
}

/* Only an empty one is of use to others. */
static void pipe_give(struct pipes *p, int pipe[2], bool is_empty)
{
	if (is_empty && pipe[0] >= 0 && p->n < KEPT) {
		p->kept[p->n][0] = take_fd(&pipe[0]);
		p->kept[p->n][1] = take_fd(&pipe[1]);
		p->n++;
		return;
	}
	fd_close(&pipe[0]);
	fd_close(&pipe[1]);
}

void flow_init(struct flow *f, int from, int to)
{
	*f = (struct flow){ .from = from, .to = to, .pipe = { NO_FD, NO_FD } };
}

void flow_done(struct flow *f, struct pipes *p)
{
	pipe_give(p, f->pipe, f->held == 0);
}

bool relay_is_urgent(int fd)
{
	char byte;
	ssize_t n = recv(fd, &byte, 1, MSG_OOB | MSG_PEEK | MSG_DONTWAIT);

	/* Other families than TCP may have no such thing. */
	return n >= 0 || (errno != EINVAL && errno != EOPNOTSUPP);
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

/* Source to pipe; *ret_more: there may be more at once. */
static enum flow_state fill(struct flow *f, uint64_t most, bool *ret_more)
{
	size_t want = most < PIPE_SIZE ? (size_t)most : PIPE_SIZE;
	ssize_t n = splice(f->from, NULL, f->pipe[1], NULL, want,
			   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

	*ret_more = false;
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		return FLOW_BROKEN;
	if (n <= 0 && relay_is_urgent(f->from))
		return FLOW_BROKEN;
	if (n < 0)
		return FLOW_ON;
	if (n == 0) {
		f->is_ended = true;
		return FLOW_ON;
	}
	f->held = (size_t)n;
	f->moved += (size_t)n;
	/* A short one was all there was: no call to hear that again. */
	*ret_more = n >= PIPE_SIZE / 4;
	return FLOW_ON;
}

/* Pipe to sink. */
static enum flow_state drain(struct flow *f)
{
	while (f->held > 0) {
		ssize_t n = splice(f->pipe[0], NULL, f->to, NULL, f->held,
				   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? FLOW_ON : FLOW_BROKEN;
		if (n == 0)
			return FLOW_BROKEN;
		f->held -= (size_t)n;
	}
	return FLOW_ON;
}

static enum flow_state pump(struct flow *f, struct pipes *p, uint64_t most)
{
	uint64_t end = most > UINT64_MAX - f->moved ? UINT64_MAX
						    : f->moved + most;
	enum flow_state s = FLOW_ON;
	bool more = true;

	if (f->pipe[0] < 0 && !pipe_take(p, f->pipe))
		return FLOW_BROKEN;
	for (int i = 0; i < ROUNDS && s == FLOW_ON; i++) {
		if (f->held == 0 && more && flow_wants_read(f))
			s = f->moved < end ? fill(f, end - f->moved, &more)
					   : check_rest(f, &more);
		if (s == FLOW_ON)
			s = drain(f);
		if (f->held > 0 || !more || f->is_ended || f->is_barred)
			break;
	}
	return s;
}

enum flow_state flow_pump(struct flow *f, struct pipes *p, uint64_t most)
{
	enum flow_state s = pump(f, p, most);

	if (f->held == 0)
		pipe_give(p, f->pipe, true);
	if (s == FLOW_ON && f->is_ended && f->held == 0 && !f->is_shut) {
		f->is_shut = true;
		(void)shutdown(f->to, SHUT_WR);
	}
	return s;
}
