/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/face/docker-fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "face/docker/docker.h"

#define ID "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define EXEC_ID                                                                \
	"eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"

struct fake fake;

/* ---- what calls back ---- */

struct call {
	struct call *next;
	int kind;
	void *fn, *arg;
	struct err err;
	bool was_dropped;
};

enum { DONE, MADE, EXEC_MADE, STAT, READ, CHANGES, USAGE, TOP, IMAGE };

static struct call *calls;

static struct call *later(int kind, void *fn, void *arg)
{
	struct call *c = calloc(1, sizeof(*c));
	struct call **last = &calls;

	if (!c)
		abort();
	c->kind = kind;
	c->fn = fn;
	c->arg = arg;
	c->err = fake.err;
	while (*last)
		last = &(*last)->next;
	*last = c;
	return c;
}

void call_drop(struct call *c)
{
	if (c)
		c->was_dropped = true;
}

static void call_back(struct call *c)
{
	const struct err *err = c->err.code ? &c->err : NULL;

	switch (c->kind) {
	case DONE:
		((mgr_done_fn *)c->fn)(c->arg, err);
		break;
	case MADE:
		((box_made_fn *)c->fn)(c->arg, err ? NULL : &fake.box, err);
		break;
	case EXEC_MADE:
		((exec_made_fn *)c->fn)(c->arg, err ? NULL : &fake.exec, err);
		break;
	case STAT:
	case READ:
		((file_stat_fn *)c->fn)(c->arg, err ? NULL : &fake.stat, err);
		break;
	case CHANGES: {
		struct file_change v[] = { { "/a", 1 }, { "/b", 2 } };

		((files_changed_fn *)c->fn)(c->arg, v, 2, err);
		break;
	}
	case USAGE:
		((box_usage_fn *)c->fn)(c->arg, err ? NULL : &fake.usage, err);
		break;
	case TOP:
		((box_top_fn *)c->fn)(c->arg, fake.processes, 2, err);
		break;
	default:
		break;
	}
}

/* cordon-image and reading a tar have a sink of their own. */
static struct sink image_sink, tar_sink;
static mgr_done_fn *image_done;
static bool image_runs, tar_runs;
static struct err image_err;

static void run_image(void)
{
	const char *text = fake.image_says ? fake.image_says : "";

	image_runs = false;
	if (*text)
		(void)image_sink.write(image_sink.arg, 1, text, strlen(text));
	image_sink.end(image_sink.arg);
	image_done(image_sink.arg, image_err.code ? &image_err : NULL);
}

static void run_tar(void)
{
	tar_runs = false;
	(void)tar_sink.write(tar_sink.arg, 1, fake.tar, strlen(fake.tar));
	tar_sink.end(tar_sink.arg);
}

void fake_run(void)
{
	while (calls) {
		struct call *c = calls;

		calls = c->next;
		if (!c->was_dropped)
			call_back(c);
		free(c);
	}
	if (image_runs)
		run_image();
	if (tar_runs && !fake.err.code)
		run_tar();
}

/* ---- the manager ---- */

static void keep(char **at, const char *text)
{
	free(*at);
	*at = text ? strdup(text) : NULL;
}

struct call *box_create(struct manager *m, const struct peer *peer,
			const struct box_want *want, box_made_fn *done,
			void *arg)
{
	(void)m;
	(void)peer;
	fake.created++;
	fake.want = *want;
	keep(&fake.settings, want->settings);
	keep(&fake.extra, want->extra);
	keep(&fake.name, want->name);
	fake.command[0] = '\0';
	for (size_t i = 0; want->command && want->command[i]; i++) {
		size_t len = strlen(fake.command);

		(void)snprintf(fake.command + len, sizeof(fake.command) - len,
			       "%s%s", i ? "|" : "", want->command[i]);
	}
	fake_box(BOX_CREATED);
	fake.box.v.name = fake.name ? fake.name : "made_up";
	fake.box.v.settings = fake.settings;
	fake.box.v.extra = fake.extra;
	fake.box.v.tty = want->tty;
	return later(MADE, done, arg);
}

struct box *box_find(struct manager *m, const struct peer *peer,
		     const char *text, struct err *err)
{
	(void)m;
	(void)peer;
	if (*text == '/')
		text++;
	if (fake.has_box && !fake.has_unmade &&
	    (strcmp(text, fake.box.v.name) == 0 ||
	     (*text && strncmp(fake.box.v.id, text, strlen(text)) == 0)))
		return &fake.box;
	if (strcmp(text, "two") == 0)
		err_set(err, MGR_AMBIGUOUS, "two of them");
	else
		err_set(err, MGR_NOT_FOUND, "there is none");
	return NULL;
}

const char *box_name_holder(struct manager *m, uid_t owner, const char *name)
{
	(void)m;
	(void)owner;
	return fake.has_box && strcmp(name, fake.box.v.name) == 0
		       ? fake.box.v.id
		       : NULL;
}

size_t box_list(struct manager *m, const struct peer *peer, struct box ***ret)
{
	(void)m;
	(void)peer;
	*ret = calloc(2, sizeof(struct box *));
	if (!*ret)
		abort();
	(*ret)[0] = &fake.box;
	(*ret)[1] = &fake.other;
	return !fake.has_box ? 0 : fake.has_other ? 2 : 1;
}

void box_look(const struct box *b, struct box_view *ret)
{
	*ret = b->v;
}

size_t box_execs(const struct box *b, const char *const **ret)
{
	static const char *const ids[] = { EXEC_ID };

	(void)b;
	*ret = ids;
	return fake.has_exec ? 1 : 0;
}

struct call *box_start(struct box *b, mgr_done_fn *done, void *arg)
{
	(void)b;
	fake.started++;
	return later(DONE, done, arg);
}

struct call *box_stop(struct box *b, int signal, int timeout_s,
		      mgr_done_fn *done, void *arg)
{
	(void)b;
	fake.stopped++;
	fake.signal = signal;
	fake.timeout_s = timeout_s;
	return later(DONE, done, arg);
}

struct call *box_restart(struct box *b, int signal, int timeout_s,
			 mgr_done_fn *done, void *arg)
{
	return box_stop(b, signal, timeout_s, done, arg);
}

struct call *box_kill(struct box *b, int signal, mgr_done_fn *done, void *arg)
{
	(void)b;
	fake.killed++;
	fake.signal = signal;
	return later(DONE, done, arg);
}

struct call *box_pause(struct box *b, bool is_paused, mgr_done_fn *done,
		       void *arg)
{
	b->v.state = is_paused ? BOX_PAUSED : BOX_RUNNING;
	return later(DONE, done, arg);
}

struct call *box_remove(struct box *b, bool force, mgr_done_fn *done, void *arg)
{
	(void)b;
	(void)force;
	fake.removed++;
	return later(DONE, done, arg);
}

int box_rename(struct box *b, const char *name, struct err *err)
{
	(void)b;
	keep(&fake.name, name);
	*err = fake.err;
	return -err->code;
}

int box_resize(struct box *b, unsigned int rows, unsigned int cols,
	       struct err *err)
{
	(void)b;
	(void)rows;
	(void)cols;
	*err = fake.err;
	return -err->code;
}

struct call *box_wait(struct manager *m, const struct peer *peer,
		      const char *text, enum box_condition condition,
		      box_waited_fn *done, void *arg, struct err *err)
{
	/* It is the test that calls back. */
	static struct call waiting;

	(void)condition;
	if (!box_find(m, peer, text, err))
		return NULL;
	fake.waiter = done;
	fake.waiter_arg = arg;
	return &waiting;
}

static struct feed *feed_new(void *owner, void *arg)
{
	buf_done(&fake.feed.input);
	fake.feed = (struct feed){ .owner = owner, .arg = arg };
	buf_init(&fake.feed.input, 1 << 20);
	return &fake.feed;
}

void feed_ready(struct feed *s)
{
	s->was_ready = true;
}

void feed_drop(struct feed *s)
{
	s->was_dropped = true;
}

size_t feed_input(struct feed *s, const char *data, size_t len)
{
	size_t n = s->takes && s->takes < len ? s->takes : len;

	(void)buf_add(&s->input, data, n);
	return n;
}

void feed_on_input(struct feed *s, void (*ready)(void *arg))
{
	s->on_input = ready;
}

void feed_end_input(struct feed *s)
{
	s->has_ended = true;
}

struct feed *box_attach(struct box *b, const struct attach_want *want,
			const struct sink *sink, struct err *err)
{
	*err = fake.err;
	if (err->code)
		return NULL;
	b->sink = *sink;
	b->attached = *want;
	return feed_new(b, sink->arg);
}

struct feed *box_logs(struct box *b, const struct log_want *want,
		      const struct log_sink *sink, struct err *err)
{
	*err = fake.err;
	if (err->code)
		return NULL;
	b->log = *sink;
	b->logs = *want;
	return feed_new(b, sink->arg);
}

struct call *exec_create(struct box *b, const struct exec_want *want,
			 exec_made_fn *done, void *arg)
{
	(void)b;
	fake.exec_want = *want;
	(void)snprintf(fake.exec_user, sizeof(fake.exec_user), "%s",
		       want->user ? want->user : "");
	(void)snprintf(fake.exec_dir, sizeof(fake.exec_dir), "%s",
		       want->workdir ? want->workdir : "");
	(void)snprintf(fake.exec_env, sizeof(fake.exec_env), "%s",
		       want->env && want->env[0] ? want->env[0] : "");
	fake_exec();
	for (size_t i = 0; i < 63 && want->command[i]; i++)
		keep(&fake.exec.command[i], want->command[i]);
	fake.exec.v.tty = want->tty;
	fake.exec.v.stdin_ = want->stdin_;
	fake.exec.v.stdout_ = want->stdout_;
	fake.exec.v.stderr_ = want->stderr_;
	return later(EXEC_MADE, done, arg);
}

struct exec *exec_find(struct manager *m, const struct peer *peer,
		       const char *id, struct err *err)
{
	(void)m;
	(void)peer;
	if (fake.has_exec && strcmp(id, EXEC_ID) == 0)
		return &fake.exec;
	err_set(err, MGR_NOT_FOUND, "there is none");
	return NULL;
}

int exec_check_start(const struct exec *e, struct err *err)
{
	if (e->v.is_started)
		return err_set(err, MGR_HAS_RUN, "exec command %s %s", e->v.id,
			       e->v.is_running ? "is already running"
					       : "has already run");
	*err = fake.start_err;
	return -err->code;
}

struct call *exec_start(struct exec *e, const struct sink *sink,
			struct feed **ret_feed, mgr_done_fn *done, void *arg)
{
	/* As one that finds no memory for a feed. */
	if (sink && fake.has_no_feed) {
		*ret_feed = NULL;
		return later(DONE, done, arg);
	}
	e->v.is_started = e->v.is_running = true;
	if (sink) {
		e->sink = *sink;
		*ret_feed = feed_new(e, sink->arg);
	}
	return later(DONE, done, arg);
}

int exec_resize(struct exec *e, unsigned int rows, unsigned int cols,
		struct err *err)
{
	if (e->v.is_started && !e->v.is_running)
		return err_set(err, MGR_NOT_RUNNING, "it is not running");
	fake.exec_want.rows = rows;
	fake.exec_want.cols = cols;
	return 0;
}

bool exec_look_past(struct manager *m, const struct peer *peer, const char *id,
		    struct exec_view *ret)
{
	(void)m;
	(void)peer;
	*ret = fake.exec.v;
	return fake.has_past && strcmp(id, EXEC_ID) == 0;
}

void exec_look(const struct exec *e, struct exec_view *ret)
{
	*ret = e->v;
}

struct call *files_stat(struct box *b, const char *path, file_stat_fn *done,
			void *arg)
{
	(void)b;
	(void)snprintf(fake.path, sizeof(fake.path), "%s", path);
	return later(STAT, done, arg);
}

struct call *files_read(struct box *b, const char *path,
			const struct sink *sink, struct feed **ret_feed,
			file_stat_fn *done, void *arg)
{
	(void)b;
	(void)snprintf(fake.path, sizeof(fake.path), "%s", path);
	*ret_feed = feed_new(NULL, sink->arg);
	tar_sink = *sink;
	tar_runs = true;
	return later(READ, done, arg);
}

struct files_writer {
	mgr_done_fn *done;
	void *arg;
};

struct files_writer *files_write(struct box *b, const char *path,
				 unsigned int flags, mgr_done_fn *done,
				 void *arg, struct err *err)
{
	static struct files_writer w;

	(void)b;
	(void)flags;
	(void)snprintf(fake.path, sizeof(fake.path), "%s", path);
	*err = fake.err;
	if (err->code)
		return NULL;
	w = (struct files_writer){ done, arg };
	return &w;
}

size_t files_writer_add(struct files_writer *w, const char *data, size_t len)
{
	(void)w;
	(void)buf_add(&fake.written, data, len);
	return len;
}

void files_writer_on_ready(struct files_writer *w, void (*ready)(void *arg))
{
	(void)w;
	(void)ready;
}

void files_writer_end(struct files_writer *w)
{
	(void)later(DONE, w->done, w->arg);
}

void files_writer_drop(struct files_writer *w)
{
	(void)w;
}

struct call *files_changes(struct box *b, files_changed_fn *done, void *arg)
{
	(void)b;
	return later(CHANGES, done, arg);
}

struct call *box_usage(struct box *b, box_usage_fn *done, void *arg)
{
	(void)b;
	return later(USAGE, done, arg);
}

struct call *box_top(struct box *b, box_top_fn *done, void *arg)
{
	(void)b;
	return later(TOP, done, arg);
}

struct watch *events_watch(struct manager *m, const struct peer *peer,
			   int64_t since_ns, event_fn *fn, void *arg)
{
	(void)m;
	(void)peer;
	fake.since_ns = since_ns;
	fake.event_fn = fn;
	fake.event_arg = arg;
	return (struct watch *)&fake;
}

int events_resume(struct watch *w)
{
	(void)w;
	return fake.resume ? fake.resume() : 1;
}

void events_unwatch(struct watch *w)
{
	(void)w;
	fake.event_fn = NULL;
}

void events_tell(struct manager *m, const struct event *e)
{
	(void)m;
	(void)snprintf(fake.event_told, sizeof(fake.event_told), "%s %s %s %s",
		       e->type, e->action, e->id, e->attributes);
	fake.events++;
}

const struct wire_outcome *box_outcome(const struct box *b)
{
	(void)b;
	return fake.has_outcome ? &fake.outcome : NULL;
}

/* NOLINTNEXTLINE(readability-function-size): the interface of the faces */
struct image_run *image_run(struct manager *m, const struct peer *peer,
			    const char *const *args, bool has_input,
			    const struct sink *sink, mgr_done_fn *done,
			    void *arg, struct err *err)
{
	(void)m;
	(void)peer;
	(void)arg;
	(void)err;
	fake.image_args[0] = '\0';
	for (size_t i = 0; args[i]; i++) {
		size_t len = strlen(fake.image_args);

		(void)snprintf(fake.image_args + len,
			       sizeof(fake.image_args) - len, "%s%s",
			       i ? " " : "", args[i]);
	}
	image_sink = *sink;
	image_done = done;
	image_err = fake.err;
	image_runs = !has_input;
	return (struct image_run *)&fake;
}

size_t image_run_add(struct image_run *r, const char *data, size_t len)
{
	(void)r;
	(void)buf_add(&fake.image_input, data, len);
	return len;
}

void image_run_on_ready(struct image_run *r, void (*ready)(void *arg))
{
	(void)r;
	(void)ready;
}

void image_run_end_input(struct image_run *r)
{
	(void)r;
	image_runs = true;
}

void image_run_ready(struct image_run *r)
{
	(void)r;
}

void image_run_drop(struct image_run *r)
{
	(void)r;
	image_runs = false;
}

void manager_look(struct manager *m, const struct peer *peer,
		  struct manager_view *ret)
{
	(void)m;
	(void)peer;
	*ret = (struct manager_view){ .running = 1,
				      .cpus = 2,
				      .memory_total = 1 << 30,
				      .cgroup_version = 1,
				      .machine_id = "fake-machine",
				      .policy_note = fake.note };
}

uv_loop_t *manager_loop(const struct manager *m)
{
	(void)m;
	return uv_default_loop();
}

void fake_box(enum box_state state)
{
	fake.has_box = true;
	fake.box.v = (struct box_view){
		.id = ID,
		.name = "web",
		.state = state,
		.face = "docker",
		.created_ns = 1700000000123456789,
		.started_ns = state == BOX_CREATED ? 0 : 1700000001000000000,
		.finished_ns = state == BOX_EXITED ? 1700000002000000000 : 0,
		.spec = fake.spec ? fake.spec : "{}",
		.warnings = fake.warnings ? fake.warnings : "[]",
		.clamped = fake.clamped ? fake.clamped : "[]",
		.extra = "{\"Config\":{\"Image\":\"host\",\"Labels\":{\"a\":"
			 "\"b\"}},\"HostConfig\":{}}",
		.settings = "{}",
		.pid = state == BOX_RUNNING ? 2 : 0,
		.stop_timeout_s = -1,
	};
}

void fake_exec(void)
{
	fake.has_exec = true;
	fake.exec.v = (struct exec_view){
		.id = EXEC_ID,
		.box = ID,
		.stdout_ = true,
		.stderr_ = true,
		.user = "",
		.command = (const char *const *)fake.exec.command
	};
}

void fake_reset(void)
{
	while (calls) {
		struct call *c = calls;

		calls = c->next;
		free(c);
	}
	buf_done(&fake.feed.input);
	buf_done(&fake.written);
	buf_done(&fake.image_input);
	free(fake.settings);
	free(fake.extra);
	free(fake.name);
	for (size_t i = 0; i < 64; i++)
		free(fake.exec.command[i]);
	memset(&fake, 0, sizeof(fake));
	buf_init(&fake.feed.input, 1 << 20);
	buf_init(&fake.written, 1 << 20);
	buf_init(&fake.image_input, 1 << 20);
	fake.tar = "tar";
	image_runs = tar_runs = false;
}

/* ---- HTTP ---- */

const struct peer *http_peer(const struct http_request *r)
{
	return &r->peer;
}

const char *http_method(const struct http_request *r)
{
	return r->method;
}

const char *http_path(const struct http_request *r)
{
	return r->path;
}

const char *http_param(const struct http_request *r, unsigned int i)
{
	return i < r->params.n ? r->params.v[i] : NULL;
}

const char *http_query(const struct http_request *r, const char *name)
{
	unsigned int i = 0;

	return query_next(&r->query, name, &i);
}

const char *http_query_next(const struct http_request *r, const char *name,
			    unsigned int *i)
{
	return query_next(&r->query, name, i);
}

const char *http_header(const struct http_request *r, const char *name)
{
	(void)r;
	(void)name;
	return NULL;
}

const char *http_body(const struct http_request *r, size_t *ret_len)
{
	*ret_len = r->body_len;
	return r->body ? r->body : "";
}

void http_set_data(struct http_request *r, void *data, void (*gone)(void *data))
{
	r->data = data;
	r->gone = gone;
}

void *http_data(const struct http_request *r)
{
	return r->data;
}

void http_set_version(struct http_request *r, unsigned int v)
{
	r->version = v;
}

unsigned int http_version(const struct http_request *r)
{
	return r->version;
}

bool http_wants_upgrade(const struct http_request *r)
{
	return r->wants_upgrade;
}

void http_on_body(struct http_request *r, http_body_fn *fn)
{
	r->on_body = fn;
}

void http_body_ready(struct http_request *r)
{
	(void)r;
}

void http_add_header(struct http_request *r, const char *name,
		     const char *value)
{
	size_t len = strlen(r->headers);

	(void)snprintf(r->headers + len, sizeof(r->headers) - len, "%s: %s\n",
		       name, value);
}

static void must(bool is_so)
{
	if (!is_so)
		abort();
}

void http_answer(struct http_request *r, int status, const char *type,
		 const void *body, size_t len)
{
	must(!r->status && !r->has_ended);
	r->status = status;
	(void)snprintf(r->type, sizeof(r->type), "%s", type ? type : "");
	if (len > 0)
		(void)buf_add(&r->out, body, len);
	r->has_ended = true;
}

void http_begin(struct http_request *r, int status, const char *type, bool raw)
{
	must(!r->status && !r->has_ended);
	r->status = status;
	(void)snprintf(r->type, sizeof(r->type), "%s", type ? type : "");
	r->is_begun = true;
	r->is_raw = raw;
}

size_t http_write(struct http_request *r, const void *data, size_t len)
{
	size_t n = r->room && r->room < len ? r->room : len;

	must(r->is_begun && !r->has_ended);
	(void)buf_add(&r->out, data, n);
	return n;
}

size_t http_room(struct http_request *r)
{
	return r->room ? r->room : (size_t)1 << 18;
}

void http_on_ready(struct http_request *r, void (*ready)(void *data))
{
	r->ready = ready;
}

void http_end(struct http_request *r)
{
	must(r->is_begun && !r->has_ended);
	r->has_ended = true;
}

void http_cut(struct http_request *r)
{
	r->was_cut = true;
	http_end(r);
}

struct http_pipe *http_upgrade(struct http_request *r, const char *type,
			       const struct http_pipe_events *events,
			       void *data)
{
	struct http_pipe *p = calloc(1, sizeof(*p));

	must(p && !r->status);
	r->status = r->wants_upgrade ? 101 : 200;
	(void)snprintf(r->type, sizeof(r->type), "%s", type);
	buf_init(&p->out, 1 << 20);
	p->events = events;
	p->data = data;
	r->pipe = p;
	r->gone = NULL;
	return p;
}

size_t pipe_room(struct http_pipe *p)
{
	return p->room ? p->room - 1 : 262144;
}

size_t pipe_write(struct http_pipe *p, const struct iovec *v, int n)
{
	size_t all = 0;

	must(!p->has_ended);
	for (int i = 0; i < n; i++) {
		(void)buf_add(&p->out, v[i].iov_base, v[i].iov_len);
		all += v[i].iov_len;
	}
	must(all <= pipe_room(p));
	if (p->room)
		p->room -= all;
	return all;
}

void pipe_input_ready(struct http_pipe *p)
{
	p->wants_input = true;
}

void pipe_end(struct http_pipe *p)
{
	must(!p->has_ended);
	p->has_ended = true;
}

/* ---- requests ---- */

static const struct http_face *face(void)
{
	static const struct http_face *f;

	if (!f)
		f = docker_face(NULL);
	return f;
}

static void dispatch(struct http_request *r, const char *path)
{
	const struct http_face *f = face();

	for (size_t i = 0; i < f->n_routes; i++) {
		const struct http_route *t = &f->routes[i];
		int m;

		if (strcmp(t->method, r->method) != 0)
			continue;
		m = route_match(t->path, path, &r->params);
		if (m < 0) {
			f->fail(r, 400, "a bad escape in the path");
			return;
		}
		if (m == 1) {
			r->route = t;
			t->handle(r, f->ctx);
			return;
		}
	}
	f->fail(r, 404, "no such route");
}

static struct http_request *ask(const char *method, const char *url,
				const char *body, bool wants_upgrade)
{
	struct http_request *r = calloc(1, sizeof(*r));
	const char *mark = strchr(url, '?');
	const char *path;

	must(r);
	r->method = method;
	r->body = body;
	r->body_len = body ? strlen(body) : 0;
	r->wants_upgrade = wants_upgrade;
	r->peer = (struct peer){ .uid = 1000, .gid = 1000, .pid = 1 };
	buf_init(&r->out, 8 << 20);
	(void)snprintf(r->path, sizeof(r->path), "%.*s",
		       mark ? (int)(mark - url) : (int)strlen(url), url);
	if (query_parse(mark ? mark + 1 : "", mark ? strlen(mark + 1) : 0,
			&r->query) < 0) {
		face()->fail(r, 400, "a bad escape in the query");
		return r;
	}
	path = face()->enter(r, r->path);
	if (path)
		dispatch(r, path);
	return r;
}

struct http_request *fake_ask(const char *method, const char *url,
			      const char *body)
{
	struct http_request *r = ask(method, url, body, false);

	fake_run();
	return r;
}

struct http_request *fake_ask_upgrade(const char *method, const char *url,
				      const char *body)
{
	struct http_request *r = ask(method, url, body, true);

	return r;
}

void fake_send_body(struct http_request *r, const char *data, size_t len)
{
	if (!r->on_body)
		return;
	if (len > 0)
		(void)r->on_body(r->data, data, len);
	(void)r->on_body(r->data, NULL, 0);
	fake_run();
}

void fake_done(struct http_request *r)
{
	if (r->pipe) {
		r->pipe->events->gone(r->pipe->data);
		buf_done(&r->pipe->out);
		free(r->pipe);
	}
	if (r->gone)
		r->gone(r->data);
	(void)uv_run(uv_default_loop(), UV_RUN_NOWAIT);
	route_params_done(&r->params);
	query_done(&r->query);
	buf_done(&r->out);
	free(r);
}

const char *fake_out(struct http_request *r)
{
	return r->out.data ? r->out.data : "";
}
