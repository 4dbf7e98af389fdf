/* SPDX-License-Identifier: Apache-2.0 */

/* Attaching to a box's main program, and its log. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/util.h"
#include "face/own/internal.h"

OWN_HANDLER(own_box_attach)
{
	struct box *b = own_box(r, ctx);
	struct attach_want want = {
		.stdout_ = true,
		.stderr_ = true,
		.stdin_ = own_flag(r, "stdin", false),
		.logs = own_flag(r, "logs", false),
		.stream = own_flag(r, "stream", true),
	};
	struct err err = { 0 };
	struct box_view v;
	struct pump *p;
	struct sink sink;

	if (!b)
		return;
	box_look(b, &v);
	p = pump_new(v.tty);
	if (!p) {
		own_fail(r, 500, "out of memory");
		return;
	}
	sink = pump_sink(p);
	pump_join(p, r, box_attach(b, &want, &sink, &err), &err);
}

/* logs */

struct logs {
	struct http_request *r;
	struct feed *feed;
	bool is_raw, has_times;
};

static size_t put_time(int64_t ns, char *ret, size_t size)
{
	time_t s = (time_t)(ns / 1000000000);
	struct tm tm;
	size_t n;

	if (!gmtime_r(&s, &tm))
		return 0;
	n = strftime(ret, size, "%Y-%m-%dT%H:%M:%S", &tm);
	n += (size_t)snprintf(ret + n, size - n, ".%09dZ ",
			      (int)(ns % 1000000000));
	return n;
}

/* A whole line or nothing. One that no room is enough for waits for an empty
 * queue and is cut: the manager's own are far smaller. */
static size_t on_line(void *arg, int stream, int64_t time_ns, const char *data,
		      size_t len)
{
	struct logs *l = arg;
	char text[64];
	char head[PUMP_HEAD];
	size_t before = l->has_times ? put_time(time_ns, text, sizeof(text))
				     : 0;
	size_t whole = before + len;

	if (http_room(l->r) < whole + PUMP_HEAD + 64)
		return 0;
	own_frame_head(head, stream, whole);
	if (!l->is_raw)
		(void)http_write(l->r, head, sizeof(head));
	(void)http_write(l->r, text, before);
	(void)http_write(l->r, data, len);
	return len;
}

static void on_log_end(void *arg)
{
	struct logs *l = arg;

	l->feed = NULL;
	http_end(l->r);
}

static void logs_ready(void *data)
{
	struct logs *l = data;

	if (l->feed)
		feed_ready(l->feed);
}

static void logs_gone(void *data)
{
	struct logs *l = data;

	if (l->feed)
		feed_drop(l->feed);
	free(l);
}

static bool log_args(struct http_request *r, struct log_want *w)
{
	int64_t since, until;

	w->stdout_ = own_flag(r, "stdout", true);
	w->stderr_ = own_flag(r, "stderr", true);
	w->follow = own_flag(r, "follow", false);
	if (!own_number(r, "since_ms", 0, &since) ||
	    !own_number(r, "until_ms", 0, &until) ||
	    !own_number(r, "tail", -1, &w->tail))
		return false;
	w->since_ns = MIN(since, INT64_MAX / 1000000) * 1000000;
	w->until_ns = MIN(until, INT64_MAX / 1000000) * 1000000;
	return true;
}

OWN_HANDLER(own_box_logs)
{
	struct box *b = own_box(r, ctx);
	struct log_want want = { 0 };
	struct log_sink sink = { .line = on_line, .end = on_log_end };
	struct err err = { 0 };
	struct box_view v;
	struct logs *l;

	if (!b || !log_args(r, &want))
		return;
	l = calloc(1, sizeof(*l));
	if (!l) {
		own_fail(r, 500, "out of memory");
		return;
	}
	box_look(b, &v);
	l->r = r;
	l->is_raw = v.tty;
	l->has_times = own_flag(r, "timestamps", false);
	sink.arg = l;
	http_set_data(r, l, logs_gone);
	l->feed = box_logs(b, &want, &sink, &err);
	if (!l->feed) {
		own_error(r, &err);
		return;
	}
	http_on_ready(r, logs_ready);
	http_begin(r, 200, v.tty ? OWN_RAW : OWN_FRAME, false);
}
