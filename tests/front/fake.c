/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "fake.h"
#include "box/prepare.h"
#include "front/doc.h"
#include "serve/orders.h"

int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

struct fake fake;
struct peer fake_root, fake_alice, fake_bob;
struct err fake_err;

static struct order held[4096];
static size_t n_held;

static void reply(int sock, const struct order_answer *a, const int *fds, int n)
{
	(void)io_send(sock, a, sizeof(*a), fds, n);
}

/* ---- the parent ---- */

static int seal_json(json_t *o)
{
	char *text = json_dumps(o, JSON_COMPACT | JSON_ENCODE_ANY);
	int fd = doc_seal(text, strlen(text));

	free(text);
	json_decref(o);
	return fd;
}

static int seal_lines(json_t *const lines[3])
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	int fd;

	for (int i = 0; i < 3; i++) {
		(void)fputs(i ? "\n" : "", f);
		(void)json_dumpf(lines[i], f, JSON_COMPACT);
		json_decref(lines[i]);
	}
	(void)fclose(f);
	fd = doc_seal(text, size);
	free(text);
	return fd;
}

static json_t *make_head(void)
{
	json_t *o = json_pack("{s:s,s:[],s:[]}", "image",
			      fake.image_says ? "some:1" : "host", "warnings",
			      "clamped");

	if (fake.has_watches)
		(void)json_object_set_new(o, "watches", json_pack("[s]", "w"));
	if (fake.has_watches)
		(void)json_object_set_new(o, "who", json_string("0aff"));
	if (fake.has_gates)
		(void)json_object_set_new(o, "gate",
					  json_pack("{s:[],s:[],s:b}", "rules",
						    "env", "trust", false));
	return o;
}

static int make_answer(const json_t *request)
{
	json_t *command = json_object_get(request, "command");
	json_t *image = json_loads(fake.image_says ? fake.image_says : "{}", 0,
				   NULL);
	json_t *const lines[] = {
		make_head(),
		json_pack("{s:s,s:o}", "image", "host", "command",
			  command ? json_incref(command) : json_array()),
		json_pack("{s:O,s:s,s:{},s:{},s:{},s:[]}", "run",
			  json_object_get(request, "run"), "decision", "allow",
			  "network", "user", "limits", "layers")
	};

	(void)json_object_update(lines[1], image);
	json_decref(image);
	return seal_lines(lines);
}

static bool refuse(const json_t *request, struct order_answer *a)
{
	const json_t *settings = json_object_get(request, "settings");
	const char *how = doc_str(settings, "refuse");
	const char *missing = doc_str(settings, "missing");
	const char *first = json_string_value(
		json_array_get(json_object_get(request, "command"), 0));

	if (missing && first && strcmp(missing, first) == 0) {
		a->refused = REFUSED_NOT_FOUND;
		(void)err_set(&a->err, ENOENT, "no '%s'", first);
	} else if (how && strcmp(how, "denied") == 0) {
		a->refused = REFUSED_DENIED;
		(void)err_set(&a->err, EPERM, "the policy says no");
	} else if (how && strcmp(how, "image") == 0) {
		(void)err_set(&a->err, MGR_NO_IMAGE, "no such image");
	} else if (how) {
		(void)err_set(&a->err, ENOENT, "no such directory");
	}
	return a->err.code;
}

/* What came back must be what was given. */
static void sweep_for(const json_t *list, struct order_answer *a)
{
	int fd;

	fake.n_sweeps++;
	if (!fake.violation || json_array_size(list) != 1 ||
	    strcmp(json_string_value(json_array_get(list, 0)), "w") != 0) {
		(void)err_set(&a->err, EIO, "the preparer died");
		reply(fake.parent, a, NULL, 0);
		return;
	}
	fd = seal_json(json_pack("{s:[s]}", "violations", fake.violation));
	reply(fake.parent, a, &fd, 1);
	(void)close(fd);
}

void fake_reload(void)
{
	const struct order o = { .type = ORDER_POLICY };
	int doc = doc_seal("{}", 2);

	(void)io_send(fake.parent, &o, sizeof(o), &doc, 1);
	(void)close(doc);
}

/* Two sockets of a gate that is never there; ours are its ends. */
static void make_gate(uint32_t number, int ret[2])
{
	struct fake_gate *g = &fake.gates[fake.n_gates++];
	int pair[2];

	g->number = number;
	(void)socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
	ret[0] = pair[0];
	g->client = pair[1];
	(void)socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
	ret[1] = pair[0];
	g->box = pair[1];
}

static void end_gate(uint32_t number)
{
	fake.n_gate_ends++;
	for (int i = 0; i < fake.n_gates; i++)
		if (fake.gates[i].number == number) {
			fake.gates[i].number = 0;
			fd_close(&fake.gates[i].client);
			fd_close(&fake.gates[i].box);
		}
}

/* A box and what it runs, with its gate where it has one. */
static void reply_whole(struct order_answer *a, const int fds[3])
{
	int all[5] = { fds[0], fds[1], fds[2] };

	a->has_gate = fake.has_gates &&
		      fake.n_gates < (int)ARRAY_SIZE(fake.gates);
	if (!a->has_gate) {
		reply(fake.parent, a, fds, 3);
		return;
	}
	make_gate(a->number, all + 2);
	all[4] = fds[2];
	reply(fake.parent, a, all, 5);
	(void)close(all[2]);
	(void)close(all[3]);
}

static void prepare_for(const struct order *o, int doc)
{
	struct order_answer a = { .type = ORDER_ANSWER, .number = o->number };
	char *text = doc_read(doc, &fake_err);
	json_t *request = json_loads(text, 0, NULL);
	int fds[3];

	fake.n_prepares++;
	if (fake.reloads > 0) {
		fake.reloads--;
		fake_reload();
	}
	if (json_object_get(request, "sweep")) {
		sweep_for(json_object_get(request, "sweep"), &a);
	} else if (refuse(request, &a)) {
		reply(fake.parent, &a, NULL, 0);
	} else {
		fds[0] = doc_seal("box", 3);
		fds[1] = seal_json(
			json_object_get(request, "command")
				? json_incref(
					  json_object_get(request, "command"))
				: json_array());
		fds[2] = make_answer(request);
		if (json_is_true(json_object_get(request, "exec")))
			reply(fake.parent, &a, fds + 1, 2);
		else if (json_is_true(json_object_get(request, "box_only")))
			reply(fake.parent, &a, (int[]){ fds[0], fds[2] }, 2);
		else
			reply_whole(&a, fds);
		for (int i = 0; i < 3; i++)
			(void)close(fds[i]);
	}
	json_decref(request);
	free(text);
}

static void run_image(const struct order *o, const int *fds)
{
	struct order_answer a = { .type = ORDER_ANSWER,
				  .number = o->number,
				  .exit_code = 3 };
	char buf[4096];
	ssize_t n;

	/* Says back what it was given, and fails. */
	n = pread(fds[0], buf, sizeof(buf), 0);
	(void)!write(fds[2], buf, (size_t)(n > 0 ? n : 0));
	while ((n = read(fds[1], buf, sizeof(buf))) > 0)
		(void)!write(fds[2], buf, (size_t)n);
	(void)!write(fds[3], "first\nlast words\n", 17);
	reply(fake.parent, &a, NULL, 0);
}

static void parent_ready(uv_poll_t *p, int status, int events)
{
	struct order o;
	int fds[8];
	int n = 0;
	ssize_t len = io_recv(fake.parent, &o, sizeof(o), MSG_DONTWAIT, fds,
			      &n);

	(void)p;
	(void)status;
	(void)events;
	if (len != (ssize_t)sizeof(o))
		return;
	fake.n_late += o.type == ORDER_SWEEP;
	if ((o.type == ORDER_PREPARE || o.type == ORDER_SWEEP) && n == 2 &&
	    !fake.hold_prepares)
		prepare_for(&o, fds[0]);
	else if (o.type == ORDER_IMAGE && n == 5)
		run_image(&o, fds);
	else if (o.type == ORDER_GATE_END)
		end_gate(o.number);
	else if (o.type == ORDER_DRAINED)
		fake.is_drained = true;
	else if (o.type == ORDER_READY)
		fake.is_ready = true;
	for (int i = 0; i < n; i++)
		(void)close(fds[i]);
}

/* ---- the clerk ---- */

static void keep_record(const struct order *o, int doc)
{
	char *text = doc_read(doc, &fake_err);
	json_t *r = json_loads(text, 0, NULL);
	const char *cause = doc_str(r, "cause");
	const char *denied = doc_str(
		json_array_get(json_object_get(r, "denials"), 0), "what");
	char *line = NULL;

	if (cause)
		(void)!asprintf(&line, "%s %s %s %lld%s%s", o->kind,
				doc_str(r, "run"), cause,
				(long long)doc_int(r, "exit_code", -1),
				denied ? " " : "", denied ? denied : "");
	else
		(void)!asprintf(&line, "%s %s %s", o->kind, doc_str(r, "run"),
				doc_str(r, "subject") ? doc_str(r, "subject")
						      : "");
	if (fake.n_records < ARRAY_SIZE(fake.records))
		fake.records[fake.n_records++] = line;
	json_decref(r);
	free(text);
}

static uint64_t position(void)
{
	return ((uint64_t)1 << 32) + fake.n_records;
}

/* What was recorded of that run from a place on: its end, or "". */
static const char *find_record(const struct order *o, const char *kind)
{
	char start[80];

	(void)snprintf(start, sizeof(start), "%s %s ", kind, o->run);
	for (size_t i = o->from - ((uint64_t)1 << 32); i < fake.n_records; i++)
		if (strncmp(fake.records[i], start, strlen(start)) == 0)
			return fake.records[i] + strlen(start);
	return NULL;
}

static void settle(const struct order *o, int doc)
{
	struct order_answer a = { .type = ORDER_ANSWER,
				  .number = o->number,
				  .position = position() };
	const char *end = o->from ? find_record(o, "run.end") : NULL;
	struct order record = *o;
	long long code = 0;

	fake.n_settled++;
	if (end) {
		a.settled = SETTLED_BEFORE;
		(void)sscanf(end, "%15s %lld", a.cause, &code);
		a.exit_code = (int)code;
	} else if (o->from && o->may_be_new && !find_record(o, "run.start")) {
		a.settled = SETTLED_NEVER;
	} else {
		(void)snprintf(record.kind, sizeof(record.kind), "run.end");
		keep_record(&record, doc);
	}
	if (fake.hold_records)
		return; /* for ever */
	reply(fake.clerk, &a, NULL, 0);
}

static void answer_record(const struct order *o)
{
	struct order_answer a = { .type = ORDER_ANSWER,
				  .number = o->number,
				  .position = position() };

	if (fake.refuse_records)
		(void)err_set(&a.err, ENOSPC, "the disk is full");
	reply(fake.clerk, &a, NULL, 0);
}

void fake_answer_records(void)
{
	fake.hold_records = false;
	for (size_t i = 0; i < n_held; i++)
		answer_record(&held[i]);
	n_held = 0;
}

static void clerk_ready(uv_poll_t *p, int status, int events)
{
	struct order o;
	int fds[8];
	int n = 0;
	ssize_t len = io_recv(fake.clerk, &o, sizeof(o), MSG_DONTWAIT, fds, &n);

	(void)p;
	(void)status;
	(void)events;
	if (len != (ssize_t)sizeof(o))
		return;
	if (n == 1 && !fake.refuse_records && !fake.lose_records &&
	    o.type == ORDER_RECORD)
		keep_record(&o, fds[0]);
	if (fake.lose_records)
		;
	else if (o.type == ORDER_SETTLE && n == 1)
		settle(&o, fds[0]);
	else if (fake.hold_records && o.type == ORDER_RECORD)
		held[n_held++] = o;
	else
		answer_record(&o);
	for (int i = 0; i < n; i++)
		(void)close(fds[i]);
}

/* ---- the whole ---- */

static void place(int fd, int at)
{
	if (fd == at)
		return;
	(void)dup2(fd, at);
	(void)close(fd);
}

void fake_open(void)
{
	struct err err = { 0 };
	int parent[2], clerk[2], keeper[2];
	int dir;

	/* Nothing of ours may be where the manager's are put. */
	for (int i = 3; i < 10; i++)
		if (fcntl(i, F_GETFD) < 0)
			(void)open("/dev/null", O_RDONLY | O_CLOEXEC);
	(void)socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, parent);
	(void)socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, clerk);
	(void)socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, keeper);
	dir = open(fake.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	(void)uv_loop_init(&fake.loop);
	place(parent[0], FRONT_FD_PARENT);
	place(clerk[0], FRONT_FD_CLERK);
	place(keeper[0], FRONT_FD_KEEPER);
	place(dir, FRONT_FD_STATE);
	fake.parent = parent[1];
	fake.clerk = clerk[1];
	(void)uv_poll_init(&fake.loop, &fake.polls[0], fake.parent);
	(void)uv_poll_init(&fake.loop, &fake.polls[1], fake.clerk);
	(void)uv_poll_start(&fake.polls[0], UV_READABLE, parent_ready);
	(void)uv_poll_start(&fake.polls[1], UV_READABLE, clerk_ready);
	fake.m = manager_new(&fake.loop, &fake.limits, &err);
	if (!fake.m) {
		printf("# manager_new: %s\n", err.text);
		abort();
	}
}

static void make_peer(struct peer *p, uid_t uid)
{
	int s[2];

	(void)socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s);
	*p = (struct peer){ .uid = uid, .gid = uid, .pid = 1, .fd = s[0] };
}

void fake_begin(void)
{
	(void)snprintf(fake.dir, sizeof(fake.dir), "/tmp/cordon-front-XXXXXX");
	if (!mkdtemp(fake.dir))
		abort();
	manager_limits_default(&fake.limits);
	make_peer(&fake_root, 0);
	make_peer(&fake_alice, 1000);
	make_peer(&fake_bob, 1001);
	fake_open();
}

static bool has_crashed;

void fake_crash(void)
{
	has_crashed = true;
	fake_kill_all();
	/* The manager is left as it is: a dead process frees nothing. */
	for (int i = FRONT_FD_PARENT; i <= FRONT_FD_STATE; i++)
		(void)close(i);
	n_held = 0;
}

static int rm(const char *path, const struct stat *st, int type,
	      struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void is_over(void *arg)
{
	*(bool *)arg = true;
}

static void no_close(uv_handle_t *h)
{
	(void)h;
}

void fake_end(void)
{
	bool over = false;

	manager_drain(fake.m, is_over, &over);
	if (!fake_until(&over, 15000)) {
		printf("# it does not drain\n");
		abort();
	}
	manager_free(fake.m);
	uv_close((uv_handle_t *)&fake.polls[0], no_close);
	uv_close((uv_handle_t *)&fake.polls[1], no_close);
	(void)uv_run(&fake.loop, UV_RUN_NOWAIT);
	if (uv_loop_close(&fake.loop) != 0) {
		printf("# the loop has handles left\n");
		abort();
	}
	for (size_t i = 0; i < fake.n_records; i++)
		free(fake.records[i]);
	fake.n_records = 0;
	/* With ASan: nothing is left of the manager but what it leaves dead */
	if (!has_crashed && __lsan_do_recoverable_leak_check &&
	    __lsan_do_recoverable_leak_check()) {
		printf("# memory is lost\n");
		abort();
	}
	(void)nftw(fake.dir, rm, 8, FTW_DEPTH | FTW_PHYS);
}

static void tick(uv_timer_t *t)
{
	*(bool *)t->data = true;
}

bool fake_until(const bool *flag, int ms)
{
	bool late = false;
	uv_timer_t *t = calloc(1, sizeof(*t));

	(void)uv_timer_init(&fake.loop, t);
	t->data = &late;
	uv_update_time(&fake.loop);
	(void)uv_timer_start(t, tick, (uint64_t)ms, 0);
	while (!*flag && !late)
		(void)uv_run(&fake.loop, UV_RUN_ONCE);
	uv_close((uv_handle_t *)t, (uv_close_cb)(void (*)(void))free);
	return *flag;
}

void fake_turn(int ms)
{
	bool never = false;

	(void)fake_until(&never, ms);
}

size_t fake_count(const char *start)
{
	size_t n = 0;

	for (size_t i = 0; i < fake.n_records; i++)
		n += strncmp(fake.records[i], start, strlen(start)) == 0;
	return n;
}

/* ---- calls ---- */

struct answer {
	bool is_done;
	struct err err;
	struct box *box;
	struct exec *exec;
};

static void take_done(void *arg, const struct err *err)
{
	struct answer *a = arg;

	a->is_done = true;
	if (err)
		a->err = *err;
}

static void take_box(void *arg, struct box *b, const struct err *err)
{
	struct answer *a = arg;

	a->box = b;
	take_done(arg, err);
}

static void take_exec(void *arg, struct exec *e, const struct err *err)
{
	struct answer *a = arg;

	a->exec = e;
	take_done(arg, err);
}

static int result(struct answer *a)
{
	if (!fake_until(&a->is_done, 15000)) {
		printf("# no answer came\n");
		abort();
	}
	fake_err = a->err;
	return a->err.code;
}

struct box *fake_box_of(const struct peer *peer, const struct box_want *w)
{
	struct answer a = { 0 };

	(void)box_create(fake.m, peer, w, take_box, &a);
	(void)result(&a);
	return a.box;
}

struct box *fake_box(const char *name, const char *script)
{
	const char *command[] = { "sh", "-c", script, NULL };
	struct box_want w = { .face = "docker",
			      .settings = "{}",
			      .name = name,
			      .command = command,
			      .shims = true,
			      .stop_timeout_s = -1 };

	return fake_box_of(&fake_alice, &w);
}

int fake_start(struct box *b)
{
	struct answer a = { 0 };

	(void)box_start(b, take_done, &a);
	return result(&a);
}

int fake_stop(struct box *b, int timeout_s)
{
	struct answer a = { 0 };

	(void)box_stop(b, 0, timeout_s, take_done, &a);
	return result(&a);
}

int fake_remove(struct box *b, bool force)
{
	struct answer a = { 0 };

	(void)box_remove(b, force, take_done, &a);
	return result(&a);
}

struct exec *fake_exec(struct box *b, const char *const *command)
{
	struct answer a = { 0 };
	struct exec_want w = { .command = command,
			       .stdout_ = true,
			       .stderr_ = true,
			       .stdin_ = true };

	(void)exec_create(b, &w, take_exec, &a);
	(void)result(&a);
	return a.exec;
}

void bag_init(struct bag *b)
{
	*b = (struct bag){ .room = SIZE_MAX };
}

static size_t bag_write(void *arg, int stream, const char *data, size_t len)
{
	struct bag *b = arg;
	size_t n = MIN(len, b->room);

	if (b->room != SIZE_MAX)
		b->room -= n;
	b->out = realloc(b->out, b->len + n + 1);
	memcpy(b->out + b->len, data, n);
	b->len += n;
	b->out[b->len] = '\0';
	*(stream == 1 ? &b->n_out : &b->n_err) += n;
	return n;
}

static void bag_over(void *arg)
{
	struct bag *b = arg;

	b->is_over = true;
}

struct sink bag_sink(struct bag *b)
{
	return (struct sink){ .write = bag_write, .end = bag_over, .arg = b };
}

static void take_waited(void *arg, int code, const char *error)
{
	struct waited *w = arg;

	w->is_done = true;
	w->code = code;
	(void)snprintf(w->error, sizeof(w->error), "%s", error ? error : "");
}

void fake_wait(struct waited *w, const char *text, enum box_condition c)
{
	*w = (struct waited){ 0 };
	if (!box_wait(fake.m, &fake_alice, text, c, take_waited, w, &fake_err))
		w->code = -fake_err.code;
}
