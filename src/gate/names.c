/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS (2 * GATE_NAMES) /* a power of two */

struct names {
	uint32_t count;
	uint16_t slot[SLOTS]; /* index + 1; 0: free */
	char name[GATE_NAMES][GATE_HOST_MAX];
};

struct names *names_new(void)
{
	/* Pages that no name has touched are not there. */
	return calloc(1, sizeof(struct names));
}

void names_free(struct names *n)
{
	free(n);
}

static uint32_t hash(const char *s)
{
	uint32_t h = 2166136261U;

	for (; *s; s++)
		h = (h ^ (uint8_t)*s) * 16777619U;
	return h;
}

int names_take(struct names *n, const char *name)
{
	uint32_t at = hash(name) % SLOTS;

	for (; n->slot[at]; at = (at + 1) % SLOTS)
		if (strcmp(n->name[n->slot[at] - 1], name) == 0)
			return GATE_FIRST + n->slot[at] - 1;
	if (n->count == GATE_NAMES || strlen(name) >= GATE_HOST_MAX)
		return -ENOSPC;
	strcpy(n->name[n->count], name);
	n->slot[at] = (uint16_t)++n->count;
	return GATE_FIRST + (int)n->count - 1;
}

const char *names_get(const struct names *n, uint32_t number)
{
	if (number < GATE_FIRST || number - GATE_FIRST >= n->count)
		return NULL;
	return n->name[number - GATE_FIRST];
}

static void put32(uint32_t v, uint8_t ret[4])
{
	for (int i = 0; i < 4; i++)
		ret[i] = (uint8_t)(v >> (24 - 8 * i));
}

static uint32_t get32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
	       (uint32_t)p[2] << 8 | p[3];
}

void names_address4(uint32_t number, uint8_t ret[4])
{
	put32(GATE_NET4 + number, ret);
}

static const uint8_t net6[12] = { 0x20, 0x01, 0x00, 0x02 };

void names_address6(uint32_t number, uint8_t ret[16])
{
	memcpy(ret, net6, sizeof(net6));
	put32(number, ret + sizeof(net6));
}

int64_t names_number(const uint8_t address[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	uint32_t last = get32(address + 12);

	if (memcmp(address, mapped, sizeof(mapped)) == 0)
		return last >> (32 - GATE_NET4_BITS) ==
				       GATE_NET4 >> (32 - GATE_NET4_BITS)
			       ? (int64_t)(last - GATE_NET4)
			       : -1;
	if (memcmp(address, net6, GATE_NET6_BITS / 8) != 0)
		return -1;
	/* The rest of the /48 leads to nobody. */
	return memcmp(address, net6, sizeof(net6)) == 0 ? (int64_t)last : 0;
}
