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

static bool same_secret(const struct policy_host *a,
			const struct policy_host *b)
{
	return !a->secret_env ||
	       (narrow_same(a->secret_env, b->secret_env) &&
		narrow_same(a->secret_header, b->secret_header) &&
		narrow_same(a->secret_format, b->secret_format) &&
		narrow_same(a->secret_query, b->secret_query) &&
		narrow_same(a->secret_body, b->secret_body));
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

static bool overlaps_any(const struct policy *p, const struct policy_host *h)
{
	for (size_t i = 0; i < p->n_allow_hosts; i++)
		if (overlap(&p->allow_hosts[i], h))
			return true;
	return false;
}

/*
 * Which of several rules counts depends on their order, and several may count
 * together. So these are the other's, or parts of them, in its order; and of
 * the other's only such are missing as have nothing to do with them.
 */
static int narrow_allowed(const struct policy *p, const struct policy *o,
			  struct err *err)
{
	size_t at = 0;

	for (size_t k = 0; k < o->n_allow_hosts; k++) {
		const struct policy_host *h = &o->allow_hosts[k];
		size_t first = at;

		while (at < p->n_allow_hosts &&
		       host_is_in(&p->allow_hosts[at], h) &&
		       !(at > first && has_quota(h)))
			at++;
		if (at == first && overlaps_any(p, h))
			return narrow_looser(
				err,
				"network.allow is not the rules of "
				"%.100s, or narrower, in their order: "
				"'%.100s' (line %u)",
				h->at.file, h->host, h->at.line);
	}
	return at == p->n_allow_hosts ? 0
				      : narrow_miss(err, "network.allow",
						    p->allow_hosts[at].host, o);
}

static bool any_has(const struct policy_host *rules, size_t n,
		    const struct policy_host *h)
{
	for (size_t i = 0; i < n; i++)
		if (host_is_in(h, &rules[i]))
			return true;
	return false;
}

static int narrow_asked(const struct policy *p, const struct policy *o,
			struct err *err)
{
	for (size_t i = 0; i < p->n_ask_hosts; i++)
		if (!any_has(o->ask_hosts, o->n_ask_hosts, &p->ask_hosts[i]) &&
		    !any_has(o->allow_hosts, o->n_allow_hosts,
			     &p->ask_hosts[i]))
			return narrow_miss(err, "network.ask",
					   p->ask_hosts[i].host, o);
	for (size_t k = 0; k < o->n_ask_hosts; k++) {
		const struct policy_host *h = &o->ask_hosts[k];
		bool is_asked = !overlaps_any(p, h);

		for (size_t i = 0; i < p->n_ask_hosts; i++)
			is_asked |= strcmp(p->ask_hosts[i].host, h->host) ==
					    0 &&
				    ports_are_in(h, &p->ask_hosts[i]);
		if (!is_asked)
			return narrow_looser(
				err,
				"network.ask has no '%.100s', which "
				"%.100s asks about",
				h->host, narrow_name(o));
	}
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
	if (!narrow_same(p->ca.text, o->ca.text) || !same_resolve(p, o))
		return narrow_looser(err, "network.%s is not that of %.100s",
				     same_resolve(p, o) ? "ca" : "resolve",
				     narrow_name(o));
	return narrow_allowed(p, o, err) < 0 ? -err->code
					     : narrow_asked(p, o, err);
}
