/* SPDX-License-Identifier: Apache-2.0 */

/* The manager itself: what it is born with, and how it ends. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/util.h"
#include "front/doc.h"
#include "front/exec.h"
#include "front/front.h"

#define DRAIN_STOP_S 10 /* for one box, when the daemon ends */
#define SETTLE_US    20000000

void manager_limits_default(struct manager_limits *l)
{
	*l = (struct manager_limits){ .boxes = WIRE_STAYING,
				      .boxes_a_peer = WIRE_STAYING / 2,
				      .waiting = 64,
				      .wait_us = 10000000,
				      .execs = 256,
				      .execs_a_peer = WIRE_PROGRAMS / 2,
				      .bytes_a_peer = (size_t)128 << 20,
				      .bytes = (size_t)512 << 20 };
}

static void parent_told(void *arg, uint32_t type, int fd)
{
	struct manager *m = arg;
	struct err unused;

	if (type == ORDER_POLICY && fd >= 0) {
		char *note = doc_read(fd, &unused);

		m->policy_age++;
		if (note) {
			free(m->policy_note);
			m->policy_note = note;
		}
	} else if (type == ORDER_DRAIN) {
		m->tell_drained = true;
		if (m->on_drain)
			m->on_drain(m->on_drain_arg);
		manager_drain(m, NULL, NULL);
	}
}

static void clerk_told(void *arg, uint32_t type, int fd)
{
	(void)arg;
	(void)type;
	(void)fd;
}

static void keeper_ready(uv_poll_t *p, int status, int events)
{
	struct manager *m = p->data;

	(void)status;
	(void)events;
	if (sessions_step(m->sessions) < 0) {
		/* The parent starts both of us again. */
		m->is_lost = true;
		(void)uv_poll_stop(p);
	}
}

/* A directory of ours below the state directory. */
static int open_dir(int at, const char *name, struct err *err)
{
	int fd;

	if (mkdirat(at, name, 0700) < 0 && errno != EEXIST)
		return err_errno(err, errno, "make '%s'", name);
	fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return fd >= 0 ? fd : err_errno(err, errno, "open '%s'", name);
}

/* A box needs about eight; the limit that we are born with is a small one. */
static void raise_files(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < l.rlim_max) {
		l.rlim_cur = MIN(l.rlim_max, (rlim_t)65536);
		(void)setrlimit(RLIMIT_NOFILE, &l);
	}
}

static int open_state(struct manager *m, struct err *err)
{
	for (int fd = FRONT_FD_PARENT; fd <= FRONT_FD_STATE; fd++)
		if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
			return err_errno(err, errno, "descriptor %d", fd);
	m->state_fd = FRONT_FD_STATE;
	m->boxes_fd = open_dir(m->state_fd, "boxes", err);
	if (m->boxes_fd < 0)
		return -err->code;
	m->logs_fd = open_dir(m->state_fd, "logs", err);
	if (m->logs_fd < 0)
		return -err->code;
	m->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (m->null_fd < 0)
		return err_errno(err, errno, "open '/dev/null'");
	return 0;
}

static int open_peers(struct manager *m, struct err *err)
{
	m->parent = orders_new(m->loop, FRONT_FD_PARENT, parent_told, m, err);
	if (!m->parent)
		return -err->code;
	m->clerk = orders_new(m->loop, FRONT_FD_CLERK, clerk_told, m, err);
	if (!m->clerk)
		return -err->code;
	m->sessions = sessions_new(FRONT_FD_KEEPER, err);
	if (!m->sessions)
		return -err->code;
	if (uv_poll_init(m->loop, m->keeper, sessions_fd(m->sessions)) < 0)
		return err_set(err, EIO, "the keeper's socket is none");
	m->keeper->data = m;
	(void)uv_poll_start(m->keeper, UV_READABLE, keeper_ready);
	return 0;
}

static void look_at_machine(struct manager *m)
{
	struct sysinfo info;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if (sysinfo(&info) == 0)
		m->memory_total = (uint64_t)info.totalram * info.mem_unit;
	m->cpus = cpus > 0 ? (unsigned int)cpus : 1;
	machine_open(m);
	m->started_ns = day_ns();
	/* Numbers of shelves of an earlier daemon mean nothing to this one. */
	m->next_shelf = 0;
}

struct manager *manager_new(uv_loop_t *loop, const struct manager_limits *l,
			    struct err *err)
{
	struct manager *m = calloc(1, sizeof(*m));

	if (m) {
		m->keeper = calloc(1, sizeof(*m->keeper));
		m->idle = calloc(1, sizeof(*m->idle));
	}
	if (!m || !m->keeper || !m->idle) {
		(void)err_set(err, ENOMEM, "out of memory");
		if (m) {
			free(m->keeper);
			free(m->idle);
		}
		free(m);
		return NULL;
	}
	m->loop = loop;
	m->limits = *l;
	m->tasks_end = &m->tasks;
	m->boxes_fd = m->logs_fd = m->null_fd = NO_FD;
	m->machine.stat_fd = NO_FD;
	(void)uv_idle_init(loop, m->idle);
	m->idle->data = m;
	(void)signal(SIGPIPE, SIG_IGN);
	raise_files();
	look_at_machine(m);
	if (open_state(m, err) < 0 || open_peers(m, err) < 0 ||
	    notes_load(m, err) < 0 || runs_open(m, err) < 0 ||
	    runs_reconcile(m, err) < 0) {
		/* The process ends: nothing was begun that must be undone. */
		return NULL;
	}
	return m;
}

static bool is_settled(const struct manager *m)
{
	for (const struct box *b = m->boxes; b; b = b->next)
		if (b->is_lost && b->is_ending)
			return false;
	return m->n_records == 0;
}

static void settled_enough(void *arg)
{
	*(bool *)arg = true;
}

void manager_settle(struct manager *m)
{
	struct alarm *patience = NULL;
	bool is_over = false;

	alarm_set(m, &patience, SETTLE_US, settled_enough, &is_over);
	while (!is_settled(m) && !is_over && !m->is_lost)
		(void)uv_run(m->loop, UV_RUN_ONCE);
	alarm_clear(&patience);
}

void manager_ready(struct manager *m)
{
	struct err unused;

	(void)orders_ask(m->parent, &(struct order_want){ .type = ORDER_READY },
			 NULL, NULL, &unused);
}

void manager_on_drain(struct manager *m, void (*fn)(void *arg), void *arg)
{
	m->on_drain = fn;
	m->on_drain_arg = arg;
}

static bool is_busy(const struct manager *m)
{
	if (m->n_records > 0)
		return true;
	for (const struct box *b = m->boxes; b; b = b->next)
		if (b->session || b->is_starting || b->is_ending ||
		    b->create_call)
			return true;
	return false;
}

static void drain_look(struct task *t)
{
	struct manager *m = task_of(t, struct manager, drain_task);
	struct err unused;

	if (is_busy(m))
		return;
	m->is_draining = true;
	if (m->tell_drained)
		(void)orders_ask(m->parent,
				 &(struct order_want){ .type = ORDER_DRAINED },
				 NULL, NULL, &unused);
	m->tell_drained = false;
	if (m->drained)
		m->drained(m->drained_arg);
	m->drained = NULL;
}

static void drain_tick(void *arg)
{
	struct manager *m = arg;

	drain_look(&m->drain_task);
	if (m->tell_drained || m->drained)
		alarm_set(m, &m->drain_alarm, 5000, drain_tick, m);
}

static void drop_done(void *arg, const struct err *err)
{
	(void)arg;
	(void)err;
}

static void drain_box(struct box *b)
{
	if (b->is_starting || b->state == BOX_RUNNING || b->state == BOX_PAUSED)
		(void)box_stop(b, 0, MIN(b->stop_timeout_s, DRAIN_STOP_S),
			       drop_done, NULL);
	else
		box_close_wall(b);
}

void manager_drain(struct manager *m, void (*done)(void *arg), void *arg)
{
	struct box *next;

	if (done) {
		m->drained = done;
		m->drained_arg = arg;
	}
	if (!m->is_draining) {
		m->is_draining = true;
		for (struct box *b = m->boxes; b; b = next) {
			next = b->next;
			drain_box(b);
		}
		questions_look(m);
	}
	alarm_set(m, &m->drain_alarm, 1000, drain_tick, m);
}

static void free_handle(uv_handle_t *h)
{
	free(h);
}

/* Of an orderly end: after manager_drain(). */
void manager_free(struct manager *m)
{
	if (!m)
		return;
	alarm_clear(&m->drain_alarm);
	uv_close((uv_handle_t *)m->keeper, free_handle);
	sessions_free(m->sessions);
	orders_free(m->parent);
	orders_free(m->clerk);
	/* What those have told is yet to be delivered. */
	while (m->tasks)
		(void)uv_run(m->loop, UV_RUN_NOWAIT);
	uv_close((uv_handle_t *)m->idle, free_handle);
	while (m->boxes) {
		struct box *b = m->boxes;

		box_unlink(b);
		box_unref(b);
	}
	(void)uv_run(m->loop, UV_RUN_NOWAIT);
	exec_past_free(m);
	runs_close(m);
	events_free(m);
	ends_free(m);
	held_free(m);
	fd_close(&m->boxes_fd);
	fd_close(&m->logs_fd);
	fd_close(&m->null_fd);
	machine_close(m);
	free(m->policy_note);
	free(m);
}

void manager_look(struct manager *m, const struct peer *peer,
		  struct manager_view *ret)
{
	*ret = (struct manager_view){
		.started_ns = m->started_ns,
		.memory_total = m->memory_total,
		.cpus = m->cpus,
		.cgroup_version = m->machine.cgroup_version,
		.forwards_ipv4 = m->machine.forwards_ipv4,
		.machine_id = m->machine.id,
		.policy_note = m->policy_note ? m->policy_note : "{}",
	};
	for (const struct box *b = m->boxes; b; b = b->next) {
		if (!b->is_made || !peer_may(peer, b))
			continue;
		ret->created += b->state == BOX_CREATED;
		ret->running += b->state == BOX_RUNNING;
		ret->paused += b->state == BOX_PAUSED;
		ret->exited += b->state == BOX_EXITED;
	}
}

uv_loop_t *manager_loop(const struct manager *m)
{
	return m->loop;
}
