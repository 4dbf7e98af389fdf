/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Private to schema*.c: what the keywords of JSON Schema share.
 *
 *	schema.c		the tables, references, several schemas at once
 *	schema-takes.c		what keywords take as their own value
 *	schema-value.c		types, numbers, texts
 *	schema-members.c	lists and objects
 */

#include "tool/tool.h"

#define MAX_DEPTH 64
#define MAX_STEPS 100000
#define MAX_PATH  200
#define TOO_MUCH  "too deep or too much to look at"
#define PATTERN   20 /* steps that a pattern counts as */

struct check {
	const json_t *root;
	int depth;
	unsigned int steps;
	bool is_quiet; /* an alternative: why it does not fit is not told */
	bool is_cut;   /* a bound was reached: nothing is known to fit */
	char path[MAX_PATH];
	size_t len; /* of the path */
	struct err *err;
};

struct keyword {
	const char *name;
	int (*check)(struct check *c, const json_t *arg);
	int (*test)(struct check *c, const json_t *schema, const json_t *arg,
		    const json_t *v);
};

/* Tables of them end with a name that is NULL. */
extern const struct keyword schema_value_words[], schema_member_words[];

/* -EINVAL, and where it is; nothing is told of an alternative. */
int schema_wrong(struct check *c, const char *fmt, ...) PRINTF(2, 3);
/* The path of what is looked at; what does not fit is left out. */
size_t schema_into(struct check *c, const char *name);
size_t schema_into_item(struct check *c, size_t i);
void schema_out(struct check *c, size_t was);
/* A schema itself; a value by one. */
int schema_check_at(struct check *c, const json_t *s);
int schema_test(struct check *c, const json_t *schema, const json_t *v);

int schema_takes_anything(struct check *c, const json_t *arg);
int schema_takes_string(struct check *c, const json_t *arg);
int schema_takes_bool(struct check *c, const json_t *arg);
int schema_takes_count(struct check *c, const json_t *arg);
int schema_takes_list(struct check *c, const json_t *arg);
int schema_takes_schemas(struct check *c, const json_t *arg);
int schema_takes_map(struct check *c, const json_t *arg);

/* 1 and 1.0 are the same number; jansson has them as different. */
bool schema_is_equal(const json_t *a, const json_t *b);

/* Sizes of strings, lists and objects. */
#define TEST_SIZE(name_, is_, size_, bad_, text_)                              \
	static int name_(struct check *c, const json_t *schema,                \
			 const json_t *arg, const json_t *v)                   \
	{                                                                      \
		json_int_t n = is_(v) ? (json_int_t)size_(v) : 0;              \
		json_int_t want = json_integer_value(arg);                     \
                                                                               \
		(void)schema;                                                  \
		if (is_(v) && (bad_))                                          \
			return schema_wrong(c, text_, (long long)want);        \
		return 0;                                                      \
	}
