/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/network.h"

#include <stdio.h>
#include <string.h>

#include "policy/never.h"
#include "policy/values.h"

static bool same_bits(const unsigned char *a, const unsigned char *b,
		      unsigned int bits)
{
	unsigned int whole = bits / 8;
	unsigned int rest = bits % 8;
	unsigned int mask = (0xff00U >> rest) & 0xff;

	return memcmp(a, b, whole) == 0 &&
	       (rest == 0 || ((a[whole] ^ b[whole]) & mask) == 0);
}

/* What a rule or a request names: a block of addresses, or names. */
struct target {
	bool is_address;
	unsigned char address[16];
	unsigned int bits;
	bool is_below; /* "*.name" */
	char name[256];
};

static int target_parse(const char *host, struct target *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->is_address = value_cidr(host, ret->address, &ret->bits) == 0;
	if (ret->is_address)
		return 0;
	ret->is_below = strncmp(host, "*.", 2) == 0;
	return value_host_name(host + (ret->is_below ? 2 : 0), ret->name,
			       sizeof(ret->name));
}

static bool is_below(const char *name, const char *top)
{
	size_t len = strlen(name);
	size_t tail = strlen(top);

	return len > tail + 1 && name[len - tail - 1] == '.' &&
	       strcmp(name + len - tail, top) == 0;
}

/* A rule for names never matches an address, nor the other way round. */
bool network_covers(const char *rule, const char *host)
{
	struct target r;
	struct target h;

	if (target_parse(rule, &r) < 0 || target_parse(host, &h) < 0 ||
	    r.is_address != h.is_address)
		return false;
	if (r.is_address)
		return r.bits <= h.bits &&
		       same_bits(r.address, h.address, r.bits);
	if (r.is_below)
		return is_below(h.name, r.name) ||
		       (h.is_below && strcmp(h.name, r.name) == 0);
	return !h.is_below && strcmp(h.name, r.name) == 0;
}

static const struct policy_host *find(const struct policy_host *rules, size_t n,
				      const char *host, uint16_t port)
{
	for (size_t i = 0; i < n; i++) {
		if (!network_covers(rules[i].host, host))
			continue;
		for (size_t k = 0; k < rules[i].n_ports; k++)
			if (rules[i].ports[k] == port)
				return &rules[i];
	}
	return NULL;
}

bool network_is_never(const char *host)
{
	struct target t;

	if (target_parse(host, &t) < 0)
		return false;
	return t.is_address ? t.bits == 128 && never_reached(t.address)
			    : never_resolved(t.name);
}

static void say(struct network_judgement *ret, enum decision d,
		const struct policy_host *rule, const char *why)
{
	ret->decision = d;
	ret->rule = rule;
	if (rule)
		(void)snprintf(ret->why, sizeof(ret->why), "%s host '%.150s'",
			       why, rule->host);
	else
		(void)snprintf(ret->why, sizeof(ret->why), "%s", why);
}

void network_judge(const struct policy *p, const char *endpoint,
		   struct network_judgement *ret)
{
	const struct policy_host *rule;
	char host[256];
	uint16_t port;

	memset(ret, 0, sizeof(*ret));
	ret->is_never = true;
	if (value_target(endpoint, host, &port) < 0 || port == 0) {
		say(ret, DECISION_DENY, NULL,
		    "it is not HOST:PORT in its usual form");
		return;
	}
	if (network_is_never(host)) {
		say(ret, DECISION_DENY, NULL,
		    "metadata addresses are never reached");
		return;
	}
	ret->is_never = false;
	rule = p ? find(p->ask_hosts, p->n_ask_hosts, host, port) : NULL;
	if (rule) {
		say(ret, DECISION_ASK, rule, "network.ask names");
		return;
	}
	rule = p ? find(p->allow_hosts, p->n_allow_hosts, host, port) : NULL;
	if (rule)
		say(ret, DECISION_ALLOW, rule, "network.allow names");
	else
		say(ret, DECISION_DENY, NULL,
		    "no rule of network.allow names this host and port");
}

const struct policy_host *network_next(const struct policy *p,
				       const char *endpoint,
				       const struct policy_host *after)
{
	size_t from = after ? (size_t)(after - p->allow_hosts) + 1 : 0;
	char host[256];
	uint16_t port;

	if (value_target(endpoint, host, &port) < 0)
		return NULL;
	return find(p->allow_hosts + from, p->n_allow_hosts - from, host, port);
}

bool network_gives(const struct policy *p, const char *secret,
		   const char *endpoint)
{
	char host[256];
	uint16_t port;

	if (value_target(endpoint, host, &port) < 0)
		return false;
	for (size_t i = 0; i < p->n_allow_hosts; i++) {
		const struct policy_host *h = &p->allow_hosts[i];

		if (h->secret_env && strcmp(h->secret_env, secret) == 0 &&
		    network_covers(h->host, host))
			return true;
	}
	return false;
}
