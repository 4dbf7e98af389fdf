/* SPDX-License-Identifier: Apache-2.0 */

/* Ends of pipes and terminals in the loop. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "front/front.h"

struct spout {
	uv_poll_t poll; /* first: it is what is closed */
	int fd;
	void (*readable)(void *arg);
	void *arg;
};

struct inlet {
	uv_poll_t poll; /* first */
	int fd;
	void (*room)(void *arg);
	void *arg;
};

static void free_handle(uv_handle_t *h)
{
	free(h);
}

static void on_readable(uv_poll_t *p, int status, int events)
{
	struct spout *s = p->data;

	(void)status;
	(void)events;
	s->readable(s->arg);
}

struct spout *spout_new(struct manager *m, int fd, void (*readable)(void *arg),
			void *arg)
{
	struct spout *s = calloc(1, sizeof(*s));

	if (!s || uv_poll_init(m->loop, &s->poll, fd) < 0) {
		free(s);
		(void)close(fd);
		return NULL;
	}
	s->poll.data = s;
	s->fd = fd;
	s->readable = readable;
	s->arg = arg;
	spout_go(s, true);
	return s;
}

int spout_fd(const struct spout *s)
{
	return s->fd;
}

void spout_go(struct spout *s, bool is_wanted)
{
	if (!s)
		return;
	if (is_wanted)
		(void)uv_poll_start(&s->poll, UV_READABLE, on_readable);
	else
		(void)uv_poll_stop(&s->poll);
}

void spout_close(struct spout **s)
{
	struct spout *old = *s;

	if (!old)
		return;
	*s = NULL;
	uv_close((uv_handle_t *)&old->poll, free_handle);
	fd_close(&old->fd);
}

static void on_room(uv_poll_t *p, int status, int events)
{
	struct inlet *i = p->data;

	(void)status;
	(void)events;
	(void)uv_poll_stop(p);
	i->room(i->arg);
}

struct inlet *inlet_new(struct manager *m, int fd, void (*room)(void *arg),
			void *arg)
{
	struct inlet *i = calloc(1, sizeof(*i));

	if (!i || uv_poll_init(m->loop, &i->poll, fd) < 0) {
		free(i);
		(void)close(fd);
		return NULL;
	}
	i->poll.data = i;
	i->fd = fd;
	i->room = room;
	i->arg = arg;
	return i;
}

size_t inlet_write(struct inlet *i, const char *data, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = write(i->fd, data + done, len - done);

		if (n > 0) {
			done += (size_t)n;
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			(void)uv_poll_start(&i->poll, UV_WRITABLE, on_room);
			return done;
		}
		return len; /* nobody reads it any more */
	}
	return done;
}

void inlet_close(struct inlet **i)
{
	struct inlet *old = *i;

	if (!old)
		return;
	*i = NULL;
	uv_close((uv_handle_t *)&old->poll, free_handle);
	fd_close(&old->fd);
}

int pipe_make(int ret[2], bool is_input)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC) < 0)
		return -errno;
	ret[0] = is_input ? p[1] : p[0];
	ret[1] = is_input ? p[0] : p[1];
	/*
	 * Its program is another user, and may open it once more by name
	 * (/dev/stdout); in that direction alone.
	 */
	if (fcntl(ret[0], F_SETFL, O_NONBLOCK) < 0 ||
	    fchmod(ret[1], is_input ? 0604 : 0602) < 0) {
		int r = -errno;

		fd_close(&ret[0]);
		fd_close(&ret[1]);
		return r;
	}
	return 0;
}

void tty_resize(int fd, unsigned int rows, unsigned int cols)
{
	struct winsize size = { .ws_row = (unsigned short)rows,
				.ws_col = (unsigned short)cols };

	(void)ioctl(fd, TIOCSWINSZ, &size);
}
