/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Asking a person from an event loop.
 *
 * The request is a sealed file that the desk reads from its beginning, so
 * nothing has to be fed to it; its answer and its end are two descriptors in
 * one epoll set.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "box/approve-parts.h"

struct approval {
	struct desk_process desk;
	int out; /* its standard output; non-blocking */
	int epoll;
	struct buf said;
	bool is_withdrawn;
};

static int write_request(const struct approve_request *req, struct err *err)
{
	_cleanup_fd_ int fd = memfd_create("request",
					   MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct buf doc;
	int r = 0;

	if (fd < 0)
		return err_errno(err, errno, "write a request");
	buf_init(&doc, APPROVE_MAX_REQUEST);
	approve_format(req, &doc);
	if (doc.error)
		r = err_set(err, E2BIG,
			    "the request is too large to be shown to a person");
	else if ((r = io_write_all(fd, doc.data, doc.len)) < 0 ||
		 (r = io_seal(fd)) < 0)
		r = err_errno(err, -r, "write a request");
	else if (lseek(fd, 0, SEEK_SET) < 0)
		r = err_errno(err, errno, "write a request");
	buf_done(&doc);
	return r < 0 ? r : take_fd(&fd);
}

static int watch(struct approval *a, int fd, struct err *err)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(a->epoll, EPOLL_CTL_ADD, fd, &ev) < 0
		       ? err_errno(err, errno, "watch cordon-desk")
		       : 0;
}

static int begin(struct approval *a, const struct approve_request *req,
		 struct err *err)
{
	_cleanup_fd_ int in = write_request(req, err);
	_cleanup_fd_ int out = NO_FD;
	int pair[2];

	if (in < 0)
		return in;
	if (pipe2(pair, O_CLOEXEC) < 0)
		return err_errno(err, errno, "make a pipe");
	a->out = pair[0];
	out = pair[1];
	a->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (a->epoll < 0 || fcntl(a->out, F_SETFL, O_NONBLOCK) < 0)
		return err_errno(err, errno, "watch cordon-desk");
	if (desk_spawn(req, in, out, &a->desk, err) < 0 ||
	    watch(a, a->out, err) < 0 || watch(a, a->desk.pidfd, err) < 0)
		return -err->code;
	return 0;
}

int approve_start(const struct approve_request *req, struct approval **ret,
		  struct err *err)
{
	struct approval *a = calloc(1, sizeof(*a));

	if (!a)
		return err_set(err, ENOMEM, "out of memory");
	a->desk.pidfd = NO_FD;
	a->out = NO_FD;
	a->epoll = NO_FD;
	buf_init(&a->said, APPROVE_MAX_ANSWER);
	if (begin(a, req, err) < 0) {
		approve_free(a);
		return -err->code;
	}
	*ret = a;
	return 0;
}

int approve_fd(const struct approval *a)
{
	return a->epoll;
}

/* Until there is nothing more for now; too long is remembered in the buffer. */
static void drink(struct approval *a)
{
	char chunk[4096];

	while (a->out >= 0) {
		ssize_t n = read(a->out, chunk, sizeof(chunk));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0 || buf_add(&a->said, chunk, (size_t)n) < 0)
			fd_close(&a->out);
	}
}

int approve_step(struct approval *a, int *ret_r, struct approve_answer *ret,
		 struct err *err)
{
	struct pollfd gone = { .fd = a->desk.pidfd, .events = POLLIN };

	if (poll(&gone, 1, 0) <= 0) {
		drink(a);
		return 0;
	}
	drink(a);
	*ret_r = approve_understand(&a->said, desk_reap(&a->desk, 0), ret, err);
	if (*ret_r < 0 && *ret_r != -ETIME)
		approve_refuse(ret, err ? err->text : "the asking failed");
	ret->is_cancelled = a->is_withdrawn;
	return 1;
}

void approve_withdraw(struct approval *a)
{
	a->is_withdrawn = true;
	if (a->desk.pid > 0)
		(void)kill(a->desk.pid, SIGINT);
}

void approve_free(struct approval *a)
{
	if (!a)
		return;
	(void)desk_reap(&a->desk, SIGTERM);
	fd_close(&a->desk.pidfd);
	fd_close(&a->out);
	fd_close(&a->epoll);
	buf_done(&a->said);
	free(a);
}
