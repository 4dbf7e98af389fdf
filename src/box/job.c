/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One run, from the client's side.
 *
 * The streams are pipes whose read ends stay here; the keeper never sees a
 * byte of them. When the keeper says that a block or the run is over, every
 * process that could write is dead, so reading what is left cannot block and
 * loses nothing.
 */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "box/capture.h"
#include "box/egress.h"
#include "box/guard.h"
#include "box/handle.h"
#include "box/message.h"
#include "box/policy-load.h"
#include "box/prepare.h"
#include "box/work-bind.h"
#include "box/recorder.h"
#include "box/result.h"
#include "box/spec.h"
#include "box/wire.h"

#define CHUNK 65536

enum { TO_SOCK, TO_EVENT, TO_OUT, TO_ERR, TO_IN, TO_GATE };

struct cordon_job {
	struct job_head head;
	struct cordon *handle;
	struct cordon_job *next;
	uint32_t number;
	const struct cordon_spec *spec; /* as the guard has tightened it */
	struct guard guard;
	struct prepared prep;
	struct recorder recorder;
	struct egress egress;
	struct policy *network; /* that took the place of the guard's */
	struct cordon_events events;
	void *arg;
	int epoll;
	int event; /* woken for what another job read */
	int out;
	int err;
	int in;       /* write end of standard input */
	size_t in_at; /* how much of the given input is written */
	struct capture out_cap;
	struct capture err_cap;
	struct capture both_cap;
	struct cordon_result *result;
	bool is_over;   /* the result is complete */
	bool has_ended; /* and nothing of the box is left */
	bool has_flooded;
	atomic_flag cancel_asked;
	_Atomic(char *) cancel_reason;
	char chunk[CHUNK]; /* what was read last; costs nothing before */
};

bool job_is(const struct cordon_job *j, uint32_t number)
{
	return j->number == number;
}

struct cordon_job *job_next(const struct cordon_job *j)
{
	return j->next;
}

const struct cordon_spec *job_spec(const struct cordon_job *j)
{
	return j->spec;
}

const struct cordon_result *job_result(const struct cordon_job *j)
{
	return j->result;
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

static int get_fd(const struct cordon_job *j)
{
	return j->epoll;
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
static bool read_some(struct cordon_job *j, int stream)
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

static void drain(struct cordon_job *j)
{
	while (read_some(j, 1) | read_some(j, 2))
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

static long write_in(struct cordon_job *j, const void *data, size_t len)
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

static void feed(struct cordon_job *j)
{
	const struct cordon_spec *s = j->spec;

	while (j->in >= 0 && j->in_at < s->input_len) {
		long n = write_in(j, s->input + j->in_at,
				  s->input_len - j->in_at);

		if (n <= 0)
			return;
		j->in_at += (size_t)n;
	}
	fd_close(&j->in);
}

/* messages */

static struct run *add_run(struct cordon_job *j, const struct wire_outcome *o)
{
	struct cordon_result *r = j->result;
	struct run *run = &r->runs[r->n_runs];

	run->outcome = *o;
	run->verdict = verdict_of(o);
	stream_take(&run->out, &j->out_cap);
	stream_take(&run->err, &j->err_cap);
	if (j->prep.code_files[r->n_runs])
		run->code_file = strdup(j->prep.code_files[r->n_runs]);
	capture_init(&j->out_cap, j->spec->output);
	capture_init(&j->err_cap, j->spec->output);
	j->has_flooded = false;
	r->n_runs++;
	r->not_enforced |= o->not_enforced;
	return run;
}

static void append_both(struct cordon_job *j, const char *text)
{
	if (j->result->has_output)
		capture_add(&j->both_cap, text, strlen(text));
}

/* For readers that only look at text. */
static void append_end(struct cordon_job *j, const struct run *run,
		       const char *after)
{
	const char *words = NULL;

	if (run->verdict.cause == CAUSE_TIMEOUT)
		words = "\nTimeout";
	else if (run->verdict.cause == CAUSE_CANCELLED)
		words = "\nCode execution was cancelled.";
	else if (run->verdict.cause == CAUSE_DENIED)
		words = run->outcome.err.text;
	if (!words)
		return;
	append_both(j, words);
	append_both(j, after);
}

/*
 * Nobody is told of an end that is not on the record: then the result says
 * that, and how it ended only in words.
 */
static void record_end(struct cordon_job *j)
{
	struct cordon_result *r = j->result;
	struct run *run = &r->runs[r->n_runs - 1];
	struct err err = { 0 };
	char *text;

	if (recorder_end(&j->recorder, r, &err) == 0)
		return;
	if (asprintf(&text, "it ended (%s), but that could not be recorded: %s",
		     cause_name(run->verdict.cause), err.text) >= 0) {
		free(r->message);
		r->message = text;
	}
	run->verdict = (struct verdict){ CAUSE_SETUP, 125, 0 };
}

/* The box ends beside us: as in keeper/run.c. */
static void give_way(const struct cordon_job *j)
{
	if (j->handle->keeper == 0)
		(void)sched_yield();
}

/* Nothing was started: then nothing was made for it either. */
static bool has_not_begun(const struct cordon_result *r)
{
	enum cause cause = r->runs[0].verdict.cause;

	return r->n_runs == 1 &&
	       (cause == CAUSE_SETUP || cause == CAUSE_NOT_FOUND ||
		cause == CAUSE_DENIED || cause == CAUSE_INVALID);
}

static void finish(struct cordon_job *j, const struct wire_outcome *o, int work)
{
	struct cordon_result *r = j->result;
	struct run *run;

	drain(j);
	fd_close(&j->out);
	fd_close(&j->err);
	fd_close(&j->in);
	run = add_run(j, o);
	if (run->verdict.cause == CAUSE_CANCELLED)
		r->cancel_reason = atomic_exchange(&j->cancel_reason, NULL);
	r->message = message_of(run, j->spec, r->cancel_reason);
	append_end(j, run, "");
	stream_take(&r->output, &j->both_cap);
	if (work >= 0 && !(j->spec->no_files && j->spec->n_copies == 0))
		workspace_collect(work, j->spec, j->guard.copies, &j->prep,
				  &r->files, &r->warnings);
	if (!o->err.code)
		work_dir_clean(j->spec, &j->prep, &r->warnings);
	if (has_not_begun(r))
		guard_unmake(&j->guard);
	message_truncation(r, &r->warnings);
	egress_end(&j->egress, o);
	guard_sweep(&j->guard, &r->violations);
	give_way(j);
	record_end(j);
	give_way(j);
	j->is_over = true;
}

static void take_tty(struct cordon_job *j, int *fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u32 = TO_OUT };

	fd_close(&j->out);
	j->out = take_fd(fd);
	(void)fcntl(j->out, F_SETFL, O_RDWR | O_NONBLOCK);
	(void)epoll_ctl(j->epoll, EPOLL_CTL_ADD, j->out, &ev);
	j->in = fcntl(j->out, F_DUPFD_CLOEXEC, 3);
}

void job_take(struct cordon_job *j, const struct wire_msg *msg, int *fds,
	      int n_fds)
{
	static const struct wire_outcome lost = { .end = WIRE_BY_LOSS };
	const struct wire_head next = { WIRE_NEXT, j->number };
	const uint64_t one = 1;

	if (j->has_ended)
		return;
	if (!msg) {
		if (!j->is_over)
			finish(j, &lost, NO_FD);
		j->has_ended = true;
	} else if (msg->type == WIRE_STARTED) {
		if (n_fds > 0)
			take_tty(j, &fds[0]);
		if (j->events.started)
			j->events.started(j->arg, j->spec->tty ? j->out : -1);
	} else if (msg->type == WIRE_BLOCK) {
		drain(j);
		append_end(j, add_run(j, &msg->outcome), "\n");
		(void)io_send(j->handle->sock, &next, sizeof(next), NULL, 0);
	} else if (msg->type == WIRE_OVER || msg->type == WIRE_ENDED) {
		if (!j->is_over)
			finish(j, &msg->outcome, n_fds > 0 ? fds[0] : NO_FD);
		j->has_ended = msg->type == WIRE_ENDED;
	}
	(void)!write(j->event, &one, sizeof(one));
}

static int step(struct cordon_job *j)
{
	struct epoll_event ev[8];
	uint64_t count;
	int n;

	if (j->has_ended)
		return 1;
	n = epoll_wait(j->epoll, ev, ARRAY_SIZE(ev), 0);
	for (int i = 0; i < n && !j->has_ended; i++) {
		switch (ev[i].data.u32) {
		case TO_SOCK:
			handle_pump(j->handle);
			break;
		case TO_EVENT:
			(void)!read(j->event, &count, sizeof(count));
			break;
		case TO_OUT:
		case TO_ERR:
			(void)read_some(j, ev[i].data.u32 == TO_OUT ? 1 : 2);
			break;
		case TO_IN:
			feed(j);
			break;
		case TO_GATE:
			egress_step(&j->egress);
			break;
		default:
			break;
		}
	}
	return j->has_ended;
}

static void cancel(struct cordon_job *j, const char *reason)
{
	const struct wire_head head = { WIRE_CANCEL, j->number };

	if (atomic_flag_test_and_set(&j->cancel_asked))
		return;
	atomic_store(&j->cancel_reason, strdup(reason ? reason : "cancelled"));
	(void)io_send(j->handle->sock, &head, sizeof(head), NULL, 0);
}

/* start */

static int add_fd(struct cordon_job *j, int fd, uint32_t events, uint32_t what,
		  struct err *err)
{
	struct epoll_event ev = { .events = events, .data.u32 = what };

	if (epoll_ctl(j->epoll, EPOLL_CTL_ADD, fd, &ev) < 0)
		return err_errno(err, errno, "watch a run");
	return 0;
}

/* The box's ends; stdin is nothing unless something was given. */
static int open_streams(struct cordon_job *j, int box[3], struct err *err)
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

static int watch_all(struct cordon_job *j, struct err *err)
{
	j->epoll = epoll_create1(EPOLL_CLOEXEC);
	j->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (j->epoll < 0 || j->event < 0)
		return err_errno(err, errno, "watch a run");
	if (add_fd(j, j->handle->sock, EPOLLIN, TO_SOCK, err) < 0 ||
	    add_fd(j, j->event, EPOLLIN, TO_EVENT, err) < 0 ||
	    add_fd(j, j->out, EPOLLIN, TO_OUT, err) < 0 ||
	    add_fd(j, j->err, EPOLLIN, TO_ERR, err) < 0)
		return -err->code;
	if (egress_fd(&j->egress) >= 0 &&
	    add_fd(j, egress_fd(&j->egress), EPOLLIN, TO_GATE, err) < 0)
		return -err->code;
	if (j->in >= 0 && j->spec->has_input)
		return add_fd(j, j->in, EPOLLOUT, TO_IN, err);
	return 0;
}

static int new_result(struct cordon_job *j, struct err *err)
{
	const struct cordon_spec *s = j->spec;
	size_t n = MAX(s->n_blocks, 1);
	struct cordon_result *r = calloc(1, sizeof(*r));

	if (!r || !(r->runs = calloc(n, sizeof(*r->runs)))) {
		free(r);
		return err_set(err, ENOMEM, "out of memory");
	}
	j->result = r;
	result_new_id(r);
	r->has_output = s->n_blocks > 0;
	result_take_limits(r, s);
	r->name = s->name ? strdup(s->name) : NULL;
	for (size_t i = 0; i < s->labels.n; i++)
		(void)strv_add(&r->labels, s->labels.v[i]);
	return 0;
}

/* A refusal is a result: the run has ended before it began. */
static void refuse(struct cordon_job *j, const struct err *why)
{
	static const struct verdict verdicts[] = {
		[REFUSED_DENIED] = { CAUSE_DENIED, 126, 0 },
		[REFUSED_NOT_FOUND] = { CAUSE_NOT_FOUND, 127, 0 },
		[REFUSED_INVALID] = { CAUSE_INVALID, 125, 0 },
	};
	struct cordon_result *r = j->result;
	size_t block = j->spec->n_blocks > 1 ? j->prep.block : 0;

	guard_unmake(&j->guard);
	r->runs[0].verdict = verdicts[j->prep.refused];
	if (j->prep.exit_code)
		r->runs[0].verdict.exit_code = j->prep.exit_code;
	r->n_runs = 1;
	if (!block)
		r->message = strdup(why->text);
	else if (asprintf(&r->message, "block %zu: %s", block, why->text) < 0)
		r->message = NULL;
	append_both(j, why->text);
	stream_take(&r->output, &j->both_cap);
	record_end(j);
	j->is_over = true;
	j->has_ended = true;
}

static int send_run(struct cordon_job *j, struct err *err)
{
	const struct wire_head head = { WIRE_RUN, j->number };
	int fds[6] = { NO_FD, NO_FD, NO_FD, NO_FD, NO_FD, NO_FD };
	int n = j->egress.is_open ? 6 : 5;
	int r = open_streams(j, fds + 2, err);

	if (r == 0)
		r = watch_all(j, err);
	fds[0] = j->prep.box;
	fds[1] = j->prep.work;
	fds[5] = egress_take_box(&j->egress);
	if (r == 0)
		r = io_send(j->handle->sock, &head, sizeof(head), fds, n);
	if (r == -EPIPE || r == -ECONNRESET) {
		j->handle->is_lost = true;
		r = 0;
	} else if (r < 0 && !err->code) {
		(void)err_errno(err, -r, "talk to the keeper");
	}
	for (int i = 2; i < 6; i++)
		fd_close(&fds[i]);
	fd_close(&j->prep.box);
	/* What was put into the workspace is held against what is left. */
	if (j->prep.n_placed == 0 || j->spec->no_files)
		fd_close(&j->prep.work);
	return r;
}

static void job_free(struct cordon_job *j)
{
	struct cordon_job **at = &j->handle->jobs;

	while (*at && *at != j)
		at = &(*at)->next;
	if (*at)
		*at = j->next;
	fd_close(&j->epoll);
	fd_close(&j->event);
	fd_close(&j->out);
	fd_close(&j->err);
	fd_close(&j->in);
	capture_done(&j->out_cap);
	capture_done(&j->err_cap);
	capture_done(&j->both_cap);
	prepared_done(&j->prep);
	egress_done(&j->egress);
	policy_free(j->network);
	recorder_done(&j->recorder);
	guard_done(&j->guard);
	cordon_result_free(j->result);
	free(atomic_load(&j->cancel_reason));
	free(j);
}

static struct cordon_job *job_new(struct cordon *c, const struct cordon_spec *s)
{
	struct cordon_job *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	j->handle = c;
	j->spec = s;
	j->number = ++c->next_job;
	j->epoll = NO_FD;
	j->event = NO_FD;
	j->out = NO_FD;
	j->err = NO_FD;
	j->in = NO_FD;
	j->prep.box = NO_FD;
	j->prep.work = NO_FD;
	egress_init(&j->egress);
	return j;
}

/* What was refused is on the record too, with the reason in *why. */
static int record_start(struct cordon_job *j, struct err *why)
{
	struct record_decision d;
	struct err err = { 0 };

	record_decision_of(&d, &j->guard, j->prep.refused, why);
	if (recorder_start(&j->recorder, j->spec, j->result, &d, &err) == 0)
		return 0;
	*why = err;
	return -err.code;
}

/*
 * The box is made while the record of its run is written. What cannot be
 * said to the keeper now fails when the run itself is sent.
 */
static void send_ahead(struct cordon_job *j)
{
	const struct wire_head head = { WIRE_AHEAD, j->number };
	struct cordon *c = j->handle;

	if (!c->turn)
		return;
	(void)io_send(c->sock, &head, sizeof(head), &j->prep.box, 1);
	c->turn(c->turn_arg);
}

/* Directories of the host come when nothing of the request is wrong. */
static int make_places(struct cordon_job *j, struct err *err)
{
	if (prepare_check(j->spec, &j->prep, err) < 0)
		return -err->code;
	if (guard_make(&j->guard, err) == 0)
		return 0;
	j->prep.refused = j->guard.refused;
	return -err->code;
}

/* What is to be prepared, with the way out that the policy gives it. */
static int prepare_all(struct cordon_job *j, struct err *err)
{
	if (egress_open(&j->egress, j->guard.policy, j->spec, &j->recorder,
			j->result, err) < 0)
		return err_stage(err, "gate");
	if (j->egress.is_open)
		j->guard.spec->egress = &j->egress.spec;
	if (guard_has_to_make(&j->guard) && make_places(j, err) < 0)
		return -err->code;
	return prepare(j->spec, &j->prep, err);
}

/* The policy's word, then everything that can be wrong, then the record. */
static int job_prepare(struct cordon_job *j, struct err *err)
{
	int r = guard_open(j->spec, &j->guard, err);

	if (j->guard.spec)
		j->spec = j->guard.spec;
	capture_init(&j->out_cap, j->spec->output);
	capture_init(&j->err_cap, j->spec->output);
	capture_init(&j->both_cap, j->spec->output);
	if (r < 0 && !j->guard.refused)
		return r;
	if (new_result(j, err) < 0)
		return -err->code;
	if (r < 0)
		j->prep.refused = j->guard.refused;
	else
		r = prepare_all(j, err);
	if (r < 0 && !j->prep.refused)
		return r;
	if (!j->prep.refused)
		send_ahead(j);
	/* Beside the box, and while the record is written. */
	if (!j->prep.refused && egress_start(&j->egress, err) < 0)
		return err_stage(err, "gate");
	if (record_start(j, err) < 0)
		return -err->code;
	if (j->prep.refused)
		refuse(j, err);
	return 0;
}

static int job_begin(struct cordon_job *j, struct err *err)
{
	struct cordon *c = j->handle;

	if (job_prepare(j, err) < 0)
		return -err->code;
	for (size_t i = 0; i < j->prep.warnings.n; i++)
		(void)strv_add(&j->result->warnings, j->prep.warnings.v[i]);
	j->next = c->jobs;
	c->jobs = j;
	if (j->has_ended) {
		/* Something to poll, ready at once. */
		j->epoll = eventfd(1, EFD_CLOEXEC);
		return 0;
	}
	if (send_run(j, err) < 0)
		return -err->code;
	if (c->is_lost)
		job_take(j, NULL, NULL, 0);
	return 0;
}

/* Of files that are ours, which the box's own limits do not concern. */
static void explain(struct err *err)
{
	size_t len = strlen(err->text);

	if (err->code == EFBIG)
		(void)snprintf(err->text + len, sizeof(err->text) - len, "%s",
			       MESSAGE_FILE_SIZE);
}

static struct cordon_result *end(struct cordon_job *j)
{
	struct cordon_result *r;

	if (!j->has_ended) {
		cancel(j, JOB_LET_GO);
		job_wait(j);
	}
	r = take_ptr(j->result);
	job_free(j);
	return r;
}

static int set_network(struct cordon_job *j, const char *file, struct err *err)
{
	struct policy *next = NULL;

	if (policy_load(file, &next, err) < 0)
		return -err->code;
	if (egress_replace(&j->egress, next, err) < 0) {
		policy_free(next);
		return -err->code;
	}
	policy_free(j->network);
	j->network = next;
	return 0;
}

static const struct job_ops ops = {
	.fd = get_fd,
	.step = step,
	.write = write_in,
	.cancel = cancel,
	.end = end,
	.set_network = set_network,
};

struct cordon_job *job_start(struct cordon *c, const struct cordon_spec *s,
			     const struct cordon_events *events, void *arg,
			     struct err *err)
{
	struct cordon_job *j = job_new(c, s);

	if (!j) {
		(void)err_set(err, ENOMEM, "out of memory");
		return NULL;
	}
	j->head.ops = &ops;
	if (events)
		j->events = *events;
	j->arg = arg;
	if (job_begin(j, err) < 0) {
		explain(err);
		guard_unmake(&j->guard);
		job_free(j);
		return NULL;
	}
	return j;
}
