/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A socket that sees the first packet of each connection within a network
 * namespace, or each datagram, that goes neither to the machine's own
 * loopback addresses nor to a port that somebody is known to listen on. The
 * kernel picks them (a filter), so nothing else ever reaches who reads it.
 *
 * A raw socket and not AF_PACKET: to close one of those takes the kernel 5 to
 * 20 ms (synchronize_net()), which every run would wait for.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* So much of each packet: the headers. */
#define NET_WATCH_BYTES 80

struct net_watch {
	int family;            /* AF_INET, AF_INET6 */
	int protocol;          /* IPPROTO_TCP, IPPROTO_UDP */
	const uint16_t *ports; /* TCP: that are listened on, at most 32 */
	size_t n_ports;
	/* One more address that is nobody's business, in host order. */
	uint32_t own4;
	uint32_t own6[4];
};

/* The socket, or -errno. Takes CAP_NET_RAW over the network namespace. */
int net_watch_open(const struct net_watch *w, struct err *err);
