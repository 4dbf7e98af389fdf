/* SPDX-License-Identifier: Apache-2.0 */

/* cordon agent ls, show: checkpoints */

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/checkpoint.h"
#include "agentcmd/agentcmd.h"
#include "agentcmd/console.h"
#include "agentcmd/session.h"
#include "base/util.h"
#include "base/visible.h"

static const char *text_of(const json_t *o, const char *name)
{
	const char *text = json_string_value(json_object_get(o, name));

	return text ? text : "";
}

/* The beginning of foreign text; returns how much is shown. */
static int print_text(const char *text, size_t most)
{
	struct buf b;
	int n;

	buf_init(&b, 8192);
	visible_text(&b, text, MIN(strlen(text), most), most);
	n = printf("%s", b.data ? b.data : "");
	buf_done(&b);
	return n;
}

static void print_cell(const char *text, int width)
{
	int n = print_text(text, (size_t)width);

	printf("%*s", width > n ? width - n : 0, "");
}

/* The newest of each run; older ones are named by their own id. */
static void print_rows(const json_t *list)
{
	json_t *seen = json_object();
	json_t *one;
	size_t i;

	printf("%-36s  %-20s  %-28s  %s\n", "RUN", "TIME", "ENDED", "TASK");
	json_array_foreach(list, i, one)
	{
		const json_t *about = json_object_get(one, "about");
		const char *run = text_of(one, "run");

		if (json_object_get(seen, run))
			continue;
		json_object_set_new(seen, run, json_true());
		printf("%-36.36s  %-20.19s  ", run, text_of(one, "time"));
		print_cell(text_of(one, "reason"), 28);
		printf("  ");
		(void)print_text(text_of(about, "task"), 60);
		printf("\n");
	}
	json_decref(seen);
}

static void print_lines(const json_t *list)
{
	json_t *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		_cleanup_free_ char *text = json_dumps(one, JSON_COMPACT);

		if (text)
			printf("%s\n", text);
	}
}

int run_ls(struct call *c, struct err *err)
{
	struct checkpoints *store = NULL;
	json_t *list;
	int e = session_checkpoints(CHECKPOINTS_DIR, &store, err);

	if (e < 0)
		return e;
	list = checkpoints_list(store, err);
	checkpoints_close(store);
	if (!list)
		return -err->code;
	if (c->json)
		print_lines(list);
	else
		print_rows(list);
	json_decref(list);
	return 0;
}

static void show(struct call *c, const json_t *doc)
{
	const json_t *thread = json_object_get(json_object_get(doc, "state"),
					       "thread");
	struct console console;
	json_t *m;
	size_t i;

	(void)fflush(stdout);
	console_init(&console, use_colour(STDOUT_FILENO), c->stats);
	json_array_foreach(thread, i, m)
	{
		console_event(&console, m);
		(void)console_flush(&console, STDOUT_FILENO);
	}
	console_done(&console);
	printf("checkpoint %s of run %s, ", text_of(doc, "id"),
	       text_of(doc, "run"));
	(void)print_text(text_of(doc, "time"), 24);
	printf("\n");
	(void)print_text(text_of(doc, "reason"), 200);
	printf("\nto go on: cordon agent run --resume %s\n",
	       text_of(doc, "id"));
}

int run_show(struct call *c, struct err *err)
{
	struct checkpoints *store = NULL;
	json_t *doc = NULL;
	int e = session_checkpoints(CHECKPOINTS_DIR, &store, err);

	if (e < 0)
		return e;
	e = checkpoints_read(store, c->operands[0], &doc, err);
	checkpoints_close(store);
	if (e < 0)
		return e;
	if (c->json) {
		json_t *list = json_pack("[O]", doc);

		print_lines(list);
		json_decref(list);
	} else {
		show(c, doc);
	}
	json_decref(doc);
	return 0;
}
