/* SPDX-License-Identifier: Apache-2.0 */

/* cordon-keeper; see keeper.h. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "keeper/keeper.h"
#include "os/uapi.h"

static struct keeper keeper;

#ifdef CORDON_TEST_BUILD
void keeper_moment(const char *name)
{
	const char *wanted = getenv("CORDON_TEST_DIE");

	if (wanted && strncmp(wanted, "keeper-", 7) == 0 &&
	    strcmp(wanted + 7, name) == 0)
		(void)kill(getpid(), SIGKILL);
}
#endif

/* Ends everything; no box outlives its client. */
void keeper_leave(struct keeper *k)
{
	for (int i = 0; i < KEEPER_BOXES; i++) {
		struct box *b = &k->boxes[i];

		if (b->state == BOX_FREE)
			continue;
		(void)cg_box_kill(&b->cg);
		box_release(k, b);
	}
	record_remove(k);
	_exit(0);
}

static void client_said(struct keeper *k)
{
	struct wire_head head;
	int fds[IO_MAX_FDS];
	int n_fds = 0;
	ssize_t n = io_recv(KEEPER_SOCK, &head, sizeof(head), MSG_DONTWAIT, fds,
			    &n_fds);
	struct box *b;

	if (n == -EAGAIN)
		return;
	if (n != sizeof(head))
		keeper_leave(k);
	if (head.type == WIRE_RUN) {
		run_request(k, &head, fds, n_fds);
		return;
	}
	for (int i = 0; i < n_fds; i++)
		(void)close(fds[i]);
	b = run_find(k, head.job);
	switch (head.type) {
	/* Without a box it has ended, and the two messages crossed. */
	case WIRE_CANCEL:
	case WIRE_FLOOD:
		if (b)
			run_end(k, b, head.type == WIRE_CANCEL ?
					      WIRE_BY_CANCEL :
					      WIRE_BY_FLOOD);
		break;
	case WIRE_NEXT:
		if (b)
			(void)io_send(b->sock, &head, sizeof(head), NULL, 0);
		break;
	default:
		/* Not our client's language; it will see us go. */
		keeper_leave(k);
	}
}

static void box_event(struct keeper *k, const struct epoll_event *ev)
{
	struct box *b = &k->boxes[ev->data.u64 >> 2];

	if (b->state == BOX_FREE)
		return;
	if ((ev->data.u64 & 3) == KEEPER_EV_PIDFD)
		run_init_died(k, b);
	else if (b->sock >= 0)
		run_init_said(k, b);
}

static void loop(struct keeper *k) __attribute__((noreturn));
static void loop(struct keeper *k)
{
	for (;;) {
		struct epoll_event ev[16];
		int n = epoll_wait(k->epoll, ev, ARRAY_SIZE(ev),
				   run_timeout_ms(k));

		for (int i = 0; i < n; i++) {
			enum keeper_event what = ev[i].data.u64 & 3;

			if (what == KEEPER_EV_CLIENT)
				client_said(k);
			else if (what == KEEPER_EV_CLIENT_PID)
				keeper_leave(k);
			else
				box_event(k, &ev[i]);
		}
		run_timers(k);
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
	int pidfd = sys_pidfd_open(client);

	if (pidfd < 0 || getppid() != client)
		return err_set(err, ESRCH, "the client is gone");
	k->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (k->epoll < 0 || add(k->epoll, KEEPER_SOCK, KEEPER_EV_CLIENT) < 0 ||
	    add(k->epoll, pidfd, KEEPER_EV_CLIENT_PID) < 0)
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

/* Refuses every run with the reason why there can be none. */
static void refuse(const struct err *why) __attribute__((noreturn));
static void refuse(const struct err *why)
{
	struct wire_head head;

	while (io_recv(KEEPER_SOCK, &head, sizeof(head), 0, NULL, NULL) ==
	       sizeof(head)) {
		struct wire_msg msg = { .type = WIRE_ENDED, .job = head.job };

		msg.outcome.err = *why;
		if (head.type == WIRE_RUN)
			(void)io_send(KEEPER_SOCK, &msg, sizeof(msg), NULL, 0);
	}
	_exit(0);
}

/*
 * What was ignored in the client would be ignored in every box. By system
 * call: the library keeps its own numbers 32 to 34 from us, and the client's
 * library may have left those ignored too.
 */
static void reset_signals(void)
{
	const struct {
		uint64_t handler, flags, restorer, mask;
	} standard = { 0 };

	for (int sig = 1; sig <= 64; sig++)
		(void)syscall(SYS_rt_sigaction, sig, &standard, NULL, 8);
	(void)signal(SIGPIPE, SIG_IGN);
}

int main(int argc, char **argv)
{
	struct keeper *k = &keeper;
	pid_t client = getppid();
	struct err err = { 0 };

	/* Not in the terminal's process group: Ctrl-C is the client's. */
	(void)setsid();
	(void)!chdir("/");
	reset_signals();
	(void)dup2(0, KEEPER_RESERVED);
	(void)fcntl(KEEPER_SOCK, F_SETFD, FD_CLOEXEC);
	(void)fcntl(KEEPER_RESERVED, F_SETFD, FD_CLOEXEC);
	k->record = NO_FD;
	k->is_reused = argc > 1 && strcmp(argv[1], "reused") == 0;
	make_id(k);
	if (watch_client(k, client, &err) < 0 ||
	    cg_tree_open(&k->cg, &err) < 0 ||
	    world_open(&k->world, &err) < 0) {
		(void)err_stage(&err, "keeper");
		refuse(&err);
	}
	keeper_moment("world");
	record_sweep(&k->world);
	if (record_open(k, &err) < 0) {
		(void)err_stage(&err, "record");
		refuse(&err);
	}
	keeper_moment("record");
	/* Nearly every run is as nobody; where not, it is only unused. */
	(void)box_spawn(k, (struct ids){ 65534, 65534, false }, &err);
	loop(k);
}
