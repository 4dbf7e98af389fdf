/* SPDX-License-Identifier: Apache-2.0 */

/* The hosts of a policy, against those of the one that it is under. */

#include <string.h>

#include "policy/narrow-parts.h"
#include "policy/network.h"

static bool has_port(const struct policy_host *h, uint16_t port)
{
	for (size_t i = 0; i < h->n_ports; i++)
		if (h->ports[i] == port)
			return true;
	return false;
}

static bool ports_are_in(const struct policy_host *a,
			 const struct policy_host *b)
{
	for (size_t i = 0; i < a->n_ports; i++)
		if (!has_port(b, a->ports[i]))
			return false;
	return true;
}

/* What is not stated is everything. */
static bool words_are_in(const struct policy_list *a,
			 const struct policy_list *b)
{
	if (!b->is_stated)
		return true;
	for (size_t i = 0; i < a->n; i++)
		if (!policy_list_has(b, a->v[i]))
			return false;
	return a->is_stated;
}

/* Without one that the other has, TLS would no longer be opened. */
static bool same_secret(const struct policy_host *a,
			const struct policy_host *b)
{
	return narrow_same(a->secret_env, b->secret_env) &&
	       narrow_same(a->secret_header, b->secret_header) &&
	       narrow_same(a->secret_format, b->secret_format) &&
	       narrow_same(a->secret_query, b->secret_query) &&
	       narrow_same(a->secret_body, b->secret_body);
}

/* Of both, 0 is no ceiling. */
static bool is_at_most(uint64_t a, uint64_t b)
{
	return b == 0 || (a != 0 && a <= b);
}

static bool rate_is_at_most(const struct policy_host *a,
			    const struct policy_host *b)
{
	return b->rate == 0 || (a->rate != 0 && a->rate <= b->rate &&
				a->rate_seconds >= b->rate_seconds);
}

/* What is counted for all hosts of a rule cannot be given to each of them. */
static bool has_quota(const struct policy_host *h)
{
	return h->has_bytes || h->connections || h->rate;
}

static bool host_is_in(const struct policy_host *a, const struct policy_host *b)
{
	return (has_quota(b) ? strcmp(a->host, b->host) == 0
			     : network_covers(b->host, a->host)) &&
	       ports_are_in(a, b) && words_are_in(&a->methods, &b->methods) &&
	       words_are_in(&a->paths, &b->paths) && same_secret(a, b) &&
	       (!b->has_bytes || (a->has_bytes && a->bytes <= b->bytes)) &&
	       is_at_most(a->connections, b->connections) &&
	       rate_is_at_most(a, b);
}

static bool overlap(const struct policy_host *a, const struct policy_host *b)
{
	bool same_port = false;

	for (size_t i = 0; i < a->n_ports; i++)
		same_port |= has_port(b, a->ports[i]);
	return same_port && (network_covers(a->host, b->host) ||
			     network_covers(b->host, a->host));
}

/* ---- one list that is the other's ---- */

static bool is_same_but_narrower(const struct policy_host *a,
				 const struct policy_host *b)
{
	return strcmp(a->host, b->host) == 0 && ports_are_in(b, a) &&
	       host_is_in(a, b);
}

/* Rule for rule, so that the same one counts everywhere. */
static bool is_aligned(const struct policy_host *a, size_t n_a,
		       const struct policy_host *b, size_t n_b)
{
	bool is_so = n_a == n_b;

	for (size_t i = 0; is_so && i < n_a; i++)
		is_so = is_same_but_narrower(&a[i], &b[i]);
	return is_so;
}

/* ---- parts of it ---- */

/* Which of two rules counts, or both, depends on what is beside them. */
static const struct policy_host *neighbour(const struct policy *o,
					   const struct policy_host *h)
{
	for (size_t i = 0; i < o->n_allow_hosts; i++)
		if (&o->allow_hosts[i] != h && overlap(&o->allow_hosts[i], h))
			return &o->allow_hosts[i];
	for (size_t i = 0; i < o->n_ask_hosts; i++)
		if (&o->ask_hosts[i] != h && overlap(&o->ask_hosts[i], h))
			return &o->ask_hosts[i];
	return NULL;
}

static size_t count_within(const struct policy_host *rules, size_t n,
			   const struct policy_host *h)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++)
		found += host_is_in(&rules[i], h);
	return found;
}

static const struct policy_host *find_outer(const struct policy_host *rules,
					    size_t n,
					    const struct policy_host *h)
{
	for (size_t i = 0; i < n; i++)
		if (host_is_in(h, &rules[i]))
			return &rules[i];
	return NULL;
}

static int check_part(const struct policy *p, const struct policy *o,
		      const struct policy_host *rule, bool asks,
		      struct err *err)
{
	const struct policy_host *h = find_outer(o->allow_hosts,
						 o->n_allow_hosts, rule);
	const struct policy_host *other;

	if (!h && asks)
		h = find_outer(o->ask_hosts, o->n_ask_hosts, rule);
	if (!h)
		return narrow_looser(err,
				     "network.%s '%.80s' (%.80s:%u) is in no "
				     "rule of %.100s",
				     asks ? "ask" : "allow", rule->host,
				     rule->at.file, rule->at.line,
				     narrow_name(o));
	other = neighbour(o, h);
	if (other)
		return narrow_looser(err,
				     "'%.60s' and '%.60s' overlap in %.100s: "
				     "all rules of network must be those, in "
				     "their order",
				     h->host, other->host, narrow_name(o));
	if (has_quota(h) &&
	    count_within(p->allow_hosts, p->n_allow_hosts, h) +
			    count_within(p->ask_hosts, p->n_ask_hosts, h) >
		    1)
		return narrow_looser(err,
				     "the quota of '%.80s' in %.100s is given "
				     "to more than one rule",
				     h->host, narrow_name(o));
	return 0;
}

/* Each is a part of one rule that has nothing to do with any other. */
static int check_parts(const struct policy *p, const struct policy *o,
		       struct err *err)
{
	for (size_t i = 0; i < p->n_allow_hosts; i++)
		if (check_part(p, o, &p->allow_hosts[i], false, err) < 0)
			return -err->code;
	for (size_t i = 0; i < p->n_ask_hosts; i++)
		if (check_part(p, o, &p->ask_hosts[i], true, err) < 0)
			return -err->code;
	return 0;
}

static bool same_resolve(const struct policy *p, const struct policy *o)
{
	bool is_same = p->n_resolve == o->n_resolve;

	/* Both are in the order of their names. */
	for (size_t i = 0; is_same && i < p->n_resolve; i++)
		is_same = strcmp(p->resolve[i].name, o->resolve[i].name) == 0 &&
			  strcmp(p->resolve[i].value, o->resolve[i].value) == 0;
	return is_same;
}

int narrow_network(struct policy *p, const struct policy *o, struct err *err)
{
	if (p->n_allow_hosts == 0 && p->n_ask_hosts == 0)
		return 0;
	if (!p->ca.text)
		p->ca = o->ca;
	if (p->n_resolve == 0) {
		p->resolve = o->resolve;
		p->n_resolve = o->n_resolve;
	}
	if (!narrow_same(p->ca.text, o->ca.text) || !same_resolve(p, o))
		return narrow_looser(err, "network.%s is not that of %.100s",
				     same_resolve(p, o) ? "ca" : "resolve",
				     narrow_name(o));
	if (is_aligned(p->allow_hosts, p->n_allow_hosts, o->allow_hosts,
		       o->n_allow_hosts) &&
	    is_aligned(p->ask_hosts, p->n_ask_hosts, o->ask_hosts,
		       o->n_ask_hosts))
		return 0;
	return check_parts(p, o, err);
}
