/* SPDX-License-Identifier: Apache-2.0 */

/* A handle on the daemon, and boxes: one request for each verb. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "box/spec.h"
#include "client/client.h"
#include "client/want.h"

/* Who listens answers this at once. */
#define PATIENCE_MS 10000

int far_out(struct cordon_error *out, struct err *err)
{
	err->code = daemon_errno(err->code);
	return error_out(out, err);
}

static void far_close(struct cordon *c)
{
	free(c);
}

/* cordon_start() takes errors as they are. */
static struct cordon_job *start_run(struct cordon *c,
				    const struct cordon_spec *s,
				    const struct cordon_events *events,
				    void *arg, struct err *err)
{
	struct cordon_job *j = far_run(c, NULL, s, events, arg, err);

	if (!j)
		err->code = daemon_errno(err->code);
	return j;
}

static const struct handle_ops ops = { .start = start_run, .close = far_close };

const struct daemon_place *far_place(const struct cordon *c, struct err *err)
{
	if (c->ops == &ops)
		return &((const struct far_handle *)c)->place;
	(void)err_set(err, EOPNOTSUPP,
		      "boxes that stay are the daemon's: take "
		      "cordon_connect() instead of cordon_open()");
	return NULL;
}

int far_call(const struct cordon *c, const struct far_ask *ask, struct buf *ret,
	     struct err *err)
{
	const struct daemon_place *place = far_place(c, err);
	char path[9000];

	if (!place ||
	    daemon_format(path, sizeof(path), err, ask->form,
			  ask->a ? ask->a : "", ask->b ? ask->b : "") < 0)
		return -err->code;
	return daemon_call_at(place, ask->patience_ms, ask->method, path,
			      ask->body, ret, err);
}

struct cordon *cordon_connect(const char *path, struct cordon_error *out)
{
	struct far_handle *h = calloc(1, sizeof(*h));
	const struct far_ask hello = { .method = "GET",
				       .form = "/v1/version",
				       .patience_ms = PATIENCE_MS };
	struct err err = { 0 };
	int r;

	if (!h) {
		(void)err_set(&err, ENOMEM, "out of memory");
		(void)far_out(out, &err);
		return NULL;
	}
	h->base.ops = &ops;
	h->base.sock = NO_FD;
	r = daemon_find(path, &h->place, &err);
	if (r == 0)
		r = far_call(&h->base, &hello, NULL, &err);
	if (r == 0)
		return &h->base;
	(void)far_out(out, &err);
	free(h);
	return NULL;
}

/* verbs */

static int simple(const struct cordon *c, const struct far_ask *ask,
		  struct cordon_error *out)
{
	struct err err = { 0 };

	return far_call(c, ask, NULL, &err) < 0 ? far_out(out, &err) : 0;
}

char *far_document(const struct cordon *c, const struct far_ask *ask,
		   struct cordon_error *out)
{
	struct err err = { 0 };
	struct buf b;

	buf_init(&b, 1);
	if (far_call(c, ask, &b, &err) == 0) {
		if (b.len)
			return buf_take(&b);
		(void)err_set(&err, EPROTO, "the daemon's answer is empty");
	}
	buf_done(&b);
	(void)far_out(out, &err);
	return NULL;
}

static int far_id(const struct buf *b, char ret[CORDON_ID_SIZE],
		  struct err *err)
{
	struct value v = { b->data, b->len };

	while (v.len && v.p[v.len - 1] == '\n')
		v.len--;
	if (!v.len || !value_check(v.p, v.len) ||
	    !*member_text(&v, "id", ret, CORDON_ID_SIZE))
		return err_set(err, EPROTO, "the daemon's answer names no id");
	return 0;
}

int far_make(struct cordon *c, struct far_ask *ask, const struct buf *body,
	     char ret_id[CORDON_ID_SIZE], struct err *err)
{
	struct buf answer;
	int r;

	buf_init(&answer, 1);
	ask->method = "POST";
	ask->body = body->data;
	r = far_call(c, ask, &answer, err);
	if (r == 0)
		r = far_id(&answer, ret_id, err);
	buf_done(&answer);
	return r;
}

int cordon_box_create(struct cordon *c, const struct cordon_spec *s,
		      char ret_id[CORDON_ID_SIZE], struct cordon_error *out)
{
	struct far_ask ask = { .form = "/v1/boxes" };
	struct err err = { 0 };
	struct buf body;
	int r = want_box(&body, s, false, &err);

	if (r == 0)
		r = far_make(c, &ask, &body, ret_id, &err);
	buf_done(&body);
	return r < 0 ? far_out(out, &err) : 0;
}

int cordon_box_start(struct cordon *c, const char *box,
		     struct cordon_error *err)
{
	return simple(c,
		      &(struct far_ask){ .method = "POST",
					 .form = "/v1/boxes/%s/start",
					 .a = box },
		      err);
}

int cordon_box_stop(struct cordon *c, const char *box, int seconds,
		    struct cordon_error *err)
{
	char time[16];
	struct far_ask ask = { .method = "POST",
			       .form = "/v1/boxes/%s/stop?timeout=%s",
			       .a = box,
			       .b = time };

	(void)snprintf(time, sizeof(time), "%d", seconds);
	if (seconds < 0)
		ask.form = "/v1/boxes/%s/stop";
	return simple(c, &ask, err);
}

int cordon_box_kill(struct cordon *c, const char *box, const char *signal,
		    struct cordon_error *err)
{
	return simple(c,
		      &(struct far_ask){ .method = "POST",
					 .form = "/v1/boxes/%s/kill?signal=%s",
					 .a = box,
					 .b = signal ? signal : "KILL" },
		      err);
}

int cordon_box_pause(struct cordon *c, const char *box,
		     struct cordon_error *err)
{
	return simple(c,
		      &(struct far_ask){ .method = "POST",
					 .form = "/v1/boxes/%s/pause",
					 .a = box },
		      err);
}

int cordon_box_unpause(struct cordon *c, const char *box,
		       struct cordon_error *err)
{
	return simple(c,
		      &(struct far_ask){ .method = "POST",
					 .form = "/v1/boxes/%s/resume",
					 .a = box },
		      err);
}

int cordon_box_rename(struct cordon *c, const char *box, const char *name,
		      struct cordon_error *err)
{
	return simple(c,
		      &(struct far_ask){ .method = "POST",
					 .form = "/v1/boxes/%s/rename?name=%s",
					 .a = box,
					 .b = name },
		      err);
}

int cordon_box_remove(struct cordon *c, const char *box, int force,
		      struct cordon_error *err)
{
	return simple(c,
		      &(struct far_ask){ .method = "DELETE",
					 .form = force ? "/v1/boxes/%s?force=1"
						       : "/v1/boxes/%s",
					 .a = box },
		      err);
}

char *cordon_box_list(struct cordon *c, int all, struct cordon_error *err)
{
	return far_document(c,
			    &(struct far_ask){ .method = "GET",
					       .form = all ? "/v1/boxes?all=1"
							   : "/v1/boxes" },
			    err);
}

char *cordon_box_inspect(struct cordon *c, const char *box,
			 struct cordon_error *err)
{
	return far_document(c,
			    &(struct far_ask){ .method = "GET",
					       .form = "/v1/boxes/%s",
					       .a = box },
			    err);
}

char *cordon_box_stats(struct cordon *c, const char *box,
		       struct cordon_error *err)
{
	return far_document(c,
			    &(struct far_ask){ .method = "GET",
					       .form = "/v1/boxes/%s/stats",
					       .a = box },
			    err);
}
