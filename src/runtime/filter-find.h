/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a filter looks for in a text: secrets, host paths, addresses, and
 * requests for them in words. Pure, and linear in the length of the text.
 *
 * A text is looked at as it is; then as a reader would see it (filter-fold.c:
 * look-alike letters, invisible ones, escapes); and what is base64 or
 * hexadecimal of a text is looked at too. A secret without a shape, or in a
 * cipher, is not found: this is a net, not a wall. The wall is the box.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct regex;

enum find_kind {
	FIND_SECRETS,
	FIND_HOST_PATHS,
	FIND_URLS,
	FIND_REGEX,
	FIND_KINDS
};
/* As in the policy: "secrets" ... "regex". */
const char *find_name(enum find_kind k);
enum find_kind find_parse(const char *name); /* FIND_KINDS: no such */

struct found {
	size_t from, to;
	unsigned int kinds; /* bits 1 << FIND_... */
};

struct finds {
	struct found *v; /* in order, not overlapping */
	size_t n, cap;
	int error;
	const uint32_t *map; /* of a folded text to the one it came from */
};
void finds_done(struct finds *f);
void finds_add(struct finds *f, size_t from, size_t to, enum find_kind k);

struct find_want {
	unsigned int kinds;  /* bits */
	struct regex *regex; /* for FIND_REGEX */
};
/* Texts are below 4 GiB. -E2BIG, -ENOMEM: not looked at to the end. */
int find_all(const struct find_want *w, const char *text, size_t len,
	     struct finds *ret);

/* --- the parts; each adds what it finds --- */

/* filter-secrets.c */
void find_secrets(struct finds *f, const char *text, size_t len);
/* Whether a value is one by its name too, as that of a member. */
bool find_is_secret(const char *name, size_t name_len, const char *value,
		    size_t len);
/* filter-paths.c */
void find_host_paths(struct finds *f, const char *text, size_t len);
/* filter-urls.c */
void find_urls(struct finds *f, const char *text, size_t len);
/* filter-asks.c: requests in words, of those kinds */
void find_asks(struct finds *f, unsigned int kinds, const char *text,
	       size_t len);

/* filter-fold.c */
struct folded {
	char *text;
	size_t len;
	uint32_t *map; /* len + 1 places in the text it came from */
};
/* 1; 0: there is nothing to fold, and *ret is empty; -ENOMEM. */
int fold_text(const char *text, size_t len, struct folded *ret);
void folded_done(struct folded *f);
