/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An index over the ledger, `index.sqlite` beside its files.
 *
 * It holds nothing of its own: it is brought up to date from the files when
 * it is opened, made again when it does not fit them or is damaged, and may
 * be deleted at any time. Where the directory cannot be written, it is made
 * in memory.
 */

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "ledger/line.h"
#include "ledger/read.h"

struct index {
	sqlite3 *db;
	char dir[4096];
	bool is_stopped; /* a record is not as it was written; see `note` */
	char note[200];
};

int index_open(struct index *x, const char *dir, bool anew, struct err *err);
void index_close(struct index *x);

struct index_filter {
	int64_t since, until; /* microseconds; 0: open */
	const char *kind;     /* "run" stands for "run.start" and "run.end" */
	const char *agent;
	const char *decision;
	const char *run; /* an id or its beginning */
	uint64_t seq;    /* 0: any */
	uint64_t above;  /* only records after that one */
	int64_t limit;   /* the last so many; 0: all */
};

struct index_row {
	uint64_t seq;
	int64_t time;
	const char *kind, *run, *agent, *decision, *what; /* "" if none */
	uint32_t file;
	uint64_t offset;
	size_t len;
};

/* Each row that fits, in order; ends when `each` returns other than 0. */
int index_list(struct index *x, const struct index_filter *f,
	       int (*each)(void *arg, const struct index_row *row), void *arg,
	       struct err *err);

/* The line of a row; the caller frees. */
char *index_line(struct index *x, const struct index_row *row, struct err *err);

/* In a few words what a record is about, for tables. */
void record_summary(const struct value *record, const char *kind,
		    struct buf *out);
