/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A gate's client, its box and the world outside, in one test process: sockets
 * that are made before box_enter() are outside, those after it are in the box's
 * network namespace. The gate itself is the real cordon-gate.
 */

#include <fcntl.h>
#include <ldns/ldns.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/util.h"
#include "gate-hello.h"
#include "gate-table.h"
#include "gate/wire.h"
#include "os/net-watch.h"
#include "os/netlink.h"
#include "tap.h"

#define WAIT_MS 5000

struct box {
	struct made_table m;
	int client; /* to the gate */
	int init;   /* the other one */
	bool asks;  /* it has a third: */
	int desk;
	pid_t gate;
	int server; /* outside, on loopback */
	uint16_t server_port;
	bool has_ipv6;
	bool is_watched; /* what nobody hears is seen */
	bool is_watched_wrong;
};

static struct sockaddr_in at4(uint32_t address, uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(port),
				     .sin_addr.s_addr = htonl(address) };
}

static int listen4(uint32_t address, uint16_t port, int type)
{
	struct sockaddr_in a = at4(address, port);
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ||
	    (type == SOCK_STREAM && listen(fd, 512) < 0))
		abort();
	return fd;
}

static int listen6(const char *address, uint16_t port, int type)
{
	struct sockaddr_in6 a = { .sin6_family = AF_INET6,
				  .sin6_port = htons(port) };
	int fd = socket(AF_INET6, type | SOCK_CLOEXEC, 0);
	int one = 1;

	(void)inet_pton(AF_INET6, address, &a.sin6_addr);
	(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ||
	    (type == SOCK_STREAM && listen(fd, 512) < 0))
		abort();
	return fd;
}

/* A server outside, and an empty table: rules are added by the test. */
static void box_init(struct box *b)
{
	struct sockaddr_in a = { 0 };
	socklen_t len = sizeof(a);

	memset(b, 0, sizeof(*b));
	table_init(&b->m);
	b->server = listen4(INADDR_LOOPBACK, 0, SOCK_STREAM);
	(void)getsockname(b->server, (struct sockaddr *)&a, &len);
	b->server_port = ntohs(a.sin_port);
}

static struct gate_rule *box_allow(struct box *b, const char *host,
				   uint16_t port)
{
	table_resolve(&b->m, strncmp(host, "*.", 2) == 0 ? host + 2 : host,
		      b->server_port);
	return table_rule(&b->m, host, port);
}

/* cordon-gate with its sockets, and nothing else. */
static void box_start(struct box *b)
{
	const char *build = getenv("CORDON_BUILD");
	char path[512];
	char pid[16];
	int c[2];
	int i[2];
	int k[2];

	(void)snprintf(path, sizeof(path), "%s/cordon-gate",
		       build ? build : "build");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, c) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, i) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, k) < 0)
		abort();
	(void)snprintf(pid, sizeof(pid), "%d", (int)getpid());
	b->gate = fork();
	if (b->gate == 0) {
		int high_c = fcntl(c[1], F_DUPFD_CLOEXEC, 100);
		int high_i = fcntl(i[1], F_DUPFD_CLOEXEC, 100);
		int high_k = fcntl(k[1], F_DUPFD_CLOEXEC, 100);

		(void)dup2(high_c, GATE_FD_CLIENT);
		(void)dup2(high_i, GATE_FD_BOX);
		if (b->asks && dup2(high_k, GATE_FD_DESK) >= 0)
			(void)execl(path, "cordon-gate", pid, GATE_HAS_DESK,
				    NULL);
		(void)execl(path, "cordon-gate", NULL);
		_exit(127);
	}
	(void)close(c[1]);
	(void)close(i[1]);
	(void)close(k[1]);
	b->client = c[0];
	b->init = i[0];
	b->desk = k[0];
}

static void box_send_table(struct box *b, uint32_t number)
{
	const struct gate_head head = { GATE_TABLE, number };
	int fd = table_fd(&b->m);

	CHECK_INT(io_send(b->client, &head, sizeof(head), &fd, 1), 0);
	(void)close(fd);
}

static void write_map(const char *path, unsigned int id)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "%u %u 1", id, id);
	(void)io_write_file(AT_FDCWD, path, text);
}

/* What init does; from here on this process is in the box. */
static void box_enter(struct box *b)
{
	struct net_block dns4 = { .bits = 128 };
	struct net_block net4 = { .bits = 96 + GATE_NET4_BITS };
	struct net_block net6 = { .bits = GATE_NET6_BITS };
	struct net_block dns6 = { .bits = 128 };
	uid_t uid = geteuid();
	struct err err = { 0 };
	int nl;

	if (unshare(CLONE_NEWNET | (uid ? CLONE_NEWUSER : 0)) < 0)
		SKIP("no network namespace can be made");
	if (uid) {
		(void)io_write_file(AT_FDCWD, "/proc/self/setgroups", "deny");
		write_map("/proc/self/uid_map", uid);
		write_map("/proc/self/gid_map", getegid());
	}
	(void)inet_pton(AF_INET6, "::ffff:198.18.0.1", dns4.address);
	(void)inet_pton(AF_INET6, "::ffff:198.18.0.0", net4.address);
	(void)inet_pton(AF_INET6, GATE_NET6, net6.address);
	(void)inet_pton(AF_INET6, GATE_DNS6, dns6.address);
	nl = netlink_open(&err);
	if (nl < 0 || netlink_up(nl, &err) < 0 ||
	    netlink_add_address(nl, &dns4, &err) < 0 ||
	    netlink_add_local(nl, &net4, &err) < 0) {
		printf("# %s\n", err.text);
		abort();
	}
	b->has_ipv6 = netlink_add_address(nl, &dns6, &err) == 0 &&
		      netlink_add_local(nl, &net6, &err) == 0;
	(void)close(nl);
}

/* As init makes them (init/stage-net.c). */
static int box_watches(const struct box *b, int *fds)
{
	struct net_watch w = { .ports = b->m.t.ports,
			       .n_ports = b->m.t.n_ports,
			       .own4 = GATE_DNS4,
			       .own6 = { 0x20010002, 0, 0, 1 } };
	struct err err = { 0 };
	int n = b->has_ipv6 ? 4 : 2;

	for (int i = 0; i < n; i++) {
		w.family = i < 2 ? AF_INET : AF_INET6;
		w.protocol = i % 2 ? IPPROTO_UDP : IPPROTO_TCP;
		fds[i] = net_watch_open(&w, &err);
		CHECK_STR(err.text, "");
	}
	return n;
}

static void box_send_sockets(struct box *b)
{
	struct gate_sockets s = { .head = { GATE_SOCKETS, 0 },
				  .n_ports = b->m.t.n_ports,
				  .has_ipv6 = b->has_ipv6,
				  .has_watch = b->is_watched };
	int fds[IO_MAX_FDS];
	int n = 0;

	fds[n++] = listen4(GATE_DNS4, 53, SOCK_DGRAM);
	fds[n++] = listen4(GATE_DNS4, 53, SOCK_STREAM);
	if (b->has_ipv6) {
		fds[n++] = listen6(GATE_DNS6, 53, SOCK_DGRAM);
		fds[n++] = listen6(GATE_DNS6, 53, SOCK_STREAM);
	}
	for (uint32_t i = 0; i < b->m.t.n_ports; i++) {
		fds[n++] = listen4(INADDR_ANY, b->m.t.ports[i], SOCK_STREAM);
		if (b->has_ipv6)
			fds[n++] = listen6("::", b->m.t.ports[i], SOCK_STREAM);
	}
	if (b->is_watched)
		n += box_watches(b, fds + n);
	if (b->is_watched_wrong) {
		(void)close(fds[n - 1]);
		fds[n - 1] = listen4(GATE_DNS4, 5353, SOCK_DGRAM);
	}
	CHECK_INT(io_send(b->init, &s, sizeof(s), fds, n), 0);
	for (int i = 0; i < n; i++)
		(void)close(fds[i]);
	(void)close(b->init);
}

static bool is_ready(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

union heard {
	struct gate_head head;
	struct gate_event event;
};

/* The next message of the gate; 0: it has none; -1: it is gone. */
static uint32_t box_hear(struct box *b, union heard *ret, int ms)
{
	int fds[IO_MAX_FDS];
	int n_fds = 0;

	memset(ret, 0, sizeof(*ret));
	if (!is_ready(b->client, ms))
		return 0;
	if (io_recv(b->client, ret, sizeof(*ret), 0, fds, &n_fds) <= 0)
		return (uint32_t)-1;
	for (int i = 0; i < n_fds; i++)
		(void)close(fds[i]);
	return ret->head.type;
}

/* All of it, up to a gate that serves. */
static void box_run(struct box *b)
{
	union heard h;

	box_start(b);
	box_send_table(b, 1);
	box_enter(b);
	box_send_sockets(b);
	if (box_hear(b, &h, WAIT_MS) == GATE_CA)
		(void)box_hear(b, &h, WAIT_MS);
	CHECK_INT(h.head.type, GATE_TAKEN);
	if (h.head.type == GATE_FAILED)
		printf("# %s\n", h.event.detail);
	CHECK_INT(h.head.number, 1);
}

/* The next event must be this one. */
static void box_expect(struct box *b, enum gate_event_kind kind,
		       enum gate_reason reason, struct gate_event *ret)
{
	union heard h;

	CHECK_INT(box_hear(b, &h, WAIT_MS), GATE_EVENT);
	CHECK_INT(h.event.kind, kind);
	CHECK_INT(h.event.reason, reason);
	if (ret)
		*ret = h.event;
}

/* in the box */

/* A question as it is sent over TCP, with its length before it. */
static size_t frame_query(const char *name, ldns_rr_type type, uint8_t ret[600])
{
	ldns_pkt *p = ldns_pkt_query_new(ldns_dname_new_frm_str(name), type,
					 LDNS_RR_CLASS_IN, LDNS_RD);
	uint8_t *wire = NULL;
	size_t len = 0;

	(void)ldns_pkt2wire(&wire, p, &len);
	(void)hello_put(ret, 0, 2, len);
	memcpy(ret + 2, wire, len);
	free(wire);
	ldns_pkt_free(p);
	return len + 2;
}

static int ask_dns(const char *name, ldns_rr_type type, uint8_t *answer,
		   size_t size, bool by_tcp)
{
	struct sockaddr_in a = at4(GATE_DNS4, 53);
	int fd = socket(AF_INET,
			(by_tcp ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC, 0);
	uint8_t framed[600];
	size_t len = frame_query(name, type, framed);
	size_t from = by_tcp ? 0 : 2;
	ssize_t n = -1;

	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0 &&
	    send(fd, framed + from, len - from, 0) > 0 && is_ready(fd, WAIT_MS))
		n = recv(fd, answer, size, 0);
	(void)close(fd);
	return (int)n;
}

/* The IPv4 address of a name, in host order; 0: none. */
static uint32_t resolve4(const char *name)
{
	uint8_t answer[1024];
	int n = ask_dns(name, LDNS_RR_TYPE_A, answer, sizeof(answer), false);
	ldns_pkt *p = NULL;
	uint32_t ret = 0;
	const ldns_rr_list *l;

	if (n <= 0 || ldns_wire2pkt(&p, answer, (size_t)n) != LDNS_STATUS_OK)
		return 0;
	l = ldns_pkt_answer(p);
	if (ldns_rr_list_rr_count(l) == 1)
		memcpy(&ret,
		       ldns_rdf_data(ldns_rr_rdf(ldns_rr_list_rr(l, 0), 0)), 4);
	ldns_pkt_free(p);
	return ntohl(ret);
}

static int dial4(uint32_t address, uint16_t port)
{
	struct sockaddr_in a = at4(address, port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
		return fd;
	(void)close(fd);
	return -errno;
}

static int dial(const char *name, uint16_t port)
{
	return dial4(resolve4(name), port);
}

/* outside */

/* The next connection that reached the server; -1: none did. */
static int reached(struct box *b, int ms)
{
	return is_ready(b->server, ms)
		       ? accept4(b->server, NULL, NULL, SOCK_CLOEXEC)
		       : -1;
}

/* both */

static void say(int fd, const void *data, size_t n)
{
	CHECK_INT(send(fd, data, n, MSG_NOSIGNAL), (long long)n);
}

static void say_text(int fd, const char *text)
{
	say(fd, text, strlen(text));
}

/* Exactly these bytes come. */
static void hears(int fd, const void *data, size_t n)
{
	char got[4096];
	size_t at = 0;

	while (at < n && is_ready(fd, WAIT_MS)) {
		ssize_t r = recv(fd, got + at, n - at, 0);

		if (r <= 0)
			break;
		at += (size_t)r;
	}
	CHECK_INT((long long)at, (long long)n);
	CHECK(memcmp(got, data, at) == 0);
}

static void hears_text(int fd, const char *text)
{
	hears(fd, text, strlen(text));
}

/* It ends: 0 in peace, -ECONNRESET broken off, 1: there is more. */
static int ends(int fd)
{
	char byte;
	ssize_t n;

	if (!is_ready(fd, WAIT_MS))
		return -ETIME;
	n = recv(fd, &byte, 1, 0);
	return n < 0 ? -errno : (int)n;
}

static size_t say_hello(int fd, const char *name)
{
	uint8_t data[512];
	size_t n = hello_make(&(struct hello){ .name = name }, data,
			      sizeof(data));

	say(fd, data, n);
	return n;
}

static void hears_hello(int fd, const char *name)
{
	uint8_t data[512];

	hears(fd, data,
	      hello_make(&(struct hello){ .name = name }, data, sizeof(data)));
}
