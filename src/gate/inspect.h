/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A connection that is looked into: TLS is ended on both sides (where the box
 * speaks TLS), each HTTP/1.1 request is judged by methods and paths, secrets
 * are put in where their placeholders stand, and what is refused is answered
 * with a 403 that says why.
 *
 * Both descriptors belong to it from the call on.
 */

#include <uv.h>

#include "gate/table.h"
#include "gate/wire.h"

/* Makes the box's authority: keys, certificate. Once, after the first table. */
int authority_make(struct err *err);
/* Its certificate, PEM, and OpenSSL's name of it in a directory. */
const char *authority_pem(size_t *ret_len);
uint32_t authority_subject_hash(void);
/* Whom we trust upstream: this bundle; without it the machine's, read now. */
int trust_init(const char *pem, size_t len, struct err *err);

struct inspection;

/* What it tells the connection it belongs to; `e` has host, port, rule filled.
 */
struct inspection_hooks {
	/* One request was judged: to be sent as an event. */
	void (*event)(void *arg, const struct gate_event *e);
	/* So many bytes more went through, either way: for quotas. */
	void (*moved)(void *arg, size_t n);
	/* How many more may; NULL: any number. Where there are more it ends. */
	uint64_t (*left)(void *arg);
	/*
	 * Over, both sides are closed; sent and received are in `e`. Never
	 * from inside a call of this header.
	 */
	void (*over)(void *arg, const struct gate_event *e);
	void *arg;
};

struct inspected {
	uv_loop_t *loop;
	const struct gate_table *table;
	int rule;
	uint16_t port;
	const char *host;     /* that was resolved; TLS and HTTP must agree */
	bool is_tls;          /* the box began with a TLS hello */
	int box;              /* its first bytes are still to be read ... */
	const uint8_t *early; /* ... but for these, which were read already */
	size_t n_early;
	int upstream;                  /* connected */
	const struct gate_event *base; /* what every event begins with */
};

/* NULL with *err: nothing was taken over but the descriptors, closed. */
struct inspection *inspect_start(const struct inspected *what,
				 const struct inspection_hooks *hooks,
				 struct err *err);
/* The policy was replaced, or a quota ran out: end it now, with this reason. */
void inspect_end(struct inspection *i, enum gate_reason reason);
/* Takes nothing from either side for so long, or a little more; 0: goes on. */
void inspect_pause(struct inspection *i, uint64_t ms);
/* A new table holds from now on; nothing of the old one is used after this. */
void inspect_table(struct inspection *i, const struct gate_table *t, int rule);
