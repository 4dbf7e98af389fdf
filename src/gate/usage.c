/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/usage.h"

#include <stdlib.h>
#include <string.h>

struct used {
	uint64_t bytes;
	uint32_t open;
	int64_t tokens; /* of new connections, in millionths */
	int64_t since;  /* tokens are of this moment; 0: never */
};

struct usage {
	uint32_t open; /* of the box */
	struct used rules[GATE_MAX_RULES];
};

#define DEFAULT_OPEN 256
#define MINUTE_US    60000000

struct usage *usage_new(void)
{
	return calloc(1, sizeof(struct usage));
}

void usage_free(struct usage *u)
{
	free(u);
}

/* A bucket that holds a minute's worth and is full at first. */
static bool take_token(struct used *r, uint32_t rate, int64_t now)
{
	const int64_t full = rate * 1000000LL;
	int64_t past = now - r->since;

	if (r->since == 0 || past >= MINUTE_US)
		r->tokens = full;
	else
		r->tokens += past * rate / 60;
	if (r->tokens > full)
		r->tokens = full;
	r->since = now;
	if (r->tokens < 1000000)
		return false;
	r->tokens -= 1000000;
	return true;
}

enum gate_reason usage_open(struct usage *u, const struct gate_table *t,
			    int rule, int64_t now_us)
{
	const struct gate_rule *r = &t->rules[rule];
	struct used *used = &u->rules[rule];
	uint32_t most = t->connections ? t->connections : DEFAULT_OPEN;

	if (u->open >= most || (r->connections && used->open >= r->connections))
		return GATE_R_CONNECTIONS;
	if (usage_left(u, t, rule) == 0)
		return GATE_R_BYTES;
	if (r->rate && !take_token(used, r->rate, now_us))
		return GATE_R_RATE;
	usage_move(u, rule);
	return GATE_OK;
}

void usage_move(struct usage *u, int rule)
{
	u->open++;
	u->rules[rule].open++;
}

void usage_close(struct usage *u, int rule)
{
	u->open--;
	u->rules[rule].open--;
}

uint64_t usage_left(const struct usage *u, const struct gate_table *t, int rule)
{
	uint64_t most = t->rules[rule].bytes;
	uint64_t used = u->rules[rule].bytes;

	if (!most)
		return UINT64_MAX;
	return used < most ? most - used : 0;
}

bool usage_add(struct usage *u, const struct gate_table *t, int rule,
	       uint64_t n)
{
	u->rules[rule].bytes += n;
	return usage_left(u, t, rule) > 0;
}

static bool is_same(const struct gate_table *a, const struct gate_rule *x,
		    const struct gate_table *b, const struct gate_rule *y)
{
	const char *xs = gate_str(a, x->host);
	const char *ys = gate_str(b, y->host);

	return x->kind == y->kind && x->bits == y->bits && xs && ys &&
	       strcmp(xs, ys) == 0;
}

void usage_replace(struct usage *u, const struct gate_table *old,
		   const struct gate_table *new_table)
{
	static struct used had[GATE_MAX_RULES];

	memcpy(had, u->rules, sizeof(had));
	memset(u, 0, sizeof(*u));
	for (uint32_t i = 0; i < new_table->n_rules; i++)
		for (uint32_t k = 0; k < old->n_rules; k++) {
			struct used *now = &u->rules[i];

			if (!is_same(new_table, &new_table->rules[i], old,
				     &old->rules[k]))
				continue;
			now->bytes += had[k].bytes;
			if (had[k].since > now->since) {
				now->since = had[k].since;
				now->tokens = had[k].tokens;
			}
		}
}
