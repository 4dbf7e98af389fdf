/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Tables, times and sizes for people, and JSON with line breaks.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/strv.h"

struct table {
	struct strv cells; /* row after row, the titles first */
	size_t columns;
	size_t in_row;
};

/* `titles` ends with NULL. */
void table_init(struct table *t, const char *const *titles);
void table_add(struct table *t, const char *text);
void table_end_row(struct table *t);
void table_print(const struct table *t);
void table_done(struct table *t);

/* "3 seconds", "2 hours"; returns ret. */
const char *format_age(int64_t ms, char *ret, size_t size);
/* "1.5 MiB" */
const char *format_size(uint64_t bytes, char *ret, size_t size);

/* A JSON text, indented, on standard output. */
void print_json(const char *text, size_t len, int depth);
