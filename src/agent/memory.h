/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Memory: what an agent is reminded of before it asks its model.
 *
 * The list store keeps texts in the order in which they were added, and a
 * query answers with all of them. What comes out of a memory was written by
 * somebody some time: the model sees it marked as data.
 */

#include <jansson.h>

#include "base/err.h"

struct memory;

/* {"kind":"list","name":"...","entries":["text", {"content","metadata"}]} */
int memory_new(const json_t *config, struct memory **ret, struct err *err);
void memory_free(struct memory *m);
/* -E2BIG: it is full, or the text is too long. */
int memory_add(struct memory *m, const char *text, struct err *err);
/* What there is to `about`, a new list of {"content","mime_type","metadata"} */
json_t *memory_query(const struct memory *m, const char *about);
void memory_clear(struct memory *m);
json_t *memory_save(const struct memory *m);
int memory_load(struct memory *m, const json_t *state, struct err *err);

/* Such a list as a message to a model; NULL: it is empty, or no memory. */
json_t *memory_to_model(const json_t *found);
