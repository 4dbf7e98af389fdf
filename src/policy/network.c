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

/* A rule for names never matches an address, nor the other way round. */
static bool matches_host(const char *rule, const char *host)
{
	unsigned char want[16];
	unsigned char have[16];
	unsigned int bits = 0;
	bool is_address = value_address(host, have) == 0;
	char name[256];
	size_t len;
	size_t tail;

	if (value_cidr(rule, want, &bits) == 0)
		return is_address && same_bits(want, have, bits);
	if (is_address)
		return false;
	if (strncmp(rule, "*.", 2) != 0)
		return value_host_name(rule, name, sizeof(name)) == 0 &&
		       strcmp(name, host) == 0;
	if (value_host_name(rule + 2, name, sizeof(name)) < 0)
		return false;
	len = strlen(host);
	tail = strlen(name);
	return len > tail + 1 && host[len - tail - 1] == '.' &&
	       strcmp(host + len - tail, name) == 0;
}

static const struct policy_host *find(const struct policy_host *rules, size_t n,
				      const char *host, uint16_t port)
{
	for (size_t i = 0; i < n; i++) {
		if (!matches_host(rules[i].host, host))
			continue;
		for (size_t k = 0; k < rules[i].n_ports; k++)
			if (rules[i].ports[k] == port)
				return &rules[i];
	}
	return NULL;
}

static bool is_never(const char *host)
{
	unsigned char have[16];
	unsigned char never[16];

	if (value_address(host, have) < 0)
		return strcmp(host, "metadata.google.internal") == 0 ||
		       strcmp(host, "metadata") == 0;
	for (size_t i = 0; never_addresses[i]; i++)
		if (value_address(never_addresses[i], never) == 0 &&
		    memcmp(have, never, sizeof(never)) == 0)
			return true;
	return false;
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
	if (value_endpoint(endpoint, host, &port) < 0) {
		say(ret, DECISION_DENY, NULL,
		    "it is not HOST:PORT in its usual form");
		return;
	}
	if (is_never(host)) {
		say(ret, DECISION_DENY, NULL,
		    "metadata addresses are never reached");
		return;
	}
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
