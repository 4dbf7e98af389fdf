/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A network namespace of our own, set up: its lo, addresses and local routes
 * of it. Made by hand, since init has no heap and no library; every request
 * is answered before the call returns.
 */

#include <stdint.h>

#include "base/err.h"

/* The first device of a namespace is always its loopback. */
#define NETLINK_LO 1

/* An address, or a block of them; IPv4 as ::ffff:a.b.c.d, `bits` of 128. */
struct net_block {
	uint8_t address[16];
	uint32_t bits;
};

/* A socket to ask with; or -errno. */
int netlink_open(struct err *err);
int netlink_up(int sock, struct err *err);
/*
 * Gives lo the address, and takes everything for a block as local. -EACCES or
 * -EOPNOTSUPP for IPv6 where the machine has switched that off.
 */
int netlink_add_address(int sock, const struct net_block *b, struct err *err);
int netlink_add_local(int sock, const struct net_block *b, struct err *err);
