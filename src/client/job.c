/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runs and programs in the daemon, as jobs.
 *
 *	FAR_RUN   the daemon keeps the output and writes the result; here the
 *	          events are told, and output is kept for the case that the
 *	          daemon is lost on the way
 *	FAR_EXEC  the streams of a program are joined, input goes the other way;
 *	FAR_BOX   its end is asked for when they have ended
 *
 * A job is made when the daemon has said that it runs, so what is refused is
 * an error. From then on nothing waits: bytes are taken as they are there.
 */

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"
#include "box/spec.h"
#include "client/client.h"
#include "client/frames.h"
#include "client/lines.h"
#include "client/result.h"
#include "client/want.h"

/* What is kept here where no spec says how much. */
#define KEPT ((uint64_t)1 << 20)
/* How long a daemon that was told something may be silent. */
#define PATIENCE_MS 10000
/* In one step, so that others have their turn. */
#define READS 16

struct far_job {
	struct job_head head; /* first */
	struct daemon d;
	struct daemon_place place;
	enum far_kind kind;
	bool is_attached;
	char id[256];
	int epoll;
	int event; /* readable when it has ended */
	struct frames frames;
	struct lines lines;
	struct cordon_events events;
	void *arg;
	struct capture out, err;
	const char *input;
	size_t input_at, input_len;
	bool is_interactive;
	struct cordon_result *result;
	bool has_begun, has_ended;
	atomic_flag cancel_asked;
};

static struct far_job *far(struct cordon_job *j)
{
	return (struct far_job *)j;
}

static int get_fd(const struct cordon_job *j)
{
	return ((const struct far_job *)j)->epoll;
}

static void end(struct far_job *f, struct cordon_result *r)
{
	const uint64_t one = 1;

	f->result = r;
	f->has_ended = true;
	(void)!write(f->event, &one, sizeof(one));
}

/* The daemon is gone, or says what nobody understands. */
static void lose(struct far_job *f, const char *why)
{
	char text[512];

	(void)snprintf(text, sizeof(text), "its end was not seen: %s", why);
	end(f, result_make(CAUSE_LOST, 125, text, &f->out, &f->err));
}

/* output */

/* It runs; told once, before its output. */
static void begin(struct far_job *f)
{
	if (!f->has_begun && f->events.started)
		f->events.started(f->arg, -1);
	f->has_begun = true;
}

static int got(void *arg, int stream, const char *data, size_t len)
{
	struct far_job *f = arg;

	begin(f);
	capture_add(stream == 1 ? &f->out : &f->err, data, len);
	if (f->events.output)
		f->events.output(f->arg, stream, data, len);
	return 0;
}

static int take(struct far_job *f, const char *data, size_t len)
{
	if (f->kind == FAR_RUN) {
		int r = lines_take(&f->lines, data, len, got, f);

		if (f->lines.has_started)
			begin(f);
		if (f->lines.result)
			end(f, take_ptr(f->lines.result));
		return r;
	}
	if (f->d.answer.is_raw)
		return got(f, 1, data, len);
	return frames_take(&f->frames, data, len, got, f);
}

/* The stream has ended: how did the program? */
static void conclude(struct far_job *f)
{
	struct err err = { 0 };
	struct cordon_result *r = NULL;

	if (f->kind != FAR_RUN)
		r = far_end(&f->place, f->kind, f->id, PATIENCE_MS, &f->out,
			    &f->err, &err);
	if (r)
		end(f, r);
	else
		lose(f,
		     err.code ? err.text : "the daemon's stream was cut off");
}

/* input */

static void watch_input(struct far_job *f, bool is_on)
{
	struct epoll_event ev = { .events = EPOLLIN | (is_on ? EPOLLOUT : 0U) };

	(void)epoll_ctl(f->epoll, EPOLL_CTL_MOD, f->d.fd, &ev);
}

static long write_in(struct cordon_job *j, const void *data, size_t len)
{
	struct far_job *f = far(j);
	ssize_t n;

	if (!f->is_interactive)
		return -EPIPE;
	if (len == 0) {
		f->is_interactive = false;
		(void)shutdown(f->d.fd, SHUT_WR);
		return 0;
	}
	n = send(f->d.fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n >= 0)
		return n;
	return errno == EAGAIN || errno == EINTR ? 0 : -errno;
}

static void feed(struct far_job *f)
{
	while (f->input && f->input_at < f->input_len) {
		ssize_t n = send(f->d.fd, f->input + f->input_at,
				 f->input_len - f->input_at,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0)
			break; /* it reads no more, and may go on */
		f->input_at += (size_t)n;
	}
	if (!f->input)
		return;
	f->input = NULL;
	watch_input(f, false);
	(void)shutdown(f->d.fd, SHUT_WR);
}

static int step(struct cordon_job *j)
{
	struct far_job *f = far(j);
	struct err err = { 0 };
	char data[32768];

	if (f->kind != FAR_RUN)
		begin(f);
	feed(f);
	for (int i = 0; i < READS && !f->has_ended; i++) {
		ssize_t n = daemon_read(&f->d, data, sizeof(data), &err);

		if (n == -EAGAIN)
			break;
		if (n == 0)
			conclude(f);
		else if (n < 0)
			lose(f, err.text);
		else if (take(f, data, (size_t)n) < 0)
			lose(f, "the daemon's stream is not to be understood");
	}
	return f->has_ended;
}

/* the end */

/*
 * From any thread: on a connection of its own. A daemon that cannot be told
 * is left; it takes that as the wish to cancel, too.
 */
static void cancel(struct cordon_job *j, const char *reason)
{
	static const char *const forms[] = {
		[FAR_RUN] = "/v1/runs/%s?reason=%s",
		[FAR_EXEC] = "/v1/execs/%s/kill",
		[FAR_BOX] = "/v1/boxes/%s/kill",
	};
	struct far_job *f = far(j);
	struct err err = { 0 };
	char path[4096], why[201];
	int r;

	if (atomic_flag_test_and_set(&f->cancel_asked))
		return;
	(void)snprintf(why, sizeof(why), "%s", reason ? reason : "cancelled");
	r = daemon_format(path, sizeof(path), &err, forms[f->kind], f->id, why);
	if (r == 0)
		r = daemon_call_at(&f->place, PATIENCE_MS,
				   f->kind == FAR_RUN ? "DELETE" : "POST", path,
				   NULL, NULL, &err);
	/* What is not there any more has ended, and that will be told. */
	if (r < 0 && err.code != DAEMON_NOT_FOUND &&
	    err.code != DAEMON_WRONG_STATE)
		(void)shutdown(f->d.fd, SHUT_RDWR);
}

static void job_free(struct far_job *f)
{
	daemon_done(&f->d);
	fd_close(&f->epoll);
	fd_close(&f->event);
	lines_done(&f->lines);
	capture_done(&f->out);
	capture_done(&f->err);
	cordon_result_free(f->result);
	free(f);
}

static struct cordon_result *job_end(struct cordon_job *j)
{
	struct far_job *f = far(j);
	struct cordon_result *r;

	if (!f->has_ended && !f->is_attached) {
		cancel(j, JOB_LET_GO);
		job_wait(j);
	}
	r = take_ptr(f->result);
	job_free(f);
	return r;
}

static const struct job_ops ops = {
	.fd = get_fd,
	.step = step,
	.write = write_in,
	.cancel = cancel,
	.end = job_end,
};

/* the start */

static int watch(struct far_job *f, struct err *err)
{
	struct epoll_event ev = { .events = EPOLLIN };

	f->epoll = epoll_create1(EPOLL_CLOEXEC);
	f->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (f->epoll < 0 || f->event < 0 ||
	    epoll_ctl(f->epoll, EPOLL_CTL_ADD, f->event, &ev) < 0 ||
	    epoll_ctl(f->epoll, EPOLL_CTL_ADD, f->d.fd, &ev) < 0)
		return err_errno(err, errno, "watch a run");
	return 0;
}

/* What it has for standard input, and whether more may come. */
static void take_input(struct far_job *f, const struct cordon_spec *s)
{
	if (f->kind == FAR_RUN)
		return;
	/* Whether a box's main program reads is the box's to know. */
	f->is_interactive = f->is_attached || (s && s->interactive);
	if (s && s->has_input) {
		f->is_interactive = false;
		f->input = s->input;
		f->input_len = s->input_len;
		watch_input(f, true);
	} else if (!f->is_interactive) {
		(void)shutdown(f->d.fd, SHUT_WR);
	}
}

static struct far_job *job_new(const struct daemon_place *place,
			       const struct far_want *w)
{
	struct far_job *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->head.ops = &ops;
	f->place = *place;
	(void)snprintf(f->id, sizeof(f->id), "%s", w->id ? w->id : "");
	f->kind = w->kind;
	f->is_attached = !w->spec;
	f->d.place = &f->place;
	f->d.fd = NO_FD;
	f->epoll = NO_FD;
	f->event = NO_FD;
	if (w->events)
		f->events = *w->events;
	f->arg = w->arg;
	lines_init(&f->lines);
	capture_init(&f->out, w->spec ? w->spec->output : KEPT);
	capture_init(&f->err, w->spec ? w->spec->output : KEPT);
	return f;
}

struct cordon_job *far_start(const struct cordon *c, const struct far_want *w,
			     struct err *err)
{
	const struct daemon_place *place = far_place(c, err);
	struct far_job *f = place ? job_new(place, w) : NULL;

	if (!f) {
		if (place)
			(void)err_set(err, ENOMEM, "out of memory");
		return NULL;
	}
	if (daemon_ask(&f->d, "POST", w->path, w->body,
		       w->kind == FAR_RUN ? 0 : DAEMON_UPGRADE, err) < 0 ||
	    watch(f, err) < 0) {
		job_free(f);
		return NULL;
	}
	if (!w->id)
		memcpy(f->id, f->d.answer.exec, sizeof(f->d.answer.exec));
	f->d.is_hasty = true;
	take_input(f, w->spec);
	return (struct cordon_job *)f;
}

static void new_id(char ret[33])
{
	unsigned char raw[16] = { 0 };

	(void)!getrandom(raw, sizeof(raw), 0);
	for (size_t i = 0; i < sizeof(raw); i++)
		(void)snprintf(ret + 2 * i, 3, "%02x", raw[i]);
}

struct cordon_job *far_run(const struct cordon *c, const char *box,
			   const struct cordon_spec *s,
			   const struct cordon_events *events, void *arg,
			   struct err *err)
{
	char id[33];
	struct buf body;
	struct far_want w = { .kind = FAR_RUN,
			      .path = "/v1/run",
			      .id = id,
			      .spec = s,
			      .events = events,
			      .arg = arg };
	struct cordon_job *j = NULL;

	new_id(id);
	if (want_run(&body, s, box, id, err) == 0) {
		w.body = body.data;
		j = far_start(c, &w, err);
	}
	buf_done(&body);
	return j;
}
