/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/question.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/say.h"
#include "base/util.h"
#include "box/handle.h"
#include "os/caps.h"
#include "os/landlock.h"
#include "os/slice.h"
#include "os/uapi.h"
#include "serve/daemon.h"
#include "serve/gate-ask.h"

#define GRACE_US   2000000  /* for a desk that was told to end */
#define SLACK_US   10000000 /* after the time that the policy gives */
#define EXPIRE_US  600000000
#define SHORT_US   45000000
#define DESK_BYTES (512ULL << 20)

#ifndef F_GET_SEALS
#define F_GET_SEALS   1034
#define F_SEAL_SHRINK 2
#define F_SEAL_GROW   4
#define F_SEAL_WRITE  8
#endif

/* ---- the desk ---- */

/* Where it reads: its libraries, names of users, who asks; where they are. */
static int allow_places(struct landlock *l, const char *program,
			struct err *err)
{
	const struct {
		const char *path;
		int what;
	} places[] = {
		{ program, LANDLOCK_RUN },
		{ "/usr", LANDLOCK_RUN },
		{ "/lib", LANDLOCK_RUN },
		{ "/lib64", LANDLOCK_RUN },
		{ "/etc/passwd", 0 },
		{ "/etc/nsswitch.conf", 0 },
		{ "/etc/ld.so.cache", 0 },
		{ "/etc/localtime", 0 },
		{ "/proc", 0 },
		{ "/dev/null", 0 },
		{ "/dev/urandom", 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		_cleanup_fd_ int fd = open(places[i].path, O_PATH | O_CLOEXEC);
		struct stat st;

		if (fd < 0 || fstat(fd, &st) < 0)
			continue;
		if (landlock_allow(l, fd, S_ISDIR(st.st_mode), places[i].what,
				   err) < 0)
			return -err->code;
	}
	return 0;
}

/* It reads what a client wrote: the state is all that it may change. */
static int enter_landlock(const struct daemon *d, const char *program,
			  struct err *err)
{
	struct landlock l;

	if (landlock_abi() == 0)
		return 0; /* it has no capability, and reads no path */
	if (landlock_open(&l, err) < 0)
		return -err->code;
	if (allow_places(&l, program, err) < 0 ||
	    landlock_allow(&l, d->state_fd, true, LANDLOCK_WRITE, err) < 0) {
		fd_close(&l.fd);
		return -err->code;
	}
	return landlock_enter(&l, err);
}

static int shut_in(const struct daemon *d, const char *program, pid_t parent,
		   struct err *err)
{
	const struct rlimit memory = { DESK_BYTES, DESK_BYTES };

	if (setrlimit(RLIMIT_AS, &memory) < 0 || child_settle(parent) < 0)
		return err_errno(err, errno, "shut the desk in");
	if (enter_landlock(d, program, err) < 0 ||
	    (d->is_root ? caps_drop_all(err) : caps_drop_held(err)) < 0)
		return -err->code;
	/* When the parent dies the question is withdrawn. */
	if (prctl(PR_SET_PDEATHSIG, SIGINT) < 0 || getppid() != parent)
		return err_set(err, ESRCH, "the daemon is gone");
	return 0;
}

static void become_desk(const struct daemon *d, uid_t uid, pid_t asker,
			const int *fds, pid_t parent)
{
	static char name[] = "cordon-desk";
	static char path_env[] = "PATH=/usr/bin:/bin";
	static char lang_env[] = "LANG=C.UTF-8";
	char words[4][16] = { "approvals", "ask", "--peer" };
	char pid[16];
	char state[PATH_MAX + 32];
	char path[PATH_MAX];
	char *const env[] = { path_env, lang_env, state, NULL };
	char *const argv[] = { name,     words[0], words[1], words[2],
			       words[3], pid,      NULL };
	struct err err = { 0 };

	(void)snprintf(words[3], sizeof(words[3]), "%u", (unsigned int)uid);
	(void)snprintf(pid, sizeof(pid), "%d", (int)asker);
	(void)snprintf(state, sizeof(state), "CORDON_STATE_DIR=%s", d->state);
	(void)setsid();
	slice_usual();
	if (program_find(name, path, sizeof(path), &err) == 0 &&
	    (dup2(fds[0], 0) < 0 || dup2(fds[1], 1) < 0 || chdir("/") < 0))
		(void)err_errno(&err, errno, "arrange the desk");
	if (!err.code && shut_in(d, path, parent, &err) == 0) {
		(void)sys_close_range(3, ~0U);
		(void)execve(path, argv, env);
		(void)err_errno(&err, errno, "start '%s'", path);
	}
	say("%s", err.text);
	_exit(125);
}

/* ---- in the parent ---- */

static void tell_preparer(struct errand *e, const struct ask_end *end)
{
	/* One that does not take it, though it waits for it, will be late. */
	if (e->sock >= 0)
		(void)io_send_now(e->sock, end, sizeof(*end), NULL, 0);
}

static void refuse(struct errand *e, int code, const char *text)
{
	struct ask_end end = { 0 };

	(void)err_set(&end.err, code, "%s", text);
	tell_preparer(e, &end);
}

struct question *question_place(struct daemon *d, uid_t uid, bool is_gates,
				int most)
{
	struct question *place = NULL;
	int of_user = 0;
	int of_all = 0;

	for (int i = 0; i < ALL_QUESTIONS; i++) {
		struct question *q = &d->questions[i];

		if (q->pid == 0) {
			place = q;
		} else if (q->is_gates == is_gates) {
			of_user += q->uid == uid;
			of_all++;
		}
	}
	return of_user < most && of_all < (is_gates ? GATE_QUESTIONS
						    : MAX_QUESTIONS)
		       ? place
		       : NULL;
}

/* Nothing that could change, or make the desk wait for its end. */
static bool is_document(int fd)
{
	const int want = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK;
	int have = fcntl(fd, F_GET_SEALS);

	return have >= 0 && (have & want) == want;
}

int64_t question_deadline(const struct daemon *d)
{
	uint64_t expire = d->policy->expire_us ? d->policy->expire_us
					       : EXPIRE_US;
	uint64_t us = MIN(expire, (uint64_t)INT64_MAX / 4) + SLACK_US;

	return clock_us() + (int64_t)us;
}

static int64_t patience(const struct daemon *d, const struct ask *ask)
{
	uint64_t us = d->ask_wait_us ? d->ask_wait_us : SHORT_US;
	int64_t soon = clock_us() + (int64_t)MIN(us, (uint64_t)INT64_MAX / 4);
	int64_t end = question_deadline(d);

	return ask->is_short ? MIN(end, soon) : end;
}

int question_start(struct daemon *d, struct question *q, pid_t asker,
		   const int *fds)
{
	pid_t parent = getpid();
	pid_t pid = fork();

	if (pid == 0)
		become_desk(d, q->uid, asker, fds, parent);
	if (pid < 0)
		return -errno;
	q->pid = pid;
	q->pidfd = sys_pidfd_open(pid);
	return 0;
}

static int start_desk(struct daemon *d, struct errand *e, struct question *q,
		      const int *fds)
{
	*q = (struct question){
		.errand = e, .of.said = NO_FD, .uid = e->uid, .pidfd = NO_FD
	};
	return question_start(d, q, e->peer_pid, fds);
}

/* From here on it holds up nobody, here and in the front. */
static void stand_aside(struct daemon *d, struct errand *e, struct question *q)
{
	const struct order o = { .type = ORDER_ASKED, .number = e->number };

	e->kind = ERRAND_ASKED;
	e->question = q;
	e->deadline = INT64_MAX;
	(void)io_send(d->front, &o, sizeof(o), NULL, 0);
}

void question_open(struct daemon *d, struct errand *e, const struct ask *ask,
		   int *fds, int n)
{
	struct question *q = question_place(d, e->uid, false, QUESTIONS_PEER);

	if (n != 2 || !is_document(fds[0]) || e->uid == (uid_t)-1) {
		refuse(e, EPROTO, "a question has a document and a pipe");
	} else if (d->is_stopping) {
		refuse(e, EAGAIN, "busy: the daemon is stopping");
	} else if (!q) {
		refuse(e, EAGAIN,
		       "busy: too many requests of this user, or of all, wait "
		       "for a person's answer");
	} else if (start_desk(d, e, q, fds) < 0) {
		refuse(e, EAGAIN, "busy: no process to ask a person with");
	} else {
		q->deadline = patience(d, ask);
		stand_aside(d, e, q);
	}
	for (int i = 0; i < n; i++)
		fd_close(&fds[i]);
}

/* Tells the desk to end, and gives it a moment. */
static void tell_desk(struct question *q, int sig)
{
	(void)kill(q->pid, sig);
	q->told = sig;
	q->deadline = clock_us() + GRACE_US;
}

static void close_question(struct question *q, int status)
{
	struct errand *e = q->errand;
	struct ask_end end = { .status = status };

	if (q->why)
		(void)err_set(&end.err, ECANCELED, "%s", q->why);
	if (q->is_gates)
		gate_ask_over(q, status);
	if (e) {
		e->question = NULL;
		e->deadline = clock_us() + PREPARE_US;
		tell_preparer(e, &end);
	}
	fd_close(&q->pidfd);
	fd_close(&q->of.said);
	*q = (struct question){ .pidfd = NO_FD, .of.said = NO_FD };
}

void question_look(struct daemon *d, struct question *q)
{
	int status = 0;

	(void)d;
	if (q->pid > 0 && waitpid(q->pid, &status, WNOHANG) == q->pid)
		close_question(q, status);
}

void question_drop(struct question *q)
{
	if (!q)
		return;
	q->errand = NULL;
	q->of.gate = NULL;
	if (q->told != SIGKILL)
		tell_desk(q, SIGINT);
}

void question_end(struct question *q, const char *why)
{
	if (q->pid == 0 || q->told == SIGKILL)
		return;
	q->why = why;
	tell_desk(q, SIGINT);
}

void questions_end(struct daemon *d, const char *why)
{
	for (int i = 0; i < ALL_QUESTIONS; i++)
		if (!d->questions[i].is_gates)
			question_end(&d->questions[i], why);
}

/*
 * A request that is made again finds its answer, so it stays; nobody comes
 * back for a gate's.
 */
static int ending_signal(const struct question *q)
{
	if (q->told)
		return SIGKILL;
	return q->is_gates ? SIGINT : SIGTERM;
}

/* First the waiting ends; a desk that does not, is ended. */
void questions_late(struct daemon *d, int64_t now)
{
	for (int i = 0; i < ALL_QUESTIONS; i++) {
		struct question *q = &d->questions[i];

		if (q->pid > 0 && q->deadline <= now)
			tell_desk(q, ending_signal(q));
	}
}

int64_t questions_next(const struct daemon *d)
{
	int64_t next = INT64_MAX;

	for (int i = 0; i < ALL_QUESTIONS; i++)
		if (d->questions[i].pid > 0)
			next = MIN(next, d->questions[i].deadline);
	return next;
}

void questions_kill(struct daemon *d)
{
	int64_t end = clock_us() + GRACE_US;
	int left;

	for (int i = 0; i < ALL_QUESTIONS; i++)
		question_end(&d->questions[i], "the daemon ended");
	do {
		struct pollfd fds[ALL_QUESTIONS];

		left = 0;
		for (int i = 0; i < ALL_QUESTIONS; i++) {
			question_look(d, &d->questions[i]);
			if (d->questions[i].pid > 0)
				fds[left++] = (struct pollfd){
					.fd = d->questions[i].pidfd,
					.events = POLLIN
				};
		}
		if (left > 0 && clock_us() >= end)
			questions_late(d, INT64_MAX);
		if (left > 0)
			(void)poll(fds, (nfds_t)left, 50);
		/* One that cannot be killed stays, and counts, until it ends.
		 */
	} while (left > 0 && clock_us() < end + GRACE_US);
	for (int i = 0; i < ALL_QUESTIONS; i++) {
		d->questions[i].errand = NULL;
		d->questions[i].of.gate = NULL;
	}
}
