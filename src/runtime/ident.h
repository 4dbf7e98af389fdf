/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Who is who: "type/key" of actors, "type/source" of topics, and ids.
 *
 * An id is 128 random bits, as text a UUID. They come from the kernel, some
 * dozens at a time; a process that forks does not use what its parent has.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct uuid {
	uint64_t high, low;
};

enum { UUID_TEXT = 37, UUIDS_AT_ONCE = 64, KEY_MAX = 512, TYPE_MAX = 256 };

struct uuid_pool {
	struct uuid ids[UUIDS_AT_ONCE];
	unsigned int left, forks;
};

struct uuid uuid_make(struct uuid_pool *p);
void uuid_format(struct uuid u, char ret[UUID_TEXT]);
bool uuid_parse(const char *text, struct uuid *ret);

static inline bool uuid_is(struct uuid a, struct uuid b)
{
	return a.high == b.high && a.low == b.low;
}

static inline bool uuid_is_none(struct uuid u)
{
	return (u.high | u.low) == 0;
}

/* Each is a predicate on a whole text. */
bool actor_type_check(const char *type);
bool topic_type_check(const char *type);
bool topic_prefix_check(const char *prefix); /* may be empty */
bool message_type_check(const char *type);   /* with a namespace */

/* Length of the part before the first '/', or 0: it is no id. */
size_t actor_id_split(const char *id);
size_t topic_split(const char *topic);
