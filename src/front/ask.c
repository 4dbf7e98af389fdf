/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Short questions to a box: what a path is, what runs, what has changed; and
 * what it uses. The answer is read whole, with a ceiling and a deadline, since
 * it is the box that answers.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/num.h"
#include "base/util.h"
#include "box/files.h"
#include "front/files.h"
#include "front/tar.h"

#define MAX_ANSWER ((size_t)16 << 20)
#define DEADLINE   15000000
#define TICKS      100 /* of a second, USER_HZ */
#define PAGE       4096

struct ask {
	struct need need;
	struct box *box; /* a reference */
	uint32_t op;
	char *path;
	struct spout *in;
	struct buf answer;
	struct alarm *alarm;
	ask_done_fn *done;
	void *arg;
};

static void ask_end(struct ask *a, const struct files_list *l,
		    const struct err *err)
{
	spout_close(&a->in);
	alarm_clear(&a->alarm);
	a->box->n_tars--;
	a->done(a->arg, l, err);
	box_wall_idle(a->box);
	box_unref(a->box);
	buf_done(&a->answer);
	free(a->path);
	free(a);
}

static void finish(struct ask *a)
{
	struct files_list list;
	struct err said = { 0 };
	struct err err = { 0 };
	int r = files_parse(a->answer.data, a->answer.len,
			    a->op == FILES_STAT || a->op == FILES_LOOK, &list,
			    &said);

	if (r == -EREMOTEIO)
		(void)files_map_error(&said, a->path, &err);
	else if (r < 0)
		err = said;
	ask_end(a, err.code ? NULL : &list, err.code ? &err : NULL);
	files_list_done(&list);
}

static void too_late(void *arg)
{
	struct err err;

	(void)err_set(&err, MGR_LOST, "the box does not answer");
	ask_end(arg, NULL, &err);
}

static void readable(void *arg)
{
	struct ask *a = arg;
	char *data = a->box->m->scratch;
	struct err err;
	ssize_t n = read(spout_fd(a->in), data, FRONT_SCRATCH);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		finish(a);
	} else if (buf_add(&a->answer, data, (size_t)n) < 0) {
		(void)err_set(&err, MGR_LOST, "the box's answer does not end");
		ask_end(a, NULL, &err);
	}
}

int files_connect(struct box *b, int *ret, struct err *err)
{
	int s[2];

	if (!b->session || !b->is_ready || b->is_closing)
		return err_set(err, MGR_LOST, "the box has ended");
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s) < 0)
		return err_errno(err, errno, "make a socket");
	if (session_files(b->session, s[1]) < 0) {
		(void)close(s[0]);
		return err_set(err, MGR_LOST, "the box does not answer");
	}
	*ret = s[0];
	return 0;
}

static void wall_is_up(struct need *n, const struct err *why)
{
	struct ask *a = task_of(n, struct ask, need);
	struct err err = { 0 };
	int sock = NO_FD;

	if (why) {
		ask_end(a, NULL, why);
		return;
	}
	if (files_connect(a->box, &sock, &err) < 0 ||
	    files_send_ask(sock, &(struct files_ask){ .op = a->op }, a->path,
			   &err) < 0) {
		fd_close(&sock);
		ask_end(a, NULL, &err);
		return;
	}
	(void)shutdown(sock, SHUT_WR);
	(void)fcntl(sock, F_SETFL, O_NONBLOCK);
	a->in = spout_new(a->box->m, sock, readable, a);
	if (!a->in) {
		(void)err_set(&err, ENOMEM, "out of memory");
		ask_end(a, NULL, &err);
		return;
	}
	alarm_set(a->box->m, &a->alarm, DEADLINE, too_late, a);
}

int files_check(const struct box *b, struct err *err)
{
	if (b->state == BOX_PAUSED)
		return err_set(err, MGR_PAUSED, "container %s is paused",
			       b->name);
	if (b->state == BOX_GONE || b->is_removing)
		return err_set(err, MGR_NOT_FOUND, "it is being removed");
	if (b->n_tars >= FRONT_MAX_TARS)
		return err_set(err, MGR_BUSY,
			       "%u requests for files of this "
			       "box are open",
			       b->n_tars);
	return 0;
}

int box_ask(struct box *b, uint32_t op, const char *path, ask_done_fn *done,
	    void *arg, struct err *err)
{
	struct ask *a;

	if (files_check(b, err) < 0)
		return -err->code;
	if (!*path || strlen(path) > FILES_MAX_PATH)
		return err_set(err, MGR_INVALID, "the path is not valid");
	a = calloc(1, sizeof(*a));
	if (!a || !(a->path = strdup(path))) {
		free(a);
		return err_set(err, ENOMEM, "out of memory");
	}
	a->box = box_ref(b);
	a->op = op;
	a->done = done;
	a->arg = arg;
	b->n_tars++;
	buf_init(&a->answer, MAX_ANSWER);
	box_touch(b);
	box_need(b, &a->need, wall_is_up);
	return 0;
}

/* ---- stat ---- */

static unsigned int type_of(int kind)
{
	switch (kind) {
	case 'd':
		return S_IFDIR;
	case 'l':
		return S_IFLNK;
	case 'p':
		return S_IFIFO;
	case 's':
		return S_IFSOCK;
	case 'c':
		return S_IFCHR;
	case 'b':
		return S_IFBLK;
	}
	return S_IFREG;
}

void files_last_part(const char *path, char ret[256])
{
	size_t len = strlen(path);
	size_t begin;

	while (len > 1 && path[len - 1] == '/')
		len--;
	begin = len;
	while (begin > 0 && path[begin - 1] != '/')
		begin--;
	(void)snprintf(ret, 256, "%.*s", (int)MIN(len - begin, (size_t)255),
		       path + begin);
	if (!*ret)
		(void)snprintf(ret, 256, "/");
}

void files_fill_stat(const struct files_list *l, const char *name,
		     struct file_stat *ret)
{
	const struct files_item *i = &l->v[0];

	*ret = (struct file_stat){
		.name = name,
		.size = i->size,
		.st_mode = i->mode | type_of(i->kind),
		.mtime_ns = i->mtime_ns,
		.link = i->link,
	};
}

struct stat_call {
	struct call *call;
	char name[256];
};

static void stat_done(void *arg, const struct files_list *l,
		      const struct err *err)
{
	struct stat_call *s = arg;
	struct file_stat st;

	if (l)
		files_fill_stat(l, s->name, &st);
	if (!s->call->is_dropped)
		s->call->fn.stat(s->call->arg, l ? &st : NULL, err);
	call_free(s->call);
	free(s);
}

static void deliver_stat(struct call *c)
{
	c->fn.stat(c->arg, NULL, &c->err);
}

struct call *files_stat(struct box *b, const char *path, file_stat_fn *done,
			void *arg)
{
	struct call *c = call_new(b->m, arg);
	struct stat_call *s = c ? calloc(1, sizeof(*s)) : NULL;
	struct err err = { 0 };

	if (!s) {
		call_free(c);
		return NULL;
	}
	c->fn.stat = done;
	c->deliver = deliver_stat;
	s->call = c;
	files_last_part(path, s->name);
	if (box_ask(b, FILES_STAT, path, stat_done, s, &err) < 0) {
		free(s);
		call_end(c, &err);
	}
	return c;
}

/* ---- changes ---- */

static void deliver_changed(struct call *c)
{
	c->fn.changed(c->arg, NULL, 0, &c->err);
}

static void changes_done(void *arg, const struct files_list *l,
			 const struct err *err)
{
	struct call *c = arg;
	struct file_change *v = NULL;
	size_t n = l ? l->n : 0;

	if (n)
		v = calloc(n, sizeof(*v));
	for (size_t i = 0; v && i < n; i++)
		v[i] = (struct file_change){ .path = l->v[i].name,
					     .kind = l->v[i].kind == 'A' ? 1
						     : l->v[i].kind == 'D'
							     ? 2
							     : 0 };
	if (!c->is_dropped)
		c->fn.changed(c->arg, v, v ? n : 0, err);
	free(v);
	call_free(c);
}

struct call *files_changes(struct box *b, files_changed_fn *done, void *arg)
{
	struct call *c = call_new(b->m, arg);
	struct err err = { 0 };

	if (!c)
		return NULL;
	c->fn.changed = done;
	c->deliver = deliver_changed;
	if (box_ask(b, FILES_CHANGES, "/", changes_done, c, &err) < 0)
		call_end(c, &err);
	return c;
}

/* ---- processes ---- */

/* The next number of a line; false if there is none. */
static bool next_number(char **p, uint64_t *ret)
{
	char *end = strchr(*p, ' ');

	if (!end)
		return false;
	*end = '\0';
	if (num_parse(*p, INT64_MAX, ret) < 0)
		return false;
	*p = end + 1;
	return true;
}

/*
 * PID PPID STATE START CPU RSS SIZE UID COMM\tARGS; the line is cut up for
 * it. start_s is of the machine's life here.
 */
bool process_parse(char *line, struct box_process *ret)
{
	uint64_t pid, ppid, start, cpu, rss, size, uid;
	char *p = line;
	char *tab = strchr(line, '\t');
	char state;

	if (!tab || !next_number(&p, &pid) || !next_number(&p, &ppid) ||
	    !p[0] || p[1] != ' ')
		return false;
	state = p[0];
	p += 2;
	if (!next_number(&p, &start) || !next_number(&p, &cpu) ||
	    !next_number(&p, &rss) || !next_number(&p, &size) ||
	    !next_number(&p, &uid) || uid > UINT32_MAX || p > tab ||
	    rss > UINT64_MAX / PAGE || cpu > UINT64_MAX / 1000)
		return false;
	*tab = '\0';
	*ret = (struct box_process){ .pid = (int64_t)pid,
				     .ppid = (int64_t)ppid,
				     .uid = (uint32_t)uid,
				     .state = state,
				     .start_s = start / TICKS,
				     .cpu_ms = cpu * 1000 / TICKS,
				     .rss = rss * PAGE,
				     .size = size,
				     .comm = p,
				     .args = tab + 1 };
	return true;
}

/* Seconds of the machine's life when the box was started. */
static uint64_t started_s(const struct box *b)
{
	struct timespec boot;
	int64_t ago = day_ns() - b->started_ns;

	(void)clock_gettime(CLOCK_BOOTTIME, &boot);
	return (uint64_t)MAX((int64_t)boot.tv_sec - ago / 1000000000,
			     (int64_t)0);
}

static void deliver_top(struct call *c)
{
	c->fn.top(c->arg, NULL, 0, &c->err);
}

static void top_done(void *arg, const struct files_list *l,
		     const struct err *err)
{
	struct call *c = arg;
	struct box_process *v = NULL;
	size_t n = 0;

	if (l && l->n)
		v = calloc(l->n, sizeof(*v));
	for (size_t i = 0; v && i < l->n; i++) {
		if (!process_parse(l->v[i].name, &v[n]))
			continue;
		v[n].start_s -= MIN(v[n].start_s, started_s(c->box));
		n++;
	}
	if (!c->is_dropped)
		c->fn.top(c->arg, v, n, err);
	free(v);
	call_free(c);
}

struct call *box_top(struct box *b, box_top_fn *done, void *arg)
{
	struct call *c = call_new(b->m, arg);
	struct err err = { 0 };

	if (!c)
		return NULL;
	c->fn.top = done;
	c->deliver = deliver_top;
	c->box = box_ref(b);
	if (b->state != BOX_RUNNING && b->state != BOX_PAUSED)
		call_end_text(c, MGR_NOT_RUNNING, "it is not running");
	else if (box_ask(b, FILES_PS, "/", top_done, c, &err) < 0)
		call_end(c, &err);
	return c;
}

/* ---- what it uses ---- */

static void deliver_usage(struct call *c)
{
	c->fn.usage(c->arg, NULL, &c->err);
}

static void usage_done(void *arg, const struct session_usage *u)
{
	struct call *c = arg;
	struct box_usage use = {
		.time_ns = day_ns(),
		.memory = u->memory,
		.memory_limit = u->memory_limit,
		.memory_peak = u->memory_peak,
		.inactive_file = u->inactive_file,
		.cpu_us = u->cpu_us,
		.cpu_user_us = u->cpu_user_us,
		.cpu_system_us = u->cpu_system_us,
		.cpus = c->m->cpus,
		.system_ns = machine_cpu_ns(c->m),
		.throttled = u->throttled,
		.throttled_us = u->throttled_us,
		.periods = u->periods,
		.pids = u->pids,
		.pids_limit = u->pids_limit,
	};

	if (!c->is_dropped)
		c->fn.usage(c->arg, &use, NULL);
	call_free(c);
}

struct call *box_usage(struct box *b, box_usage_fn *done, void *arg)
{
	struct call *c = call_new(b->m, arg);

	if (!c)
		return NULL;
	c->fn.usage = done;
	c->deliver = deliver_usage;
	if ((b->state != BOX_RUNNING && b->state != BOX_PAUSED) ||
	    !b->session || b->is_closing)
		call_end_text(c, MGR_NOT_RUNNING, "it is not running");
	else if (session_ask_usage(b->session, usage_done, c) < 0)
		call_end_text(c, MGR_LOST, "the box does not answer");
	return c;
}
