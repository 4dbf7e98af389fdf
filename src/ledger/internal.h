/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What append.c and recover.c share; nobody else includes it. */

#include "base/buf.h"
#include "ledger/head.h"
#include "ledger/ledger.h"

struct ledger {
	char dir[4096];
	int dir_fd;
	int head; /* the file `head` */
	int fd;   /* of the file `file`, NO_FD: none open */
	uint32_t file;
	uint64_t file_size;
	uint64_t mine; /* seq of the last record this handle appended */
	bool is_due;   /* a seal, and nobody was told yet */
	uint64_t told; /* seq of the last record when it was */
	bool is_over;  /* the next line goes over a torn end, not behind it */
	struct buf line;
};

/* Opens file `n` for appending; -ENOENT if it is not there. */
int ledger_use_file(struct ledger *l, uint32_t n, struct err *err);

/* Makes file `n`, empty, and its name lasting. */
int ledger_new_file(struct ledger *l, uint32_t n, struct err *err);

/*
 * Writes one record after `m` and moves the mark; the writer lock is held.
 * On failure the file is as before, or has a torn tail that a later writer
 * cuts.
 */
int ledger_write(struct ledger *l, struct mark *m, const char *kind,
		 const char *members, size_t len, struct err *err);

/* fdatasync of the file of `m`, and the mark synced; the sync lock is held. */
int ledger_sync_mark(struct ledger *l, const struct mark *m,
		     struct mark *synced, struct err *err);

/*
 * Finds the end of the ledger from what is known to be on the disk; the
 * writer lock is held. Whole records are kept, a torn tail is cut and
 * recorded. -EBADMSG when something is missing or changed that was there.
 */
int ledger_recover(struct ledger *l, struct mark marks[MARKS], struct err *err);

/* Whether file `n` is there and has something in it. */
bool ledger_has_file(const struct ledger *l, uint32_t n);

void ledger_file_name(uint32_t n, char ret[24]);
