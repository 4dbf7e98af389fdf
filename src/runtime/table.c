/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { SLOTS_AT_FIRST = 64 };

int table_init(struct table *t)
{
	*t = (struct table){ .room = SLOTS_AT_FIRST };
	if (getrandom(&t->seed, sizeof(t->seed), 0) != sizeof(t->seed))
		return -EIO;
	t->slots = calloc(t->room, sizeof(struct node *));
	return t->slots ? 0 : -ENOMEM;
}

void table_done(struct table *t)
{
	free(t->slots);
	*t = (struct table){ 0 };
}

/* Both halves of the product, so that every bit in reaches every bit out. */
static uint64_t mix(uint64_t a, uint64_t b)
{
	unsigned __int128 wide = (unsigned __int128)a * b;

	return (uint64_t)wide ^ (uint64_t)(wide >> 64);
}

static uint64_t word(const unsigned char *from, size_t len)
{
	uint64_t w = 0;

	memcpy(&w, from, len);
	return w;
}

uint64_t table_hash(const struct table *t, const void *key, size_t len)
{
	static const uint64_t odd = 0x9e3779b97f4a7c15;
	const unsigned char *at = key;
	uint64_t hash = t->seed ^ (len * odd);

	for (; len >= 8; len -= 8, at += 8)
		hash = mix(hash ^ word(at, 8), odd ^ t->seed);
	return mix(hash ^ word(at, len), odd);
}

static void grow(struct table *t)
{
	size_t room = t->room * 2;
	struct node **slots = calloc(room, sizeof(struct node *));

	if (!slots)
		return;
	for (size_t i = 0; i < t->room; i++) {
		while (t->slots[i]) {
			struct node *n = t->slots[i];

			t->slots[i] = n->next;
			n->next = slots[n->hash & (room - 1)];
			slots[n->hash & (room - 1)] = n;
		}
	}
	free(t->slots);
	t->slots = slots;
	t->room = room;
}

void table_add(struct table *t, struct node *n, uint64_t hash)
{
	struct node **slot;

	if (t->n >= t->room)
		grow(t);
	slot = &t->slots[hash & (t->room - 1)];
	n->hash = hash;
	n->next = *slot;
	*slot = n;
	t->n++;
}

void table_remove(struct table *t, struct node *n)
{
	struct node **at = &t->slots[n->hash & (t->room - 1)];

	while (*at && *at != n)
		at = &(*at)->next;
	if (!*at)
		return;
	*at = n->next;
	t->n--;
}
