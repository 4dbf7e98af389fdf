/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Typed values out of the flat form of a policy, for the sections of policy.c.
 *
 * A reader fails once: the first thing that cannot be read is told with its
 * place in the file, and policy_parse() throws all of it away. Until then each
 * function goes on with nothing, so that no section has to look.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"
#include "policy/policy.h"

#define TYPED_PATH 512

struct policy_block {
	struct policy_block *next;
	_Alignas(16) char data[];
};

struct typed_reader {
	struct policy *p;
	struct err *err;
	const char *file; /* for what stands nowhere */
	bool has_failed;
};

int typed_fail(struct typed_reader *r, const struct origin *at,
	       const char *what);
/* Zeroed, one more than asked for, with the policy's life; NULL: has failed. */
void *typed_memory(struct typed_reader *r, size_t n, size_t size);

/* Where a line stands; NULL: nowhere. */
static inline struct origin origin_of(const struct flat_line *l)
{
	return l ? (struct origin){ l->file, l->line, l->column }
		 : (struct origin){ 0 };
}

/* Where an item of a list stands: where its leading key does. */
struct origin typed_origin(struct typed_reader *r, const char *top,
			   const char *key);

#define JOIN(buf, ...)                                                         \
	((size_t)snprintf(buf, sizeof(buf), __VA_ARGS__) < sizeof(buf))

/* "top.key"; NULL where it is not stated. */
const struct flat_line *typed_get(struct typed_reader *r, const char *top,
				  const char *key);
const char *typed_text(struct typed_reader *r, const char *top,
		       const char *key);
void typed_word(struct typed_reader *r, const char *top, const char *key,
		struct policy_word *ret);
void typed_list(struct typed_reader *r, const char *top, const char *key,
		struct policy_list *ret);
/* Names of the user's own with one value each. */
const struct policy_pair *typed_pairs(struct typed_reader *r, const char *path,
				      size_t *ret_n);
/* All of enum policy_number that are stated below `top`. */
void typed_numbers(struct typed_reader *r, const char *top,
		   struct policy_value *ret);

/* An array of what `each` makes of the items of a list; NULL: *ret_n is 0. */
void *typed_items(struct typed_reader *r, const char *path, size_t size,
		  void (*each)(struct typed_reader *r, const char *top,
			       void *item),
		  size_t *ret_n);

/* policy-network.c */
void policy_read_network(struct typed_reader *r);
