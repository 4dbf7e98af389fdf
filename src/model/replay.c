/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Answers from a recording (recording.h). The file is read and checked whole
 * when the model is made; all models of one loop that play the same file take
 * their answers from the same tape.
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/util.h"
#include "model/recording.h"

struct entry {
	char hash[HASH_SIZE]; /* empty: it has none */
	json_t *chunks;
	int64_t delay_us;
	struct model_result result;
	struct fault fault; /* it failed, if there is a code */
	bool is_used;
};

struct tape {
	struct loop *loop;
	unsigned int refs;
	char *path;
	json_t *head;
	bool is_by_hash;
	struct entry *entries;
	size_t n, next;
	struct tape *others;
};

struct replay {
	struct model m;
	struct tape *tape;
};

struct replay_call {
	struct model_call c;
	struct entry *entry;
	struct task task;
	struct timer timer;
	size_t at; /* of the chunks */
};

static _Thread_local struct tape *tapes;

/* --- the file --- */

static int load_entry(struct entry *e, const json_t *o, size_t line,
		      struct err *err)
{
	json_t *chunks = json_object_get(o, "chunks");
	json_t *result = json_object_get(o, "result");
	json_t *fault = json_object_get(o, "fault");
	const char *hash = json_string_value(
		json_object_get(json_object_get(o, "request"), "hash"));

	if (hash && strlen(hash) == HASH_SIZE - 1)
		memcpy(e->hash, hash, HASH_SIZE);
	e->delay_us = json_integer_value(json_object_get(o, "delay_ms")) * 1000;
	e->chunks = json_is_array(chunks) ? json_incref(chunks) : NULL;
	if (fault)
		return fault_load(&e->fault, fault, err);
	if (!result && !e->chunks)
		return err_set(err, EINVAL,
			       "neither 'result' nor 'chunks' nor 'fault'");
	return recording_load_result(&e->result, result, e->chunks, line, err);
}

static void entry_done(struct entry *e)
{
	json_decref(e->chunks);
	result_done(&e->result);
	fault_done(&e->fault);
}

static int load_head(struct tape *t, json_t *o, struct err *err)
{
	const char *match = json_string_value(json_object_get(o, "match"));

	if (json_integer_value(json_object_get(o, "recording")) !=
	    RECORDING_VERSION)
		return err_set(err, EINVAL, "a recording of another version");
	if (match && strcmp(match, "order") != 0 && strcmp(match, "hash") != 0)
		return err_set(err, EINVAL,
			       "'match' must be 'order' or 'hash'");
	t->is_by_hash = match && strcmp(match, "hash") == 0;
	t->head = json_incref(o);
	return 0;
}

static int load_line(struct tape *t, json_t *o, size_t line, struct err *err)
{
	struct entry *more;

	if (json_object_get(o, "recording") && !t->head && t->n == 0)
		return load_head(t, o, err);
	more = reallocarray(t->entries, t->n + 1, sizeof(*more));
	if (!more)
		return err_set(err, ENOMEM, "out of memory");
	t->entries = more;
	more += t->n++;
	memset(more, 0, sizeof(*more));
	return load_entry(more, o, line, err);
}

static int load_text(struct tape *t, char *text, struct err *err)
{
	size_t line = 0;
	char *rest = text;
	char *p;

	while ((p = strsep(&rest, "\n"))) {
		json_t *o;
		int r;

		line++;
		p += strspn(p, " \t\r");
		if (!*p || *p == '#')
			continue;
		o = json_loads(p, JSON_REJECT_DUPLICATES, NULL);
		r = json_is_object(o) ? load_line(t, o, line, err)
				      : err_set(err, EINVAL,
						"not a JSON document on one "
						"line");
		json_decref(o);
		if (r < 0)
			return err_wrap(err, "line %zu", line);
	}
	return 0;
}

static int read_file(const char *path, char **ret, struct err *err)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	_cleanup_free_ char *text = NULL;
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, errno, "open");
	if (!S_ISREG(st.st_mode) || (size_t)st.st_size > RECORDING_MAX)
		return err_set(err, EFBIG, "no file, or larger than %zu MiB",
			       RECORDING_MAX >> 20);
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return err_set(err, ENOMEM, "out of memory");
	n = io_read_full(fd, text, (size_t)st.st_size);
	if (n < 0)
		return err_errno(err, (int)-n, "read");
	text[n] = '\0';
	*ret = take_ptr(text);
	return 0;
}

static void tape_unref(struct tape *t)
{
	struct tape **at = &tapes;

	if (!t || --t->refs)
		return;
	while (*at && *at != t)
		at = &(*at)->others;
	if (*at)
		*at = t->others;
	for (size_t i = 0; i < t->n; i++)
		entry_done(&t->entries[i]);
	free(t->entries);
	json_decref(t->head);
	free(t->path);
	free(t);
}

static int tape_load(struct tape *t, struct err *err)
{
	_cleanup_free_ char *text = NULL;
	int r = read_file(t->path, &text, err);

	return r < 0 ? r : load_text(t, text, err);
}

/* NULL with *err. */
static struct tape *tape_get(struct loop *l, const char *file, struct err *err)
{
	_cleanup_free_ char *path = realpath(file, NULL);
	struct tape *t = tapes;

	if (!path) {
		(void)err_errno(err, errno, "open");
		return NULL;
	}
	while (t && (t->loop != l || strcmp(t->path, path) != 0))
		t = t->others;
	if (t) {
		t->refs++;
		return t;
	}
	t = calloc(1, sizeof(*t));
	if (!t) {
		(void)err_set(err, ENOMEM, "out of memory");
		return NULL;
	}
	t->refs = 1;
	t->loop = l;
	t->path = take_ptr(path);
	if (tape_load(t, err) < 0) {
		tape_unref(t);
		return NULL;
	}
	t->others = tapes;
	tapes = t;
	return t;
}

/* --- calls --- */

static struct entry *next_entry(struct tape *t, const char *hash)
{
	if (!t->is_by_hash)
		return t->next < t->n ? &t->entries[t->next++] : NULL;
	for (size_t i = 0; i < t->n; i++) {
		struct entry *e = &t->entries[i];

		if (!e->is_used && strcmp(e->hash, hash) == 0)
			return e;
	}
	return NULL;
}

static int find_entry(struct replay_call *c, const struct model_request *q)
{
	struct tape *t = ((struct replay *)c->c.model)->tape;
	char hash[HASH_SIZE] = "";

	if (t->is_by_hash && recording_hash(q, hash) < 0)
		return -ENOMEM;
	c->entry = next_entry(t, hash);
	if (c->entry) {
		c->entry->is_used = true;
		return 0;
	}
	if (t->is_by_hash)
		fault_set(&c->c.why, FAULT_NOT_FOUND,
			  "recording '%s' has no answer (or no more) to the "
			  "request %.16s...",
			  t->path, hash);
	else
		fault_set(&c->c.why, FAULT_NOT_FOUND,
			  "recording '%s' is at its end: it has %zu answers",
			  t->path, t->n);
	return -ENOENT;
}

static void play_chunk(struct replay_call *c, const json_t *v)
{
	const json_t *thought = json_object_get(v, "thought");
	const json_t *text = thought ? thought : v;

	call_chunk(&c->c, thought != NULL, json_string_value(text),
		   json_string_length(text));
}

/* Without chunks of its own an answer comes in one. */
static void play_whole(struct replay_call *c)
{
	const struct model_result *r = &c->entry->result;

	if (r->thought)
		call_chunk(&c->c, true, r->thought, strlen(r->thought));
	if (r->content)
		call_chunk(&c->c, false, r->content, strlen(r->content));
}

static void end(struct replay_call *c)
{
	if (c->c.is_over)
		return;
	if (c->entry->fault.code != FAULT_NONE) {
		fault_copy(&c->c.why, &c->entry->fault);
		call_fail(&c->c);
	} else if (result_copy(&c->c.result, &c->entry->result) < 0) {
		call_fail(&c->c);
	} else {
		call_end(&c->c);
	}
}

/* One chunk at a time: others have their turn between them. */
static void play(struct task *t)
{
	struct replay_call
		*c = (struct replay_call *)((char *)t -
					    offsetof(struct replay_call, task));
	const json_t *chunks = c->entry->chunks;

	if (c->c.is_stream && c->at < json_array_size(chunks)) {
		play_chunk(c, json_array_get(chunks, c->at++));
		if (!c->c.is_over)
			loop_soon(c->c.model->loop, t);
		return;
	}
	if (c->c.is_stream && !chunks)
		play_whole(c);
	end(c);
}

static void is_time(struct timer *t)
{
	struct replay_call *c =
		(struct replay_call *)((char *)t -
				       offsetof(struct replay_call, timer));

	loop_soon(c->c.model->loop, &c->task);
}

static int start(struct model_call *call, const struct model_request *q)
{
	struct replay_call *c = (struct replay_call *)call;
	struct loop *l = call->model->loop;
	int r = find_entry(c, q);

	if (r < 0)
		return r;
	c->task.run = play;
	c->timer.fire = is_time;
	if (c->entry->delay_us > 0)
		return timer_set(l, &c->timer, clock_us() + c->entry->delay_us);
	loop_soon(l, &c->task);
	return 0;
}

static void stop(struct model_call *call)
{
	struct replay_call *c = (struct replay_call *)call;

	task_drop(&c->task);
	timer_stop(&c->timer);
}

static void done(struct model_call *call)
{
	(void)call;
}

static void free_model(struct model *m)
{
	tape_unref(((struct replay *)m)->tape);
}

static const struct model_ops ops = { sizeof(struct replay),
				      sizeof(struct replay_call),
				      start,
				      stop,
				      done,
				      free_model };

static int make(struct loop *l, const char *file, struct model **ret,
		struct err *err)
{
	struct tape *t = tape_get(l, file, err);
	const char *name;
	struct model *m;
	json_t *info;
	int r;

	if (!t)
		return -err->code;
	name = json_string_value(json_object_get(t->head, "model"));
	m = provider_new(&ops, l, name ? name : "replay");
	if (!m) {
		tape_unref(t);
		return err_set(err, ENOMEM, "out of memory");
	}
	((struct replay *)m)->tape = t;
	info = json_object_get(t->head, "info");
	r = info ? info_load(&m->info, info, err) : 0;
	if (r < 0) {
		model_unref(m);
		return r;
	}
	*ret = m;
	return 0;
}

int model_replay(struct loop *l, const char *file, struct model **ret,
		 struct err *err)
{
	int r = make(l, file, ret, err);

	return r < 0 ? err_wrap(err, "recording '%s'", file) : 0;
}
