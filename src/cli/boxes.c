/* SPDX-License-Identifier: Apache-2.0 */

/* cordon ps, inspect, top, stats: looking at what the daemon keeps. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "base/visible.h"
#include "cli/cli.h"
#include "client/daemon.h"
#include "cli/box-commands.h"
#include "cli/opts.h"
#include "cli/table.h"

static int fail(const struct err *err)
{
	if (!err->text[0])
		return 0;
	say("%s", err->text);
	return EXIT_OURS;
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ps */

struct ps_flags {
	bool all, quiet, names, no_trunc, json;
};

static const struct opt ps_table[] = {
	{ "all", 'a', NULL, "also those that do not run", OPT_SWITCH,
	  offsetof(struct ps_flags, all) },
	{ "quiet", 'q', NULL, "ids only", OPT_SWITCH,
	  offsetof(struct ps_flags, quiet) },
	{ "names", 0, NULL, "names only", OPT_SWITCH,
	  offsetof(struct ps_flags, names) },
	{ "no-trunc", 0, NULL, "ids and commands in full", OPT_SWITCH,
	  offsetof(struct ps_flags, no_trunc) },
	{ "json", 0, NULL, "as JSON", OPT_SWITCH,
	  offsetof(struct ps_flags, json) },
};

const struct opts ps_opts = { .usage = "[FLAGS]",
			      .v = ps_table,
			      .n = ARRAY_SIZE(ps_table) };

/* "Up 3 minutes", "Exited (0) 2 hours ago", "Created" */
static void put_state(const struct value *box, char *ret, size_t size)
{
	char state[20], age[40];
	int64_t started = member_int(box, "started_ms", 0);
	int64_t finished = member_int(box, "finished_ms", 0);

	(void)member_text(box, "state", state, sizeof(state));
	if (strcmp(state, "running") == 0 || strcmp(state, "paused") == 0)
		(void)snprintf(ret, size, "Up %s%s",
			       format_age(now_ms() - started, age, sizeof(age)),
			       *state == 'p' ? " (paused)" : "");
	else if (strcmp(state, "exited") == 0)
		(void)snprintf(ret, size, "Exited (%d) %s ago",
			       (int)member_int(box, "exit_code", 0),
			       format_age(now_ms() - finished, age,
					  sizeof(age)));
	else
		(void)snprintf(ret, size, "%c%s", *state & ~0x20, state + 1);
}

/* The words of a list, with a space between. */
static void put_command(const struct value *box, char *ret, size_t size,
			size_t max)
{
	struct value list, name, item;
	struct buf b;

	buf_init(&b, 1 << 20);
	if (value_get(box, "command", &list))
		for (struct walk w = walk_start(&list);
		     walk_next(&w, &name, &item);) {
			if (b.len)
				(void)buf_puts(&b, " ");
			(void)value_text(&item, &b);
		}
	if (b.len > max)
		(void)snprintf(ret, size, "%.*s...", (int)(max - 3), b.data);
	else
		(void)snprintf(ret, size, "%s", b.data ? b.data : "");
	buf_done(&b);
}

static void put_box(struct table *t, const struct value *box,
		    const struct ps_flags *f)
{
	char id[80], name[140], image[200], command[4096], state[80], age[40];

	(void)member_text(box, "id", id, sizeof(id));
	if (!f->no_trunc)
		id[12] = '\0';
	if (f->quiet || f->names) {
		printf("%s\n",
		       f->quiet ? id
				: member_text(box, "name", name, sizeof(name)));
		return;
	}
	put_command(box, command, sizeof(command), f->no_trunc ? 4000 : 30);
	put_state(box, state, sizeof(state));
	table_add(t, id);
	table_add(t, member_text(box, "name", name, sizeof(name)));
	table_add(t, member_text(box, "image", image, sizeof(image)));
	table_add(t, command);
	table_add(t, format_age(now_ms() - member_int(box, "created_ms", 0),
				age, sizeof(age)));
	table_add(t, state);
	table_end_row(t);
}

static void put_boxes(const struct value *list, const struct ps_flags *f)
{
	static const char *const titles[] = { "BOX",     "NAME",    "IMAGE",
					      "COMMAND", "CREATED", "STATUS",
					      NULL };
	struct value name, item;
	struct table t;

	table_init(&t, titles);
	for (struct walk w = walk_start(list); walk_next(&w, &name, &item);)
		put_box(&t, &item, f);
	if (!f->quiet && !f->names)
		table_print(&t);
	table_done(&t);
}

int cmd_ps(int argc, char **argv)
{
	struct ps_flags f = { 0 };
	struct err err = { 0 };
	struct value list;
	struct buf b;

	(void)argc;
	if (opts_read(&ps_opts, argv, &f, &err) < 0 ||
	    daemon_call("GET", f.all ? "/v1/boxes?all=1" : "/v1/boxes", NULL,
			&b, &err) < 0)
		return fail(&err);
	if (daemon_list(&b, "boxes", &list, &err) == 0) {
		if (f.json)
			printf("%s\n", b.data);
		else
			put_boxes(&list, &f);
	}
	buf_done(&b);
	return fail(&err);
}

/* inspect */

const struct opts inspect_opts = { .usage = "BOX...", .min = 1, .max = -1 };

/* One JSON list, as in Docker; those that are not there are told. */
int cmd_inspect(int argc, char **argv)
{
	struct err err = { 0 };
	int n = opts_read(&inspect_opts, argv, NULL, &err);
	bool is_first = true;
	int code = 0;

	(void)argc;
	if (n < 0)
		return fail(&err);
	printf("[");
	for (int i = 1; i <= n; i++) {
		char path[1024];
		struct buf b;

		err = (struct err){ 0 };
		if (daemon_format(path, sizeof(path), &err, "/v1/boxes/%s",
				  argv[i]) < 0 ||
		    daemon_call("GET", path, NULL, &b, &err) < 0) {
			code = fail(&err);
			continue;
		}
		printf("%s", is_first ? "\n" : ",\n");
		print_json(b.data, b.len, 1);
		is_first = false;
		buf_done(&b);
	}
	printf("\n]\n");
	return code;
}

/* top */

const struct opts top_opts = { .usage = "BOX", .min = 1, .max = 1 };

static void put_process(struct table *t, const struct value *p)
{
	char text[4096];
	char line[64];

	(void)snprintf(line, sizeof(line), "%lld",
		       (long long)member_int(p, "uid", 0));
	table_add(t, line);
	(void)snprintf(line, sizeof(line), "%lld",
		       (long long)member_int(p, "pid", 0));
	table_add(t, line);
	(void)snprintf(line, sizeof(line), "%lld",
		       (long long)member_int(p, "ppid", 0));
	table_add(t, line);
	table_add(t, member_text(p, "state", text, sizeof(text)));
	(void)snprintf(line, sizeof(line), "%lld.%02lld",
		       (long long)member_int(p, "cpu_ms", 0) / 1000,
		       (long long)member_int(p, "cpu_ms", 0) % 1000 / 10);
	table_add(t, line);
	table_add(t, format_size((uint64_t)member_int(p, "rss", 0), line,
				 sizeof(line)));
	(void)member_text(p, "args", text, sizeof(text));
	if (!*text)
		(void)member_text(p, "comm", text, sizeof(text));
	table_add(t, text);
	table_end_row(t);
}

int cmd_top(int argc, char **argv)
{
	static const char *const titles[] = { "UID",     "PID", "PPID",
					      "STATE",   "CPU", "MEMORY",
					      "COMMAND", NULL };
	struct value list, name, item;
	struct err err = { 0 };
	char path[1024];
	struct table t;
	struct buf b;

	(void)argc;
	if (opts_read(&top_opts, argv, NULL, &err) < 0 ||
	    daemon_format(path, sizeof(path), &err, "/v1/boxes/%s/top",
			  argv[1]) < 0 ||
	    daemon_call("GET", path, NULL, &b, &err) < 0)
		return fail(&err);
	if (daemon_list(&b, "processes", &list, &err) == 0) {
		table_init(&t, titles);
		for (struct walk w = walk_start(&list);
		     walk_next(&w, &name, &item);)
			put_process(&t, &item);
		table_print(&t);
		table_done(&t);
	}
	buf_done(&b);
	return fail(&err);
}

/* stats */

struct stats_flags {
	bool follow, no_stream, json;
};

static const struct opt stats_table[] = {
	{ "follow", 'f', NULL, "again each second, until interrupted",
	  OPT_SWITCH, offsetof(struct stats_flags, follow) },
	{ "no-stream", 0, NULL, "once, as without --follow", OPT_SWITCH,
	  offsetof(struct stats_flags, no_stream) },
	{ "json", 0, NULL, "as JSON lines", OPT_SWITCH,
	  offsetof(struct stats_flags, json) },
};

const struct opts stats_opts = { .usage = "[FLAGS] [BOX...]",
				 .v = stats_table,
				 .n = ARRAY_SIZE(stats_table),
				 .max = -1 };

struct sample {
	char id[80];
	int64_t time_ms, cpu_us;
};

/* CPU since the last sample, in percent of one; -1 if there was none. */
static double cpu_percent(struct sample *s, const struct value *u)
{
	int64_t time = member_int(u, "time_ms", 0);
	int64_t cpu = member_int(u, "cpu_us", 0);
	double percent = -1;

	if (s->time_ms && time > s->time_ms)
		percent = (double)(cpu - s->cpu_us) /
			  ((double)(time - s->time_ms) * 10);
	s->time_ms = time;
	s->cpu_us = cpu;
	return percent;
}

static void put_usage(struct table *t, struct sample *s, const struct value *u)
{
	char line[64], used[24], limit[24];
	double percent = cpu_percent(s, u);
	int64_t memory = member_int(u, "memory", 0) -
			 member_int(u, "inactive_file", 0);

	table_add(t, s->id);
	(void)snprintf(line, sizeof(line), percent < 0 ? "-" : "%.1f%%",
		       percent);
	table_add(t, line);
	(void)snprintf(line, sizeof(line), "%s / %s",
		       format_size((uint64_t)MAX(memory, 0), used,
				   sizeof(used)),
		       format_size((uint64_t)member_int(u, "memory_limit", 0),
				   limit, sizeof(limit)));
	table_add(t, line);
	(void)snprintf(line, sizeof(line), "%lld / %lld",
		       (long long)member_int(u, "pids", 0),
		       (long long)member_int(u, "pids_limit", 0));
	table_add(t, line);
	table_end_row(t);
}

static int ask_usage(struct sample *s, struct table *t, bool is_json,
		     struct err *err)
{
	char path[1024];
	struct value v;
	struct buf b;

	if (daemon_format(path, sizeof(path), err, "/v1/boxes/%s/stats",
			  s->id) < 0 ||
	    daemon_call("GET", path, NULL, &b, err) < 0)
		return -err->code;
	v = (struct value){ b.data, b.len };
	if (is_json)
		printf("{\"id\":\"%s\",\"usage\":%.*s}\n", s->id,
		       (int)strcspn(b.data, "\n"), b.data);
	else
		put_usage(t, s, &v);
	buf_done(&b);
	return 0;
}

/* All that run, if none were named. */
static size_t list_running(struct sample **ret, struct err *err)
{
	struct value list, name, item;
	size_t n = 0;
	struct buf b;

	*ret = NULL;
	if (daemon_call("GET", "/v1/boxes", NULL, &b, err) < 0)
		return 0;
	if (daemon_list(&b, "boxes", &list, err) == 0)
		for (struct walk w = walk_start(&list);
		     walk_next(&w, &name, &item);) {
			struct sample *v = realloc(*ret,
						   (n + 1) * sizeof(**ret));

			if (!v)
				break;
			*ret = v;
			v[n] = (struct sample){ 0 };
			(void)member_text(&item, "id", v[n].id, 13);
			n++;
		}
	buf_done(&b);
	return n;
}

static void show_once(struct sample *v, size_t n, const struct stats_flags *f)
{
	static const char *const titles[] = { "BOX", "CPU", "MEMORY", "PIDS",
					      NULL };
	struct table t;

	table_init(&t, titles);
	for (size_t i = 0; i < n; i++) {
		struct err one = { 0 };

		if (ask_usage(&v[i], &t, f->json, &one) < 0)
			say("%s", one.text);
	}
	if (!f->json)
		table_print(&t);
	(void)fflush(stdout);
	table_done(&t);
}

int cmd_stats(int argc, char **argv)
{
	_cleanup_free_ struct sample *v = NULL;
	struct stats_flags f = { 0 };
	struct err err = { 0 };
	int n = opts_read(&stats_opts, argv, &f, &err);
	size_t count = n > 0 ? (size_t)n : 0;

	(void)argc;
	if (n < 0)
		return fail(&err);
	if (count) {
		v = calloc(count, sizeof(*v));
		for (size_t i = 0; v && i < count; i++)
			(void)snprintf(v[i].id, sizeof(v[i].id), "%s",
				       argv[i + 1]);
	} else {
		count = list_running(&v, &err);
	}
	if (err.code)
		return fail(&err);
	if (!v)
		count = 0;
	/* A share of the CPU is a difference. */
	if (!f.json && !f.follow && count) {
		for (size_t i = 0; i < count; i++) {
			struct table none;
			static const char *const no[] = { NULL };

			table_init(&none, no);
			if (ask_usage(&v[i], &none, false, &err) < 0) {
				table_done(&none);
				return fail(&err);
			}
			table_done(&none);
		}
		(void)usleep(250000);
	}
	for (;;) {
		show_once(v, count, &f);
		if (!f.follow || f.no_stream)
			return 0;
		(void)sleep(1);
		if (isatty(1))
			printf("\033[H\033[J");
	}
}
