/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* JSON documents of the front: jansson, bounded, no name twice. */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define DOC_MAX ((size_t)8 << 20)

/* An object; the caller does json_decref(). NULL with *err. */
json_t *doc_parse(const char *text, size_t len, struct err *err);

/* The whole of a memfd, at most DOC_MAX, as a string; the caller frees. */
char *doc_read(int fd, struct err *err);
/* A sealed memfd with this text; or -errno. */
int doc_seal(const char *text, size_t len);

/*
 * Adds a member and takes `v`; false, and nothing was added, where there is no
 * memory for either: what lacks a member must not be used.
 */
bool doc_put(json_t *o, const char *name, json_t *v);

/*
 * A text that may hold anything, such as one that was cut or that a box made:
 * jansson takes UTF-8 only, and refuses the whole document for one text. What
 * is none is U+FFFD. NULL is "".
 */
json_t *doc_string(const char *text);

/* What is missing or of another type is the default. */
const char *doc_str(const json_t *o, const char *name);
int64_t doc_int(const json_t *o, const char *name, int64_t fallback);
bool doc_bool(const json_t *o, const char *name);
/*
 * As text, or NULL; the caller frees. Not json_dumps(): where memory runs out,
 * that one of jansson 2.14 leaves bytes out and says nothing.
 */
char *doc_text(const json_t *v);
/* A member as text of its own, or NULL; the caller frees. */
char *doc_dump(const json_t *o, const char *name);
