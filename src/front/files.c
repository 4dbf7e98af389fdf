/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Tars out of boxes and into them.
 *
 *	box -- socket -- [thread: tar.c] -- pipe -- loop -- client
 *
 * libarchive wants to block, and the loop must not: so each transfer has a
 * thread, which knows two descriptors and nothing else. When it has ended it
 * says so by closing its end of a pipe (`told`). Whoever gives up shuts the
 * descriptors, and the thread ends. At most FRONT_MAX_TARS at once.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/util.h"
#include "box/files.h"
#include "front/files.h"
#include "front/tar.h"

#define STACK     (256 << 10)
#define SILENCE_S 60 /* of the box */

struct tar {
	struct need need;
	struct manager *m;
	struct box *box; /* a reference */
	char *path;
	char root[256];
	bool is_export; /* all of the root, under no name */

	/* the thread's; it alone closes them */
	uv_thread_t thread;
	int sock, pipe, told_end;
	bool is_writing;
	struct files_ask ask; /* of a write */
	struct err result;
	struct left_out left_out;

	bool has_thread, is_dropped;
	int sock_copy; /* to shut it */
	struct spout *told;
	struct call *stat_call; /* reading: it exists */

	/* reading */
	struct feed *feed;
	struct spout *in;
	char *rest; /* that the sink did not take */
	size_t rest_off, rest_len;
	bool is_over; /* the thread has ended */

	/* writing */
	struct files_writer *writer;
};

struct files_writer {
	struct tar *tar;
	struct inlet *out;
	struct call *call;
	void (*ready)(void *arg);
	bool wants_room;
};

static void tar_read(void *arg);
static void tar_written(void *arg);

/* ---- the thread ---- */

static void work(void *arg)
{
	struct tar *t = arg;

	if (t->is_writing)
		(void)tar_to_box(t->sock, t->pipe, t->path, &t->ask,
				 &t->result);
	else
		(void)tar_from_box(t->sock, t->pipe, t->root, &t->left_out,
				   &t->result);
	(void)close(t->sock);
	(void)close(t->pipe);
	(void)close(t->told_end);
}

static void tar_free(struct tar *t)
{
	struct box *b = t->box;

	spout_close(&t->told);
	spout_close(&t->in);
	fd_close(&t->sock_copy);
	b->n_tars--;
	t->m->n_tars--;
	box_wall_idle(b);
	box_unref(b);
	free(t->path);
	free(t->rest);
	free(t);
}

static void tar_shut(struct tar *t)
{
	t->is_dropped = true;
	if (t->sock_copy >= 0)
		(void)shutdown(t->sock_copy, SHUT_RDWR);
}

static int start_thread(struct tar *t, struct err *err)
{
	uv_thread_options_t options = { .flags = UV_THREAD_HAS_STACK_SIZE,
					.stack_size = STACK };
	struct timeval silence = { .tv_sec = SILENCE_S };
	int told[2];
	void (*done)(void *arg);

	(void)setsockopt(t->sock, SOL_SOCKET, SO_RCVTIMEO, &silence,
			 sizeof(silence));
	(void)setsockopt(t->sock, SOL_SOCKET, SO_SNDTIMEO, &silence,
			 sizeof(silence));
	t->sock_copy = fcntl(t->sock, F_DUPFD_CLOEXEC, 3);
	if (t->sock_copy < 0 || pipe_make(told, false) < 0)
		return err_errno(err, errno, "make a pipe");
	done = t->is_writing ? tar_written : tar_read;
	t->told = spout_new(t->m, told[0], done, t);
	t->told_end = told[1];
	if (t->told &&
	    uv_thread_create_ex(&t->thread, &options, work, t) == 0) {
		t->has_thread = true;
		return 0;
	}
	spout_close(&t->told);
	(void)close(told[1]);
	return err_set(err, MGR_BUSY, "no thread can be had");
}

static struct tar *tar_new(struct box *b, const char *path, struct err *err)
{
	struct tar *t;

	if (files_check(b, err) < 0)
		return NULL;
	if (b->m->n_tars >= FRONT_MAX_TARS) {
		(void)err_set(err, MGR_BUSY,
			      "%u archives are on their way, "
			      "which is the limit",
			      b->m->n_tars);
		return NULL;
	}
	if (!*path || strlen(path) > FILES_MAX_PATH) {
		(void)err_set(err, MGR_INVALID, "the path is not valid");
		return NULL;
	}
	t = calloc(1, sizeof(*t));
	if (!t || !(t->path = strdup(path))) {
		free(t);
		(void)err_set(err, ENOMEM, "out of memory");
		return NULL;
	}
	t->m = b->m;
	t->box = box_ref(b);
	t->sock = t->pipe = t->told_end = t->sock_copy = NO_FD;
	b->n_tars++;
	b->m->n_tars++;
	box_touch(b);
	return t;
}

/* ---- reading ---- */

/* It is over when both the thread has ended and all was passed on. */
static void read_check(struct tar *t)
{
	if (!t->is_over || t->in || t->rest)
		return;
	if (t->feed && !t->is_dropped)
		feed_finish(t->feed); /* frees it by read_gone() */
	else
		tar_free(t);
}

/* The archive itself cannot say it, and its head is long sent. */
static void tell_left_out(struct tar *t)
{
	char text[640];

	if (t->left_out.n == 0)
		return;
	(void)snprintf(text, sizeof(text),
		       "'%.200s' was read without %llu of its files, which the "
		       "box's user may not read; the first is '%.200s'",
		       t->path, (unsigned long long)t->left_out.n,
		       t->left_out.first);
	events_cordon(t->box, "archive", text);
}

static void tar_read(void *arg)
{
	struct tar *t = arg;

	(void)uv_thread_join(&t->thread);
	tell_left_out(t);
	spout_close(&t->told);
	t->is_over = true;
	if (t->is_dropped)
		tar_free(t);
	else
		read_check(t);
}

static bool give(struct tar *t, const char *data, size_t len)
{
	struct feed *f = t->feed;
	size_t n = f->sink.write(f->sink.arg, 1, data, len);

	if (f->is_dead)
		return false;
	if (n == len)
		return true;
	f->is_blocked = true;
	spout_go(t->in, false);
	if (t->rest) {
		t->rest_off += n;
		return false;
	}
	t->rest = malloc(len - n);
	if (!t->rest)
		abort();
	memcpy(t->rest, data + n, len - n);
	t->rest_off = 0;
	t->rest_len = len - n;
	return false;
}

static void read_pump(struct feed *f)
{
	struct tar *t = f->tar;
	char *data = f->m->scratch;

	if (t->rest) {
		if (!give(t, t->rest + t->rest_off, t->rest_len - t->rest_off))
			return;
		free(take_ptr(t->rest));
	}
	for (int i = 0; i < 16 && t->in; i++) {
		ssize_t n = read(spout_fd(t->in), data, FRONT_SCRATCH);

		if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
			spout_go(t->in, true);
			return;
		}
		if (n <= 0) {
			spout_close(&t->in);
			break;
		}
		if (!give(t, data, (size_t)n))
			return;
	}
	spout_go(t->in, true);
	read_check(t);
}

static void read_ready(void *arg)
{
	struct tar *t = arg;

	if (t->feed && !t->feed->is_blocked)
		read_pump(t->feed);
}

static void read_gone(struct feed *f)
{
	struct tar *t = f->tar;

	t->feed = NULL;
	f->tar = NULL;
	spout_close(&t->in);
	tar_shut(t);
	/* Without a thread the question is still open; see begin_read(). */
	if (t->is_over)
		tar_free(t);
}

static void read_done(struct feed *f)
{
	(void)f;
}

static const struct feed_ops read_ops = {
	.pump = read_pump,
	.gone = read_gone,
	.done = read_done,
};

/* No thread: the feed goes without a word, the caller has had its answer. */
static void read_stop(struct tar *t)
{
	t->is_over = true;
	if (t->feed)
		feed_drop(t->feed);
	else
		tar_free(t);
}

static int begin_read(struct tar *t, struct err *err)
{
	const struct files_ask ask = {
		.op = FILES_READ,
		.flags = strcmp(t->path, "/") == 0 ? FILES_ONE_FS : 0,
	};
	int pair[2];

	if (files_connect(t->box, &t->sock, err) < 0)
		return -err->code;
	if (files_send_ask(t->sock, &ask, t->path, err) < 0 ||
	    pipe_make(pair, false) < 0) {
		fd_close(&t->sock);
		return err->code ? -err->code
				 : err_errno(err, EMFILE, "make a pipe");
	}
	t->in = spout_new(t->m, pair[0], read_ready, t);
	t->pipe = pair[1];
	if (t->in && start_thread(t, err) == 0)
		return 0;
	fd_close(&t->sock);
	fd_close(&t->pipe);
	return err_set(err, MGR_BUSY, "no thread can be had");
}

static void exists(void *arg, const struct files_list *l, const struct err *err)
{
	struct tar *t = arg;
	struct call *c = take_ptr(t->stat_call);
	struct err why = { 0 };
	struct file_stat st;
	char name[256];

	files_last_part(t->path, name);
	if (l)
		files_fill_stat(l, name, &st);
	if (!err && t->feed && begin_read(t, &why) < 0)
		err = &why;
	if (!c->is_dropped)
		c->fn.stat(c->arg, err ? NULL : &st, err);
	call_free(c);
	if (!t->has_thread)
		read_stop(t);
}

static void root_name(struct tar *t)
{
	size_t len = strlen(t->path);

	if (t->is_export) {
		t->root[0] = '\0';
		return;
	}
	files_last_part(t->path, t->root);
	if (strcmp(t->root, "/") == 0 ||
	    (len >= 2 && strcmp(t->path + len - 2, "/.") == 0))
		memcpy(t->root, ".", 2);
}

static void deliver_stat(struct call *c)
{
	c->fn.stat(c->arg, NULL, &c->err);
}

struct call *files_read(struct box *b, const char *path,
			const struct sink *sink, struct feed **ret_feed,
			file_stat_fn *done, void *arg)
{
	struct call *c = call_new(b->m, arg);
	struct err err = { 0 };
	struct tar *t;

	*ret_feed = NULL;
	if (!c)
		return NULL;
	c->fn.stat = done;
	c->deliver = deliver_stat;
	t = tar_new(b, *path ? path : "/", &err);
	if (!t) {
		call_end(c, &err);
		return c;
	}
	t->is_export = !*path;
	root_name(t);
	t->feed = feed_new(b->m, &read_ops, sink, &err);
	if (!t->feed || box_ask(b, FILES_LOOK, t->path, exists, t, &err) < 0) {
		read_stop(t);
		call_end(c, &err);
		return c;
	}
	t->feed->tar = t;
	t->stat_call = c;
	*ret_feed = t->feed;
	return c;
}

/* ---- writing ---- */

static void writer_free(struct files_writer *w)
{
	inlet_close(&w->out);
	free(w);
}

static void written(struct tar *t, const struct err *err)
{
	struct files_writer *w = take_ptr(t->writer);

	if (w) {
		call_end(w->call, err && err->code ? err : NULL);
		w->call = NULL;
		w->tar = NULL; /* the face drops what is left of it */
		inlet_close(&w->out);
	}
	tar_free(t);
}

static void tar_written(void *arg)
{
	struct tar *t = arg;

	(void)uv_thread_join(&t->thread);
	written(t, &t->result);
}

static void begin_write(struct tar *t, const struct err *why)
{
	struct err err = { 0 };

	if (why)
		err = *why;
	else if (files_connect(t->box, &t->sock, &err) == 0 &&
		 start_thread(t, &err) == 0)
		return;
	fd_close(&t->sock);
	fd_close(&t->pipe);
	written(t, &err);
}

/*
 * What can be had without a kill: not what programs hold, but what is only a
 * copy of a disk. A part is left for the kernel's own. 0: there is no limit.
 */
static uint64_t memory_room(const struct session_usage *u)
{
	uint64_t used = u->memory -
			MIN(u->memory, u->inactive_file + u->active_file);
	uint64_t spare = MAX(u->memory_limit / 32, (uint64_t)1 << 20);

	if (u->memory_limit == 0 || u->memory_limit > INT64_MAX / 2)
		return 0;
	return MAX(u->memory_limit - MIN(u->memory_limit, used + spare),
		   (uint64_t)1);
}

static void write_has_room(void *arg, const struct session_usage *u)
{
	struct tar *t = arg;

	t->ask.memory = memory_room(u);
	begin_write(t, NULL);
}

static void write_is_up(struct need *n, const struct err *why)
{
	struct tar *t = task_of(n, struct tar, need);

	/* Without an answer it is written as far as it goes. */
	if (why || !t->box->session ||
	    session_ask_usage(t->box->session, write_has_room, t) < 0)
		begin_write(t, why);
}

static void has_room(void *arg)
{
	struct files_writer *w = arg;

	if (!w->wants_room || !w->ready)
		return;
	w->wants_room = false;
	w->ready(w->call ? w->call->arg : NULL);
}

struct files_writer *files_write(struct box *b, const char *path,
				 unsigned int flags, mgr_done_fn *done,
				 void *arg, struct err *err)
{
	struct tar *t = tar_new(b, path, err);
	struct files_writer *w = t ? calloc(1, sizeof(*w)) : NULL;
	int pair[2] = { NO_FD, NO_FD };

	if (!t)
		return NULL;
	if (w)
		w->call = call_new_done(b->m, done, arg);
	if (!w || !w->call || pipe_make(pair, true) < 0 ||
	    !(w->out = inlet_new(b->m, pair[0], has_room, w))) {
		fd_close(&pair[1]);
		if (w)
			call_free(w->call);
		free(w);
		tar_free(t);
		(void)err_set(err, ENOMEM, "out of memory");
		return NULL;
	}
	t->is_writing = true;
	t->ask.op = FILES_WRITE;
	t->ask.flags = (flags & FILES_PUT_NO_OVERWRITE ? FILES_NO_OVERWRITE
						       : 0) |
		       (flags & FILES_PUT_IDS ? FILES_IDS : 0);
	t->pipe = pair[1];
	t->writer = w;
	w->tar = t;
	box_need(b, &t->need, write_is_up);
	return w;
}

size_t files_writer_add(struct files_writer *w, const char *data, size_t len)
{
	size_t n = w->out ? inlet_write(w->out, data, len) : len;

	w->wants_room = n < len;
	return n;
}

void files_writer_on_ready(struct files_writer *w, void (*ready)(void *arg))
{
	w->ready = ready;
}

void files_writer_end(struct files_writer *w)
{
	inlet_close(&w->out);
}

void files_writer_drop(struct files_writer *w)
{
	struct tar *t;

	if (!w)
		return;
	t = w->tar;
	if (t) {
		t->writer = NULL;
		tar_shut(t);
		call_free(w->call);
	}
	writer_free(w);
}
