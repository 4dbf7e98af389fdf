/* SPDX-License-Identifier: Apache-2.0 */

/* The section `network` of a policy, typed. */

#include <string.h>

#include "base/num.h"
#include "policy/typed.h"
#include "policy/values.h"

static void read_ports(struct typed_reader *r, const char *top,
		       struct policy_host *ret)
{
	struct policy_list list = { 0 };
	uint16_t *ports;

	typed_list(r, top, "ports", &list);
	ret->n_ports = list.is_stated ? list.n : 1;
	ports = typed_memory(r, ret->n_ports, sizeof(*ports));
	if (!ports || r->has_failed)
		return;
	ports[0] = list.is_stated ? 0 : 443;
	for (size_t i = 0; i < list.n; i++) {
		uint64_t port = 0;

		if (num_parse(list.v[i], 65535, &port) < 0)
			(void)typed_fail(r, &list.origins[i],
					 "a port cannot be read");
		ports[i] = (uint16_t)port;
	}
	ret->ports = ports;
}

static void read_secret(struct typed_reader *r, const char *top,
			struct policy_host *ret)
{
	struct origin at;
	char secret[TYPED_PATH];

	if (!JOIN(secret, "%s.secret", top))
		return;
	at = typed_origin(r, secret, "env");
	ret->secret_env = typed_text(r, secret, "env");
	ret->secret_header = typed_text(r, secret, "header");
	ret->secret_format = typed_text(r, secret, "format");
	ret->secret_query = typed_text(r, secret, "query");
	ret->secret_body = typed_text(r, secret, "body");
	if (ret->secret_env && !ret->secret_header && !ret->secret_query &&
	    !ret->secret_body)
		(void)typed_fail(r, &at,
				 "a secret needs 'header', 'query' or 'body': "
				 "where it is put");
	if (ret->secret_format &&
	    (!ret->secret_header || strcmp(ret->secret_header, "*") == 0))
		(void)typed_fail(r, &at,
				 "'format' says how a header is written, and "
				 "goes with the name of one only");
}

/* A number of a rule; what the grammar lets through can be read. */
static void read_quota(struct typed_reader *r, const char *top, const char *key,
		       int (*parse)(const char *, uint64_t *), uint64_t *ret)
{
	const struct flat_line *l = typed_get(r, top, key);
	const struct origin at = origin_of(l);

	if (l && parse(l->value, ret) < 0)
		(void)typed_fail(r, &at, "a number cannot be read");
}

static void read_rate(struct typed_reader *r, const char *top,
		      struct policy_host *ret)
{
	const struct flat_line *l = typed_get(r, top, "rate");
	const struct origin at = origin_of(l);

	if (l && value_rate(l->value, &ret->rate, &ret->rate_seconds) < 0)
		(void)typed_fail(r, &at, "a rate cannot be read");
}

static int parse_count(const char *text, uint64_t *ret)
{
	return num_parse(text, 65535, ret);
}

static void read_host(struct typed_reader *r, const char *top, void *item)
{
	struct policy_host *ret = item;

	ret->at = typed_origin(r, top, "host");
	ret->host = typed_text(r, top, "host");
	if (!ret->host)
		(void)typed_fail(r, &ret->at, "a rule has no 'host'");
	read_ports(r, top, ret);
	typed_list(r, top, "methods", &ret->methods);
	typed_list(r, top, "paths", &ret->paths);
	read_secret(r, top, ret);
	ret->has_bytes = typed_get(r, top, "bytes") != NULL;
	read_quota(r, top, "bytes", num_parse_size, &ret->bytes);
	read_quota(r, top, "connections", parse_count, &ret->connections);
	read_rate(r, top, ret);
}

static void read_value(struct typed_reader *r, const char *top, const char *key,
		       int (*parse)(const char *, uint64_t *),
		       struct policy_value *ret)
{
	const struct flat_line *l = typed_get(r, top, key);

	if (!l)
		return;
	ret->is_stated = true;
	ret->text = l->value;
	ret->at = origin_of(l);
	read_quota(r, top, key, parse, &ret->value);
}

/* What a gate has room for; where it is too much, the file is told. */
static void check_room(struct typed_reader *r, const struct policy_host *rules,
		       size_t n, bool *ports, size_t *n_ports)
{
	for (size_t i = 0; i < n && !r->has_failed; i++) {
		const struct policy_host *h = &rules[i];

		for (size_t k = 0; k < h->n_ports; k++) {
			*n_ports += !ports[h->ports[k]];
			ports[h->ports[k]] = true;
		}
		if (*n_ports > POLICY_MAX_PORTS)
			(void)typed_fail(r, &h->at,
					 "more than 32 different ports in all "
					 "rules");
		if (h->methods.n > POLICY_MAX_WORDS ||
		    h->paths.n > POLICY_MAX_WORDS)
			(void)typed_fail(r, &h->at,
					 "more than 64 methods or paths in a "
					 "rule");
	}
}

static void check_rooms(struct typed_reader *r)
{
	const struct policy *p = r->p;
	bool *ports = typed_memory(r, 65536, sizeof(*ports));
	size_t n_ports = 0;

	if (!ports)
		return;
	if (p->n_allow_hosts + p->n_ask_hosts > POLICY_MAX_HOSTS)
		(void)typed_fail(r, &p->allow_hosts[0].at,
				 "more than 256 rules for hosts");
	if (p->n_resolve > POLICY_MAX_RESOLVE)
		(void)typed_fail(r, &p->resolve[0].at,
				 "more than 64 names in 'resolve'");
	check_room(r, p->ask_hosts, p->n_ask_hosts, ports, &n_ports);
	check_room(r, p->allow_hosts, p->n_allow_hosts, ports, &n_ports);
}

void policy_read_network(struct typed_reader *r)
{
	struct policy *p = r->p;

	if (!flat_below(&p->flat, "network"))
		return;
	p->allow_hosts = typed_items(r, "network.allow",
				     sizeof(*p->allow_hosts), read_host,
				     &p->n_allow_hosts);
	p->ask_hosts = typed_items(r, "network.ask", sizeof(*p->ask_hosts),
				   read_host, &p->n_ask_hosts);
	p->resolve = typed_pairs(r, "network.resolve", &p->n_resolve);
	read_value(r, "network", "ask_wait", num_parse_duration, &p->ask_wait);
	read_value(r, "network", "connections", parse_count, &p->connections);
	typed_word(r, "network", "ca", &p->ca);
	check_rooms(r);
}
