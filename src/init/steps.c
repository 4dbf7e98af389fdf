/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Running the spec's steps, one after the other, as the reaper of the box.
 *
 * A block is one or more steps: a compiler, then what it made; or the programs
 * of a command line, joined by && || ; and pipes. A pipeline is over when all
 * its programs are, and ends as its last one did; the block ends as the last
 * pipeline did that was run. Between two blocks everything that is still
 * running is killed, and only then the next one's file is laid down. After the
 * last one init says how it ended and exits, and the kernel ends what is left
 * of the pid namespace with it.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/util.h"
#include "init/feed.h"
#include "init/init.h"
#include "os/slice.h"
#include "os/uapi.h"

#define MAX_STRINGS 8192

static char *argv_space[MAX_STRINGS];
static char *env_space[MAX_STRINGS];

struct runner {
	struct init *in;
	int signals; /* signalfd for SIGCHLD */
	struct wire_msg msg;
	int64_t started;
	int stdio[3];               /* of the program that is started next */
	struct feed feed;           /* what the block brings for it to read */
	bool leads;                 /* it is the first of its pipeline */
	pid_t pids[WIRE_MAX_STEPS]; /* of the pipeline that runs */
	uint32_t n_pids;
	bool is_ended; /* the keeper has ended this block */
	bool is_part;  /* one of several programs: others are not ours */
	int report;    /* closed by a successful exec, NO_FD: there is none */
	/*
	 * Written by the child before it becomes the program (vfork): why it
	 * could not be executed, or else what could not be made for it.
	 */
	volatile int exec_errno;
	struct err err;
};

static int vector(const struct wire_work *work, struct wire_vec vec,
		  char **space)
{
	const char *p = (const char *)work + vec.off;

	if (vec.count >= MAX_STRINGS)
		return -E2BIG;
	for (uint32_t i = 0; i < vec.count; i++) {
		space[i] = (char *)p;
		p += strlen(p) + 1;
	}
	space[vec.count] = NULL;
	return 0;
}

/* The kernel says EACCES of a directory too. */
static int why_denied(const char *name, int error)
{
	struct stat st;

	if (error == EACCES && stat(name, &st) == 0 && S_ISDIR(st.st_mode))
		return EISDIR;
	return error;
}

/* Looks for the program along PATH, as execvp(3) does; returns an errno. */
static int exec_along_path(const struct wire_work *work)
{
	const char *path = wire_str(&work->blob, work->path);
	const char *name = argv_space[0];
	bool denied = false;
	char full[4096];

	if (strchr(name, '/')) {
		(void)execve(name, argv_space, env_space);
		return why_denied(name, errno);
	}
	while (*path) {
		size_t len = strcspn(path, ":");
		size_t name_len = strlen(name);

		if (len > 0 && len + name_len + 2 < sizeof(full)) {
			memcpy(full, path, len);
			full[len] = '/';
			memcpy(full + len + 1, name, name_len + 1);
			(void)execve(full, argv_space, env_space);
			if (errno == EACCES)
				denied = true;
			else if (errno != ENOENT && errno != ENOTDIR)
				return errno;
		}
		path += len + (path[len] == ':');
	}
	return denied ? EACCES : ENOENT;
}

/* To 3, where it alone is spared when all others are closed. */
static int move_report(int fd)
{
	if (fd != 3 && dup2(fd, 3) < 0)
		return -errno;
	return fcntl(3, F_SETFD, FD_CLOEXEC) < 0 ? -errno : 3;
}

static void report_failure(int fd, int error, const struct err *err)
{
	struct report rep = { .kind = REPORT_FAILED, .exec_errno = error };

	if (err)
		rep.err = *err;
	(void)!write(fd, &rep, sizeof(rep));
}

static int in_start(struct runner *r, const char *what)
{
	(void)err_errno(&r->err, errno ? errno : EIO, "%s", what);
	return err_stage(&r->err, "start");
}

/* The streams and nothing else; a session and a terminal of its own. */
static int own_streams(struct runner *r)
{
	const struct init *in = r->in;

	/* Else a signal to its group would reach others, and theirs it. */
	if (setsid() < 0)
		return in_start(r, "start a session of its own");
	if (in->tty >= 0 && r->leads && ioctl(in->stdio[0], TIOCSCTTY, 0) < 0)
		return in_start(r, "take the terminal");
	/* Those of init are above 2, so none is lost on the way. */
	for (int i = 0; i < 3; i++)
		if (dup2(r->stdio[i], i) < 0)
			return in_start(r, "lay its streams");
	if (r->report >= 0) {
		int report = move_report(r->report);

		if (report < 0)
			return in_start(r, "keep the report");
		r->report = report;
	}
	if (sys_close_range(r->report >= 0 ? 4 : 3, ~0U) < 0)
		return in_start(r, "close what is not its own");
	return 0;
}

/* What the program has of its own, but for what it executes. */
static int own_self(struct runner *r)
{
	sigset_t none;

	slice_usual();
	if (own_streams(r) < 0)
		return -r->err.code;
	(void)sigemptyset(&none);
	/* The only one that init changed; the keeper reset the others. */
	if (signal(SIGPIPE, SIG_DFL) == SIG_ERR ||
	    sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		return in_start(r, "reset its signals");
	errno = -limits_lower(r->in);
	return errno ? in_start(r, "lower its limits") : 0;
}

/*
 * In the child, with the parent's memory (unless there is a report to write);
 * ends in the program or in _exit.
 */
static void become(struct runner *r) __attribute__((noreturn));
static void become(struct runner *r)
{
	if (own_self(r) == 0) {
		int error = exec_along_path(r->in->work);

		r->exec_errno = error ? error : ENOEXEC;
	}
	if (r->report >= 0)
		report_failure(r->report, r->exec_errno, &r->err);
	_exit(127);
}

static bool has_no_start(const struct runner *r)
{
	return r->exec_errno || r->err.code;
}

/* No process or no memory was left is a limit of the box, no fault of it. */
static void not_forked(struct runner *r)
{
	if (errno == EAGAIN || errno == ENOMEM)
		r->exec_errno = errno;
	else
		(void)in_start(r, "make a process");
}

static pid_t start(struct runner *r, uint32_t step)
{
	const struct wire_work *work = r->in->work;
	pid_t pid;

	if (vector(work, work->steps[step].argv, argv_space) < 0 ||
	    vector(work, work->env, env_space) < 0) {
		r->exec_errno = E2BIG;
		return -1;
	}
	/*
	 * vfork: the child borrows our memory until it is the program, so it
	 * can say in it why it could not become that.
	 */
	pid = vfork();
	if (pid == 0)
		become(r);
	if (pid < 0)
		not_forked(r);
	return pid;
}

static void pass_on(const struct runner *r, int signal)
{
	for (uint32_t i = 0; i < r->n_pids; i++)
		if (r->pids[i] > 0)
			(void)kill(r->pids[i], signal);
}

/* A message, or the end of the keeper, which is ours too. */
static uint32_t hear(void)
{
	struct wire_head head = { 0 };
	ssize_t n = io_recv(INIT_SOCK, &head, sizeof(head), 0, NULL, NULL);

	if (n < (ssize_t)sizeof(head))
		_exit(0);
	return head.type;
}

/* Reaps what there is; false when all of the pipeline has ended. */
static bool reap(struct runner *r, int *ret_status)
{
	bool more = false;
	int failures = 0;

	for (;;) {
		int status;
		pid_t pid = waitpid(-1, &status, WNOHANG);

		/* Its signal is read already: nothing would wake us again. */
		if (pid < 0 && errno != ECHILD && failures++ < 3)
			continue;
		if (pid <= 0)
			break;
		for (uint32_t i = 0; i < r->n_pids; i++) {
			if (r->pids[i] != pid)
				continue;
			r->pids[i] = 0;
			if (i + 1 == r->n_pids)
				*ret_status = status;
		}
	}
	for (uint32_t i = 0; i < r->n_pids; i++)
		more = more || r->pids[i] > 0;
	return more;
}

/* The time of a block is over; none of its further programs is started. */
static void obey(struct runner *r, uint32_t type)
{
	if (type == WIRE_TERM)
		pass_on(r, SIGTERM);
	else if (type == WIRE_END_BLOCK)
		(void)kill(-1, SIGKILL);
	else
		return;
	r->is_ended = true;
}

static int wait_for(struct runner *r)
{
	struct signalfd_siginfo info;
	struct pollfd fds[] = {
		{ .fd = r->signals, .events = POLLIN },
		{ .fd = r->is_part ? NO_FD : INIT_SOCK, .events = POLLIN },
		{ .fd = r->in->witness, .events = POLLIN },
		{ .fd = r->feed.fd, .events = POLLOUT },
	};
	int status = 0;

	while (reap(r, &status)) {
		if (poll(fds, ARRAY_SIZE(fds), -1) < 0)
			continue;
		if (fds[0].revents &&
		    read(r->signals, &info, sizeof(info)) == sizeof(info) &&
		    info.ssi_signo != SIGCHLD)
			pass_on(r, (int)info.ssi_signo);
		if (fds[1].revents)
			obey(r, hear());
		if (fds[2].revents && witness_refuse(r->in->witness))
			r->msg.outcome.net_refused++;
		if (fds[3].revents) {
			feed_more(&r->feed);
			fds[3].fd = r->feed.fd;
		}
	}
	return status;
}

static void kill_the_rest(const struct runner *r)
{
	if (r->is_part)
		pass_on(r, SIGKILL);
	/* Whoever is in the box descends from us: no child, nobody. */
	else if (waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD)
		return;
	else
		(void)kill(-1, SIGKILL);
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		;
}

/* Starts one program of a pipeline; its output goes into a pipe or out. */
static void start_joined(struct runner *r, uint32_t step, bool is_last)
{
	int pair[2] = { NO_FD, NO_FD };
	pid_t pid;

	if (!is_last && pipe2(pair, O_CLOEXEC) < 0) {
		(void)in_start(r, "make a pipe");
		return;
	}
	r->stdio[1] = is_last ? r->in->stdio[1] : pair[1];
	r->stdio[2] = r->in->stdio[2];
	pid = start(r, step);
	if (r->stdio[0] != r->in->stdio[0])
		(void)close(r->stdio[0]);
	fd_close(&pair[1]);
	r->stdio[0] = pair[0];
	r->leads = false;
	if (pid > 0)
		r->pids[r->n_pids++] = pid;
}

/* What the first of a pipeline reads: its own, or what all of them read. */
static void lay_input(struct runner *r, uint32_t step)
{
	const struct wire_work *work = r->in->work;
	int fd;

	r->stdio[0] = r->in->stdio[0];
	if (!(work->steps[step].flags & WIRE_STEP_INPUT))
		return;
	fd = feed_open(&r->feed, work, &work->steps[step]);
	errno = fd < 0 ? -fd : 0;
	if (fd < 0)
		(void)in_start(r, "make a pipe for its input");
	else
		r->stdio[0] = fd;
}

/* Runs the steps from `first` to `last` at once; then they are all over. */
static void run_pipeline(struct runner *r, uint32_t first, uint32_t last)
{
	struct wire_outcome *o = &r->msg.outcome;

	r->n_pids = 0;
	r->exec_errno = 0;
	r->err = (struct err){ 0 };
	r->leads = true;
	lay_input(r, first);
	for (uint32_t i = first; !has_no_start(r) && i <= last; i++) {
		o->step = i;
		start_joined(r, i, i == last);
	}
	o->exec_errno = r->exec_errno;
	o->err = r->err;
	if (has_no_start(r)) {
		/* The others have nobody to talk to. */
		if (r->stdio[0] >= 0 && r->stdio[0] != r->in->stdio[0])
			(void)close(r->stdio[0]);
		feed_close(&r->feed);
		kill_the_rest(r);
		return;
	}
	o->wait_status = wait_for(r);
	feed_close(&r->feed);
}

static bool is_wanted(enum wire_join join, int status)
{
	switch (join) {
	case WIRE_IF_OK:
		return status == 0;
	case WIRE_IF_NOT:
		return status != 0;
	case WIRE_ALWAYS:
	case WIRE_BY_PIPE:
		break;
	}
	return true;
}

static bool ends_block(const struct wire_work *work, uint32_t step)
{
	return step + 1 >= work->n_steps ||
	       work->steps[step].flags & WIRE_STEP_END_BLOCK;
}

/* Runs the block that starts at `step`; returns the last step it tried. */
static uint32_t run_block(struct runner *r, uint32_t step)
{
	const struct wire_work *work = r->in->work;
	struct wire_outcome *o = &r->msg.outcome;
	bool is_first = true;

	for (;;) {
		uint32_t last = step;

		while (!ends_block(work, last) &&
		       work->steps[last + 1].join == WIRE_BY_PIPE)
			last++;
		if (is_first ||
		    is_wanted(work->steps[step].join, o->wait_status))
			run_pipeline(r, step, last);
		is_first = false;
		if (has_no_start(r) || r->is_ended || ends_block(work, last))
			break;
		step = last + 1;
	}
	o->wall_us = (uint64_t)(clock_us() - r->started);
	return o->step;
}

/* Whether what the block needs is there; else why not is in the outcome. */
static bool lay_files(struct runner *r, uint32_t step)
{
	struct init *in = r->in;

	if (in->work->steps[step].files.count == 0 ||
	    records_lay(in, &in->work->blob, in->work->steps[step].files,
			false) == 0)
		return true;
	(void)err_stage(&in->err, "files");
	r->msg.outcome.err = in->err;
	r->msg.outcome.step = step;
	return false;
}

static bool has_failed(const struct runner *r)
{
	const struct wire_outcome *o = &r->msg.outcome;

	return o->err.code || o->wait_status || o->exec_errno || r->is_ended;
}

static void say(struct runner *r, uint32_t type, const int *fds, int n_fds)
{
	r->msg.type = type;
	r->msg.job = r->in->job;
	r->msg.outcome.not_enforced = r->in->not_enforced;
	r->msg.outcome.landlock_abi = r->in->landlock_abi;
	if (init_has_gate(r->in) && type != WIRE_STARTED)
		net_count(&r->msg.outcome);
	if (io_send(INIT_SOCK, &r->msg, sizeof(r->msg), fds, n_fds) < 0)
		_exit(0);
}

/* The first step of the block after the one that `step` is in. */
static uint32_t block_after(const struct wire_work *work, uint32_t step)
{
	while (step < work->n_steps &&
	       !(work->steps[step].flags & WIRE_STEP_END_BLOCK))
		step++;
	return step + 1;
}

int stage_workdir(struct init *in)
{
	const char *dir = wire_str(&in->work->blob, in->work->workdir);
	static char now[4096];

	if (chdir(dir) < 0)
		return err_errno(&in->err, errno,
				 "enter the working directory '%s' (--workdir "
				 "names another)",
				 dir);
	/*
	 * getcwd(2) says "(unreachable)..." for a directory outside the root,
	 * which is how a leaked descriptor would look (CVE-2024-21626).
	 */
	if (!getcwd(now, sizeof(now)) || now[0] != '/')
		return err_set(&in->err, EPERM,
			       "the working directory '%s' is not in the box",
			       dir);
	return 0;
}

void steps_run(struct init *in)
{
	static struct runner r;
	bool go_on = in->work->blob.flags & WIRE_CONTINUE;
	uint32_t step = 0;
	sigset_t chld;

	r.in = in;
	r.report = NO_FD;
	r.feed.fd = NO_FD;
	(void)sigemptyset(&chld);
	(void)sigaddset(&chld, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &chld, NULL);
	r.signals = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
	if (r.signals < 0) {
		(void)in_start(&r, "watch for its end");
		r.msg.outcome.err = r.err;
		say(&r, WIRE_FAILED, NULL, 0);
		_exit(1);
	}
	for (;;) {
		uint32_t next;

		memset(&r.msg, 0, sizeof(r.msg));
		r.is_ended = false;
		if (lay_files(&r, step)) {
			r.started = clock_us();
			say(&r, WIRE_STARTED, &in->tty, in->tty >= 0);
			step = run_block(&r, step);
		}
		next = block_after(in->work, step);
		if (next >= in->work->n_steps || (!go_on && has_failed(&r)))
			break;
		kill_the_rest(&r);
		say(&r, WIRE_BLOCK, NULL, 0);
		while (hear() != WIRE_NEXT)
			;
		step = next;
	}
	/* So that what the keeper reads now is what was used. */
	kill_the_rest(&r);
	say(&r, WIRE_ENDED, NULL, 0);
	_exit(0);
}

/* Only the streams and the report are left of what init has. */
static int keep_own(struct runner *r)
{
	struct init *in = r->in;
	int report;

	for (int i = 0; i < 3; i++)
		if (dup2(in->stdio[i], i) < 0)
			_exit(127);
	report = move_report(take_fd(&r->report));
	if (report < 0 || sys_close_range(4, ~0U) < 0)
		_exit(127);
	for (int i = 0; i < 3; i++)
		in->stdio[i] = i;
	in->tty = in->tty >= 0 ? 0 : NO_FD;
	return report;
}

/*
 * The steps of a program that is more than one process: this one stays as
 * their parent, passes signals on, and reports the end.
 */
static void run_part(struct runner *r) __attribute__((noreturn));
static void run_part(struct runner *r)
{
	const struct wire_work *work = r->in->work;
	const struct wire_outcome *o = &r->msg.outcome;
	bool go_on = work->blob.flags & WIRE_CONTINUE;
	struct report rep = { .kind = REPORT_BEGUN };
	int report = keep_own(r);
	uint32_t step = 0;
	sigset_t all;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	r->signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	r->is_part = true;
	(void)!write(report, &rep, sizeof(rep));
	while (r->signals >= 0 && step < work->n_steps) {
		memset(&r->msg, 0, sizeof(r->msg));
		if (lay_files(r, step))
			step = run_block(r, step);
		step = block_after(work, step);
		if (!go_on && has_failed(r))
			break;
		kill_the_rest(r);
	}
	kill_the_rest(r);
	rep.kind = REPORT_ENDED;
	rep.err = o->err;
	rep.exec_errno = o->exec_errno;
	rep.step = o->step;
	rep.wait_status = o->wait_status;
	(void)!write(report, &rep, sizeof(rep));
	_exit(0);
}

void steps_become(struct init *in, int report)
{
	static struct runner r;
	const struct wire_work *work = in->work;

	r.in = in;
	r.report = report;
	r.feed.fd = NO_FD;
	r.leads = true;
	memcpy(r.stdio, in->stdio, sizeof(r.stdio));
	if (work->n_steps > 1 || work->steps[0].flags & WIRE_STEP_INPUT)
		run_part(&r);
	if (vector(work, work->steps[0].argv, argv_space) < 0 ||
	    vector(work, work->env, env_space) < 0) {
		report_failure(report, E2BIG, NULL);
		_exit(127);
	}
	become(&r);
}
