/* SPDX-License-Identifier: Apache-2.0 */
#include "init/feed.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"

int feed_open(struct feed *f, const struct wire_work *work,
	      const struct wire_step *step)
{
	int pair[2];

	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	f->fd = pair[1];
	f->data = (const char *)work + step->input.off;
	f->left = step->input.len;
	if (fcntl(f->fd, F_SETFL, O_NONBLOCK) < 0) {
		int error = errno;

		(void)close(pair[0]);
		feed_close(f);
		return -error;
	}
	return pair[0];
}

/*
 * Nobody reads any more. Where signals are blocked and read one by one, that
 * of the write waits now, and is not meant for the program.
 */
static void forget_signal(void)
{
	const struct timespec now = { 0 };
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGPIPE);
	(void)sigtimedwait(&set, NULL, &now);
}

void feed_more(struct feed *f)
{
	while (f->left > 0) {
		ssize_t n = write(f->fd, f->data, f->left);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0) {
			forget_signal();
			break;
		}
		f->data += n;
		f->left -= (size_t)n;
	}
	feed_close(f);
}

void feed_close(struct feed *f)
{
	fd_close(&f->fd);
}
