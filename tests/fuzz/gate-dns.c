/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Questions of a box to its resolver: whatever comes, an answer is one, for the
 * same question, and only a name that a rule names has an address.
 */

#include <ldns/ldns.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "gate/dns.h"

static struct {
	struct gate_table t;
	char strings[64];
} made = {
	.t = { .magic = GATE_TABLE_MAGIC,
	       .size = sizeof(made),
	       .n_rules = 2,
	       .n_ports = 1,
	       .ports = { 443 },
	       .rules = { { .kind = GATE_NAME,
			    .n_ports = 1,
			    .ports = { 443 },
			    .host = sizeof(made.t) },
			  { .kind = GATE_BELOW,
			    .n_ports = 1,
			    .ports = { 443 },
			    .host = sizeof(made.t) + 9 } } },
	.strings = "api.test\0wide.test",
};

/* Without a look at what the gate made of it. */
static int is_named(const ldns_rr *question)
{
	char *text = ldns_rdf2str(ldns_rr_owner(question));
	size_t n;
	int ret;

	if (!text)
		abort();
	for (char *c = text; *c; c++)
		*c = *c >= 'A' && *c <= 'Z' ? (char)(*c | 0x20) : *c;
	n = strlen(text);
	ret = strcmp(text, "api.test.") == 0 ||
	      (n > 11 && strcmp(text + n - 11, ".wide.test.") == 0 &&
	       !strchr(text, '\\'));
	free(text);
	return ret;
}

static void check(const uint8_t *answer, size_t n, const uint8_t *query,
		  const struct dns_refusal *r)
{
	ldns_pkt *p = NULL;

	MUST(ldns_wire2pkt(&p, answer, n) == LDNS_STATUS_OK);
	MUST(memcmp(answer, query, 2) == 0 && ldns_pkt_qr(p));
	MUST(ldns_pkt_ancount(p) <= 1 && ldns_pkt_nscount(p) == 0);
	if (ldns_pkt_ancount(p) == 1) {
		MUST(r->reason == GATE_OK);
		MUST(ldns_pkt_get_rcode(p) == LDNS_RCODE_NOERROR);
		MUST(is_named(ldns_rr_list_rr(ldns_pkt_question(p), 0)));
	}
	if (r->reason != GATE_OK)
		MUST(ldns_pkt_get_rcode(p) != LDNS_RCODE_NOERROR &&
		     strlen(r->host) < sizeof(r->host));
	ldns_pkt_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dns_view v = { .table = &made.t, .has_ipv6 = true };
	uint8_t answer[DNS_MAX_ANSWER];
	struct dns_refusal r;
	size_t n;

	v.names = names_new();
	if (!v.names)
		abort();
	n = dns_answer(&v, data, size, answer, &r);
	MUST(n <= sizeof(answer));
	if (n > 0)
		check(answer, n, data, &r);
	names_free(v.names);
	return 0;
}
