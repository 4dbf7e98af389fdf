/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reading JSON that others wrote: bounded in size and depth, no name twice, no
 * NUL in a string. A member of the wrong kind is an error and not a default;
 * one that is missing or null is a default.
 *
 * The getters remember the first failure in doc->err and then do nothing, so a
 * caller may get many and look once.
 */

#include <jansson.h>

#include "image/image.h"

#define IMAGE_DOC_MAX ((size_t)4 << 20)

/* -IMAGE_CORRUPT or -IMAGE_TOO_LARGE. The caller does json_decref(). */
int image_doc_parse(const char *text, size_t len, json_t **ret,
		    struct err *err);

/* The member, NULL if it is missing, null or of another kind (an error). */
json_t *image_doc_get(json_t *object, const char *name, json_type kind,
		      struct err *err);

/* A string of its own, empty if there is none; NULL and an error otherwise. */
char *image_doc_text(json_t *object, const char *name, struct err *err);

/* Adds the strings of an array, or the names of an object's members. */
int image_doc_texts(json_t *object, const char *name, struct strv *ret,
		    struct err *err);
int image_doc_names(json_t *object, const char *name, struct strv *ret,
		    struct err *err);

/* A digest; empty if there is none. */
int image_doc_digest(json_t *object, const char *name, char ret[IMAGE_DIGEST],
		     struct err *err);
