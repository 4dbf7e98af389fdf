/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/util.h"
#include "gate/conn.h"
#include "gate/listen.h"
#include "gate/questions.h"
#include "gate/unheard.h"
#include "gate/usage.h"

/* For the last of it to be told. */
#define END_MS 300

/* How long what a box has sent may take to go out, once it is dead. */
#define DRAIN_MS 300

union message {
	struct gate_head head;
	struct gate_answer answer;
	struct gate_sockets sockets;
};

void client_fail(struct gate *g, const struct err *err)
{
	struct gate_event e = { .head.type = GATE_FAILED, .rule = -1 };

	(void)snprintf(e.detail, sizeof(e.detail), "%.127s", err->text);
	(void)io_send(g->client, &e, sizeof(e), NULL, 0);
}

static void fail(struct gate *g, const struct err *err)
{
	client_fail(g, err);
	_exit(1);
}

/* tables */

#define SEALS (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW)

static const struct gate_table *map_table(int fd, struct err *err)
{
	const struct gate_table *t;
	struct stat st;

	/* What was checked must stay as it was. */
	if ((fcntl(fd, F_GET_SEALS) & SEALS) != SEALS || fstat(fd, &st) < 0 ||
	    st.st_size < (off_t)sizeof(*t) || st.st_size > GATE_MAX_TABLE) {
		(void)err_set(err, EINVAL, "the table is not sealed");
		return NULL;
	}
	t = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (t == MAP_FAILED) {
		(void)err_errno(err, errno, "map the table");
		return NULL;
	}
	if (gate_table_check(t, (size_t)st.st_size, err) == 0)
		return t;
	(void)munmap((void *)t, (size_t)st.st_size);
	return NULL;
}

static bool has_inspection(const struct gate_table *t)
{
	for (uint32_t i = 0; i < t->n_rules; i++)
		if (t->rules[i].flags & GATE_RULE_INSPECT)
			return true;
	return false;
}

static bool has_secret(const struct gate_table *t)
{
	for (uint32_t i = 0; i < t->n_rules; i++)
		if (t->rules[i].placeholder)
			return true;
	return false;
}

static void say_taken(struct gate *g, uint32_t number)
{
	const struct gate_head head = { GATE_TAKEN, number };

	if (io_send(g->client, &head, sizeof(head), NULL, 0) < 0)
		_exit(0);
}

/* Open connections are judged by it at once, then nothing of the old is left.
 */
static void replace(struct gate *g, int fd, uint32_t number)
{
	const struct gate_table *old = g->table;
	struct err err = { 0 };
	const struct gate_table *t = map_table(fd, &err);

	if (t && has_inspection(t) && !g->has_authority)
		(void)err_set(&err, EOPNOTSUPP,
			      "the box does not know this gate's authority");
	/* With the old one it would let through what is not allowed now. */
	if (err.code)
		fail(g, &err);
	usage_replace(g->usage, old, t);
	g->table = t;
	g->has_secret = has_secret(t);
	conns_judge_again(g);
	(void)munmap((void *)old, old->size);
	say_taken(g, number);
}

/* the authority */

static int send_authority(struct gate *g, struct err *err)
{
	struct gate_ca msg = { .head.type = GATE_CA,
			       .subject_hash = authority_subject_hash() };
	size_t len = 0;
	const char *pem = authority_pem(&len);
	_cleanup_fd_ int fd = memfd_create("authority",
					   MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r;

	if (fd < 0 || !pem)
		return err_errno(err, errno, "hold the authority");
	r = io_write_all(fd, pem, len);
	if (r == 0)
		r = io_seal(fd);
	if (r == 0)
		r = io_send(g->client, &msg, sizeof(msg), &fd, 1);
	return r < 0 ? err_errno(err, -r, "send the authority") : 0;
}

static int make_authority(struct gate *g, struct err *err)
{
	const struct gate_table *t = g->table;

	if (trust_init(gate_str(t, t->ca_bundle), t->ca_bundle_len, err) < 0 ||
	    authority_make(err) < 0 || send_authority(g, err) < 0)
		return -err->code;
	g->has_authority = true;
	return 0;
}

int client_first_table(struct gate *g, struct err *err)
{
	struct gate_head head = { 0 };
	int fds[IO_MAX_FDS];
	int n_fds = 0;
	ssize_t n = io_recv(g->client, &head, sizeof(head), 0, fds, &n_fds);

	if (n == 0)
		_exit(0);
	if (n != sizeof(head) || head.type != GATE_TABLE || n_fds != 1)
		return err_set(err, EPROTO, "the first message is no table");
	g->table = map_table(fds[0], err);
	(void)close(fds[0]);
	if (!g->table)
		return -err->code;
	g->has_secret = has_secret(g->table);
	if (has_inspection(g->table) && make_authority(g, err) < 0)
		return -err->code;
	say_taken(g, head.number);
	return 0;
}

/* messages */

static void close_all(const int *fds, int n)
{
	for (int i = 0; i < n; i++)
		(void)close(fds[i]);
}

static void on_box(uv_poll_t *p, int status, int events);

static void on_end_late(uv_timer_t *t)
{
	(void)t;
	_exit(0);
}

/* What is inspected ends a little later than the others. */
static void cut(struct gate *g)
{
	static uv_timer_t late;

	listen_stop(g);
	(void)uv_timer_init(&g->loop, &late);
	(void)uv_timer_start(&late, on_end_late, END_MS, 0);
	conns_end(g);
}

static void on_drained(uv_timer_t *t)
{
	cut(t->data);
}

/* Its sockets may have come at the same time, with connections in them. */
static void end(struct gate *g)
{
	static uv_timer_t drained;

	uv_close((uv_handle_t *)&g->client_poll, NULL);
	if (g->box >= 0 && !g->is_cut)
		on_box(&g->box_poll, 0, 0);
	unheard_rest(g);
	if (g->is_cut) {
		cut(g);
		return;
	}
	drained.data = g;
	(void)uv_timer_init(&g->loop, &drained);
	(void)uv_timer_start(&drained, on_drained, DRAIN_MS, 0);
	listen_rest(g);
	conns_drain(g);
}

/* Who listens to us is not always who may decide. */
static void refuse_more(struct gate *g)
{
	struct err err = { 0 };

	(void)err_set(&err, EPERM, "its table was final");
	fail(g, &err);
}

static void take(struct gate *g, const union message *m, size_t n,
		 const int *fds, int n_fds)
{
	if (g->table->is_final && m->head.type != GATE_CUT)
		refuse_more(g);
	if (n == sizeof(m->head) && m->head.type == GATE_TABLE && n_fds == 1)
		replace(g, fds[0], m->head.number);
	else if (n == sizeof(m->head) && m->head.type == GATE_CUT)
		g->is_cut = true;
	else if (n == sizeof(m->answer) && m->head.type == GATE_ANSWER &&
		 questions_answer(g->questions, m->head.number,
				  m->answer.is_allowed))
		conns_answered(g);
}

static void on_client(uv_poll_t *p, int status, int events)
{
	struct gate *g = p->data;
	int fds[IO_MAX_FDS];
	union message m;
	int n_fds = 0;
	ssize_t n = io_recv(g->client, &m, sizeof(m), MSG_DONTWAIT, fds,
			    &n_fds);

	(void)events;
	if (n == -EAGAIN && status == 0)
		return;
	if (n <= 0) {
		end(g);
		return;
	}
	take(g, &m, (size_t)n, fds, n_fds);
	close_all(fds, n_fds);
}

/* The box's only message; what comes after it is nobody's. */
static void on_box(uv_poll_t *p, int status, int events)
{
	struct gate *g = p->data;
	struct err err = { 0 };
	int fds[IO_MAX_FDS];
	union message m;
	int n_fds = 0;
	ssize_t n = io_recv(g->box, &m, sizeof(m), MSG_DONTWAIT, fds, &n_fds);

	(void)status, (void)events;
	if (n == -EAGAIN)
		return;
	uv_close((uv_handle_t *)p, NULL);
	fd_close(&g->box);
	if (n <= 0)
		return;
	if (n != sizeof(m.sockets) || m.head.type != GATE_SOCKETS)
		(void)err_set(&err, EPROTO, "the box sent no sockets");
	else
		(void)listeners_take(g, &m.sockets, fds, n_fds, &err);
	if (err.code)
		fail(g, &err);
}

static int watch(struct gate *g, uv_poll_t *poll, int fd, uv_poll_cb cb,
		 struct err *err)
{
	int r = uv_poll_init(&g->loop, poll, fd);

	if (r == 0)
		r = uv_poll_start(poll, UV_READABLE, cb);
	if (r < 0)
		return err_errno(err, -r, "watch a socket");
	poll->data = g;
	return 0;
}

int client_start(struct gate *g, struct err *err)
{
	int flags = fcntl(g->client, F_GETFL);

	if (watch(g, &g->client_poll, g->client, on_client, err) < 0 ||
	    watch(g, &g->box_poll, g->box, on_box, err) < 0)
		return -err->code;
	/* libuv made it so that a send fails where it should wait. */
	(void)fcntl(g->client, F_SETFL, flags & ~O_NONBLOCK);
	return 0;
}
