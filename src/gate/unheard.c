/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/unheard.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/util.h"
#include "gate/address.h"
#include "gate/events.h"
#include "gate/first-packet.h"

/* So many of one socket, then the others have their turn. */
#define BATCH 16
/* Nothing more may be told now. A socket is not full again before that. */
#define REST_MS 10
/* Those that were told and are not to be told again. */
#define KNOWN 256
/* More than a socket holds of them. */
#define ALL 512

struct watched {
	struct unheard *all;
	int fd;
	bool is_6;
	bool is_udp;
	uv_poll_t poll;
};

struct unheard {
	struct gate *gate;
	int n;
	struct watched watched[GATE_MAX_WATCHED];
	uv_timer_t pause;
	/* What the box's sockets listen on, whatever a later table says. */
	uint16_t ports[GATE_MAX_PORTS];
	uint32_t n_ports;
	struct first_packet known[KNOWN];
	unsigned int at;
	uint64_t n_more; /* that were not told */
};

struct unheard *unheard_new(struct gate *g)
{
	struct unheard *u = calloc(1, sizeof(*u));

	if (!u)
		return NULL;
	u->gate = g;
	u->pause.data = u;
	(void)uv_timer_init(&g->loop, &u->pause);
	return u;
}

/* reading */

static bool find_to(struct msghdr *m, struct first_packet *ret)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		struct in6_pktinfo info;

		if (c->cmsg_level != IPPROTO_IPV6 ||
		    c->cmsg_type != IPV6_PKTINFO ||
		    c->cmsg_len < CMSG_LEN(sizeof(info)))
			continue;
		memcpy(&info, CMSG_DATA(c), sizeof(info));
		memcpy(ret->to, &info.ipi6_addr, sizeof(ret->to));
		return true;
	}
	return false;
}

/* 1: one; 0: one that says nothing to us; -1: no more. */
static int read_one(const struct watched *w, struct first_packet *ret)
{
	uint8_t data[FIRST_PACKET_MAX];
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(struct in6_pktinfo)) + 64];
	} control;
	struct sockaddr_in6 from = { 0 };
	struct iovec v = { .iov_base = data, .iov_len = sizeof(data) };
	struct msghdr m = { .msg_name = &from,
			    .msg_namelen = sizeof(from),
			    .msg_iov = &v,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(w->fd, &m, MSG_DONTWAIT);

	memset(ret, 0, sizeof(*ret));
	if (n < 0)
		return -1;
	if (!w->is_6)
		return first_packet_v4(data, (size_t)n, ret) == 0;
	memcpy(ret->from, &from.sin6_addr, sizeof(ret->from));
	return find_to(&m, ret) &&
	       first_packet_v6(data, (size_t)n, w->is_udp, ret) == 0;
}

/* judging */

static bool listens_on(const struct unheard *u, uint16_t port)
{
	for (uint32_t i = 0; i < u->n_ports; i++)
		if (u->ports[i] == port)
			return true;
	return false;
}

/* lo's own address, and the resolver's: it belongs to the box. */
static bool is_own(const uint8_t address[16])
{
	return names_number(address) == GATE_DNS4 - GATE_NET4;
}

/* A second try of the same connection; UDP to the same host and port. */
static bool is_same(const struct first_packet *a, const struct first_packet *b)
{
	if (a->is_udp != b->is_udp || a->port != b->port ||
	    memcmp(a->to, b->to, sizeof(a->to)) != 0)
		return false;
	return a->is_udp ||
	       (a->number == b->number && a->from_port == b->from_port &&
		memcmp(a->from, b->from, sizeof(a->from)) == 0);
}

static bool is_known(struct unheard *u, const struct first_packet *p)
{
	for (unsigned int i = 0; i < MIN(u->at, KNOWN); i++)
		if (is_same(&u->known[i], p))
			return true;
	u->known[u->at % KNOWN] = *p;
	/* Never back to where the table looks empty. */
	u->at = u->at == 2 * KNOWN - 1 ? KNOWN : u->at + 1;
	return false;
}

static void name_host(const struct gate *g, const struct first_packet *p,
		      struct gate_event *e)
{
	int64_t number = names_number(p->to);
	const char *name = number < 0 ? NULL
				      : names_get(g->names, (uint32_t)number);

	address_text(p->to, e->host);
	if (name)
		(void)snprintf(e->host, sizeof(e->host), "%s", name);
	else if (number < 0)
		memcpy(e->address, p->to, sizeof(e->address));
}

/* False: it cannot be told now. */
static bool tell(struct unheard *u, const struct first_packet *p)
{
	struct gate_event e = { .kind = GATE_E_DENIED,
				.reason = p->is_udp ? GATE_R_UDP : GATE_R_PORT,
				.port = p->port,
				.rule = -1 };

	if (!events_may_tell(u->gate))
		return false;
	name_host(u->gate, p, &e);
	return events_send_now(u->gate, &e);
}

static bool judge(struct unheard *u, const struct first_packet *p)
{
	bool is_answer = p->is_udp && is_own(p->from) && p->from_port == 53;

	if (is_own(p->to) || is_answer ||
	    (!p->is_udp && listens_on(u, p->port)) || is_known(u, p))
		return true;
	if (tell(u, p))
		return true;
	u->n_more++;
	return false;
}

/* Up to so many of one socket; false: one could not be told. */
static bool take(struct watched *w, int most)
{
	bool is_told = true;
	struct first_packet p;

	for (int i = 0; i < most; i++) {
		int r = read_one(w, &p);

		if (r < 0)
			break;
		if (r > 0 && !judge(w->all, &p))
			is_told = false;
	}
	return is_told;
}

static void on_pause_over(uv_timer_t *t);

static void on_packet(uv_poll_t *poll, int status, int events)
{
	struct watched *w = poll->data;
	struct unheard *u = w->all;

	(void)status, (void)events;
	if (take(w, BATCH))
		return;
	/* From now on they are counted, all at once and now and then. */
	for (int i = 0; i < u->n; i++)
		(void)uv_poll_stop(&u->watched[i].poll);
	(void)uv_timer_start(&u->pause, on_pause_over, REST_MS, REST_MS);
}

static void start_all(struct unheard *u)
{
	for (int i = 0; i < u->n; i++)
		(void)uv_poll_start(&u->watched[i].poll, UV_READABLE,
				    on_packet);
}

static bool take_all(struct unheard *u)
{
	bool is_told = true;

	for (int i = 0; i < u->n; i++)
		is_told = take(&u->watched[i], ALL) && is_told;
	return is_told;
}

static void on_pause_over(uv_timer_t *t)
{
	struct unheard *u = t->data;

	if (!take_all(u))
		return;
	(void)uv_timer_stop(t);
	start_all(u);
}

/* taking */

static int number_of(int fd, int option)
{
	int v = -1;
	socklen_t len = sizeof(v);

	return getsockopt(fd, SOL_SOCKET, option, &v, &len) < 0 ? -1 : v;
}

static bool is_right(const struct watched *w)
{
	return number_of(w->fd, SO_DOMAIN) == (w->is_6 ? AF_INET6 : AF_INET) &&
	       number_of(w->fd, SO_TYPE) == SOCK_RAW &&
	       number_of(w->fd, SO_PROTOCOL) ==
		       (w->is_udp ? IPPROTO_UDP : IPPROTO_TCP);
}

int unheard_take(struct gate *g, const int *fds, int n_fds, struct err *err)
{
	struct unheard *u = g->unheard;

	u->n_ports = g->table->n_ports;
	memcpy(u->ports, g->table->ports, sizeof(u->ports));
	for (int i = 0; i < n_fds; i++) {
		struct watched *w = &u->watched[i];
		int r;

		/* TCP and UDP, for IPv4 and then IPv6. */
		*w = (struct watched){ .all = u,
				       .fd = fds[i],
				       .is_6 = i >= 2,
				       .is_udp = i % 2 == 1 };
		if (!is_right(w))
			return err_set(err, EPROTO,
				       "socket %d that watches the box is "
				       "another one",
				       i);
		r = uv_poll_init(&g->loop, &w->poll, w->fd);
		if (r < 0)
			return err_errno(err, -r, "watch the box");
		w->poll.data = w;
		u->n++;
	}
	start_all(u);
	return 0;
}

void unheard_rest(struct gate *g)
{
	struct unheard *u = g->unheard;
	struct gate_event e = { .kind = GATE_E_MORE, .rule = -1 };

	(void)uv_timer_stop(&u->pause);
	for (int i = 0; i < u->n; i++)
		(void)uv_poll_stop(&u->watched[i].poll);
	(void)take_all(u);
	u->n = 0;
	e.count = u->n_more;
	if (e.count > 0)
		events_send(g, &e);
}
