/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A hash table of things that carry their own link.
 *
 * The table compares hashes only; who looks something up walks those with the
 * same hash and compares the key:
 *
 *	for (n = table_first(t, hash); n; n = table_next(n))
 *		if (is_it(n)) ...
 *
 * Hashes are seeded for each table: whoever chooses the keys cannot choose
 * where they land. Nothing is ever walked in the order of the slots, so the
 * seed changes no behaviour.
 */

#include <stddef.h>
#include <stdint.h>

struct node {
	struct node *next;
	uint64_t hash;
};

struct table {
	struct node **slots;
	size_t n, room; /* room: a power of two */
	uint64_t seed;
};

int table_init(struct table *t); /* 0 or -ENOMEM */
void table_done(struct table *t);

uint64_t table_hash(const struct table *t, const void *key, size_t len);
/* Grows when it is full; where it cannot, it only gets slower. */
void table_add(struct table *t, struct node *n, uint64_t hash);
void table_remove(struct table *t, struct node *n);

static inline struct node *table_next(struct node *n)
{
	uint64_t hash = n->hash;

	for (n = n->next; n && n->hash != hash;)
		n = n->next;
	return n;
}

static inline struct node *table_first(const struct table *t, uint64_t hash)
{
	struct node *n = t->slots[hash & (t->room - 1)];

	while (n && n->hash != hash)
		n = n->next;
	return n;
}
