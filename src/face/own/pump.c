/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Between a feed of the manager and a pipe of HTTP: output in frames (or as it
 * is), input raw, each side held back when the other does not take.
 *
 * Either end may go first. The pump is there until both have: the pipe tells
 * by gone(), the feed by end(), and a feed whose pipe is gone is dropped.
 */

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/util.h"
#include "face/own/internal.h"

/* Frames are at most so long. */
#define MAX_FRAME 65536

struct pump {
	struct http_pipe *pipe; /* NULL: not yet */
	struct feed *feed;      /* NULL: it has ended */
	bool is_raw, has_ended, is_blocked;
};

void own_frame_head(char head[PUMP_HEAD], int stream, size_t len)
{
	memset(head, 0, PUMP_HEAD);
	head[0] = (char)stream;
	for (int i = 0; i < 4; i++)
		head[4 + i] = (char)(len >> (24 - 8 * i));
}

static size_t on_output(void *arg, int stream, const char *data, size_t len)
{
	struct pump *p = arg;
	char head[PUMP_HEAD];
	size_t head_len = p->is_raw ? 0 : PUMP_HEAD;
	size_t room = p->pipe ? pipe_room(p->pipe) : 0;
	size_t n = MIN(MIN(len, MAX_FRAME),
		       room > head_len ? room - head_len : 0);
	struct iovec v[2] = {
		{ head, head_len },
		{ (void *)(uintptr_t)data, n },
	};

	p->is_blocked = n < len;
	if (n == 0)
		return 0;
	own_frame_head(head, stream, n);
	(void)pipe_write(p->pipe, v, 2);
	return n;
}

static void on_end(void *arg)
{
	struct pump *p = arg;

	p->feed = NULL;
	p->has_ended = true;
	if (p->pipe)
		pipe_end(p->pipe);
}

static size_t on_input(void *data, const char *bytes, size_t len)
{
	struct pump *p = data;

	return p->feed ? feed_input(p->feed, bytes, len) : len;
}

static void on_input_end(void *data)
{
	struct pump *p = data;

	if (p->feed)
		feed_end_input(p->feed);
}

static void on_ready(void *data)
{
	struct pump *p = data;

	if (p->feed && p->is_blocked) {
		p->is_blocked = false;
		feed_ready(p->feed);
	}
}

static void on_gone(void *data)
{
	struct pump *p = data;

	p->pipe = NULL;
	pump_free(p);
}

static void input_ready(void *arg)
{
	struct pump *p = arg;

	if (p->pipe)
		pipe_input_ready(p->pipe);
}

struct pump *pump_new(bool is_raw)
{
	struct pump *p = calloc(1, sizeof(*p));

	if (p)
		p->is_raw = is_raw;
	return p;
}

struct sink pump_sink(struct pump *p)
{
	return (struct sink){ .write = on_output, .end = on_end, .arg = p };
}

void pump_set_feed(struct pump *p, struct feed *f)
{
	p->feed = f;
	if (f)
		feed_on_input(f, input_ready);
}

void pump_open(struct pump *p, struct http_request *r)
{
	static const struct http_pipe_events events = {
		.input = on_input,
		.input_end = on_input_end,
		.ready = on_ready,
		.gone = on_gone,
	};

	p->pipe = http_upgrade(r, p->is_raw ? OWN_RAW : OWN_FRAME, &events, p);
	if (p->has_ended)
		pipe_end(p->pipe);
	on_ready(p);
}

void pump_free(struct pump *p)
{
	if (p->feed)
		feed_drop(p->feed);
	free(p);
}

void pump_join(struct pump *p, struct http_request *r, struct feed *f,
	       const struct err *err)
{
	if (!f) {
		pump_free(p);
		own_error(r, err);
		return;
	}
	pump_set_feed(p, f);
	pump_open(p, r);
}
