/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the preparer is asked, and what is made of its answer.
 *
 * Its errors become ours here: a file of the host that is missing is not a box
 * that is missing.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/num.h"
#include "base/util.h"
#include "box/prepare.h"
#include "box/result.h"
#include "front/doc.h"
#include "front/exec.h"
#include "front/front.h"
#include "front/gate.h"
#include "front/question.h"

int box_identity(const struct box *b)
{
	struct ucred who;
	socklen_t len = sizeof(who);

	if (b->peer_fd >= 0)
		return b->peer_fd;
	/* The descriptor could be another's by now: of our owner, or none. */
	if (b->asker_fd >= 0 &&
	    getsockopt(b->asker_fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 &&
	    who.uid == b->owner)
		return b->asker_fd;
	return -EPERM;
}

static int map_code(const struct order_answer *a)
{
	if (a->err.code == MGR_NO_IMAGE || a->err.code == MGR_ASKED)
		return a->err.code;
	/* A question that was withdrawn: of what ends. */
	if (a->err.code == ECANCELED)
		return MGR_REMOVING;
	switch (a->refused) {
	case REFUSED_DENIED:
		return MGR_DENIED;
	case REFUSED_NOT_FOUND:
		return a->exit_code == 126 ? MGR_NOT_EXECUTABLE
					   : MGR_NO_PROGRAM;
	case REFUSED_INVALID:
		return MGR_INVALID;
	}
	switch (a->err.code) {
	case MGR_INVALID:
	case MGR_DENIED:
	case MGR_BUSY:
	case MGR_LOST:
	case MGR_UNSUPPORTED:
		return a->err.code;
	case EOPNOTSUPP:
		return MGR_UNSUPPORTED;
	case EACCES:
		return MGR_DENIED;
	}
	return MGR_SETUP;
}

/* What a preparer answers with; answer.h. */
struct answer_doc {
	char *text; /* owns all */
	json_t *head;
	const char *spec; /* these two NULL if they are not there */
	const char *start;
};

static const char *next_line(char **rest)
{
	char *end = *rest ? strchr(*rest, '\n') : NULL;

	if (end)
		*end++ = '\0';
	*rest = end;
	return end;
}

static int doc_open(struct answer_doc *d, int fd, struct err *err)
{
	char *rest;

	*d = (struct answer_doc){ .text = doc_read(fd, err) };
	if (!d->text)
		return -err->code;
	rest = d->text;
	d->spec = next_line(&rest);
	d->start = next_line(&rest);
	d->head = doc_parse(d->text, strlen(d->text), err);
	return d->head ? 0 : err_wrap(err, "the preparer's answer");
}

static void doc_done(struct answer_doc *d)
{
	json_decref(d->head);
	free(d->text);
}

static char *copy(const char *text)
{
	return text ? strdup(text) : NULL;
}

/* What was denied is on the ledger as a run that did not start. */
static void record_denial(struct box *b, const char *start, const char *run,
			  const char *why)
{
	struct end_facts facts = { .run = run,
				   .cause = "denied",
				   .status = "error",
				   .message = why,
				   .box = b,
				   .exit_code = 126 };
	struct err unused;
	int slot;

	if (!start)
		return;
	slot = runs_add(b->m, run, &unused);
	if (orders_record(b->m->clerk, "run.start", start, NULL, NULL,
			  &unused) == 0)
		runs_end(b->m, slot, &facts);
	else
		runs_drop(b->m, slot);
}

/* The refusal in words, where the answer has some. */
static void explain(struct box *b, const struct exec *e,
		    const struct order_answer *a, int fd, struct err *err)
{
	const char *run = e ? e->run : b->run;
	struct answer_doc d = { 0 };
	const char *why;

	if (fd >= 0)
		(void)doc_open(&d, fd, err);
	why = doc_str(d.head, "message");
	if (!why || !*why)
		why = a->err.text;
	(void)err_set(err, map_code(a), "%s", *why ? why : "refused");
	if (a->refused == REFUSED_DENIED)
		record_denial(b, d.start, run, err->text);
	if (err->code == MGR_DENIED)
		events_denied(b, e, err->text);
	doc_done(&d);
}

int prepare_ask(struct box *b, const struct prepare_want *want,
		order_done_fn *done, void *arg, struct err *err)
{
	const struct turn_want turn = { want->is_late ? TURN_SWEEP
						      : TURN_PREPARE,
					b->owner, want->asked };
	_cleanup_free_ char *text = NULL;
	_cleanup_fd_ int doc = NO_FD;
	int fds[2];

	if (want->request)
		text = doc_text(want->request);
	if (!text)
		return err_set(err, MGR_INVALID,
			       "the request is not valid JSON in UTF-8");
	doc = doc_seal(text, strlen(text));
	if (doc < 0)
		return err_errno(err, -doc, "write a request");
	fds[0] = doc;
	fds[1] = want->who;
	return turn_ask(b->m, &turn, fds, 2, done, arg, err);
}

static json_t *parse_value(const char *text)
{
	return text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;
}

/* ---- a box ---- */

static void set_text(char **to, char *text)
{
	free(*to);
	*to = text;
}

static uint64_t lower(uint64_t have, int64_t limit)
{
	if (limit <= 0)
		return have;
	return have ? MIN(have, (uint64_t)limit) : (uint64_t)limit;
}

/* The policy's words on boxes of this face: they tighten what was asked. */
static void tighten(struct box *b, const json_t *docker)
{
	const json_t *exec = json_object_get(docker, "exec");
	const char *gone = doc_str(exec, "on_disconnect");
	const char *rest = doc_str(exec, "children");

	if (gone && strcmp(gone, "kill") == 0)
		b->kill_on_disconnect = true;
	if (rest && strcmp(rest, "kill") == 0)
		b->kill_exec_rest = true;
	if (json_is_false(json_object_get(exec, "shims")))
		b->shims = false;
	b->exec_max_output = lower(b->exec_max_output,
				   doc_int(exec, "max_output", 0));
	b->log_max = lower(b->log_max, doc_int(docker, "log_max", 0));
}

/* Said by nobody else, it is the image's; once, for all its starts. */
static void take_stop_signal(struct box *b)
{
	json_t *spec = b->stop_signal == 0 ? parse_value(b->spec) : NULL;
	const char *text = doc_str(spec, "stop_signal");

	if (text && num_parse_signal(text, &b->stop_signal) < 0)
		b->stop_signal = SIGTERM;
	if (b->stop_signal == 0)
		b->stop_signal = SIGTERM;
	json_decref(spec);
}

static int take_answer(struct box *b, const struct answer_doc *d,
		       struct err *err)
{
	const json_t *o = d->head;
	const char *image = doc_str(o, "image");

	set_text(&b->spec, copy(d->spec));
	set_text(&b->warnings, doc_dump(o, "warnings"));
	set_text(&b->clamped, doc_dump(o, "clamped"));
	set_text(&b->start, copy(d->start));
	b->keep_output = json_is_true(json_object_get(o, "keep_output"));
	set_text(&b->watches, doc_dump(o, "watches"));
	set_text(&b->who, copy(doc_str(o, "who")));
	set_text(&b->programs, doc_dump(o, "programs"));
	set_text(&b->image, strdup(image ? image : "host"));
	set_text(&b->gate_again, NULL);
	b->was_asked = json_is_true(json_object_get(o, "asked"));
	b->is_spent = false;
	if (strcmp(b->face, "docker") == 0)
		tighten(b, json_object_get(o, "docker"));
	if (!b->spec || !b->image || (!b->start && !b->has_no_main))
		return err_set(err, MGR_SETUP,
			       "the preparer's answer lacks "
			       "'spec' or 'start'");
	take_stop_signal(b);
	if (!b->warnings)
		b->warnings = strdup("[]");
	if (!b->clamped)
		b->clamped = strdup("[]");
	return 0;
}

/* fds: the blobs, then the gate's. */
static int take_blobs(struct box *b, const struct order_answer *answer,
		      int *fds, const json_t *o, struct err *err)
{
	int n_blobs = b->has_no_main ? 1 : 2;
	int r;

	fd_close(&b->box_fd);
	fd_close(&b->work_fd);
	gate_drop(b);
	if (answer->has_gate) {
		r = gate_take(b, answer->number, fds + n_blobs,
			      json_object_get(o, "gate"), err);
		if (r < 0) {
			err->code = MGR_SETUP;
			return -err->code;
		}
	} else {
		cordon_result_free(take_ptr(b->net));
	}
	b->box_fd = take_fd(&fds[0]);
	if (n_blobs == 2)
		b->work_fd = take_fd(&fds[1]);
	return 0;
}

static void box_answer(void *arg, const struct order_answer *answer, int *fds,
		       int n)
{
	struct asking *a = arg;
	struct box *b = a->box;
	struct err err = { 0 };

	asking_over(a);
	if (answer->err.code || answer->refused) {
		explain(b, NULL, answer, n > 0 ? fds[n - 1] : NO_FD, &err);
	} else if (n != (b->has_no_main ? 2 : 3) + (answer->has_gate ? 2 : 0)) {
		(void)err_set(&err, MGR_SETUP, "the preparer's answer is cut");
	} else {
		struct answer_doc d;

		if (doc_open(&d, fds[n - 1], &err) == 0 &&
		    take_answer(b, &d, &err) == 0)
			(void)take_blobs(b, answer, fds, d.head, &err);
		doc_done(&d);
	}
	a->done(a->arg, err.code ? &err : NULL);
	asking_free(a);
}

/* A yes is for this input; for any only where it says so. */
static bool put_stdin(json_t *o, const char *input, bool is_open)
{
	if (!input && !is_open)
		return true;
	return doc_put(o, "stdin", json_string(input ? input : "open"));
}

/* Without a single member it would be another request: NULL. */
static json_t *box_request(const struct box *b)
{
	json_t *o = json_object();

	if (doc_put(o, "settings", parse_value(b->settings)) &&
	    (!b->command || doc_put(o, "command", parse_value(b->command))) &&
	    (!b->code || doc_put(o, "code", parse_value(b->code))) &&
	    put_stdin(o, b->input, b->open_stdin || b->tty) &&
	    (!b->has_no_main || doc_put(o, "box_only", json_true())) &&
	    (!b->gate_used || doc_put(o, "used", parse_value(b->gate_used))) &&
	    doc_put(o, "run", json_string(b->run)) &&
	    doc_put(o, "box", json_string(b->id)) &&
	    doc_put(o, "face", json_string(b->face)) &&
	    doc_put(o, "clamp", json_boolean(b->clamp)))
		return o;
	json_decref(o);
	return NULL;
}

int box_prepare(struct box *b, prepared_fn *done, void *arg, struct err *err)
{
	int who = box_identity(b);
	struct asking *a;
	json_t *request;
	int r;

	if (who < 0)
		return err_set(err, MGR_DENIED,
			       "only its owner can start it again after the "
			       "daemon was restarted");
	a = calloc(1, sizeof(*a));
	if (!a)
		return err_set(err, ENOMEM, "out of memory");
	*a = (struct asking){ .box = box_ref(b), .done = done, .arg = arg };
	b->policy_age = b->m->policy_age;
	if (!b->run[0])
		id_make(b->run, 32);
	request = box_request(b);
	r = prepare_ask(b,
			&(struct prepare_want){ request, who, asking_asked,
						false },
			box_answer, a, err);
	json_decref(request);
	if (r < 0)
		asking_free(a);
	else if (b->peer_fd < 0)
		b->peer_fd = fcntl(who, F_DUPFD_CLOEXEC, 3);
	return r;
}

/* ---- a program in it ---- */

static json_t *pair(const char *key, const json_t *v)
{
	const char *text = json_string_value(v);

	return json_sprintf("%s=%s", key, text ? text : "");
}

static bool put_words(json_t *list, const struct strv *v, size_t from)
{
	for (size_t i = from; i < v->n; i++)
		if (json_array_append_new(list, json_string(v->v[i])) < 0)
			return false;
	return true;
}

/* The box's variables as a list, then these. */
static json_t *merge_env(const json_t *old, const struct strv *more)
{
	json_t *list = json_is_array(old) ? json_deep_copy(old) : json_array();
	bool is_good = true;
	const char *key;
	json_t *v;

	if (json_is_object(old))
		json_object_foreach((json_t *)old, key, v)
			is_good = is_good &&
				  json_array_append_new(list, pair(key, v)) ==
					  0;
	if (is_good && put_words(list, more, 0))
		return list;
	json_decref(list);
	return NULL;
}

static json_t *exec_settings(const struct exec *e)
{
	json_t *s = parse_value(e->box->settings);

	if ((!e->env.n ||
	     doc_put(s, "env",
		     merge_env(json_object_get(s, "env"), &e->env))) &&
	    (!e->workdir || doc_put(s, "workdir", json_string(e->workdir))) &&
	    (!e->user || doc_put(s, "user", json_string(e->user))) &&
	    doc_put(s, "tty", json_boolean(e->tty)) &&
	    doc_put(s, "interactive", json_boolean(e->has_stdin)))
		return s;
	json_decref(s);
	return NULL;
}

static json_t *exec_request(const struct exec *e)
{
	json_t *o = json_object();
	json_t *command = json_array();

	if (put_words(command, &e->command, e->shim_skip) &&
	    doc_put(o, "settings", exec_settings(e)) &&
	    (!e->code || doc_put(o, "code", parse_value(e->code))) &&
	    put_stdin(o, e->input, e->has_stdin || e->tty) &&
	    (!e->command.n || doc_put(o, "command", json_incref(command))) &&
	    doc_put(o, "run", json_string(e->run)) &&
	    doc_put(o, "box", json_string(e->box->id)) &&
	    doc_put(o, "face", json_string(e->box->face)) &&
	    doc_put(o, "clamp", json_boolean(e->box->clamp)) &&
	    (!e->user || doc_put(o, "as_user", json_true())) &&
	    (!e->box->programs ||
	     doc_put(o, "programs", parse_value(e->box->programs))) &&
	    (!e->box->gate_again ||
	     doc_put(o, "gate", parse_value(e->box->gate_again))) &&
	    doc_put(o, "exec", json_true())) {
		json_decref(command);
		return o;
	}
	json_decref(command);
	json_decref(o);
	return NULL;
}

static void exec_answer(void *arg, const struct order_answer *answer, int *fds,
			int n)
{
	struct asking *a = arg;
	struct exec_made made = { .work = NO_FD };
	struct err err = { 0 };

	asking_over(a);
	if (answer->err.code || answer->refused) {
		explain(a->box, a->exec, answer, n > 0 ? fds[n - 1] : NO_FD,
			&err);
		made.no_program = err.code == MGR_NO_PROGRAM;
	} else if (n < 2) {
		(void)err_set(&err, MGR_SETUP, "the preparer's answer is cut");
	} else {
		struct answer_doc d;

		(void)doc_open(&d, fds[n - 1], &err);
		made.work = take_fd(&fds[n - 2]);
		made.start = copy(d.start);
		made.keep_output = doc_bool(d.head, "keep_output");
		doc_done(&d);
		if (!made.start && !err.code)
			(void)err_set(&err, MGR_SETUP,
				      "the preparer's answer lacks 'start'");
	}
	a->exec_done(a->arg, &made, err.code ? &err : NULL);
	fd_close(&made.work);
	free(made.start);
	asking_free(a);
}

int exec_prepare(struct exec *e, exec_prepared_fn *done, void *arg,
		 struct err *err)
{
	int who = box_identity(e->box);
	struct asking *a;
	json_t *request;
	int r;

	if (who < 0)
		return err_set(err, MGR_DENIED,
			       "who made the box is not known "
			       "any more");
	a = calloc(1, sizeof(*a));
	if (!a)
		return err_set(err, ENOMEM, "out of memory");
	*a = (struct asking){ .box = box_ref(e->box),
			      .exec = exec_ref(e),
			      .exec_done = done,
			      .arg = arg };
	e->policy_age = e->m->policy_age;
	request = exec_request(e);
	r = prepare_ask(e->box,
			&(struct prepare_want){ request, who, asking_asked,
						false },
			exec_answer, a, err);
	json_decref(request);
	if (r < 0)
		asking_free(a);
	return r;
}
