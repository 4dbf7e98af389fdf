/* SPDX-License-Identifier: Apache-2.0 */
#include "os/net-watch.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/util.h"
#include "os/uapi.h"

/* What may wait for the reader: some 300 of them. */
#define WAITING (128 << 10)

#define SYN       0x02
#define SYN_ACK   0x12
#define MAX_CODE  64
#define MAX_PORTS 32
#define DROP      0xff /* a target that is put in at the end */

/* Loopback: 127.0.0.0/8 and ::1. */
#define LOOP4 0x7f000000U
#define MASK4 0xff000000U

/* linux/bpf_common.h, linux/filter.h */
enum {
	LOAD_WORD = 0x20,   /* BPF_LD | BPF_W | BPF_ABS */
	LOAD_HALF = 0x48,   /* BPF_LD | BPF_H | BPF_IND */
	LOAD_BYTE = 0x50,   /* BPF_LD | BPF_B | BPF_IND */
	HEAD_TO_X = 0xb1,   /* BPF_LDX | BPF_B | BPF_MSH */
	NUMBER_TO_X = 0x01, /* BPF_LDX | BPF_W | BPF_IMM */
	MASK = 0x54,        /* BPF_ALU | BPF_AND | BPF_K */
	IF_EQUAL = 0x15,    /* BPF_JMP | BPF_JEQ | BPF_K */
	RETURN = 0x06,      /* BPF_RET | BPF_K */
};
#define NET_OFFSET 0xfff00000U /* SKF_NET_OFF */

struct code {
	struct uapi_filter v[MAX_CODE];
	unsigned int n;
};

static void add(struct code *c, uint16_t op, uint32_t k)
{
	c->v[c->n++] = (struct uapi_filter){ .code = op, .k = k };
}

/* On to the next where it is as wanted, else not ours. */
static void drop_if(struct code *c, uint32_t k)
{
	c->v[c->n++] = (struct uapi_filter){ .code = IF_EQUAL,
					     .jt = DROP,
					     .k = k };
}

static void drop_unless(struct code *c, uint32_t k)
{
	c->v[c->n++] = (struct uapi_filter){ .code = IF_EQUAL,
					     .jf = DROP,
					     .k = k };
}

/* A packet of IPv4 is seen from its own header on. */
static void judge_to4(struct code *c, const struct net_watch *w)
{
	add(c, LOAD_WORD, 16);
	drop_if(c, w->own4);
	add(c, MASK, MASK4);
	drop_if(c, LOOP4);
	add(c, HEAD_TO_X, 0);
}

/*
 * One of IPv6 from behind it, so its address is asked for by the network's
 * offset. ::1 and the other that is left out differ in their first word alone.
 */
static void judge_to6(struct code *c, const struct net_watch *w)
{
	const uint32_t to = NET_OFFSET + 24;
	const uint8_t rest[] = { 7, 5, 3 };

	for (int i = 3; i > 0; i--) {
		add(c, LOAD_WORD, to + 4 * (uint32_t)i);
		c->v[c->n++] = (struct uapi_filter){
			.code = IF_EQUAL,
			.jf = rest[3 - i],
			.k = w->own6[i],
		};
	}
	add(c, LOAD_WORD, to);
	drop_if(c, 0);
	drop_if(c, w->own6[0]);
	add(c, NUMBER_TO_X, 0);
}

/* A first packet, for a port that nobody listens on; X: where TCP begins. */
static void judge_tcp(struct code *c, const struct net_watch *w)
{
	add(c, LOAD_BYTE, 13);
	add(c, MASK, SYN_ACK);
	drop_unless(c, SYN);
	add(c, LOAD_HALF, 2);
	for (size_t i = 0; i < w->n_ports; i++)
		drop_if(c, w->ports[i]);
}

static void finish(struct code *c)
{
	add(c, RETURN, NET_WATCH_BYTES);
	for (unsigned int i = 0; i < c->n; i++) {
		if (c->v[i].jt == DROP)
			c->v[i].jt = (uint8_t)(c->n - i - 1);
		if (c->v[i].jf == DROP)
			c->v[i].jf = (uint8_t)(c->n - i - 1);
	}
	add(c, RETURN, 0);
}

static int set_up(int fd, const struct net_watch *w)
{
	const int size = WAITING;
	const int one = 1;
	struct code c = { .n = 0 };
	struct uapi_fprog p;

	if (w->family == AF_INET)
		judge_to4(&c, w);
	else
		judge_to6(&c, w);
	if (w->protocol == IPPROTO_TCP)
		judge_tcp(&c, w);
	finish(&c);
	p = (struct uapi_fprog){ .len = (unsigned short)c.n, .filter = c.v };
	/* First of all, so that nothing is there which it does not let in. */
	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &p, sizeof(p)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)) < 0)
		return -errno;
	/* Its header is not delivered: who it was for is asked for. */
	if (w->family == AF_INET6 &&
	    setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &one, sizeof(one)) <
		    0)
		return -errno;
	return 0;
}

int net_watch_open(const struct net_watch *w, struct err *err)
{
	_cleanup_fd_ int fd = NO_FD;
	int r;

	if (w->n_ports > MAX_PORTS)
		return err_set(err, E2BIG, "more than 32 ports");
	fd = socket(w->family, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
		    w->protocol);
	if (fd < 0)
		return err_errno(err, errno, "watch for what is refused");
	r = set_up(fd, w);
	if (r < 0)
		return err_errno(err, -r, "watch for what is refused");
	return take_fd(&fd);
}
