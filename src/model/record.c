/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Writes down what a model answers (recording.h). All models of one loop that
 * record to the same file write to one recorder. Lines are in the order in
 * which calls began, so that a replay in order gives each its own answer: one
 * that ends early waits for those before it.
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/util.h"
#include "model/recording.h"

struct line {
	struct line *next;
	char *text;  /* NULL: the call goes on */
	bool is_off; /* nothing will come of it */
};

struct recorder {
	struct loop *loop;
	unsigned int refs;
	char *path;
	int fd;
	int error; /* of a write; it is told with each later call */
	struct line *first, **last;
	struct recorder *others;
};

struct record {
	struct model m;
	struct model *inner;
	struct recorder *recorder;
};

struct record_call {
	struct model_call c;
	struct model_call *inner;
	struct line *line;
	json_t *request, *chunks;
	bool is_short; /* a chunk could not be kept */
};

static _Thread_local struct recorder *recorders;

/* --- the recorder --- */

static void put_line(struct recorder *r, const char *text)
{
	int code = io_write_all(r->fd, text, strlen(text));

	if (code < 0 && !r->error)
		r->error = code;
}

static void flush(struct recorder *r)
{
	while (r->first && (r->first->text || r->first->is_off)) {
		struct line *line = r->first;

		if (!line->is_off)
			put_line(r, line->text);
		r->first = line->next;
		if (!r->first)
			r->last = &r->first;
		free(line->text);
		free(line);
	}
}

static struct line *new_line(struct recorder *r)
{
	struct line *line = calloc(1, sizeof(*line));

	if (!line)
		return NULL;
	*r->last = line;
	r->last = &line->next;
	return line;
}

/* The text is taken over; NULL: nothing came of it. */
static void end_line(struct recorder *r, struct line *line, char *text)
{
	line->text = text;
	line->is_off = !text;
	flush(r);
}

static char *as_line(json_t *o)
{
	_cleanup_free_ char *text = json_dumps(o, JSON_COMPACT);
	char *line = NULL;

	json_decref(o);
	if (!text || asprintf(&line, "%s\n", text) < 0)
		return NULL;
	return line;
}

static int write_head(struct recorder *r, const struct model *m)
{
	_cleanup_free_ char *text = as_line(
		json_pack("{s:i, s:s, s:s, s:o}", "recording",
			  RECORDING_VERSION, "model", m->name, "match", "order",
			  "info", info_json(&m->info)));

	if (!text)
		return -ENOMEM;
	put_line(r, text);
	return r->error;
}

static void recorder_unref(struct recorder *r)
{
	struct recorder **at = &recorders;

	if (!r || --r->refs)
		return;
	while (*at && *at != r)
		at = &(*at)->others;
	if (*at)
		*at = r->others;
	fd_close(&r->fd);
	free(r->path);
	free(r);
}

static int recorder_new(struct loop *l, const char *file, const struct model *m,
			struct recorder **ret, struct err *err)
{
	struct recorder *r = calloc(1, sizeof(*r));
	int code = 0;

	if (!r)
		return err_set(err, ENOMEM, "out of memory");
	r->refs = 1;
	r->loop = l;
	r->last = &r->first;
	r->fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (r->fd < 0)
		code = err_errno(err, errno, "open");
	else if (!(r->path = realpath(file, NULL)))
		code = err_errno(err, errno, "find");
	else if ((code = write_head(r, m)) < 0)
		code = err_errno(err, -code, "write");
	if (code < 0) {
		recorder_unref(r);
		return code;
	}
	r->others = recorders;
	recorders = r;
	*ret = r;
	return 0;
}

static int recorder_get(struct loop *l, const char *file, const struct model *m,
			struct recorder **ret, struct err *err)
{
	_cleanup_free_ char *path = realpath(file, NULL);
	struct recorder *r = path ? recorders : NULL;

	while (r && (r->loop != l || strcmp(r->path, path) != 0))
		r = r->others;
	if (!r)
		return recorder_new(l, file, m, ret, err);
	r->refs++;
	*ret = r;
	return 0;
}

/* --- calls --- */

static struct recorder *recorder_of(struct record_call *c)
{
	return ((struct record *)c->c.model)->recorder;
}

static void on_chunk(void *arg, bool is_thought, const char *text, size_t len)
{
	struct record_call *c = arg;
	json_t *v = json_stringn(text, len);

	if (is_thought)
		v = json_pack("{s:o}", "thought", v);
	if (!c->chunks)
		c->chunks = json_array();
	c->is_short |= json_array_append_new(c->chunks, v) < 0;
	call_chunk(&c->c, is_thought, text, len);
}

static char *line_of(const struct record_call *c, const struct model_result *r,
		     const struct fault *why)
{
	json_t *o;

	if (c->is_short)
		return NULL;
	o = json_pack("{s:O, s:O*}", "request", c->request, "chunks",
		      c->chunks);
	if ((r && json_object_set_new(o, "result", recording_result(r)) < 0) ||
	    (why && json_object_set_new(o, "fault", fault_json(why)) < 0)) {
		json_decref(o);
		return NULL;
	}
	return as_line(o);
}

static void on_done(void *arg, const struct model_result *r,
		    const struct fault *why)
{
	struct record_call *c = arg;
	struct recorder *to = recorder_of(c);
	char *text = line_of(c, r, why);
	bool is_kept = text != NULL;

	c->inner = NULL;
	end_line(to, take_ptr(c->line), text);
	if (!is_kept || to->error) {
		fault_set(&c->c.why, FAULT_INTERNAL,
			  "the recording '%s' cannot be written: %s", to->path,
			  strerror(is_kept ? -to->error : ENOMEM));
		call_fail(&c->c);
	} else if (why) {
		fault_copy(&c->c.why, why);
		call_fail(&c->c);
	} else if (result_copy(&c->c.result, r) < 0) {
		call_fail(&c->c);
	} else {
		call_end(&c->c);
	}
}

static int start(struct model_call *call, const struct model_request *q)
{
	static const struct model_events events = { on_chunk, on_done };
	struct record_call *c = (struct record_call *)call;

	c->request = recording_request(q);
	c->line = new_line(recorder_of(c));
	if (!c->request || !c->line)
		return -ENOMEM;
	c->inner = model_start(((struct record *)call->model)->inner, q,
			       &events, c);
	return c->inner ? 0 : -ENOMEM;
}

static void stop(struct model_call *call)
{
	struct record_call *c = (struct record_call *)call;

	model_drop(take_ptr(c->inner));
	if (c->line)
		end_line(recorder_of(c), take_ptr(c->line), NULL);
}

static void done(struct model_call *call)
{
	struct record_call *c = (struct record_call *)call;

	json_decref(c->request);
	json_decref(c->chunks);
}

static void free_model(struct model *m)
{
	struct record *r = (struct record *)m;

	model_unref(r->inner);
	recorder_unref(r->recorder);
}

static const struct model_ops ops = { sizeof(struct record),
				      sizeof(struct record_call),
				      start,
				      stop,
				      done,
				      free_model };

int model_record(struct loop *l, struct model *inner, const char *file,
		 struct model **ret, struct err *err)
{
	struct model *m = provider_new(&ops, l, inner->name);
	int r;

	if (!m)
		return err_set(err, ENOMEM, "out of memory");
	m->info = inner->info;
	r = recorder_get(l, file, inner, &((struct record *)m)->recorder, err);
	if (r < 0) {
		model_unref(m);
		return err_wrap(err, "recording '%s'", file);
	}
	((struct record *)m)->inner = inner;
	*ret = m;
	return 0;
}
