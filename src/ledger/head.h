/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The file `head` beside the ledger's files: what its writers tell each other.
 *
 * Two marks. *Appended*: the last whole record, written by who holds the
 * writer lock. *Synced*: the last record known to be on the disk, written by
 * who holds the sync lock. Each has two places of 128 bytes, used in turn,
 * with a checksum, so that a writer that dies while it writes one leaves the
 * other:
 *
 *	0   128   256   384   512
 *	| appended |  synced   |
 *
 * All numbers as the processor has them; the file does not leave its machine.
 *
 * Appended may be behind the ledger (the writer died in between) and, after
 * a power cut, ahead of it. Synced is never ahead: a ledger that ends before
 * it has lost records that were acknowledged.
 *
 * The locks are locks of the open file (F_OFD_SETLKW) on single bytes far
 * behind its end; they end with their holder.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/sha256.h"

struct mark {
	uint64_t count; /* of the writes of this mark; 0: none */
	uint64_t seq;
	uint64_t line_at;   /* where the record begins */
	uint64_t size;      /* where it ends, with its newline */
	uint64_t sealed;    /* seq of the last seal record; 0: none yet */
	uint64_t sealed_at; /* where that record begins */
	uint32_t sealed_file;
	uint32_t file;
	uint32_t is_broken; /* synced: fdatasync failed since */
	uint32_t unused;
	unsigned char hash[SHA256_SIZE];
};

enum mark_name { MARK_APPENDED, MARK_SYNCED, MARKS };

enum head_lock { HEAD_WRITER, HEAD_SYNC, HEAD_SEAL };

#define HEAD_SIZE 512

/* Fills a new file with marks that say nothing; 0 or -errno. */
int head_make(int fd);

/* 0 or -errno; the lock ends with head_unlock() or the descriptor. */
int head_lock(int fd, enum head_lock which, bool wait);
void head_unlock(int fd, enum head_lock which);

/*
 * Both marks; one that was never written has count 0. -EBADMSG when a mark
 * was written once and neither of its places is whole.
 */
int head_read(int fd, struct mark ret[MARKS]);

/* Replaces a mark; its count goes on. 0 or -errno. */
int head_write(int fd, enum mark_name which, struct mark *m);

/* Whether each place is whole or was never written, and nothing follows. */
bool head_check(int fd);
