/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/listen.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/util.h"
#include "gate/conn.h"
#include "gate/dns.h"
#include "gate/events.h"
#include "gate/unheard.h"

/* So many of one socket, then the others have their turn. */
#define BATCH 16
/* Where descriptors run out. */
#define FULL_MS 100
/* A resolver asks for A and AAAA: one refusal of a name, one event. */
#define SAME_US 1000000
#define RECENT  32

struct listener {
	struct gate *gate;
	int fd;
	uv_poll_t poll;
	uv_poll_cb cb;
};

struct recent {
	char host[GATE_HOST_MAX];
	int64_t when;
};

struct listeners {
	int n;
	struct listener all[GATE_MAX_LISTENERS];
	uv_timer_t pause;
	struct recent recent[RECENT];
	int at;
};

static void start_all(struct listeners *l)
{
	for (int i = 0; i < l->n; i++)
		(void)uv_poll_start(&l->all[i].poll, UV_READABLE, l->all[i].cb);
}

static void on_pause_over(uv_timer_t *t)
{
	struct listeners *l = t->data;

	start_all(l);
	if (l->n > 0)
		dns_server_go_on(l->all[0].gate);
}

struct listeners *listeners_new(struct gate *g)
{
	struct listeners *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	(void)uv_timer_init(&g->loop, &l->pause);
	l->pause.data = l;
	return l;
}

void listen_stop(struct gate *g)
{
	(void)uv_timer_stop(&g->listeners->pause);
	for (int i = 0; i < g->listeners->n; i++)
		(void)uv_poll_stop(&g->listeners->all[i].poll);
}

void listen_pause(struct gate *g, uint64_t ms)
{
	struct listeners *l = g->listeners;

	if (ms == 0 || g->is_ending)
		return;
	listen_stop(g);
	uv_update_time(&g->loop);
	(void)uv_timer_start(&l->pause, on_pause_over, ms, 0);
}

bool listen_is_paused(const struct gate *g)
{
	return uv_is_active((const uv_handle_t *)&g->listeners->pause);
}

static bool was_just_told(struct listeners *l, const char *host)
{
	int64_t now = clock_us();
	struct recent *r;

	for (int i = 0; i < RECENT; i++)
		if (l->recent[i].when && now - l->recent[i].when < SAME_US &&
		    strcmp(l->recent[i].host, host) == 0)
			return true;
	r = &l->recent[l->at++ % RECENT];
	memcpy(r->host, host, strlen(host) + 1);
	r->when = now;
	return false;
}

static void tell_refusal(struct gate *g, const struct dns_refusal *r)
{
	struct gate_event e = { .kind = GATE_E_NAME,
				.reason = (uint8_t)r->reason,
				.rule = r->rule };

	if (was_just_told(g->listeners, r->host))
		return;
	memcpy(e.host, r->host, sizeof(e.host));
	events_send(g, &e);
	listen_pause(g, events_denial_pause(g));
}

size_t listen_answer(struct gate *g, const uint8_t *query, size_t len,
		     uint8_t *ret)
{
	const struct dns_view v = { .table = g->table,
				    .names = g->names,
				    .has_ipv6 = g->has_ipv6 };
	struct dns_refusal r;
	size_t n = dns_answer(&v, query, len, ret, &r);

	if (r.reason != GATE_OK)
		tell_refusal(g, &r);
	return n;
}

static void on_udp(uv_poll_t *p, int status, int events)
{
	struct listener *l = p->data;
	uint8_t query[DNS_MAX_QUERY + 1];
	uint8_t answer[DNS_MAX_ANSWER];

	(void)status, (void)events;
	for (int i = 0; i < BATCH && !listen_is_paused(l->gate); i++) {
		struct sockaddr_storage from;
		socklen_t size = sizeof(from);
		ssize_t n = recvfrom(l->fd, query, sizeof(query), MSG_DONTWAIT,
				     (struct sockaddr *)&from, &size);
		size_t len;

		if (n < 0)
			return;
		len = listen_answer(l->gate, query, (size_t)n, answer);
		if (len > 0)
			(void)sendto(l->fd, answer, len,
				     MSG_DONTWAIT | MSG_NOSIGNAL,
				     (struct sockaddr *)&from, size);
	}
}

static void accept_some(struct listener *l, void (*take)(struct gate *, int))
{
	for (int i = 0; i < BATCH && !listen_is_paused(l->gate); i++) {
		int fd = accept4(l->fd, NULL, NULL,
				 SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0) {
			if (errno == EMFILE || errno == ENFILE ||
			    errno == ENOBUFS || errno == ENOMEM)
				listen_pause(l->gate, FULL_MS);
			return;
		}
		take(l->gate, fd);
	}
}

static void on_dns_tcp(uv_poll_t *p, int status, int events)
{
	(void)status, (void)events;
	accept_some(p->data, dns_server_take);
}

static void on_connection(uv_poll_t *p, int status, int events)
{
	(void)status, (void)events;
	accept_some(p->data, conns_take);
}

void listen_rest(struct gate *g)
{
	for (int i = 0; i < g->listeners->n; i++) {
		struct listener *l = &g->listeners->all[i];

		if (l->cb == on_connection)
			accept_some(l, conns_take);
		else if (l->cb == on_udp)
			on_udp(&l->poll, 0, 0);
	}
}

static int number_of(int fd, int option)
{
	int v = -1;
	socklen_t len = sizeof(v);

	return getsockopt(fd, SOL_SOCKET, option, &v, &len) < 0 ? -1 : v;
}

static uint16_t port_of(int fd)
{
	struct sockaddr_in6 s = { 0 };
	socklen_t len = sizeof(s);

	/* The port is at the same place in both families. */
	return getsockname(fd, (struct sockaddr *)&s, &len) < 0
		       ? 0
		       : ntohs(s.sin6_port);
}

/* What the socket at place `i` has to be. */
static bool is_right(const struct gate *g, const struct gate_sockets *s, int i,
		     int fd)
{
	bool both = s->has_ipv6;
	int n_dns = both ? 4 : 2;
	bool is_dns = i < n_dns;
	int at = is_dns ? i : i - n_dns;
	/* DNS: UDP and TCP for IPv4, then for IPv6; ports: IPv4, IPv6. */
	bool is_udp = is_dns && at % 2 == 0;
	bool is_6 = is_dns ? at >= 2 : both && at % 2 == 1;
	uint16_t port = is_dns ? 53 : g->table->ports[both ? at / 2 : at];

	return number_of(fd, SO_DOMAIN) == (is_6 ? AF_INET6 : AF_INET) &&
	       number_of(fd, SO_TYPE) == (is_udp ? SOCK_DGRAM : SOCK_STREAM) &&
	       number_of(fd, SO_ACCEPTCONN) == !is_udp && port_of(fd) == port;
}

/* Without those that watch; too few are less than none. */
static int check(const struct gate *g, const struct gate_sockets *s,
		 const int *fds, int n_fds, struct err *err)
{
	int want = (s->has_ipv6 ? 2 : 1) * (2 + (int)g->table->n_ports);

	if (s->n_ports != g->table->n_ports || n_fds != want)
		return err_set(err, EPROTO, "%d sockets of %u ports came",
			       n_fds, s->n_ports);
	for (int i = 0; i < n_fds; i++)
		if (!is_right(g, s, i, fds[i]))
			return err_set(err, EPROTO,
				       "socket %d of the box is another one",
				       i);
	return 0;
}

static int add(struct gate *g, int fd, uv_poll_cb cb, struct err *err)
{
	struct listener *l = &g->listeners->all[g->listeners->n];
	int r = uv_poll_init(&g->loop, &l->poll, fd);

	if (r < 0)
		return err_errno(err, -r, "watch a socket of the box");
	l->gate = g;
	l->fd = fd;
	l->cb = cb;
	l->poll.data = l;
	g->listeners->n++;
	return 0;
}

int listeners_take(struct gate *g, const struct gate_sockets *s, int *fds,
		   int n_fds, struct err *err)
{
	int n_dns = s->has_ipv6 ? 4 : 2;
	int n_watch = s->has_watch ? n_dns : 0;
	int n = n_fds - n_watch;
	int r = check(g, s, fds, n, err);

	for (int i = 0; r == 0 && i < n; i++)
		r = add(g, fds[i],
			i >= n_dns ? on_connection
			: i % 2    ? on_dns_tcp
				   : on_udp,
			err);
	if (r < 0)
		return r;
	g->has_ipv6 = s->has_ipv6;
	start_all(g->listeners);
	return unheard_take(g, fds + n, n_watch, err);
}
