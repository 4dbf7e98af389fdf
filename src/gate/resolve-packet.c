/* SPDX-License-Identifier: Apache-2.0 */

/* Questions and answers on the wire (RFC 1035), by ldns. */
#include <errno.h>
#include <ldns/ldns.h>
#include <string.h>

#include "base/util.h"
#include "gate/resolve.h"

#define HEADER_SIZE 12

static void pkt_free(ldns_pkt **p)
{
	ldns_pkt_free(*p);
}

#define _cleanup_pkt_ __attribute__((cleanup(pkt_free)))

int question_write(const struct question *q, uint8_t ret[QUESTION_MAX])
{
	ldns_rdf *name = ldns_dname_new_frm_str(q->name);
	_cleanup_pkt_ ldns_pkt *p = NULL;
	_cleanup_free_ uint8_t *wire = NULL;
	size_t len = 0;

	if (!name)
		return -EINVAL;
	p = ldns_pkt_query_new(name, (ldns_rr_type)q->type, LDNS_RR_CLASS_IN,
			       LDNS_RD);
	if (!p) {
		ldns_rdf_deep_free(name);
		return -ENOMEM;
	}
	ldns_pkt_set_id(p, q->id);
	if (ldns_pkt2wire(&wire, p, &len) != LDNS_STATUS_OK || !wire)
		return -ENOMEM;
	if (len > QUESTION_MAX)
		return -EMSGSIZE;
	memcpy(ret, wire, len);
	return (int)len;
}

/* What must be right before any more of it is looked at. */
static bool is_ours(const struct question *q, const uint8_t *p, size_t len)
{
	return len >= HEADER_SIZE && LDNS_ID_WIRE(p) == q->id &&
	       LDNS_QR_WIRE(p) && LDNS_OPCODE_WIRE(p) == LDNS_PACKET_QUERY &&
	       LDNS_QDCOUNT(p) == 1;
}

static bool repeats(const struct question *q, const ldns_pkt *p,
		    const ldns_rdf *name)
{
	const ldns_rr *rr = ldns_rr_list_rr(ldns_pkt_question(p), 0);

	return rr && (uint16_t)ldns_rr_get_type(rr) == q->type &&
	       ldns_rr_get_class(rr) == LDNS_RR_CLASS_IN &&
	       ldns_dname_compare(ldns_rr_owner(rr), name) == 0;
}

static bool is_of(const ldns_rr *rr, const ldns_rdf *owner, uint16_t type)
{
	return (uint16_t)ldns_rr_get_type(rr) == type &&
	       ldns_rr_get_class(rr) == LDNS_RR_CLASS_IN &&
	       ldns_rr_rd_count(rr) == 1 &&
	       ldns_dname_compare(ldns_rr_owner(rr), owner) == 0;
}

static void add(struct addresses *ret, const ldns_rr *rr)
{
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff };
	const ldns_rdf *rdf = ldns_rr_rdf(rr, 0);
	uint8_t *to = ret->address[ret->n];
	size_t len = ldns_rdf_size(rdf);

	if (ret->n >= RESOLVE_FAMILY || (len != 4 && len != 16))
		return;
	memcpy(to, mapped, sizeof(mapped));
	memcpy(to + 16 - len, ldns_rdf_data(rdf), len);
	ret->n++;
}

/*
 * The addresses of `owner`; what of the answer does not belong to it is not
 * looked at. *ret_alias is the name that it is another name for, or NULL.
 */
static void read_owner(const ldns_rr_list *rrs, const ldns_rdf *owner,
		       uint16_t type, struct addresses *ret,
		       const ldns_rdf **ret_alias)
{
	*ret_alias = NULL;
	for (size_t i = 0; i < ldns_rr_list_rr_count(rrs); i++) {
		const ldns_rr *rr = ldns_rr_list_rr(rrs, i);

		if (is_of(rr, owner, type))
			add(ret, rr);
		else if (is_of(rr, owner, LDNS_RR_TYPE_CNAME))
			*ret_alias = ldns_rr_rdf(rr, 0);
		else
			continue;
		ret->ttl = MIN(ret->ttl, ldns_rr_ttl(rr));
	}
}

static enum answered read_answer(const ldns_pkt *p, const ldns_rdf *name,
				 uint16_t type, struct addresses *ret)
{
	const ldns_rr_list *rrs = ldns_pkt_answer(p);
	const ldns_rdf *owner = name;

	ret->ttl = UINT32_MAX;
	for (int i = 0; owner && i <= RESOLVE_CHAIN; i++) {
		const ldns_rdf *alias;

		read_owner(rrs, owner, type, ret, &alias);
		if (ret->n)
			return ANSWER_FOUND;
		owner = alias;
	}
	return owner ? ANSWER_FAILED : ANSWER_NONE; /* too long a chain */
}

enum answered answer_read(const struct question *q, const uint8_t *packet,
			  size_t len, struct addresses *ret)
{
	_cleanup_pkt_ ldns_pkt *p = NULL;
	enum answered how = ANSWER_NOT_OURS;
	ldns_rdf *name;

	memset(ret, 0, sizeof(*ret));
	if (!is_ours(q, packet, len))
		return ANSWER_NOT_OURS;
	if (LDNS_TC_WIRE(packet))
		return ANSWER_TRUNCATED;
	if (ldns_wire2pkt(&p, packet, len) != LDNS_STATUS_OK)
		return ANSWER_NOT_OURS;
	name = ldns_dname_new_frm_str(q->name);
	if (name && repeats(q, p, name)) {
		ldns_pkt_rcode code = ldns_pkt_get_rcode(p);

		if (code == LDNS_RCODE_NOERROR)
			how = read_answer(p, name, q->type, ret);
		else
			how = code == LDNS_RCODE_NXDOMAIN ? ANSWER_NONE
							  : ANSWER_FAILED;
	}
	ldns_rdf_deep_free(name);
	return how;
}
