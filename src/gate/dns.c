/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/dns.h"

#include <ldns/ldns.h>
#include <string.h>

#include "gate/plain.h"
#include "policy/never.h"

#define HEADER 12

static void free_pkt(ldns_pkt **p)
{
	ldns_pkt_free(*p);
}

#define _cleanup_pkt_ __attribute__((cleanup(free_pkt)))

/* What can be said of a packet that is not understood. */
static size_t answer_bare(const uint8_t *query, ldns_pkt_rcode code,
			  uint8_t ret[DNS_MAX_ANSWER])
{
	memset(ret, 0, HEADER);
	memcpy(ret, query, 2);
	ret[2] = 0x80; /* an answer */
	ret[3] = (uint8_t)code;
	return HEADER;
}

/*
 * Bytes of a name for people: what no name has is shown as "?". A dot within a
 * label is not the dot between two, and would look like another name.
 */
static void show(const ldns_rdf *owner, char ret[GATE_HOST_MAX])
{
	const uint8_t *p = ldns_rdf_data(owner);
	size_t size = ldns_rdf_size(owner);
	size_t n = 0;

	for (size_t at = 0; at < size && p[at]; at += p[at] + 1U)
		for (size_t i = 0; i <= p[at] && at + i < size; i++) {
			uint8_t c = i ? p[at + i] : '.';

			if ((!i && !at) || n + 2 >= GATE_HOST_MAX)
				continue;
			if (i && (c == '.' || c == '\\'))
				ret[n++] = '\\';
			ret[n++] = c > 0x20 && c < 0x7f ? (char)c : '?';
		}
	/* The root. */
	if (n == 0)
		ret[n++] = '.';
	ret[n] = '\0';
}

/* The name of the question, plain; -EINVAL: a byte that no host name has. */
static int owner_name(const ldns_rdf *owner, char ret[GATE_HOST_MAX])
{
	const uint8_t *p = ldns_rdf_data(owner);
	size_t size = ldns_rdf_size(owner);
	char text[GATE_HOST_MAX];
	size_t n = 0;

	for (size_t at = 0; at < size && p[at]; at += p[at] + 1U) {
		size_t len = p[at];

		/* A dot in a label would look like two labels. */
		if (at + len >= size || n + len + 1 > sizeof(text) ||
		    memchr(p + at + 1, '.', len))
			return -EINVAL;
		memcpy(text + n, p + at + 1, len);
		text[n + len] = '.';
		n += len + 1;
	}
	return plain_name(text, n, ret);
}

static bool push_address(ldns_pkt *to, const ldns_rr *question, uint32_t number)
{
	bool is_6 = ldns_rr_get_type(question) == LDNS_RR_TYPE_AAAA;
	uint8_t address[16];
	ldns_rr *rr = ldns_rr_new();
	ldns_rdf *owner = ldns_rdf_clone(ldns_rr_owner(question));
	ldns_rdf *data;

	if (is_6)
		names_address6(number, address);
	else
		names_address4(number, address);
	data = ldns_rdf_new_frm_data(is_6 ? LDNS_RDF_TYPE_AAAA
					  : LDNS_RDF_TYPE_A,
				     is_6 ? 16 : 4, address);
	if (!rr || !owner || !data || !ldns_rr_push_rdf(rr, data)) {
		ldns_rdf_deep_free(data);
		ldns_rdf_deep_free(owner);
		ldns_rr_free(rr);
		return false;
	}
	ldns_rr_set_owner(rr, owner);
	ldns_rr_set_type(rr, ldns_rr_get_type(question));
	ldns_rr_set_class(rr, LDNS_RR_CLASS_IN);
	ldns_rr_set_ttl(rr, DNS_TTL);
	if (ldns_pkt_push_rr(to, LDNS_SECTION_ANSWER, rr))
		return true;
	ldns_rr_free(rr);
	return false;
}

/* Whether this type has an address of ours. */
static bool has_address(const struct dns_view *v, ldns_rr_type type)
{
	return type == LDNS_RR_TYPE_A ||
	       (type == LDNS_RR_TYPE_AAAA && v->has_ipv6);
}

/*
 * What to say about the question: a code, and with NOERROR and an address its
 * number in *ret_number. NXDOMAIN, not REFUSED, which musl waits on.
 */
static ldns_pkt_rcode judge(const struct dns_view *v, const ldns_rr *question,
			    uint32_t *ret_number, struct dns_refusal *refusal)
{
	struct gate_judgement j = { .verdict = GATE_DENY, .rule = -1 };
	int number;

	if (owner_name(ldns_rr_owner(question), refusal->host) < 0) {
		show(ldns_rr_owner(question), refusal->host);
		refusal->reason = GATE_R_NOT_A_NAME;
		return LDNS_RCODE_NXDOMAIN;
	}
	gate_judge_name(v->table, refusal->host, 0, &j);
	refusal->rule = j.rule;
	if (j.verdict == GATE_DENY) {
		refusal->reason = never_resolved(refusal->host)
					  ? GATE_R_METADATA
					  : GATE_R_NO_RULE;
		return LDNS_RCODE_NXDOMAIN;
	}
	if (!has_address(v, ldns_rr_get_type(question)))
		return LDNS_RCODE_NOERROR;
	number = names_take(v->names, refusal->host);
	if (number < 0) {
		refusal->reason = GATE_R_FULL;
		return LDNS_RCODE_SERVFAIL;
	}
	*ret_number = (uint32_t)number;
	return LDNS_RCODE_NOERROR;
}

static ldns_pkt *new_answer(const ldns_pkt *query, const ldns_rr *question,
			    ldns_pkt_rcode code)
{
	ldns_pkt *to = ldns_pkt_new();
	ldns_rr *copy = ldns_rr_clone(question);

	if (!to || !copy ||
	    !ldns_pkt_push_rr(to, LDNS_SECTION_QUESTION, copy)) {
		ldns_rr_free(copy);
		ldns_pkt_free(to);
		return NULL;
	}
	ldns_pkt_set_id(to, ldns_pkt_id(query));
	ldns_pkt_set_qr(to, true);
	ldns_pkt_set_aa(to, true);
	ldns_pkt_set_rd(to, ldns_pkt_rd(query));
	ldns_pkt_set_ra(to, true);
	ldns_pkt_set_rcode(to, (uint8_t)code);
	if (ldns_pkt_edns(query))
		ldns_pkt_set_edns_udp_size(to, DNS_MAX_ANSWER);
	return to;
}

static size_t write_out(const ldns_pkt *p, uint8_t ret[DNS_MAX_ANSWER])
{
	uint8_t *wire = NULL;
	size_t len = 0;

	if (ldns_pkt2wire(&wire, p, &len) != LDNS_STATUS_OK ||
	    len > DNS_MAX_ANSWER)
		len = 0;
	if (len > 0)
		memcpy(ret, wire, len);
	free(wire);
	return len;
}

static size_t answer_one(const struct dns_view *v, const ldns_pkt *query,
			 uint8_t ret[DNS_MAX_ANSWER],
			 struct dns_refusal *refusal)
{
	const ldns_rr *question = ldns_rr_list_rr(ldns_pkt_question(query), 0);
	_cleanup_pkt_ ldns_pkt *to = NULL;
	uint32_t number = 0;
	ldns_pkt_rcode code;

	if (ldns_rr_get_class(question) != LDNS_RR_CLASS_IN)
		code = LDNS_RCODE_NOTIMPL;
	else
		code = judge(v, question, &number, refusal);
	to = new_answer(query, question, code);
	if (!to || (number && !push_address(to, question, number)))
		return 0;
	return write_out(to, ret);
}

size_t dns_answer(const struct dns_view *v, const uint8_t *query, size_t len,
		  uint8_t ret[DNS_MAX_ANSWER], struct dns_refusal *ret_refusal)
{
	_cleanup_pkt_ ldns_pkt *p = NULL;

	*ret_refusal = (struct dns_refusal){ .rule = -1 };
	/* An answer to an answer could go on for ever. */
	if (len < HEADER || len > DNS_MAX_QUERY || query[2] & 0x80)
		return 0;
	if (ldns_wire2pkt(&p, query, len) != LDNS_STATUS_OK)
		return answer_bare(query, LDNS_RCODE_FORMERR, ret);
	if (ldns_pkt_get_opcode(p) != LDNS_PACKET_QUERY)
		return answer_bare(query, LDNS_RCODE_NOTIMPL, ret);
	if (ldns_pkt_qdcount(p) != 1 ||
	    ldns_rr_list_rr_count(ldns_pkt_question(p)) != 1)
		return answer_bare(query, LDNS_RCODE_FORMERR, ret);
	return answer_one(v, p, ret, ret_refusal);
}
