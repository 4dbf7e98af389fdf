/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The streams of a program in a box.
 *
 * What it writes goes to the feeds that are attached to it. What one of them
 * does not take waits in chunks, at most FRONT_BUFFER bytes; then the pipe is
 * not read any more, and the program stands still (back-pressure). Without a
 * feed (detached, or the client is gone) it is never held up: the last
 * FRONT_BUFFER bytes are kept for who attaches.
 *
 * At its end (docker-api.md 6.6) the pipes are read until they are empty and
 * nobody has them any more; if others hold them, until nothing came for 250 ms,
 * at most for 2 s. Then what those others write is read, counted and dropped.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"
#include "front/exec.h"

#define TICK_US       50000
#define QUIET_US      250000
#define DRAIN_US      2000000
#define DISCONNECT_US 5000000
#define KEEP_US       60000000
#define KEEP_ALL      ((size_t)16 << 20) /* output of all ended execs */

static void readable(void *arg);

/* ---- chunks ---- */

static void drop_first(struct exec *e)
{
	struct chunk *c = e->chunks;

	e->chunks = c->next;
	if (!e->chunks)
		e->chunks_end = &e->chunks;
	e->buffered -= c->len;
	free(c);
}

static void drop_all(struct exec *e)
{
	while (e->chunks)
		drop_first(e);
	e->m->kept_bytes -= e->kept;
	e->kept = 0;
}

static uint64_t slowest(const struct exec *e)
{
	uint64_t seq = e->next_seq;

	for (const struct feed *f = e->feeds; f; f = f->next)
		seq = MIN(seq, f->seq);
	return seq;
}

/* Lets go of what nobody needs. */
static void trim(struct exec *e)
{
	uint64_t needed = slowest(e);

	while (e->chunks && e->chunks->seq < needed &&
	       (!e->is_detached || e->buffered > FRONT_BUFFER))
		drop_first(e);
}

static bool is_full(const struct exec *e)
{
	uint64_t seq = slowest(e);
	size_t waiting = 0;

	if (!e->feeds || e->is_drained)
		return false;
	for (const struct chunk *c = e->chunks; c; c = c->next)
		if (c->seq >= seq)
			waiting += c->len;
	return waiting + FRONT_SCRATCH > FRONT_BUFFER;
}

static void add_chunk(struct exec *e, int stream, const char *data, size_t len)
{
	struct chunk *c = malloc(sizeof(*c) + len);

	if (!c) {
		e->dropped += len;
		return;
	}
	memcpy(c->data, data, len);
	c->len = len;
	c->stream = stream;
	c->seq = e->next_seq++;
	c->next = NULL;
	*e->chunks_end = c;
	e->chunks_end = &c->next;
	e->buffered += len;
	trim(e);
}

/* ---- feeds ---- */

static const struct chunk *find_chunk(struct feed *f)
{
	const struct chunk *c = f->exec->chunks;

	while (c && c->seq < f->seq)
		c = c->next;
	if (c && c->seq > f->seq)
		f->inner = 0;
	return c;
}

static void go_on_reading(struct exec *e)
{
	bool is_wanted = !is_full(e);

	spout_go(e->out, is_wanted);
	spout_go(e->err, is_wanted);
}

static void exec_pump(struct feed *f)
{
	struct exec *e = f->exec;
	const struct chunk *c;

	while ((c = find_chunk(f))) {
		size_t n = c->len - f->inner;
		uint64_t seq = c->seq;

		if (f->streams & 1U << c->stream)
			n = f->sink.write(f->sink.arg, c->stream,
					  c->data + f->inner, n);
		if (f->is_dead)
			return;
		f->inner += n;
		if (f->inner < c->len) {
			f->is_blocked = true;
			return;
		}
		f->seq = seq + 1;
		f->inner = 0;
		trim(e);
	}
	if (e->is_drained && e->state == EXEC_ENDED)
		feed_finish(f);
	else
		go_on_reading(e);
}

static size_t exec_input(struct feed *f, const char *data, size_t len)
{
	struct exec *e = f->exec;

	box_touch(e->box);
	if (e->in)
		return inlet_write(e->in, data, len);
	return e->is_in_closed || e->state >= EXEC_ENDING ? len : 0;
}

static void exec_end_input(struct feed *f)
{
	struct exec *e = f->exec;

	e->is_in_closed = true;
	if (!e->tty)
		inlet_close(&e->in);
}

static void client_gone(void *arg)
{
	struct exec *e = arg;

	if (!e->feeds && e->state == EXEC_RUNNING)
		exec_kill_group(e);
}

static void exec_gone(struct feed *f)
{
	struct exec *e = f->exec;
	struct feed **p = &e->feeds;

	while (*p && *p != f)
		p = &(*p)->next;
	if (*p)
		*p = f->next;
	if (!e->feeds && e->state < EXEC_ENDING) {
		e->is_detached = true;
		if (e->box->kill_on_disconnect)
			alarm_set(e->m, &e->gone_alarm, DISCONNECT_US,
				  client_gone, e);
	}
	trim(e);
	go_on_reading(e);
}

static void exec_feed_done(struct feed *f)
{
	(void)f;
}

static const struct feed_ops exec_ops = {
	.pump = exec_pump,
	.input = exec_input,
	.end_input = exec_end_input,
	.gone = exec_gone,
	.done = exec_feed_done,
};

struct feed *exec_feed(struct exec *e, const struct sink *sink, struct err *err)
{
	struct feed *f = feed_new(e->m, &exec_ops, sink, err);

	if (!f)
		return NULL;
	f->exec = exec_ref(e);
	f->box = box_ref(e->box);
	f->has_stdin = e->has_stdin || e->tty;
	f->streams = (e->has_stdout || e->tty ? 2U : 0) |
		     (e->has_stderr ? 4U : 0);
	f->seq = e->chunks ? e->chunks->seq : e->next_seq;
	f->next = e->feeds;
	e->feeds = f;
	alarm_clear(&e->gone_alarm);
	feed_soon(f);
	return f;
}

struct feed *exec_attach(struct exec *e, const struct sink *sink,
			 struct err *err)
{
	if (e->state == EXEC_CREATED) {
		(void)err_set(err, MGR_NOT_RUNNING, "it was not started");
		return NULL;
	}
	box_touch(e->box);
	return exec_feed(e, sink, err);
}

/* ---- reading ---- */

/* The only feed, with nothing waiting, gets it without a copy. */
static size_t give_at_once(struct exec *e, int stream, const char *data,
			   size_t len)
{
	struct feed *f = e->feeds;
	size_t n;

	if (!f || f->next || e->is_detached || e->chunks || f->is_blocked ||
	    e->state < EXEC_RUNNING)
		return 0;
	if (!(f->streams & 1U << stream))
		return len;
	n = f->sink.write(f->sink.arg, stream, data, len);
	if (n < len && !f->is_dead)
		f->is_blocked = true;
	return n;
}

static void pass_on(struct exec *e, int stream, const char *data, size_t len)
{
	uint64_t max = e->box->exec_max_output;
	size_t n;

	if (max && e->given + len > max) {
		size_t room = (size_t)(max - MIN(max, e->given));

		e->dropped += len - room;
		len = room;
	}
	e->given += len;
	if (len == 0)
		return;
	n = give_at_once(e, stream, data, len);
	if (n < len)
		add_chunk(e, stream, data + n, len - n);
}

static void read_stream(struct exec *e, struct spout **s, int stream)
{
	for (int i = 0; i < 8 && *s && !is_full(e); i++) {
		char *data = e->m->scratch;
		ssize_t n = read(spout_fd(*s), data, FRONT_SCRATCH);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			spout_close(s);
			return;
		}
		e->quiet_us = clock_us();
		if (e->is_drained) {
			e->dropped += (uint64_t)n;
			continue;
		}
		*(stream == 1 ? &e->out_bytes : &e->err_bytes) += (uint64_t)n;
		if (e->keep_output)
			capture_add(&e->noted[stream - 1], data, (size_t)n);
		pass_on(e, stream, data, (size_t)n);
	}
}

static void drained(struct exec *e)
{
	char text[80];

	alarm_clear(&e->drain_alarm);
	if (!e->is_drained && e->dropped > 0 && e->box->exec_max_output) {
		(void)snprintf(text, sizeof(text),
			       "cordon: %llu more bytes were dropped "
			       "(max-output)\n",
			       (unsigned long long)e->dropped);
		exec_io_say(e, text);
	}
	e->is_drained = true;
	exec_run_ended(e);
	if (e->state == EXEC_ENDED)
		feed_kick(e->feeds);
}

static void readable(void *arg)
{
	struct exec *e = arg;
	struct box *b = box_ref(e->box);

	(void)exec_ref(e);
	read_stream(e, &e->out, 1);
	read_stream(e, &e->err, 2);
	feed_kick(e->feeds);
	if (is_full(e)) {
		spout_go(e->out, false);
		spout_go(e->err, false);
	}
	if (e->state >= EXEC_ENDING && !e->is_drained && !e->out && !e->err)
		drained(e);
	exec_unref(e);
	box_unref(b);
}

static void input_room(void *arg)
{
	struct exec *e = arg;

	feed_input_ready(e->feeds);
}

/* ---- opening, closing ---- */

static int one_pipe(struct exec *e, int i, int stdio[3])
{
	bool is_used = i == 0 ? e->has_stdin : true;
	int pair[2];
	int r;

	if (!is_used) {
		stdio[i] = fcntl(e->m->null_fd, F_DUPFD_CLOEXEC, 3);
		return stdio[i] < 0 ? -errno : 0;
	}
	r = pipe_make(pair, i == 0);
	if (r < 0)
		return r;
	stdio[i] = pair[1];
	if (i == 0)
		e->in = inlet_new(e->m, pair[0], input_room, e);
	else if (i == 1)
		e->out = spout_new(e->m, pair[0], readable, e);
	else
		e->err = spout_new(e->m, pair[0], readable, e);
	return (i == 0   ? (void *)e->in
		: i == 1 ? (void *)e->out
			 : e->err)
		       ? 0
		       : -ENOMEM;
}

int exec_io_open(struct exec *e, int stdio[3], struct err *err)
{
	for (int i = 0; i < 3; i++) {
		int r = one_pipe(e, i, stdio);

		if (r == 0)
			continue;
		for (int k = 0; k < 3; k++)
			fd_close(&stdio[k]);
		exec_io_close(e);
		return err_errno(err, -r, "make pipes");
	}
	if (e->is_in_closed)
		inlet_close(&e->in);
	return 0;
}

void exec_io_started(struct exec *e, int tty)
{
	int in, out;

	if (tty < 0)
		return;
	in = fcntl(tty, F_DUPFD_CLOEXEC, 3);
	out = fcntl(tty, F_DUPFD_CLOEXEC, 3);
	(void)fcntl(tty, F_SETFL, O_NONBLOCK);
	e->tty_fd = tty;
	if (in >= 0)
		e->in = inlet_new(e->m, in, input_room, e);
	if (out >= 0)
		e->out = spout_new(e->m, out, readable, e);
	if (e->rows && e->cols)
		tty_resize(tty, e->rows, e->cols);
}

static void drain_tick(void *arg)
{
	struct exec *e = arg;
	int64_t now = clock_us();

	alarm_set(e->m, &e->drain_alarm, TICK_US, drain_tick, e);
	if (is_full(e)) {
		/* Its client stands still: that is no reason to hide its end */
		e->quiet_us = now;
		e->ended_us += TICK_US;
		exec_run_ended(e);
	} else if (now - e->quiet_us >= QUIET_US ||
		   now - e->ended_us >= DRAIN_US) {
		drained(e);
		go_on_reading(e);
	}
}

void exec_io_ended(struct exec *e)
{
	e->ended_us = e->quiet_us = clock_us();
	inlet_close(&e->in);
	if (e->out || e->err) {
		alarm_set(e->m, &e->drain_alarm, TICK_US, drain_tick, e);
		readable(e);
	} else {
		drained(e);
	}
}

/* Nothing is left of the box: read what is in the pipes, and close them. */
void exec_io_close(struct exec *e)
{
	struct box *b = box_ref(e->box);

	(void)exec_ref(e);
	inlet_close(&e->in);
	if (!is_full(e)) {
		read_stream(e, &e->out, 1);
		read_stream(e, &e->err, 2);
	}
	spout_close(&e->out);
	spout_close(&e->err);
	fd_close(&e->tty_fd);
	if (e->state >= EXEC_ENDING && !e->is_drained)
		drained(e);
	exec_unref(e);
	box_unref(b);
}

void exec_io_say(struct exec *e, const char *text)
{
	add_chunk(e, 2, text, strlen(text));
	feed_kick(e->feeds);
}

static void keep_over(void *arg)
{
	struct exec *e = arg;

	if (!e->feeds)
		drop_all(e);
}

/* It was told that it ended: its feeds end when they have all. */
void exec_feeds_end(struct exec *e)
{
	feed_kick(e->feeds);
	if (e->feeds || !e->chunks)
		return;
	if (e->m->kept_bytes + e->buffered > KEEP_ALL) {
		drop_all(e);
		return;
	}
	e->kept = e->buffered;
	e->m->kept_bytes += e->kept;
	alarm_set(e->m, &e->gone_alarm, KEEP_US, keep_over, e);
}

void exec_io_free(struct exec *e)
{
	alarm_clear(&e->drain_alarm);
	spout_close(&e->out);
	spout_close(&e->err);
	inlet_close(&e->in);
	fd_close(&e->tty_fd);
	drop_all(e);
}
