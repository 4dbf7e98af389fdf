/* SPDX-License-Identifier: Apache-2.0 */
#include "face/docker/image-run.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define OUTPUT_MAX ((size_t)64 << 20)

struct image_job {
	struct image_run *run;
	struct buf out;
	image_job_fn *done;
	void (*ready)(void *arg);
	void *arg;
	bool has_end, has_done;
	struct err err;
};

static void job_free(struct image_job *j)
{
	buf_done(&j->out);
	free(j);
}

/* Its output and its end come in any order. */
static void maybe_tell(struct image_job *j)
{
	json_t *doc = NULL;

	if (!j->has_end || !j->has_done)
		return;
	j->run = NULL;
	if (j->out.error && !j->err.code)
		(void)err_set(&j->err, E2BIG, "the list is too long");
	if (!j->err.code && j->out.len > 0)
		doc = json_loadb(j->out.data, j->out.len, 0, NULL);
	if (!j->err.code && j->out.len > 0 && !doc)
		(void)err_set(&j->err, EIO,
			      "what cordon-image said is no JSON");
	j->done(j->arg, doc, j->err.code ? &j->err : NULL);
	json_decref(doc);
	job_free(j);
}

static size_t job_write(void *arg, int stream, const char *data, size_t len)
{
	struct image_job *j = arg;

	(void)stream;
	(void)buf_add(&j->out, data, len);
	return len;
}

static void job_end(void *arg)
{
	struct image_job *j = arg;

	j->has_end = true;
	maybe_tell(j);
}

static void job_done(void *arg, const struct err *err)
{
	struct image_job *j = arg;

	j->has_done = true;
	/* Without a start there is no output to wait for. */
	if (err) {
		j->err = *err;
		j->has_end = true;
	}
	maybe_tell(j);
}

struct image_job *image_job_new(struct docker *d, const struct peer *peer,
				const char *const *args, bool has_input,
				image_job_fn *done, void *arg, struct err *err)
{
	struct image_job *j = calloc(1, sizeof(*j));
	struct sink sink = { job_write, job_end, j };

	if (!j)
		abort();
	buf_init(&j->out, OUTPUT_MAX);
	j->done = done;
	j->arg = arg;
	j->run = image_run(d->m, peer, args, has_input, &sink, job_done, j,
			   err);
	if (!j->run) {
		job_free(j);
		return NULL;
	}
	return j;
}

struct image_run *image_job_run(struct image_job *j)
{
	return j->run;
}

static void job_ready(void *arg)
{
	struct image_job *j = arg;

	j->ready(j->arg);
}

void image_job_on_ready(struct image_job *j, void (*ready)(void *arg))
{
	j->ready = ready;
	image_run_on_ready(j->run, job_ready);
}

void image_job_drop(struct image_job *j)
{
	if (j->run)
		image_run_drop(j->run);
	job_free(j);
}

/* ---- requests ---- */

static void image_ask_gone(struct ask *a)
{
	struct image_ask *x = (struct image_ask *)a;

	if (x->query)
		image_query_drop(x->query);
	if (x->job)
		image_job_drop(x->job);
	json_decref(x->filters);
	free(x->other);
}

struct image_ask *image_ask_new(struct http_request *r, struct docker *d)
{
	return ask_new(r, d, sizeof(struct image_ask), image_ask_gone);
}

/* ---- what went wrong ---- */

const char *image_words(const struct err *err)
{
	return strncmp(err->text, "cordon: ", 8) == 0 ? err->text + 8
						      : err->text;
}

void image_fail(struct http_request *r, const struct err *err, const char *name)
{
	static const struct {
		const char *part;
		int status;
	} texts[] = {
		{ "belongs to another user", 403 },
		{ "there is no image", 404 },
		{ "is in use", 409 },
		{ "names; remove them", 409 },
		{ "more than one", 400 },
	};
	const char *text = image_words(err);

	/* Of cordon-image itself: its status and its last line. */
	if (err->code < IMAGE_STATUS(0)) {
		answer_err(r, err, name);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		if (!strstr(text, texts[i].part))
			continue;
		if (texts[i].status == 404)
			answer_fail(r, 404, "No such image: %.300s", name);
		else if (texts[i].status == 409)
			answer_fail(r, 409,
				    "conflict: unable to delete %.200s (%s): "
				    "%.200s",
				    name,
				    strstr(text, "is in use")
					    ? "cannot be forced"
					    : "must be forced",
				    text);
		else if (texts[i].status == 403)
			answer_fail(r, 403, "cordon: %s", text);
		else
			answer_fail(r, texts[i].status, "%s", text);
		return;
	}
	if (err->code == IMAGE_STATUS(1))
		answer_fail(r, 404, "No such image: %.300s", name);
	else
		answer_fail(r, 400, "cordon: %s",
			    *text ? text : "the image failed");
}

void image_event(struct docker *d, const struct peer *peer, const char *action,
		 const char *id, const char *name)
{
	struct timespec t;
	json_t *doc = json_pack("{s:o}", "name", doc_string(name));
	char *text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;
	struct event e = { .type = "image",
			   .action = action,
			   .id = id ? id : "",
			   .owner = peer->uid,
			   .attributes = text ? text : "{}" };

	clock_gettime(CLOCK_REALTIME, &t);
	e.time_ns = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
	events_tell(d->m, &e);
	free(text);
	json_decref(doc);
}
