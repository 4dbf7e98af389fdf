/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reads a whole ledger and finds the first byte that is not as it was
 * written.
 *
 * Reads the files in order, one buffer at a time, without a lock; a ledger
 * that grows meanwhile is checked up to where it was when its mark was read.
 * Signatures are the caller's business (the library for them is not linked
 * here): each seal is handed to `on_seal` with what it must say.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "ledger/head.h"
#include "ledger/line.h"

enum verify_fault {
	VERIFY_INTACT,
	VERIFY_EDITED,     /* a record is not what was written */
	VERIFY_MISSING,    /* records between others are gone */
	VERIFY_REORDERED,  /* they are there, in another order */
	VERIFY_DUPLICATED, /* a record is there twice */
	VERIFY_TRUNCATED,  /* the end is gone or torn */
	VERIFY_SEAL,       /* a seal does not fit */
	VERIFY_FAULTS,
};

struct verify_seal {
	const struct line *line;
	const unsigned char *root; /* of the records since the last seal */
	const unsigned char *head; /* leaf hash of the one before the seal */
	uint64_t from, to;
};

struct verify_options {
	const char *dir;
	/* 0, or -errno and why; NULL: seals are taken as records. */
	int (*on_seal)(void *arg, const struct verify_seal *s, struct err *err);
	/* Each good record, its leaf hash and place; may be NULL. */
	int (*on_record)(void *arg, const struct line *line,
			 const unsigned char hash[SHA256_SIZE], uint32_t file,
			 uint64_t offset);
	void *arg;
};

struct verify_result {
	enum verify_fault fault;
	uint64_t bad;  /* seq of the first bad record */
	uint32_t file; /* where */
	uint64_t offset;
	char text[400]; /* what is wrong, one line */
	uint64_t records;
	uint64_t bytes;
	uint32_t files;
	uint64_t sealed; /* seq of the last record under a seal */
	uint64_t seals;
	bool has_head;
	bool is_torn; /* truncated, but only behind what was acknowledged */
};

const char *verify_fault_name(enum verify_fault fault);

/*
 * 0 when it could be read, intact or not; -errno when it could not, or what a
 * callback returned. on_seal's failure is a fault, not an error.
 */
int verify(const struct verify_options *o, struct verify_result *ret,
	   struct err *err);
