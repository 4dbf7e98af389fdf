/* SPDX-License-Identifier: Apache-2.0 */
#include "os/netlink.h"

#include <errno.h>
#include <net/if.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "base/util.h"

/*
 * linux/netlink.h and linux/rtnetlink.h, which are not there for musl: the
 * layouts are the kernel's promise to programs.
 */
enum {
	PROTOCOL_ROUTE = 0,
	MSG_ERROR = 2,
	MSG_NEW_LINK = 16,
	MSG_NEW_ADDRESS = 20,
	MSG_NEW_ROUTE = 24,
	FLAG_REQUEST = 1,
	FLAG_ACK = 4,
	FLAG_REPLACE = 0x100,
	FLAG_CREATE = 0x400,
	ADDRESS_LOCAL = 2,  /* IFA_LOCAL */
	ADDRESS_PEER = 1,   /* IFA_ADDRESS */
	ADDRESS_NO_DAD = 2, /* IFA_F_NODAD */
	ROUTE_TO = 1,       /* RTA_DST */
	ROUTE_DEVICE = 4,   /* RTA_OIF */
	ROUTE_IS_LOCAL = 2, /* RTN_LOCAL */
	ROUTE_BY_BOOT = 3,  /* RTPROT_BOOT */
	SCOPE_HOST = 254,   /* RT_SCOPE_HOST */
	TABLE_LOCAL = 255,  /* RT_TABLE_LOCAL */
};

struct head {
	uint32_t len;
	uint16_t type;
	uint16_t flags;
	uint32_t seq;
	uint32_t pid;
};

struct link_body {
	uint8_t family, pad;
	uint16_t type;
	int32_t index;
	uint32_t flags, change;
};

struct address_body {
	uint8_t family, bits, flags, scope;
	uint32_t index;
};

struct route_body {
	uint8_t family, bits, from_bits, tos;
	uint8_t table, protocol, scope, type;
	uint32_t flags;
};

struct attribute {
	uint16_t len;
	uint16_t type;
};

struct request {
	struct head head;
	uint8_t body[128];
};

static const uint8_t mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

/* What the kernel calls it: a family, so many bytes of address, bits. */
struct plain {
	uint8_t family;
	uint8_t bits;
	uint16_t len;
	const uint8_t *address;
};

static struct plain plain_of(const struct net_block *b)
{
	bool is_v4 = b->bits >= 96 &&
		     memcmp(b->address, mapped, sizeof(mapped)) == 0;

	return (struct plain){
		.family = is_v4 ? AF_INET : AF_INET6,
		.bits = (uint8_t)(is_v4 ? b->bits - 96 : b->bits),
		.len = is_v4 ? 4 : 16,
		.address = is_v4 ? b->address + 12 : b->address,
	};
}

static void begin(struct request *r, uint16_t type, const void *body,
		  size_t len)
{
	memset(r, 0, sizeof(*r));
	r->head.type = type;
	r->head.flags = FLAG_REQUEST | FLAG_ACK | FLAG_CREATE | FLAG_REPLACE;
	r->head.seq = 1;
	memcpy(r->body, body, len);
	r->head.len = (uint32_t)(sizeof(r->head) + len);
}

static void add(struct request *r, uint16_t type, const void *data,
		uint16_t len)
{
	struct attribute a = { .len = (uint16_t)(sizeof(a) + len),
			       .type = type };
	uint8_t *at = (uint8_t *)r + r->head.len;

	memcpy(at, &a, sizeof(a));
	memcpy(at + sizeof(a), data, len);
	r->head.len += (a.len + 3U) & ~3U;
}

/* Sends it and waits for the kernel's answer, which comes at once. */
static int ask(int sock, const struct request *r)
{
	struct {
		struct head head;
		int32_t error;
		uint8_t rest[256];
	} answer;
	ssize_t n;

	if (send(sock, r, r->head.len, 0) < 0)
		return -errno;
	n = recv(sock, &answer, sizeof(answer), 0);
	if (n < 0)
		return -errno;
	if ((size_t)n < sizeof(answer.head) + sizeof(answer.error) ||
	    answer.head.type != MSG_ERROR)
		return -EPROTO;
	return answer.error;
}

int netlink_open(struct err *err)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, PROTOCOL_ROUTE);

	return fd < 0 ? err_errno(err, errno, "open a netlink socket") : fd;
}

int netlink_up(int sock, struct err *err)
{
	const struct link_body body = { .index = NETLINK_LO,
					.flags = IFF_UP,
					.change = IFF_UP };
	struct request r;
	int e;

	begin(&r, MSG_NEW_LINK, &body, sizeof(body));
	r.head.flags = FLAG_REQUEST | FLAG_ACK;
	e = ask(sock, &r);
	return e < 0 ? err_errno(err, -e, "bring lo up") : 0;
}

int netlink_add_address(int sock, const struct net_block *b, struct err *err)
{
	const struct plain p = plain_of(b);
	const struct address_body body = {
		.family = p.family,
		.bits = p.bits,
		.flags = p.family == AF_INET6 ? ADDRESS_NO_DAD : 0,
		.index = NETLINK_LO,
	};
	struct request r;
	int e;

	begin(&r, MSG_NEW_ADDRESS, &body, sizeof(body));
	add(&r, ADDRESS_LOCAL, p.address, p.len);
	add(&r, ADDRESS_PEER, p.address, p.len);
	e = ask(sock, &r);
	return e < 0 ? err_errno(err, -e, "give lo an address") : 0;
}

int netlink_add_local(int sock, const struct net_block *b, struct err *err)
{
	const struct plain p = plain_of(b);
	const struct route_body body = {
		.family = p.family,
		.bits = p.bits,
		.table = TABLE_LOCAL,
		.protocol = ROUTE_BY_BOOT,
		.scope = p.family == AF_INET ? SCOPE_HOST : 0,
		.type = ROUTE_IS_LOCAL,
	};
	const uint32_t device = NETLINK_LO;
	struct request r;
	int e;

	begin(&r, MSG_NEW_ROUTE, &body, sizeof(body));
	add(&r, ROUTE_TO, p.address, p.len);
	add(&r, ROUTE_DEVICE, &device, sizeof(device));
	e = ask(sock, &r);
	return e < 0 ? err_errno(err, -e, "make addresses local") : 0;
}
