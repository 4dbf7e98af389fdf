/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Messages and events of a conversation, as JSON: what every type has, and
 * what each has of its own (section 13 of the specification).
 *
 * A type that is not in the table is opaque: it is valid, it is an event
 * unless its name ends in "Message", and it is passed on as it came.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define CHAT_ID 37 /* a UUID and its NUL */

void chat_id(char ret[CHAT_ID]);
/* RFC 3339, UTC, with milliseconds; ms since the epoch. */
void chat_time(int64_t ms, char ret[32]);
int64_t chat_now(void);
/* -1: it is no such time. */
int64_t chat_when(const char *text);

/* The i-th type of the table, NULL behind the last one. */
const char *chat_type_at(size_t i);
/* The content of a tool's result as one text; the caller frees it. */
char *chat_parts_text(const json_t *content);
/* The other way: what a message says as such a content; new, or NULL. */
json_t *chat_to_parts(const json_t *chat);
/*
 * Fills `format`: {name} stands for a member of `values`, written as a person
 * reads it; braces around anything else stay. NULL: no memory.
 */
char *chat_fill(const char *format, const json_t *values);
/* Says that the text is data and no word to follow. The caller frees it. */
char *chat_untrusted(const char *from, const char *text);
/* Compact JSON, or NULL; the caller frees it. */
char *chat_dump(const json_t *v);
