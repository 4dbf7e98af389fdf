/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger/merkle.h"

#include <string.h>

static void node(const unsigned char *left, const unsigned char *right,
		 unsigned char ret[SHA256_SIZE])
{
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, "\001", 1);
	sha256_add(&s, left, SHA256_SIZE);
	sha256_add(&s, right, SHA256_SIZE);
	sha256_end(&s, ret);
}

void merkle_init(struct merkle *m)
{
	m->n = 0;
}

/* As a counter in binary: each carry joins two trees of the same size. */
void merkle_add(struct merkle *m, const unsigned char leaf[SHA256_SIZE])
{
	unsigned char h[SHA256_SIZE];
	int i = 0;

	memcpy(h, leaf, sizeof(h));
	for (; m->n >> i & 1; i++)
		node(m->level[i], h, h);
	memcpy(m->level[i], h, sizeof(h));
	m->n++;
}

/* The trees that are there, from the smallest: each is left of the rest. */
void merkle_root(const struct merkle *m, unsigned char ret[SHA256_SIZE])
{
	struct sha256 s;
	int i = 0;

	if (m->n == 0) {
		sha256_init(&s);
		sha256_end(&s, ret);
		return;
	}
	while (!(m->n >> i & 1))
		i++;
	memcpy(ret, m->level[i], SHA256_SIZE);
	for (i++; i < 64; i++)
		if (m->n >> i & 1)
			node(m->level[i], ret, ret);
}
