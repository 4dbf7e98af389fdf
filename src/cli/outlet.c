/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation. A descriptor that poll(2) calls writable still blocks
 * when more is written than it has room for, or when another who has it too
 * was faster. O_NONBLOCK is no way out: it belongs to the open file, which is
 * also our caller's, and not every file can be opened again. So a write is
 * made as it is, and a timer of our own interrupts it: it then returns
 * what it has written so far, be it to a pipe, a terminal or a socket. The
 * timer is armed only around the write, and its signal is one that nobody else
 * uses; a caller's alarm(2) stays as it was.
 */
#include "cli/outlet.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"

#define BRIEF_NS 5000000

static timer_t timer;
static bool has_timer;

static void on_timer(int signal)
{
	(void)signal; /* that a call was interrupted is all */
}

static void make_timer(void)
{
	static bool is_tried;
	struct sigaction act = { .sa_handler = on_timer }; /* no restart */
	struct sigevent ev = { .sigev_notify = SIGEV_SIGNAL };
	sigset_t set;

	if (is_tried)
		return;
	is_tried = true;
	ev.sigev_signo = SIGRTMIN;
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGRTMIN);
	has_timer = sigaction(SIGRTMIN, &act, NULL) == 0 &&
		    sigprocmask(SIG_UNBLOCK, &set, NULL) == 0 &&
		    timer_create(CLOCK_MONOTONIC, &ev, &timer) == 0;
}

/* Again and again: the first may come before the write has begun. */
static void arm(bool on)
{
	const struct timespec t = { .tv_nsec = on ? BRIEF_NS : 0 };
	const struct itimerspec its = { .it_interval = t, .it_value = t };

	(void)timer_settime(timer, 0, &its, NULL);
}

/* As write(2), but 0 when nothing is taken within a few milliseconds. */
static ssize_t write_briefly(int fd, const char *data, size_t len)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	ssize_t n;
	int saved;

	make_timer();
	if (has_timer) {
		arm(true);
		n = write(fd, data, len);
		saved = errno;
		arm(false);
		errno = saved;
	} else if (poll(&p, 1, 0) <= 0) {
		return 0;
	} else {
		/* As much as a pipe has room for that is writable. */
		n = write(fd, data, MIN(len, (size_t)PIPE_BUF));
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	return n;
}

void outlet_init(struct outlet *o, int fd, size_t most)
{
	*o = (struct outlet){ .fd = fd };
	buf_init(&o->kept, most);
}

void outlet_done(struct outlet *o)
{
	buf_done(&o->kept);
}

bool outlet_waits(const struct outlet *o)
{
	return o->at < o->kept.len;
}

static void drop(struct outlet *o)
{
	size_t most = o->kept.max;

	buf_done(&o->kept);
	buf_init(&o->kept, most);
	o->at = 0;
}

void outlet_fail(struct outlet *o, int why)
{
	o->error = why;
	drop(o);
}

/* Once: a reader that takes it drop by drop is waited for elsewhere. */
static size_t write_some(struct outlet *o, const char *data, size_t len)
{
	ssize_t n = write_briefly(o->fd, data, len);

	if (n < 0)
		outlet_fail(o, errno);
	return n > 0 ? (size_t)n : 0;
}

void outlet_put(struct outlet *o, const void *data, size_t len)
{
	size_t n = 0;

	if (o->error || len == 0)
		return;
	if (!outlet_waits(o))
		n = write_some(o, data, len);
	if (o->error || n == len)
		return;
	if (buf_add(&o->kept, (const char *)data + n, len - n) < 0)
		outlet_fail(o, ENOBUFS);
}

void outlet_push(struct outlet *o)
{
	size_t n;

	if (o->error || !outlet_waits(o))
		return;
	n = write_some(o, o->kept.data + o->at, o->kept.len - o->at);
	o->at += n;
	if (!outlet_waits(o))
		drop(o);
}
