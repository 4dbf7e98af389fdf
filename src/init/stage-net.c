/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The network of a box that has a way out (docs/network.md).
 *
 * There is lo alone, and a few ranges of addresses that are local to it: those
 * of names, and those that a rule names. Init makes the sockets that a gate
 * will serve while it still may, keeps them, and gives them away when the work
 * comes with the gate's socket. What a program connects to is then the gate;
 * everything else has no route. Nothing of it stays in the box.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/io.h"
#include "base/util.h"
#include "gate/wire.h"
#include "init/init.h"
#include "os/net-watch.h"
#include "os/netlink.h"

/* Connections that wait for the gate, of each port. */
#define BACKLOG 512

_Static_assert(INIT_MAX_SOCKETS == 8 + 2 * WIRE_MAX_PORTS, "two of each");
_Static_assert(INIT_MAX_SOCKETS <= IO_MAX_FDS, "they go in one message");
_Static_assert(WIRE_MAX_PORTS == GATE_MAX_PORTS, "the same ports");

/*
 * The other end of every connection is on this machine. Nothing is lost on the
 * way and nobody has to be left room, so the plainest control of congestion
 * will do, which every kernel has and allows. That of the host may let each
 * segment wait for a timer (bbr does): a stream then needs a seventh more CPU
 * time in gate and program, and gets an eighth less through.
 *
 * As much as this of memory (least, at first, most) is enough at any speed.
 * What the host allows may be many times as much: memory of the host's where
 * the gate's sockets wait for the box, and in a stream slower, since it has
 * left the CPU's cache when it is read.
 */
static const struct {
	const char *file;
	const char *value;
} settings[] = {
	{ "/.proc/sys/net/ipv4/tcp_congestion_control", "reno" },
	{ "/.proc/sys/net/ipv4/tcp_rmem", "4096 131072 1048576" },
	{ "/.proc/sys/net/ipv4/tcp_wmem", "4096 16384 1048576" },
};

static int set_tcp(struct init *in)
{
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
		int r = io_write_file(AT_FDCWD, settings[i].file,
				      settings[i].value);

		if (r < 0)
			return err_errno(&in->err, -r, "set up TCP");
	}
	return 0;
}

static struct net_block block_v4(uint32_t address, uint32_t bits)
{
	struct net_block b = { .bits = 96 + bits };
	uint32_t net = htonl(address);

	b.address[10] = b.address[11] = 0xff;
	memcpy(b.address + 12, &net, sizeof(net));
	return b;
}

static struct net_block block_v6(const char *address, uint32_t bits)
{
	struct net_block b = { .bits = bits };

	(void)inet_pton(AF_INET6, address, b.address);
	return b;
}

/* Where the machine has switched it off, a box has none either. */
static int lay_v6(struct init *in, int sock)
{
	const struct net_block own = block_v6(GATE_DNS6, 128);
	const struct net_block names = block_v6(GATE_NET6, GATE_NET6_BITS);
	int r = netlink_add_address(sock, &own, &in->err);

	if (r == 0)
		r = netlink_add_local(sock, &names, &in->err);
	in->has_ipv6 = r == 0;
	if (r == -EACCES || r == -EOPNOTSUPP || r == -EAFNOSUPPORT) {
		in->err = (struct err){ 0 };
		return 0;
	}
	return r;
}

static bool is_v6(const struct wire_block *b)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return b->bits < 96 || memcmp(b->address, mapped, sizeof(mapped)) != 0;
}

static int lay_routes(struct init *in, int sock)
{
	const struct wire_egress *e = &in->box->egress;
	const struct net_block own = block_v4(GATE_DNS4, 32);
	const struct net_block names = block_v4(GATE_NET4, GATE_NET4_BITS);

	if (netlink_up(sock, &in->err) < 0 ||
	    netlink_add_address(sock, &own, &in->err) < 0 ||
	    netlink_add_local(sock, &names, &in->err) < 0 ||
	    lay_v6(in, sock) < 0)
		return -in->err.code;
	for (uint32_t i = 0; i < e->n_blocks; i++) {
		struct net_block b = { .bits = e->blocks[i].bits };

		if (is_v6(&e->blocks[i]) && !in->has_ipv6)
			continue;
		memcpy(b.address, e->blocks[i].address, sizeof(b.address));
		if (netlink_add_local(sock, &b, &in->err) < 0)
			return -in->err.code;
	}
	return 0;
}

static int bind_v4(int fd, uint32_t address, uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(port),
				 .sin_addr.s_addr = htonl(address) };

	return bind(fd, (struct sockaddr *)&a, sizeof(a));
}

static int bind_v6(int fd, const char *address, uint16_t port)
{
	struct sockaddr_in6 a = { .sin6_family = AF_INET6,
				  .sin6_port = htons(port) };
	int one = 1;

	(void)inet_pton(AF_INET6, address, &a.sin6_addr);
	if (setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)) < 0)
		return -1;
	return bind(fd, (struct sockaddr *)&a, sizeof(a));
}

/*
 * One that the gate will have. Its address cannot be shared: who could bind to
 * it again would hear what is meant for the gate.
 */
static int add_socket(struct init *in, int family, int type, bool is_dns,
		      uint16_t port)
{
	_cleanup_fd_ int fd = socket(family,
				     type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r;

	if (fd < 0)
		return err_errno(&in->err, errno, "make a socket");
	if (family == AF_INET)
		r = bind_v4(fd, is_dns ? GATE_DNS4 : INADDR_ANY, port);
	else
		r = bind_v6(fd, is_dns ? GATE_DNS6 : "::", port);
	if (r < 0 || (type == SOCK_STREAM && listen(fd, BACKLOG) < 0))
		return err_errno(&in->err, errno, "listen on port %u", port);
	in->sockets[in->n_sockets++] = take_fd(&fd);
	return 0;
}

/* In the order of gate/wire.h. */
static int add_both(struct init *in, int type, bool is_dns, uint16_t port)
{
	if (add_socket(in, AF_INET, type, is_dns, port) < 0)
		return -in->err.code;
	return in->has_ipv6 ? add_socket(in, AF_INET6, type, is_dns, port) : 0;
}

/*
 * What none of these hears is refused by the kernel. That it was tried is to
 * be on the record, so a box whose gate cannot see it does not start.
 */
static int add_watches(struct init *in)
{
	static const int protocols[] = { IPPROTO_TCP, IPPROTO_UDP };
	const struct wire_egress *e = &in->box->egress;
	struct net_watch w = { .own4 = GATE_DNS4 };
	struct in6_addr own6;

	(void)inet_pton(AF_INET6, GATE_DNS6, &own6);
	for (size_t i = 0; i < ARRAY_SIZE(w.own6); i++)
		w.own6[i] = ntohl(own6.s6_addr32[i]);
	for (size_t i = 0; i < (in->has_ipv6 ? 4U : 2U); i++) {
		int fd;

		w.family = i < 2 ? AF_INET : AF_INET6;
		w.protocol = protocols[i % 2];
		w.ports = e->ports;
		w.n_ports = e->n_ports;
		fd = net_watch_open(&w, &in->err);
		if (fd < 0)
			return -in->err.code;
		in->sockets[in->n_sockets++] = fd;
	}
	return 0;
}

static int add_sockets(struct init *in)
{
	const struct wire_egress *e = &in->box->egress;
	static const int families[] = { AF_INET, AF_INET6 };

	for (size_t i = 0; i < (in->has_ipv6 ? 2U : 1U); i++)
		if (add_socket(in, families[i], SOCK_DGRAM, true, 53) < 0 ||
		    add_socket(in, families[i], SOCK_STREAM, true, 53) < 0)
			return -in->err.code;
	for (uint32_t i = 0; i < e->n_ports; i++)
		if (add_both(in, SOCK_STREAM, false, e->ports[i]) < 0)
			return -in->err.code;
	return add_watches(in);
}

int stage_net(struct init *in)
{
	_cleanup_fd_ int sock = NO_FD;

	if (!init_has_gate(in))
		return 0;
	/* The one that was made ahead is the keeper's: no right in it. */
	if (!in->go.owns_net && unshare(CLONE_NEWNET) < 0)
		return err_errno(&in->err, errno, "make a network namespace");
	if (set_tcp(in) < 0)
		return -in->err.code;
	sock = netlink_open(&in->err);
	if (sock < 0 || lay_routes(in, sock) < 0)
		return -in->err.code;
	return add_sockets(in);
}

/*
 * A gate that is gone is no failure of ours: nobody listens then, connections
 * are refused, and the client knows it.
 */
int stage_gate(struct init *in)
{
	struct gate_sockets msg = { .head.type = GATE_SOCKETS,
				    .n_ports = in->box->egress.n_ports,
				    .has_ipv6 = in->has_ipv6,
				    .has_watch = 1 };
	int r;

	if (in->gate < 0)
		return 0;
	r = io_send(in->gate, &msg, sizeof(msg), in->sockets,
		    (int)in->n_sockets);
	for (uint32_t i = 0; i < in->n_sockets; i++)
		fd_close(&in->sockets[i]);
	in->n_sockets = 0;
	fd_close(&in->gate);
	if (r < 0 && r != -EPIPE && r != -ECONNRESET)
		return err_errno(&in->err, -r, "give the gate its sockets");
	return 0;
}

/* The number below `name` in a table whose first line has the names. */
static uint64_t column(const char *text, const char *title, const char *name)
{
	const char *names = strstr(text, title);
	const char *values = names ? strstr(names + 1, title) : NULL;
	size_t len = strlen(name);

	while (values && *names != '\n' && *values) {
		names += strcspn(names, " \n");
		values += strcspn(values, " \n");
		if (*names != ' ' || *values != ' ')
			break;
		names++;
		values++;
		if (strncmp(names, name, len) == 0 &&
		    (names[len] == ' ' || names[len] == '\n'))
			return strtoull(values, NULL, 10);
	}
	return 0;
}

/* The number behind `name`, in a table with a line for each. */
static uint64_t row(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

/*
 * The kernel counts for each network namespace. Nothing else tells of what has
 * no route: it reaches no gate.
 */
void net_count(struct wire_outcome *ret)
{
	static char text[8192];

	if (io_read_file(AT_FDCWD, "/proc/net/snmp", text, sizeof(text)) > 0) {
		ret->net_refused = column(text, "Ip: ", "OutNoRoutes");
		/* What the gate has to tell of: made, asked, or refused. */
		ret->net_opened = column(text, "Tcp: ", "PassiveOpens") +
				  column(text, "Tcp: ", "OutRsts") +
				  column(text, "Udp: ", "OutDatagrams") +
				  column(text, "Udp: ", "NoPorts");
	}
	if (io_read_file(AT_FDCWD, "/proc/net/snmp6", text, sizeof(text)) > 0) {
		ret->net_refused += row(text, "Ip6OutNoRoutes");
		ret->net_opened += row(text, "Udp6OutDatagrams") +
				   row(text, "Udp6NoPorts");
	}
}
