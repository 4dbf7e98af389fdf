/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Seals: signed statements about all records up to one.
 *
 * A seal is a record of the ledger. It has the tree hash (RFC 6962) of the
 * records since the last seal, that one included, the hash of the record
 * before it, an Ed25519 signature over both, and the public key of the *next*
 * seal. Each key signs once and is then gone from the disk: who takes the key
 * that is there today can sign tomorrow's seal, but no older one again.
 *
 *	key	the secret key of the next seal, mode 0600
 *	key.next	the one after it, while a seal is being made
 *	key.pub	the public key of the first seal: what the rest is checked by
 *
 * A seal's line, kept elsewhere (`cordon audit seal --export FILE`), is a
 * head: a ledger that does not hold exactly this line at its place was cut
 * or written anew.
 */

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "ledger/verify.h"

#define SEAL_KEY 32
#define SEAL_SIG 64

struct seal_result {
	uint64_t seq; /* 0: there was nothing to seal */
	uint64_t from, to;
	uint64_t epoch;
	char *line; /* the last seal there is, without its newline */
};

void seal_result_done(struct seal_result *r);

/* Seals what is not sealed yet. */
int seal_make(const char *dir, struct seal_result *ret, struct err *err);

/* Checks the seals of one ledger in their order. */
struct seal_chain {
	unsigned char key[SEAL_KEY]; /* that the next one must be made with */
	uint64_t epoch;              /* of the next one */
	bool has_key;                /* false: key.pub was not there */
};

/* The secret key that lies there, or the one of a seal just being made. */
struct seal_key {
	bool is_there;
	bool fits; /* it is the one that the next seal must be made with */
	uint64_t epoch;
};
void seal_key_look(const char *dir, const struct seal_chain *c,
		   struct seal_key *ret);

/* `key_file` NULL: key.pub of the ledger. */
int seal_chain_init(struct seal_chain *c, const char *dir, const char *key_file,
		    struct err *err);
/* For verify_options.on_seal. */
int seal_check(struct seal_chain *c, const struct verify_seal *s,
	       struct err *err);
