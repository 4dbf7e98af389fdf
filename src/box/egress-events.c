/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a gate says: records for the ledger, denials for the result, questions
 * for people.
 *
 * A gate reads what a box wrote, so it is not believed: numbers are checked,
 * texts end where they must, and what a box can make it say has a ceiling.
 * Refusals are recorded one by one up to EGRESS_RECORDS, then counted; what
 * was let out always has its record, and where that cannot be written the
 * gate is ended. A box that makes more of those than AT_FIRST and then
 * EACH_SECOND waits: its gate is not listened to meanwhile, and lets nothing
 * more out that it could not tell. Else a box could fill the ledger's disk.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/util.h"
#include "box/approve.h"
#include "box/egress-parts.h"
#include "gate/reason.h"

#define EGRESS_RECORDS 4096
#define AT_FIRST       2000
#define EACH_SECOND    100
#define PAUSE_MS       50

/* Messages that are taken before something else has its turn. */
#define AT_ONCE 128

static const char *rule_said(const struct egress *e, int32_t rule)
{
	const struct gate_table *t = e->before ? e->before : e->table.table;

	if (rule >= 0 && (size_t)rule < e->said.n)
		return e->said.v[rule];
	if (!t || rule < 0 || (uint32_t)rule >= t->n_rules)
		return NULL;
	return gate_str(t, t->rules[rule].said);
}

static void name_target(const struct gate_event *ev, char *ret, size_t size)
{
	if (ev->port)
		(void)snprintf(ret, size, "%s:%u", ev->host, ev->port);
	else
		(void)snprintf(ret, size, "%s", ev->host);
}

/* It ended otherwise than by the will of the two who spoke. */
static bool is_cut(const struct gate_event *ev)
{
	return ev->reason != GATE_OK && ev->reason != GATE_R_RESET &&
	       ev->reason != GATE_R_LEFT;
}

/* At least a part of a request went out. */
static bool is_out(const struct gate_event *ev)
{
	return (ev->kind == GATE_E_REQUEST || ev->kind == GATE_E_SECRET) &&
	       ev->flags & GATE_EVENT_OUT;
}

/* What the ledger calls a denial: nothing went out, or a placeholder would. */
static bool is_refusal(const struct gate_event *ev)
{
	switch ((enum gate_event_kind)ev->kind) {
	case GATE_E_NAME:
	case GATE_E_DENIED:
	case GATE_E_SECRET:
		return true;
	case GATE_E_REQUEST:
		return is_cut(ev) && !is_out(ev);
	case GATE_E_CLOSE:
	case GATE_E_OPEN:
	case GATE_E_MORE:
	case GATE_EVENT_KINDS:
		break;
	}
	return false;
}

/* For the result, also what was cut off, each once. */
static bool is_denial(const struct gate_event *ev)
{
	bool is_end = ev->kind == GATE_E_REQUEST || ev->kind == GATE_E_CLOSE;

	if (is_end && ev->flags & GATE_EVENT_AGAIN)
		return false;
	return is_refusal(ev) || (is_end && is_cut(ev));
}

static void note(struct egress *e, const struct gate_event *ev)
{
	char what[GATE_HOST_MAX + 8];

	if (!is_denial(ev))
		return;
	name_target(ev, what, sizeof(what));
	result_add_denial(e->result, what, gate_reason_word(ev->reason),
			  gate_reason_text(ev->reason));
}

static void warn(struct egress *e, const char *text)
{
	(void)strv_add(&e->result->warnings, text);
}

/* Many of these are a number in the end. */
static bool may_be_counted(const struct gate_event *ev)
{
	return is_refusal(ev) && !is_out(ev);
}

/* Nothing goes out that is not on the record. */
static void record(struct egress *e, const struct gate_event *ev)
{
	struct record_connection c = {
		.run = e->result->id,
		.agent = e->of ? e->of->agent : NULL,
		.event = ev,
		.is_denied = is_refusal(ev),
		.rule = rule_said(e, ev->rule),
	};
	struct err err = { 0 };
	char text[600];

	if (ev->kind == GATE_E_OPEN)
		return;
	if (may_be_counted(ev) && e->n_denied >= EGRESS_RECORDS) {
		e->n_more++;
		return;
	}
	e->n_denied += may_be_counted(ev);
	if ((e->by.record ? e->by.record(e->by.arg, &c, &err)
			  : recorder_connection(e->recorder, &c, &err)) == 0)
		return;
	(void)snprintf(text, sizeof(text),
		       "the gate was closed: a connection could not be "
		       "recorded: %.400s",
		       err.text);
	warn(e, text);
	fd_close(&e->sock);
}

void egress_unrouted(struct egress *e, uint64_t n)
{
	const struct gate_event ev = { .head.type = GATE_EVENT,
				       .kind = GATE_E_DENIED,
				       .reason = GATE_R_ADDRESS,
				       .rule = -1,
				       .count = n,
				       .host = "address" };

	/* The result has it from the outcome itself. */
	if (e->is_open && n > 0)
		record(e, &ev);
}

/* pace */

static bool has_credit(struct egress *e)
{
	int64_t now = clock_us();
	int64_t most = AT_FIRST * 1000000LL;

	if (e->credit_at == 0)
		e->credit = most;
	else
		e->credit += (now - e->credit_at) * EACH_SECOND;
	e->credit = MIN(e->credit, most);
	e->credit_at = now;
	return e->credit >= 1000000;
}

static void listen_to_gate(struct egress *e, bool does)
{
	struct epoll_event ev = { .events = does ? EPOLLIN : 0,
				  .data.u32 = FROM_GATE };

	if (e->sock >= 0)
		(void)epoll_ctl(e->epoll, EPOLL_CTL_MOD, e->sock, &ev);
}

/* Without a timer it would never be listened to again: then it is ended. */
static void pause_gate(struct egress *e)
{
	const struct itimerspec t = { .it_value.tv_nsec = PAUSE_MS * 1000000L };

	if (e->pause < 0) {
		e->pause = timerfd_create(CLOCK_MONOTONIC,
					  TFD_CLOEXEC | TFD_NONBLOCK);
		if (e->pause < 0 || egress_watch(e, e->pause, FROM_PAUSE) < 0) {
			warn(e, "the gate was closed: no timer for it");
			fd_close(&e->sock);
			return;
		}
	}
	(void)timerfd_settime(e->pause, 0, &t, NULL);
	listen_to_gate(e, false);
}

void egress_listen(struct egress *e)
{
	if (e->pause >= 0)
		listen_to_gate(e, true);
}

static void pause_over(struct egress *e)
{
	uint64_t n;

	(void)!read(e->pause, &n, sizeof(n));
	listen_to_gate(e, true);
}

void egress_note_more(struct egress *e)
{
	char text[120];

	if (!e->n_more)
		return;
	(void)snprintf(text, sizeof(text),
		       "%llu more refusals of the gate are not recorded one "
		       "by one",
		       (unsigned long long)e->n_more);
	warn(e, text);
	e->n_more = 0;
}

/* questions */

static void answer(struct egress *e, uint32_t number, bool is_allowed)
{
	const struct gate_answer msg = { .head = { GATE_ANSWER, number },
					 .is_allowed = is_allowed };

	/* One that does not take it has denied by its own clock before. */
	if (e->sock >= 0)
		(void)io_send_now(e->sock, &msg, sizeof(msg), NULL, 0);
}

static void question_done(struct egress *e, struct egress_question *q)
{
	(void)epoll_ctl(e->epoll, EPOLL_CTL_DEL, approve_fd(q->approval), NULL);
	approve_free(q->approval);
	*q = (struct egress_question){ 0 };
}

static void who_is_asked(const struct egress *e, struct approve_request *req)
{
	const struct policy *p = e->policy;
	bool any = !p || !p->ask.is_stated;

	/* Where the program has the terminal, nobody else reads from it. */
	req->may_terminal = (any || policy_list_has(&p->ask, "terminal")) &&
			    !e->of->tty && !e->of->interactive;
	req->may_store = any || policy_list_has(&p->ask, "store");
	req->expire_ms = p ? p->expire_us / 1000 : 0;
}

static int put_question(struct egress *e, struct egress_question *q,
			const struct gate_event *ev, struct err *err)
{
	const char *said = rule_said(e, ev->rule);
	char target[GATE_HOST_MAX + 8];
	struct approve_request req = {
		.kind = "connection",
		.target = target,
		.agent = e->of->agent,
		.why = "the policy asks before this host is connected to",
		.rule = said ? said : "network.ask",
		.run = e->result->id,
		.cancel = NO_FD,
	};
	uint32_t at = (uint32_t)(q - e->questions);
	int r;

	name_target(ev, target, sizeof(target));
	who_is_asked(e, &req);
	if (approve_start(&req, &q->approval, err) < 0)
		return -err->code;
	q->number = ev->head.number;
	r = egress_watch(e, approve_fd(q->approval), at);
	if (r < 0) {
		approve_free(q->approval);
		*q = (struct egress_question){ 0 };
	}
	return r;
}

static void asked(struct egress *e, const struct gate_event *ev)
{
	struct err err = { 0 };
	char text[700];

	/* An adopted gate does not ask us, and takes no answer. */
	for (size_t i = 0; e->of && i < EGRESS_QUESTIONS; i++) {
		if (e->questions[i].approval)
			continue;
		if (put_question(e, &e->questions[i], ev, &err) == 0)
			return;
		(void)snprintf(text, sizeof(text),
			       "nobody could be asked about '%s': %.300s",
			       ev->host, err.text);
		warn(e, text);
		break;
	}
	if (e->of)
		answer(e, ev->head.number, false);
}

static void answered(struct egress *e, struct egress_question *q)
{
	struct approve_answer a = { 0 };
	struct err err = { 0 };
	int r = 0;

	if (!q->approval || approve_step(q->approval, &r, &a, &err) == 0)
		return;
	answer(e, q->number, r == 0 && a.is_allowed);
	question_done(e, q);
}

void egress_withdraw(struct egress *e)
{
	for (size_t i = 0; i < EGRESS_QUESTIONS; i++) {
		struct egress_question *q = &e->questions[i];

		if (!q->approval)
			continue;
		approve_withdraw(q->approval);
		question_done(e, q);
	}
}

/* what comes */

static void gone(struct egress *e)
{
	fd_close(&e->sock);
	if (!e->is_ending)
		warn(e, "the gate ended before the box; from then on no "
			"connection could be made");
	egress_note_more(e);
}

/* Texts end, and numbers are of what we know. */
static bool is_sound(struct gate_event *ev)
{
	ev->host[sizeof(ev->host) - 1] = '\0';
	ev->method[sizeof(ev->method) - 1] = '\0';
	ev->path[sizeof(ev->path) - 1] = '\0';
	ev->detail[sizeof(ev->detail) - 1] = '\0';
	return ev->kind < GATE_EVENT_KINDS && ev->reason < GATE_REASONS;
}

static void take_event(struct egress *e, struct gate_event *ev)
{
	char text[200];

	if (!is_sound(ev))
		return;
	if (ev->head.type == GATE_FAILED) {
		(void)snprintf(text, sizeof(text),
			       "the gate cannot work, and no connection is "
			       "made: %s",
			       ev->detail);
		warn(e, text);
	} else if (ev->head.type == GATE_ASKED) {
		asked(e, ev);
	} else if (ev->head.type == GATE_EVENT && ev->kind == GATE_E_MORE) {
		e->n_more += ev->count;
	} else if (ev->head.type == GATE_EVENT) {
		note(e, ev);
		record(e, ev);
		if (!may_be_counted(ev))
			e->credit -= 1000000;
	}
}

static void taken(struct egress *e, uint32_t number)
{
	e->has_begun = true;
	if (number != e->n_tables)
		return;
	free(e->before);
	e->before = NULL;
}

void egress_hear(struct egress *e)
{
	/* A box can keep its gate talking; the run has more to do than that. */
	for (int left = AT_ONCE; left > 0 && e->sock >= 0; left--) {
		union gate_message msg;
		int fds[IO_MAX_FDS];
		int n_fds = 0;
		ssize_t n;

		/* Its last words are as many as fit into the socket. */
		if (!e->is_ending && !has_credit(e)) {
			pause_gate(e);
			return;
		}
		n = io_recv(e->sock, &msg, sizeof(msg), MSG_DONTWAIT, fds,
			    &n_fds);

		for (int i = 0; i < n_fds; i++)
			(void)close(fds[i]);
		if (n == -EAGAIN)
			return;
		if (n <= 0)
			gone(e);
		else if (n == sizeof(msg.event))
			take_event(e, &msg.event);
		else if (n == sizeof(msg.head) && msg.head.type == GATE_TAKEN)
			taken(e, msg.head.number);
	}
}

void egress_step(struct egress *e)
{
	struct epoll_event ev[FROM_BOX + 1];
	int n = epoll_wait(e->epoll, ev, ARRAY_SIZE(ev), 0);

	for (int i = 0; i < n; i++) {
		if (ev[i].data.u32 == FROM_BOX)
			egress_start_late(e);
		else if (ev[i].data.u32 == FROM_PAUSE)
			pause_over(e);
		else if (ev[i].data.u32 == FROM_GATE)
			egress_hear(e);
		else if (ev[i].data.u32 < EGRESS_QUESTIONS)
			answered(e, &e->questions[ev[i].data.u32]);
	}
}
