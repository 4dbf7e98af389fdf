/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/gate-ask.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/io.h"
#include "base/say.h"
#include "base/util.h"
#include "box/approve.h"
#include "box/egress.h"
#include "policy/network.h"

#define MAX_REQUEST (64U << 10)
#define MAX_ANSWER  32768

/* ---- what is asked ---- */

/* One that does not take it denies by its own clock. */
static void answer(const struct gate_child *g, uint32_t number, bool is_allowed)
{
	const struct gate_answer msg = { .head = { GATE_ANSWER, number },
					 .is_allowed = is_allowed };

	if (g->sock >= 0)
		(void)io_send_now(g->sock, &msg, sizeof(msg), NULL, 0);
}

/* HOST:PORT of one host: no pattern, and no block of addresses. */
static int name_target(const struct gate_ask *ask, char *ret, size_t size)
{
	const char *host = ask->host;
	int n;

	if (strnlen(host, sizeof(ask->host)) == sizeof(ask->host) || !host[0] ||
	    strpbrk(host, "*/[]") || ask->port == 0 || ask->port > 65535)
		return -EINVAL;
	n = snprintf(ret, size, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host,
		     ask->port);
	return n < 0 || (size_t)n >= size ? -EINVAL : 0;
}

/* The rule that asks, of the policy in force; NULL: none does. */
static const struct policy_host *find_rule(const struct policy *p,
					   const char *target)
{
	struct network_judgement j;

	network_judge(p, target, &j);
	return j.decision == DECISION_ASK ? j.rule : NULL;
}

static int write_document(const struct policy *p, const struct gate_child *g,
			  const struct policy_host *rule, const char *target,
			  struct err *err)
{
	char at[300];
	const struct approve_request req = {
		.kind = "connection",
		.target = target,
		.why = "the policy asks before this host is connected to",
		.rule = at,
		.run = g->run,
		.box = g->box[0] ? g->box : NULL,
		.face = g->face,
		.expire_ms = p->expire_us / 1000,
		/* The desk has none, and says so where it is all there is. */
		.may_terminal = true,
		.may_store = !p->ask.is_stated ||
			     policy_list_has(&p->ask, "store"),
		.cancel = NO_FD,
	};
	struct buf doc;
	int fd;

	(void)snprintf(at, sizeof(at), "%s:%u", rule->at.file, rule->at.line);
	buf_init(&doc, MAX_REQUEST);
	approve_format(&req, &doc);
	fd = doc.error ? err_set(err, ENOMEM, "out of memory")
		       : doc_seal(&doc, err);
	buf_done(&doc);
	if (fd >= 0 && lseek(fd, 0, SEEK_SET) < 0) {
		fd_close(&fd);
		return err_errno(err, errno, "write a question");
	}
	return fd;
}

/* ---- asking ---- */

static struct question *find_place(struct daemon *d, const struct gate_child *g)
{
	int of_gate = 0;

	for (int i = 0; i < ALL_QUESTIONS; i++)
		of_gate += d->questions[i].pid > 0 &&
			   d->questions[i].of.gate == g;
	return of_gate < GATE_QUESTIONS_ONE
		       ? question_place(d, g->uid, true, GATE_QUESTIONS_PEER)
		       : NULL;
}

static int open_question(struct daemon *d, struct gate_child *g,
			 const struct policy *p, const struct policy_host *rule,
			 const struct question_gate *of, struct err *err)
{
	struct question *q = find_place(d, g);
	_cleanup_fd_ int text = NO_FD;
	_cleanup_fd_ int said = NO_FD;

	if (d->is_stopping)
		return err_set(err, EAGAIN, "the daemon is stopping");
	if (!q)
		return err_set(err, EAGAIN,
			       "too many connections of this box, of this "
			       "user, or of all, wait for a person's answer");
	text = write_document(p, g, rule, of->target, err);
	if (text < 0)
		return -err->code;
	said = memfd_create("answer", MFD_CLOEXEC);
	if (said < 0)
		return err_errno(err, errno, "hold an answer");
	*q = (struct question){ .is_gates = true,
				.of = *of,
				.uid = g->uid,
				.pidfd = NO_FD,
				.deadline = question_deadline(d) };
	if (question_start(d, q, g->pid, (const int[]){ text, said }) < 0) {
		*q = (struct question){ .pidfd = NO_FD, .of.said = NO_FD };
		return err_set(err, EAGAIN, "no process to ask a person with");
	}
	q->of.said = take_fd(&said);
	return 0;
}

static int put_question(struct daemon *d, struct gate_child *g,
			const struct gate_ask *ask, struct err *err)
{
	struct question_gate of = { .gate = g,
				    .number = ask->head.number,
				    .said = NO_FD };
	const struct policy_host *rule = NULL;
	const struct policy *p = NULL;

	if (rules_find(d, g->policy, &p, err) < 0)
		return -err->code;
	if (g->uid == (uid_t)-1)
		return err_set(err, EPERM, "nobody knows whose box it is");
	if (name_target(ask, of.target, sizeof(of.target)) == 0)
		rule = find_rule(p, of.target);
	if (!rule)
		return err_set(err, EPERM,
			       "the policy in force does not ask about it");
	return open_question(d, g, p, rule, &of, err);
}

int gate_ask_hear(struct daemon *d, struct gate_child *g)
{
	struct err err = { 0 };
	struct gate_ask ask;
	int fds[IO_MAX_FDS];
	int n = 0;
	ssize_t len = io_recv(g->sock, &ask, sizeof(ask), MSG_DONTWAIT, fds,
			      &n);

	for (int i = 0; i < n; i++)
		fd_close(&fds[i]);
	if (len == -EAGAIN || len == -EINTR)
		return -EAGAIN;
	if (len == 0 || len == -ECONNRESET)
		return -EPIPE;
	if (len != sizeof(ask) || ask.head.type != GATE_ASKED ||
	    ask.head.number <= g->n_asked ||
	    ask.head.number > GATE_MAX_QUESTIONS)
		return -EPROTO;
	g->n_asked = ask.head.number;
	if (put_question(d, g, &ask, &err) < 0) {
		say("box %.12s: a connection is denied, since nobody can be "
		    "asked: %s",
		    g->box, err.text);
		answer(g, ask.head.number, false);
	}
	return 0;
}

/* ---- the answer ---- */

/* Whatever is too long is remembered, and not understood. */
static void read_said(int fd, struct buf *ret)
{
	char chunk[4096];
	ssize_t n;

	while ((n = pread(fd, chunk, sizeof(chunk), (off_t)ret->len)) > 0)
		if (buf_add(ret, chunk, (size_t)n) < 0)
			break;
}

void gate_ask_over(struct question *q, int status)
{
	struct approve_answer a = { 0 };
	struct err err = { 0 };
	struct buf said;
	int r;

	if (!q->of.gate)
		return;
	buf_init(&said, MAX_ANSWER);
	read_said(q->of.said, &said);
	r = approve_understand(&said, status, &a, &err);
	buf_done(&said);
	if (r < 0 && !q->why)
		say("box %.12s: nobody answered about %s: %s", q->of.gate->box,
		    q->of.target, err.text);
	answer(q->of.gate, q->of.number, r == 0 && a.is_allowed && !q->why);
}

void gate_ask_drop(struct daemon *d, const struct gate_child *g)
{
	for (int i = 0; i < ALL_QUESTIONS; i++)
		if (d->questions[i].pid > 0 && d->questions[i].of.gate == g)
			question_drop(&d->questions[i]);
}

void gate_ask_again(struct daemon *d)
{
	for (int i = 0; i < ALL_QUESTIONS; i++) {
		struct question *q = &d->questions[i];
		const struct policy *p = NULL;
		struct err gone = { 0 };

		if (q->pid <= 0 || !q->is_gates)
			continue;
		if (q->of.gate)
			(void)rules_find(d, q->of.gate->policy, &p, &gone);
		if (!p || !find_rule(p, q->of.target))
			question_end(q, "the policy was read again, and does "
					"not ask about it");
	}
}
