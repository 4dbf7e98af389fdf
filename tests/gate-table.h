/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Tables for tests of a gate, made by hand: rules of names and addresses. */

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/io.h"
#include "gate/table.h"

struct made_table {
	struct gate_table t;
	char strings[4096];
};

static uint32_t table_string(struct made_table *m, const char *text)
{
	size_t n = strlen(text) + 1;
	uint32_t at = m->t.size;

	if (at + n > sizeof(*m))
		abort();
	memcpy((char *)m + at, text, n);
	m->t.size += (uint32_t)n;
	return at;
}

static void table_init(struct made_table *m)
{
	memset(m, 0, sizeof(*m));
	m->t.magic = GATE_TABLE_MAGIC;
	m->t.size = sizeof(m->t);
	(void)table_string(m, "");
}

/* Ports that are there already stay once; all of them in order. */
static void table_port(struct made_table *m, uint16_t port)
{
	uint32_t at = 0;

	while (at < m->t.n_ports && m->t.ports[at] < port)
		at++;
	if (at < m->t.n_ports && m->t.ports[at] == port)
		return;
	memmove(&m->t.ports[at + 1], &m->t.ports[at],
		(m->t.n_ports - at) * sizeof(m->t.ports[0]));
	m->t.ports[at] = port;
	m->t.n_ports++;
}

/* "api.test", "*.api.test", or an address with its bits. */
static struct gate_rule *table_rule(struct made_table *m, const char *host,
				    uint16_t port)
{
	struct gate_rule *r = &m->t.rules[m->t.n_rules++];

	r->kind = strncmp(host, "*.", 2) == 0 ? GATE_BELOW : GATE_NAME;
	r->host = table_string(m, r->kind == GATE_BELOW ? host + 2 : host);
	r->n_ports = 1;
	r->ports[0] = port;
	table_port(m, port);
	if (inet_pton(AF_INET, host, r->address + 12) == 1) {
		r->kind = GATE_ADDRESS;
		r->bits = 128;
		r->address[10] = r->address[11] = 0xff;
	}
	return r;
}

/* The policy's own word: 127.0.0.1 at another port. */
static __attribute__((unused)) void table_resolve(struct made_table *m,
						  const char *host,
						  uint16_t to_port)
{
	struct gate_resolve *r = &m->t.resolve[m->t.n_resolve++];

	r->host = table_string(m, host);
	r->to_port = to_port;
	r->address[10] = r->address[11] = 0xff;
	r->address[12] = 127;
	r->address[15] = 1;
}

/* A sealed memfd of it. */
static __attribute__((unused)) int table_fd(const struct made_table *m)
{
	int fd = memfd_create("table", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || io_write_all(fd, m, m->t.size) < 0 || io_seal(fd) < 0)
		abort();
	return fd;
}
