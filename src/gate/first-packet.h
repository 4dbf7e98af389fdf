/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The first packet of what a box begins, as the kernel delivers it to a raw
 * socket: of IPv4 with its header, of IPv6 without. All of it is the box's own
 * words. Pure.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest header of IPv4, and of TCP as much as is looked at. */
#define FIRST_PACKET_MAX 80

struct first_packet {
	bool is_udp;
	uint8_t from[16]; /* IPv4 as ::ffff:a.b.c.d */
	uint8_t to[16];
	uint16_t from_port;
	uint16_t port;
	uint32_t number; /* of TCP: the one that a second try repeats */
};

/* -EINVAL: neither the beginning of a TCP connection nor UDP. */
int first_packet_v4(const uint8_t *data, size_t len, struct first_packet *ret);
/* What is behind a header of IPv6; `from` and `to` are left as they are. */
int first_packet_v6(const uint8_t *data, size_t len, bool is_udp,
		    struct first_packet *ret);
