/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The shapes of secrets, as data: prefixes of tokens, names whose value is
 * one, private keys in PEM.
 *
 * Two readers share them. ledger/redact.c hides whatever has such a shape,
 * because a record is read by others and for ever. runtime/filter-secrets.c
 * changes what agents say to each other, and looks harder before it does.
 * Pure; each function looks at a bounded piece or goes over its text once.
 */

#include <stdbool.h>
#include <stddef.h>

/* The longest name of a pair. */
#define SECRET_NAME 64

struct secret_token {
	size_t prefix;    /* its length */
	size_t least;     /* how much follows it at least */
	const char *more; /* letters besides those of a word */
};

/* The length of the token with a known prefix at p, 0 if there is none. */
size_t secret_token(const char *p, const char *end, struct secret_token *ret);

/* The length of the word at p: letters, digits, '_', '-', those in `more`. */
size_t secret_word(const char *p, const char *end, const char *more);
const char *secret_skip(const char *p, const char *end, const char *set);

/* Whether the value of a thing with this name is a secret: "db_password". */
bool secret_has_name(const char *p, size_t len);
/* The same for its last part only: DB_PASS, signing-key. */
bool secret_has_ending(const char *p, size_t len);

/*
 * "name=value", "name: value", '"name":"value"': the mark behind a name that
 * ends at p (NULL: no pair), where the value begins, and where it ends, with
 * its quotes.
 */
const char *secret_mark(const char *p, const char *end);
const char *secret_value(const char *mark, const char *end);
const char *secret_value_end(const char *p, const char *end);

/* Where the first line of a private key ends that begins at p; else NULL. */
const char *secret_pem_line(const char *p, const char *end);
/* And where the key does: behind its last line, or at the end of the text. */
const char *secret_pem_end(const char *line, const char *end);
