/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The init of a box that stays: serves the keeper.
 *
 * Theory of operation. For each program there is one child, made by clone3(2)
 * in the program's own group (or, in version 1, moving there first). Whatever
 * can take long or go wrong is done in that child, behind the wall and in its
 * group: laying down files, entering the working directory, the exec itself.
 * What went wrong it tells over a pipe, which the exec closes.
 *
 * Nobody in the box can hold init up. It waits only for the keeper, for pipes
 * of its own children and for SIGCHLD; it is not dumpable, and so are its
 * children until their exec, so that no program of the same user can look
 * into them (ptrace(2), proc(5)); as pid 1 it gets no signal that it does not
 * handle. When no process or no memory is left, a program is not started, and
 * that is what is told.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/util.h"
#include "init/init.h"
#include "os/caps.h"
#include "os/seccomp.h"
#include "os/uapi.h"

#ifndef TIOCGPTPEER
#define TIOCGPTPEER 0x5441
#endif

#define CHILDREN 2048
/* Where no process can be had: how often it is tried again, and after what. */
#define RETRIES  50
#define RETRY_NS 200000

enum { EV_SOCK, EV_SIGNAL, EV_CHILD }; /* and from there on their index */

struct child {
	uint32_t number; /* 0: free */
	bool is_files;
	bool is_last;   /* we end with it */
	bool has_begun; /* and that was told */
	bool has_ended; /* by its report, before its death */
	pid_t pid;
	int report;
	int go;  /* on hold: its streams go there */
	int tty; /* our side, until it is handed on */
	int64_t started;
	struct report said;
};

static struct child children[CHILDREN];
static int top; /* children from here on were never used */
static int loop = NO_FD;

static struct child *find(uint32_t number)
{
	for (int i = 0; i < top; i++)
		if (children[i].number == number && number)
			return &children[i];
	return NULL;
}

static struct child *take_free(void)
{
	for (int i = 0; i < CHILDREN; i++) {
		struct child *c = &children[i];

		if (c->number)
			continue;
		if (i >= top)
			top = i + 1;
		memset(c, 0, sizeof(*c));
		c->report = NO_FD;
		c->go = NO_FD;
		c->tty = NO_FD;
		return c;
	}
	return NULL;
}

static void tell(struct wire_told *told, const int *fds, int n)
{
	if (io_send(INIT_SOCK, told, sizeof(*told), fds, n) < 0)
		_exit(0);
}

static void watch(int fd, uint32_t what)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u32 = what };

	if (epoll_ctl(loop, EPOLL_CTL_ADD, fd, &ev) < 0)
		_exit(0); /* the keeper sees an end without a word */
}

/* Not only closed: a child that is just being born may have it too. */
static void close_report(struct child *c)
{
	if (c->report >= 0)
		(void)epoll_ctl(loop, EPOLL_CTL_DEL, c->report, NULL);
	fd_close(&c->report);
}

/* What became of a program that was never one. */
static void tell_failure(uint32_t number, int code)
{
	struct wire_told told = { .type = WIRE_DONE, .exec = number };

	/* No process or no memory was left: a limit of the box. */
	if (code == EAGAIN || code == ENOMEM) {
		told.outcome.exec_errno = code;
	} else {
		(void)err_errno(&told.outcome.err, code,
				"start a process in the box");
		(void)err_stage(&told.outcome.err, "init");
	}
	tell(&told, NULL, 0);
}

static void begun(struct child *c)
{
	struct wire_told told = { .type = WIRE_BEGUN, .exec = c->number };

	if (c->has_begun || c->is_files)
		return;
	c->has_begun = true;
	c->started = clock_us();
	tell(&told, &c->tty, c->tty >= 0);
	fd_close(&c->tty);
}

/* Reads one report; false when there is none yet, or no more. */
static bool hear_report(struct child *c)
{
	struct report rep = { 0 };
	ssize_t n;

	if (c->report < 0)
		return false;
	n = read(c->report, &rep, sizeof(rep));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n == (ssize_t)sizeof(rep)) {
		if (rep.kind == REPORT_BEGUN) {
			begun(c);
		} else {
			c->said = rep;
			c->has_ended = true;
		}
		return true;
	}
	/* Closed: by the exec, or by an end that was told before. */
	if (!c->has_ended)
		begun(c);
	close_report(c);
	return false;
}

static void ended(const struct init *in, struct child *c, int status)
{
	struct wire_told told = { .type = WIRE_DONE, .exec = c->number };
	struct wire_outcome *o = &told.outcome;

	while (hear_report(c))
		;
	close_report(c);
	fd_close(&c->go);
	fd_close(&c->tty);
	o->wait_status = status;
	if (c->has_ended) {
		o->exec_errno = c->said.exec_errno;
		o->err = c->said.err;
		o->step = c->said.step;
		if (c->said.kind == REPORT_ENDED)
			o->wait_status = c->said.wait_status;
	}
	if (c->started)
		o->wall_us = (uint64_t)(clock_us() - c->started);
	/* Of the whole box: a program has no network of its own. */
	if (init_has_gate(in) && !c->is_files)
		net_count(o);
	tell(&told, NULL, 0);
	c->number = 0;
}

static void reap(const struct init *in)
{
	bool is_over = false;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (int i = 0; i < top; i++)
			if (children[i].number && children[i].pid == pid) {
				is_over = is_over || children[i].is_last;
				ended(in, &children[i], status);
			}
	/* The kernel ends what else is in the box. */
	if (is_over)
		_exit(0);
}

/* In the child */

struct start {
	struct init *in;
	const struct wire_ask *ask;
	const int *fds;
	int n_fds;
	int tty;
	int report;
	int go;
};

/* The last descriptors are groups of version 1; the first may be the other. */
static int join_groups(const struct start *s)
{
	int at = s->n_fds - (int)s->ask->n_groups;

	if (s->ask->flags & WIRE_ASK_BIRTH)
		at++;
	for (; at < s->n_fds; at++)
		if (write(s->fds[at], "0", 1) != 1)
			return err_errno(&s->in->err, errno, "join a cgroup");
	return 0;
}

/* Until it is wanted, with what the keeper sends then. */
static int wait_for_streams(const struct start *s)
{
	int fds[IO_MAX_FDS];
	int n = 0;
	char go;

	if (io_recv(s->go, &go, 1, 0, fds, &n) != 1 || n != 3)
		return err_set(&s->in->err, EPROTO, "its streams did not come");
	memcpy(s->in->stdio, fds, sizeof(s->in->stdio));
	s->in->tty = NO_FD;
	return 0;
}

static int take_streams(const struct start *s)
{
	struct init *in = s->in;
	bool tty = s->ask->flags & WIRE_ASK_TTY;

	if (s->ask->flags & WIRE_ASK_HOLD)
		return wait_for_streams(s);
	for (int i = 0; i < 3; i++) {
		in->stdio[i] = tty ? ioctl(s->tty, TIOCGPTPEER,
					   O_RDWR | O_NOCTTY | O_CLOEXEC)
				   : s->fds[1 + i];
		if (in->stdio[i] < 0)
			return err_errno(&in->err, errno, "open its terminal");
	}
	/* Only whether there is one is looked at. */
	in->tty = tty ? in->stdio[0] : NO_FD;
	return 0;
}

/* As the program itself could: where it may not, entering it says so. */
static void make_workdir(const char *path)
{
	char part[4096];

	for (size_t i = 1; path[0] == '/' && i < sizeof(part); i++) {
		if (path[i] && path[i] != '/')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		(void)mkdir(part, 0755);
		if (!path[i])
			return;
	}
}

static int prepare(const struct start *s)
{
	struct init *in = s->in;
	uint64_t size = 0;

	in->job = s->ask->exec;
	if (join_groups(s) < 0)
		return err_stage(&in->err, "cgroup");
	if (seccomp_install(init_has_gate(in), &in->err) < 0)
		return err_stage(&in->err, "seccomp");
	in->work = init_map(in, s->fds[0], &size);
	if (!in->work || wire_check_work(in->work, size, &in->err) < 0)
		return err_stage(&in->err, "work");
	if (take_streams(s) < 0)
		return err_stage(&in->err, "tty");
	if (users_become(in) < 0)
		return err_stage(&in->err, "user");
	make_workdir(wire_str(&in->work->blob, in->work->workdir));
	return stages_run(in, STAGES_WORK);
}

static void be_program(const struct start *s) __attribute__((noreturn));
static void be_program(const struct start *s)
{
	struct report rep = { .kind = REPORT_FAILED };

	/* What the keeper hears, init alone says. */
	(void)close(INIT_SOCK);
	if (prepare(s) == 0)
		steps_become(s->in, s->report);
	rep.err = s->in->err;
	(void)!write(s->report, &rep, sizeof(rep));
	_exit(127);
}

static void be_files(const struct start *s) __attribute__((noreturn));
static void be_files(const struct start *s)
{
	struct changes c = s->in->changes;
	int sock = s->fds[0];
	int *const ours[] = { &sock, &c.upper[0], &c.lower[0], &c.upper[1],
			      &c.lower[1] };
	int have[ARRAY_SIZE(ours)];

	if (join_groups(s) < 0 || seccomp_install(false, &s->in->err) < 0 ||
	    caps_keep_only(CAPS_OVER_OWNERS) < 0)
		_exit(1);
	/* Out of the way first, or one would be written over by another. */
	for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
		have[i] = *ours[i] < 0 ? NO_FD
				       : fcntl(*ours[i], F_DUPFD_CLOEXEC, 64);
	for (size_t i = 0; i < ARRAY_SIZE(ours); i++) {
		*ours[i] = have[i] < 0 ? NO_FD : dup2(have[i], 3 + (int)i);
		if (*ours[i] < 0)
			(void)close(3 + (int)i);
	}
	if (sock < 0 || sys_close_range(3 + ARRAY_SIZE(ours), ~0U) < 0)
		_exit(1);
	files_serve(sock, &c);
}

/* In init */

static int open_tty(const struct init *in, const struct wire_ask *ask)
{
	const struct winsize size = { .ws_row = ask->rows,
				      .ws_col = ask->cols };
	_cleanup_fd_ int tty = openat(in->pts, "ptmx",
				      O_RDWR | O_NOCTTY | O_CLOEXEC);
	int unlock = 0;

	if (tty < 0 || ioctl(tty, TIOCSPTLCK, &unlock) < 0 ||
	    ioctl(tty, TIOCSWINSZ, &size) < 0)
		return -errno;
	return take_fd(&tty);
}

/* As fork(2), into the group that came with the request. */
static pid_t bear(const struct start *s)
{
	struct uapi_clone_args args = { .exit_signal = SIGCHLD };

	if (s->ask->flags & WIRE_ASK_BIRTH) {
		args.flags = UAPI_CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)
				      s->fds[s->n_fds - (int)s->ask->n_groups];
	}
	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

static int start_child(struct start *s, struct child *c)
{
	_cleanup_fd_ int go = NO_FD;
	int pair[2] = { NO_FD, NO_FD };

	if ((s->ask->flags & WIRE_ASK_TTY) &&
	    (c->tty = open_tty(s->in, s->ask)) < 0)
		return c->tty;
	if (s->ask->flags & WIRE_ASK_HOLD) {
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
			       pair) < 0)
			return -errno;
		c->go = pair[0];
		go = pair[1];
		s->go = go;
	}
	if (pipe2(pair, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	s->tty = c->tty;
	s->report = pair[1];
	c->report = pair[0];
	c->pid = bear(s);
	if (c->pid == 0 && c->is_files)
		be_files(s);
	if (c->pid == 0)
		be_program(s);
	(void)close(pair[1]);
	if (c->pid < 0)
		return -errno;
	c->number = s->ask->exec;
	watch(c->report, EV_CHILD + (uint32_t)(c - children));
	return 0;
}

static void drop(struct child *c)
{
	fd_close(&c->report);
	fd_close(&c->go);
	fd_close(&c->tty);
}

/*
 * Who was killed counts until we reap it, and the end of the last program was
 * told when nobody in its group was alive any more: a moment before that.
 */
static int start_soon(struct start *s, struct child *c)
{
	const struct timespec rest = { .tv_nsec = RETRY_NS };

	for (int i = 0;; i++) {
		int r = start_child(s, c);

		if (r == 0)
			return 0;
		drop(c);
		if (r != -EAGAIN || i == RETRIES)
			return r;
		if (i > 0)
			(void)nanosleep(&rest, NULL);
		reap(s->in);
	}
}

static void start(struct init *in, const struct wire_ask *ask, const int *fds,
		  int n_fds)
{
	struct start s = { in, ask, fds, n_fds, NO_FD, NO_FD, NO_FD };
	bool is_files = ask->type == WIRE_FILES;
	bool is_early = ask->flags & (WIRE_ASK_TTY | WIRE_ASK_HOLD);
	int need = is_files || is_early ? 1 : 4;
	struct child *c = take_free();
	int r;

	if (!c || !ask->exec || ask->n_groups > WIRE_MAX_TASKS ||
	    n_fds != need + (int)ask->n_groups) {
		tell_failure(ask->exec, c ? EPROTO : EAGAIN);
		return;
	}
	c->is_files = is_files;
	c->is_last = ask->flags & WIRE_ASK_LAST;
	r = start_soon(&s, c);
	if (r < 0)
		tell_failure(ask->exec, -r);
}

/* It reads nothing else, so there is room; if it is dead, that is told. */
static void let(struct child *c, const int *fds, int n_fds)
{
	if (!c || c->go < 0)
		return;
	(void)io_send_now(c->go, "", 1, fds, n_fds);
	fd_close(&c->go);
}

/* The signals that a process catches, as proc(5) shows them. */
static uint64_t caught_by(pid_t pid)
{
	char path[32];
	char text[4096];
	const char *at;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (io_read_file(AT_FDCWD, path, text, sizeof(text)) <= 0)
		return 0;
	at = strstr(text, "\nSigCgt:");
	return at ? strtoull(at + strlen("\nSigCgt:"), NULL, 16) : 0;
}

static void tell_caught(const struct wire_ask *ask)
{
	struct wire_told told = { .type = WIRE_CAUGHT,
				  .exec = ask->exec,
				  .token = ask->token };
	const struct child *c = find(ask->exec);

	told.mask = c ? caught_by(c->pid) : 0;
	tell(&told, NULL, 0);
}

/* Once; what cannot be given away stays here, where nobody serves it. */
static void give_sockets(struct init *in, int *fds, int n_fds)
{
	if (n_fds != 1 || in->n_sockets == 0)
		return;
	in->gate = take_fd(&fds[0]);
	if (stage_gate(in) < 0)
		in->err = (struct err){ 0 };
}

static void hear(struct init *in)
{
	struct wire_ask ask;
	int fds[IO_MAX_FDS];
	int n_fds = 0;
	ssize_t n = io_recv(INIT_SOCK, &ask, sizeof(ask), MSG_DONTWAIT, fds,
			    &n_fds);
	const struct child *c;

	if (n == -EAGAIN)
		return;
	/* The keeper's end is ours too. */
	if (n != (ssize_t)sizeof(ask))
		_exit(0);
	switch (ask.type) {
	case WIRE_EXEC:
	case WIRE_FILES:
		start(in, &ask, fds, n_fds);
		break;
	case WIRE_LET:
		let(find(ask.exec), fds, n_fds);
		break;
	case WIRE_SIGNAL:
		c = find(ask.exec);
		if (c)
			users_kill(c->pid, (int)ask.value);
		break;
	case WIRE_KILL:
		c = find(ask.exec);
		session_kill_tree(c ? c->pid : 0);
		break;
	case WIRE_CAUGHT:
		tell_caught(&ask);
		break;
	case WIRE_GATE:
		give_sockets(in, fds, n_fds);
		break;
	default:
		_exit(0);
	}
	for (int i = 0; i < n_fds; i++)
		fd_close(&fds[i]);
}

static void say_ready(const struct init *in)
{
	const int *lower = &in->changes.lower[CHANGES_ROOT];
	struct wire_told told = { .type = WIRE_READY };

	told.outcome.not_enforced = in->not_enforced;
	told.outcome.landlock_abi = in->landlock_abi;
	/* Held there as well, our end does not wait until it is taken down. */
	tell(&told, lower, *lower >= 0);
}

void session_serve(struct init *in)
{
	struct epoll_event ev[16];
	struct signalfd_siginfo info;
	sigset_t chld;
	int signals;

	(void)sigemptyset(&chld);
	(void)sigaddset(&chld, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &chld, NULL);
	signals = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
	loop = epoll_create1(EPOLL_CLOEXEC);
	if (signals < 0 || loop < 0)
		_exit(0);
	watch(INIT_SOCK, EV_SOCK);
	watch(signals, EV_SIGNAL);
	say_ready(in);
	for (;;) {
		int n = epoll_wait(loop, ev, ARRAY_SIZE(ev), -1);

		for (int i = 0; i < n; i++) {
			if (ev[i].data.u32 == EV_SOCK) {
				hear(in);
			} else if (ev[i].data.u32 == EV_SIGNAL) {
				(void)!read(signals, &info, sizeof(info));
				reap(in);
			} else {
				(void)hear_report(
					&children[ev[i].data.u32 - EV_CHILD]);
			}
		}
	}
}
