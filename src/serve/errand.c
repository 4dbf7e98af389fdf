/* SPDX-License-Identifier: Apache-2.0 */

/* Children for one order each; see daemon.h. */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/say.h"
#include "base/util.h"
#include "box/handle.h"
#include "os/slice.h"
#include "os/uapi.h"
#include "serve/daemon.h"

#define SPARE_US    30000000
#define CALM_US     1000 /* after an answer: its reader goes first */
#define SEAL_US     60000000
#define END_US      2000000
#define SEAL_END_US 10000000

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

/*
 * Forks one; with `ahead` it becomes that user at once. It has no descriptor
 * but its socket.
 */
static int fork_preparer(struct daemon *d, const struct who *ahead,
			 struct errand *e, enum errand_kind kind, int64_t us)
{
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		struct preparer p = { .d = d, .who = ahead, .sock = 3 };

		if (child_keep(&pair[1], 1) < 0)
			_exit(127);
		preparer_run(&p);
	}
	(void)close(pair[1]);
	if (pid < 0) {
		int code = errno;

		(void)close(pair[0]);
		return -code;
	}
	(void)begin(e, kind, 0, pid, us);
	e->sock = pair[0];
	e->age = d->spare_age;
	return 0;
}

static struct errand *find_spare(struct daemon *d)
{
	for (int i = 0; i < MAX_ERRANDS; i++)
		if (d->errands[i].kind == ERRAND_SPARE)
			return &d->errands[i];
	return NULL;
}

/*
 * It is not waited for: what stands in a file system of its user's (FUSE) does
 * not end by a signal, and would hold up everybody. Its pidfd tells the end,
 * and until then it counts for its user.
 */
static void kill_errand(struct errand *e)
{
	(void)kill(e->pid, SIGKILL);
	e->is_late = true;
	e->deadline = INT64_MAX;
	fd_close(&e->sock);
}

static void drop_spare(struct daemon *d, struct errand *e)
{
	kill_errand(e);
	e->kind = ERRAND_PREPARE;
	e->is_answered = true; /* nobody asked */
	e->uid = d->spare_who.uid;
}

void errand_drop_spare(struct daemon *d)
{
	struct errand *e = find_spare(d);

	d->spare_age++;
	if (e)
		drop_spare(d, e);
}

/*
 * The next request is probably of the same user: what has become that one
 * waits for it. It knows the policy of today, and nothing of any request.
 */
static void make_spare(struct daemon *d)
{
	struct errand *e = d->wants_spare ? find_free(d, ERRAND_SPARE, 1)
					  : NULL;

	d->wants_spare = false;
	d->spare_at = INT64_MAX;
	if (e && !d->is_stopping)
		(void)fork_preparer(d, &d->spare_who, e, ERRAND_SPARE,
				    SPARE_US);
}

static int hand_over(struct errand *e, const struct order *o, const int *fds)
{
	e->kind = ERRAND_PREPARE;
	e->number = o->number;
	e->deadline = clock_us() + PREPARE_US;
	return io_send(e->sock, o, sizeof(*o), fds, 2);
}

/* NULL: there is none for this one, or its user has killed it. */
static struct errand *use_spare(struct daemon *d, const struct order *o,
				const int *fds)
{
	struct errand *e = find_spare(d);

	if (!e)
		return NULL;
	if (hand_over(e, o, fds) == 0)
		return e;
	drop_spare(d, e);
	return NULL;
}

/*
 * All that works for this user or has not ended yet, answered or not. Of those
 * without a connection (late sweeps, of several users) only what did not end.
 */
static int count_of(const struct daemon *d, uid_t uid)
{
	int n = 0;

	for (int i = 0; i < MAX_ERRANDS; i++) {
		const struct errand *e = &d->errands[i];

		n += (e->kind == ERRAND_PREPARE || e->kind == ERRAND_ASKED) &&
		     e->uid == uid && (uid != (uid_t)-1 || e->is_late);
	}
	return n;
}

static int start_preparer(struct daemon *d, const struct order *o, int *fds,
			  const struct who *who)
{
	struct errand *e = find_free(d, ERRAND_PREPARE, MAX_PREPARERS);
	struct errand *spare;
	uid_t uid = who ? who->uid : (uid_t)-1;
	int r;

	if (!e || count_of(d, uid) >= PREPARERS_PEER)
		return -EAGAIN;
	if (who && !who_is_same(who, &d->spare_who)) {
		errand_drop_spare(d);
		d->spare_who = *who;
	}
	spare = who ? use_spare(d, o, fds) : NULL;
	if (!spare) {
		r = fork_preparer(d, NULL, e, ERRAND_PREPARE, PREPARE_US);
		if (r < 0)
			return r;
		/* Where that fails it has died, which is told. */
		(void)hand_over(e, o, fds);
	}
	e = spare ? spare : e;
	/* Counts if a person is asked, which only one of ours can bring up. */
	e->uid = uid;
	e->peer_pid = who ? who->pid : 0;
	return 0;
}

static int begin_prepare(struct daemon *d, const struct order *o, int *fds)
{
	static struct who who;
	struct err unused = { 0 };
	/* Where it is none of ours, the preparer says so. */
	bool is_known = o->type != ORDER_SWEEP &&
			who_find(d, fds[1], &who, &unused) == 0;
	int r = start_preparer(d, o, fds, is_known ? &who : NULL);

	/* One is made when this one is answered, and nobody waits for it. */
	if (r == 0 && is_known && !find_spare(d))
		d->wants_spare = true;
	return r;
}

void errand_prepare(struct daemon *d, const struct order *o, int *fds, int n)
{
	int r = n == 2 ? begin_prepare(d, o, fds) : -EPROTO;

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
	int r = n == 5 ? start_image(d, o, fds) : -EPROTO;

	close_all(fds, n);
	if (r == -EAGAIN)
		say_no(d, o->number, EAGAIN,
		       "busy: too many commands on images at once");
	else if (r < 0)
		say_no(d, o->number, -r,
		       r == -EPROTO
			       ? "a command on images has five descriptors"
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

		slice_usual();
		if (child_keep(none, 0) == 0)
			(void)execl(path, path, "audit", "seal", "--quiet",
				    (char *)NULL);
		_exit(127);
	}
	if (pid > 0)
		(void)begin(e, ERRAND_SEAL, 0, pid, SEAL_US);
}

/* ---- watching ---- */

/*
 * It is the spare one from now on, if it stays, has the policy of today and
 * has become who the next request is expected of. Else it has no more to do,
 * and could be stopped before its end.
 */
static void after_answer(struct daemon *d, struct errand *e, bool stays)
{
	if (stays && e->age == d->spare_age && d->wants_spare &&
	    !d->is_stopping) {
		e->kind = ERRAND_SPARE;
		e->number = 0;
		e->is_answered = false;
		e->deadline = clock_us() + SPARE_US;
		d->wants_spare = false;
		d->spare_at = INT64_MAX;
		return;
	}
	kill_errand(e);
	if (d->wants_spare)
		d->spare_at = clock_us() + CALM_US;
}

/* What a preparer says: that it asks, once, and what came of it all. */
static void take_answer(struct daemon *d, struct errand *e)
{
	union {
		struct ask ask;
		struct gate_want gate;
		struct order_answer answer;
	} m;
	int fds[IO_MAX_FDS];
	int n = 0;
	ssize_t len = io_recv(e->sock, &m, sizeof(m), MSG_DONTWAIT, fds, &n);

	if (len == -EAGAIN)
		return;
	if (len == sizeof(m.ask) && m.ask.type == ORDER_ASKED &&
	    e->kind == ERRAND_PREPARE) {
		question_open(d, e, &m.ask, fds, n);
		return;
	}
	if (len == sizeof(m.gate) && m.gate.type == ORDER_GATE &&
	    e->kind != ERRAND_SPARE && !e->question) {
		gate_start(d, e, &m.gate, fds, n);
		close_all(fds, n);
		return;
	}
	if (len == sizeof(m.answer) && !e->question &&
	    e->kind != ERRAND_SPARE) {
		m.answer.type = ORDER_ANSWER;
		m.answer.number = e->number;
		e->is_answered = true;
		(void)answer_send(d->front, &m.answer, fds, n);
		close_all(fds, n);
		after_answer(d, e, m.answer.stays);
		return;
	}
	fd_close(&e->sock);
	close_all(fds, n);
}

/* Once; nothing if it has answered. */
static void tell_end(struct daemon *d, struct errand *e, int code,
		     const char *text)
{
	bool is_asked = e->kind == ERRAND_PREPARE || e->kind == ERRAND_ASKED;

	if (is_asked && !e->is_answered)
		say_no(d, e->number, e->is_cancelled ? ECANCELED : code,
		       e->is_cancelled ? "it was withdrawn" : text);
	e->is_answered = true;
}

static void end_errand(struct daemon *d, struct errand *e, int status)
{
	struct order_answer a = { .type = ORDER_ANSWER, .number = e->number };

	if (e->kind == ERRAND_IMAGE && !e->is_answered) {
		a.exit_code = WIFEXITED(status) ? WEXITSTATUS(status)
						: 128 + WTERMSIG(status);
		(void)answer_send(d->front, &a, NULL, 0);
	}
	tell_end(d, e, EIO, "what prepares the request died");
	question_drop(e->question);
	fd_close(&e->sock);
	fd_close(&e->pidfd);
	memset(e, 0, sizeof(*e));
}

/* Its preparer's end is seen next, and takes the question with it. */
void errand_cancel(struct daemon *d, uint32_t number)
{
	for (int i = 0; i < MAX_ERRANDS; i++) {
		struct errand *e = &d->errands[i];

		if (e->kind != ERRAND_ASKED || e->number != number)
			continue;
		e->is_cancelled = true;
		(void)kill(e->pid, SIGKILL);
	}
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
	if (now >= d->spare_at)
		make_spare(d);
	for (int i = 0; i < MAX_ERRANDS; i++) {
		struct errand *e = &d->errands[i];

		/* Without a pidfd nothing tells its end. */
		if (e->kind != ERRAND_NONE && e->is_late && e->pidfd < 0)
			errand_look(d, e);
		if (e->kind == ERRAND_NONE || e->deadline > now)
			continue;
		kill_errand(e);
		if (e->kind == ERRAND_SPARE)
			drop_spare(d, e);
		tell_end(d, e, ETIMEDOUT,
			 "the request took too long to prepare");
		question_drop(take_ptr(e->question));
	}
}

int64_t errand_next(const struct daemon *d)
{
	int64_t next = d->spare_at;

	for (int i = 0; i < MAX_ERRANDS; i++)
		if (d->errands[i].kind != ERRAND_NONE)
			next = MIN(next, d->errands[i].deadline);
	return next;
}

/* Of an earlier front: whatever comes of it, nobody is told. */
static void end_silently(struct errand *e)
{
	e->is_answered = true;
	e->question = NULL;
	/* A seal is the ledger's, and ends soon by itself. */
	if (e->kind == ERRAND_SPARE)
		e->kind = ERRAND_PREPARE;
	if (e->kind != ERRAND_SEAL)
		kill_errand(e);
}

/* How many are there that are still to be waited for, and which. */
static nfds_t find_living(struct daemon *d, int64_t waited, struct pollfd *ret)
{
	nfds_t n = 0;

	for (int i = 0; i < MAX_ERRANDS; i++) {
		struct errand *e = &d->errands[i];

		errand_look(d, e);
		if (e->kind != ERRAND_NONE &&
		    waited < (e->kind == ERRAND_SEAL ? SEAL_END_US : END_US))
			ret[n++] = (struct pollfd){ .fd = e->pidfd,
						    .events = POLLIN };
	}
	return n;
}

void errands_kill(struct daemon *d)
{
	struct pollfd fds[MAX_ERRANDS];
	int64_t start = clock_us();
	nfds_t n;

	questions_kill(d);
	for (int i = 0; i < MAX_ERRANDS; i++)
		if (d->errands[i].kind != ERRAND_NONE)
			end_silently(&d->errands[i]);
	while ((n = find_living(d, clock_us() - start, fds)) > 0)
		(void)poll(fds, n, 50);
}
