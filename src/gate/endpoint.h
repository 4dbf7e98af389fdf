/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* An address and a port as the kernel wants them; IPv4 as IPv4. */

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

union endpoint {
	struct sockaddr any;
	struct sockaddr_in in4;
	struct sockaddr_in6 in6;
};

static inline bool address_is_v4(const uint8_t address[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff };

	return memcmp(address, mapped, sizeof(mapped)) == 0;
}

static inline void endpoint_set(union endpoint *e, const uint8_t address[16],
				uint16_t port)
{
	memset(e, 0, sizeof(*e));
	if (address_is_v4(address)) {
		e->in4.sin_family = AF_INET;
		e->in4.sin_port = htons(port);
		memcpy(&e->in4.sin_addr, address + 12, 4);
	} else {
		e->in6.sin6_family = AF_INET6;
		e->in6.sin6_port = htons(port);
		memcpy(&e->in6.sin6_addr, address, 16);
	}
}

static inline socklen_t endpoint_len(const union endpoint *e)
{
	return e->any.sa_family == AF_INET ? sizeof(e->in4) : sizeof(e->in6);
}

static inline bool endpoint_same_address(const union endpoint *a,
					 const union endpoint *b)
{
	if (a->any.sa_family != b->any.sa_family)
		return false;
	if (a->any.sa_family == AF_INET)
		return a->in4.sin_addr.s_addr == b->in4.sin_addr.s_addr;
	return memcmp(&a->in6.sin6_addr, &b->in6.sin6_addr, 16) == 0;
}
