/* SPDX-License-Identifier: Apache-2.0 */

/* The life of a box. */

#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/util.h"
#include "face/own/internal.h"

OWN_HANDLER(own_box_start)
{
	struct box *b = own_box(r, ctx);
	struct act *a = b ? act_new(r, ctx) : NULL;

	if (a)
		act_wait(a, box_start(b, act_done, a));
}

static bool stop_args(struct http_request *r, int *signal, int *timeout)
{
	int64_t s;

	if (!own_signal(r, 0, signal) || !own_number(r, "timeout", INT_MIN, &s))
		return false;
	/* -1 from a client is no limit; none is the box's own. */
	*timeout = s == INT_MIN ? -1 : s < 0 ? INT_MAX : (int)MIN(s, INT_MAX);
	return true;
}

static void stop_by(struct http_request *r, void *ctx, typeof(box_stop) *fn)
{
	struct box *b = own_box(r, ctx);
	int signal, timeout;
	struct act *a;

	if (!b || !stop_args(r, &signal, &timeout))
		return;
	a = act_new(r, ctx);
	if (a)
		act_wait(a, fn(b, signal, timeout, act_done, a));
}

OWN_HANDLER(own_box_stop)
{
	stop_by(r, ctx, box_stop);
}

OWN_HANDLER(own_box_restart)
{
	stop_by(r, ctx, box_restart);
}

OWN_HANDLER(own_box_kill)
{
	struct box *b = own_box(r, ctx);
	int signal;
	struct act *a;

	if (!b || !own_signal(r, SIGKILL, &signal))
		return;
	a = act_new(r, ctx);
	if (a)
		act_wait(a, box_kill(b, signal, act_done, a));
}

static void pause_or_not(struct http_request *r, void *ctx, bool is_paused)
{
	struct box *b = own_box(r, ctx);
	struct act *a = b ? act_new(r, ctx) : NULL;

	if (a)
		act_wait(a, box_pause(b, is_paused, act_done, a));
}

OWN_HANDLER(own_box_pause)
{
	pause_or_not(r, ctx, true);
}

OWN_HANDLER(own_box_resume)
{
	pause_or_not(r, ctx, false);
}

static void answer(struct http_request *r, int e, const struct err *err)
{
	if (e < 0)
		own_error(r, err);
	else
		http_answer(r, 204, NULL, NULL, 0);
}

OWN_HANDLER(own_box_rename)
{
	struct box *b = own_box(r, ctx);
	const char *name = http_query(r, "name");
	struct err err = { 0 };

	if (b)
		answer(r, box_rename(b, name ? name : "", &err), &err);
}

static bool size_args(struct http_request *r, unsigned int *rows,
		      unsigned int *cols)
{
	int64_t h, w;

	if (!own_number(r, "rows", 0, &h) || !own_number(r, "cols", 0, &w))
		return false;
	*rows = h > 0 && h < 65536 ? (unsigned int)h : 0;
	*cols = w > 0 && w < 65536 ? (unsigned int)w : 0;
	return true;
}

OWN_HANDLER(own_box_resize)
{
	struct box *b = own_box(r, ctx);
	unsigned int rows, cols;
	struct err err = { 0 };

	if (b && size_args(r, &rows, &cols))
		answer(r, box_resize(b, rows, cols, &err), &err);
}

OWN_HANDLER(own_exec_resize)
{
	struct exec *e = own_exec(r, ctx);
	unsigned int rows, cols;
	struct err err = { 0 };

	if (e && size_args(r, &rows, &cols))
		answer(r, exec_resize(e, rows, cols, &err), &err);
}

OWN_HANDLER(own_exec_kill)
{
	struct exec *e = own_exec(r, ctx);
	int signal;
	struct act *a;

	if (!e || !own_signal(r, SIGKILL, &signal))
		return;
	a = act_new(r, ctx);
	if (a)
		act_wait(a, exec_kill(e, signal, act_done, a));
}

/* waiting */

static void waited(void *arg, int exit_code, const char *error)
{
	struct act *a = arg;
	const struct box *box = box_find(a->m, http_peer(a->r),
					 http_param(a->r, 0), NULL);
	struct box_view v = { 0 };
	struct buf b;
	struct json j = { .out = &b };

	a->call = NULL;
	if (box)
		box_look(box, &v);
	/* 0 is always an end of its own. */
	if (!box && exit_code == 0)
		v.cause = "exited";
	buf_init(&b, OWN_MAX);
	json_open(&j, NULL, '{');
	json_int(&j, "exit_code", exit_code);
	json_str(&j, "cause", v.cause && *v.cause ? v.cause : NULL);
	json_str(&j, "error", error && *error ? error : NULL);
	json_bool(&j, "removed", !box);
	json_close(&j, '}');
	own_send(a->r, 200, &b);
}

OWN_HANDLER(own_box_wait)
{
	static const char *const names[] = {
		[WAIT_NOT_RUNNING] = "not-running",
		[WAIT_NEXT_EXIT] = "next-exit",
		[WAIT_REMOVED] = "removed",
	};
	const char *text = http_query(r, "condition");
	struct err err = { 0 };
	struct act *a;
	size_t i = 0;

	while (text && i < ARRAY_SIZE(names) && strcmp(text, names[i]) != 0)
		i++;
	if (i == ARRAY_SIZE(names)) {
		own_fail(r, 400,
			 "'condition' takes not-running, next-exit or removed");
		return;
	}
	a = act_new(r, ctx);
	if (!a)
		return;
	a->call = box_wait(ctx, http_peer(r), http_param(r, 0),
			   (enum box_condition)i, waited, a, &err);
	if (!a->call)
		own_error(r, &err);
}
