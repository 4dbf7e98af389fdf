/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A client on a program: attach and exec.
 *
 * Output: the manager's sink -> frames -> pipe. When the pipe is full the sink
 * takes less, and the manager stops reading (an exec) or waits in its log (a
 * container). Input: pipe -> keys -> feed. The wire is freed when the pipe, or
 * the request, is gone; the feed is dropped before.
 */

#include <string.h>

#include "face/docker/stream.h"

struct wire *wire_new(struct docker *d)
{
	struct wire *w = calloc(1, sizeof(*w));

	if (!w)
		abort();
	w->d = d;
	return w;
}

void wire_free(struct wire *w)
{
	if (w->feed)
		feed_drop(w->feed);
	call_drop(w->call);
	out_done(&w->out);
	free(w);
}

/* ---- output ---- */

static void maybe_end(struct wire *w)
{
	if (w->has_ended && (w->out.p || w->out.r) && out_flush(&w->out))
		out_end(&w->out);
}

static size_t sink_write(void *arg, int stream, const char *data, size_t len)
{
	struct wire *w = arg;

	if (!w->has[stream == 2 ? 2 : 1])
		return len;
	if (!w->out.p && !w->out.r)
		return 0;
	return out_write(&w->out, stream, data, len);
}

void wire_end(struct wire *w)
{
	w->feed = NULL;
	w->has_ended = true;
	maybe_end(w);
}

static void sink_end(void *arg)
{
	wire_end(arg);
}

struct sink wire_sink(struct wire *w)
{
	return (struct sink){ sink_write, sink_end, w };
}

static void on_ready(void *data)
{
	struct wire *w = data;

	if (!out_flush(&w->out))
		return;
	if (w->has_ended)
		maybe_end(w);
	else if (w->feed)
		feed_ready(w->feed);
}

/* ---- input ---- */

static void detach(struct wire *w)
{
	if (w->feed)
		feed_drop(w->feed);
	wire_end(w);
}

/* True when nothing of it is held any more. */
static bool flush_held(struct wire *w)
{
	if (w->held_at < w->held_len && w->feed)
		w->held_at += feed_input(w->feed, w->held + w->held_at,
					 w->held_len - w->held_at);
	if (w->held_at < w->held_len && w->feed)
		return false;
	w->held_at = w->held_len = 0;
	if (w->input_ended && w->feed)
		feed_end_input(w->feed);
	w->input_ended = false;
	return true;
}

static void input_taken(void *arg)
{
	struct wire *w = arg;

	if (flush_held(w) && w->out.p)
		pipe_input_ready(w->out.p);
}

static size_t on_input(void *data, const char *bytes, size_t len)
{
	struct wire *w = data;
	bool is_over = false;

	/* Nobody listens: it is read away, or the end would not be seen. */
	if (!w->has[0] || !w->feed)
		return len;
	if (w->held_len > 0)
		return 0;
	if (!w->has_keys)
		return feed_input(w->feed, bytes, len);
	len = MIN(len, sizeof(w->held) - KEYS_MAX);
	w->held_len = keys_filter(&w->keys, bytes, len, w->held, &is_over);
	(void)flush_held(w);
	if (is_over)
		detach(w);
	return len;
}

static void on_input_end(void *data)
{
	struct wire *w = data;

	if (!w->has[0] || !w->feed)
		return;
	w->input_ended = true;
	(void)flush_held(w);
}

/* ---- the connection ---- */

static void on_gone(void *data)
{
	struct wire *w = data;

	w->out.p = NULL;
	w->out.r = NULL;
	wire_free(w);
}

static const struct http_pipe_events events = {
	.input = on_input,
	.input_end = on_input_end,
	.ready = on_ready,
	.gone = on_gone,
};

void wire_open(struct wire *w, struct http_request *r, bool is_framed)
{
	const char *type = stream_type(http_version(r), is_framed);

	w->out.is_framed = is_framed;
	if (w->feed && w->has[0])
		feed_on_input(w->feed, input_taken);
	/* Who asked for no switch gets a 200, and then the same. */
	if (!http_wants_upgrade(r))
		type = stream_type(0, is_framed);
	w->out.p = http_upgrade(r, type, &events, w);
}
