/* SPDX-License-Identifier: Apache-2.0 */

/* Children for one order each; see daemon.h. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/say.h"
#include "base/util.h"
#include "box/handle.h"
#include "os/uapi.h"
#include "serve/daemon.h"

#define PREPARE_US 10000000
#define SEAL_US    60000000

#ifndef F_ADD_SEALS
#define F_ADD_SEALS   1033
#define F_SEAL_SEAL   1
#define F_SEAL_SHRINK 2
#define F_SEAL_GROW   4
#define F_SEAL_WRITE  8
#endif

/* ---- documents ---- */

int doc_seal(const struct buf *text, struct err *err)
{
	_cleanup_fd_ int fd = memfd_create("cordon-doc",
					   MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (text->error)
		return err_set(err, -text->error, "the document is too long");
	if (fd < 0 || io_write_all(fd, text->data, text->len) < 0 ||
	    fcntl(fd, F_ADD_SEALS,
		  F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return err_errno(err, errno, "make a document");
	return take_fd(&fd);
}

int doc_read(int fd, struct buf *ret, struct err *err)
{
	struct stat st;
	char chunk[16384];
	off_t at = 0;
	ssize_t n;

	/* A pipe or a terminal could make us wait. */
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(err, EINVAL, "a document is not a file");
	while ((n = pread(fd, chunk, sizeof(chunk), at)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(err, errno, "read a document");
		if (buf_add(ret, chunk, (size_t)n) < 0)
			return err_set(err, -ret->error,
				       "a document is too long");
		at += n;
	}
	/* So that there is always text, if none of it. */
	return buf_add(ret, "", 0) < 0 ? ret->error : 0;
}

int answer_send(int sock, const struct order_answer *a, const int *fds, int n)
{
	return io_send(sock, a, sizeof(*a), fds, n);
}

/* A front that does not take an answer will be found dead soon. */
static void say_no(struct daemon *d, uint32_t number, int code,
		   const char *text)
{
	struct order_answer a = { .type = ORDER_ANSWER, .number = number };

	(void)err_set(&a.err, code, "%s", text);
	(void)answer_send(d->front, &a, NULL, 0);
}

/* ---- starting ---- */

static struct errand *find_free(struct daemon *d, enum errand_kind kind,
				int most)
{
	struct errand *free_one = NULL;
	int n = 0;

	for (int i = 0; i < MAX_ERRANDS; i++) {
		struct errand *e = &d->errands[i];

		if (e->kind == ERRAND_NONE && !free_one)
			free_one = e;
		n += e->kind == kind;
	}
	return n < most ? free_one : NULL;
}

static int begin(struct errand *e, enum errand_kind kind, uint32_t number,
		 pid_t pid, int64_t us)
{
	*e = (struct errand){ .kind = kind,
			      .number = number,
			      .pid = pid,
			      .pidfd = sys_pidfd_open(pid),
			      .sock = NO_FD,
			      .deadline = us ? clock_us() + us : INT64_MAX };
	return e->pidfd < 0 ? -errno : 0;
}

static void close_all(int *fds, int n)
{
	for (int i = 0; i < n; i++)
		fd_close(&fds[i]);
}

static int start_preparer(struct daemon *d, const struct order *o, int *fds)
{
	struct errand *e = find_free(d, ERRAND_PREPARE, MAX_PREPARERS);
	int pair[2];
	pid_t pid;

	if (!e)
		return -EAGAIN;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		const int kept[] = { fds[0], fds[1], pair[1] };
		const struct preparer p = { .d = d,
					    .request = 3,
					    .peer = 4,
					    .sock = 5,
					    .number = o->number };

		if (child_keep(kept, 3) < 0)
			_exit(127);
		preparer_run(&p);
	}
	(void)close(pair[1]);
	if (pid < 0) {
		int code = errno;

		(void)close(pair[0]);
		return -code;
	}
	(void)begin(e, ERRAND_PREPARE, o->number, pid, PREPARE_US);
	e->sock = pair[0];
	return 0;
}

void errand_prepare(struct daemon *d, const struct order *o, int *fds, int n)
{
	int r = n == 2 ? start_preparer(d, o, fds) : -EPROTO;

	close_all(fds, n);
	if (r == -EAGAIN)
		say_no(d, o->number, EAGAIN,
		       "busy: too many requests are being prepared");
	else if (r < 0)
		say_no(d, o->number, -r,
		       r == -EPROTO ? "a request comes with two descriptors"
				    : "a request could not be prepared: no "
				      "process for it");
}

static int start_image(struct daemon *d, const struct order *o, const int *fds)
{
	struct errand *e = find_free(d, ERRAND_IMAGE, MAX_IMAGES);
	pid_t pid;

	if (!e)
		return -EAGAIN;
	pid = fork();
	if (pid == 0)
		image_run_child(d, fds);
	if (pid < 0)
		return -errno;
	(void)begin(e, ERRAND_IMAGE, o->number, pid, 0);
	return 0;
}

void errand_image(struct daemon *d, const struct order *o, int *fds, int n)
{
	int r = n == 4 ? start_image(d, o, fds) : -EPROTO;

	close_all(fds, n);
	if (r == -EAGAIN)
		say_no(d, o->number, EAGAIN,
		       "busy: too many commands on images at once");
	else if (r < 0)
		say_no(d, o->number, -r,
		       r == -EPROTO
			       ? "a command on images has four descriptors"
			       : "a command on images could not be started");
}

/* Signing is the desk's; one at a time, and it may fail: the next one will. */
void errand_seal(struct daemon *d)
{
	struct errand *e = find_free(d, ERRAND_SEAL, 1);
	struct err unused = { 0 };
	char path[PATH_MAX];
	pid_t pid;

	if (!e || program_find("cordon-desk", path, sizeof(path), &unused) < 0)
		return;
	pid = fork();
	if (pid == 0) {
		const int none[] = { NO_FD };

		if (child_keep(none, 0) == 0)
			(void)execl(path, path, "audit", "seal", "--quiet",
				    (char *)NULL);
		_exit(127);
	}
	if (pid > 0)
		(void)begin(e, ERRAND_SEAL, 0, pid, SEAL_US);
}

/* ---- watching ---- */

static void take_answer(struct daemon *d, struct errand *e)
{
	struct order_answer a;
	int fds[IO_MAX_FDS];
	int n = 0;
	ssize_t len = io_recv(e->sock, &a, sizeof(a), MSG_DONTWAIT, fds, &n);

	if (len == -EAGAIN)
		return;
	fd_close(&e->sock);
	if (len != sizeof(a))
		return;
	a.type = ORDER_ANSWER;
	a.number = e->number;
	e->is_answered = true;
	(void)answer_send(d->front, &a, fds, n);
	close_all(fds, n);
}

static void end_errand(struct daemon *d, struct errand *e, int status)
{
	struct order_answer a = { .type = ORDER_ANSWER, .number = e->number };

	if (e->kind == ERRAND_IMAGE) {
		a.exit_code = WIFEXITED(status) ? WEXITSTATUS(status)
						: 128 + WTERMSIG(status);
		(void)answer_send(d->front, &a, NULL, 0);
	} else if (e->kind == ERRAND_PREPARE && !e->is_answered) {
		say_no(d, e->number, e->deadline == 0 ? ETIMEDOUT : EIO,
		       e->deadline == 0 ? "the request took too long to prepare"
					: "what prepares the request died");
	}
	fd_close(&e->sock);
	fd_close(&e->pidfd);
	memset(e, 0, sizeof(*e));
}

void errand_look(struct daemon *d, struct errand *e)
{
	int status = 0;

	if (e->kind == ERRAND_NONE)
		return;
	if (e->sock >= 0)
		take_answer(d, e);
	if (waitpid(e->pid, &status, WNOHANG) == e->pid) {
		if (e->sock >= 0)
			take_answer(d, e);
		end_errand(d, e, status);
	}
}

void errand_late(struct daemon *d, int64_t now)
{
	for (int i = 0; i < MAX_ERRANDS; i++) {
		struct errand *e = &d->errands[i];

		if (e->kind == ERRAND_NONE || e->deadline > now)
			continue;
		/* Its end is seen next; 0 says why. */
		(void)kill(e->pid, SIGKILL);
		e->deadline = e->is_answered ? INT64_MAX : 0;
		while (waitpid(e->pid, NULL, 0) < 0 && errno == EINTR)
			;
		end_errand(d, e, SIGKILL);
	}
}

int64_t errand_next(const struct daemon *d)
{
	int64_t next = INT64_MAX;

	for (int i = 0; i < MAX_ERRANDS; i++)
		if (d->errands[i].kind != ERRAND_NONE)
			next = MIN(next, d->errands[i].deadline);
	return next;
}

void errands_kill(struct daemon *d)
{
	for (int i = 0; i < MAX_ERRANDS; i++) {
		struct errand *e = &d->errands[i];

		if (e->kind == ERRAND_NONE)
			continue;
		/* A seal is the ledger's, and ends soon by itself. */
		if (e->kind != ERRAND_SEAL)
			(void)kill(e->pid, SIGKILL);
		while (waitpid(e->pid, NULL, 0) < 0 && errno == EINTR)
			;
		fd_close(&e->sock);
		fd_close(&e->pidfd);
		memset(e, 0, sizeof(*e));
	}
}
