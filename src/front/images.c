/* SPDX-License-Identifier: Apache-2.0 */

/* cordon-image, run by the parent: only its streams pass through here. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "base/visible.h"
#include "front/doc.h"
#include "front/front.h"

#define MAX_WORDS 16384 /* of standard error */

struct image_run {
	struct manager *m;
	struct task task;
	struct sink sink;
	struct call *call;
	struct inlet *in;
	struct spout *out, *err;
	struct buf words;
	char *rest;
	size_t rest_off, rest_len;
	void (*ready)(void *arg);
	bool wants_room, is_blocked, is_dropped, is_answered;
	int exit_code;
	struct err why;
};

static void run_free(struct task *task)
{
	struct image_run *r = task_of(task, struct image_run, task);

	inlet_close(&r->in);
	spout_close(&r->out);
	spout_close(&r->err);
	buf_done(&r->words);
	free(r->rest);
	free(r);
}

/* The last line that it said, without its end. */
static void last_words(struct image_run *r, struct err *err)
{
	char *text = r->words.data ? r->words.data : (char *)"";
	size_t len = strlen(text);
	struct buf b;
	char *line;

	while (len > 0 && text[len - 1] == '\n')
		len--;
	line = memrchr(text, '\n', len);
	line = line ? line + 1 : text;
	buf_init(&b, 8192);
	visible_text(&b, line, len - (size_t)(line - text), 400);
	(void)err_set(err, IMAGE_STATUS(r->exit_code), "%s",
		      b.data && *b.data ? b.data : "cordon-image failed");
	buf_done(&b);
}

static void check_over(struct image_run *r)
{
	struct err err = { 0 };

	if (!r->is_answered || r->out || r->err || r->rest)
		return;
	if (r->why.code)
		err = r->why;
	else if (r->exit_code)
		last_words(r, &err);
	if (!r->is_dropped) {
		r->is_dropped = true;
		r->sink.end(r->sink.arg);
		call_end(r->call, &err);
		soon(r->m, &r->task, run_free);
	}
}

static void answered(void *arg, const struct order_answer *a, int *fds, int n)
{
	struct image_run *r = arg;

	(void)fds;
	(void)n;
	r->is_answered = true;
	r->exit_code = a->exit_code;
	if (a->err.code) {
		r->why = a->err;
		r->why.code = a->err.code == EPIPE ? MGR_LOST : MGR_SETUP;
	}
	if (r->is_dropped) {
		soon(r->m, &r->task, run_free);
	} else {
		check_over(r);
	}
}

/* True if the sink took all of it. */
static bool give(struct image_run *r, const char *data, size_t len)
{
	size_t n = r->sink.write(r->sink.arg, 1, data, len);

	if (r->is_dropped || n == len)
		return !r->is_dropped;
	r->is_blocked = true;
	spout_go(r->out, false);
	if (r->rest) {
		r->rest_off += n;
		return false;
	}
	r->rest = malloc(len - n);
	if (!r->rest)
		abort();
	memcpy(r->rest, data + n, len - n);
	r->rest_off = 0;
	r->rest_len = len - n;
	return false;
}

static void read_out(void *arg)
{
	struct image_run *r = arg;
	char *data = r->m->scratch;

	for (int i = 0; i < 16 && r->out && !r->is_blocked; i++) {
		ssize_t n = read(spout_fd(r->out), data, FRONT_SCRATCH);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0)
			spout_close(&r->out);
		else if (!give(r, data, (size_t)n))
			return;
	}
	check_over(r);
}

static void read_err(void *arg)
{
	struct image_run *r = arg;
	ssize_t n = read(spout_fd(r->err), r->m->scratch, MAX_WORDS / 2);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		spout_close(&r->err);
		check_over(r);
		return;
	}
	if (r->words.len + (size_t)n > MAX_WORDS)
		r->words.len = 0; /* the last of it counts */
	(void)buf_add(&r->words, r->m->scratch, (size_t)n);
}

static void has_room(void *arg)
{
	struct image_run *r = arg;

	if (!r->wants_room || !r->ready || r->is_dropped)
		return;
	r->wants_room = false;
	r->ready(r->sink.arg);
}

static int seal_args(const char *const *args)
{
	struct buf b;
	int fd;

	buf_init(&b, 1 << 20);
	for (size_t i = 0; args[i]; i++)
		(void)buf_add(&b, args[i], strlen(args[i]) + 1);
	fd = b.error || !b.data ? -EINVAL : doc_seal(b.data, b.len);
	buf_done(&b);
	return fd;
}

/* fds: what the other side gets; ours are in r. */
static int open_pipes(struct image_run *r, bool has_input, int fds[4])
{
	int pair[2];

	if (!has_input) {
		fds[1] = fcntl(r->m->null_fd, F_DUPFD_CLOEXEC, 3);
	} else if (pipe_make(pair, true) == 0) {
		fds[1] = pair[1];
		r->in = inlet_new(r->m, pair[0], has_room, r);
	}
	if (pipe_make(pair, false) == 0) {
		fds[2] = pair[1];
		r->out = spout_new(r->m, pair[0], read_out, r);
	}
	if (pipe_make(pair, false) == 0) {
		fds[3] = pair[1];
		r->err = spout_new(r->m, pair[0], read_err, r);
	}
	return fds[1] >= 0 && r->out && r->err && (r->in || !has_input)
		       ? 0
		       : -EMFILE;
}

/* NOLINTNEXTLINE(readability-function-size): the interface of the faces */
struct image_run *image_run(struct manager *m, const struct peer *peer,
			    const char *const *args, bool has_input,
			    const struct sink *sink, mgr_done_fn *done,
			    void *arg, struct err *err)
{
	/* What it may, the face has asked the policy. */
	struct turn_want turn = { .kind = TURN_IMAGE, .owner = peer->uid };
	struct image_run *r;
	/* The last stays the caller's. */
	int fds[5] = { NO_FD, NO_FD, NO_FD, NO_FD, peer->fd };
	int ret = 0;

	/* As slow as who sends or reads it. */
	if (has_input || strcmp(args[0], "save") == 0)
		turn.kind = TURN_ARCHIVE;
	r = calloc(1, sizeof(*r));
	if (!r || !(r->call = call_new_done(m, done, arg))) {
		free(r);
		(void)err_set(err, ENOMEM, "out of memory");
		return NULL;
	}
	r->m = m;
	r->sink = *sink;
	buf_init(&r->words, MAX_WORDS);
	fds[0] = seal_args(args);
	if (fds[0] < 0 || open_pipes(r, has_input, fds) < 0)
		ret = err_set(err, MGR_BUSY, "no pipes can be had");
	else
		ret = turn_ask(m, &turn, fds, 5, answered, r, err);
	for (int i = 0; i < 4; i++)
		fd_close(&fds[i]);
	if (ret < 0) {
		call_free(r->call);
		run_free(&r->task);
		return NULL;
	}
	return r;
}

size_t image_run_add(struct image_run *r, const char *data, size_t len)
{
	size_t n = r->in ? inlet_write(r->in, data, len) : len;

	r->wants_room = n < len;
	return n;
}

void image_run_on_ready(struct image_run *r, void (*ready)(void *arg))
{
	r->ready = ready;
}

void image_run_end_input(struct image_run *r)
{
	inlet_close(&r->in);
}

void image_run_ready(struct image_run *r)
{
	if (r->is_dropped || !r->is_blocked)
		return;
	r->is_blocked = false;
	if (r->rest &&
	    !give(r, r->rest + r->rest_off, r->rest_len - r->rest_off))
		return;
	free(take_ptr(r->rest));
	spout_go(r->out, true);
	check_over(r);
}

void image_run_drop(struct image_run *r)
{
	if (!r || r->is_dropped)
		return;
	r->is_dropped = true;
	call_free(take_ptr(r->call));
	/* It gets SIGPIPE, or the end of its input, and ends; then answered()
	 */
	inlet_close(&r->in);
	spout_close(&r->out);
	spout_close(&r->err);
}
