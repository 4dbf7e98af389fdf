/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/first-packet.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#define HEAD4     20 /* of IPv4, at least */
#define UDP_HEAD  8
#define TCP_FLAGS 13 /* where they are */
#define TCP_SYN   0x02
#define TCP_ACK   0x10

static uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static uint32_t get32(const uint8_t *p)
{
	return (uint32_t)get16(p) << 16 | get16(p + 2);
}

static int transport(const uint8_t *data, size_t len, struct first_packet *ret)
{
	if (len < (ret->is_udp ? UDP_HEAD : TCP_FLAGS + 1))
		return -EINVAL;
	ret->from_port = get16(data);
	ret->port = get16(data + 2);
	ret->number = ret->is_udp ? 0 : get32(data + 4);
	if (!ret->is_udp && (data[TCP_FLAGS] & (TCP_SYN | TCP_ACK)) != TCP_SYN)
		return -EINVAL;
	return 0;
}

static void mapped(const uint8_t *address, uint8_t ret[16])
{
	memset(ret, 0, 10);
	ret[10] = ret[11] = 0xff;
	memcpy(ret + 12, address, 4);
}

int first_packet_v4(const uint8_t *data, size_t len, struct first_packet *ret)
{
	size_t head;

	if (len < HEAD4 || data[0] >> 4 != 4)
		return -EINVAL;
	head = (size_t)(data[0] & 0x0f) * 4;
	if (head < HEAD4 || head > len)
		return -EINVAL;
	if (data[9] != IPPROTO_TCP && data[9] != IPPROTO_UDP)
		return -EINVAL;
	ret->is_udp = data[9] == IPPROTO_UDP;
	mapped(data + 12, ret->from);
	mapped(data + 16, ret->to);
	return transport(data + head, len - head, ret);
}

int first_packet_v6(const uint8_t *data, size_t len, bool is_udp,
		    struct first_packet *ret)
{
	ret->is_udp = is_udp;
	return transport(data, len, ret);
}
