/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A box's log, line by line.
 *
 * Entries are what was read from a pipe at once; lines are put together here,
 * for each stream on its own. A line is of the time of its first byte. For a
 * tail the log is read twice: once to count lines, once to pass on the last of
 * them; never more than TURN bytes in one turn of the loop.
 *
 * Where the log has lost its beginning, the rest of a line is left out: it
 * would look like one. But one that is longer than a half of the log is shown
 * as far as it is there.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "front/front.h"

#define TURN     (1U << 20)
#define MAX_LINE ((size_t)256 << 10) /* longer ones come in pieces */

struct lines {
	struct log_want want;
	struct log_sink sink;
	struct buf part[2]; /* a line that has no end yet */
	int64_t time[2];
	bool is_full[2];  /* part is a whole line that was not taken */
	bool is_open[2];  /* counting: something without an end */
	bool is_begun[2]; /* the beginning of a line was seen */
	uint64_t first;   /* the half that is read first */
	bool is_counting;
	struct log_pos stop; /* of counting */
	int64_t n, skip;
	bool is_past; /* everything is later than `until` */
};

static bool is_wanted(const struct lines *l, int64_t time)
{
	return (!l->want.since_ns || time >= l->want.since_ns) &&
	       (!l->want.until_ns || time <= l->want.until_ns);
}

/* False: not now. */
static bool give(struct feed *f, int i)
{
	struct lines *l = f->lines;
	struct buf *b = &l->part[i];

	if (l->skip > 0) {
		l->skip--;
	} else if (is_wanted(l, l->time[i])) {
		size_t n = l->sink.line(l->sink.arg, i + 1, l->time[i], b->data,
					b->len);

		if (f->is_dead)
			return false;
		if (n == 0) {
			l->is_full[i] = true;
			f->is_blocked = true;
			return false;
		}
	}
	l->is_full[i] = false;
	b->len = 0;
	return true;
}

/* Takes the entry's bytes from f->inner on; false if the sink is full. */
static bool add_entry(struct feed *f, const struct log_entry *e,
		      const char *data)
{
	struct lines *l = f->lines;
	int i = e->stream - 1;
	struct buf *b = &l->part[i];

	while (f->inner < e->len) {
		const char *p = data + f->inner;
		size_t left = e->len - f->inner;
		const char *end = memchr(p, '\n', left);
		size_t n = end ? (size_t)(end - p) + 1 : left;

		if (b->len == 0)
			l->time[i] = e->time_ns;
		if (b->len + n > MAX_LINE) {
			n = MAX_LINE - b->len;
			end = NULL;
		}
		if (buf_add(b, p, n) < 0)
			return false;
		f->inner += n;
		if ((end || b->len == MAX_LINE) && !give(f, i))
			return false;
	}
	return true;
}

/* How many bytes of an entry are the rest of a line whose beginning is gone. */
static size_t cut_rest(struct feed *f, const struct log_entry *e,
		       const char *data)
{
	struct lines *l = f->lines;
	int i = e->stream - 1;
	const char *end;

	if (l->is_begun[i])
		return 0;
	if (!e->is_middle || f->pos.half != l->first) {
		l->is_begun[i] = true;
		return 0;
	}
	end = memchr(data, '\n', e->len);
	if (!end)
		return e->len;
	l->is_begun[i] = true;
	return (size_t)(end - data) + 1;
}

/* From its beginning, and nothing of it was seen yet. */
static void begin_at(struct feed *f, struct log_pos pos)
{
	f->pos = pos;
	f->lines->first = pos.half;
	f->lines->is_begun[0] = f->lines->is_begun[1] = false;
}

static void count_entry(struct lines *l, const struct log_entry *e, size_t from,
			const char *data)
{
	const char *p = data + from;
	const char *end = data + e->len;

	if (p == end)
		return;
	while ((p = memchr(p, '\n', (size_t)(end - p)))) {
		l->n++;
		if (++p == end)
			break;
	}
	l->is_open[e->stream - 1] = data[e->len - 1] != '\n';
}

static bool is_before(const struct log_pos *a, const struct log_pos *b)
{
	return a->half < b->half || (a->half == b->half && a->off < b->off);
}

/* True when all is counted. */
static bool count(struct feed *f, struct log *log)
{
	struct lines *l = f->lines;
	size_t done = 0;
	struct log_entry e;

	while (done < TURN && log_get(log, &f->pos, &e, f->m->scratch) == 1 &&
	       is_before(&f->pos, &l->stop)) {
		if (f->streams & 1U << e.stream)
			count_entry(l, &e, cut_rest(f, &e, f->m->scratch),
				    f->m->scratch);
		done += e.len;
		log_next(&f->pos, &e);
	}
	if (done >= TURN)
		return false;
	l->n += l->is_open[0] + l->is_open[1];
	l->skip = MAX(l->n - l->want.tail, (int64_t)0);
	l->is_counting = false;
	begin_at(f, log_start(log));
	return true;
}

/* What has no end when the log ends is a line all the same. */
static void give_rest(struct feed *f)
{
	struct lines *l = f->lines;

	for (int i = 0; i < 2; i++)
		if (l->part[i].len > 0 && !give(f, i))
			return;
	feed_finish(f);
}

static bool give_waiting(struct feed *f)
{
	for (int i = 0; i < 2; i++)
		if (f->lines->is_full[i] && !give(f, i))
			return false;
	return true;
}

static void lines_pump(struct feed *f)
{
	struct lines *l = f->lines;
	struct log *log = box_log(f->box);
	size_t done = 0;
	struct log_entry e;

	if (l->is_counting && log && !count(f, log)) {
		feed_soon(f);
		return;
	}
	if (!give_waiting(f))
		return;
	while (log && done < TURN && !l->is_past &&
	       log_get(log, &f->pos, &e, f->m->scratch) == 1) {
		bool is_ours = f->streams & 1U << e.stream;

		if (l->want.until_ns && e.time_ns > l->want.until_ns)
			l->is_past = true;
		else if (is_ours)
			f->inner += f->inner ? 0
					     : cut_rest(f, &e, f->m->scratch);
		if (!l->is_past && is_ours && !add_entry(f, &e, f->m->scratch))
			return;
		done += e.len;
		f->inner = 0;
		log_next(&f->pos, &e);
	}
	if (done >= TURN && !l->is_past)
		feed_soon(f);
	else if (f->is_over || l->is_past)
		give_rest(f);
}

static void lines_gone(struct feed *f)
{
	struct feed **p = &f->box->feeds;

	while (*p && *p != f)
		p = &(*p)->next;
	if (*p)
		*p = f->next;
}

static void lines_done(struct feed *f)
{
	buf_done(&f->lines->part[0]);
	buf_done(&f->lines->part[1]);
	free(f->lines);
}

static void lines_end(void *arg)
{
	struct feed *f = arg;

	f->lines->sink.end(f->lines->sink.arg);
}

static const struct feed_ops lines_ops = {
	.pump = lines_pump,
	.gone = lines_gone,
	.done = lines_done,
};

struct feed *box_logs(struct box *b, const struct log_want *want,
		      const struct log_sink *sink, struct err *err)
{
	struct log *log = box_log(b);
	struct lines *l = calloc(1, sizeof(*l));
	struct sink ends = { .end = lines_end };
	struct feed *f = log && l ? feed_new(b->m, &lines_ops, &ends, err)
				  : NULL;

	if (!f) {
		free(l);
		(void)err_set(err, ENOMEM, "out of memory");
		return NULL;
	}
	f->sink.arg = f;
	f->lines = l;
	f->box = box_ref(b);
	f->streams = (want->stdout_ ? 2U : 0) | (want->stderr_ ? 4U : 0);
	begin_at(f, log_start(log));
	f->is_over = !want->follow ||
		     (b->state != BOX_RUNNING && b->state != BOX_PAUSED &&
		      !b->is_starting);
	l->want = *want;
	l->sink = *sink;
	l->is_counting = want->tail >= 0;
	l->stop = log_end(log);
	buf_init(&l->part[0], MAX_LINE);
	buf_init(&l->part[1], MAX_LINE);
	f->next = b->feeds;
	b->feeds = f;
	feed_soon(f);
	return f;
}
