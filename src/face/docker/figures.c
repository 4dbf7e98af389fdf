/* SPDX-License-Identifier: Apache-2.0 */

/* top, stats, changes */

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "face/docker/internal.h"
#include "face/docker/routes.h"

/* ---- top ---- */

struct top {
	struct ask ask;
	bool is_aux;
	int64_t started_ns;
	uint64_t age_s;  /* of the box */
	uint64_t memory; /* of the machine */
};

/* Tenths of a hundredth, as ps shows them. */
static void share_text(uint64_t part, uint64_t whole, char *ret, size_t size)
{
	uint64_t n = whole ? part * 1000 / whole : 0;

	(void)snprintf(ret, size, "%llu.%llu", (unsigned long long)n / 10,
		       (unsigned long long)n % 10);
}

static void cpu_text(uint64_t ms, bool is_aux, char *ret, size_t size)
{
	unsigned long long s = ms / 1000;

	if (is_aux)
		(void)snprintf(ret, size, "%llu:%02llu", s / 60, s % 60);
	else
		(void)snprintf(ret, size, "%02llu:%02llu:%02llu", s / 3600,
			       s / 60 % 60, s % 60);
}

static void start_text(const struct top *t, uint64_t start_s, char *ret,
		       size_t size)
{
	time_t at = (time_t)(t->started_ns / 1000000000 + (int64_t)start_s);
	struct tm tm;

	if (!gmtime_r(&at, &tm) || strftime(ret, size, "%H:%M", &tm) == 0)
		(void)snprintf(ret, size, "-");
}

static json_t *top_row(const struct top *t, const struct box_process *p)
{
	char cpu[32];
	char start[16];
	uint64_t age_ms = MAX(t->age_s > p->start_s ? t->age_s - p->start_s : 0,
			      1) *
			  1000;
	char share[2][24];
	char n[6][24];
	const char *args = p->args && *p->args ? p->args : p->comm;

	cpu_text(p->cpu_ms, t->is_aux, cpu, sizeof(cpu));
	start_text(t, p->start_s, start, sizeof(start));
	(void)snprintf(n[0], sizeof(n[0]), "%u", p->uid);
	(void)snprintf(n[1], sizeof(n[1]), "%lld", (long long)p->pid);
	(void)snprintf(n[2], sizeof(n[2]), "%lld", (long long)p->ppid);
	(void)snprintf(n[3], sizeof(n[3]), "%llu",
		       (unsigned long long)(p->rss / 1024));
	(void)snprintf(n[4], sizeof(n[4]), "%c", p->state ? p->state : '?');
	(void)snprintf(n[5], sizeof(n[5]), "%llu",
		       (unsigned long long)(p->size / 1024));
	share_text(p->cpu_ms, age_ms, share[0], sizeof(share[0]));
	share_text(p->rss, t->memory, share[1], sizeof(share[1]));
	if (t->is_aux)
		return json_pack("[s,s,s,s,s,s,s,s,s,s,o]", n[0], n[1],
				 share[0], share[1], n[5], n[3], "?", n[4],
				 start, cpu, doc_string(args));
	/* In whole ones, as the column of ps. */
	*strchr(share[0], '.') = '\0';
	return json_pack("[s,s,s,s,s,s,s,o]", n[0], n[1], n[2], share[0], start,
			 "?", cpu, doc_string(args));
}

static void top_done(void *arg, const struct box_process *v, size_t n,
		     const struct err *err)
{
	struct top *t = arg;
	json_t *rows;
	json_t *titles;

	t->ask.call = NULL;
	if (err) {
		answer_err(t->ask.r, err, t->ask.name);
		return;
	}
	rows = json_array();
	/* The first is Cordon's own. */
	for (size_t i = 0; i < n; i++)
		if (v[i].pid != 1)
			json_array_append_new(rows, top_row(t, &v[i]));
	titles = t->is_aux
			 ? json_pack("[s,s,s,s,s,s,s,s,s,s,s]", "USER", "PID",
				     "%CPU", "%MEM", "VSZ", "RSS", "TTY",
				     "STAT", "START", "TIME", "COMMAND")
			 : json_pack("[s,s,s,s,s,s,s,s]", "UID", "PID", "PPID",
				     "C", "STIME", "TTY", "TIME", "CMD");
	answer_json(t->ask.r, 200,
		    json_pack("{s:o,s:o}", "Titles", titles, "Processes",
			      rows));
}

HANDLER(get_top)
{
	struct docker *d = docker_of(ctx);
	struct box *b = need_box(r, d);
	const char *args = http_query(r, "ps_args");
	struct manager_view m = { 0 };
	struct box_view v;
	struct top *t;

	if (!b)
		return;
	box_look(b, &v);
	manager_look(d->m, http_peer(r), &m);
	if (v.state != BOX_RUNNING && v.state != BOX_PAUSED) {
		answer_fail(r, 409, "container %s is not running", v.id);
		return;
	}
	t = ask_new(r, d, sizeof(*t), NULL);
	t->started_ns = v.started_ns;
	t->age_s = (uint64_t)MAX(time(NULL) - v.started_ns / 1000000000, 0);
	t->memory = m.memory_total;
	t->is_aux = args &&
		    (strcmp(args, "aux") == 0 || strcmp(args, "-aux") == 0);
	t->ask.call = box_top(b, top_done, t);
}

/* ---- stats ---- */

/*
 * The first sample has nothing before it. Without `one-shot` a request for one
 * object waits a second for a second sample; a stream sends each.
 */
struct stats {
	struct ask ask;
	uv_timer_t *timer;
	struct box_usage before, now;
	bool is_stream, is_begun, has_before;
};

static void timer_closed(uv_handle_t *h)
{
	free(h);
}

static void stats_gone(struct ask *a)
{
	struct stats *s = (struct stats *)a;

	if (s->timer)
		uv_close((uv_handle_t *)s->timer, timer_closed);
}

static json_t *cpu_of(const struct box_usage *u)
{
	return json_pack("{s:{s:I,s:I,s:I},s:I,s:I,s:{s:I,s:I,s:I}}",
			 "cpu_usage", "total_usage",
			 (json_int_t)u->cpu_us * 1000, "usage_in_kernelmode",
			 (json_int_t)u->cpu_system_us * 1000,
			 "usage_in_usermode", (json_int_t)u->cpu_user_us * 1000,
			 "system_cpu_usage", (json_int_t)u->system_ns,
			 "online_cpus", (json_int_t)u->cpus, "throttling_data",
			 "periods", (json_int_t)u->periods, "throttled_periods",
			 (json_int_t)u->throttled, "throttled_time",
			 (json_int_t)u->throttled_us * 1000);
}

static json_t *stats_of(const struct stats *s, const struct box_view *v)
{
	const struct box_usage *u = &s->now;
	/* One of them is Cordon's own. */
	json_int_t pids = (json_int_t)(u->pids > 0 ? u->pids - 1 : 0);
	char now[40];
	char before[40];
	char name[300];

	time_format(u->time_ns, now);
	time_format(s->has_before ? s->before.time_ns : 0, before);
	(void)snprintf(name, sizeof(name), "/%s", v->name);
	return json_pack(
		"{s:s,s:s,s:s,s:s,s:I,s:{s:I,s:I},s:o,s:o,s:{s:I,s:I,s:I,s:{s:"
		"I}},s:{s:[]},s:{}}",
		"read", now, "preread", before, "name", name, "id", v->id,
		"num_procs", pids, "pids_stats", "current", pids, "limit",
		(json_int_t)u->pids_limit, "cpu_stats", cpu_of(u),
		"precpu_stats",
		s->has_before ? cpu_of(&s->before)
			      : cpu_of(&(struct box_usage){ 0 }),
		"memory_stats", "usage", (json_int_t)u->memory, "max_usage",
		(json_int_t)u->memory_peak, "limit",
		(json_int_t)u->memory_limit, "stats", "inactive_file",
		(json_int_t)u->inactive_file, "blkio_stats",
		"io_service_bytes_recursive", "networks");
}

static void stats_send(struct stats *s, struct box *b)
{
	struct box_view v;
	json_t *doc;
	char *text;

	box_look(b, &v);
	doc = stats_of(s, &v);
	if (!s->is_stream) {
		answer_json(s->ask.r, 200, doc);
		return;
	}
	if (!s->is_begun)
		http_begin(s->ask.r, 200, JSON_TYPE, false);
	s->is_begun = true;
	text = json_dumps(doc, JSON_COMPACT);
	json_decref(doc);
	/* Who does not read misses samples, whole ones. */
	if (text) {
		struct buf line;

		buf_init(&line, 1 << 16);
		buf_puts(&line, text);
		buf_puts(&line, "\r\n");
		if (http_room(s->ask.r) >= line.len)
			(void)http_write(s->ask.r, line.data, line.len);
		buf_done(&line);
	}
	free(text);
}

static void stats_ask(struct stats *s);

static void stats_tick(uv_timer_t *t)
{
	stats_ask(t->data);
}

static void stats_have(void *arg, const struct box_usage *u,
		       const struct err *err)
{
	struct stats *s = arg;
	struct err none = { 0 };
	struct box *b = box_find(s->ask.d->m, http_peer(s->ask.r), s->ask.name,
				 &none);
	bool is_last;

	s->ask.call = NULL;
	/* A container that does not run uses nothing. */
	s->now = err ? (struct box_usage){ 0 } : *u;
	if (!b || (err && err->code != MGR_NOT_RUNNING)) {
		if (s->is_begun)
			http_end(s->ask.r);
		else
			answer_err(s->ask.r, b ? err : &none, s->ask.name);
		return;
	}
	is_last = !s->is_stream && s->has_before;
	if (!is_last)
		uv_timer_start(s->timer, stats_tick, 1000, 0);
	if (s->is_stream || is_last)
		stats_send(s, b);
	s->before = s->now;
	s->has_before = true;
}

static void stats_ask(struct stats *s)
{
	struct err err = { 0 };
	struct box *b = box_find(s->ask.d->m, http_peer(s->ask.r), s->ask.name,
				 &err);
	struct box_view v;

	if (b)
		box_look(b, &v);
	if (b && (v.state == BOX_RUNNING || v.state == BOX_PAUSED)) {
		s->ask.call = box_usage(b, stats_have, s);
		return;
	}
	if (b)
		(void)err_set(&err, MGR_NOT_RUNNING, "it does not run");
	stats_have(s, NULL, &err);
}

HANDLER(get_stats)
{
	struct docker *d = docker_of(ctx);
	struct box *b = need_box(r, d);
	struct box_view v;
	struct stats *s;

	if (!b)
		return;
	s = ask_new(r, d, sizeof(*s), stats_gone);
	/* By its id from now on: it may get another name meanwhile. */
	box_look(b, &v);
	free(s->ask.name);
	s->ask.name = strdup(v.id);
	if (!s->ask.name)
		abort();
	s->is_stream = query_bool(r, "stream", true);
	s->has_before = !s->is_stream && query_bool(r, "one-shot", false);
	s->timer = calloc(1, sizeof(*s->timer));
	if (!s->timer || uv_timer_init(d->loop, s->timer) < 0)
		abort();
	s->timer->data = s;
	stats_ask(s);
}

/* ---- changes ---- */

static void changes_done(void *arg, const struct file_change *v, size_t n,
			 const struct err *err)
{
	struct ask *a = arg;
	json_t *list;

	a->call = NULL;
	if (err) {
		answer_err(a->r, err, a->name);
		return;
	}
	list = json_array();
	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, json_pack("{s:o,s:i}", "Path",
						      doc_string(v[i].path),
						      "Kind", v[i].kind));
	answer_json(a->r, 200, list);
}

HANDLER(get_changes)
{
	struct docker *d = docker_of(ctx);
	struct box *b = need_box(r, d);
	struct ask *a;

	if (!b)
		return;
	a = ask_new(r, d, sizeof(*a), NULL);
	a->call = files_changes(b, changes_done, a);
}
