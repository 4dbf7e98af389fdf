/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Tables for tests, rule by rule; without the checks of the real writer. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/table.h"

#define RULES_SIZE (sizeof(struct gate_table) + 65536)

/* At most so many words of one list. */
#define RULE_WORDS 8

struct rule {
	const char *host; /* "*.name" is what is below */
	uint16_t port;
	const char *methods[RULE_WORDS];
	const char *paths[RULE_WORDS];
	const char *placeholder, *value, *name;
	const char *header, *format, *query, *body;
	uint8_t flags;
};

static uint32_t rules_str(struct gate_table *t, const char *text)
{
	uint32_t off = t->size;

	if (!text)
		return 0;
	memcpy((char *)t + off, text, strlen(text) + 1);
	t->size += (uint32_t)strlen(text) + 1;
	return off;
}

static void rules_vec(struct gate_table *t, struct gate_vec *v,
		      const char *const *words)
{
	v->off = t->size;
	for (v->count = 0; v->count < RULE_WORDS && words[v->count]; v->count++)
		(void)rules_str(t, words[v->count]);
}

static void rules_add(struct gate_table *t, const struct rule *from)
{
	struct gate_rule *r = &t->rules[t->n_rules++];
	bool is_below = strncmp(from->host, "*.", 2) == 0;

	r->kind = is_below ? GATE_BELOW : GATE_NAME;
	r->flags = from->flags | GATE_RULE_INSPECT;
	r->host = rules_str(t, from->host + (is_below ? 2 : 0));
	r->n_ports = 1;
	r->ports[0] = from->port ? from->port : 443;
	r->said = rules_str(t, "/home/me/plans/cordon.yaml:12");
	rules_vec(t, &r->methods, from->methods);
	rules_vec(t, &r->paths, from->paths);
	r->placeholder = rules_str(t, from->placeholder);
	r->value = rules_str(t, from->value);
	r->name = rules_str(t, from->name);
	r->header = rules_str(t, from->header);
	r->format = rules_str(t, from->format);
	r->query = rules_str(t, from->query);
	r->body = rules_str(t, from->body);
}

static struct gate_table *rules_new(const struct rule *rules, size_t n)
{
	struct gate_table *t = calloc(1, RULES_SIZE);

	if (!t)
		abort();
	t->magic = GATE_TABLE_MAGIC;
	t->size = sizeof(*t);
	t->box = rules_str(t, "box-1");
	for (size_t i = 0; i < n; i++)
		rules_add(t, &rules[i]);
	return t;
}
