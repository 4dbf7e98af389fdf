/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A WebSocket. Its request was judged as any other, and its server agreed to
 * it; from then on frames go both ways as they are. What is no frame breaks
 * the connection off, so nothing else can be said in it, a further request
 * least of all.
 *
 * Nothing is put into frames: one with a placeholder is not sent. Values that
 * come back are covered where they stand in one frame, whose length stays.
 */

#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "gate/inspect-parts.h"

/* Bytes that are looked at in one go. */
#define BLOCK 16384

bool inspect_may_extend(const struct inspection *i)
{
	for (int k = 0; k < (int)i->table->n_rules && k < GATE_MAX_RULES; k++)
		if (i->table->rules[k].placeholder)
			return false;
	return true;
}

void inspect_socket(struct inspection *i, bool may_extend)
{
	i->request = REQUEST_SOCKET;
	i->answer = ANSWER_SOCKET;
	i->frames_up = (struct ws_frames){ .is_masked = true,
					   .may_extend = may_extend };
	i->frames_down = (struct ws_frames){ .may_extend = may_extend };
	i->watch.n = i->watch_control.n = 0;
}

/* The request was told when it was answered; this is told besides. */
static bool break_off(struct inspection *i, enum gate_reason reason,
		      const char *detail)
{
	struct inspect_no no = { .status = 101, /* as it was answered */
				 .reason = reason,
				 .detail = detail };

	i->is_told = false;
	inspect_refuse(i, &no);
	return true;
}

static bool break_frames(struct inspection *i)
{
	return break_off(i, GATE_R_HTTP,
			 "bytes that are no frame of a WebSocket");
}

/* The rule of a placeholder that is in it, also of the host's own; or -1. */
static int find_placeholder(struct inspection *i, struct http_slice piece)
{
	static const bool none[GATE_MAX_RULES];
	static char plain[BLOCK];

	if (piece.len == 0)
		return -1;
	ws_unmask(&i->frames_up, piece, plain);
	/* Control frames may stand between two pieces of a message. */
	if (i->frames_up.is_control)
		return secret_watch_take(&i->watch_control, i->table, none,
					 plain, piece.len);
	return secret_watch_take(&i->watch, i->table, none, plain, piece.len);
}

static bool break_placeholder(struct inspection *i, int rule)
{
	static char detail[128];
	const char *name = gate_str(i->table, i->table->rules[rule].name);

	(void)snprintf(detail, sizeof(detail),
		       "%s may not stand in a WebSocket",
		       name ? name : "a placeholder");
	return break_off(i, GATE_R_PLACEHOLDER, detail);
}

bool inspect_socket_up(struct inspection *i)
{
	bool moved = false;
	size_t len, room;
	const char *data = side_data(&i->box, &len);

	while (len > 0 && (room = side_room(&i->up)) > 0) {
		struct http_slice piece;
		size_t most = MIN(MIN(len, room), (size_t)BLOCK);
		ssize_t n = ws_frames_take(&i->frames_up, data, most, &piece);
		int rule = n < 0 ? -1 : find_placeholder(i, piece);

		if (n < 0)
			return break_frames(i);
		if (rule >= 0)
			return break_placeholder(i, rule);
		(void)buf_add(&i->up.out, data, (size_t)n);
		side_take(&i->box, (size_t)n);
		data = side_data(&i->box, &len);
		moved = true;
	}
	if (len == 0 && i->box.is_ended && !i->is_up_shut &&
	    side_is_flushed(&i->up)) {
		side_shut(&i->up);
		i->is_up_shut = true;
	}
	return moved;
}

static void put_piece(void *arg, const char *data, size_t len)
{
	struct inspection *i = arg;

	(void)buf_add(&i->box.out, data, len);
}

/* Upstream says nothing more; `len` bytes of what it said are left. */
static bool take_end(struct inspection *i, size_t len)
{
	if (len > 0 || (!i->up.is_ended && !i->up.is_broken))
		return false;
	/* What was cut has no proper end, but what came before it counts. */
	if (i->up.is_ended)
		inspect_close(i);
	else if (side_is_flushed(&i->box))
		inspect_end(i, GATE_R_RESET);
	else
		return false;
	return true;
}

bool inspect_socket_down(struct inspection *i)
{
	bool moved = false;
	size_t len, room;
	const char *data = side_data(&i->up, &len);

	while (len > 0 && (room = side_room(&i->box)) > i->masks.n_held) {
		struct http_slice piece;
		ssize_t n = ws_frames_take(&i->frames_down, data,
					   MIN(len, room - i->masks.n_held),
					   &piece);

		if (n < 0)
			return break_frames(i);
		if (piece.len > 0)
			secret_masks_feed(&i->masks, piece.at, piece.len,
					  put_piece, i);
		else
			put_piece(i, data, (size_t)n);
		/* Nothing of a frame waits for the next one. */
		if (i->frames_down.left == 0)
			secret_masks_flush(&i->masks, put_piece, i);
		side_take(&i->up, (size_t)n);
		data = side_data(&i->up, &len);
		moved = true;
	}
	return moved || take_end(i, len);
}
