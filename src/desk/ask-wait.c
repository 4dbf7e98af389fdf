/* SPDX-License-Identifier: Apache-2.0 */

/* Waiting for an answer: the row, the terminal, signals, the clock; see ask.c.
 */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "desk/ask.h"
#include "desk/desk.h"

#define LOOK_MS 500 /* the longest pause between looks at the row */

int asking_look(struct asking *a, struct err *err)
{
	entry_done(&a->entry);
	return store_get(&a->store, a->id, &a->entry, err);
}

/* Whether somebody is left to read our answer. */
static bool has_reader(void)
{
	struct pollfd out = { .fd = 1 };

	return poll(&out, 1, 0) <= 0 || !(out.revents & (POLLERR | POLLNVAL));
}

/* The row has been decided: -1 if not, else the status. */
static int decided(struct asking *a, struct err *err)
{
	struct entry *e = &a->entry;
	int r;

	switch (e->state) {
	case ENTRY_WAITING:
		return -1;
	case ENTRY_EXPIRED:
		return asking_deny(a, "nobody answered in time");
	case ENTRY_DENIED:
		if (!*e->reason) {
			free(e->reason);
			e->reason = strdup("denied");
		}
		return e->reason ? asking_conclude(a, e) : EXIT_OURS;
	case ENTRY_WITHDRAWN:
		return asking_deny(a, *e->reason ? e->reason : "withdrawn");
	case ENTRY_ALLOWED:
		break;
	}
	if (!has_reader())
		return EXIT_OURS;
	r = store_take(&a->store, a->id, err);
	if (r == -EALREADY || r == -ETIME)
		return asking_deny(a, err->text);
	if (r < 0)
		return asking_fail(a, err);
	return asking_conclude(a, e);
}

static int expire(struct asking *a, struct err *err)
{
	int r = store_expire(&a->store, a->id, err);

	if (r < 0 && r != -EALREADY)
		return asking_fail(a, err);
	r = asking_look(a, err);
	if (r < 0)
		return asking_fail(a, err);
	r = decided(a, err);
	return r >= 0 ? r : asking_deny(a, "nobody answered in time");
}

/* the terminal */

static void show_question(struct asking *a, size_t max)
{
	struct err err = { 0 };
	struct buf text;
	bool has_session = *a->entry.session != '\0';

	buf_init(&text, SHOW_MAX);
	buf_puts(&text, "\ncordon: this needs your answer\n");
	if (approvals_describe(&a->entry, max, &text, &err) < 0 || text.error) {
		say("the request cannot be shown: %s", err.text);
		terminal_close(&a->terminal);
	} else {
		(void)terminal_ask(&a->terminal, text.data, text.len,
				   has_session);
	}
	buf_done(&text);
}

/* Gives the answer that was typed; 0, or the request is asked again. */
static void reply_with(struct asking *a, bool allow, enum scope scope)
{
	char by[160];
	struct store_answer answer = { .is_allowed = allow,
				       .scope = scope,
				       .reason = a->terminal.reason,
				       .by = by };
	bool has_session = *a->entry.session != '\0';
	struct entry now = { 0 };
	struct err err = { 0 };
	int r;

	(void)snprintf(by, sizeof(by), "%s on %s", a->asker.user,
		       a->terminal.name);
	r = approvals_answer(&a->store, a->id, &answer, NULL, &now, &err);
	entry_done(&now);
	/* Another's answer or the end of its time is seen in the row. */
	if (r < 0 && r != -EALREADY && r != -ETIME)
		terminal_prompt(&a->terminal, err.text, has_session);
}

static void on_reply(struct asking *a)
{
	switch (terminal_read(&a->terminal)) {
	case REPLY_NONE:
		break;
	case REPLY_ONCE:
		reply_with(a, true, SCOPE_ONCE);
		break;
	case REPLY_SESSION:
		reply_with(a, true, SCOPE_SESSION);
		break;
	case REPLY_ALWAYS:
		reply_with(a, true, SCOPE_ALWAYS);
		break;
	case REPLY_DENY:
		reply_with(a, false, SCOPE_ONCE);
		break;
	case REPLY_VIEW:
		show_question(a, REQUEST_MAX);
		break;
	case REPLY_GONE:
		terminal_close(&a->terminal);
		break;
	}
}

/* the loop */

/*
 * A person's interrupt is an answer. An end of the process is none: the
 * request waits on, and `ask --resume` takes it up.
 */
static int withdraw(struct asking *a, const char *why)
{
	struct entry gone = { .state = ENTRY_WITHDRAWN,
			      .reason = (char *)why,
			      .by = a->asker.user };
	struct entry now = { 0 };
	struct err err = { 0 };

	if (approvals_withdraw(&a->store, a->id, why, a->asker.user, &now,
			       &err) < 0)
		say("%s", err.text);
	entry_done(&now);
	(void)strcpy(gone.id, a->id);
	(void)strcpy(gone.content, a->content);
	return asking_conclude(a, &gone);
}

static int on_signal(struct asking *a)
{
	struct signalfd_siginfo info;
	char reason[160];

	if (read(a->signals, &info, sizeof(info)) != sizeof(info))
		return -1;
	if (info.ssi_signo == SIGINT || info.ssi_signo == SIGQUIT)
		return withdraw(a, a->is_peer ? "withdrawn: who asked has left"
					      : "interrupted");
	(void)snprintf(reason, sizeof(reason),
		       "the asking was ended by a signal; request %s still "
		       "waits",
		       a->id);
	/* Not an answer, and so not recorded as one. */
	(void)asking_tell(a->id, false, "once", reason, "cordon");
	return a->is_peer ? EXIT_WAITS : EXIT_DENIED;
}

/*
 * The store is written before what was written can be seen (the WAL's index
 * comes last), so after an event it is looked at soon, then ever more rarely.
 */
static void pace(struct asking *a, bool has_event)
{
	char events[4096];

	while (has_event && read(a->watch, events, sizeof(events)) > 0)
		;
	a->pause = has_event ? ASK_SOON_MS : MIN(a->pause * 2, LOOK_MS);
}

/* Until something happens; -1, or the status with which it ends. */
static int wait_for_it(struct asking *a)
{
	struct pollfd fds[] = {
		{ .fd = a->signals, .events = POLLIN },
		{ .fd = a->watch, .events = POLLIN },
		{ .fd = a->terminal.is_asking ? a->terminal.fd : -1,
		  .events = POLLIN },
		{ .fd = 1 },
	};
	int64_t left = (a->deadline - clock_us()) / 1000 + 1;
	int timeout = (int)MAX(0, MIN(left, a->pause));

	if (poll(fds, ARRAY_SIZE(fds), timeout) < 0)
		return -1;
	if (fds[0].revents)
		return on_signal(a);
	if (fds[3].revents & (POLLERR | POLLNVAL)) {
		if (a->is_peer)
			(void)withdraw(a, "withdrawn: who asked has left");
		return EXIT_OURS; /* nobody listens; it can be resumed */
	}
	pace(a, fds[1].revents != 0);
	if (a->terminal.is_asking && fds[2].revents)
		on_reply(a);
	return -1;
}

static void tell_waiting(struct asking *a)
{
	char left[32];

	if (a->is_told || a->terminal.fd >= 0)
		return;
	a->is_told = true;
	approvals_age(a->entry.expires - store_now(), left);
	say("waits for an answer: cordon approvals show %s (%s left)", a->id,
	    left);
}

/* It is there to be answered; who asked comes again with its id. */
static int leave(struct asking *a)
{
	struct pollfd signals = { .fd = a->signals, .events = POLLIN };
	struct err ignored = { 0 };
	int status = poll(&signals, 1, 0) > 0 ? on_signal(a) : -1;

	if (status >= 0)
		return status;
	if (!a->request.may_store) {
		(void)store_expire(&a->store, a->id, &ignored);
		return asking_deny(a, "the policy asks on a terminal alone, "
				      "and nobody waits at one");
	}
	(void)asking_tell(a->id, false, "once", "nobody has answered yet",
			  "cordon");
	return EXIT_WAITS;
}

int asking_wait(struct asking *a)
{
	struct err err = { 0 };
	int status;

	for (;;) {
		if (asking_look(a, &err) < 0)
			return asking_fail(a, &err);
		status = decided(a, &err);
		if (status >= 0)
			return status;
		if (clock_us() >= a->deadline ||
		    entry_is_over(&a->entry, store_now()))
			return expire(a, &err);
		if (a->suspends)
			return leave(a);
		if (a->terminal.fd >= 0 && !a->terminal.is_asking)
			show_question(a, SHOW_TEXT);
		if (a->terminal.fd < 0 && !a->request.may_store) {
			(void)store_expire(&a->store, a->id, &err);
			return asking_deny(
				a, "there is no terminal to ask on, and "
				   "the policy asks nowhere else");
		}
		tell_waiting(a);
		status = wait_for_it(a);
		if (status >= 0)
			return status;
	}
}
