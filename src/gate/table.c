/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/table.h"

#include <errno.h>
#include <string.h>

#include "policy/never.h"
#include "policy/values.h"

/* ---- checking: nothing is believed before ---- */

struct checker {
	const struct gate_table *t;
	const char *wrong; /* the first thing that is */
	int row;           /* where; -1: not in a row */
};

static void expect(struct checker *c, bool is_so, const char *what)
{
	if (!is_so && !c->wrong)
		c->wrong = what;
}

/* The last byte of all is a NUL, so a string that begins within ends there. */
static bool is_string(const struct gate_table *t, uint32_t off)
{
	return off >= sizeof(*t) && off < t->size;
}

static void check_string(struct checker *c, uint32_t off, const char *what)
{
	expect(c, off == 0 || is_string(c->t, off), what);
}

static void check_vec(struct checker *c, const struct gate_vec *v,
		      const char *what)
{
	uint64_t at = v->off;

	if (v->count == 0)
		return;
	expect(c, v->count <= GATE_MAX_WORDS, what);
	for (uint32_t i = 0; i < v->count && !c->wrong; i++) {
		expect(c, at < c->t->size && is_string(c->t, (uint32_t)at),
		       what);
		if (!c->wrong)
			at += strlen((const char *)c->t + at) + 1;
	}
}

static void check_host(struct checker *c, const struct gate_rule *r)
{
	const char *host = gate_str(c->t, r->host);
	char plain[GATE_HOST_MAX];

	expect(c, r->kind < GATE_HOST_KINDS, "kind of host");
	expect(c, is_string(c->t, r->host), "host");
	expect(c, r->bits <= 128, "bits of an address");
	if (c->wrong || r->kind == GATE_ADDRESS)
		return;
	expect(c,
	       value_host_name(host, plain, sizeof(plain)) == 0 &&
		       strcmp(plain, host) == 0,
	       "a host name that is not in its plain form");
}

static bool listens_on(const struct gate_table *t, uint16_t port)
{
	for (uint32_t i = 0; i < t->n_ports; i++)
		if (t->ports[i] == port)
			return true;
	return false;
}

static void check_secret(struct checker *c, const struct gate_rule *r)
{
	const uint32_t texts[] = { r->placeholder, r->value, r->name, r->header,
				   r->format,      r->query, r->body };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		check_string(c, texts[i], "a secret");
	expect(c, !r->placeholder == !r->value && !r->placeholder == !r->name,
	       "a secret without its placeholder or its value");
	if (!c->wrong && r->placeholder)
		expect(c,
		       ((const char *)c->t)[r->placeholder] &&
			       ((const char *)c->t)[r->value],
		       "a secret that is empty");
	if (!c->wrong && r->placeholder)
		expect(c, strlen(gate_str(c->t, r->value)) <= GATE_MAX_SECRET,
		       "a secret that is too long");
	if (!c->wrong && r->format)
		expect(c, strstr(gate_str(c->t, r->format), "{}") != NULL,
		       "a format without {}");
}

static void check_rule(struct checker *c, const struct gate_rule *r)
{
	check_host(c, r);
	expect(c, r->n_ports <= GATE_MAX_PORTS, "ports of a rule");
	for (size_t i = 0; !c->wrong && i < r->n_ports; i++)
		expect(c, r->ports[i] && listens_on(c->t, r->ports[i]),
		       "a port that nobody listens on");
	check_vec(c, &r->methods, "methods");
	check_vec(c, &r->paths, "paths");
	check_string(c, r->said, "where a rule stands");
	check_secret(c, r);
	expect(c,
	       !r->rate || (r->rate <= GATE_MAX_RATE && r->rate_seconds &&
			    r->rate_seconds <= GATE_MAX_RATE),
	       "a rate");
	expect(c,
	       (r->flags & GATE_RULE_INSPECT) ||
		       (!r->methods.count && !r->paths.count &&
			!r->placeholder &&
			!(r->flags & (GATE_RULE_METHODS | GATE_RULE_PATHS))),
	       "a rule that must be looked into and is not");
}

static void check_head(struct checker *c, size_t size)
{
	const struct gate_table *t = c->t;

	expect(c, size >= sizeof(*t) && size <= GATE_MAX_TABLE, "size");
	if (c->wrong)
		return;
	expect(c, t->magic == GATE_TABLE_MAGIC, "magic");
	expect(c, t->size == size, "size");
	expect(c, size == sizeof(*t) || ((const char *)t)[size - 1] == '\0',
	       "end of the strings");
	expect(c, t->n_rules <= GATE_MAX_RULES, "number of rules");
	expect(c, t->n_resolve <= GATE_MAX_RESOLVE, "number of addresses");
	expect(c, t->n_ports <= GATE_MAX_PORTS, "number of ports");
	if (c->wrong)
		return;
	for (uint32_t i = 0; i < t->n_ports; i++)
		expect(c, t->ports[i] > (i ? t->ports[i - 1] : 0), "ports");
	check_string(c, t->box, "box");
	expect(c,
	       t->ca_bundle_len == 0 ||
		       (is_string(t, t->ca_bundle) &&
			t->ca_bundle_len < t->size - t->ca_bundle),
	       "authorities");
}

int gate_table_check(const struct gate_table *t, size_t size, struct err *err)
{
	struct checker c = { .t = t, .row = -1 };

	check_head(&c, size);
	for (uint32_t i = 0; !c.wrong && i < t->n_rules; i++) {
		c.row = (int)i;
		check_rule(&c, &t->rules[i]);
	}
	for (uint32_t i = 0; !c.wrong && i < t->n_resolve; i++) {
		c.row = (int)i;
		expect(&c, is_string(t, t->resolve[i].host), "resolve");
		expect(&c, !never_reached(t->resolve[i].address),
		       "resolve: a metadata service");
	}
	if (!c.wrong)
		return 0;
	if (c.row >= 0)
		return err_set(err, EINVAL, "the gate's table, row %d: %s",
			       c.row, c.wrong);
	return err_set(err, EINVAL, "the gate's table: %s", c.wrong);
}

/* ---- judging ---- */

static bool has_port(const struct gate_rule *r, uint16_t port)
{
	if (port == 0)
		return r->n_ports > 0;
	for (size_t i = 0; i < r->n_ports; i++)
		if (r->ports[i] == port)
			return true;
	return false;
}

static bool is_below(const char *name, const char *top)
{
	size_t len = strlen(name);
	size_t tail = strlen(top);

	return len > tail + 1 && name[len - tail - 1] == '.' &&
	       strcmp(name + len - tail, top) == 0;
}

static bool names_it(const struct gate_table *t, const struct gate_rule *r,
		     const char *name)
{
	const char *host = gate_str(t, r->host);

	if (r->kind == GATE_NAME)
		return strcmp(name, host) == 0;
	return r->kind == GATE_BELOW && is_below(name, host);
}

static bool has_address(const struct gate_rule *r, const uint8_t address[16])
{
	unsigned int whole = r->bits / 8U;
	unsigned int rest = r->bits % 8U;
	unsigned int mask = (0xff00U >> rest) & 0xff;

	return r->kind == GATE_ADDRESS &&
	       memcmp(r->address, address, whole) == 0 &&
	       (rest == 0 ||
		((r->address[whole] ^ address[whole]) & mask) == 0);
}

bool gate_rule_names(const struct gate_table *t, int rule, const char *name,
		     uint16_t port)
{
	const struct gate_rule *r = &t->rules[rule];

	return names_it(t, r, name) && has_port(r, port);
}

bool gate_rule_has(const struct gate_table *t, int rule,
		   const uint8_t address[16], uint16_t port)
{
	const struct gate_rule *r = &t->rules[rule];

	return has_address(r, address) && has_port(r, port);
}

static void decide(struct gate_judgement *ret, int rule, bool asks)
{
	ret->verdict = asks ? GATE_ASK : GATE_ALLOW;
	ret->rule = rule;
}

/* Two rounds: what asks, then what allows; `name` or `address`. */
static void judge(const struct gate_table *t, const char *name,
		  const uint8_t *address, uint16_t port,
		  struct gate_judgement *ret)
{
	for (int asks = 1; asks >= 0; asks--)
		for (uint32_t i = 0; i < t->n_rules; i++) {
			const struct gate_rule *r = &t->rules[i];

			if (((r->flags & GATE_RULE_ASK) != 0) != asks ||
			    !has_port(r, port))
				continue;
			if (name ? !names_it(t, r, name)
				 : !has_address(r, address))
				continue;
			decide(ret, (int)i, asks);
			return;
		}
}

void gate_judge_name(const struct gate_table *t, const char *name,
		     uint16_t port, struct gate_judgement *ret)
{
	*ret = (struct gate_judgement){ .verdict = GATE_DENY, .rule = -1 };
	if (!never_resolved(name))
		judge(t, name, NULL, port, ret);
}

void gate_judge_address(const struct gate_table *t, const uint8_t address[16],
			uint16_t port, struct gate_judgement *ret)
{
	*ret = (struct gate_judgement){ .verdict = GATE_DENY, .rule = -1 };
	if (port != 0 && !never_reached(address))
		judge(t, NULL, address, port, ret);
}

const struct gate_resolve *gate_resolve(const struct gate_table *t,
					const char *name, uint16_t port)
{
	const struct gate_resolve *any = NULL;

	for (uint32_t i = 0; i < t->n_resolve; i++) {
		const struct gate_resolve *r = &t->resolve[i];

		if (strcmp(gate_str(t, r->host), name) != 0)
			continue;
		if (r->port == port)
			return r;
		if (r->port == 0 && !any)
			any = r;
	}
	return any;
}
