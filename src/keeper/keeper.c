/* SPDX-License-Identifier: Apache-2.0 */

/* A keeper's life: opened, stepped, closed. See keeper.h. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/util.h"
#include "keeper/keeper.h"
#include "os/uapi.h"

#ifdef CORDON_TEST_BUILD
void keeper_moment(const char *name)
{
	const char *wanted = getenv("CORDON_TEST_DIE");

	if (wanted && strncmp(wanted, "keeper-", 7) == 0 &&
	    strcmp(wanted + 7, name) == 0)
		(void)kill(getpid(), SIGKILL);
}
#endif

static void client_said(struct keeper *k)
{
	struct wire_ask ask;
	struct wire_head head;
	int fds[IO_MAX_FDS];
	int n_fds = 0;
	ssize_t n = io_recv(k->sock, &ask, sizeof(ask), MSG_DONTWAIT, fds,
			    &n_fds);
	struct box *b;

	if (n == -EAGAIN)
		return;
	if (n == sizeof(ask)) {
		session_request(k, &ask, fds, n_fds);
		return;
	}
	memcpy(&head, &ask, sizeof(head));
	if (n != sizeof(head) || k->only_stays) {
		for (int i = 0; i < n_fds; i++)
			(void)close(fds[i]);
		k->is_over = true;
		return;
	}
	if (head.type == WIRE_RUN) {
		run_request(k, &head, fds, n_fds);
		return;
	}
	if (head.type == WIRE_AHEAD) {
		run_ahead(k, fds, n_fds);
		return;
	}
	for (int i = 0; i < n_fds; i++)
		(void)close(fds[i]);
	b = run_find(k, head.job);
	switch (head.type) {
	/* Without a box it has ended, and the two messages crossed. */
	case WIRE_CANCEL:
		if (b)
			run_end(k, b, WIRE_BY_CANCEL);
		break;
	case WIRE_FLOOD:
		if (b)
			run_flooded(k, b);
		break;
	case WIRE_NEXT:
		if (b)
			run_next(b, &head);
		break;
	default:
		/* Not our client's language; it will see us go. */
		k->is_over = true;
		break;
	}
}

static void box_event(struct keeper *k, const struct epoll_event *ev)
{
	struct box *b = &k->boxes[ev->data.u64 >> 2];

	if (b->state == BOX_FREE)
		return;
	if ((ev->data.u64 & 3) == KEEPER_EV_PIDFD) {
		if (b->stays)
			session_init_died(k, b);
		else
			run_init_died(k, b);
	} else if (b->sock >= 0) {
		if (b->stays)
			session_init_said(k, b);
		else
			run_init_said(k, b);
	}
}

static int add(int epoll, int fd, enum keeper_event what)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = what };

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev);
}

/* Watches the client's socket, and the client itself: a child that it
 * forked may hold the socket open after its death. */
static int watch_client(struct keeper *k, pid_t client, struct err *err)
{
	k->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (k->epoll < 0 || add(k->epoll, k->sock, KEEPER_EV_CLIENT) < 0)
		return err_errno(err, errno, "watch the client");
	if (client == 0)
		return 0;
	k->client = sys_pidfd_open(client);
	if (k->client < 0 || getppid() != client)
		return err_set(err, ESRCH, "the client is gone");
	if (add(k->epoll, k->client, KEEPER_EV_CLIENT_PID) < 0)
		return err_errno(err, errno, "watch the client");
	return 0;
}

static void make_id(struct keeper *k)
{
	unsigned char raw[8] = { 0 };

	(void)!getrandom(raw, sizeof(raw), 0);
	for (size_t i = 0; i < sizeof(raw); i++)
		(void)snprintf(k->id + 2 * i, 3, "%02x", raw[i]);
}

void keeper_ahead(struct keeper *k, bool has_way_out)
{
	k->record = NO_FD;
	k->sock = NO_FD;
	k->next = NO_FD;
	k->ahead.spec = NO_FD;
	midwife_call(k, has_way_out);
}

void keeper_open(struct keeper *k, int sock, pid_t client, bool is_reused)
{
	struct err unused = { 0 };
	struct err *err = &k->refusal;

	k->sock = sock;
	k->client = NO_FD;
	k->record = NO_FD;
	k->next = NO_FD;
	k->ahead.spec = NO_FD;
	if (!k->midwife)
		midwife_call(k, false);
	k->is_reused = is_reused;
	make_id(k);
	if (watch_client(k, client, err) < 0) {
		(void)err_stage(err, "keeper");
		k->is_over = true; /* nobody could be heard or refused */
		return;
	}
	if (world_find_caller(&k->world, err) < 0 ||
	    cg_tree_open(&k->cg, err) < 0 || world_open(&k->world, err) < 0) {
		(void)err_stage(err, "keeper");
		return;
	}
	keeper_moment("world");
	if (record_open(k, err) < 0) {
		(void)err_stage(err, "record");
		return;
	}
	keeper_moment("record");
	/* Nearly every run is as nobody; where not, it is only unused. */
	(void)box_spawn(k, (struct ids){ .uid = 65534, .gid = 65534 }, &unused);
}

int keeper_fd(const struct keeper *k)
{
	return k->epoll;
}

int keeper_timeout_ms(const struct keeper *k)
{
	int64_t next = MIN(MIN(run_next_look(k), programs_next_look(k)),
			   ahead_next_look(k));
	int64_t now;

	if (k->next >= 0)
		return 0;
	if (next == INT64_MAX)
		return -1;
	now = clock_us();
	if (next <= now)
		return 0;
	return (int)MIN((next - now + 999) / 1000, 3600000);
}

void keeper_step(struct keeper *k, int timeout_ms)
{
	struct epoll_event ev[16];
	int n;

	box_settle(k);
	n = epoll_wait(k->epoll, ev, ARRAY_SIZE(ev), timeout_ms);
	for (int i = 0; i < n && !k->is_over; i++) {
		enum keeper_event what = ev[i].data.u64 & 3;

		if (what == KEEPER_EV_CLIENT)
			client_said(k);
		else if (what == KEEPER_EV_CLIENT_PID)
			k->is_over = true;
		else
			box_event(k, &ev[i]);
	}
	if (!k->is_over) {
		run_timers(k);
		programs_timers(k);
		if (n > 0)
			ahead_wait(k);
		ahead_timers(k);
	}
	if (n == 0 && k->next >= 0 && !k->is_over)
		next_step(k);
	/* By now its work is done, and nobody waits for us. */
	if (n > 0)
		midwife_done(k);
}

bool keeper_sweep(struct keeper *k)
{
	bool is_clean = true;

	if (!k->is_swept && k->record >= 0)
		is_clean = record_sweep(&k->world);
	k->is_swept = true;
	return is_clean;
}

void keeper_close(struct keeper *k)
{
	box_settle(k);
	for (int i = 0; i < k->top; i++) {
		struct box *b = &k->boxes[i];

		if (b->state == BOX_FREE)
			continue;
		(void)cg_box_kill(&b->cg);
		box_release(k, b);
	}
	fd_close(&k->ahead.spec);
	fd_close(&k->next);
	if (k->has_own_mounts)
		shelves_close(k);
	(void)keeper_sweep(k);
	if (!remains_settle())
		k->has_left = true;
	if (!k->has_left)
		record_remove(k);
	remains_done(k);
	shed_close(k);
	midwife_done(k);
	net_close();
	fd_close(&k->sock);
	k->is_over = true;
}
