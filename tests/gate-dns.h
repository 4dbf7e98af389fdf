/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A nameserver for tests: a thread on a port of 127.0.0.1, UDP and TCP, that
 * answers from a table, and can misbehave.
 */

#include <arpa/inet.h>
#include <ldns/ldns.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum manner {
	DNS_SAYS,
	DNS_NX,
	DNS_FAILS,
	DNS_SILENT,
	DNS_TRUNCATES, /* over UDP; over TCP it says */
	DNS_ALWAYS_TRUNCATES,
	DNS_FORGED_BEFORE, /* wrong id, wrong question, then what it says */
	DNS_GARBAGE,       /* the right header, then noise */
	DNS_HANGS_UP,      /* truncates, and closes TCP in the middle */
	DNS_HUGE,          /* truncates, and announces 64 KiB over TCP */
	DNS_LATE,          /* after 120 ms */
};

struct dns_row {
	const char *name;
	uint16_t type; /* 0: each */
	enum manner manner;
	const char *records; /* lines; each starts with its owner */
};

struct dns {
	const struct dns_row *rows;
	int udp, tcp;
	uint16_t port;
	pthread_t thread;
	atomic_int n_udp, n_tcp;
};

static inline const struct dns_row *dns_find(const struct dns *d,
					     const char *name, uint16_t type)
{
	for (const struct dns_row *r = d->rows; r->name; r++)
		if (strcasecmp(r->name, name) == 0 &&
		    (r->type == 0 || r->type == type))
			return r;
	return NULL;
}

static inline void dns_add_records(ldns_pkt *p, const char *records)
{
	char line[256];

	while (records && *records) {
		size_t len = strcspn(records, "\n");
		ldns_rr *rr = NULL;

		(void)snprintf(line, sizeof(line), "%.*s", (int)len, records);
		if (ldns_rr_new_frm_str(&rr, line, 0, NULL, NULL) ==
		    LDNS_STATUS_OK)
			(void)ldns_pkt_push_rr(p, LDNS_SECTION_ANSWER, rr);
		else
			printf("# no record: %s\n", line);
		records += len + (records[len] == '\n');
	}
}

/* The length of the answer to a question; 0: none. */
static inline size_t dns_answer(const struct dns_row *r, ldns_pkt *q,
				bool is_cut, uint8_t *ret, size_t size)
{
	ldns_pkt *p = ldns_pkt_new();
	uint8_t *wire = NULL;
	size_t len = 0;

	ldns_pkt_set_id(p, ldns_pkt_id(q));
	ldns_pkt_set_qr(p, true);
	ldns_pkt_set_rd(p, true);
	ldns_pkt_set_ra(p, true);
	ldns_pkt_set_tc(p, is_cut);
	(void)ldns_pkt_push_rr(
		p, LDNS_SECTION_QUESTION,
		ldns_rr_clone(ldns_rr_list_rr(ldns_pkt_question(q), 0)));
	if (!r || r->manner == DNS_NX)
		ldns_pkt_set_rcode(p, LDNS_RCODE_NXDOMAIN);
	else if (r->manner == DNS_FAILS)
		ldns_pkt_set_rcode(p, LDNS_RCODE_SERVFAIL);
	else if (!is_cut)
		dns_add_records(p, r->records);
	if (ldns_pkt2wire(&wire, p, &len) == LDNS_STATUS_OK && len <= size)
		memcpy(ret, wire, len);
	else
		len = 0;
	free(wire);
	ldns_pkt_free(p);
	return len;
}

struct dns_peer {
	struct sockaddr_in from;
	socklen_t len;
};

static inline void dns_send(const struct dns *d, const struct dns_peer *to,
			    const uint8_t *data, size_t len)
{
	(void)sendto(d->udp, data, len, 0, (const struct sockaddr *)&to->from,
		     to->len);
}

/* The same answer for another id, for another name, and not as an answer. */
static inline void dns_forge(const struct dns *d, const struct dns_peer *to,
			     const uint8_t *data, size_t len)
{
	uint8_t bad[4096];

	memcpy(bad, data, len);
	memset(bad + len - 4, 66, 4);
	bad[0] ^= 0x55;
	dns_send(d, to, bad, len);
	bad[0] ^= 0x55;
	bad[13] ^= 1;
	dns_send(d, to, bad, len);
	bad[13] ^= 1;
	bad[2] &= 0x7f;
	dns_send(d, to, bad, len);
	dns_send(d, to, bad, 7);
}

static inline void dns_reply(struct dns *d, const struct dns_row *r,
			     ldns_pkt *q, const struct dns_peer *to)
{
	enum manner m = r ? r->manner : DNS_NX;
	bool is_cut = m == DNS_TRUNCATES || m == DNS_ALWAYS_TRUNCATES ||
		      m == DNS_HANGS_UP || m == DNS_HUGE;
	uint8_t out[4096];
	size_t len = dns_answer(r, q, is_cut, out, sizeof(out));

	if (m == DNS_SILENT)
		return;
	if (m == DNS_FORGED_BEFORE)
		dns_forge(d, to, out, len);
	if (m == DNS_GARBAGE)
		memset(out + 12, 0xc0, len - 12);
	if (m == DNS_LATE)
		(void)usleep(120000);
	dns_send(d, to, out, len);
}

static inline ldns_pkt *dns_read(const uint8_t *data, size_t len, char *name,
				 size_t size, uint16_t *ret_type)
{
	ldns_pkt *q = NULL;
	ldns_rr *rr;
	char *text;

	if (ldns_wire2pkt(&q, data, len) != LDNS_STATUS_OK)
		return NULL;
	rr = ldns_rr_list_rr(ldns_pkt_question(q), 0);
	text = ldns_rdf2str(ldns_rr_owner(rr));
	(void)snprintf(name, size, "%.*s", (int)strlen(text) - 1, text);
	free(text);
	*ret_type = (uint16_t)ldns_rr_get_type(rr);
	return q;
}

static inline void dns_serve_udp(struct dns *d)
{
	struct dns_peer peer = { .len = sizeof(peer.from) };
	uint8_t in[4096];
	char name[300];
	uint16_t type;
	ssize_t n = recvfrom(d->udp, in, sizeof(in), 0,
			     (struct sockaddr *)&peer.from, &peer.len);
	ldns_pkt *q = n > 0 ? dns_read(in, (size_t)n, name, sizeof(name), &type)
			    : NULL;

	if (!q)
		return;
	atomic_fetch_add(&d->n_udp, 1);
	dns_reply(d, dns_find(d, name, type), q, &peer);
	ldns_pkt_free(q);
}

static inline void dns_serve_tcp(struct dns *d)
{
	int fd = accept(d->tcp, NULL, NULL);
	uint8_t in[4096];
	uint8_t out[4096];
	char name[300];
	uint16_t type;
	ssize_t n = recv(fd, in, 2, MSG_WAITALL);
	ldns_pkt *q;
	const struct dns_row *r;
	size_t len;

	atomic_fetch_add(&d->n_tcp, 1);
	if (n == 2)
		n = recv(fd, in, (size_t)in[0] << 8 | in[1], MSG_WAITALL);
	q = n > 0 ? dns_read(in, (size_t)n, name, sizeof(name), &type) : NULL;
	if (q) {
		r = dns_find(d, name, type);
		len = dns_answer(r, q, r && r->manner == DNS_ALWAYS_TRUNCATES,
				 out + 2, sizeof(out) - 2);
		out[0] = (uint8_t)(len >> 8);
		out[1] = (uint8_t)len;
		if (r && r->manner == DNS_HUGE)
			memset(out, 0xff, 2);
		if (r && r->manner == DNS_HANGS_UP)
			len /= 2;
		/* In pieces, as TCP may. */
		(void)send(fd, out, 1, MSG_NOSIGNAL);
		(void)usleep(2000);
		(void)send(fd, out + 1, len + 1, MSG_NOSIGNAL);
		ldns_pkt_free(q);
	}
	(void)close(fd);
}

static inline void *dns_run(void *arg)
{
	struct dns *d = arg;

	for (;;) {
		struct pollfd p[2] = { { d->udp, POLLIN, 0 },
				       { d->tcp, POLLIN, 0 } };

		if (poll(p, 2, -1) < 0)
			continue;
		if (p[0].revents)
			dns_serve_udp(d);
		if (p[1].revents)
			dns_serve_tcp(d);
	}
	return NULL;
}

static inline int dns_bind(int type, uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
	int one = 1;

	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
		return fd;
	(void)close(fd);
	return -1;
}

/* Ends with the test's process. */
static inline bool dns_start(struct dns *d, const struct dns_row *rows)
{
	struct sockaddr_in a = { 0 };
	socklen_t len = sizeof(a);

	d->rows = rows;
	for (int i = 0; i < 20; i++) {
		d->udp = dns_bind(SOCK_DGRAM, 0);
		(void)getsockname(d->udp, (struct sockaddr *)&a, &len);
		d->port = ntohs(a.sin_port);
		d->tcp = dns_bind(SOCK_STREAM, d->port);
		if (d->tcp >= 0)
			break;
		(void)close(d->udp);
	}
	return d->tcp >= 0 && listen(d->tcp, 8) == 0 &&
	       pthread_create(&d->thread, NULL, dns_run, d) == 0;
}
