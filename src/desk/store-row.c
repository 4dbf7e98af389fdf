/* SPDX-License-Identifier: Apache-2.0 */

/* A row and its structure, by a table of columns: read, bound, sealed. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "desk/store-db.h"

static char **text_at(const void *row, const struct column *c)
{
	return (char **)((uintptr_t)row + c->offset);
}

static int64_t *int_at(const void *row, const struct column *c)
{
	return (int64_t *)((uintptr_t)row + c->offset);
}

static unsigned int *word_at(const void *row, const struct column *c)
{
	return (unsigned int *)((uintptr_t)row + c->offset);
}

/* What stands in a column that is no number; NULL is "". */
static const char *shown(const void *row, const struct column *c)
{
	switch (c->kind) {
	case COLUMN_FIXED:
		return (const char *)row + c->offset;
	case COLUMN_WORD:
		return c->words[*word_at(row, c)];
	default:
		return *text_at(row, c);
	}
}

static void seal_text(struct sha256 *h, const char *text)
{
	uint64_t len = text ? strlen(text) : 0;

	sha256_add(h, &len, sizeof(len));
	sha256_add(h, text, len);
}

void row_seal(const struct table *t, const void *row, char ret[65])
{
	unsigned char sum[SHA256_SIZE];
	struct sha256 h;

	sha256_init(&h);
	seal_text(&h, t->name);
	for (size_t i = 0; i < t->n; i++)
		if (t->columns[i].kind != COLUMN_INT)
			seal_text(&h, shown(row, &t->columns[i]));
	for (size_t i = 0; i < t->n; i++)
		if (t->columns[i].kind == COLUMN_INT)
			sha256_add(&h, int_at(row, &t->columns[i]),
				   sizeof(int64_t));
	sha256_end(&h, sum);
	hex_format(sum, sizeof(sum), ret);
}

void row_done(const struct table *t, void *row)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->columns[i].kind == COLUMN_TEXT)
			free(*text_at(row, &t->columns[i]));
	memset(row, 0, t->size);
}

static bool read_word(const struct column *c, const char *text,
		      unsigned int *ret)
{
	for (unsigned int i = 0; i < c->size; i++)
		if (strcmp(c->words[i], text) == 0) {
			*ret = i;
			return true;
		}
	return false;
}

static bool read_column(const struct column *c, sqlite3_stmt *st, int at,
			void *row)
{
	switch (c->kind) {
	case COLUMN_FIXED:
		db_fixed(st, at, (char *)row + c->offset, c->size);
		return true;
	case COLUMN_TEXT:
		*text_at(row, c) = strdup(db_column(st, at));
		return *text_at(row, c);
	case COLUMN_WORD:
		return read_word(c, db_column(st, at), word_at(row, c));
	default:
		*int_at(row, c) = sqlite3_column_int64(st, at);
		return true;
	}
}

int row_read(struct store *s, const struct table *t, sqlite3_stmt *st,
	     void *ret, struct err *err)
{
	bool is_good = true;
	char seal[65];

	memset(ret, 0, t->size);
	for (size_t i = 0; i < t->n && is_good; i++)
		is_good = read_column(&t->columns[i], st, (int)i, ret);
	if (is_good) {
		row_seal(t, ret, seal);
		if (strcmp(seal, db_column(st, (int)t->n)) == 0)
			return 0;
	}
	row_done(t, ret);
	return db_damaged(s, "a row does not match its seal", err);
}

void row_bind(const struct table *t, sqlite3_stmt *st, const void *row,
	      char seal[65])
{
	for (size_t i = 0; i < t->n; i++) {
		const struct column *c = &t->columns[i];

		if (c->kind == COLUMN_INT)
			db_bind_int(st, (int)i + 1, *int_at(row, c));
		else
			db_bind_text(st, (int)i + 1, shown(row, c));
	}
	row_seal(t, row, seal);
	db_bind_text(st, (int)t->n + 1, seal);
}
