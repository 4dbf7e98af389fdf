/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The database under the store: statements, transactions, seals. */

#include <sqlite3.h>

#include "base/sha256.h"
#include "desk/store.h"

#define DAY_MS 86400000LL
/* The real clock may be set back a little; more and a request is over. */
#define SKEW_MS 5000

void stmt_end(sqlite3_stmt **st);
#define _cleanup_stmt_ __attribute__((cleanup(stmt_end)))

/* A transaction with the write lock; undone unless it was committed. */
struct change {
	struct store *s;
};
int change_begin(struct store *s, struct change *c, struct err *err);
int change_commit(struct store *s, struct change *c, struct err *err);
void change_end(struct change *c);
#define _cleanup_change_ __attribute__((cleanup(change_end)))

int db_prepare(struct store *s, const char *sql, sqlite3_stmt **ret,
	       struct err *err);
/* 1: a row, 0: the end. */
int db_step(struct store *s, sqlite3_stmt *st, struct err *err);
/* -EBADMSG, with what is to be done. */
int db_damaged(const struct store *s, const char *what, struct err *err);

/* Values that live until the statement ends. */
void db_bind_text(sqlite3_stmt *st, int at, const char *text);
void db_bind_int(sqlite3_stmt *st, int at, int64_t value);

/* Never NULL; good until the next step. */
const char *db_column(sqlite3_stmt *st, int at);
/* A text of fixed size; what does not fit fails the seal. */
void db_fixed(sqlite3_stmt *st, int at, char *ret, size_t size);

/*
 * store-row.c: a structure as a row, by its columns in their order; the seal,
 * the hash of all of them, is the last. Texts come first in it.
 */
enum column_kind {
	COLUMN_FIXED, /* char[size] */
	COLUMN_TEXT,  /* char * */
	COLUMN_WORD,  /* an enum, stored as its word */
	COLUMN_INT,   /* int64_t */
};
struct column {
	enum column_kind kind;
	size_t offset;
	size_t size; /* of a fixed one; how many words */
	const char *const *words;
};
struct table {
	const char *name; /* in the seal: rows of two tables never match */
	const struct column *columns;
	size_t n;
	size_t size; /* of the structure */
};
void row_seal(const struct table *t, const void *row, char ret[65]);
/* From ?1 on; `seal` lives as long as the statement. */
void row_bind(const struct table *t, sqlite3_stmt *st, const void *row,
	      char seal[65]);
/* -EBADMSG where the seal does not match; then nothing is to be released. */
int row_read(struct store *s, const struct table *t, sqlite3_stmt *st,
	     void *ret, struct err *err);
void row_done(const struct table *t, void *row);
