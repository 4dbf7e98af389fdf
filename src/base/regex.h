/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Regular expressions whose time is bounded, whatever the text.
 *
 *	struct regex *r;
 *
 *	regex_new("(?i)internal only", &r, &err);
 *	while ((n = regex_find(r, text, len, at, &from, &to)) > 0)
 *		at = to;
 *	regex_free(r);
 *
 * The language is what everybody's has in common: . [a-z] [^a-z] ( ) (?: ) |
 * * + ? {m,n} ^ $ \d \w \s \D \W \S \b \B \t \n \r \xHH, and (?i), (?s) at
 * the beginning. ^ and $ stand at lines; a dot is one character of UTF-8. Case
 * is that of ASCII. What needs backtracking (\1, lookaround, lazy and
 * possessive quantifiers) is refused by name, and so is what matches the
 * empty text.
 *
 * The match is the leftmost, of these the longest. All states go over the
 * text side by side (Thompson 1968), so one search takes at most length times
 * size. Repeated searches could go over the same text again and again; they
 * draw on one allowance, and fail when it is used up.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define REGEX_PATTERN 1024      /* bytes of an expression */
#define REGEX_STEPS   100000000 /* for one text: about a second at most */

struct regex;

/* -EINVAL: err says what is wrong, and where. */
int regex_new(const char *pattern, struct regex **ret, struct err *err);
void regex_free(struct regex *r);

/* The allowance anew: for a text, or for all texts of one message. */
void regex_renew(struct regex *r);
/*
 * The same for a question about a whole text, as schemas ask it: ^ and $ stand
 * at its ends alone, a lazy quantifier is as good as another, and what matches
 * the empty text is welcome.
 */
int regex_new_test(const char *pattern, struct regex **ret, struct err *err);
/* 1: it matches somewhere; 0: nowhere; -E2BIG: too costly, no answer. */
int regex_test(struct regex *r, const char *text, size_t len);

/*
 * The next match at or behind `at`: 1; 0: none; -E2BIG: too costly, which is
 * no answer.
 */
int regex_find(struct regex *r, const char *text, size_t len, size_t at,
	       size_t *ret_from, size_t *ret_to);
