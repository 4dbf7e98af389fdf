/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Clients that are attached to a box's main program.
 *
 * They are fed from its log, so that one that stands still neither holds up
 * the program nor loses anything that the log still has. One that is busy, but
 * slower than the program, holds it up before the log pushes out what it has
 * not read (box_has_laggard); one that took nothing for a second does not.
 */

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/util.h"
#include "front/front.h"

#define STALLED_US 1000000
#define TURN       (1U << 20) /* bytes a feed gets in one turn of the loop */

struct log *box_log(struct box *b)
{
	if (!b->log)
		b->log = log_new(b->m->logs_fd, b->id, b->log_max);
	return b->log;
}

static void unlink_feed(struct feed *f)
{
	struct feed **p = &f->box->feeds;

	while (*p && *p != f)
		p = &(*p)->next;
	if (*p)
		*p = f->next;
}

/* The first client's input was all the program gets. */
static void end_once(struct feed *f)
{
	struct box *b = f->box;

	if (!f->has_stdin || !b->stdin_once || b->is_in_closed)
		return;
	b->is_in_closed = true;
	if (!b->tty)
		inlet_close(&b->in);
}

static size_t attach_input(struct feed *f, const char *data, size_t len)
{
	struct box *b = f->box;

	box_touch(b);
	if (b->in)
		return inlet_write(b->in, data, len);
	return b->is_in_closed || b->is_ending || b->state == BOX_GONE ? len
								       : 0;
}

static void attach_gone(struct feed *f)
{
	unlink_feed(f);
	end_once(f);
}

static void attach_pump(struct feed *f)
{
	struct log *l = box_log(f->box);
	char *data = f->m->scratch;
	size_t given = 0;
	struct log_entry e;

	while (l && given < TURN && log_get(l, &f->pos, &e, data) == 1) {
		if (f->streams & 1U << e.stream) {
			size_t n = f->sink.write(f->sink.arg, e.stream,
						 data + f->inner,
						 e.len - f->inner);
			if (f->is_dead)
				return;
			if (n > 0)
				f->moved_us = clock_us();
			given += n;
			f->inner += n;
			if (f->inner < e.len) {
				f->is_blocked = true;
				return;
			}
		}
		f->inner = 0;
		log_next(&f->pos, &e);
	}
	if (given >= TURN)
		feed_soon(f);
	else if (f->is_over)
		feed_finish(f);
}

static void attach_done(struct feed *f)
{
	(void)f;
}

static const struct feed_ops attach_ops = {
	.pump = attach_pump,
	.input = attach_input,
	.end_input = end_once,
	.gone = attach_gone,
	.done = attach_done,
};

struct feed *box_attach(struct box *b, const struct attach_want *want,
			const struct sink *sink, struct err *err)
{
	struct log *l = box_log(b);
	struct feed *f;

	if (!l) {
		(void)err_set(err, ENOMEM, "out of memory");
		return NULL;
	}
	if (b->state == BOX_GONE) {
		(void)err_set(err, MGR_NOT_FOUND, "it was removed");
		return NULL;
	}
	f = feed_new(b->m, &attach_ops, sink, err);
	if (!f)
		return NULL;
	f->box = box_ref(b);
	f->streams = (want->stdout_ ? 2U : 0) | (want->stderr_ ? 4U : 0);
	f->has_stdin = want->stdin_ && (b->open_stdin || b->tty);
	f->pos = want->logs ? log_start(l) : log_end(l);
	f->is_over = !want->stream;
	f->next = b->feeds;
	b->feeds = f;
	box_touch(b);
	events_box(b, "attach", NULL, NULL);
	feed_soon(f);
	return f;
}

/* Nothing more will come: pass on what is there, then end. */
void box_feeds_over(struct box *b)
{
	struct feed *next;

	for (struct feed *f = b->feeds; f; f = next) {
		next = f->next;
		f->is_over = true;
		if (!f->is_blocked && !f->is_dead)
			f->ops->pump(f);
	}
}

bool box_has_laggard(struct box *b)
{
	if (!b->log)
		return false;
	for (struct feed *f = b->feeds; f; f = f->next)
		if (log_is_pushing(b->log, &f->pos) &&
		    clock_us() - f->moved_us < STALLED_US)
			return true;
	return false;
}
