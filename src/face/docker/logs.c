/* SPDX-License-Identifier: Apache-2.0 */

/* GET /containers/{}/logs */

#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "face/docker/routes.h"
#include "face/docker/stream.h"

#define LINE_MAX_FRAME 16384

struct logs {
	struct ask ask;
	struct out out;
	struct feed *feed;
	bool has_times;
	bool has_ended;
	size_t done;   /* bytes of the line in hand that were sent */
	bool is_dated; /* its time was sent */
};

static void logs_gone(struct ask *a)
{
	struct logs *l = (struct logs *)a;

	if (l->feed)
		feed_drop(l->feed);
	out_done(&l->out);
}

/* The first piece of a line has its time before it, in the same frame. */
static size_t send_piece(struct logs *l, int stream, int64_t time_ns,
			 const char *data, size_t len)
{
	char piece[48 + LINE_MAX_FRAME];
	char when[40];
	size_t n = MIN(len, LINE_MAX_FRAME);
	size_t head = 0;
	size_t sent;

	if (!l->has_times || l->is_dated)
		return out_write(&l->out, stream, data, n);
	time_format(time_ns, when);
	head = (size_t)snprintf(piece, sizeof(piece), "%s ", when);
	memcpy(piece + head, data, n);
	/* In pieces only where it is not framed; then the rest follows. */
	if (!out_flush(&l->out))
		return 0;
	sent = out_write(&l->out, stream, piece, head + n);
	if (sent == 0)
		return 0;
	l->is_dated = true;
	if (sent >= head)
		return sent - head;
	/* Not even the time went whole: it waits as a frame's rest does. */
	l->out.rest = malloc(head - sent);
	if (!l->out.rest)
		abort();
	memcpy(l->out.rest, piece + sent, head - sent);
	l->out.rest_at = 0;
	l->out.rest_len = head - sent;
	return 0;
}

static size_t on_line(void *arg, int stream, int64_t time_ns, const char *data,
		      size_t len)
{
	struct logs *l = arg;

	if (!out_flush(&l->out))
		return 0;
	while (l->done < len) {
		size_t n = send_piece(l, stream, time_ns, data + l->done,
				      len - l->done);

		l->done += n;
		if (n == 0)
			return 0;
	}
	l->done = 0;
	l->is_dated = false;
	return len;
}

static void on_end(void *arg)
{
	struct logs *l = arg;

	l->feed = NULL;
	l->has_ended = true;
	if (out_flush(&l->out))
		out_end(&l->out);
}

static void on_ready(void *data)
{
	struct logs *l = data;

	if (!out_flush(&l->out))
		return;
	if (l->has_ended && l->out.r)
		out_end(&l->out);
	else if (l->feed)
		feed_ready(l->feed);
}

/* "all", "", negative: everything. */
static bool tail_parse(const char *text, int64_t *ret)
{
	uint64_t n;

	*ret = -1;
	if (!text || !*text || *text == '-' || strcmp(text, "all") == 0)
		return true;
	/* Docker takes what is no number as all, too. */
	if (num_parse(text, INT64_MAX, &n) == 0)
		*ret = (int64_t)n;
	return true;
}

static bool time_asked(struct http_request *r, const char *name, int64_t *ret)
{
	const char *text = http_query(r, name);

	*ret = 0;
	if (text && *text && time_parse(text, ret) < 0) {
		answer_fail(r, 400, "invalid value for \"%s\": %.60s", name,
			    text);
		return false;
	}
	return true;
}

HANDLER(get_logs)
{
	struct docker *d = docker_of(ctx);
	struct box *b = need_box(r, d);
	struct log_want want = {
		.stdout_ = query_bool(r, "stdout", false),
		.stderr_ = query_bool(r, "stderr", false),
		.follow = query_bool(r, "follow", false),
	};
	struct log_sink sink = { .line = on_line, .end = on_end };
	struct err err = { 0 };
	struct box_view v;
	struct logs *l;

	if (!b)
		return;
	if (!want.stdout_ && !want.stderr_) {
		answer_fail(
			r, 400,
			"Bad parameters: you must choose at least one stream");
		return;
	}
	if (!time_asked(r, "since", &want.since_ns) ||
	    !time_asked(r, "until", &want.until_ns) ||
	    !tail_parse(http_query(r, "tail"), &want.tail))
		return;
	box_look(b, &v);
	l = ask_new(r, d, sizeof(*l), logs_gone);
	l->has_times = query_bool(r, "timestamps", false);
	l->out.is_framed = !v.tty;
	sink.arg = l;
	l->feed = box_logs(b, &want, &sink, &err);
	if (!l->feed) {
		answer_err(r, &err, v.id);
		return;
	}
	l->out.r = r;
	http_on_ready(r, on_ready);
	http_begin(r, 200, stream_type(http_version(r), !v.tty), false);
}
