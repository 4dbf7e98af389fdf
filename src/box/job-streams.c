/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The streams of a run, from the client's side: pipes, or a terminal.
 *
 * Their read ends stay here; the keeper never sees a byte of them. When it says
 * that a block or the run is over, every process that could write is dead, so
 * reading what is left cannot block and loses nothing.
 */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "box/job-parts.h"
#include "box/spec.h"

/* The box's ends; stdin is nothing unless something was given. */
int job_open_streams(struct cordon_job *j, int box[3], struct err *err)
{
	bool wants_input = !j->spec->tty &&
			   (j->spec->has_input || j->spec->interactive);
	int p[2];

	if (pipe2(p, O_CLOEXEC) < 0)
		return err_errno(err, errno, "make a pipe");
	j->out = p[0];
	box[1] = p[1];
	if (pipe2(p, O_CLOEXEC) < 0)
		return err_errno(err, errno, "make a pipe");
	j->err = p[0];
	box[2] = p[1];
	if (wants_input) {
		if (pipe2(p, O_CLOEXEC) < 0)
			return err_errno(err, errno, "make a pipe");
		box[0] = p[0];
		j->in = p[1];
		(void)fcntl(j->in, F_SETFL, O_NONBLOCK);
	} else {
		box[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		if (box[0] < 0)
			return err_errno(err, errno, "open /dev/null");
	}
	(void)fcntl(j->out, F_SETFL, O_NONBLOCK);
	(void)fcntl(j->err, F_SETFL, O_NONBLOCK);
	/*
	 * The box's user is another one, and programs do open /dev/stderr
	 * again: it may, in the direction that is meant.
	 */
	if ((wants_input && fchmod(box[0], 0604) < 0) ||
	    fchmod(box[1], 0602) < 0 || fchmod(box[2], 0602) < 0)
		return err_errno(err, errno, "open a pipe to the box");
	return 0;
}

void job_take_tty(struct cordon_job *j, int *fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u32 = TO_OUT };

	fd_close(&j->out);
	j->out = take_fd(fd);
	(void)fcntl(j->out, F_SETFL, O_RDWR | O_NONBLOCK);
	(void)epoll_ctl(j->epoll, EPOLL_CTL_ADD, j->out, &ev);
	j->in = fcntl(j->out, F_DUPFD_CLOEXEC, 3);
}

void job_hold(struct cordon_job *j, int stream, bool is_held)
{
	int fd = stream == 1 ? j->out : j->err;
	struct epoll_event ev = { .events = EPOLLIN,
				  .data.u32 = stream == 1 ? TO_OUT : TO_ERR };

	/* Not only without events: an end is always told, again and again. */
	if (fd >= 0)
		(void)epoll_ctl(j->epoll,
				is_held ? EPOLL_CTL_DEL : EPOLL_CTL_ADD, fd,
				&ev);
}

/* output */

static void got(struct cordon_job *j, int stream, const char *data, size_t len)
{
	struct capture *cap = stream == 1 ? &j->out_cap : &j->err_cap;
	const struct wire_head flood = { WIRE_FLOOD, j->number };

	capture_add(cap, data, len);
	if (j->result->has_output)
		capture_add(&j->both_cap, data, len);
	if (j->events.output)
		j->events.output(j->arg, stream, data, len);
	if (j->spec->hard_output && cap->total > j->spec->hard_output &&
	    !j->has_flooded) {
		j->has_flooded = true;
		(void)io_send(j->handle->sock, &flood, sizeof(flood), NULL, 0);
	}
}

/* Reads once; false when there is nothing now, or nothing any more. */
bool job_read(struct cordon_job *j, int stream)
{
	int *fd = stream == 1 ? &j->out : &j->err;
	ssize_t n;

	if (*fd < 0)
		return false;
	n = read(*fd, j->chunk, sizeof(j->chunk));
	if (n > 0) {
		got(j, stream, j->chunk, (size_t)n);
		return true;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	/* EIO is how a terminal says that its other end is closed. */
	if (n < 0 && !j->spec->tty)
		(void)strv_add(&j->result->warnings,
			       "output was lost: a pipe could not be read");
	fd_close(fd);
	return false;
}

void job_drain(struct cordon_job *j)
{
	while (job_read(j, 1) | job_read(j, 2))
		;
}

/* input */

/* A write that gives EPIPE and no signal, whatever the caller's masks are. */
static ssize_t write_quietly(int fd, const void *data, size_t len)
{
	const struct timespec now = { 0 };
	sigset_t pipe_only;
	sigset_t before;
	ssize_t n;
	int saved;

	(void)sigemptyset(&pipe_only);
	(void)sigaddset(&pipe_only, SIGPIPE);
	(void)pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
	n = write(fd, data, len);
	saved = errno;
	if (n < 0 && saved == EPIPE && !sigismember(&before, SIGPIPE))
		(void)sigtimedwait(&pipe_only, NULL, &now);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = saved;
	return n;
}

long job_write(struct cordon_job *j, const void *data, size_t len)
{
	ssize_t n;

	if (j->in < 0)
		return -EPIPE;
	if (len == 0) {
		fd_close(&j->in);
		return 0;
	}
	n = write_quietly(j->in, data, len);
	if (n >= 0)
		return n;
	if (errno == EAGAIN || errno == EINTR)
		return 0;
	n = -errno;
	fd_close(&j->in);
	return n;
}

void job_feed(struct cordon_job *j)
{
	const struct cordon_spec *s = j->spec;

	while (j->in >= 0 && j->in_at < s->input_len) {
		long n = job_write(j, s->input + j->in_at,
				   s->input_len - j->in_at);

		if (n <= 0)
			return;
		j->in_at += (size_t)n;
	}
	fd_close(&j->in);
}
