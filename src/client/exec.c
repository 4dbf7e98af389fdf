/* SPDX-License-Identifier: Apache-2.0 */

/* What runs in boxes: programs, their output, and how they ended. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "box/spec.h"
#include "client/client.h"
#include "client/frames.h"
#include "client/result.h"
#include "client/want.h"

/* What is kept of a log. */
#define KEPT ((uint64_t)1 << 20)
/* What goes with the request; more is sent as a stream. */
#define MAX_SENT ((size_t)2 << 20)

/* ends */

/* It has none: it was not started, or it went with all that told of it. */
static int no_end(const struct value *v, int64_t code, struct err *err)
{
	struct value removed;

	if (value_get(v, "removed", &removed) && value_type(&removed) == 't')
		return err_set(err, ESRCH,
			       "the box was removed: its exit code was %lld, "
			       "and more is not known of its end",
			       (long long)code);
	return err_set(err, EBADFD, "it has not run");
}

struct cordon_result *far_end(const struct daemon_place *place,
			      enum far_kind kind, const char *id,
			      int64_t patience_ms, struct capture *out,
			      struct capture *errors, struct err *err)
{
	bool is_box = kind == FAR_BOX;
	struct cordon_result *r = NULL;
	char path[1024], cause[24], text[512];
	int64_t code;
	struct value v;
	struct buf b;

	if (daemon_format(path, sizeof(path), err,
			  is_box ? "/v1/boxes/%s/wait" : "/v1/execs/%s",
			  id) < 0 ||
	    daemon_call_at(place, patience_ms, is_box ? "POST" : "GET", path,
			   NULL, &b, err) < 0)
		return NULL;
	while (b.len && b.data[b.len - 1] == '\n')
		b.len--;
	v = (struct value){ b.data, b.len };
	if (!b.len || !value_check(b.data, b.len))
		v.len = 0;
	(void)member_text(&v, "cause", cause, sizeof(cause));
	(void)member_text(&v, "error", text, sizeof(text));
	code = member_int(&v, "exit_code", -1);
	if (!*cause)
		(void)no_end(&v, code, err);
	else if (code < 0 || code > 255 || cause_parse(cause) == CAUSES)
		(void)err_set(err, EPROTO, "the daemon tells of no end");
	else if (!(r = result_make(cause_parse(cause), (int)code, text, out,
				   errors)))
		(void)err_set(err, ENOMEM, "out of memory");
	buf_done(&b);
	return r;
}

/* the log */

struct reader {
	const struct cordon_events *events;
	void *arg;
	struct capture *out, *errors; /* or these */
};

static int got(void *arg, int stream, const char *data, size_t len)
{
	const struct reader *r = arg;

	if (r->out)
		capture_add(stream == 1 ? r->out : r->errors, data, len);
	if (r->events && r->events->output)
		r->events->output(r->arg, stream, data, len);
	return 0;
}

static int read_frames(struct daemon *d, struct reader *r, struct err *err)
{
	struct frames f = { 0 };
	char data[32768];
	ssize_t n;

	while ((n = daemon_read(d, data, sizeof(data), err)) > 0)
		if (d->answer.is_raw)
			(void)got(r, 1, data, (size_t)n);
		else if (frames_take(&f, data, (size_t)n, got, r) < 0)
			return err_set(err, EPROTO,
				       "the daemon's stream is no stream of "
				       "frames");
	return n < 0 ? -err->code : 0;
}

static int read_log(const struct cordon *c, const char *box, long tail,
		    struct reader *r, struct err *err)
{
	const struct daemon_place *place = far_place(c, err);
	struct daemon *d = NULL;
	char path[1024], lines[24];
	int ret;

	(void)snprintf(lines, sizeof(lines), "%ld", tail < 0 ? -1 : tail);
	if (!place ||
	    daemon_format(path, sizeof(path), err, "/v1/boxes/%s/logs?tail=%s",
			  box, lines) < 0)
		return -err->code;
	d = calloc(1, sizeof(*d));
	if (!d)
		return err_set(err, ENOMEM, "out of memory");
	d->place = place;
	ret = daemon_ask(d, "GET", path, NULL, 0, err);
	if (ret == 0)
		ret = read_frames(d, r, err);
	daemon_done(d);
	free(d);
	return ret;
}

int cordon_box_logs(struct cordon *c, const char *box, long tail,
		    const struct cordon_events *events, void *arg,
		    struct cordon_error *out)
{
	struct reader r = { .events = events, .arg = arg };
	struct err err = { 0 };

	return read_log(c, box, tail, &r, &err) < 0 ? far_out(out, &err) : 0;
}

int cordon_box_wait(struct cordon *c, const char *box, int64_t milliseconds,
		    struct cordon_result **ret, struct cordon_error *out)
{
	struct capture text, errors;
	struct reader reader = { .out = &text, .errors = &errors };
	struct err err = { 0 };
	const struct daemon_place *place = far_place(c, &err);
	struct cordon_result *r = NULL;

	capture_init(&text, KEPT);
	capture_init(&errors, KEPT);
	if (place)
		r = far_end(place, FAR_BOX, box,
			    milliseconds < 0 ? 0 : MAX(milliseconds, 1), &text,
			    &errors, &err);
	/* Where it was removed with its end, its log went with it. */
	if (r && read_log(c, box, -1, &reader, &(struct err){ 0 }) == 0) {
		stream_done(&r->runs[0].out);
		stream_done(&r->runs[0].err);
		stream_take(&r->runs[0].out, &text);
		stream_take(&r->runs[0].err, &errors);
	}
	capture_done(&text);
	capture_done(&errors);
	if (!r)
		return far_out(out, &err);
	if (ret)
		*ret = r;
	else
		cordon_result_free(r);
	return 0;
}

/* programs */

static struct cordon_job *attach(struct cordon *c, enum far_kind kind,
				 const char *form, const char *id,
				 const struct cordon_events *events, void *arg,
				 struct cordon_error *out)
{
	struct err err = { 0 };
	char path[1024];
	const struct far_want w = { .kind = kind,
				    .path = path,
				    .id = id,
				    .events = events,
				    .arg = arg };
	struct cordon_job *j = NULL;

	if (daemon_format(path, sizeof(path), &err, form, id) == 0)
		j = far_start(c, &w, &err);
	if (!j)
		(void)far_out(out, &err);
	return j;
}

struct cordon_job *cordon_box_attach(struct cordon *c, const char *box,
				     const struct cordon_events *events,
				     void *arg, struct cordon_error *err)
{
	return attach(c, FAR_BOX, "/v1/boxes/%s/attach?stdin=1&logs=1", box,
		      events, arg, err);
}

struct cordon_job *cordon_exec_attach(struct cordon *c, const char *exec,
				      const struct cordon_events *events,
				      void *arg, struct cordon_error *err)
{
	return attach(c, FAR_EXEC, "/v1/execs/%s/attach", exec, events, arg,
		      err);
}

/* With its streams joined: what a run cannot have. */
static struct cordon_job *join(struct cordon *c, const char *box,
			       const struct cordon_spec *s,
			       const struct cordon_events *events, void *arg,
			       struct err *err)
{
	char path[1024];
	struct far_want w = { .kind = FAR_EXEC,
			      .path = path,
			      .spec = s,
			      .events = events,
			      .arg = arg };
	struct cordon_job *j = NULL;
	struct buf body;

	if (want_exec(&body, s, false, err) == 0 &&
	    daemon_format(path, sizeof(path), err, "/v1/boxes/%s/execs", box) ==
		    0) {
		w.body = body.data;
		j = far_start(c, &w, err);
	}
	buf_done(&body);
	return j;
}

static struct cordon_job *start(struct cordon *c, const char *box,
				const struct cordon_spec *s,
				const struct cordon_events *events, void *arg,
				struct err *err)
{
	bool is_joined = s->tty || s->interactive || s->user ||
			 s->input_len > MAX_SENT;

	return is_joined ? join(c, box, s, events, arg, err)
			 : far_run(c, box, s, events, arg, err);
}

struct cordon_job *cordon_exec_start(struct cordon *c, const char *box,
				     const struct cordon_spec *s,
				     const struct cordon_events *events,
				     void *arg, struct cordon_error *out)
{
	struct err err = { 0 };
	struct cordon_job *j = start(c, box, s, events, arg, &err);

	if (!j)
		(void)far_out(out, &err);
	return j;
}

int cordon_exec(struct cordon *c, const char *box, const struct cordon_spec *s,
		struct cordon_result **ret, struct cordon_error *out)
{
	struct err err = { 0 };

	if (job_finish(start(c, box, s, NULL, NULL, &err), ret, &err) < 0)
		return far_out(out, &err);
	return 0;
}

int cordon_exec_detach(struct cordon *c, const char *box,
		       const struct cordon_spec *s, char ret_id[CORDON_ID_SIZE],
		       struct cordon_error *out)
{
	struct far_ask ask = { .form = "/v1/boxes/%s/execs", .a = box };
	struct err err = { 0 };
	struct buf body;
	int r = want_exec(&body, s, true, &err);

	if (r == 0)
		r = far_make(c, &ask, &body, ret_id, &err);
	buf_done(&body);
	return r < 0 ? far_out(out, &err) : 0;
}

int cordon_exec_kill(struct cordon *c, const char *exec, const char *signal,
		     struct cordon_error *out)
{
	const struct far_ask ask = { .method = "POST",
				     .form = "/v1/execs/%s/kill?signal=%s",
				     .a = exec,
				     .b = signal ? signal : "KILL" };
	struct err err = { 0 };

	return far_call(c, &ask, NULL, &err) < 0 ? far_out(out, &err) : 0;
}

char *cordon_exec_inspect(struct cordon *c, const char *exec,
			  struct cordon_error *err)
{
	return far_document(c,
			    &(struct far_ask){ .method = "GET",
					       .form = "/v1/execs/%s",
					       .a = exec },
			    err);
}
