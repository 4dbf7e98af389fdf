/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a gate may let through, as one sealed memfd: fixed rows, and a pool of
 * strings behind them. The client writes it from the policy (box/egress.c); the
 * gate checks its bounds and obeys. Strings are offsets from the start of the
 * memfd, NUL-terminated; 0 is none.
 *
 * A rule for names never matches an address, nor the other way round. Rules
 * are looked at in order, those that ask before those that allow; the first
 * that matches host and port decides.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define GATE_TABLE_MAGIC 0x43475401U
#define GATE_MAX_RULES   256
#define GATE_MAX_PORTS   32 /* different ones in all rules: listeners */
#define GATE_MAX_RESOLVE 64
#define GATE_MAX_WORDS   64 /* methods, or paths, of a rule */
#define GATE_MAX_TABLE   (4U << 20)
#define GATE_MAX_RATE    1000000 /* connections, and seconds */
/* A secret's value; a shorter one than the second is not covered in answers. */
#define GATE_MAX_SECRET  4096
#define GATE_MIN_COVERED 8

/* Where names of a box lead; all of it is local to its lo. */
#define GATE_NET4      0xc6120000U /* 198.18.0.0/15 */
#define GATE_NET4_BITS 15
#define GATE_DNS4      0xc6120001U /* 198.18.0.1: lo's own, and DNS */
#define GATE_NET6      "2001:2::"  /* /48; name i is 2001:2::i */
#define GATE_NET6_BITS 48
#define GATE_DNS6      "2001:2::1"
#define GATE_FIRST     256  /* the first name is 198.18.1.0 and 2001:2::100 */
#define GATE_NAMES     4096 /* names of one box that got an address */

enum gate_host_kind {
	GATE_NAME,    /* exactly this, lower case, no final dot */
	GATE_BELOW,   /* "*.name": only what is below; `host` is without "*." */
	GATE_ADDRESS, /* a block of addresses, IPv4 as ::ffff:a.b.c.d */
	GATE_HOST_KINDS,
};

enum {
	GATE_RULE_ASK = 1 << 0,     /* a person is asked first */
	GATE_RULE_INSPECT = 1 << 1, /* methods, paths or a secret */
	/* The rule has such a list or quota: an empty one allows nothing. */
	GATE_RULE_METHODS = 1 << 2,
	GATE_RULE_PATHS = 1 << 3,
	GATE_RULE_BYTES = 1 << 4,
};

struct gate_vec {
	uint32_t off; /* `count` strings, one after the other */
	uint32_t count;
};

struct gate_rule {
	uint8_t kind;
	uint8_t flags;
	uint8_t bits;    /* GATE_ADDRESS: of `address`, 0 to 128 */
	uint8_t n_ports; /* none: no port */
	uint32_t host;   /* as the policy spells it where GATE_ADDRESS */
	uint8_t address[16];
	uint16_t ports[GATE_MAX_PORTS];
	struct gate_vec methods; /* none and no GATE_RULE_METHODS: any */
	struct gate_vec paths;   /* globs; none and no GATE_RULE_PATHS: any */
	uint32_t said;           /* where: "cordon.yaml:12", "--allow-host" */
	/* A secret: */
	uint32_t placeholder; /* what the box has instead; 0: no secret */
	uint32_t value;
	uint32_t name;   /* of the variable, for messages */
	uint32_t header; /* the header it may stand in, "*": any; 0: none */
	uint32_t format; /* of that header, with one {}; 0: as it comes */
	uint32_t query;  /* the field of the query it may stand in; 0: none */
	uint32_t body;   /* the field of a form or JSON body; 0: none */
	/* Quotas of this rule in this box; 0: none. */
	uint64_t bytes;       /* both directions; see GATE_RULE_BYTES */
	uint32_t connections; /* at the same time */
	uint32_t rate;        /* new connections in so many seconds: */
	uint32_t rate_seconds;
};

/* network.resolve: the policy's own word, so any address is meant. */
struct gate_resolve {
	uint32_t host;
	uint16_t port;    /* 0: each */
	uint16_t to_port; /* 0: the same */
	uint8_t address[16];
};

struct gate_table {
	uint32_t magic;
	uint32_t size;
	uint32_t n_rules;
	uint32_t n_resolve;
	uint32_t n_ports;       /* what init listens on, sorted */
	uint32_t ask_wait_ms;   /* 0: what asks fails at once */
	uint32_t box;           /* the run's id, for bodies of 403 */
	uint32_t ca_bundle;     /* PEM: whom the gate trusts upstream */
	uint32_t ca_bundle_len; /* 0: the machine's own bundle */
	uint32_t connections;   /* of the box at the same time */
	uint32_t is_final;      /* the client sends no other, and no answers */
	uint16_t ports[GATE_MAX_PORTS];
	struct gate_rule rules[GATE_MAX_RULES];
	struct gate_resolve resolve[GATE_MAX_RESOLVE];
};

/* Checks before anything in it is believed; pure. */
int gate_table_check(const struct gate_table *t, size_t size, struct err *err);

static inline const char *gate_str(const struct gate_table *t, uint32_t off)
{
	return off ? (const char *)t + off : NULL;
}

/* A name as a program spells it; `ret` is lower case, without a final dot. */
#define GATE_HOST_MAX 256

enum gate_verdict {
	GATE_ALLOW,
	GATE_ASK,
	GATE_DENY,
};

struct gate_judgement {
	enum gate_verdict verdict;
	int rule; /* -1: none names it */
};

/*
 * `name` is in its plain form, `port` 0 asks whether any port of it is named
 * (what a resolver wants to know). Metadata names are never allowed.
 */
void gate_judge_name(const struct gate_table *t, const char *name,
		     uint16_t port, struct gate_judgement *ret);
/* An address that a program dialled: only what a rule says explicitly. */
void gate_judge_address(const struct gate_table *t, const uint8_t address[16],
			uint16_t port, struct gate_judgement *ret);
/*
 * Whether one rule names this host and port (0: any), whatever others say: a
 * secret is meant for each host that a rule with it names, so two rules for one
 * host are two secrets for it.
 */
bool gate_rule_names(const struct gate_table *t, int rule, const char *name,
		     uint16_t port);
/* The same for an address that was dialled. */
bool gate_rule_has(const struct gate_table *t, int rule,
		   const uint8_t address[16], uint16_t port);
/* The policy's own address of a name; NULL: it is to be asked for. */
const struct gate_resolve *gate_resolve(const struct gate_table *t,
					const char *name, uint16_t port);
