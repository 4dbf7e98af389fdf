/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The parent's loop.
 *
 * Theory of operation. The parent does nothing that a client could hold up or
 * make it understand wrongly: it moves fixed messages between the front and
 * children that live for one order, watches who dies, and listens to signals.
 * If one of keeper, clerk and front dies, the other two are ended, nothing of
 * them is left, and all are started again. Meanwhile the sockets stay, so that
 * clients wait.
 */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/num.h"
#include "base/say.h"
#include "base/util.h"
#include "box/root-host.h"
#include "os/slice.h"
#include "serve/daemon.h"
#include "serve/gate-ask.h"

#define DRAIN_US  15000000
#define MINUTE_US 60000000

static struct daemon daemon_;

/* ---- signals ---- */

static void reload(struct daemon *d)
{
	struct err err = { 0 };
	char text[80];

	(void)snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%lld",
		       (long long)clock_us());
	notify(text);
	if (rules_load(d, &err) < 0) {
		say("the policy stays as it was: %s", err.text);
	} else {
		errand_drop_spare(d);
		if (d->front >= 0)
			(void)rules_tell(d);
		questions_end(d, "the policy was read again; ask once more");
		gate_ask_again(d);
		rules_say(d);
	}
	notify("READY=1");
}

static void stop(struct daemon *d)
{
	const struct order o = { .type = ORDER_DRAIN };

	if (d->n_signals++ > 0) {
		say("stopping at once");
		d->is_drained = true;
		return;
	}
	notify("STOPPING=1");
	say("stopping");
	d->is_stopping = true;
	d->stop_at = clock_us() + DRAIN_US;
	if (!d->is_ready || io_send(d->front, &o, sizeof(o), NULL, 0) < 0)
		d->is_drained = true;
}

static void on_signal(struct daemon *d)
{
	struct signalfd_siginfo info;

	while (read(d->signals, &info, sizeof(info)) == sizeof(info))
		if (info.ssi_signo == SIGHUP)
			reload(d);
		else
			stop(d);
}

static int open_signals(struct err *err)
{
	sigset_t set;
	int fd;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGHUP);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? err_errno(err, errno, "listen to signals") : fd;
}

/* ---- orders ---- */

static void on_ready(struct daemon *d)
{
	char text[200];

	d->is_ready = true;
	say("ready: %s%s%s", d->own.path, d->docker.fd >= 0 ? ", docker " : "",
	    d->docker.fd >= 0 ? d->docker.path : "");
	(void)snprintf(text, sizeof(text), "READY=1\nSTATUS=serving %s",
		       d->own.path);
	if (!d->is_stopping)
		notify(text);
	d->was_ready = true;
}

/* False: it does not keep to the form. */
static bool on_order(struct daemon *d, const struct order *o, int *fds, int n)
{
	switch (o->type) {
	case ORDER_PREPARE:
	case ORDER_SWEEP:
		errand_prepare(d, o, fds, n);
		return true;
	case ORDER_IMAGE:
		errand_image(d, o, fds, n);
		return true;
	case ORDER_READY:
	case ORDER_DRAINED:
	case ORDER_CANCEL:
	case ORDER_GATE_END:
		if (o->type == ORDER_CANCEL)
			errand_cancel(d, o->number);
		else if (o->type == ORDER_GATE_END)
			gate_end(d, o->number);
		else if (o->type == ORDER_READY)
			on_ready(d);
		else if (d->is_stopping)
			d->is_drained = true;
		break;
	default:
		break;
	}
	for (int i = 0; i < n; i++)
		fd_close(&fds[i]);
	return o->type == ORDER_READY || o->type == ORDER_DRAINED ||
	       o->type == ORDER_CANCEL || o->type == ORDER_GATE_END;
}

/* What waits, up to a number: signals and deaths have their turn as well. */
static bool on_front(struct daemon *d)
{
	for (int i = 0; i < 16; i++) {
		struct order o;
		int fds[IO_MAX_FDS];
		int n = 0;
		ssize_t len = io_recv(d->front, &o, sizeof(o), MSG_DONTWAIT,
				      fds, &n);

		if (len == -EAGAIN)
			return true;
		if (len == sizeof(o) && on_order(d, &o, fds, n))
			continue;
		if (len > 0 && len != sizeof(o))
			for (int k = 0; k < n; k++)
				fd_close(&fds[k]);
		if (len != 0)
			say("the front does not keep to the form, and is "
			    "ended");
		return false;
	}
	return true;
}

/* ---- the loop ---- */

enum { POLL_SIGNALS, POLL_FRONT, POLL_LEDGER, POLL_GATES, POLL_PARTS };
#define POLL_ERRANDS (POLL_PARTS + PARTS)
#define POLL_ASKED   (POLL_ERRANDS + 2 * MAX_ERRANDS)
#define POLL_MAX     (POLL_ASKED + ALL_QUESTIONS)

static void fill(const struct daemon *d, struct pollfd *fds)
{
	for (int i = 0; i < POLL_MAX; i++)
		fds[i] = (struct pollfd){ .fd = -1, .events = POLLIN };
	fds[POLL_SIGNALS].fd = d->signals;
	fds[POLL_FRONT].fd = d->front;
	fds[POLL_LEDGER].fd = d->ledger;
	fds[POLL_GATES].fd = d->gate_events;
	for (int i = 0; i < PARTS; i++)
		fds[POLL_PARTS + i].fd = d->parts[i].pidfd;
	for (int i = 0; i < MAX_ERRANDS; i++)
		if (d->errands[i].kind != ERRAND_NONE) {
			fds[POLL_ERRANDS + 2 * i].fd = d->errands[i].pidfd;
			fds[POLL_ERRANDS + 2 * i + 1].fd = d->errands[i].sock;
		}
	for (int i = 0; i < ALL_QUESTIONS; i++)
		if (d->questions[i].pid > 0)
			fds[POLL_ASKED + i].fd = d->questions[i].pidfd;
}

static int timeout_ms(const struct daemon *d)
{
	int64_t next = MIN(errand_next(d), questions_next(d));
	int64_t now = clock_us();

	if (d->is_stopping)
		next = MIN(next, d->stop_at);
	if (next == INT64_MAX)
		return -1;
	return next <= now ? 0 : (int)MIN((next - now) / 1000 + 1, 3600000);
}

static void on_ledger(struct daemon *d)
{
	char byte;

	while (recv(d->ledger, &byte, 1, MSG_DONTWAIT) == 1)
		errand_seal(d);
}

/* Children of one order: what they say, how they end, who is late. */
static void look_at_errands(struct daemon *d, const struct pollfd *fds)
{
	for (int i = 0; i < MAX_ERRANDS; i++)
		if (fds[POLL_ERRANDS + 2 * i].revents ||
		    fds[POLL_ERRANDS + 2 * i + 1].revents)
			errand_look(d, &d->errands[i]);
	for (int i = 0; i < ALL_QUESTIONS; i++)
		if (fds[POLL_ASKED + i].revents)
			question_look(d, &d->questions[i]);
	errand_late(d, clock_us());
	questions_late(d, clock_us());
	parts_reap(d);
}

/* Until one of the three is gone (which), or there is nothing to do: PARTS. */
static int work(struct daemon *d)
{
	struct pollfd fds[POLL_MAX];

	while (!d->is_drained) {
		fill(d, fds);
		if (poll(fds, POLL_MAX, timeout_ms(d)) < 0)
			continue;
		if (fds[POLL_SIGNALS].revents)
			on_signal(d);
		for (int i = 0; i < PARTS; i++)
			if (fds[POLL_PARTS + i].revents)
				return i;
		if (fds[POLL_LEDGER].revents)
			on_ledger(d);
		if (fds[POLL_GATES].revents)
			gates_look(d);
		look_at_errands(d, fds);
		if (fds[POLL_FRONT].revents && !on_front(d))
			return PART_FRONT;
		if (d->is_stopping && clock_us() >= d->stop_at) {
			say("boxes did not end in time; they are ended now");
			return PARTS;
		}
	}
	return PARTS;
}

/*
 * Counts a restart and waits, the longer the more there were: nothing at first,
 * then 0.1 s and up. False: too many in a minute, or we are to stop.
 */
static bool may_restart(struct daemon *d)
{
	const size_t most = ARRAY_SIZE(d->restarts);
	struct pollfd p = { .fd = d->signals, .events = POLLIN };
	int64_t now = clock_us();
	size_t n = 0;

	for (size_t i = 0; i < most; i++)
		n += d->restarts[i] && now - d->restarts[i] < MINUTE_US;
	if (n == most) {
		say("%zu restarts in a minute: giving up", n);
		return false;
	}
	memmove(d->restarts + 1, d->restarts,
		(most - 1) * sizeof(d->restarts[0]));
	d->restarts[0] = now;
	while (n > 0 && !d->is_stopping) {
		int64_t left = now + (MIN(50000LL << n, 5000000LL)) -
			       clock_us();

		if (left <= 0)
			break;
		if (poll(&p, 1, (int)(left / 1000) + 1) > 0)
			on_signal(d);
	}
	return !d->is_stopping;
}

/* 0: told to stop; else it cannot go on. */
static int run(struct daemon *d)
{
	root_keep_cpus(); /* for the preparers */
	for (;;) {
		struct err err = { 0 };
		char dead[160] = "";

		if (parts_start(d, &err) < 0) {
			say("%s", err.text);
			if (!d->was_ready)
				return 1;
		} else {
			int gone = work(d);

			if (gone < PARTS && !d->is_stopping)
				parts_dead(d, gone, dead, sizeof(dead));
			parts_stop(d);
		}
		if (d->is_stopping)
			return 0;
		if (dead[0])
			say("%s; all is started again", dead);
		if (!may_restart(d))
			return d->is_stopping ? 0 : 1;
	}
}

static int open_all(struct daemon *d, struct err *err)
{
	d->signals = open_signals(err);
	if (d->signals < 0 || state_take(d, err) < 0 ||
	    sweep_key_load(d->state_fd, d->sweep_key, err) < 0 ||
	    rules_load(d, err) < 0)
		return -err->code;
	rules_say(d);
	return listeners_open(d->o, &d->own, &d->docker, err);
}

int serve(const struct serve_options *o)
{
	struct daemon *d = &daemon_;
	struct err err = { 0 };
	int code = 1;

	d->o = o;
	/* It was checked; without a value the usual time holds. */
	if (o->ask_wait)
		(void)num_parse_duration(o->ask_wait, &d->ask_wait_us);
	d->is_root = geteuid() == 0;
	d->own.fd = d->docker.fd = NO_FD;
	d->state_fd = d->lock = d->front_dir = NO_FD;
	d->front = d->ledger = d->gate_events = NO_FD;
	for (int i = 0; i < PARTS; i++)
		d->parts[i].pidfd = NO_FD;
	d->spare_at = INT64_MAX;
	(void)umask(077);
	slice_short(); /* and all parts */
	if (open_all(d, &err) < 0)
		say("%s", err.text);
	else
		code = run(d);
	listener_close(&d->own);
	listener_close(&d->docker);
	if (code == 0)
		say("stopped");
	return code;
}
