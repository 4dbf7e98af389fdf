/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/stream.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"

static int put_out(void *arg, int stream, const char *data, size_t len)
{
	(void)arg;
	return io_write_all(stream, data, len);
}

static int show(struct daemon *d, struct frames *f, const char *data,
		size_t len, struct err *err)
{
	int r = d->answer.is_raw ? io_write_all(1, data, len)
				 : frames_take(f, data, len, put_out, NULL);

	if (r == -EPROTO)
		return err_set(err, DAEMON_BROKEN,
			       "the daemon's stream is "
			       "no stream of frames");
	if (r < 0)
		return err_errno(err, -r, "write to standard output");
	return 0;
}

int stream_show(struct daemon *d, struct err *err)
{
	struct frames f = { 0 };
	char data[32768];
	ssize_t n;

	while ((n = daemon_read(d, data, sizeof(data), err)) > 0)
		if (show(d, &f, data, (size_t)n, err) < 0)
			return -err->code;
	return n < 0 ? -err->code : 0;
}

/* both ways */

struct join {
	struct daemon *d;
	const struct stream_want *want;
	struct frames frames;
	int signals;
	bool input_open, is_raw;
	struct termios before;
	char input[16384];
	size_t at, len;
};

static void tell_size(struct join *j)
{
	struct winsize size;
	char path[320];

	if (!j->want->resize[0] || ioctl(0, TIOCGWINSZ, &size) < 0)
		return;
	(void)snprintf(path, sizeof(path), "%s?rows=%u&cols=%u",
		       j->want->resize, size.ws_row, size.ws_col);
	(void)daemon_call("POST", path, NULL, NULL, &(struct err){ 0 });
}

static void go_raw(struct join *j)
{
	struct termios raw;

	if (!j->want->tty || tcgetattr(0, &j->before) < 0)
		return;
	raw = j->before;
	cfmakeraw(&raw);
	j->is_raw = tcsetattr(0, TCSADRAIN, &raw) == 0;
}

static void end_input(struct join *j)
{
	j->input_open = false;
	(void)shutdown(j->d->fd, SHUT_WR);
}

static void pass_input(struct join *j, bool is_ready)
{
	ssize_t n;

	if (j->at == j->len && is_ready) {
		n = read(0, j->input, sizeof(j->input));
		if (n < 0 && errno == EINTR)
			return;
		if (n <= 0) {
			end_input(j);
			return;
		}
		j->at = 0;
		j->len = (size_t)n;
	}
	if (j->at == j->len)
		return;
	n = send(j->d->fd, j->input + j->at, j->len - j->at,
		 MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n > 0)
		j->at += (size_t)n;
	else if (errno != EAGAIN && errno != EINTR)
		j->input_open = false;
}

/* 1, 0 at the end, -errno. */
static int pass_output(struct join *j, struct err *err)
{
	char data[32768];
	ssize_t n = daemon_read(j->d, data, sizeof(data), err);

	if (n > 0 && show(j->d, &j->frames, data, (size_t)n, err) < 0)
		return -err->code;
	return n < 0 ? -err->code : n > 0;
}

static int watch(struct join *j, struct err *err)
{
	for (;;) {
		bool is_pending = j->at < j->len;
		struct pollfd p[] = {
			{ .fd = j->d->fd,
			  .events = (short)(POLLIN |
					    (is_pending ? POLLOUT : 0)) },
			{ .fd = j->signals, .events = POLLIN },
			{ .fd = j->input_open && !is_pending ? 0 : -1,
			  .events = POLLIN },
		};
		bool has_more = daemon_has_more(j->d);
		int r;

		if (poll(p, ARRAY_SIZE(p), has_more ? 0 : -1) < 0 &&
		    errno != EINTR)
			return err_errno(err, errno, "poll");
		if (p[1].revents) {
			struct signalfd_siginfo info;

			if (read(j->signals, &info, sizeof(info)) > 0)
				tell_size(j);
		}
		if (j->input_open && (p[2].revents || p[0].revents & POLLOUT))
			pass_input(j, p[2].revents != 0);
		if (!has_more && !(p[0].revents & (POLLIN | POLLHUP)))
			continue;
		r = pass_output(j, err);
		if (r <= 0)
			return r;
	}
}

int stream_join(struct daemon *d, const struct stream_want *w, struct err *err)
{
	struct join j = { .d = d, .want = w, .input_open = w->input };
	sigset_t set;
	int r;

	(void)sigemptyset(&set);
	if (w->tty)
		(void)sigaddset(&set, SIGWINCH);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	j.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	go_raw(&j);
	if (w->tty)
		tell_size(&j);
	if (!w->input)
		end_input(&j);
	r = watch(&j, err);
	if (j.is_raw)
		(void)tcsetattr(0, TCSADRAIN, &j.before);
	fd_close(&j.signals);
	return r;
}
