/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/usage.h"

#include <stdlib.h>
#include <string.h>

struct used {
	uint64_t bytes;
	uint32_t open;
	int64_t tokens; /* for new connections, each of cost_of() */
	int64_t since;  /* tokens are of this moment; 0: never */
};

struct usage {
	uint32_t open; /* of the box */
	struct used rules[GATE_MAX_RULES];
};

#define DEFAULT_OPEN 256

struct usage *usage_new(void)
{
	return calloc(1, sizeof(struct usage));
}

void usage_free(struct usage *u)
{
	free(u);
}

/* In units of which each microsecond brings as many as the rate has. */
static int64_t cost_of(const struct gate_rule *of)
{
	return of->rate_seconds * 1000000LL;
}

/* A bucket that holds as many as the rate has, and is full at first. */
static bool take_token(struct used *r, const struct gate_rule *of, int64_t now)
{
	const int64_t cost = cost_of(of);
	const int64_t full = of->rate * cost;
	int64_t past = now - r->since;

	if (r->since == 0 || past >= cost)
		r->tokens = full;
	else
		r->tokens += past * of->rate;
	if (r->tokens > full)
		r->tokens = full;
	r->since = now;
	if (r->tokens < cost)
		return false;
	r->tokens -= cost;
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
	if (r->rate && !take_token(used, r, now_us))
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
		return t->rules[rule].flags & GATE_RULE_BYTES ? 0 : UINT64_MAX;
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

/* What is left of connections, where another rate counts them. */
static int64_t move_tokens(int64_t tokens, const struct gate_rule *from,
			   const struct gate_rule *to)
{
	if (cost_of(from) == cost_of(to) || !from->rate)
		return tokens;
	return tokens / cost_of(from) * cost_of(to);
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
				now->tokens = move_tokens(had[k].tokens,
							  &old->rules[k],
							  &new_table->rules[i]);
			}
		}
}
