/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Paths and queries of requests. Pure; what they read is foreign.
 *
 * A pattern is matched part by part against a path as it was sent. "{}" takes
 * one part, "{*}" one or more and as few as what follows allows; there is at
 * most one of these in a pattern. No part is empty. Decoding comes after that,
 * once, so an escaped slash stays inside its part.
 */

#include <stdbool.h>
#include <stddef.h>

#define ROUTE_PARAMS 4

struct route_params {
	char *v[ROUTE_PARAMS]; /* decoded */
	unsigned int n;
};

/* 1: it matches; 0: it does not; -EINVAL: a bad escape; -ENOMEM. */
int route_match(const char *pattern, const char *path,
		struct route_params *ret);
void route_params_done(struct route_params *p);

struct query_pair {
	char *name, *value;
};

struct query {
	struct query_pair *v;
	size_t n;
};

/* "a=1&b=x+y&a=%32"; 0, -EINVAL or -ENOMEM. query_done() in each case. */
int query_parse(const char *text, size_t len, struct query *ret);
void query_done(struct query *q);
/* The next of this name from *i on, NULL if there is none. */
const char *query_next(const struct query *q, const char *name,
		       unsigned int *i);

/*
 * Percent-decoded once; with `has_plus`, '+' is a space. NULL with errno
 * EINVAL for a bad escape or a NUL, ENOMEM.
 */
char *url_decode(const char *text, size_t len, bool has_plus);
