/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/conn.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/util.h"
#include "gate/desk.h"
#include "gate/events.h"
#include "gate/listen.h"
#include "gate/questions.h"
#include "gate/refuse.h"
#include "gate/usage.h"

/* So much is taken from who is refused; one that sends on is not waited for. */
#define REST_ROUNDS 16

/* Connections with all the buffers that they can get, and those of others. */
#define ROOMY        8
#define SMALL_BUFFER (64 << 10)

struct conns {
	uint32_t number; /* of the last one */
	size_t n_used;   /* places above this one never were */
	struct conn all[GATE_MAX_CONNS];
};

struct conns *conns_new(void)
{
	return calloc(1, sizeof(struct conns));
}

static bool is_named(const struct conn *c, int rule)
{
	const struct gate_table *t = c->gate->table;

	return c->is_address ? gate_rule_has(t, rule, c->address, c->port)
			     : gate_rule_names(t, rule, c->host, c->port);
}

/* Any rule for this host that wants it: each of two may have a secret. */
static bool is_inspected(const struct conn *c, int rule)
{
	const struct gate_table *t = c->gate->table;

	if (t->rules[rule].flags & GATE_RULE_INSPECT)
		return true;
	for (int i = 0; i < (int)t->n_rules; i++)
		if (t->rules[i].flags & GATE_RULE_INSPECT &&
		    !(t->rules[i].flags & GATE_RULE_ASK) && is_named(c, i))
			return true;
	return false;
}

bool conn_must_inspect(const struct conn *c)
{
	return is_inspected(c, c->rule);
}

static void release(struct conn *c)
{
	free(c->early);
	hellos_done(&c->hellos);
	memset(c, 0, sizeof(*c));
}

static void on_handle_closed(uv_handle_t *h)
{
	struct conn *c = h->data;

	if (--c->n_handles == 0 && c->state == CONN_OVER)
		release(c);
}

static void drop_handle(struct conn *c, uv_handle_t *h)
{
	if (h->data == c && !uv_is_closing(h))
		uv_close(h, on_handle_closed);
}

bool conn_watch(struct conn *c, uv_poll_t *poll, int fd)
{
	if (uv_poll_init(&c->gate->loop, poll, fd) < 0)
		return false;
	poll->data = c;
	c->n_handles++;
	return true;
}

void conn_unwatch(struct conn *c, uv_poll_t *poll)
{
	drop_handle(c, (uv_handle_t *)poll);
}

void conn_timer(struct conn *c, uv_timer_cb cb, uint64_t ms)
{
	uv_update_time(&c->gate->loop);
	(void)uv_timer_start(&c->timer, cb, ms, 0);
}

void conn_event(const struct conn *c, enum gate_event_kind kind,
		enum gate_reason reason, struct gate_event *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->head.number = c->number;
	ret->kind = (uint8_t)kind;
	ret->reason = (uint8_t)reason;
	ret->port = c->port;
	ret->rule = c->rule;
	ret->sent = c->sent;
	ret->received = c->received;
	ret->us = (uint64_t)(clock_us() - c->since);
	memcpy(ret->address, c->address, sizeof(ret->address));
	memcpy(ret->host, c->host, sizeof(ret->host));
	memcpy(ret->detail, c->detail, sizeof(ret->detail));
}

/* Without this the box would take a refusal for an ordinary end. */
static void break_off(int *fd)
{
	const struct linger now = { .l_onoff = 1, .l_linger = 0 };

	if (*fd >= 0)
		(void)setsockopt(*fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	fd_close(fd);
}

static bool is_living(const struct conn *c)
{
	return c->state != CONN_FREE && c->state != CONN_OVER;
}

/*
 * Each one has been told: nothing is left to do. The client hears it now, and
 * not when the kernel has taken this process apart.
 */
static void exit_if_last(const struct gate *g)
{
	for (size_t i = 0; i < g->conns->n_used; i++)
		if (is_living(&g->conns->all[i]))
			return;
	(void)shutdown(g->client, SHUT_RDWR);
	_exit(0);
}

static void tell_over(struct conn *c, enum gate_reason reason)
{
	/* One that left before it was let through was not refused. */
	bool has_left = !c->is_open &&
			(reason == GATE_OK || reason == GATE_R_RESET);
	bool is_closed = c->is_open || has_left;
	struct gate_event e;

	conn_event(c, is_closed ? GATE_E_CLOSE : GATE_E_DENIED,
		   has_left ? GATE_R_LEFT : reason, &e);
	e.flags = c->is_told ? GATE_EVENT_AGAIN : 0;
	events_send(c->gate, &e);
	if (!is_closed)
		listen_pause(c->gate, events_denial_pause(c->gate));
}

/* What can be read of a request that is refused is of use to people. */
static void read_refused(const struct conn *c, const char *data, size_t len,
			 struct refusal *r)
{
	static char text[GATE_HOST_MAX + sizeof(c->detail) + 64];
	static struct http_head h;
	int whole = http_read_request(data, len, &h);

	r->method = h.method;
	r->path = h.path;
	r->is_bare = http_is(&h.method, "HEAD");
	if (r->reason == GATE_R_HTTP_HOST && c->detail[0]) {
		(void)snprintf(text, sizeof(text),
			       "the request is for '%s', and its connection "
			       "was made for '%s:%u'",
			       c->detail, c->host, (unsigned int)c->port);
		r->detail = text;
	} else if (r->reason == GATE_R_HTTP && whole < 0) {
		r->detail = h.wrong;
	} else if (r->reason == GATE_R_HTTP && whole == 1) {
		r->detail = "no Host, two of them, or another one in the "
			    "target";
	}
}

static unsigned int status_of(enum gate_reason reason)
{
	switch (reason) {
	case GATE_R_HTTP:
		return 400;
	case GATE_R_RESOLVE:
	case GATE_R_UNREACHABLE:
		return 502;
	default:
		return 403;
	}
}

/*
 * Who speaks plain HTTP and was let through to nobody can be told so in words.
 * What came is taken first: unread bytes would make the close a reset, which
 * overtakes the answer.
 */
static void answer_refusal(struct conn *c, enum gate_reason reason)
{
	struct refusal r = { .status = status_of(reason),
			     .reason = reason,
			     .table = c->gate->table,
			     .rule = c->rule,
			     .host = c->host,
			     .port = c->port,
			     .detail = c->detail[0] ? c->detail : NULL,
			     .is_last = true };
	static char first[PEEK_MAX];
	static char rest[PEEK_MAX];
	ssize_t n = recv(c->box, first, sizeof(first), MSG_DONTWAIT);
	struct buf out;

	if (n > 0)
		read_refused(c, first, (size_t)n, &r);
	buf_init(&out, sizeof(rest));
	refuse_put(&r, &out);
	for (int i = 0; n > 0 && i < REST_ROUNDS; i++)
		if (recv(c->box, rest, sizeof(rest), MSG_DONTWAIT) <= 0)
			break;
	if (!out.error &&
	    send(c->box, out.data, out.len, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		fd_close(&c->box);
	buf_done(&out);
}

void conn_over(struct conn *c, enum gate_reason reason)
{
	if (c->state == CONN_OVER)
		return;
	c->state = CONN_OVER;
	if (c->dial)
		dial_cancel(take_ptr(c->dial));
	tell_over(c, reason);
	if (c->is_counted)
		usage_close(c->gate->usage, c->rule);
	flow_done(&c->out);
	flow_done(&c->in);
	drop_handle(c, (uv_handle_t *)&c->box_poll);
	drop_handle(c, (uv_handle_t *)&c->up_poll);
	drop_handle(c, (uv_handle_t *)&c->timer);
	if (c->first == PEEK_HTTP && !c->is_open && c->box >= 0)
		answer_refusal(c, reason);
	if (reason != GATE_OK) {
		break_off(&c->box);
		break_off(&c->up);
	}
	fd_close(&c->box);
	fd_close(&c->up);
	if (c->gate->is_ending)
		exit_if_last(c->gate);
}

bool conn_may_say(struct conn *c, const uint8_t *data, size_t len)
{
	static const bool none[GATE_MAX_RULES];
	const struct gate_table *t = c->gate->table;
	int rule;

	if (!c->gate->has_secret || c->first == PEEK_TLS)
		return true;
	rule = secret_watch_take(&c->watch, t, none, (const char *)data, len);
	if (rule >= 0)
		(void)snprintf(c->detail, sizeof(c->detail),
			       "%.90s may not stand in what is relayed",
			       gate_str(t, t->rules[rule].name));
	return rule < 0;
}

void conn_refuse_placeholder(struct conn *c)
{
	struct gate_event e;

	conn_event(c, GATE_E_SECRET, GATE_R_PLACEHOLDER, &e);
	events_send(c->gate, &e);
	listen_pause(c->gate, events_denial_pause(c->gate));
	c->is_told = true;
	conn_over(c, GATE_R_PLACEHOLDER);
}

void conn_cut(struct conn *c, enum gate_reason reason)
{
	/* What has it closes both sides and says so in its hook. */
	if (c->state == CONN_INSPECTED && c->inspection)
		inspect_end(c->inspection, reason);
	else
		conn_over(c, reason);
}

/* As many as there are descriptors for. */
static size_t room(const struct gate *g)
{
	size_t fds = g->max_fds > CONN_OTHER_FDS ? g->max_fds - CONN_OTHER_FDS
						 : 0;

	return MIN(fds / CONN_FDS, GATE_MAX_CONNS);
}

static struct conn *find_free(struct gate *g)
{
	struct conns *cs = g->conns;

	for (size_t i = 0; i < cs->n_used; i++)
		if (cs->all[i].state == CONN_FREE)
			return &cs->all[i];
	return cs->n_used < room(g) ? &cs->all[cs->n_used++] : NULL;
}

/* The address that the box dialled, IPv4 as ::ffff:a.b.c.d. */
static int local_address(int fd, uint8_t ret[16], uint16_t *ret_port)
{
	union {
		struct sockaddr any;
		struct sockaddr_in four;
		struct sockaddr_in6 six;
	} s;
	socklen_t len = sizeof(s);

	memset(&s, 0, sizeof(s));
	if (getsockname(fd, &s.any, &len) < 0)
		return -errno;
	memset(ret, 0, 16);
	if (s.any.sa_family == AF_INET6) {
		memcpy(ret, &s.six.sin6_addr, 16);
		*ret_port = ntohs(s.six.sin6_port);
		return 0;
	}
	ret[10] = ret[11] = 0xff;
	memcpy(ret + 12, &s.four.sin_addr, 4);
	*ret_port = ntohs(s.four.sin_port);
	return s.any.sa_family == AF_INET ? 0 : -EAFNOSUPPORT;
}

/* Which host was meant, and what the table says about it. */
static enum gate_reason judge(struct conn *c, struct gate_judgement *j)
{
	struct gate *g = c->gate;
	int64_t number = names_number(c->address);
	const char *name = NULL;

	*j = (struct gate_judgement){ .verdict = GATE_DENY, .rule = -1 };
	address_text(c->address, c->host);
	if (number >= 0)
		name = names_get(g->names, (uint32_t)number);
	if (name) {
		(void)snprintf(c->host, sizeof(c->host), "%s", name);
		gate_judge_name(g->table, name, c->port, j);
		/* The synthetic one means nothing to anybody outside. */
		memset(c->address, 0, sizeof(c->address));
	} else if (number < 0) {
		c->is_address = true;
		gate_judge_address(g->table, c->address, c->port, j);
	}
	c->rule = j->rule;
	if (j->verdict != GATE_DENY && j->rule >= 0)
		return GATE_OK;
	return c->is_address && address_is_metadata(c->address)
		       ? GATE_R_METADATA
		       : GATE_R_NO_RULE;
}

static void on_ask_timeout(uv_timer_t *t)
{
	conn_over(t->data, GATE_R_NOT_APPROVED);
}

static void go_on(struct conn *c)
{
	(void)uv_timer_stop(&c->timer);
	first_start(c);
}

/* Goes on as far as the answer allows. */
static void ask_look(struct conn *c)
{
	switch (questions_state(c->gate->questions, c->question)) {
	case ANSWER_YES:
		go_on(c);
		return;
	case ANSWER_NO:
		conn_over(c, GATE_R_NOT_APPROVED);
		return;
	case ANSWER_NONE:
		return;
	}
}

/* Whoever may answer: a client whose table is final may not. */
static void put_question(const struct conn *c)
{
	struct gate *g = c->gate;
	struct gate_event e;

	if (!g->table->is_final) {
		conn_event(c, GATE_E_OPEN, GATE_OK, &e);
		e.head.number = c->question;
		events_ask(g, &e);
	} else if (desk_ask(g, c->question, c->host, c->port) < 0) {
		(void)questions_answer(g->questions, c->question, false);
	}
}

static void ask(struct conn *c)
{
	uint32_t wait = c->gate->table->ask_wait_ms;
	bool is_new = false;
	int q = questions_take(c->gate->questions, c->host, c->port, &is_new);

	c->state = CONN_ASKING;
	if (q < 0) {
		conn_over(c, GATE_R_FULL);
		return;
	}
	c->question = (uint32_t)q;
	if (is_new)
		put_question(c);
	if (questions_state(c->gate->questions, c->question) != ANSWER_NONE)
		ask_look(c);
	else if (wait == 0)
		conn_over(c, GATE_R_NOT_APPROVED);
	else
		conn_timer(c, on_ask_timeout, wait);
}

/*
 * What a program does not read, or a server, waits in the host's memory, and
 * the kernel gives a socket that was fast once several MiB. So the first few
 * of a box have what the host allows, and all others what is enough for them
 * to go on.
 */
void conn_bound(const struct conn *c, int fd)
{
	const int size = SMALL_BUFFER;

	if (c - c->gate->conns->all < ROOMY)
		return;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
}

static void begin(struct conn *c, struct gate *g, int fd)
{
	const int one = 1;

	*c = (struct conn){ .gate = g,
			    .state = CONN_FIRST,
			    .number = ++g->conns->number,
			    .rule = -1,
			    .since = clock_us(),
			    .box = fd,
			    .up = NO_FD };
	flow_init(&c->out, NO_FD, NO_FD);
	flow_init(&c->in, NO_FD, NO_FD);
	(void)uv_timer_init(&g->loop, &c->timer);
	c->timer.data = c;
	c->n_handles = 1;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	conn_bound(c, fd);
}

/* The table has no room for it, but its refusal is told. */
static void refuse_one_more(struct gate *g, int fd)
{
	struct conn c = { .gate = g,
			  .number = ++g->conns->number,
			  .rule = -1,
			  .since = clock_us() };
	struct gate_judgement j;

	if (local_address(fd, c.address, &c.port) == 0) {
		(void)judge(&c, &j);
		tell_over(&c, GATE_R_CONNECTIONS);
	}
	break_off(&fd);
}

void conns_take(struct gate *g, int fd)
{
	struct conn *c = find_free(g);
	struct gate_judgement j;
	enum gate_reason reason;

	if (!c) {
		refuse_one_more(g, fd);
		return;
	}
	begin(c, g, fd);
	if (local_address(fd, c->address, &c->port) < 0) {
		conn_over(c, GATE_R_RESET);
		return;
	}
	reason = judge(c, &j);
	if (reason == GATE_OK)
		reason = usage_open(g->usage, g->table, c->rule, c->since);
	if (reason != GATE_OK) {
		conn_over(c, reason);
		return;
	}
	c->is_counted = true;
	if (j.verdict == GATE_ASK)
		ask(c);
	else
		first_start(c);
}

void conns_answered(struct gate *g)
{
	for (size_t i = 0; i < g->conns->n_used; i++)
		if (g->conns->all[i].state == CONN_ASKING)
			ask_look(&g->conns->all[i]);
}

void conns_drain(struct gate *g)
{
	g->is_ending = true;
	for (size_t i = 0; i < g->conns->n_used; i++) {
		struct conn *c = &g->conns->all[i];

		if (c->state == CONN_RELAYING && c->out.is_shut)
			conn_over(c, GATE_OK);
		else if (c->state == CONN_ASKING)
			conn_over(c, GATE_R_NOT_APPROVED);
	}
	exit_if_last(g);
}

void conns_end(struct gate *g)
{
	g->is_ending = true;
	for (size_t i = 0; i < g->conns->n_used; i++)
		if (is_living(&g->conns->all[i]))
			conn_cut(&g->conns->all[i], GATE_R_RESET);
	exit_if_last(g);
}

/* What the new table says about an open one; its rule is put in place. */
static bool may_stay(struct conn *c, enum gate_verdict *ret)
{
	const struct gate_table *t = c->gate->table;
	struct gate_judgement j = { .verdict = GATE_DENY, .rule = -1 };
	bool was_inspected = c->state == CONN_INSPECTED;

	if (c->is_address)
		gate_judge_address(t, c->address, c->port, &j);
	else
		gate_judge_name(t, c->host, c->port, &j);
	if (j.verdict == GATE_DENY || j.rule < 0)
		return false;
	if (j.verdict == GATE_ASK &&
	    questions_state(c->gate->questions, c->question) == ANSWER_NO)
		return false;
	/* Whom nobody looks into now cannot be looked into from here on. */
	if (c->state == CONN_RELAYING && !was_inspected &&
	    is_inspected(c, j.rule))
		return false;
	c->rule = j.rule;
	*ret = j.verdict;
	return true;
}

static void judge_again(struct conn *c)
{
	enum gate_verdict verdict;

	if (!may_stay(c, &verdict)) {
		/* It is counted nowhere: usage has begun anew. */
		c->is_counted = false;
		conn_cut(c, GATE_R_REPLACED);
		return;
	}
	usage_move(c->gate->usage, c->rule);
	if (c->state == CONN_ASKING && verdict == GATE_ALLOW)
		go_on(c);
	if (c->state == CONN_RELAYING)
		relay_watch(c);
	if (c->state == CONN_INSPECTED)
		inspect_table(c->inspection, c->gate->table, c->rule);
	if (c->state == CONN_DIALLING) {
		/* What was resolved may be said otherwise now. */
		dial_cancel(take_ptr(c->dial));
		relay_dial(c);
	}
}

void conns_judge_again(struct gate *g)
{
	for (size_t i = 0; i < g->conns->n_used; i++)
		if (is_living(&g->conns->all[i]))
			judge_again(&g->conns->all[i]);
}
