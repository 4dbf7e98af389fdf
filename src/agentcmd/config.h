/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A configuration: what a file says, as one component, checked to its last
 * field. Short forms are spelled out; components stay as they are, so that a
 * dump that is loaded and dumped again is the same text.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct config {
	json_t *component; /* a team or an agent */
	char *dir;         /* relative paths begin here */
	char *file;
};

/* functions: tools that the program brings, ended by NULL; or NULL. */
int config_read(const char *file, const char *const *functions,
		struct config *ret, struct err *err);
int config_parse(const char *file, const char *text, size_t len,
		 const char *const *functions, struct config *ret,
		 struct err *err);
void config_done(struct config *c);

/*
 * prices.c: that a file with a limit in dollars has the price of each of its
 * models; whether it has such a limit.
 */
struct at;
int prices_check(struct at *at, const json_t *component);
bool prices_matter(const json_t *component);

/* The component form; the caller frees it. NULL: memory is short. */
char *config_dump(const struct config *c);

/*
 * Every agent of a component, those within tools after who has them; ends with
 * the first that is not 0, and returns that.
 */
int config_each_agent(const json_t *component,
		      int (*visit)(void *arg, const json_t *agent), void *arg);

/* schema.c: the schema of both forms; the caller releases it. */
json_t *config_schema(void);

/*
 * import.c: a component of AutoGen's as one of ours. What could not be carried
 * over is in *ret_left, a list of {"path","what","why"}; NULL and *err where
 * nothing could.
 */
json_t *config_import(const json_t *theirs, json_t **ret_left, struct err *err);
